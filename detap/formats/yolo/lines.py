"""Lines of YOLO files: a class, a box or polygon, and a detection's confidence."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from detap.formats.text.lines import Line, LineForm, columns_of, has_columns, numbers_of
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

    Attributes
    ----------
    box_format : {"cxcywh", "xywh", "xyxy"}
        Format of boxes.
    counts : tuple of int
        One or two allowed numbers of coordinates; empty for a box or any polygon. The first is
        that of the coordinates that are used.
    source : str
        The origin of `counts`, for messages.
    hint : str
        The hint for another number of columns.
    keypoints : (int, int) or None
        ``kpt_shape``, if rows may have keypoints behind their box.
    contours : bool
        Polygons are contours of pixels, which may have one point or two.
    tracks : Counter of str
        Gets track ids, the last column of tracked objects, which is not used.
    """

    counts: tuple[int, ...] = ()
    source: str = ""
    hint: str = ""
    keypoints: tuple[int, int] | None = None
    contours: bool = False
    tracks: Counter[str] = field(default_factory=Counter, compare=False)

    @property
    def used(self) -> int:
        """The number of coordinates that are used, if it is fixed."""
        return self.counts[0] if self.counts else len(BOX)

    @property
    def columns(self) -> tuple[str, ...]:
        """The titles of the columns of a box, of its keypoints, or of a polygon."""
        box = TITLES[self.box_format]
        if self.used == len(BOX):
            shape: Sequence[str] = box
        else:
            count, size = self.keypoints or (self.used // 2, 2)
            points = [f"{axis}{k}" for k in range(1, count + 1) for axis in "xyv"[:size]]
            shape = (*box, *points) if self.keypoints else points
        return ("class", *shape, *(("conf",) if self.scored else ()))

    @property
    def regular(self) -> dict[str, Any]:
        """The arguments of `RaggedLines` for these lines."""
        counts = tuple(count + self.scored for count in self.counts or (len(BOX),))
        polygon = 0 if self.counts else self._shortest + self.scored
        return {"counts": counts, "polygon": polygon}

    @property
    def _shortest(self) -> int:
        """The minimum number of coordinates of a polygon."""
        return 2 if self.contours else 6

    def read_line(self, text: str) -> Line:
        """Read a line, or raise FaultError."""
        columns = self._without_track(columns_of(text))
        count = len(columns) - 1 - self.scored
        if self.counts and count not in self.counts:
            raise FaultError(*self._counts_problem(len(columns)))
        is_shape = count == len(BOX) or (count >= self._shortest and count % 2 == 0)
        if not self.counts and not is_shape:
            raise FaultError(*self._shape_problem(len(columns)))
        self.resolve(columns[0])
        return Line(columns[0], numbers_of(self._titles(count), columns[1:]))

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
        if self.counts and (self.keypoints or self.used == len(BOX)):
            return (*box, *(f"column {number}" for number in range(6, count + 2)), *score)
        return (*(("x", "y") * (count // 2)), *score)

    def _counts_problem(self, count: int) -> tuple[str, str]:
        expected = [str(n + 1 + self.scored) for n in self.counts]
        message = f"{has_columns(count)}, expected {' or '.join(expected)}"
        if self.source:
            message += f" for {self.source}"
        if self.scored and str(count + 1) in expected:
            return f"{message}: no confidence (save_conf was not set)", SAVE_CONF
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
