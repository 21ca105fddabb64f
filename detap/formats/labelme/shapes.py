"""Read one LabelMe file: the boxes of one image.

Reference: LabelMe 5 (wkentaro), `label_file.py`; X-AnyLabeling writes the same with scores, with
`difficult` next to `flags`, and rectangles by four corners.
"""

import math
from typing import Any

from detap.formats.by_name.problems import Problems
from detap.formats.shapes.flags import BBOX_HINT, bounds
from detap.formats.shapes.json_values import (
    class_name,
    finite_number,
    json_value,
    object_of,
    points_of,
    side_of,
)
from detap.formats.shapes.reader import ShapeReader
from detap.formats.stem_matching import base_name, without_suffix
from detap.io.json_text import HOLDS_CONSTANTS, short_json
from detap.io.limits import Limits
from detap.io.problems import FaultError
from detap.text_input import quote

_POINTS = {"polygon": 3, "linestrip": 2, "line": 2, "points": 1, "point": 1, "mask": 2}
_POINTS |= {"oriented_rectangle": 3, "rotation": 3, "quadrilateral": 4}
_ROTATED = ("rectangle", "oriented_rectangle", "rotation", "quadrilateral")
"""Types whose four points are the corners of a rotated box, in order around."""
_NO_SCORE = "detections need scores, as X-AnyLabeling writes them; LabelMe writes none"
_EXPECTED_FILE = "expected a LabelMe file with a list of shapes"


class Shapes(ShapeReader):
    """Reader of LabelMe files; the location of a box is the index of its shape.

    Attributes
    ----------
    other_names : int
        Number of files whose ``imagePath`` has another stem.
    """

    other_names = 0

    def read(self, data: bytes, file: str, stem: str) -> None:
        """Read one file and collect its problems."""
        before = self.problems.count
        record, constants = parsed(data, file, self.problems, self.limits)
        self.images[stem] = math.nan, math.nan
        if record is None:
            return
        try:
            width, height = (side_of(k, record.get(k)) for k in ("imageWidth", "imageHeight"))
            self.images[stem] = width, height
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
        label = class_name(object_of(shape), "label")
        box, corners = self._box(shape)
        score = finite_number("score", shape.get("score"), _NO_SCORE) if self.scored else 0.0
        self.add(number, label, box, score, self._flags(shape), corners=corners)

    def _flags(self, shape: dict[str, Any]) -> set[str]:
        flags = shape.get("flags")
        if not isinstance(flags, dict | None):
            raise FaultError(
                f"flags is {short_json(flags)}", "write an object of names with true or false"
            )
        set_flags = set()
        for name, value in (("difficult", shape.get("difficult")), *(flags or {}).items()):
            if value is None:
                continue
            try:
                set_flags.add(self.flags.flag_of(name, str(value)))
            except ValueError:
                message = f"flag {quote(name)} is {short_json(value)}"
                raise FaultError(message, "expected true or false") from None
        return set_flags - {""}

    def _box(self, shape: dict[str, Any]) -> tuple[list[float], list[list[float]] | None]:
        """Return the bounding box of a shape, and the corners if it is a rotated box."""
        # LabelMe 3 and before wrote only polygons, without a type.
        kind = shape.get("shape_type") or "polygon"
        points = points_of(shape.get("points"))
        if kind == "rectangle":
            if len(points) == 2 or (len(points) == 4 and _upright(points)):
                return bounds(points), None
            if len(points) != 4:
                message = f"has {len(points)} points as a rectangle"
                raise FaultError(message, "expected two corners or four")
        elif kind not in (*_POINTS, "circle"):
            raise FaultError(f"shape_type is {short_json(kind)}", "use rectangle or polygon")
        if kind in _ROTATED and len(points) == 4:
            return bounds(points), points
        if self.shapes != "bbox":
            if kind in _ROTATED:
                raise FaultError(f"has {len(points)} points as {kind}", "expected four corners")
            raise FaultError(f"is a {kind}, not a box", BBOX_HINT)
        minimum = 2 if kind == "circle" else _POINTS.get(kind, 4)
        if len(points) < minimum:
            raise FaultError(f"has {len(points)} points as a {kind}", f"expected {minimum}")
        return _around(points) if kind == "circle" else bounds(points), None


def parsed(
    data: bytes, file: str, problems: Problems, limits: Limits
) -> tuple[dict[str, Any] | None, int]:
    """Return the content of a LabelMe file, and its number of NaN and Infinity.

    The content is None after collecting a problem.
    """
    read = json_value(data, file, problems, limits, _EXPECTED_FILE)
    if read is None:
        return None, 0
    value, constants = read
    if not isinstance(value, dict) or not isinstance(value.get("shapes"), list):
        is_coco = isinstance(value, dict) and {"annotations", "images"} <= value.keys()
        message = "is a COCO file" if is_coco else "not a LabelMe file"
        problems.add(file, "", message, _EXPECTED_FILE)
        return None, 0
    return value, constants


def _upright(points: list[list[float]]) -> bool:
    """Return True if four points are the corners of an axis-aligned box."""
    x1, y1, x2, y2 = bounds(points)
    return {*map(tuple, points)} == {(x1, y1), (x1, y2), (x2, y1), (x2, y2)}


def _around(points: list[list[float]]) -> list[float]:
    """Return the box around a circle, given by its center and a point on it."""
    (x, y), (at_x, at_y) = points[:2]
    radius = math.hypot(at_x - x, at_y - y)
    return [x - radius, y - radius, x + radius, y + radius]
