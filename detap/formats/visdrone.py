"""VisDrone DET: a text file per image, eight numbers separated by commas in each line.

Reference: VisDrone/VisDrone2018-DET-toolkit, readme and evalDET.m.
"""

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from detap.errors import InputError
from detap.formats.image_sizes import sizes_of
from detap.formats.reading.image_headers import IMAGE_SUFFIXES, image_size
from detap.formats.reading.sniffing import first_line
from detap.formats.shapes.document import (
    DocumentFormat,
    Image,
    Item,
    NumbersDocument,
    refuse_stdin,
    words_of,
)
from detap.formats.shapes.values import json_value, object_of, side_of
from detap.formats.text.folder import Folder, first_folder, one_file
from detap.formats.text.lines import are_numbers, has_columns, numbers_of
from detap.io.json_text import short_json
from detap.io.problems import FaultError
from detap.io.stream import read_bytes
from detap.tables.detection import GroundTruth
from detap.text_input import quote

_COLUMNS = ("x", "y", "width", "height", "score", "category", "truncation", "occlusion")
_LINE = f"write `{','.join(_COLUMNS)}`"
_REGIONS = "ignored regions"
_CLASSES = (
    *(_REGIONS, "pedestrian", "people", "bicycle", "car", "van", "truck"),
    *("tricycle", "awning-tricycle", "bus", "motor", "others"),
)
"""The classes of categories 0 to 11."""
_IMAGES = ("", "images", os.path.join("..", "images"))
"""Folders with image files, relative to the annotations."""


class Lines(NumbersDocument):
    """The lines of an image's file.

    Without a table, the sizes of images are those of ``sizes.json`` (``{image: [width, height]}``)
    or of the image files next to the ground truth.
    """

    box_format = "xywh"
    expected = _LINE
    in_file_order = True

    def folders(self) -> list[Folder]:
        """Return the text files of a folder, or a single file."""
        refuse_stdin(self.given, "VisDrone's files")
        content = "detections" if self.scored else "annotations"
        names = ("annotations", "") if content == "annotations" else ("",)
        return [one_file(self.given) or first_folder(self.given, names, "VisDrone's", content)]

    def numbers_of(self, words: list[str]) -> Any:
        """Return the numbers of a line by column."""
        if len(words) != len(_COLUMNS):
            raise FaultError(f"{has_columns(len(words))}, expected {len(_COLUMNS)}", _LINE)
        return dict(zip(_COLUMNS, numbers_of(_COLUMNS, words), strict=True))

    def images_of(self, content: Any, file: str) -> Iterator[tuple[str, Any]]:
        """Yield the only image of a file."""
        yield "", content

    def image_of(self, location: str, record: Any, file: str) -> Image:
        """Return the image of the lines."""
        return Image(self.name, record, stem=self.name, file="")

    def item_of(self, record: Any) -> Item:
        """Return the box of a line; ground truths with score 0 are crowds, as are regions."""
        score, category = record["score"], record["category"]
        box = [record[name] for name in _COLUMNS[:4]]
        if category not in range(len(_CLASSES)):
            message = f"category is {category:g}, expected an integer from 0 to 11"
            raise FaultError(message, _LINE)
        label = _CLASSES[int(category)]
        if self.scored:
            return Item(label, box, {"score": score})
        if score not in (0, 1):
            message = f"score is {score:g}, expected 0 (ignored) or 1 (detections?)"
            raise FaultError(message, "use the annotations")
        return Item(label, box, {"iscrowd": score == 0 or label == _REGIONS})

    def flags_of(self, attributes: Mapping[str, Any]) -> set[str]:
        """Return the flag of an ignored object."""
        return {"crowd"} if attributes.get("iscrowd") else set()

    def ground_truth(self) -> GroundTruth:
        """Return the boxes, with image sizes and classes in the order of their categories."""
        labels, images = {*self._labels}, [*self.images]
        self.classes |= {name: None for name in _CLASSES if name in labels}
        folder = os.path.dirname(self._files[0])
        listed = (os.path.join(folder, *parts, "sizes.json") for parts in ((), ("..",)))
        path = next(filter(os.path.isfile, listed), None)
        if self.size_file is None and path is not None:
            self.size_file, self.size_table = path, self._listed_sizes(os.path.normpath(path))
        sizes = zip(images, sizes_of(images, self.size_table).tolist(), strict=True)
        for name, (width, height) in sizes:
            known = not math.isnan(width)
            self.images[name] = (width, height) if known else _size_of_file(folder, name)
        return super().ground_truth()

    def _listed_sizes(self, path: str) -> dict[str, Any]:
        """Return the content of ``sizes.json``."""
        expected = "write {image: [width, height]}"
        table, self.problems.file = dict[str, Any](), path
        with self.problems.collected():
            data = read_bytes(path, self.limits)
            listed, _ = json_value(data, self.problems, self.limits, expected)
            for name, size in object_of(listed, expected).items():
                with self.problems.collected(f"image {quote(name)}"):
                    if not isinstance(size, list) or len(size) != 2:
                        raise FaultError(f"size is {short_json(size)}", expected)
                    table[name] = side_of("width", size[0]), side_of("height", size[1])
        self.problems.raise_any()
        return table


def _size_of_file(folder: str, image: str) -> tuple[float, float]:
    """Return the size of the image file next to the annotations, NaN without."""
    for inside in _IMAGES:
        for suffix in IMAGE_SUFFIXES[:3]:
            with suppress(InputError):
                return image_size(os.path.join(folder, inside, image + suffix))
    return math.nan, math.nan


class VisDrone(DocumentFormat):
    """A text file per image, with eight columns."""

    protocol = "visdrone"
    document = Lines
    boxes = ("xywh",)
    coordinates = "x, y, width, height"
    image_folders = ("../images", "images", ".")

    def fits(self, path: str) -> bool:
        """Return True if the first line of a folder is eight numbers, separated by commas."""
        line = first_line(path) or first_line(os.path.join(path, "annotations"))
        return are_numbers(words_of(line)) == [True] * len(_COLUMNS)
