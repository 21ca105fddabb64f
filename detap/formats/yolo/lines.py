"""Lines of YOLO files: a class, a box or polygon, and a detection's confidence."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from detap.formats.text.lines import LineForm, columns_of, numbers_of
from detap.io.problems import FaultError
from detap.text_input import is_whole

BOX = ("xc", "yc", "w", "h")
TITLES = {"cxcywh": BOX, "xywh": ("x", "y", "w", "h"), "xyxy": ("x1", "y1", "x2", "y2")}
"""The columns of a box by box format."""
CORNERS = 8
"""Number of coordinates of a quadrilateral."""
COLUMNS = ("conf-last", "conf-first")
"""Positions of the confidence: of Ultralytics and of Padilla's tools."""

SAVE_CONF = "run the detector again with save_txt=True save_conf=True, into a new folder"


@dataclass(frozen=True, slots=True)
class YoloForm(LineForm):
    """Normalized ``class xc yc w h [conf]`` or ``class x y x y x y ... [conf]``.

    A polygon is stored as its lowest and highest x and y.

    Attributes
    ----------
    box_format : {"cxcywh", "xywh", "xyxy"}
        Format of boxes.
    counts : tuple of int
        Allowed numbers of coordinates; empty for a box or any polygon.
    stored : int
        Coordinates stored per line if `counts` is given: the four of its box, or those of its
        corners.
    source : str
        The origin of `counts`, for messages.
    hint : str
        The hint for another number of columns.
    keypoints : (int, int) or None
        ``kpt_shape``, if rows may have keypoints behind their box.
    contours : bool
        Polygons are contours of pixels, which may have one point or two.
    polygons : set of int
        Gets numbers of coordinates of polygons, including the minimum and maximum.
    tracks : Counter of str
        Gets track ids, the last column of tracked objects, which is not used.
    """

    counts: tuple[int, ...] = ()
    stored: int = 4
    source: str = ""
    hint: str = ""
    keypoints: tuple[int, int] | None = None
    contours: bool = False
    polygons: set[int] = field(default_factory=set, compare=False)
    tracks: Counter[str] = field(default_factory=Counter, compare=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of a box, of its keypoints, or of a polygon."""
        count, size = self.keypoints or (self.stored // 2, 2)
        points = [f"{axis}{k}" for k in range(1, count + 1) for axis in "xyv"[:size]]
        box = TITLES[self.box_format]
        shape = (*box, *points) if self.keypoints else points
        if self.stored == len(BOX):
            shape = box
        return ("class", *shape, *(("conf",) if self.scored else ()))

    @property
    def scanned(self) -> dict[str, Any]:
        """The scanner's arguments for these lines."""
        return {
            "xywh": False,
            "fractions": True,
            "scored": self.scored,
            "counts": self.counts,
            "polygons": self.polygons,
        }

    def read_line(self, text: str) -> tuple[str, list[float], bool]:
        """Return the class, the numbers, and True for a polygon."""
        columns = self._without_track(columns_of(text))
        count = len(columns) - 1 - self.scored
        is_box = count == len(BOX)
        if self.counts and count not in self.counts:
            raise FaultError(*self._counts_problem(len(columns)))
        if not self.counts and not is_box and (count < (2 if self.contours else 6) or count % 2):
            raise FaultError(*self._shape_problem(len(columns)))
        name = self.resolve(columns[0])
        values = numbers_of(self._titles(count), columns[1:])
        score = values[count:]
        if self.counts:
            is_polygon = count == self.stored > len(BOX)
            stored = values[: min(count, self.stored)]
            stored += [0.0] * (self.stored - len(stored))
        else:
            is_polygon, stored = not is_box, values[:count]
            if is_polygon:
                x, y = stored[0::2], stored[1::2]
                stored = [min(x), min(y), max(x), max(y)]
        if is_polygon:
            self.polygons.add(count)
        return name, stored + score, is_polygon

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

    def _titles(self, count: int) -> Sequence[str]:
        """Return the names of the numbers of a line with `count` coordinates."""
        score = ("conf",) if self.scored else ()
        box = TITLES[self.box_format]
        if count == len(BOX):
            return (*box, *score)
        if self.counts and (self.keypoints or self.stored == len(BOX)):
            return (*box, *(f"column {number}" for number in range(6, count + 2)), *score)
        return (*(("x", "y") * (count // 2)), *score)

    def _counts_problem(self, count: int) -> tuple[str, str]:
        expected = [str(n + 1 + self.scored) for n in self.counts]
        message = f"has {count} column{'s' * (count != 1)}, expected {' or '.join(expected)}"
        if self.source:
            message += f" for {self.source}"
        if self.scored and str(count + 1) in expected:
            return f"{message}: no confidence (save_conf was not set)", SAVE_CONF
        if self.scored and str(count - 1) in expected:
            return f"{message}: is the last column a track id?", "remove the track id"
        return message, self.hint

    def _shape_problem(self, count: int) -> tuple[str, str]:
        message = f"has {count} column{'s' * (count != 1)}"
        usage = f"write `{' '.join(self.columns)}`"
        polygon = f"`class x1 y1 x2 y2 x3 y3 ...{' conf' * self.scored}`"
        if not self.scored:
            if count == len(self.columns) + 1:
                return f"{message}, one more than a box: a confidence (detections?)", usage
            if count > len(self.columns):
                hint = f"write {polygon}{_keypoints_hint(count - 5)}"
                return f"{message}: polygons have an even number of coordinates", hint
        elif count == len(self.columns) - 1:
            return f"{message}: no confidence (save_conf was not set)", SAVE_CONF
        elif count == len(self.columns) + 1:
            message += (
                ": a box with confidence and track id, or a polygon of three corners without "
            )
            return f"{message}confidence", f"remove the track id; {usage}"
        elif count > len(self.columns):
            message += ": a polygon without confidence (save_conf was not set), or with a track id"
            hint = f"{SAVE_CONF}; or remove the track id{_keypoints_hint(count - 6)}"
            return message, hint
        return f"{message}, expected {len(self.columns)}", f"{usage}, or {polygon}"


def _keypoints_hint(count: int) -> str:
    """Return the hint for rows whose numbers after the box may be keypoints, or ""."""
    if count % 3 or count < 6:
        return ""
    return f"; for keypoints, write `kpt_shape: [{count // 3}, 3]` into data.yaml"
