"""Scalabel, the format of BDD100K: frames with labels, in JSON.

Reference: Scalabel's documentation of its format, and its evaluation of detection
(its module ``to_coco``), which makes COCO annotations of the frames: the corners of a box
are pixels inside it, and a label that is a crowd or ignored is a crowd.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
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
    json_folder,
    json_with_list,
    written_images,
)
from detap.formats.shapes.values import class_name, list_in, located, numbers, object_of, required
from detap.formats.text.folder import Folder
from detap.formats.xywh import to_xywh
from detap.io.problems import FaultError
from detap.tables.detection import Detections, GroundTruth

_SIDES = ("x1", "y1", "x2", "y2")


class Frames(Document):
    """The frames of a file, or of a folder of files.

    The name of an image is the name of its frame without the suffix, after ``videoName`` if there
    is one. Classes are those of ``config``, in its order, else in order of first appearance.
    """

    box_format = "xywh"
    in_file_order = True
    expected = 'expected [{"name": ..., "labels": [{"category": ..., "box2d": {"x1": ..., ...}}]}]'
    score_names = ("score",)
    noted = (
        Note("tags-skipped", "labels without box2d are left out", severity="info"),
        Note("unlisted-categories", "labels of categories that config does not list are left out"),
    )
    _size: Mapping[str, Any] = MappingProxyType({})  # of all frames
    _categories: Collection[str] = ()  # of `config`

    def folders(self) -> list[Folder]:
        """Return the file, or the folder of the files."""
        if os.path.isdir(self.given):
            return [json_folder(self.given, "Scalabel's frames", "frames")]
        return super().folders()

    def images_of(self, content: Any, file: str) -> Iterator[tuple[str, Any]]:
        """Yield the location and record of each frame."""
        if isinstance(content, list):
            yield from located("", content)
            return
        frames = required(object_of(content, self.expected), "frames", list, self.expected)
        if "name" in content:  # BDD100K before 2020: a file for each image
            if len(frames) != 1:
                raise FaultError(f"has {len(frames)} frames under one name", "expected one")
            labels = required(object_of(frames[0]), "objects", list, "expected a list")
            yield "", {**content, "labels": labels}
            return
        config = object_of(content.get("config") or {})
        self._size = object_of(config.get("imageSize") or {})
        self._categories = set(self._leaves(config, "categories"))
        yield from located("frames", frames)

    def _leaves(self, record: dict[str, Any], key: str) -> Iterator[str]:
        """Yield the names of the categories without subcategories, and list them as classes."""
        for category in list_in(record, key):
            name = class_name(object_of(category), "name")
            if category.get("subcategories"):
                yield from self._leaves(category, "subcategories")
            else:
                self.classes[name] = None
                yield name

    def image_of(self, location: str, record: Any, file: str) -> Image:
        """Return the image of a frame."""
        name, video = object_of(record).get("name"), record.get("videoName")
        labels = list_in(record, "labels")
        if video and isinstance(name, str) and not name.startswith(f"{video}/"):
            name = f"{video}/{name}"
        size = object_of(record.get("size") or {**self._size})
        objects = located(f"{location}.labels".lstrip("."), labels)
        attributes = object_of(record.get("attributes") or {})
        return Image(name, objects, size.get("width"), size.get("height"), attributes)

    def item_of(self, record: Any) -> Item | None:
        """Return the box of a label; None without one, or of another class than those listed."""
        box = record.get("box2d")
        if box is None:
            self.counts["tags-skipped"] += 1
            return None
        label = class_name(record, "category")
        if self._categories and label not in self._categories:
            self.counts["unlisted-categories"] += 1
            return None
        if not self.scored and record.get("score") is not None:
            raise FaultError("has a score (detections?)", "use the ground truth")
        x1, y1, x2, y2 = numbers(object_of(box), *_SIDES)
        attributes = object_of(record.get("attributes") or {})
        score = {"score": record.get("score")}
        return Item(label, [x1, y1, x2 - x1 + 1, y2 - y1 + 1], attributes | score)

    def flags_of(self, attributes: Mapping[str, Any]) -> set[str]:
        """Return the flags of a label: ignored is crowd, as in the reference."""
        is_crowd = any(attributes.get(name) is True for name in ("crowd", "ignored"))
        return {"crowd"} if is_crowd and not self.scored else set()


class Scalabel(DocumentFormat):
    """Scalabel's frames, also as BDD100K has them."""

    document = Frames
    has_attributes = True
    boxes = ()
    coordinates = "box2d"
    image_folders = (".", "images")
    written = ("labels.json", "predictions.json")
    lost_flags = ("difficult", "ignore", "group_of")
    writes_unused_classes = True

    def fits_file(self, path: str) -> bool:
        """Return True if a file holds frames."""
        paths = json_paths(path)
        old = {".name", ".frames[].objects"} <= paths
        return old or any(
            {f"{frames}.name", f"{frames}.{key}"} <= paths
            for frames in ("[]", ".frames[]")
            for key in ("labels", "videoName")
        )

    def text(self, content: Content, table: GroundTruth | Detections, notes: list[Note]) -> bytes:
        """Return the file of a table; corners are pixels inside the box."""
        boxes = to_xywh(table.corners, table.box_area)[0]
        last = boxes[:, :2] + boxes[:, 2:] - 1
        read = np.hstack([boxes[:, :2], last - boxes[:, :2] + 1])
        notes += rounded_corners(table, read, "pixels inside the box")
        scores = scores_of(table)
        crowd = table.crowd.tolist() if isinstance(table, GroundTruth) else [False] * len(table)
        labels, values = table.label.tolist(), np.hstack([boxes[:, :2], last]).tolist()

        def label(row: int) -> dict[str, Any]:
            box = dict(zip(_SIDES, map(exact_number, values[row]), strict=True))
            known = {"id": str(row + 1), "category": table.classes[labels[row]], "box2d": box}
            known |= {} if scores is None else {"score": exact_number(scores[row])}
            return known | ({"attributes": {"crowd": True}} if crowd[row] else {})

        frames = []
        for file, size, rows in written_images(content, table):
            sides = {} if size is None else {"size": {"width": size[0], "height": size[1]}}
            frames.append({"name": file, **sides, "labels": [*map(label, rows)]})
        config = {"categories": [{"name": name} for name in table.classes]}
        return json_with_list({"config": config}, "frames", frames)
