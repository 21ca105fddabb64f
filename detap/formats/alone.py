"""Detections without the ground truth that they are for, numbered by what they name themselves.

A first, lenient look collects the names of images and classes; the format's own reader then reads
the file against these, so that everything else about it is checked as always.
"""

import json
import math
import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from detap.errors import UsageError
from detap.formats import coco, voc
from detap.formats._voc_folder import detections_folder
from detap.formats._voc_layout import class_of_stem, tell_layout
from detap.formats.files import DEFAULT_LIMITS, STDIN, Limits, read_bytes
from detap.tables import Detections, GroundTruth, Name

Path = str | os.PathLike[str]


def read_detections(
    path: Path,
    *,
    format: str,
    layout: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    **options: Any,
) -> Detections:
    """Read detections whose ground truth is not at hand.

    Parameters
    ----------
    path : str or path
        A results file (COCO), or a folder of text files (VOC).
    format : {"coco", "voc"}
    layout : {"class-files", "image-files"}, optional
        VOC alone; told from the names of the files where left out.
    limits : Limits
        What is accepted at most.
    **options
        Further ones of the format's own reader.

    Raises
    ------
    InputError
        With every problem of the input.
    UsageError
        Where the layout cannot be told.
    """
    if format == "coco":
        if os.fspath(path) == STDIN:
            raise UsageError("detections without their ground truth cannot come from stdin")
        return coco.read_detections(path, _coco_names(path, limits), limits=limits, **options)
    layout, truth = _voc_names(path, layout, limits)
    return voc.read_detections(path, truth, layout=layout, limits=limits, **options)


def _empty_truth(images: Iterable[Name], classes: Iterable[Name]) -> GroundTruth:
    return GroundTruth.from_arrays(
        image=np.zeros(0, np.int64),
        label=np.zeros(0, np.int64),
        boxes=np.zeros((0, 4)),
        images=_sorted(images),
        classes={name: str(name) for name in _sorted(classes)},
    )


def _sorted(names: Iterable[Name]) -> tuple[Name, ...]:
    return tuple(sorted(names, key=lambda name: (isinstance(name, str), name)))


def _coco_names(path: Path, limits: Limits) -> GroundTruth:
    """Return the ids that a results file names; none where it cannot be read."""
    try:
        value = json.loads(read_bytes(path, limits).decode("utf-8-sig"))
    except (ValueError, RecursionError):
        value = []
    if isinstance(value, dict):
        value = value.get("annotations") or value.get("predictions")
    records = [record for record in value or () if isinstance(record, dict)]
    names: list[set[Name]] = [
        {name for record in records if (name := _name(record.get(key))) is not None}
        for key in ("image_id", "category_id")
    ]
    return _empty_truth(*names)


def _name(value: object) -> Name | None:
    if isinstance(value, bool) or not isinstance(value, int | str | float):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value


def _voc_names(path: Path, layout: str | None, limits: Limits) -> tuple[str, GroundTruth]:
    folder = detections_folder(os.fspath(path))
    stems = tuple(folder.members)
    lines = [_columns(folder.file(name), limits) for name in folder.members.values()]
    if layout is None:
        first = {stem: found[0][0] for stem, found in zip(stems, lines, strict=True) if found}
        layout = tell_layout(stems, first, (), ())
    if layout is None:
        raise UsageError(
            "whether a file holds the detections of a class or of an image cannot be told without "
            "the ground truth; say --layout class-files or --layout image-files"
        )
    met = {columns[0] for found in lines for columns in found}
    by_image = layout == "image-files"
    classes = met if by_image else {class_of_stem(stem, ()).name for stem in stems}
    truth = _empty_truth(stems if by_image else met, classes)
    reach = {name: [math.nan, math.nan] for name in truth.images}
    for stem, found in zip(stems, lines, strict=True):
        for columns in found:
            _reach(reach[stem if by_image else columns[0]], columns[4:6])
    sizes = np.array(list(reach.values()), np.float64).reshape(-1, 2)
    return layout, replace(truth, image_sizes=sizes)


def _columns(path: str, limits: Limits) -> list[list[str]]:
    """Return the columns of every line that has one and can be read."""
    text = read_bytes(path, limits).decode("utf-8-sig", "replace")
    return [columns for line in text.split("\n") if (columns := line.split())]


def _reach(size: list[float], corner: list[str]) -> None:
    """Take it that an image is as large as its detections reach.

    Detectors clip boxes to the image, and a box that was clipped on one side alone is excused where
    it ends at the image's border.
    """
    for axis, text in enumerate(corner):
        try:
            size[axis] = float(np.fmax(size[axis], float(text)))
        except ValueError:
            return
