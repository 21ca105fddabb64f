"""Lines of YOLO's files: a class, a box or a polygon, and the confidence of a detection."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from detap.formats.text.lines import LineForm, columns_of, numbers_of
from detap.io.problems import FaultError

BOX = ("xc", "yc", "w", "h")
TITLES = {"cxcywh": BOX, "xywh": ("x", "y", "w", "h"), "xyxy": ("x1", "y1", "x2", "y2")}
"""The columns of a box in each of its encodings."""
CORNERS = 8
"""How many coordinates a quadrilateral has."""
COLUMNS = ("conf-last", "conf-first")
"""Where the confidence stands: as Ultralytics writes it, or as Padilla's tools do."""

SAVE_CONF = "run the detector again with save_txt=True save_conf=True, into a new folder"


@dataclass(frozen=True, slots=True)
class YoloForm(LineForm):
    """Lines of ``class xc yc w h [conf]`` or ``class x y x y x y ... [conf]``, in fractions.

    Of a polygon, the lowest x and y and the highest are kept, in the place of the box.

    Attributes
    ----------
    box_format : {"cxcywh", "xywh", "xyxy"}
        What the four numbers of a box are.
    counts : tuple of int
        The numbers of coordinates that a line may have; empty for a box or any polygon.
    kept : int
        How many coordinates of a line are kept where `counts` says how many it has: the four of its
        box, or those of its corners.
    source : str
        What sets `counts`, for messages.
    hint : str
        What to do about another number of columns.
    polygons : set of int
        Gets numbers of coordinates of polygons, the least and the greatest among them.
    """

    counts: tuple[int, ...] = ()
    kept: int = 4
    source: str = ""
    hint: str = ""
    polygons: set[int] = field(default_factory=set, compare=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of a box, or of a polygon."""
        corners = range(1, self.kept // 2 + 1)
        polygon = [f"{axis}{at}" for at in corners for axis in "xy"]
        shape = TITLES[self.box_format] if self.kept == len(BOX) else polygon
        return ("class", *shape, *(("conf",) if self.scored else ()))

    @property
    def scanned(self) -> dict[str, Any]:
        """The arguments of the scanner that describe these lines."""
        return {
            "sides": False,
            "fractions": True,
            "scored": self.scored,
            "counts": self.counts,
            "polygons": self.polygons,
        }

    def read_line(self, text: str) -> tuple[str, list[float], bool]:
        """Return the class, the numbers, and whether they are a polygon's corners."""
        columns = columns_of(text)
        count = len(columns) - 1 - self.scored
        is_box = count == len(BOX)
        if self.counts and count not in self.counts:
            raise FaultError(*self._other_count(len(columns)))
        if not self.counts and not is_box and (count < 6 or count % 2):
            raise FaultError(*self._wrong_count(len(columns)))
        name = self.resolve(columns[0])
        values = numbers_of(self._titles(count), columns[1:])
        score = values[count:]
        if self.counts:
            is_polygon = count == self.kept > len(BOX)
            kept = values[: min(count, self.kept)]
            kept += [0.0] * (self.kept - len(kept))
        else:
            is_polygon, kept = not is_box, values[:count]
            if is_polygon:
                x, y = kept[0::2], kept[1::2]
                kept = [min(x), min(y), max(x), max(y)]
        if is_polygon:
            self.polygons.add(count)
        return name, kept + score, is_polygon

    def _titles(self, count: int) -> Sequence[str]:
        """Return what the numbers of a line of so many coordinates are called."""
        score = ("conf",) if self.scored else ()
        box = TITLES[self.box_format]
        if count == len(BOX):
            return (*box, *score)
        if self.counts and self.kept == len(BOX):
            return (*box, *(f"column {at}" for at in range(6, count + 2)), *score)
        return (*(("x", "y") * (count // 2)), *score)

    def _other_count(self, count: int) -> tuple[str, str]:
        due = [str(n + 1 + self.scored) for n in self.counts]
        message = f"has {count} column{'s' * (count != 1)}, expected {' or '.join(due)}"
        if self.source:
            message += f" by {self.source}"
        if self.scored and str(count + 1) in due:
            return f"{message}: the confidence is missing, as without save_conf", SAVE_CONF
        if self.scored and str(count - 1) in due:
            return f"{message}: the id of a tracker behind the confidence?", "take the id away"
        return message, self.hint

    def _wrong_count(self, count: int) -> tuple[str, str]:
        message = f"has {count} column{'s' * (count != 1)}"
        due = f"write `{' '.join(self.columns)}`"
        polygon = f"`class x1 y1 x2 y2 x3 y3 ...{' conf' * self.scored}`"
        if not self.scored:
            if count == len(self.columns) + 1:
                return f"{message}, one more than a box: a confidence, as detections have?", due
            if count > len(self.columns):
                hint = f"write {polygon}{_of_pose(count - 5)}"
                return f"{message}: a polygon has an even number of coordinates", hint
        elif count == len(self.columns) - 1:
            return f"{message}: the confidence is missing, as without save_conf", SAVE_CONF
        elif count == len(self.columns) + 1:
            message += ": a box, its confidence and the id of a tracker, or a polygon of three "
            return f"{message}corners without confidence", f"take the id away; {due}"
        elif count > len(self.columns):
            message += ": a polygon without confidence, as without save_conf, or with the id of a "
            hint = f"{SAVE_CONF}; or take the id away{_of_pose(count - 6)}"
            return f"{message}tracker behind it", hint
        return f"{message}, expected {len(self.columns)}", f"{due}, or {polygon}"


def _of_pose(count: int) -> str:
    """Return the hint for rows with so many numbers behind a box, which may be keypoints."""
    if count % 3 or count < 6:
        return ""
    return f"; or, if these are keypoints, write `kpt_shape: [{count // 3}, 3]` into data.yaml"
