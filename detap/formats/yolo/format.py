"""The YOLO format: detection, default preset, placeholder and image files."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from types import MappingProxyType
from typing import Any

import numpy as np

from detap.errors import InputError, Note
from detap.formats.base import Format
from detap.formats.content import Content
from detap.formats.image_folders import ImageFolder
from detap.formats.options import GEOMETRIES
from detap.formats.reading.image_headers import IMAGE_SUFFIXES
from detap.formats.reading.placeholder import empty_ground_truth
from detap.formats.reading.sniffing import HEAD_BYTES, head
from detap.formats.text.class_names import (
    SPLITS,
    ClassNames,
    is_data_yaml,
    read_data_yaml,
)
from detap.formats.text.reader import first_words
from detap.formats.yolo import tables
from detap.formats.yolo.dataset import (
    common_folder,
    label_folder_of,
    labels_folder,
    resolve_data_yaml,
)
from detap.formats.yolo.names import folders_above
from detap.formats.yolo.rows import CORNERS, all_axis_aligned
from detap.io.limits import Limits
from detap.io.paths import Path
from detap.io.problems import Problems
from detap.tables.detection import GroundTruth
from detap.text_input import is_whole

_NUMBER = re.compile(rb"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_GEOMETRY_OF_TASK = {"pose": "keypoints", "obb": "polygons"}
_FITTING_FILES, _FITTING_LINES = 16, 64
_LISTED_IMAGES, _ROWS = 64, 256
_LABEL_BYTES = 1 << 16


def placeholder_ground_truth(path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
    """Return the images and classes named in files, unchecked."""
    folder = tables.predictions_folder(os.fspath(path))
    names_file = options.get("dt_class_names") or options.get("class_names")
    classes = set(ClassNames.read(names_file, Problems(1), limits).names)
    if not classes:
        words = {word for words in first_words(folder, limits) for word in words}
        classes = {word.lstrip("0") or "0" for word in words if is_whole(word)}
    return empty_ground_truth(folder.members, classes)


class Yolo(Format):
    """Text files of boxes in fractions of the image, with a `data.yaml`."""

    geometries = GEOMETRIES
    geometry_protocols = MappingProxyType(
        {"keypoints": "ultralytics-pose", "polygons": "coco-polygon"}
    )

    read_truth_file = staticmethod(tables.read_ground_truth)
    read_detections_file = staticmethod(tables.read_detections)
    placeholder = staticmethod(placeholder_ground_truth)

    def fits(self, path: str) -> bool:
        """Return True for a `data.yaml`, ``obj.data``, its folder, or a class and fractions."""
        if path.lower().endswith((".yaml", ".yml", ".data")):
            return True
        with suppress(OSError, ValueError):
            if any(os.path.isfile(os.path.join(path, name)) for name in ("data.yaml", "obj.data")):
                return True
            lines = [line for file in _text_files(path) for line in _first_lines(file)]
            return bool(lines) and 2 * sum(map(_is_row, lines)) > len(lines)
        return False

    def geometry(self, path: str, reading: Mapping[str, Any]) -> str:
        """Return "keypoints", "polygons" for oriented boxes, or "" for boxes and other polygons.

        Oriented boxes are recognized by the rows up to the first that is not upright; the reader
        checks all.
        """
        geometry = _geometry_of_rows(path, reading)
        return "" if geometry == "polygons" and reading.get("shapes") == "bbox" else geometry

    def image_files(self, ground_truth: GroundTruth) -> tuple[list[ImageFolder], Mapping[str, str]]:
        """Return the image folders of the label folders, and file names if they have several.

        Links out of the common folder of labels and images are not followed. A `data.yaml` may name
        any folder, so then images outside its parent folder are not used either.
        """
        folders: dict[str, ImageFolder] = {}
        names: dict[str, str] = {}
        data_yaml = ""
        for source in ground_truth.files:
            if is_data_yaml(source.path):
                data_yaml = os.path.abspath(source.path)
            if not source.members:
                continue
            label_folders = {os.path.dirname(os.path.join(source.path, m)) for m in source.members}
            image_folders = [label_folder_of(f, "labels", "images") for f in sorted(label_folders)]
            images = common_folder(image_folders)
            top = common_folder([source.path, images])
            if data_yaml:
                top = os.path.dirname(os.path.dirname(data_yaml))
            for path, root in ((images, top), (source.path, top if data_yaml else source.path)):
                folders.setdefault(path, ImageFolder(path, os.path.realpath(root)))
            if len(image_folders) > 1:
                for folder in image_folders:
                    names |= _image_names(folder, os.path.relpath(folder, images))
        return list(folders.values()), names

    def write(self, content: Content, notes: list[Note]) -> Iterator[tuple[str, bytes]]:
        """Yield `data.yaml`, a list of images, labels and predictions."""
        from detap.formats.yolo import writer  # only to convert

        return writer.files(content, notes)


def _text_files(path: str) -> Iterator[str]:
    """Yield a file, or a few text files of a folder or its sub-folder `labels`."""
    if os.path.isfile(path):
        yield path
        return
    with os.scandir(path) as entries:
        paths = (
            e.path for e in entries if e.name.endswith(".txt") and e.name[0] != "." and e.is_file()
        )
        labels = (name for name in paths if not name.endswith("classes.txt"))
        files = list(islice(labels, _FITTING_FILES))
    below = os.path.join(path, "labels")
    if files or not os.path.isdir(below):
        yield from files
    else:
        yield from _text_files(below)


def _first_lines(path: str) -> list[bytes]:
    text = head(path)
    complete = text if len(text) < HEAD_BYTES else text.rpartition(b"\n")[0]
    return [line for line in complete.split(b"\n")[:_FITTING_LINES] if line.strip()]


def _is_row(line: bytes) -> bool:
    """Return True for a class and fractions."""
    word, *columns = line.split()
    if not word.isdigit() or len(columns) < 4 or not all(map(_NUMBER.fullmatch, columns)):
        return False
    return all(abs(float(column)) <= 2 for column in columns) and any(
        b"." in column for column in columns
    )


def _geometry_of_rows(path: str, reading: Mapping[str, Any]) -> str:
    """Return the geometry of the rows, for readers that keep it."""
    if (task := reading.get("task")) is not None:
        return _GEOMETRY_OF_TASK.get(task, "")
    with suppress(OSError, ValueError, InputError):
        path = resolve_data_yaml(path)
        described = _described(path, reading)
        if any(data.keypoints for data in described):
            return "keypoints"
        if is_data_yaml(path):
            folders = _label_folders(described[0], reading.get("split") or SPLITS[0])
        else:
            folders = iter([labels_folder(path)])
        return "polygons" if _are_oriented(_label_lines(folders)) else ""
    return ""


def _described(path: str, reading: Mapping[str, Any]) -> list[ClassNames]:
    """Return the data.yaml of a ground truth, or those near a folder of labels."""
    files = [path] if is_data_yaml(path) else []
    if not files:
        files = [os.path.join(above, "data.yaml") for above in folders_above(labels_folder(path))]
    names = reading.get("class_names")
    if names is not None and is_data_yaml(os.fspath(names)):
        files.append(os.fspath(names))
    return [read_data_yaml(file) for file in files if os.path.isfile(file)]


def _label_folders(data: ClassNames, split: str) -> Iterator[str]:
    """Yield the folders of the label files of a split."""
    folder = os.path.dirname(data.file) or "."
    base = next(filter(os.path.isdir, (os.path.join(folder, data.path), data.path)), folder)
    for entry in data.splits.get(split, ()):
        for variant in (entry, entry.removeprefix("../")):
            path = os.path.join(base, variant)
            if os.path.isfile(path):
                with open(path, encoding="utf-8") as lines:
                    images = [line.strip() for line in islice(lines, _LISTED_IMAGES)]
                roots = [os.path.dirname(path), base]
                places = (os.path.join(root, os.path.dirname(i)) for i in images for root in roots)
                yield from dict.fromkeys(label_folder_of(os.path.normpath(p)) for p in places)
            else:
                yield label_folder_of(os.path.normpath(path))


def _label_lines(folders: Iterator[str]) -> Iterator[bytes]:
    """Yield the rows of the first label files of folders and their sub-folders."""
    for top in folders:
        for folder, below, names in os.walk(top):
            below.sort()
            for name in sorted(names):
                if name.endswith(".txt") and name[0] != "." and name != "classes.txt":
                    with open(os.path.join(folder, name), "rb") as file:
                        yield from filter(bytes.strip, file.read(_LABEL_BYTES).splitlines())


def _are_oriented(lines: Iterator[bytes]) -> bool:
    """Return True if the first rows have four corners, and a row up to then is not upright."""
    while rows := [line.split() for line in islice(lines, _ROWS)]:
        if any(len(row) != 1 + CORNERS for row in rows):
            return False
        with np.errstate(invalid="ignore"):  # the reader refuses infinite numbers
            if not all_axis_aligned(np.array([row[1:] for row in rows], np.float64)):
                return True
    return False


def _image_names(folder: str, below: str) -> dict[str, str]:
    """Return the images of a folder by stem, with their folder `below`; none if it is missing."""
    with suppress(OSError):
        return {
            os.path.splitext(name)[0]: os.path.join(below, name)
            for name in os.listdir(folder)
            if name.lower().endswith(IMAGE_SUFFIXES)
        }
    return {}
