"""Lines of YOLO files, and the shapes of their rows."""

import os
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from detap.errors import InputError, Problem
from detap.formats.options import TASK
from detap.formats.text.lines import Line, LineForm, columns_of, has_columns, numbers_of
from detap.io.problems import FaultError
from detap.tables.detection import Floats
from detap.text_input import is_whole

BOX = ("xc", "yc", "w", "h")
TITLES = {"cxcywh": BOX, "xywh": ("x", "y", "w", "h"), "xyxy": ("x1", "y1", "x2", "y2")}
"""The columns of a box by box format."""
CORNERS = 8
"""Number of coordinates of a quadrilateral."""
SAVE_CONF = "run the detector again with save_txt=True save_conf=True, into a new folder"

_TASK = re.compile(r"^task:[ ]*([a-z]+)[ ]*\r?$", re.MULTILINE)
_HEAD = 1 << 16

_FLOAT = re.compile(r"[0-9]{1,9}\.?[0-9]*(?:[eE][+-]?[0-9]{1,2})?")

_AXIS_TOLERANCE = 2e-6
"""Rounding tolerance of axis-aligned boxes with six digits."""


@dataclass(frozen=True, slots=True)
class YoloForm(LineForm):
    """Normalized ``class xc yc w h [conf]`` or ``class x y x y x y ... [conf]``.

    A line may end with a track id. Lines of any length are read; the flag of a row says that its
    last number is a whole one, and :meth:`ends` what that is. `counts` are one or two allowed
    numbers of coordinates, the first that of those that are used; empty for a box or any polygon.
    They come from `source`; `hint` is that for another number. `keypoints` is ``kpt_shape``, if
    rows may have keypoints behind their box. If `contours`, polygons may have one point or two.
    """

    counts: tuple[int, ...] = ()
    source: str = ""
    hint: str = ""
    keypoints: tuple[int, int] | None = None
    contours: bool = False

    @property
    def used(self) -> int:
        """The number of coordinates that are used, if it is fixed."""
        return self.counts[0] if self.counts else len(BOX)

    @property
    def columns(self) -> tuple[str, ...]:
        """The titles of the columns of a box, of its keypoints, or of a polygon."""
        return ("class", *self._titles(self.used), *("conf",) * self.scored)

    def _titles(self, count: int) -> tuple[str, ...]:
        """Return the titles of so many coordinates."""
        box = TITLES[self.box_format]
        if count == len(BOX):
            return box
        number, size = self.keypoints or (count // 2, 2)
        points = tuple(f"{axis}{k}" for k in range(1, number + 1) for axis in "xyv"[:size])
        return (*box, *points) if self.keypoints else points

    @property
    def regular(self) -> dict[str, Any]:
        """The arguments of `RaggedLines` for these lines."""
        return {"counts": ()}

    def read_line(self, text: str) -> Line:
        """Read a line, or raise FaultError."""
        word, *columns = columns_of(text)
        if not columns:
            raise FaultError(self.wrong_length(0), self.hint)
        self.resolve(word)
        is_whole_last = is_whole(columns[-1])
        track, confidence, _ = self.ends(len(columns), is_whole_last)
        titles = self._titles(len(columns) - track - confidence)
        titles = (*titles, *("conf",) * confidence, *("the last column",) * len(columns))
        return word, numbers_of(titles[: len(columns)], columns), is_whole_last

    def ends(self, numbers: int, is_whole_last: bool) -> tuple[bool, bool, bool]:
        """Return True for a track id at the end of so many numbers, and for a confidence before.

        The number of coordinates is even; the third is True if a row may have as many.
        """
        rest = numbers - 1 - self.scored
        is_shape = rest in (self.counts or (len(BOX),))
        if self.scored and not self.counts:
            is_shape |= rest >= 6 and rest % 2 == 0
        elif not self.scored:
            is_shape &= rest == len(BOX)
        track = is_whole_last and is_shape and rest + 1 not in self.counts
        numbers -= track
        odd = numbers not in self.counts if self.counts else numbers % 2 == 1
        count = numbers - (self.scored and odd)
        is_polygon = count >= (2 if self.contours else 6) and count % 2 == 0
        allowed = count in self.counts if self.counts else count == len(BOX) or is_polygon
        return track, self.scored and odd, allowed

    def wrong_length(self, numbers: int) -> str:
        """Return the message for a row of another number of numbers."""
        message, count = has_columns(numbers + 1), numbers + 1
        if self.counts:
            expected = [n + 1 + self.scored for n in self.counts]
            message += f", expected {' or '.join(map(str, expected))} for {self.source}"
            is_track = self.scored and count - 1 in expected
            return message + ": is the last column a track id?" * is_track
        if not self.scored and count == len(self.columns) + 1:
            return f"{message}, one more than a box: a confidence (detections?)"
        if not self.scored and count > len(self.columns):
            return f"{message}: polygons have an even number of coordinates"
        return f"{message}, expected {len(self.columns)}"


def form_of_task(
    form: YoloForm, task: str | None, kpt_shape: tuple[int, int] | None, path: str
) -> YoloForm:
    """Return the format of lines of a task, as far as it or ``kpt_shape`` is given."""
    if kpt_shape is None:
        if task == "pose":
            hint = (
                "write `kpt_shape: [K, D]` into data.yaml (for ground truth in another format, "
                "pass --class-names data.yaml)"
            )
            raise InputError(Problem(path, "", "unknown number of keypoints", hint))
        if task in ("detect", "obb"):
            counts: tuple[int, ...] = (len(BOX) if task == "detect" else CORNERS,)
            hint = "correct the line, or omit --task"
            return replace(form, counts=counts, source=f"--task {task}", hint=hint)
        polygon = f"`class x1 y1 x2 y2 x3 y3 ...{' conf' * form.scored}`"
        return replace(form, hint=f"write `{' '.join(form.columns)}`, or {polygon}")
    shape = f"kpt_shape {[*kpt_shape]} in data.yaml"
    if task in ("segment", "obb"):
        message = f"{shape} means keypoints, but the task is {task}"
        hint = "remove kpt_shape from data.yaml, or omit --task"
        raise InputError(Problem(path, "", message, hint))
    counts = (len(BOX) + kpt_shape[0] * kpt_shape[1],)
    hint = "correct kpt_shape or the row"
    if task == "detect":
        counts = (len(BOX), *counts)
    else:
        hint += "; for boxes without keypoints pass --task detect"
    return replace(form, counts=counts, source=shape, hint=hint, keypoints=kpt_shape)


def class_number(word: str) -> str:
    """Return the digits of a class that NumPy's savetxt or pandas wrote as ``1.0``, else `word`."""
    if word.isdigit() or not _FLOAT.fullmatch(word) or not float(word).is_integer():
        return word
    return str(int(float(word)))


def task_of_predictions(
    folder: str, task: str | None, keypoints: tuple[int, int] | None
) -> str | None:
    """Return the task of predictions: as given, else that of the ``args.yaml`` of their run.

    The file is in their folder or in one of the two above. Raise InputError if they disagree.
    """
    for _ in range(3):
        file = os.path.join(folder, "args.yaml")
        with suppress(OSError, UnicodeDecodeError), open(file, encoding="utf-8") as lines:
            match = _TASK.search(lines.read(_HEAD))
            if match is not None and match[1] in TASK.choices:
                break
        folder = os.path.normpath(os.path.join(folder, os.pardir))
    else:
        return task
    run = match[1]
    if task is not None and task != run and (task, run) != ("detect", "pose"):
        message, hint = f"task is {run}, but --task is {task}", "omit --task"
        raise InputError(Problem(file, "", message, f"{hint}, or use the predictions of the task"))
    if task is None and keypoints is not None and run != "pose":
        message = f"task is {run}, but data.yaml has kpt_shape {[*keypoints]}: pose"
        hint = "pass --task detect to evaluate boxes, or use the predictions of a pose model"
        raise InputError(Problem(file, "", message, hint))
    return task or run


def all_axis_aligned(corners: Floats) -> bool:
    """Return True if all quadrilaterals (N, 8) are axis-aligned boxes."""
    corner = corners.reshape(-1, 4, 2)
    low, high = corner.min(axis=1, keepdims=True), corner.max(axis=1, keepdims=True)
    at_edge = np.minimum(corner - low, high - corner) <= _AXIS_TOLERANCE
    turns = np.abs(np.roll(corner, -1, axis=1) - corner) > _AXIS_TOLERANCE
    return bool(at_edge.all() and not turns.all(axis=2).any())
