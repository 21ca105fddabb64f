"""Rows that name their images and classes, and their tables."""

import os
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from detap.core.polygons import polygon_areas
from detap.errors import Note, Problem
from detap.formats.by_name.notes import (
    ROUNDED,
    class_notes,
    detection_notes,
    ground_truth_notes,
    images_copied,
    nonzero_notes,
)
from detap.formats.by_name.problems import RowReader, negative_size_notes
from detap.io.paths import SourceFile
from detap.io.problems import Problems
from detap.io.stream import refuse
from detap.tables.columns import indices_in
from detap.tables.detection import (
    Detections,
    Flags,
    Floats,
    GroundTruth,
    Integers,
    Name,
    encode_boxes,
)
from detap.tables.notes import (
    AS_IS,
    INSIST,
    SAME_IMAGES,
    backward,
    class_map_hint,
    extra_images_note,
    extra_images_problem,
)
from detap.text_input import is_whole, join_names, quote

_FLAGS = ("crowd", "difficult", "ignore", "group_of")


class Objects(NamedTuple):
    """Boxes as files have them: N rows in input order."""

    images: tuple[Name, ...]  # all I images, also those without rows, in order
    classes: tuple[str, ...]  # all K classes, in order
    image: Integers  # index into `images`
    label: Integers  # index into `classes`
    boxes: Floats  # (N, 4), in pixels
    box_format: str = "xyxy"
    score: Floats | None = None  # of detections
    flags: Mapping[str, Flags] = MappingProxyType({})  # those of `_FLAGS` that the format has
    sizes: Floats | None = None  # (I, 2): width and height, NaN where unknown
    box_area: Floats | None = None  # in the file's own encoding, if it differs from `box_format`
    polygons: Floats | None = None  # (N, 8), which the boxes enclose, and whose areas count
    area: Floats | None = None  # if not that of box or polygon
    extra: Mapping[str, Floats] = MappingProxyType({})  # further columns of the ground truth
    fields: Mapping[str, Any] = MappingProxyType({})  # of the table, such as keypoints and masks

    def columns(self) -> dict[str, Any]:
        """Return the columns of both tables."""
        corners, areas = encode_boxes(self.boxes, self.box_format)
        return {
            "image": self.image,
            "label": self.label,
            "corners": corners,
            "box_area": areas if self.box_area is None else self.box_area,
            "polygons": self.polygons,
            **self.fields,
        }


def name_index(
    words: Sequence[str], order: Sequence[str] | None = None
) -> tuple[tuple[str, ...], Integers]:
    """Return the distinct names, sorted or in the given `order`, and the index of each word."""
    names = tuple(sorted(set(words)) if order is None else order)
    return names, indices_in(words, names)


def ground_truth(
    objects: Objects,
    reader: RowReader,
    files: tuple[SourceFile, ...],
    notes: tuple[Note, ...] = (),
) -> GroundTruth:
    """Return the ground-truth table of the rows, with its notes."""
    columns = objects.columns()
    if objects.area is not None:
        area = objects.area
    elif objects.polygons is None:
        area = columns["box_area"].copy()
    else:
        area = polygon_areas(objects.polygons)
    rows = backward(columns["corners"], columns["box_area"])
    negative = negative_size_notes("ground-truth", reader, objects.boxes, objects.box_format, rows)
    none = np.zeros(len(objects.image), np.bool_)
    flags: dict[str, Any] = {name: objects.flags.get(name, none) for name in _FLAGS}
    truth = GroundTruth(
        **columns,
        **flags,
        images=objects.images,
        classes=objects.classes,
        class_ids=objects.classes,
        area=area,
        image_sizes=objects.sizes,
        extra=objects.extra,
        files=files,
    )
    more = (
        *((AS_IS,) if reader.as_is else ()),
        *notes,
        *nonzero_notes(images_copied(truth.images, truth.image, truth.label, truth.corners)),
        *class_notes(truth.classes),
        *negative,
        *ground_truth_notes(truth, objects.box_format),
    )
    return replace(truth, notes=more)


def detections(
    objects: Objects,
    ground_truth: GroundTruth,
    reader: RowReader,
    files: tuple[SourceFile, ...],
    notes: tuple[Note, ...] = (),
) -> Detections:
    """Return the detections table, indexed as the ground truth; other classes follow.

    Rows whose image is -1 are left out.
    """
    same_images = objects.images is ground_truth.images
    image = objects.image
    if not same_images:
        image = indices_in(objects.images, ground_truth.images)[image]
        names, problems = (objects.images, objects.image), Problems(reader.limits.problems)
        check_images(reader, image, names, ground_truth, problems)
    unknown = sorted(set(objects.classes) - set(ground_truth.classes))
    classes = ground_truth.classes + tuple(unknown)
    label = indices_in(objects.classes, classes)[objects.label]
    kept = image >= 0
    count = int(np.count_nonzero(kept))
    unknown_count = int(np.count_nonzero(label[kept] >= len(ground_truth.classes)))
    later = reader.limits.part or reader.limits.any_classes
    if count and unknown_count == count and not (reader.as_is or later):
        _refuse_unknown_classes(reader.path, ground_truth, unknown)
    columns = objects.columns() | {"image": image, "label": label}
    rows = backward(columns["corners"], columns["box_area"])
    negative = negative_size_notes("detections", reader, objects.boxes, objects.box_format, rows)
    score = np.zeros(0) if objects.score is None else objects.score
    table = Detections(
        **columns,
        images=ground_truth.images,
        classes=classes,
        class_ids=ground_truth.class_ids + tuple(unknown),
        score=score,
        without_scores=reader.without_scores,
        area=objects.area,
        files=files,
    )
    if count < len(kept):
        table = table.select(np.flatnonzero(kept)).compact()
    message = f"detections of classes that the ground truth lacks: {join_names(unknown)}"
    fixed = reader.fixed_boxes
    more = (
        *((AS_IS,) if reader.as_is else ()),
        *notes,
        *reader.extra_images,
        *nonzero_notes(Note("unknown-classes", message, unknown_count)),
        *(class_notes(classes) if unknown else ()),
        *negative,
        *detection_notes(table, ground_truth, ROUNDED, objects.box_format, fixed=fixed),
    )
    return replace(table, notes=more)


def check_images(
    reader: RowReader,
    image: Integers,
    names: tuple[Sequence[Name], Integers],
    truth: GroundTruth,
    problems: Problems,
) -> None:
    """Raise problems, also that of unknown images, -1; `names` are images and each row's index."""
    rows = np.flatnonzero(image < 0)
    counts = len(rows), len({*names[1][rows].tolist()})  # np.unique would import numpy.ma
    if len(rows) and not reader.limits.refuses_images(len(rows), len(image)):
        reader.extra_images = (extra_images_note(*counts),)
    elif len(rows):
        name = str(names[0][names[1][rows[0]]])
        hint = hint_of(name, {*truth.images}, SAME_IMAGES)
        message = f"image {quote(name)} is not in the ground truth"
        problem = extra_images_problem(reader.location(int(rows[0])), message, *counts, hint)
        if len(rows) == len(image):
            used = [names[0][index] for index in np.unique(names[1]).tolist()]
            problems.lead = nothing_in_common(reader.path, used, truth)
            problem = problem._replace(hint=hint)
        problems.extend(problem)
    problems.raise_any()


def hint_of(name: str, known: Container[Any], hint: str) -> str:
    """Return the hint for an unknown image name."""
    stem = os.path.splitext(os.path.basename(name))[0]
    return "remove folder and suffix from the name" if stem in known else hint


def nothing_in_common(path: str, images: Collection[Name], ground_truth: GroundTruth) -> Problem:
    """Return the problem of detections without any known image."""
    detected, annotated = join_names(map(str, images)), join_names(map(str, ground_truth.images))
    message = f"no image in common with the ground truth (here: {detected}; ground truth: "
    return Problem(path, "", f"{message}{annotated})", SAME_IMAGES)


def _refuse_unknown_classes(path: str, truth: GroundTruth, unknown: Sequence[str]) -> None:
    hint = "rename the classes by --class-map FILE, or use results for the same classes"
    if all(map(is_whole, unknown)):
        hint = "pass --dt-class-names FILE; for YOLO text files use --dt-format yolo"
    hint = class_map_hint(unknown, truth.classes) or hint
    message = f"no class in common with the ground truth (here: {join_names(unknown)}; ground "
    message += f"truth: {join_names(truth.classes)})"
    refuse(path, message, f"{hint}; if the classes are right, pass {INSIST}")
