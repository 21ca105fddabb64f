"""Lines of KITTI files: a type, fourteen numbers, and the score of a result."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from detap.formats.text.lines import NUMBER, LineForm, columns_of, numbers_of
from detap.io.problems import FaultError
from detap.tables.detection import Flags, Floats, encode_boxes

_BOX = ("x1", "y1", "x2", "y2")
_COLUMNS = ("type", "truncated", "occluded", "alpha", *_BOX, "h", "w", "l", "x", "y", "z", "ry")

TRUNCATED, OCCLUDED, ALPHA, BOX, SCORE = 0, 1, 2, slice(3, 7), 14
"""Indices into the numbers of a line."""

DONT_CARE = "DontCare"
TYPES = (
    "Car",
    "Van",
    "Truck",
    "Pedestrian",
    "Person_sitting",
    "Cyclist",
    "Tram",
    "Misc",
    DONT_CARE,
)
"""KITTI's types; other data sets have others."""


@dataclass(frozen=True, slots=True)
class KittiForm(LineForm):
    """Lines of ``type truncated occluded alpha x1 y1 x2 y2 h w l x y z ry [score]``."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return _COLUMNS + ("score",) * self.scored

    def read_line(self, text: str) -> tuple[str, list[float], bool]:
        """Return the type and the numbers."""
        columns = columns_of(text)
        if len(columns) != len(self.columns):
            raise FaultError(*self._wrong_count(columns))
        return columns[0], numbers_of(self.columns[1:], columns[1:]), False

    def _wrong_count(self, columns: Sequence[str]) -> tuple[str, str]:
        expected, count = len(self.columns), len(columns)
        message = f"has {count} column{'s' * (count != 1)}, expected {expected}"
        hint = f"write `{' '.join(self.columns)}`"
        numbers = [NUMBER.fullmatch(column) is not None for column in columns]
        if count > 2 and numbers[0] and numbers[1] and not numbers[2]:
            message += ": begins with a frame and a track (KITTI tracking?)"
            hint = "write one file per frame, without these two columns"
        elif count > expected - self.scored and not numbers[0] and not numbers[1]:
            hint += ", the type without spaces"
        elif self.scored and count == expected - 1:
            message += ": no score (labels?)"
        elif not self.scored and count == expected + 1 and all(numbers[1:]):
            message += ": has a score (results?)"
        return message, hint


LABEL = KittiForm("type", False, "xyxy", str)
RESULT = KittiForm("type", True, "xyxy", str)


def one_spelling(names: Iterable[str], known: Iterable[str] = ()) -> list[str]:
    """Return type names with consistent case.

    Parameters
    ----------
    names : iterable of str
        As the files have them.
    known : iterable of str
        The types of the ground truth. Other types are written as in KITTI, and unknown ones as
        their first spelling in alphabetical order.
    """
    names = tuple(names)
    spelling: dict[str, str] = {}
    for name in chain(known, TYPES, sorted(names)):
        spelling.setdefault(name.casefold(), name)
    return [spelling[name.casefold()] for name in names]


def faults(values: Floats, boxes: str, *, of_labels: bool) -> list[tuple[Flags, str]]:
    """Return checks of the numbers (N, 14 or 15): the rows that fail, and a message."""
    corners, area = encode_boxes(values[:, BOX], boxes)
    finite = np.isfinite(corners).all(axis=1) & np.isfinite(area)
    checks = [(~finite, "box area overflows")]
    if of_labels:
        truncated, occluded = values[:, TRUNCATED], values[:, OCCLUDED]
        outside = (truncated != -1) & ((truncated < 0) | (truncated > 1))
        checks += [
            (outside, "truncated is not from 0 to 1, or -1"),
            (~np.isin(occluded, (-1, 0, 1, 2, 3)), "occluded is not 0, 1, 2, 3 or -1"),
        ]
    return checks
