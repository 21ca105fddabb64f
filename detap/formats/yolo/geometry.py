"""Geometry of a YOLO ground truth, from its `data.yaml` and the first label files."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

import numpy as np

from detap.errors import InputError
from detap.formats.text.data_yaml import SPLITS, DataYaml, read_data_yaml
from detap.formats.yolo.dataset import (
    is_data_yaml,
    label_folder_of,
    labels_folder,
    resolve_data_yaml,
)
from detap.formats.yolo.tasks import all_axis_aligned

_BY_TASK = {"pose": "keypoints", "obb": "polygons"}
_CORNERS = 9
"""Columns of a row of four corners."""
_FILES, _ROWS = 64, 256
_HEAD = 1 << 16


def geometry(path: str, options: Mapping[str, Any]) -> str:
    """Return "keypoints", "polygons" for oriented boxes, or "" for boxes and other polygons.

    Oriented boxes are recognized by the rows up to the first that is not upright; the reader checks
    all.
    """
    shape = _shape_of_rows(path, options)
    return "" if shape == "polygons" and options.get("shapes") == "bbox" else shape


def _shape_of_rows(path: str, options: Mapping[str, Any]) -> str:
    """Return the geometry of the rows, for readers that keep it."""
    task = options.get("task")
    if task is not None:
        return _BY_TASK.get(task, "")
    with suppress(OSError, ValueError, InputError):
        path = resolve_data_yaml(path)
        described = _described(path, options)
        if any(data.keypoints for data in described):
            return "keypoints"
        if is_data_yaml(path):
            folders = _label_folders(described[0], options.get("split") or SPLITS[0])
        else:
            folders = iter([labels_folder(path)])
        return "polygons" if _are_oriented(_lines(folders)) else ""
    return ""


def _are_oriented(lines: Iterator[bytes]) -> bool:
    """Return True if the first rows have four corners, and a row up to then is not upright."""
    while rows := [line.split() for line in islice(lines, _ROWS)]:
        if any(len(row) != _CORNERS for row in rows):
            return False
        with np.errstate(invalid="ignore"):  # the reader refuses infinite numbers
            if not all_axis_aligned(np.array([row[1:] for row in rows], np.float64)):
                return True
    return False


def _described(path: str, options: Mapping[str, Any]) -> list[DataYaml]:
    """Return the data.yaml of a ground truth, or those near a folder of labels."""
    files = [path] if is_data_yaml(path) else []
    if not files:
        above = labels_folder(path)
        for _ in range(3):
            files.append(os.path.join(above, "data.yaml"))
            above = os.path.normpath(os.path.join(above, os.pardir))
    names = options.get("class_names")
    if names is not None and is_data_yaml(os.fspath(names)):
        files.append(os.fspath(names))
    return [read_data_yaml(file) for file in files if os.path.isfile(file)]


def _label_folders(data: DataYaml, split: str) -> Iterator[str]:
    """Yield the folders of the label files of a split."""
    folder = os.path.dirname(data.file) or "."
    base = next(filter(os.path.isdir, (os.path.join(folder, data.path), data.path)), folder)
    for entry in data.splits.get(split, ()):
        for variant in (entry, entry.removeprefix("../")):
            path = os.path.join(base, variant)
            if os.path.isfile(path):
                with open(path, encoding="utf-8") as lines:
                    images = [line.strip() for line in islice(lines, _FILES)]
                roots = [os.path.dirname(path), base]
                places = (os.path.join(root, os.path.dirname(i)) for i in images for root in roots)
                yield from dict.fromkeys(label_folder_of(os.path.normpath(p)) for p in places)
            else:
                yield label_folder_of(os.path.normpath(path))


def _lines(folders: Iterator[str]) -> Iterator[bytes]:
    """Yield the rows of the first label files of folders and their sub-folders."""
    for top in folders:
        for folder, below, names in os.walk(top):
            below.sort()
            texts = [name for name in sorted(names) if name.endswith(".txt") and name[0] != "."]
            for name in texts:
                if name != "classes.txt":
                    with open(os.path.join(folder, name), "rb") as file:
                        yield from filter(bytes.strip, file.read(_HEAD).splitlines())
