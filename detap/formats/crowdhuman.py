"""CrowdHuman's odgt: a person set with the full, visible and head box of each person.

Reference: CrowdHuman's download page for the format; `lib/evaluate/APMRToolkits` of
Purkialo/CrowdDet, which ignores other tags than person and clips boxes to images of known size.
"""

from collections.abc import Mapping
from typing import Any

from detap.formats.reading.sniffing import json_paths
from detap.formats.shapes.document import DocumentFormat, Image, Item, LinesDocument
from detap.formats.shapes.values import four_numbers, located, object_of, required, side_of
from detap.io.problems import FaultError

BOXES = {"full": "fbox", "visible": "vbox", "head": "hbox"}
"""Keys of the boxes by the value of ``--box``."""

_PERSON = "person"


class People(LinesDocument):
    """The images of a file; the name of an image is its ``ID``."""

    box_format = "xywh"
    expected = 'expected {"ID": ..., "gtboxes": [{"tag": "person", "fbox": [x, y, w, h]}]} per line'
    score_names = ("score",)
    _size: tuple[float, float] | None = None  # of the image that is read

    def __init__(self, *arguments: Any, box: str = "full", **how: Any) -> None:
        super().__init__(*arguments, **how)
        self.box = box  # of each person, one of `BOXES`

    def image_of(self, location: str, record: Any, file: str) -> Image:
        """Return the image of a line."""
        width, height = object_of(record).get("width"), record.get("height")
        known = width is not None and height is not None
        self._size = (side_of("width", width), side_of("height", height)) if known else None
        key, other = ("dtboxes", "gtboxes") if self.scored else ("gtboxes", "dtboxes")
        if key not in record and other in record:
            kind = "ground truth" if self.scored else "detections"
            raise FaultError(f"has {other} ({kind}?)", f"expected {key}")
        people = located(f"{location}: {key}", required(record, key, list, "expected a list"))
        name = record.get("ID")
        return Image(name, people, width, height, stem=name, file=f"{name}.jpg")

    def item_of(self, record: Any) -> Item:
        """Return the box of a person."""
        key = "box" if self.scored else BOXES[self.box]
        return Item(_PERSON, self._clipped(four_numbers(record, key)), record)

    def _clipped(self, box: list[float]) -> list[float]:
        """Return the part of a box in its image, as the reference computes it."""
        if self._size is None or min(box[2:]) < 0:
            return box
        x1, y1, x2, y2 = box[0], box[1], box[0] + box[2], box[1] + box[3]
        width, height = self._size
        left, top = min(max(x1, 0.0), width - 1), min(max(y1, 0.0), height - 1)
        right, bottom = max(min(x2, width), 0.0), max(min(y2, height), 0.0)
        if (left, top, right, bottom) == (x1, y1, x2, y2):
            return box
        return [left, top, right - left, bottom - top]

    def flags_of(self, attributes: Mapping[str, Any]) -> set[str]:
        """Return {"ignore"} for an ignored ground truth."""
        if self.scored:
            return set()
        further = [object_of(attributes.get("extra") or {})]
        if self.box == "head":
            further.append(object_of(attributes.get("head_attr") or {}))
        ignored = any(values.get("ignore") for values in further)
        return {"ignore"} if ignored or attributes.get("tag") != _PERSON else set()


class CrowdHuman(DocumentFormat):
    """CrowdHuman's ground truth and results."""

    document = People
    protocol = "crowdhuman"
    boxes = ("xywh",)
    coordinates = "x, y, width, height"
    image_folders = ("Images", "images", ".")

    def fits(self, path: str) -> bool:
        """Return True if a file has CrowdHuman's keys."""
        return not json_paths(path).isdisjoint({".gtboxes", ".dtboxes"})
