"""Detections of Parquet and Arrow files."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from detap.formats.arrow.table import Table
from detap.formats.coco.columns import DetectionColumns
from detap.formats.coco.values import no_common_id, other_name
from detap.io.json_text import short_json
from detap.tables.columns import indices_in
from detap.tables.detection import GroundTruth, Integers, Name, distinct_name
from detap.tables.notes import INSIST


def detection_columns(table: Table, truth: GroundTruth, as_is: bool) -> DetectionColumns:
    """Return the columns with the indices of `truth`."""
    table.check_images()
    label, unknown = _labels(table, truth, as_is or table.limits.part)
    corners, box_area = table.boxes()
    score = table.rows.numbers("score")
    table.check_given("score", score)
    table.check_finite("score", score)
    table.problems.raise_any()
    indices = table.rows.image.positions(truth.images)
    _check_images(table, indices, truth.images)
    table.problems.raise_any()
    image = table.image(indices)
    return DetectionColumns(image, label, corners, box_area, score, unknown, {})


def _labels(table: Table, truth: GroundTruth, as_is: bool) -> tuple[Integers, dict[Name, int]]:
    """Return the label of each row, and the counts of unknown classes."""
    table.check_classes()
    column = table.shape.class_columns[0]
    has_both = len(table.shape.class_columns) > 1  # ids and names
    known: Sequence[Name] = truth.class_ids
    if not table.shape.id_column or (has_both and truth.class_ids == truth.classes):
        column, known = "category", truth.classes
    codes = table.rows.codes[column]
    if table.problems.count:
        return codes.rows(), {}
    _check_type(table, column, codes, known)
    if has_both and column == "category_id":
        _check_names(table, table.category_names(), truth)
    unknown = sorted(codes.number.keys() - set(known), key=codes.number.__getitem__)
    if column == "category" and unknown and len(unknown) == len(codes.number) and not as_is:
        table.problems.instead(
            no_common_id("category", unknown, known),
            f"use the ground truth's names, or pass {INSIST}",
        )
    label = codes.rows(indices_in(codes.number, (*known, *unknown)))
    counts = np.bincount(label)[len(known) :].tolist() if unknown else []
    return label, dict(zip(unknown, counts, strict=True))


def _check_names(table: Table, names: dict[Name, str], truth: GroundTruth) -> None:
    """Report categories with another name than in the ground truth."""
    expected = dict(zip(truth.class_ids, truth.classes, strict=True))
    for identifier, name in names.items():
        true_name = expected.get(identifier, name)
        if true_name not in (name, distinct_name(name, identifier)):
            message = other_name(identifier, name, true_name)
            table.problems.add("", message, "use the ground truth's category ids or names")


def _check_type(table: Table, column: str, codes: Any, known: Sequence[Name]) -> None:
    """Report strings if the ground truth has numbers, or the reverse."""
    if not codes.number or not known:
        return
    name = next(iter(codes.number))
    if isinstance(name, str) != isinstance(known[0], str):
        table.problems.add(
            "",
            f"{column} has {_type_name(name)} (e.g. {short_json(name)}), expected "
            f"{_type_name(known[0])} as in the ground truth (e.g. {short_json(known[0])})",
        )


def _check_images(table: Table, indices: Integers, known: tuple[Name, ...]) -> None:
    """Report detections of unknown images."""
    if (indices >= 0).all():
        return
    _check_type(table, "image_id", table.rows.image, known)
    if table.problems.count:
        return
    image, names = table.image(), list(table.rows.image.number)
    rows = np.flatnonzero(indices[image] < 0)
    if len(rows) == len(image):
        message = no_common_id("image_id", names, known)
        table.problems.instead(message, "use results for the same images")
        return
    table.report(
        rows,
        lambda row: f"image_id {short_json(names[image[row]])} is not in the ground truth",
    )


def _type_name(name: Name) -> str:
    return "strings" if isinstance(name, str) else "numbers"
