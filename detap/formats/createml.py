"""CreateML's JSON.

Reference: Apple's documentation, "Building an object detector data source", with the default
anchor, the center of the box, in pixels; Roboflow exports the same.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from detap.errors import Note
from detap.formats.content import Content, exact_number, rounded_corners, scores_of
from detap.formats.reading.sniffing import json_paths
from detap.formats.shapes.document import (
    Document,
    DocumentFormat,
    Image,
    Item,
    exact_xywh,
    json_list,
    written_images,
)
from detap.formats.shapes.values import class_name, located, numbers, object_of, required
from detap.formats.xywh import to_xywh
from detap.io.json_text import short_json
from detap.io.problems import FaultError
from detap.tables.detection import Detections, GroundTruth

_COORDINATES = "write {x, y, width, height}, where x, y is the center"


class Annotations(Document):
    """A list of images; the name of an image is ``image`` without the suffix."""

    box_format = "xywh"
    expected = 'expected [{"image": ..., "annotations": [{"label": ..., "coordinates": {...}}]}]'
    score_names = ("confidence",)

    def images_of(self, content: Any, file: str) -> Iterator[tuple[str, Any]]:
        """Yield the location and record of each image."""
        if not isinstance(content, list):
            raise FaultError(f"is {short_json(content)}, not a list of images", self.expected)
        yield from located("", content)

    def image_of(self, location: str, record: Any, file: str) -> Image:
        """Return the image of a record, whose size is unknown."""
        items = required(object_of(record), "annotations", list, "expected a list")
        return Image(record.get("image"), located(f"{location}.annotations", items))

    def item_of(self, record: Any) -> Item:
        """Return the object of an annotation."""
        label = class_name(record, "label")
        if not self.scored and "confidence" in record:
            raise FaultError("has a confidence (detections?)", "use the ground truth")
        coordinates = required(record, "coordinates", dict, _COORDINATES)
        x, y, width, height = numbers(coordinates, "x", "y", "width", "height")
        box = [x - width / 2, y - height / 2, width, height]
        return Item(label, box, record if self.scored else {})


class CreateMl(DocumentFormat):
    """CreateML's JSON; detections may have a ``confidence``."""

    document = Annotations
    boxes = ()
    coordinates = "x, y, width, height"
    image_folders = (".", "images")

    def fits(self, path: str) -> bool:
        """Return True if a file is a list of images with annotations."""
        paths = json_paths(path)
        by_name = "[].image" in paths and "[].image[]" not in paths
        return "[].annotations[]" in paths and (by_name or "[].annotations[].coordinates" in paths)

    def text(self, content: Content, table: GroundTruth | Detections, notes: list[Note]) -> bytes:
        """Return the file of a table."""
        boxes = to_xywh(table.corners, table.box_area)[0]
        boxes[:, :2] += boxes[:, 2:] / 2
        read = np.hstack([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, 2:]])
        notes += rounded_corners(table, read, "center, width, height")
        scores = scores_of(table)
        labels, values = table.label.tolist(), boxes.tolist()

        def annotation(row: int) -> dict[str, Any]:
            score = {} if scores is None else {"confidence": exact_number(scores[row])}
            label = table.classes[labels[row]]
            return {"label": label, "coordinates": exact_xywh(values[row]), **score}

        return json_list(
            {"image": file, "annotations": [*map(annotation, rows)]}
            for file, _, rows in written_images(content, table)
        )
