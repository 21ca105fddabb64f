"""Output of inference tools: darknet, MMDetection, Ultralytics, transformers, torchvision.

References: darknet ``-out result.json``, MMDetection ``DetInferencer``, Ultralytics ``to_json``,
the object-detection pipeline of transformers, and torchvision's ``{boxes, labels, scores}``.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from detap.errors import InputError, Note, Problem
from detap.formats.by_name.objects import Objects
from detap.formats.coco.id_mapping import image_indices
from detap.formats.image_sizes import sizes_of
from detap.formats.reading.sniffing import json_paths
from detap.formats.shapes.document import Image, Item, ModelFormat, OutputOfModel
from detap.formats.shapes.values import (
    class_name,
    json_lines,
    list_of_numbers,
    located,
    numbers,
    object_of,
    required,
)
from detap.io.json_text import short_json
from detap.io.problems import FaultError
from detap.tables.detection import Name, encode_boxes
from detap.text_input import join_names

_IMAGES = ("image_id", "image", "filename")  # keys of an image's name
_CLASSES = ("name", "label", "category_id", "class_id", "class")
_CORNERS = (("x1", "y1", "x2", "y2"), ("xmin", "ymin", "xmax", "ymax"))
_LISTS = ("labels", "scores")
_LINES = (".jsonl", ".jsonl.gz")
_IMAGE = re.compile(r"|\[\]|\.[^\[\]]+")
"""Path of the lists of an image: of the file, an item of a list, or a member of an object."""
_DECIMALS = 6  # darknet writes as many of fractions


class Predictions(OutputOfModel):
    """The predictions of a file, or of a folder with a file an image.

    A class may be a name, an id of the ground truth (torchvision), or else a position in its
    classes.
    """

    expected = "expected the JSON of darknet, MMDetection, Ultralytics, transformers or torchvision"
    content = "predictions"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.known: dict[Name, str] = {}  # classes of the ground truth by id
        if self.truth is not None:
            self.known = dict(zip(self.truth.class_ids, self.truth.classes, strict=True))
        self.by_position = 0  # detections whose class is a position in the ground truth's
        self.centered: list[int] = []  # rows of center, width and height, relative to the image
        self.may_be_relative = False  # if all boxes are

    def parse(self, data: bytes) -> Any:
        """Return the location and record of each image."""
        if self.given.lower().endswith(_LINES):
            records, self.constants = json_lines(data, self.problems, self.limits, self.expected)
            return records
        content = super().parse(data)
        records = content if isinstance(content, list) else [content]
        if not all(isinstance(record, dict) for record in records):
            raise FaultError(f"is {short_json(content)}", self.expected)
        if isinstance(content, list) and all("box" in record for record in records):
            return [("", {"": content})]  # Ultralytics, and the pipeline without image
        if isinstance(content, list):
            return [*located("", content)]
        if "bboxes" in content or _LISTS[0] in content:
            return [("", content)]
        return [
            (short_json(name), {**object_of(record), "image_id": name})
            for name, record in content.items()
        ]

    def image_of(self, location: str, record: Any, file: str) -> Image:
        """Return the image of a record."""
        name = next((record[key] for key in _IMAGES if key in object_of(record)), self.name)
        key = next((key for key in ("objects", "predictions", "") if key in record), None)
        if key is None:
            objects = self._columns(location, record)
        else:
            items = required(record, key, list, "expected a list")
            objects = located(_within(location, key), items)
        return Image(str(name) if type(name) is int else name, objects)

    def _columns(self, location: str, record: Any) -> Iterator[tuple[str, Any]]:
        """Return the location and object of each detection of lists."""
        keys = ("bboxes" if "bboxes" in record else "boxes", *_LISTS)
        lists = [required(record, key, list, self.expected) for key in keys]
        if len({*map(len, lists)}) > 1:
            counts = ", ".join(
                f"{len(values)} {key}" for key, values in zip(keys, lists, strict=True)
            )
            raise FaultError(f"has {counts}", "write one of each per detection")
        label = "category_id" if "image_id" in record else "class"
        records = (
            dict(zip(("box", label, "score"), row, strict=True)) for row in zip(*lists, strict=True)
        )
        return located(_within(location, keys[0]), records)

    def item_of(self, record: Any) -> Item:
        """Return the box of a prediction."""
        score = record.get("score", record.get("confidence"))
        return Item(self._class(record), self._box(record), {"score": score})

    def _box(self, record: Any) -> list[float]:
        if "relative_coordinates" in record:
            center = object_of(record["relative_coordinates"])
            self.centered.append(len(self))
            return [*numbers(center, "center_x", "center_y", "width", "height")]
        box = record.get("box")
        if isinstance(box, list) and len(box) == 4:
            return list_of_numbers(record, "box")
        names = next((names for names in _CORNERS if isinstance(box, dict) and names[0] in box), ())
        if not names:
            raise FaultError(f"box is {short_json(box)}", "expected x1, y1, x2, y2")
        if "x3" in box:
            raise FaultError("box has four corners", "use a model that detects upright boxes")
        self.may_be_relative |= names is _CORNERS[0]
        return [*numbers(box, *names)]

    def _class(self, record: Any) -> str:
        key = next((key for key in _CLASSES if record.get(key) not in (None, "")), "class")
        number = record.get(key)
        if isinstance(number, str):
            return class_name(record, key)
        if type(number) is not int:
            raise FaultError(f"class is {short_json(number)}", "write its name or number")
        if self.class_names.names or self.truth is None:
            return self.class_names.resolve(str(number))
        if str(number) in self.known:
            return self.known[str(number)]
        if key == "category_id":
            if number not in self.known and any(isinstance(name, str) for name in self.known):
                message = f"class is {number}, but the ground truth has class names"
                raise FaultError(message, "pass --dt-class-names FILE")
            return self.known.get(number, str(number))
        if not 0 <= number < len(self.truth.classes):
            message = f"class {number} is not one of the {len(self.truth.classes)} classes"
            raise FaultError(f"{message} of the ground truth", "pass --dt-class-names FILE")
        self.by_position += 1
        return self.truth.classes[number]

    # --- tables

    def objects(self) -> Objects:
        """Return all boxes, in pixels."""
        objects = super().objects()
        centered = np.array([row for row in self.centered if row < len(self)], np.intp)
        all_relative = self.may_be_relative and len(self) and objects.boxes.max() <= 1
        rows = np.arange(len(self)) if all_relative else centered
        if len(rows) and self.truth is not None:
            sizes = sizes_of(objects.images, self.size_table)
            if self.truth.image_sizes is not None:
                known = image_indices(self.truth, objects.images, {})[0]
                index = np.array([known.get(name, -1) for name in objects.images])
                # An image that the ground truth lacks is left out.
                of_truth = np.where(index[:, None] < 0, 1.0, self.truth.image_sizes[index])
                sizes = np.where(np.isnan(sizes), of_truth, sizes)
            sizes = sizes[objects.image[rows]]
            if np.isnan(sizes).any():
                unknown = objects.image[rows[np.isnan(sizes).any(axis=1)]]
                names = join_names(objects.images[image] for image in unknown.tolist())
                message = f"boxes are relative to images of unknown size: {names}"
                raise InputError(Problem(self.path, "", message, "pass --image-sizes FILE"))
            objects.boxes[rows] *= np.hstack([sizes, sizes])
        # To corners, but with the areas of width and height.
        boxes = objects.boxes
        boxes[centered, :2] -= boxes[centered, 2:] / 2
        # Divided and multiplied, pixels differ in the last bits, and an IoU may be a threshold.
        corners, areas = encode_boxes(np.round(boxes[centered], _DECIMALS), "xywh")
        boxes[centered] = corners
        box_area = encode_boxes(boxes, "xyxy")[1]
        box_area[centered] = areas
        return objects._replace(box_area=box_area)

    def matched(self, images: Sequence[Name], known: Sequence[Name]) -> tuple[Name, ...]:
        """Replace names, file stems and numbers of images by the names in the ground truth."""
        assert self.truth is not None
        index = image_indices(self.truth, images, {})[0]
        return tuple(known[index[name]] if name in index else name for name in images)

    def notes(self) -> tuple[Note, ...]:
        """Return notes about files, images and classes."""
        positions = "class numbers are positions, from 0, in the classes of the ground truth"
        return (
            *super().notes(),
            Note("classes-by-position", positions, self.by_position, severity="info"),
        )


def _within(location: str, key: str) -> str:
    """Return the location of a list of an image."""
    between = ": " if location.startswith("line") else "."
    return between.join(filter(None, (location, key)))


class InferenceOutput(ModelFormat):
    """Detections as inference tools write them."""

    document = Predictions
    same_names = True
    coordinates = "x1, y1, x2, y2"

    def fits_file(self, path: str) -> bool:
        """Return True if a file has predictions."""
        paths = json_paths(path)
        if path.lower().endswith(_LINES):
            return {".image", ".predictions[]"} <= paths
        images = {name.rpartition(".")[0] for name in paths if name.endswith(("s[]", "s[][]"))}
        return (
            "[].objects[].relative_coordinates" in paths
            or {"[].frame_id", "[].objects[]"} <= paths
            or not paths.isdisjoint(("[].box.x1", "[].box.xmin", "[].predictions[].box"))
            or any(
                f"{image}.boxes[][]" in paths
                or sum(f"{image}.{name}[]" in paths for name in ("boxes", "bboxes", *_LISTS)) > 1
                for image in filter(_IMAGE.fullmatch, images)
            )
        )
