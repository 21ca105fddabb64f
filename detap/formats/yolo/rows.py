"""Lines of YOLO files, and the shapes of their rows."""

import os
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.errors import InputError, Problem
from detap.formats.options import TASK
from detap.formats.text.lines import Line, LineForm, columns_of, has_columns, numbers_of
from detap.io.problems import FaultError
from detap.tables.detection import Flags, Floats
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

    `counts` are one or two allowed numbers of coordinates, the first that of those that are used;
    empty for a box or any polygon. They come from `source`; `hint` is that for another number.
    `keypoints` is ``kpt_shape``, if rows may have keypoints behind their box. If `contours`,
    polygons may have one point or two. `tracks` gets track ids, a last column that is not used,
    unless it `has_tracks` not. Rows of detections (`scored`) may lack the confidence.
    """

    counts: tuple[int, ...] = ()
    source: str = ""
    hint: str = ""
    keypoints: tuple[int, int] | None = None
    contours: bool = False
    tracks: Counter[str] = field(default_factory=Counter, compare=False)
    has_tracks: bool = True

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
        counts = tuple(count + self.scored for count in self.counts or (len(BOX),))
        if self.scored and len(counts) == 1:
            counts = (*counts, counts[0] - 1)
        polygon = 0 if self.counts else self._shortest + self.scored
        shorter = self._shortest if self.scored and not self.counts else 0
        return {"counts": counts, "polygon": polygon, "shorter": shorter}

    @property
    def _shortest(self) -> int:
        """The minimum number of coordinates of a polygon."""
        return 2 if self.contours else 6

    def has_confidence(self, numbers: int) -> bool:
        """Return True if a line of so many numbers has a confidence: coordinates are even."""
        odd = numbers not in self.counts if self.counts else numbers % 2 == 1
        return self.scored and odd

    def have_confidence(self, counts: NDArray[np.int64]) -> Flags:
        """Return a mask of the rows with a confidence, by their numbers (N,)."""
        known = [*map(self.has_confidence, range(counts.max(initial=0) + 1))]
        return np.array(known, np.bool_)[counts]

    def read_line(self, text: str) -> Line:
        """Read a line, or raise FaultError."""
        columns = columns_of(text)
        if self.has_tracks:
            columns = self._without_track(columns)
        has_confidence = self.has_confidence(len(columns) - 1)
        count = len(columns) - 1 - has_confidence
        if self.counts and count not in self.counts:
            raise FaultError(*self._counts_problem(len(columns)))
        is_shape = count == len(BOX) or (count >= self._shortest and count % 2 == 0)
        if not self.counts and not is_shape:
            raise FaultError(*self._shape_problem(len(columns)))
        self.resolve(columns[0])
        titles = (*self._titles(count), *("conf",) * has_confidence)
        return columns[0], numbers_of(titles, columns[1:]), False

    def _without_track(self, columns: list[str]) -> list[str]:
        """Return the columns of a line without a track id: a whole number, the last of them."""
        count = len(columns) - 2 - self.scored
        is_shape = count in (self.counts or (len(BOX),))
        if self.scored and not self.counts:
            is_shape |= count >= 6 and count % 2 == 0
        elif not self.scored:
            is_shape &= count == len(BOX)
        if not is_shape or count + 1 in self.counts or not is_whole(columns[-1]):
            return columns
        self.tracks[columns[-1]] += 1
        return columns[:-1]

    def _counts_problem(self, count: int) -> tuple[str, str]:
        expected = [str(n + 1 + self.scored) for n in self.counts]
        message = f"{has_columns(count)}, expected {' or '.join(expected)}"
        if self.source:
            message += f" for {self.source}"
        if self.scored and str(count - 1) in expected:
            return f"{message}: is the last column a track id?", "remove the track id"
        return message, self.hint

    def _shape_problem(self, count: int) -> tuple[str, str]:
        message = has_columns(count)
        usage = f"write `{' '.join(self.columns)}`"
        polygon = f"`class x1 y1 x2 y2 x3 y3 ...{' conf' * self.scored}`"
        if not self.scored:
            if count == len(self.columns) + 1:
                return f"{message}, one more than a box: a confidence (detections?)", usage
            if count > len(self.columns):
                hint, keypoints = f"write {polygon}", (count - 5) // 3
                if keypoints >= 2 and (count - 5) % 3 == 0:
                    shape = f"`kpt_shape: [{keypoints}, 3]`"
                    hint += f"; for keypoints, write {shape} into data.yaml"
                return f"{message}: polygons have an even number of coordinates", hint
        return f"{message}, expected {len(self.columns)}", f"{usage}, or {polygon}"


@dataclass(frozen=True, slots=True)
class Task:
    """Options that determine the rows.

    `keep_corners` keeps quadrilaterals that are all upright, for a ground truth that has others.
    """

    kpt_shape: tuple[int, int] | None
    as_is: bool
    keep_corners: bool = False
    task: str | None = None
    boxes: str = "cxcywh"
    masks: bool = False
    keypoints: bool = False
    shapes: str = "reject"

    def form(self, resolve: Callable[[str], str], path: str, *, scored: bool) -> YoloForm:
        """Return the format of lines, as far as given."""
        columns, boxes = ("class", scored, self.boxes, resolve), len(BOX)
        if self.kpt_shape is None:
            if self.task == "pose":
                hint = (
                    "write `kpt_shape: [K, D]` into data.yaml (for ground truth in another format, "
                    "pass --class-names data.yaml)"
                )
                raise InputError(Problem(path, "", "unknown number of keypoints", hint))
            if self.task not in ("detect", "obb"):
                return YoloForm(*columns, contours=self.masks and scored)
            counts: tuple[int, ...] = (boxes if self.task == "detect" else CORNERS,)
            hint = "correct the line, or omit --task"
            return YoloForm(*columns, counts, f"--task {self.task}", hint)
        shape = f"kpt_shape {[*self.kpt_shape]} in data.yaml"
        if self.task in ("segment", "obb"):
            message = f"{shape} means keypoints, but the task is {self.task}"
            hint = "remove kpt_shape from data.yaml, or omit --task"
            raise InputError(Problem(path, "", message, hint))
        counts = (boxes + self.kpt_shape[0] * self.kpt_shape[1],)
        hint = "correct kpt_shape or the row"
        if self.task == "detect":
            counts = boxes, *counts
        else:
            hint += "; for boxes without keypoints pass --task detect"
        return YoloForm(*columns, counts, shape, hint, self.kpt_shape)


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
