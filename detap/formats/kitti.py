"""Read folders of KITTI labels and results: a text file per image, a line per object.

A line is a type, fourteen numbers, and the score of a result.

Reference: readme.txt of the development kit for the object benchmark; Geiger et al., Are we ready
for autonomous driving? The KITTI vision benchmark suite, CVPR 2012.
"""

import os
from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np

from detap.formats.base import Format
from detap.formats.by_name.notes import files_skipped
from detap.formats.by_name.objects import nothing_in_common
from detap.formats.by_name.problems import CORNERS
from detap.formats.reading.sniffing import first_line
from detap.formats.stem_matching import empty_ground_truth
from detap.formats.text.folder import first_folder
from detap.formats.text.lines import LineForm, are_numbers
from detap.formats.text.reader import FolderReader, first_words
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.io.problems import check_choice
from detap.tables.detection import BOX_FORMATS, Detections, Floats, GroundTruth, encode_boxes
from detap.text_input import quote

_LABELS = (os.path.join("training", "label_2"), "label_2", "")
_RESULTS = ("data", "")
"""Sub-folders that may contain the files."""

_COLUMNS = ("truncated", "occluded", "alpha", *CORNERS, "h", "w", "l", "x", "y", "z", "ry")
_TRUNCATED, _OCCLUDED, _BOX, _SCORE = 0, 1, slice(3, 7), 14
"""Indices into the numbers of a line."""

_DONT_CARE = "DontCare"
_TYPES = (
    *("Car", "Van", "Truck", "Pedestrian", "Person_sitting", "Cyclist", "Tram", "Misc"),
    _DONT_CARE,
)
"""KITTI's types; other data sets have others."""


def kitti_form(boxes: str, *, scored: bool) -> LineForm:
    """Return the columns ``type truncated occluded alpha x1 y1 x2 y2 h w l x y z ry [score]``."""
    return LineForm("type", scored, boxes, str, _COLUMNS + ("score",) * scored)


def read_ground_truth(
    path: Path,
    *,
    image_set: Path | None = None,
    boxes: str = "xyxy",
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> GroundTruth:
    """Read KITTI labels; ``DontCare`` objects become difficult objects of a class of this name."""
    folder = first_folder(os.fspath(path), _LABELS, "KITTI's", "labels")
    reader = FolderReader(folder, as_is, limits, image_set)
    values = _read(reader, boxes, scored=False)
    names = _one_spelling(reader.rows.names)
    return reader.ground_truth(
        names,
        boxes=np.ascontiguousarray(values[:, _BOX]),
        box_format=boxes,
        flags={"difficult": np.array(names, np.str_)[reader.rows.name] == _DONT_CARE},
        extra={name: values[:, column].copy() for column, name in enumerate(_COLUMNS[:3])},
    )


def read_detections(
    path: Path,
    ground_truth: GroundTruth,
    *,
    boxes: str = "xyxy",
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read KITTI results, with scores or without; every image needs a file, as in the kit."""
    folder = first_folder(os.fspath(path), _RESULTS, "KITTI's", "results")
    reader = FolderReader(folder, as_is, limits)
    problems = reader.problems
    missing = [name for name in map(str, ground_truth.images) if name not in folder.members]
    for name in missing:
        message = f"no such file or directory: image {quote(name)} has no results"
        hint = "write an empty file if nothing was detected, or exclude the image with --image-set"
        problems.add(folder.file(f"{name}.txt"), "", message, hint)
    if len(missing) == len(ground_truth.images):
        problems.lead = nothing_in_common(folder.given, folder.members, ground_truth)
    problems.raise_any()
    values = _read(reader, boxes, scored=True)
    return reader.detections(
        ground_truth,
        reader.rows.name,
        _one_spelling(reader.rows.names, ground_truth.classes),
        notes=(files_skipped(folder.skipped, "detections"),),
        images=reader.images,
        image=reader.rows.file,
        boxes=np.ascontiguousarray(values[:, _BOX]),
        box_format=boxes,
        score=values[:, _SCORE].copy(),
    )


def _one_spelling(names: Iterable[str], known: Iterable[str] = ()) -> list[str]:
    """Return type names with consistent case.

    It is that of the `known` types of the ground truth, else KITTI's, else the first in
    alphabetical order.
    """
    names = tuple(names)
    spelling: dict[str, str] = {}
    for name in chain(known, _TYPES, sorted(names)):
        spelling.setdefault(name.casefold(), name)
    return [spelling[name.casefold()] for name in names]


def _read(reader: FolderReader, boxes: str, *, scored: bool) -> Floats:
    """Return the numbers of rows (N, 14 or 15); raise InputError for invalid ones."""
    check_choice("boxes", boxes, BOX_FORMATS)
    rows = reader.read(kitti_form(boxes, scored=scored))
    values = reader.scored_values() if scored else rows.table(len(_COLUMNS))
    corners, area = encode_boxes(values[:, _BOX], boxes)
    finite = np.isfinite(corners).all(axis=1) & np.isfinite(area)
    checks = [(~finite, "box area overflows")]
    if not scored:
        truncated, occluded = values[:, _TRUNCATED], values[:, _OCCLUDED]
        outside = (truncated != -1) & ((truncated < 0) | (truncated > 1))
        checks += [
            (outside, "truncated is not from 0 to 1, or -1"),
            (~np.isin(occluded, (-1, 0, 1, 2, 3)), "occluded is not 0, 1, 2, 3 or -1"),
        ]
    reader.raise_problems(checks)
    return values


class Kitti(Format):
    """A text file per image, with fifteen columns."""

    protocol = "kitti"
    image_folders = ("../image_2", "../images", ".")

    read_truth_file = staticmethod(read_ground_truth)
    read_detections_file = staticmethod(read_detections)

    def placeholder(self, path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
        """Return the images and types named in results, unchecked."""
        folder = first_folder(os.fspath(path), _RESULTS, "KITTI's", "results")
        types = {word for words in first_words(folder, limits) for word in words}
        return empty_ground_truth(folder.members, _one_spelling(types))

    def fits(self, path: str) -> bool:
        """Return True if the first line of files of a folder is a word and 14 or 15 numbers."""
        lines = (first_line(os.path.join(path, name)).split() for name in (*_LABELS, "data"))
        return any(
            len(line) in (15, 16) and are_numbers(line) == [False, *[True] * (len(line) - 1)]
            for line in lines
        )
