"""Responses of Roboflow's hosted models: a JSON file per image.

Reference: Roboflow's documentation of the hosted API: ``{"predictions": [{x, y, width,
height, class, confidence}], "image": {width, height}}``, where x, y is the center in pixels.
"""

import os
from collections.abc import Iterator
from typing import Any, NoReturn

from detap.errors import Note
from detap.formats.by_name.notes import files_skipped, images_without_file
from detap.formats.reading.sniffing import first_files_fit, json_paths
from detap.formats.shapes.document import Document, DocumentFormat, Image, Item, json_folder
from detap.formats.shapes.values import class_name, located, object_of, positive_box, required
from detap.formats.text.folder import Folder
from detap.io.json_text import short_json
from detap.io.paths import Path
from detap.io.problems import FaultError
from detap.io.stream import refuse


class Responses(Document):
    """The responses of a folder, or one; sub-folders are skipped.

    The name of an image is the file name without ``.json``, and without the suffix of an image:
    ``a.json`` or ``a.jpg.json``.
    """

    box_format = "xywh"
    expected = 'expected {"predictions": [{"x": ..., "y": ..., "class": ..., "confidence": ...}]}'
    score_names = ("confidence",)

    def folders(self) -> list[Folder]:
        """Return the folder of the responses."""
        return [json_folder(self.given, "Roboflow's responses", "responses")]

    def images_of(self, content: Any, file: str) -> Iterator[tuple[str, Any]]:
        """Yield the only record of a file."""
        if not isinstance(content, dict) or "predictions" not in content:
            raise FaultError(f"is {short_json(content)}", self.expected)
        yield "", content

    def image_of(self, location: str, record: Any, file: str) -> Image:
        """Return the image of a response."""
        objects = required(record, "predictions", list, "expected a list")
        size = object_of(record.get("image") or {})
        located_objects = located("predictions", objects)
        return Image(self.name, located_objects, size.get("width"), size.get("height"))

    def item_of(self, record: Any) -> Item:
        """Return the box of a prediction."""
        if "points" in record:
            raise FaultError("is a polygon", "use a model that detects boxes")
        label = class_name(record, "class")
        x, y, width, height = positive_box(record)
        box = [x - width / 2, y - height / 2, width, height]
        return Item(label, box, {"confidence": record.get("confidence")})

    def notes(self) -> tuple[Note, ...]:
        """Return notes about the files."""
        images = 0 if self.truth is None else len(self.truth.images)
        without_file = max(0, images - len(self.images))
        return files_skipped(self.skipped, "responses"), images_without_file(without_file)


class Roboflow(DocumentFormat):
    """Detections of Roboflow's hosted models."""

    document = Responses
    boxes = ()
    coordinates = "x, y, width, height"

    def fits(self, path: str) -> bool:
        """Return True if a file, or the first few of a folder, hold predictions of an image."""
        if os.path.isdir(path):
            return first_files_fit(path, self.fits)
        paths = json_paths(path)
        first = {".predictions[].x", ".predictions[].width", ".predictions[].class"}
        is_empty = ".predictions[]" in paths and ".image.width" in paths
        return first <= paths or (is_empty and ".predictions[].image_id" not in paths)

    def read_truth_file(self, path: Path, **options: Any) -> NoReturn:
        """Raise InputError: responses of a model are not ground truth."""
        hint = "use an export of the data set as ground truth"
        refuse(os.fspath(path), "holds detections of a model", hint)
