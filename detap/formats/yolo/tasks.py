"""Detect the shapes of YOLO rows: boxes, polygons, keypoints or oriented boxes.

Rows do not name their task. ``kpt_shape`` of a `data.yaml` implies keypoints, and the option `task`
sets any; otherwise the numbers of columns decide, or the files are an error.

Reference: Ultralytics 8.4, ``engine/results.py`` (`save_txt`) and ``data/utils.py``
(`verify_image_label`).
"""

import os
import re
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from detap.core.polygons import is_self_intersecting
from detap.errors import InputError, Problem
from detap.formats.text.rows import Rows
from detap.formats.yolo.lines import BOX, CORNERS, SAVE_CONF, TITLES, YoloForm
from detap.io.problems import check_choice
from detap.tables.detection import Flags, Floats
from detap.tables.notes import too_many

TASKS = ("detect", "segment", "pose", "obb")
Keypoints = tuple[int, int]
"""``kpt_shape``: keypoints per row, and numbers per keypoint."""

_TASK = re.compile(r"^task:[ ]*([a-z]+)[ ]*\r?$", re.MULTILINE)
_HEAD = 1 << 16

_AXIS_TOLERANCE = 2e-6
"""Rounding tolerance of axis-aligned boxes with six digits."""
_SUMS, _DEGREE = 0.05, np.sin(np.radians(1))


def form_of(
    task: str | None,
    keypoints: Keypoints | None,
    *,
    scored: bool,
    resolve: Callable[[str], str],
    path: str,
    box_format: str,
    contours: bool = False,
) -> YoloForm:
    """Return the line format for a task or keypoints, as far as given."""
    check_choice("boxes", box_format, tuple(TITLES))
    if task is not None:
        check_choice("task", task, TASKS)
    boxes = len(BOX)
    columns = ("class", scored, box_format, resolve, ())
    if keypoints is None:
        if task == "pose":
            message = "unknown number of keypoints"
            hint = (
                "write `kpt_shape: [K, D]` into data.yaml (for ground truth in another format, "
                "pass --class-names data.yaml)"
            )
            raise InputError(Problem(path, "", message, hint))
        counts: tuple[int, ...] = {"detect": (boxes,), "obb": (CORNERS,)}.get(task or "", ())
        if not counts:
            return YoloForm(*columns, contours=contours)
        return YoloForm(*columns, counts, f"--task {task}", "correct the line, or omit --task")
    shape = f"kpt_shape [{keypoints[0]}, {keypoints[1]}]"
    if task in ("segment", "obb"):
        message = f"{shape} in data.yaml means keypoints, but the task is {task}"
        hint = "remove kpt_shape from data.yaml, or omit --task"
        raise InputError(Problem(path, "", message, hint))
    counts = (boxes + keypoints[0] * keypoints[1],)
    hint = "correct kpt_shape or the row; for boxes without keypoints pass --task detect"
    if task == "detect":
        counts, hint = (boxes, *counts), "correct kpt_shape or the row"
    return YoloForm(*columns, counts, f"{shape} in data.yaml", hint, keypoints)


def task_of_run(folder: str) -> tuple[str, str]:
    """Return the ``args.yaml`` of a training run and its task, or "" and "".

    It is in the folder of predictions or in one of the two above.
    """
    for _ in range(3):
        file = os.path.join(folder, "args.yaml")
        with suppress(OSError, UnicodeDecodeError), open(file, encoding="utf-8") as lines:
            text = lines.read(_HEAD)
            match = _TASK.search(text)
            if match is not None and match[1] in TASKS:
                return file, match[1]
        folder = os.path.normpath(os.path.join(folder, os.pardir))
    return "", ""


def check_run(run: tuple[str, str], task: str | None, keypoints: Keypoints | None) -> str | None:
    """Return the task of predictions: as given, else that of their ``args.yaml``.

    `run` is from :func:`task_of_run`. Raise InputError if they disagree.
    """
    file, task_of_file = run
    if not file or task_of_file == task:
        return task
    if task is not None and not (task == "detect" and task_of_file == "pose"):
        message, hint = f"task is {task_of_file}, but --task is {task}", "omit --task"
        raise InputError(Problem(file, "", message, f"{hint}, or use the predictions of the task"))
    if task is None and keypoints is not None and task_of_file != "pose":
        message = f"task is {task_of_file}, but data.yaml has kpt_shape {[*keypoints]}: pose"
        hint = "pass --task detect to evaluate boxes, or use the predictions of a pose model"
        raise InputError(Problem(file, "", message, hint))
    return task_of_file if task is None else task


def check_tracks(form: YoloForm, task: str | None, location: tuple[str, str]) -> None:
    """Raise InputError if track ids of predictions may be coordinates.

    They are 0 or 1, and neither a task nor ``kpt_shape`` is given.
    """
    if form.scored and not form.counts and task is None and form.tracks.keys() <= {"0", "1"}:
        message = "the last column is 0 or 1 in rows of odd length: a track id, or a coordinate?"
        hint = f"pass --task (detect, segment, obb); for rows without confidence, {SAVE_CONF}"
        raise InputError(Problem(*location, message, hint))


def refuse_equal_lengths(form: YoloForm, location: tuple[str, str], rows: Rows) -> None:
    """Raise InputError if all rows have equal length, unlike real polygons.

    `location` is that of the first row.
    """
    counts = np.unique(rows.counts) - form.scored
    if len(counts) != 1 or counts[0] in (6, CORNERS):
        return
    (count,) = counts.tolist()
    remaining = count - len(BOX)
    keypoints, content = f"[{remaining // 2}, 2]", "rows of keypoints"
    if remaining % 3 == 0 and form.scored:
        keypoints = "[K, D]"
    elif remaining % 3 == 0 and np.isin(rows.table(count)[:, 6::3], (0, 1, 2)).all():
        keypoints, content = f"[{remaining // 3}, 3]", "pose labels"
    message = (
        f"every row has {count + 1 + form.scored} columns: rows look like {content}, "
        "but no data.yaml has kpt_shape"
    )
    hint = (
        f"write `kpt_shape: {keypoints}` into data.yaml and pass it with --class-names; for "
        "polygons pass --task segment"
    )
    raise InputError(Problem(*location, message, hint))


def refuse_other_polygons(
    corners: Floats, pixels: Floats, scored: bool, location: Callable[[int], tuple[str, str]]
) -> None:
    """Raise InputError if rows of eight coordinates (N, 8) are not oriented boxes.

    Oriented boxes do not cross themselves; predicted ones are rectangles in pixels.
    """
    wrong = is_self_intersecting(corners)
    fault = "cross themselves, unlike oriented boxes"
    if scored:
        wrong |= ~_rectangles(pixels)
        fault = "are not rectangles, unlike predicted oriented boxes"
    count = int(np.count_nonzero(wrong))
    if count and too_many(count, len(wrong)):
        message = f"{count} of {len(wrong)} rows of {9 + scored} columns {fault}"
        hint = (
            "for polygons of four corners pass --task segment; for boxes with two keypoints write "
            "`kpt_shape: [2, 2]` into data.yaml; for oriented boxes pass --task obb"
        )
        raise InputError(Problem(*location(int(np.argmax(wrong))), message, hint))


def _rectangles(pixels: Floats) -> Flags:
    """Return a mask of quadrilaterals (N, 8) in pixels that are rectangles."""
    corner = pixels.reshape(-1, 4, 2)
    sums = np.abs(corner[:, 0] + corner[:, 2] - corner[:, 1] - corner[:, 3]).max(axis=1)
    first, second = corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 1]
    dot = np.abs((first * second).sum(axis=1))
    long = np.hypot(*first.T) * np.hypot(*second.T)
    short = np.minimum(np.hypot(*first.T), np.hypot(*second.T))
    straight = (dot <= _DEGREE * long) | (short <= 1)
    rectangles: Flags = (sums <= _SUMS) & straight
    return rectangles


def all_axis_aligned(corners: Floats) -> bool:
    """Return True if all quadrilaterals (N, 8) are axis-aligned boxes."""
    corner = corners.reshape(-1, 4, 2)
    low, high = corner.min(axis=1, keepdims=True), corner.max(axis=1, keepdims=True)
    at_edge = np.minimum(corner - low, high - corner) <= _AXIS_TOLERANCE
    turns = np.abs(np.roll(corner, -1, axis=1) - corner) > _AXIS_TOLERANCE
    return bool(at_edge.all() and not turns.all(axis=2).any())
