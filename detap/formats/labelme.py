"""LabelMe: a JSON file per image.

Reference: LabelMe 5 (wkentaro), `label_file.py`; X-AnyLabeling writes the same with scores, with
`difficult` next to `flags`, and rectangles by four corners.
"""

import math
import os
import posixpath
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from detap.errors import Note
from detap.formats.image_folders import ImageFolder, folders_at
from detap.formats.reading.sniffing import head
from detap.formats.shapes.document import Box, Document, DocumentFormat, Image, Item, json_folder
from detap.formats.shapes.values import (
    bounds,
    check_points,
    class_name,
    located,
    points_of,
    points_text,
    required,
    side_of,
)
from detap.formats.stem_matching import base_name, without_suffix
from detap.formats.text.folder import Folder, without_copies
from detap.io.json_text import short_json
from detap.io.problems import FaultError
from detap.tables.detection import GroundTruth

_POINTS = {"polygon": 3, "linestrip": 2, "line": 2, "points": 1, "point": 1, "mask": 2}
_POINTS |= {"oriented_rectangle": 3, "rotation": 3, "quadrilateral": 4}
_ROTATED = ("rectangle", "oriented_rectangle", "rotation", "quadrilateral")
"""Types whose four points are the corners of a rotated box, in order around."""
_OTHER_NAME = "imagePath differs from the file name; the file name is used"
_FILES = 3  # whose content is read to detect the format
_FOLDERS, _ENTRIES = 32, 256
_TAIL = 1024


class Shapes(Document):
    """The files of a folder with its sub-folders, or one file.

    The name of an image is its JSON's file name without the suffix, even if ``imagePath`` differs;
    two of the same name have their folders. A rectangle has two corners, in any order, or four.
    The flag ``difficult`` of a shape makes it difficult. ``imageData`` is ignored.
    """

    expected = "expected a LabelMe file with a list of shapes"
    objects_key = "shapes"
    score_names = ("score",)
    missing = "shapes in its {} JSON files"
    noted = (Note("image-path-of-other-name", _OTHER_NAME, severity="info"),)

    def __init__(self, *arguments: Any, subfolders: str = "read", **how: Any) -> None:
        if not how.get("scored"):
            how["attribute_flags"] = f"difficult,{how.get('attribute_flags') or ''}"
        super().__init__(*arguments, **how)
        self.nested = subfolders == "read"
        self.image_paths: dict[str, str] = {}

    def folders(self) -> list[Folder]:
        """Return the folder of the JSON files."""
        folder = json_folder(self.given, "LabelMe's files", "LabelMe files", nested=self.nested)
        return [folder if self.images_only else without_copies(folder)]

    def image_of(self, location: str, record: Any, file: str) -> Image:
        """Return the image of a file."""
        stem, path, image_file = self.name, record.get("imagePath"), ""
        for side in ("imageWidth", "imageHeight"):
            side_of(side, record.get(side))
        if isinstance(path, str):
            is_other = without_suffix(base_name(path)) != stem
            self.counts["image-path-of-other-name"] += is_other
            image_file = f"{stem}{os.path.splitext(base_name(path))[1]}"
            folder = os.path.dirname(os.path.relpath(file, self.given))
            joined = posixpath.join(folder, path.replace("\\", "/").lstrip("/"))
            inside = posixpath.normpath(joined).removeprefix("../")
            self.image_paths[stem] = posixpath.normpath("/" + inside).lstrip("/")
        flags = record.get("flags")
        attributes = {key: record[key] for key in record.keys() - {"shapes", "imageData"}}
        attributes |= flags if isinstance(flags, dict) else {}
        shapes = located("shapes", record["shapes"])
        size = record.get("imageWidth"), record.get("imageHeight")
        return Image(stem, shapes, *size, attributes, stem, image_file)

    def item_of(self, record: Any) -> Item:
        """Return the object of a shape."""
        label = class_name(record, "label")
        return Item(label, self._box(record), record)

    def flags_of(self, attributes: Mapping[str, Any]) -> set[str]:
        """Return the flags of a shape."""
        given = {"flags": None, "difficult": None, **attributes}
        hint = "write an object of names with true or false"
        flags = required(given, "flags", dict | None, hint) or {}
        difficult = super().flags_of({"difficult": given["difficult"]})
        return difficult | super().flags_of(flags)

    def _box(self, shape: dict[str, Any]) -> Box:
        """Return the box or the points of a shape."""
        # LabelMe 3 and before wrote only polygons, without a type.
        kind = shape.get("shape_type") or "polygon"
        points = points_of(shape.get("points"))
        if kind == "rectangle":
            x1, y1, x2, y2 = bounds(points)
            upright = {*map(tuple, points)} == {(x1, y1), (x1, y2), (x2, y1), (x2, y2)}
            if len(points) == 2 or (len(points) == 4 and upright):
                return [x1, y1, x2, y2]
            if len(points) != 4:
                message = f"has {points_text(points)} as a rectangle"
                raise FaultError(message, "expected two corners or four")
        elif kind not in (*_POINTS, "circle"):
            raise FaultError(f"shape_type is {short_json(kind)}", "use rectangle or polygon")
        if kind in _ROTATED and len(points) == 4:
            return points
        if kind in _ROTATED and self.shapes != "bbox":
            raise FaultError(f"has {points_text(points)} as {kind}", "expected four corners")
        self.refuse_shape(kind)
        check_points(points, kind, 2 if kind == "circle" else _POINTS.get(kind, 4))
        if kind != "circle":
            return points
        (x, y), (at_x, at_y) = points[:2]  # the center and a point of the circle
        radius = math.hypot(at_x - x, at_y - y)
        return [x - radius, y - radius, x + radius, y + radius]


class LabelMe(DocumentFormat):
    """LabelMe's JSON files; X-AnyLabeling writes a ``score`` for shapes that it detects."""

    document = Shapes
    coordinates = "points"

    def fits(self, path: str) -> bool:
        """Return True if a JSON file, or the first few in or below a folder, have LabelMe's keys.

        The keys are near the ends of a file: the image itself may be between them.
        """
        try:
            if os.path.isdir(path):
                return {self.fits(name) for name in islice(_files(path), _FILES)} == {True}
            data = head(path) if path.lower().endswith(".json") else b""
            if not data:
                return False
            with open(path, "rb") as opened:
                size = os.fstat(opened.fileno()).st_size
                data += b" " + os.pread(opened.fileno(), _TAIL, max(0, size - _TAIL))
        except OSError:
            return False
        return b'"shapes"' in data and (b'"imagePath"' in data or b'"shape_type"' in data)

    def image_files(self, ground_truth: GroundTruth) -> tuple[list[ImageFolder], Mapping[str, str]]:
        """Return the folders that may have the images, and the ``imagePath`` of each image.

        Paths are relative to the folder of the ground truth, or to its parent: ``../images/a.jpg``
        becomes ``images/a.jpg``, because no file outside a folder is opened.
        """
        bases = (s.path if s.members else os.path.dirname(s.path) for s in ground_truth.files)
        near = (".", os.pardir, "../images")
        folders = [folder for base in bases for folder in folders_at(base, near)]
        readers = Shapes.images_again(ground_truth)
        paths = {image: path for reader in readers for image, path in reader.image_paths.items()}
        return list(dict.fromkeys(folders)), paths


def _files(folder: str) -> Iterator[str]:
    """Yield JSON files of a folder, or else of the first sub-folders that have any."""
    below = [folder]
    for _ in range(_FOLDERS):
        if not below:
            return
        with os.scandir(below.pop(0)) as entries:
            visible = [entry for entry in islice(entries, _ENTRIES) if entry.name[0] != "."]
        files = [entry.path for entry in visible if entry.name.lower().endswith(".json")]
        yield from files
        if files:
            return
        below += sorted(entry.path for entry in visible if entry.is_dir())
