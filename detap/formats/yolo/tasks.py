"""What the rows of YOLO's files hold: boxes, polygons, keypoints or oriented boxes.

Nothing in a row names its task. ``kpt_shape`` of a `data.yaml` does for keypoints, and `task` for
all; without them, the numbers of columns tell, or the files are refused.

Reference: Ultralytics 8.4, ``engine/results.py`` (`save_txt`) and ``data/utils.py``
(`verify_image_label`).
"""

from collections.abc import Callable

import numpy as np

from detap.core.polygons import crossing
from detap.errors import InputError, Problem
from detap.formats.yolo.lines import BOX, CORNERS, TITLES, YoloForm
from detap.io.problems import check_choice
from detap.tables.detection import Flags, Floats
from detap.tables.notes import too_many

TASKS = ("detect", "segment", "pose", "obb")
Keypoints = tuple[int, int]
"""``kpt_shape``: how many keypoints a row has, and how many numbers each."""

_STRAIGHT = 2e-6
"""How far six digits let the sides of an upright box lie from upright."""
_SUMS, _DEGREE = 0.05, np.sin(np.radians(1))


def form_of(
    task: str | None,
    keypoints: Keypoints | None,
    *,
    scored: bool,
    resolve: Callable[[str], str],
    path: str,
    box_format: str,
) -> YoloForm:
    """Return the form of the rows, as far as a task or keypoints set it.

    Raises
    ------
    InputError
        If the two disagree.
    """
    check_choice("boxes", box_format, tuple(TITLES))
    if task is not None:
        check_choice("task", task, TASKS)
    boxes = len(BOX)
    if keypoints is None:
        if task == "pose":
            message = "the number of keypoints is not known"
            hint = (
                "write `kpt_shape: [K, D]` into data.yaml (for predictions of other ground truth, "
                "--class-names data.yaml)"
            )
            raise InputError(Problem(path, "", message, hint))
        counts: tuple[int, ...] = {"detect": (boxes,), "obb": (CORNERS,)}.get(task or "", ())
        if not counts:
            return YoloForm("class", scored, box_format, resolve)
        kept, source, hint = counts[0], f"--task {task}", "correct the line, or leave out --task"
    else:
        shape = f"kpt_shape [{keypoints[0]}, {keypoints[1]}]"
        if task in ("segment", "obb"):
            message = f"{shape} in data.yaml means keypoints, and the task is {task}"
            hint = "take kpt_shape out of data.yaml, or leave out --task"
            raise InputError(Problem(path, "", message, hint))
        counts, kept = (boxes + keypoints[0] * keypoints[1],), boxes
        source = f"{shape} in data.yaml"
        hint = (
            "correct kpt_shape or the row; or, if rows are boxes without keypoints, --task detect"
        )
        if task == "detect":
            counts = (boxes, *counts)
            hint = "correct kpt_shape or the row"
    return YoloForm("class", scored, box_format, resolve, None, counts, kept, source, hint)


def has_keypoints(form: YoloForm) -> bool:
    """Return True if rows hold keypoints behind their box."""
    return form.kept == len(BOX) and max(form.counts, default=0) > len(BOX)


def keeping(form: YoloForm, kept: int, *counts: int) -> YoloForm:
    """Return the form of the same rows that keeps so many coordinates of each.

    `counts` are the numbers of coordinates that rows may have; `kept` if not given.
    """
    columns = ("class", form.scored, form.box_format, form.resolve, None)
    return YoloForm(*columns, counts or (kept,), kept)


def refuse_alike(
    form: YoloForm, location: tuple[str, str], values: Callable[[YoloForm], Floats]
) -> None:
    """Refuse rows that are all as wide as each other, which polygons of real data are not.

    Parameters
    ----------
    form : YoloForm
        That the rows were read by, all as polygons.
    location : (str, str)
        The file and the line of the first.
    values : callable
        Returns the numbers of all rows, read by a form.

    Raises
    ------
    InputError
    """
    if len(form.polygons) != 1 or form.polygons <= {6, CORNERS}:
        return
    (count,) = form.polygons
    rest = count - len(BOX)
    keypoints, what = f"[{rest // 2}, 2]", "rows of keypoints"
    if rest % 3 == 0 and form.scored:
        keypoints = "[K, D]"
    elif rest % 3 == 0 and np.isin(values(keeping(form, count))[:, 6::3], (0, 1, 2)).all():
        keypoints, what = f"[{rest // 3}, 3]", "pose labels"
    message = (
        f"every row has {count + 1 + form.scored} columns: these look like {what}, "
        "and no data.yaml gives their kpt_shape"
    )
    hint = (
        f"write `kpt_shape: {keypoints}` into data.yaml, and give it (--class-names); or, if rows "
        "are polygons, --task segment"
    )
    raise InputError(Problem(*location, message, hint))


def refuse_no_quadrilaterals(
    corners: Floats, pixels: Floats, scored: bool, location: Callable[[int], tuple[str, str]]
) -> None:
    """Refuse rows of eight coordinates that no task names and that are no oriented boxes.

    Oriented boxes do not cross themselves; those of predictions are rectangles in pixels.

    Parameters
    ----------
    corners, pixels : (N, 8) float64
        In fractions and in pixels.
    scored : bool
    location : callable

    Raises
    ------
    InputError
    """
    wrong = crossing(corners)
    fault = "cross themselves, as oriented boxes do not"
    if scored:
        wrong |= ~_rectangles(pixels)
        fault = "are no rectangles, as predicted oriented boxes are"
    count = int(np.count_nonzero(wrong))
    if count and too_many(count, len(wrong)):
        message = f"{count} of {len(wrong)} rows of {9 + scored} columns {fault}"
        hint = (
            "if rows are polygons of four corners, give --task segment; if boxes with two "
            "keypoints, write `kpt_shape: [2, 2]` into data.yaml; if oriented boxes indeed, give "
            "--task obb"
        )
        raise InputError(Problem(*location(int(np.argmax(wrong))), message, hint))


def _rectangles(pixels: Floats) -> Flags:
    """Return whether quadrilaterals (N, 8) in pixels are rectangles, to what six digits hold."""
    corner = pixels.reshape(-1, 4, 2)
    sums = np.abs(corner[:, 0] + corner[:, 2] - corner[:, 1] - corner[:, 3]).max(axis=1)
    first, second = corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 1]
    dot = np.abs((first * second).sum(axis=1))
    long = np.hypot(*first.T) * np.hypot(*second.T)
    short = np.minimum(np.hypot(*first.T), np.hypot(*second.T))
    straight = (dot <= _DEGREE * long) | (short <= 1)
    found: Flags = (sums <= _SUMS) & straight
    return found


def upright(corners: Floats) -> bool:
    """Return True if all quadrilaterals (N, 8) are boxes whose sides are parallel to the axes."""
    corner = corners.reshape(-1, 4, 2)
    low, high = corner.min(axis=1, keepdims=True), corner.max(axis=1, keepdims=True)
    at_edge = np.minimum(corner - low, high - corner) <= _STRAIGHT
    turns = np.abs(np.roll(corner, -1, axis=1) - corner) > _STRAIGHT
    return bool(at_edge.all() and not turns.all(axis=2).any())
