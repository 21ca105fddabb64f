"""Amazon's augmented manifest of SageMaker Ground Truth and Rekognition: JSON Lines.

Reference: Amazon's documentation, "Bounding box job output" and "Object localization in manifest
files".
"""

import posixpath
from collections.abc import Iterator
from typing import Any

from detap.errors import Note
from detap.formats.reading.sniffing import json_paths
from detap.formats.shapes.document import DocumentFormat, Image, Item, LinesDocument
from detap.formats.shapes.values import class_name, numbers, object_of, required, value_text
from detap.io.problems import FaultError
from detap.text_input import join_names, quote

_METADATA = "-metadata"
_TYPE = "groundtruth/object-detection"


class Manifest(LinesDocument):
    """The images of a manifest; the name of an image is the last part of ``source-ref``."""

    box_format = "xywh"
    expected = 'expected {"source-ref": ..., NAME: {"annotations": [...]}, ...} per line'
    score_names = ("confidence",)
    _classes: dict[str, Any]  # of the image that is read, by number

    def __init__(self, *arguments: Any, label_attribute: str | None = None, **how: Any) -> None:
        super().__init__(*arguments, **how)
        self.label_attribute = label_attribute or ""  # by default the only one

    def images_of(self, content: Any, file: str) -> Iterator[tuple[str, Any]]:
        """Yield the location and record of each labeled image; find the attribute."""
        names = sorted({name for _, record in content for name in _label_attributes(record)})
        chosen = [self.label_attribute] if self.label_attribute else names
        if len(chosen) != 1 or chosen[0] not in names:
            message = f"label attributes of type {_TYPE}: {join_names(names) or 'none'}"
            hint = "choose one with --label-attribute" if names else self.expected
            raise FaultError(message, hint)
        (self.label_attribute,) = chosen
        for location, record in content:
            if self.label_attribute in object_of(record):
                yield location, record
            else:
                self.counts["unlabeled"] += 1

    def image_of(self, location: str, record: Any, file: str) -> Image:
        """Return the image of a line."""
        name = self.label_attribute
        labels = required(record, name, dict, self.expected)
        metadata = required(record, name + _METADATA, dict, self.expected)
        boxes = required(labels, "annotations", list, "expected a list of boxes")
        metadata = {"objects": [{}] * len(boxes), **metadata}
        further = required(metadata, "objects", list, "expected a list")
        if len(further) != len(boxes):
            message = f"has {len(boxes)} annotations and {len(further)} objects in its metadata"
            raise FaultError(message, "write one object per annotation")
        self._classes = object_of(metadata.get("class-map") or {})
        sizes = labels.get("image_size") or [{}]
        size = object_of(sizes[0] if isinstance(sizes, list) else sizes)
        where = f"{location}: {name}.annotations"
        objects = (
            (f"{where}[{number}]", {**object_of(more), **object_of(box)})
            for number, (box, more) in enumerate(zip(boxes, further, strict=True))
        )
        uri = record.get("source-ref")
        image = posixpath.basename(uri) if isinstance(uri, str) else uri
        return Image(image, objects, size.get("width"), size.get("height"))

    def item_of(self, record: Any) -> Item:
        """Return the object of an annotation."""
        number = str(record.get("class_id"))
        if number not in self._classes:
            known = join_names(self._classes) or "none"
            message = f"class_id is {value_text(record, 'class_id')}"
            raise FaultError(message, f"expected one of class-map: {known}")
        box = [*numbers(record, "left", "top", "width", "height")]
        score = {"confidence": record.get("confidence")} if self.scored else {}
        return Item(class_name(self._classes, number), box, score)

    def notes(self) -> tuple[Note, ...]:
        """Return notes about the lines."""
        message = f"lines without {quote(self.label_attribute)} are left out"
        return (Note("images-not-labeled", message, self.counts["unlabeled"]),)


def _label_attributes(record: Any) -> Iterator[str]:
    """Yield the keys of a line whose metadata is of object detection."""
    for key in record if isinstance(record, dict) else ():
        name = key.removesuffix(_METADATA)
        metadata = record[key]
        if name != key and isinstance(metadata, dict) and metadata.get("type") == _TYPE:
            yield name


class SageMaker(DocumentFormat):
    """A manifest of boxes; confidences are the scores of detections."""

    document = Manifest
    boxes = ("xywh",)
    coordinates = "left, top, width, height"

    def fits(self, path: str) -> bool:
        """Return True if the first line names an image by ``source-ref``."""
        return ".source-ref" in json_paths(path)
