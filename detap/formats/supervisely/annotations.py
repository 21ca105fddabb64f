"""Read one file of Supervisely: the objects of one image."""

import os
from collections.abc import Iterator
from typing import Any

from detap.formats.shapes.documents import DocumentReader, Image, Item
from detap.formats.shapes.flags import bounds
from detap.formats.shapes.json_values import (
    class_name,
    object_of,
    points_of,
    required,
    value_text,
)
from detap.io.problems import FaultError

_POINTS = {"polygon": 3, "line": 2, "point": 1}


class Annotations(DocumentReader):
    """Reader of Supervisely's files.

    Attributes
    ----------
    names : dict of str to str
        The image of each file; by default the name of the file without ``.json``.
    """

    expected = 'expected {"size": {"height": ..., "width": ...}, "objects": [...]}'

    def __init__(self, *arguments: Any, **how: Any) -> None:
        super().__init__(*arguments, **how)
        self.names: dict[str, str] = {}
        self._name = ""

    def read_data(self, data: bytes, file: str) -> None:
        """Read one file and collect its problems."""
        self._name = self.names.get(file) or os.path.basename(file).removesuffix(".json")
        super().read_data(data, file)

    def images_of(self, content: Any) -> Iterator[tuple[str, Any]]:
        """Yield the record of the image."""
        if not isinstance(content, dict) or not isinstance(content.get("objects"), list):
            raise FaultError("not a Supervisely file", self.expected)
        yield "", content

    def image_of(self, location: str, record: Any) -> Image:
        """Return the image of a file."""
        size = object_of(record.get("size") or {})
        objects = ((f"objects[{n}]", item) for n, item in enumerate(record["objects"]))
        tags = _tags(record)
        return Image(self._name, objects, size.get("width"), size.get("height"), tags)

    def item_of(self, record: Any) -> Item:
        """Return the object of a record."""
        label = class_name(record, "classTitle")
        kind = record.get("geometryType")
        points = required(record, "points", dict, "expected {exterior, interior}")
        if kind not in ("rectangle", *_POINTS):
            message = f"geometryType is {value_text(record, 'geometryType')}"
            raise FaultError(message, "use rectangle or polygon")
        corners = points_of(points.get("exterior"), "points.exterior")
        if kind == "rectangle" and len(corners) != 2:
            raise FaultError(f"has {len(corners)} points as a rectangle", "expected two corners")
        if kind != "rectangle":
            self.refuse_shape(f"is a {kind}, not a box")
            if len(corners) < _POINTS[kind]:
                message = f"has {len(corners)} points as a {kind}"
                raise FaultError(message, f"expected {_POINTS[kind]}")
        return Item(label, bounds(corners), _tags(record))


def _tags(record: dict[str, Any]) -> dict[str, Any]:
    """Return the values of tags by name; True for a tag without value."""
    tags = record.get("tags") or []
    if not isinstance(tags, list):
        raise FaultError(f"tags is {value_text(record, 'tags')}", "expected a list")
    values = {}
    for tag in map(object_of, tags):
        value = tag.get("value")
        values[class_name(tag, "name")] = True if value is None else value
    return values
