"""What a JSON file of LabelMe says: the boxes of one image.

Reference: LabelMe 5 (wkentaro), `label_file.py`; X-AnyLabeling writes the same with scores, with
`difficult` beside `flags`, and rectangles by four corners.
"""

import math
from typing import Any

from detap.errors import InputError
from detap.formats.by_name.problems import Problems
from detap.formats.coco._scan import nesting
from detap.formats.coco.values import check_text
from detap.formats.shapes.flags import BY_ITS_BOUNDS, bounds
from detap.formats.shapes.reader import ShapeReader
from detap.formats.stem_matching import base_name, without_suffix
from detap.io.json_text import HOLDS_CONSTANTS, LongInteger, NotJsonError, spelt, text_of
from detap.io.limits import Limits
from detap.io.problems import FaultError
from detap.io.problems import Problems as FileProblems
from detap.text_input import quote

_POINTS = {"polygon": 3, "linestrip": 2, "line": 2, "points": 1, "point": 1, "mask": 2}
_POINTS |= {"oriented_rectangle": 3, "rotation": 3, "quadrilateral": 4}
_LONGEST_SIDE = 1e9
_NO_SCORE = "detections have scores, as X-AnyLabeling writes them; LabelMe's own files have none"
_SHAPES_DUE = "a JSON file of LabelMe is due, which has a list of shapes"


class Shapes(ShapeReader):
    """Reads one file after the other; boxes are placed by the number of their shape.

    Attributes
    ----------
    other_names : int
        How many files speak of an image of another name.
    """

    other_names = 0

    def read(self, data: bytes, file: str, stem: str) -> None:
        """Read a file; problems are added."""
        before = self.problems.count
        record, constants = parsed(data, file, self.problems, self.limits)
        self.images[stem] = math.nan, math.nan
        if record is None:
            return
        try:
            size = _side(record, "imageWidth"), _side(record, "imageHeight")
            self.images[stem] = size
        except FaultError as fault:
            self.problems.add(file, "", fault.message, fault.hint)
        image = record.get("imagePath")
        if isinstance(image, str):
            self.other_names += without_suffix(base_name(image)) != stem
        for number, shape in enumerate(record["shapes"]):
            try:
                self._take(shape, number)
            except FaultError as fault:
                self.problems.add(file, f"shapes[{number}]", fault.message, fault.hint)
        if constants and self.problems.count == before:
            self.problems.add(file, "", *HOLDS_CONSTANTS)

    def _take(self, shape: Any, number: int) -> None:
        if not isinstance(shape, dict):
            raise FaultError(f"is {spelt(shape)}", "an object is due")
        label = shape.get("label")
        if not isinstance(label, str) or not label.strip():
            raise FaultError(f"label is {_said(shape, 'label')}", "name its class")
        check_text("label", label)
        box = self._box(shape)
        score = _number("score", shape.get("score"), _NO_SCORE) if self.scored else 0.0
        self.add(number, label, box, score, self._flags(shape))

    def _flags(self, shape: dict[str, Any]) -> set[str]:
        flags = shape.get("flags")
        if not isinstance(flags, dict | None):
            raise FaultError(f"flags is {spelt(flags)}", "give true and false by name")
        found = set()
        for name, value in (("difficult", shape.get("difficult")), *(flags or {}).items()):
            if value is None:
                continue
            text = spelt(value) if isinstance(value, bool | int) else str(value)
            try:
                found.add(self.flags.flag_of(name, text))
            except ValueError:
                message = f"flag {quote(name)} is {spelt(value)}"
                raise FaultError(message, "true or false is due") from None
        return found - {""}

    def _box(self, shape: dict[str, Any]) -> list[float]:
        # Files of LabelMe 3 and before have polygons alone, and do not say so.
        kind = shape.get("shape_type") or "polygon"
        points = _points(shape.get("points"))
        if kind == "rectangle":
            if len(points) == 2 or (len(points) == 4 and _upright(points)):
                return bounds(points)
            if len(points) != 4:
                message = f"has {len(points)} points as a rectangle"
                raise FaultError(message, "give two corners, or four")
        elif kind not in (*_POINTS, "circle"):
            raise FaultError(f"shape_type is {spelt(kind)}", "give rectangle, or polygon")
        if self.shapes != "bbox":
            what = "a rectangle that is not upright" if kind == "rectangle" else f"a {kind}"
            raise FaultError(f"is {what}, no box", BY_ITS_BOUNDS)
        due = 2 if kind == "circle" else _POINTS.get(kind, 4)
        if len(points) < due:
            raise FaultError(f"has {len(points)} points as a {kind}", f"{due} are due")
        return _around(points) if kind == "circle" else bounds(points)


def parsed(
    data: bytes, file: str, problems: Problems, limits: Limits
) -> tuple[dict[str, Any] | None, int]:
    """Return what a file of LabelMe holds, and how many NaN and Infinity that is no JSON.

    None stands for what is none of its files, of which a problem has been added.
    """
    own = FileProblems(file, limits.problems)
    record, constants = None, 0
    try:
        record, constants = _json(data, own, limits)
    except InputError as error:
        own.listed = list(error.problems)
    problems.note(*own.listed)
    problems.count += own.count - len(own.listed)
    return (None if own.count else record), constants


def _json(data: bytes, problems: FileProblems, limits: Limits) -> tuple[dict[str, Any] | None, int]:
    text = text_of(data, problems, limits, nesting, _SHAPES_DUE)
    try:
        text.peek()
        value = text.value("")
        text.finish()
    except NotJsonError as error:
        problems.add(*text.fault(error))
        return None, 0
    if not isinstance(value, dict) or not isinstance(value.get("shapes"), list):
        is_coco = isinstance(value, dict) and {"annotations", "images"} <= value.keys()
        what = "is a COCO file" if is_coco else "is no file of LabelMe"
        problems.add("", f"{what}: it has no list of shapes", _SHAPES_DUE)
        return None, 0
    return value, text.constants


def _said(record: dict[str, Any], key: str) -> str:
    return spelt(record[key]) if key in record else "missing"


def _number(name: str, value: Any, hint: str = "give a finite number") -> float:
    if isinstance(value, bool | LongInteger) or not isinstance(value, int | float):
        what = "missing" if value is None else spelt(value)
        raise FaultError(f"{name} is {what}", hint)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise FaultError(f"{name} is {spelt(value)}, no finite number", "use a decimal number")
    return number


def _points(value: Any) -> list[list[float]]:
    if not isinstance(value, list) or not value:
        raise FaultError(f"points is {spelt(value)}", "give [[x, y], [x, y]]")
    for number, point in enumerate(value):
        if not isinstance(point, list) or len(point) != 2:
            raise FaultError(f"points[{number}] is {spelt(point)}", "give [x, y]")
    return [
        [_number(f"points[{number}][{axis}]", side) for axis, side in enumerate(point)]
        for number, point in enumerate(value)
    ]


def _upright(points: list[list[float]]) -> bool:
    """Return whether four points are the corners of a box that stands upright."""
    x1, y1, x2, y2 = bounds(points)
    return {*map(tuple, points)} == {(x1, y1), (x1, y2), (x2, y1), (x2, y2)}


def _around(points: list[list[float]]) -> list[float]:
    """Return the box of a circle, which is given by its centre and a point on it."""
    (x, y), (at_x, at_y) = points[:2]
    radius = math.hypot(at_x - x, at_y - y)
    return [x - radius, y - radius, x + radius, y + radius]


def _side(record: dict[str, Any], key: str) -> float:
    """Return a side of the image in pixels, NaN where it is null or missing."""
    value = record.get(key)
    if value is None:
        return math.nan
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value < _LONGEST_SIDE:
        raise FaultError(f"{key} is {spelt(value)}", "give the side in pixels, or null if unknown")
    return float(value)
