"""Read folders of DOTA labels and Task1 results: text files of rotated boxes.

A line of a label has eight coordinates, or the five numbers of a rotated box, a class and
``difficult``; one of results an image, a score and the coordinates.

Reference: parse_gt and voc_eval of dota_evaluation_task1.py, CAPTAIN-WHU/DOTA_devkit; Xia et al.,
DOTA: a large-scale dataset for object detection in aerial images, CVPR 2018.
"""

import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from detap.core.polygons import bounds, is_self_intersecting, polygon_areas, rotated_boxes
from detap.errors import Note, Severity
from detap.formats.base import Format
from detap.formats.by_name.notes import (
    angles_beyond_a_turn,
    classes_without_file,
    files_skipped,
    nonzero_notes,
)
from detap.formats.reading.sniffing import first_line
from detap.formats.stem_matching import empty_ground_truth
from detap.formats.text.detections import class_of_stem, read_class_files
from detap.formats.text.folder import detections_folder, first_folder
from detap.formats.text.lines import LineForm, are_numbers
from detap.formats.text.reader import FolderReader, first_words
from detap.io.file_kinds import BYTE_ORDER_MARK
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.tables.detection import Detections, Floats, GroundTruth
from detap.text_input import quote

_LABELS = ("labelTxt", "")
"""Sub-folders that may contain the files."""
_CORNERS = ("x1", "y1", "x2", "y2", "x3", "y3", "x4", "y4")
_ROTATED = ("cx", "cy", "w", "h", "angle")
_HEAD = re.compile(rb"(?:\s*(?:imagesource|gsd):.*)+", re.IGNORECASE)


class DotaForm(LineForm):
    """Lines with a quadrilateral."""

    def prepared(self, data: bytes) -> bytes:
        """Return a file's content with blank lines in place of its header."""
        return super().prepared(data) if self.scored else without_head(data)

    def wrong_count(self, columns: list[str]) -> tuple[str, str]:
        """Return the message and hint for a wrong number of columns."""
        message, hint = super().wrong_count(columns)
        if self.last and len(columns) == len(self.columns) + 1:
            message = f"difficult is {quote(columns[-1])}, expected 0 or 1"
        elif "angle" not in self.titles and len(columns) in (6, 7):
            message += ": it may contain rotated boxes of five numbers"
            hint += ", or give the unit of the angle with --angle-unit"
        return message, hint


def dota_form(
    angle_unit: str | None, *, scored: bool, resolve: Callable[[str], str] = str
) -> DotaForm:
    """Return the columns of labels or results; `angle_unit` is that of rotated boxes."""
    shape, unit = (_CORNERS, "polygon") if angle_unit is None else (_ROTATED, angle_unit)
    if scored:
        return DotaForm("image", True, unit, resolve, ("score", *shape))
    return DotaForm("class", False, unit, resolve, shape, len(shape), ("0", "1"))


def without_head(data: bytes) -> bytes:
    """Return a label file with blank header lines."""
    data = data.removeprefix(BYTE_ORDER_MARK)
    head = _HEAD.match(data)
    end = head.end() if head else 0
    return b"\n" * data.count(b"\n", 0, end) + data[end:]


def _fits(columns: list[str]) -> bool:
    numbers = are_numbers(columns)
    labels = len(columns) in (9, 10) and all(numbers[:8]) and not numbers[8]
    results = len(columns) in (9, 10) and all(numbers[1:])
    # Only small numbers are YOLO's normalized coordinates.
    coordinates = columns[:8] if labels else columns[-8:]
    return (labels or results) and any(abs(float(column)) > 2 for column in coordinates)


def read_ground_truth(
    path: Path,
    *,
    image_set: Path | None = None,
    angle_unit: str | None = None,
    shapes: str = "reject",
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> GroundTruth:
    """Read DOTA labels: one text file per image; lines with too few columns are errors."""
    folder = first_folder(os.fspath(path), _LABELS, "DOTA's", "labels")
    reader = FolderReader(folder, as_is, limits, image_set)
    rows = reader.read(dota_form(angle_unit, scored=False))
    reader.problems.raise_any()
    values = rows.table(reader.form.width)
    polygons, notes = _quadrilaterals(reader, values, "ground-truth", "warning")
    return reader.ground_truth(
        rows.names,
        notes=notes,
        boxes=bounds(polygons),
        flags={"difficult": rows.flag},
        polygons=None if shapes == "bbox" else polygons,
    )


def read_detections(
    path: Path,
    ground_truth: GroundTruth,
    *,
    angle_unit: str | None = None,
    shapes: str = "reject",
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read DOTA Task1 results: a file ``Task1_<class>.txt`` per class, with scores or without."""
    folder = detections_folder(os.fspath(path))
    reader = FolderReader(folder, as_is, limits)
    known = ground_truth.classes
    # Ultralytics writes hyphens for blanks in class names.
    aliases = {name.replace(" ", "-"): name for name in known} | {name: name for name in known}
    class_by_stem = {stem: class_of_stem(stem, aliases) for stem in folder.members}
    form = dota_form(angle_unit, scored=True)
    image, classes = read_class_files(
        reader, ground_truth, class_by_stem, form, lambda name: aliases.get(name, name)
    )
    values = reader.scored_values()
    polygons, notes = _quadrilaterals(reader, values[:, 1:], "detections", "info")
    return reader.detections(
        ground_truth,
        reader.rows.file,
        classes,
        notes=(
            classes_without_file(ground_truth, classes),
            files_skipped(folder.skipped, "detections"),
            *notes,
        ),
        images=ground_truth.images,
        image=image,
        boxes=bounds(polygons),
        score=values[:, 0].copy(),
        polygons=None if shapes == "bbox" else polygons,
    )


def _quadrilaterals(
    reader: FolderReader, values: Floats, kind: str, severity: Severity
) -> tuple[Floats, tuple[Note, ...]]:
    """Return quadrilaterals (N, 8) from numbers (N, 8 or 5), and notes; refuse invalid ones."""
    unit = reader.form.box_format
    polygons = np.ascontiguousarray(values)
    negative = np.zeros(len(values), np.bool_)
    with np.errstate(over="ignore", invalid="ignore"):
        if unit != "polygon":
            negative = (values[:, 2] < 0) | (values[:, 3] < 0)
            boxes = values.copy()
            boxes[:, 4] = np.radians(values[:, 4]) if unit == "degrees" else values[:, 4]
            polygons = rotated_boxes(boxes)
        corners = bounds(polygons)
        size = corners[:, 2:] - corners[:, :2]
        overflow = ~np.isfinite(size[:, 0] * size[:, 1])
    negative_size = "width or height is negative"
    reader.raise_problems([(overflow, "box area overflows"), (negative, negative_size)])
    turn = {"degrees": 360, "radians": 2 * np.pi}.get(unit, np.inf)
    crossed = is_self_intersecting(polygons)
    zero_area = ~crossed & (polygon_areas(polygons) == 0)
    role = kind.replace("-", " ")
    message = (
        f"quadrilaterals of the {role} cross themselves: their corners are not in order, and parts "
        "with the other orientation reduce the area"
    )
    flat = f"quadrilaterals of the {role} have zero area and overlap nothing"
    flats = int(np.count_nonzero(zero_area))
    return polygons, nonzero_notes(
        Note(f"{kind}-crossed", message, int(np.count_nonzero(crossed))),
        Note(f"zero-area-{kind}", flat, flats, severity=severity),
        angles_beyond_a_turn(int(np.count_nonzero(np.abs(values[:, 4]) > turn))),
    )


class Dota(Format):
    """A text file per image or class, with four corners per line."""

    protocol = "dota"
    boxes = ()
    coordinates = "x1 y1 x2 y2 x3 y3 x4 y4"
    image_folders = ("../images", ".")

    read_truth_file = staticmethod(read_ground_truth)
    read_detections_file = staticmethod(read_detections)

    def placeholder(self, path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
        """Return the images and classes named in results, unchecked."""
        folder = detections_folder(os.fspath(path))
        images = {word for words in first_words(folder, limits) for word in words}
        classes = {class_of_stem(stem, ()).name for stem in folder.members}
        return empty_ground_truth(images, classes)

    def fits(self, path: str) -> bool:
        """Return True if the first line of files of a folder has eight coordinates in pixels."""
        folders = (os.path.join(path, name) for name in _LABELS)
        return any(_fits(first_line(folder, without_head).split()) for folder in folders)
