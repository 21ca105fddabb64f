"""Responses of Roboflow's hosted models: a JSON file per image.

Reference: Roboflow's documentation of the hosted API: ``{"predictions": [{x, y, width,
height, class, confidence}], "image": {width, height}}``, where x, y is the center in pixels.
"""

from typing import Any

from detap.formats.reading.sniffing import json_paths
from detap.formats.shapes.document import Image, Item, ModelFormat, OutputOfModel
from detap.formats.shapes.values import class_name, located, object_of, positive_box
from detap.io.problems import FaultError


class Responses(OutputOfModel):
    """The responses of a folder, or one; sub-folders are skipped.

    The name of an image is the file name without ``.json``, and without the suffix of an image:
    ``a.json`` or ``a.jpg.json``.
    """

    box_format = "xywh"
    expected = 'expected {"predictions": [{"x": ..., "y": ..., "class": ..., "confidence": ...}]}'
    objects_key = "predictions"
    score_names = ("confidence",)
    content = "responses"

    def image_of(self, location: str, record: Any, file: str) -> Image:
        """Return the image of a response."""
        size = object_of(record.get("image") or {})
        objects = located("predictions", record["predictions"])
        return Image(self.name, objects, size.get("width"), size.get("height"))

    def item_of(self, record: Any) -> Item:
        """Return the box of a prediction."""
        if "points" in record:
            raise FaultError("is a polygon", "use a model that detects boxes")
        label = class_name(record, "class")
        x, y, width, height = positive_box(record)
        box = [x - width / 2, y - height / 2, width, height]
        return Item(label, box, {"confidence": record.get("confidence")})


class Roboflow(ModelFormat):
    """Detections of Roboflow's hosted models."""

    document = Responses
    boxes = ()
    coordinates = "x, y, width, height"

    def fits_file(self, path: str) -> bool:
        """Return True if a file holds predictions of an image."""
        paths = json_paths(path)
        first = {".predictions[].x", ".predictions[].width", ".predictions[].class"}
        is_empty = ".predictions[]" in paths and ".image.width" in paths
        return first <= paths or (is_empty and ".predictions[].image_id" not in paths)
