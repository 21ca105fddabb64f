"""Lines of DOTA files: eight coordinates, or the five numbers of a rotated box."""

from dataclasses import dataclass

import numpy as np

from detap.core.polygons import bounds, rotated_boxes
from detap.formats.text.lines import LineForm, columns_of, numbers_of
from detap.io.file_kinds import BYTE_ORDER_MARK
from detap.io.problems import FaultError, check_choice
from detap.tables.detection import Flags, Floats
from detap.text_input import quote

CORNERS = ("x1", "y1", "x2", "y2", "x3", "y3", "x4", "y4")
ROTATED = ("cx", "cy", "w", "h", "angle")
ANGLES = ("degrees", "radians")

_HEAD = (b"imagesource:", b"gsd:")
"""Beginnings of the header lines of label files."""


@dataclass(frozen=True, slots=True)
class DotaForm(LineForm):
    """Lines with a quadrilateral; labels then have a class, results begin with an image.

    `box_format` is "polygon", or the unit of the rotated box's angle.
    """

    @property
    def shape(self) -> tuple[str, ...]:
        """The names of the columns of the quadrilateral."""
        return CORNERS if self.box_format == "polygon" else ROTATED

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        if self.scored:
            return ("image", "score", *self.shape)
        return (*self.shape, "class", "difficult")

    def read_line(self, text: str) -> tuple[str, list[float], bool]:
        """Return the name, the numbers, and True if the object is difficult."""
        columns = columns_of(text)
        expected = len(self.columns)
        if len(columns) != expected and (self.scored or len(columns) != expected - 1):
            raise FaultError(*self._wrong_count(columns))
        if self.scored:
            name, values = self.resolve(columns[0]), numbers_of(self.columns[1:], columns[1:])
            return name, values, False
        width = len(self.shape)
        difficult = columns[width + 1] if len(columns) == expected else "0"
        if difficult not in {"0", "1"}:
            message = f"difficult is {quote(difficult)}, expected 0 or 1"
            raise FaultError(message, f"write `{' '.join(self.columns)}`")
        return columns[width], numbers_of(self.shape, columns[:width]), difficult == "1"

    def _wrong_count(self, columns: list[str]) -> tuple[str, str]:
        width, count = len(self.columns), len(columns)
        expected = f"{width}" if self.scored else f"{width} (or {width - 1} without difficult)"
        message = f"has {count} column{'s' * (count != 1)}, expected {expected}"
        hint = f"write `{' '.join(self.columns)}`"
        if self.box_format == "polygon" and count in (width - 3, width - 4 + self.scored):
            message += ": it may contain rotated boxes of five numbers"
            hint += ", or give the unit of the angle with --angle-unit"
        elif any("," in column for column in columns):
            hint += ", separated by spaces"
        return message, hint


def polygons_of(values: Floats, box_format: str) -> Floats:
    """Return the quadrilaterals (N, 8) of numbers (N, 8 or 5)."""
    if box_format == "polygon":
        return np.ascontiguousarray(values)
    boxes = values.copy()
    if box_format == "degrees":
        boxes[:, 4] = np.radians(boxes[:, 4])
    return rotated_boxes(boxes)


def faults(values: Floats, box_format: str) -> list[tuple[Flags, str]]:
    """Return checks of numbers (N, 8 or 5): the rows that fail, and a message."""
    with np.errstate(over="ignore", invalid="ignore"):
        corners = bounds(polygons_of(values, box_format))
        size = corners[:, 2:] - corners[:, :2]
        overflow = ~np.isfinite(size[:, 0] * size[:, 1])
    checks = [(overflow, "box area overflows")]
    if box_format != "polygon":
        negative = (values[:, 2] < 0) | (values[:, 3] < 0)
        checks.append((negative, "width or height is negative"))
    return checks


def encoding_of(angle_unit: str | None) -> str:
    """Return the encoding for the unit of an angle; eight coordinates without one."""
    if angle_unit is not None:
        check_choice("angle unit", angle_unit, ANGLES)
    return angle_unit or "polygon"


def without_head(data: bytes) -> bytes:
    """Return a label file with blank header lines."""
    lines = data.removeprefix(BYTE_ORDER_MARK).split(b"\n")
    for at, line in enumerate(lines):
        if line.strip().lower().startswith(_HEAD):
            lines[at] = b""
        elif line.strip():
            break
    return b"\n".join(lines)
