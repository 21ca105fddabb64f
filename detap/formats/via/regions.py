"""Read the regions of a VIA file."""

import math
from collections.abc import Iterator
from typing import Any

from detap.formats.shapes.csv_rows import read_csv
from detap.formats.shapes.documents import DocumentReader, Image, Item
from detap.formats.shapes.flags import as_xywh, bounds, rotated_ellipse
from detap.formats.shapes.json_values import finite_number, numbers, object_of, required, value_text
from detap.formats.via.csv_records import records_of
from detap.formats.via.sniff import PROJECT
from detap.io.json_text import short_json
from detap.io.problems import FaultError
from detap.text_input import join_names

_POINTS = {"polygon": 3, "polyline": 2}
_RADII = {"point": (), "circle": ("r",), "ellipse": ("rx", "ry")}


class Regions(DocumentReader):
    """Reader of a VIA file.

    Attributes
    ----------
    class_attribute : str
        The attribute with the class; if empty, the only one.
    """

    box_format = "xywh"
    expected = "expected VIA's annotations in JSON or CSV, or its project"
    class_attribute = ""

    def parse(self, data: bytes, file: str) -> tuple[Any, int] | None:
        """Return the records of the images: a list of location and record."""
        if data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"["):
            read = super().parse(data, file)
            return read and (self._of_json(file, read[0]), read[1])
        table = read_csv(data, file, self.problems, self.limits, self.expected)
        return None if table is None else (records_of(table, file, self.problems), 0)

    def _of_json(self, file: str, content: Any) -> list[tuple[str, Any]]:
        images = content.get(PROJECT, content) if isinstance(content, dict) else content
        if isinstance(images, dict):
            return [(f"{short_json(key)}", record) for key, record in images.items()]
        self.problems.add(
            file, "", f"is {short_json(images)}, not an object of images", self.expected
        )
        return []

    def images_of(self, content: Any) -> Iterator[tuple[str, Any]]:
        """Yield the location and record of each image; find the class attribute."""
        names = sorted({name for _, record in content for name in _attributes(record)})
        if not self.class_attribute and not self.images_only:
            if len(names) > 1:
                message = f"regions have several attributes: {join_names(names)}"
                raise FaultError(message, f"choose the class: --class-attribute {names[0]}")
            self.class_attribute = "".join(names)
        yield from content

    def image_of(self, location: str, record: Any) -> Image:
        """Return the image of a record."""
        regions = required(object_of(record), "regions", dict | list, "expected a list")
        attributes = object_of(record.get("file_attributes") or {})
        if isinstance(regions, dict) and location.startswith("line "):
            return Image(record.get("filename"), regions.items(), attributes=attributes)
        items = regions.items() if isinstance(regions, dict) else enumerate(regions)
        objects = ((f"{location}.regions[{n}]", item) for n, item in items)
        return Image(record.get("filename"), objects, attributes=attributes)

    def item_of(self, record: Any) -> Item:
        """Return the object of a region."""
        attributes = required(record, "region_attributes", dict, "expected an object")
        shape = required(record, "shape_attributes", dict, "expected an object")
        return Item(self._label(attributes), self._box(shape), attributes)

    def _label(self, attributes: dict[str, Any]) -> str:
        name = self.class_attribute
        if not name:
            raise FaultError("has no region attribute", "set one that names its class")
        value = attributes.get(name)
        if isinstance(value, dict):  # a checkbox
            value = [option for option, is_set in value.items() if is_set is True]
            if len(value) != 1:
                message = f"{name} has {len(value)} options set"
                raise FaultError(message, "set exactly one")
            value = value[0]
        if not isinstance(value, str) or not value.strip():
            message = f"{name} is {value_text(attributes, name)}"
            raise FaultError(message, "write the name of its class")
        return value

    def _box(self, shape: dict[str, Any]) -> list[float]:
        kind = shape.get("name")
        if kind == "rect":
            return [*numbers(shape, "x", "y", "width", "height")]
        if kind not in (*_POINTS, *_RADII):
            raise FaultError(f"shape is {value_text(shape, 'name')}", "use rect")
        self.refuse_shape(f"is a {kind}, not a box")
        return as_xywh(_bounds(kind, shape))


def _attributes(record: Any) -> Iterator[str]:
    """Yield the names of attributes of an image's regions, unchecked."""
    regions = record.get("regions") if isinstance(record, dict) else None
    items = [*regions.values()] if isinstance(regions, dict) else regions
    for region in items if isinstance(items, list) else ():
        attributes = region.get("region_attributes") if isinstance(region, dict) else None
        yield from attributes if isinstance(attributes, dict) else ()


def _bounds(kind: str, shape: dict[str, Any]) -> list[float]:
    if kind in _POINTS:
        across, down = (required(shape, f"all_points_{k}", list, "expected a list") for k in "xy")
        if len(across) != len(down) or len(across) < _POINTS[kind]:
            message = f"has {len(across)} x and {len(down)} y of points"
            raise FaultError(message, f"expected at least {_POINTS[kind]} of each")
        points = [
            [finite_number(f"all_points[{n}]", value) for value in point]
            for n, point in enumerate(zip(across, down, strict=True))
        ]
        return bounds(points)
    x, y = numbers(shape, "cx", "cy")
    radii = dict(zip(_RADII[kind], numbers(shape, *_RADII[kind]), strict=True))
    for name, radius in radii.items():
        if radius < 0:
            raise FaultError(f"{name} {radius:g} is negative", "use a positive radius")
    rx, ry = ([*radii.values()] * 2 or [0.0, 0.0])[:2]
    angle = finite_number("theta", shape.get("theta", 0))  # in radians
    return rotated_ellipse(x, y, 2 * rx, 2 * ry, math.degrees(angle))
