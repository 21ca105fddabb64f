"""Detections of a table that was read, numbered as their ground truth."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from detap.formats.arrow.table import Table
from detap.formats.coco.columns import DetectionColumns
from detap.formats.coco.values import nothing_in_common
from detap.io.json_text import spelt
from detap.tables.columns import places
from detap.tables.detection import GroundTruth, Integers, Name, distinct_name
from detap.tables.notes import INSIST


def detection_columns(table: Table, truth: GroundTruth, as_is: bool) -> DetectionColumns:
    """Return detections, numbered as `truth`; raise where something is wrong with them."""
    table.check_images()
    label, unknown = _known_classes(table, truth, as_is or table.limits.part)
    corners, box_area = table.boxes()
    score = table.rows.numbers("score")
    table.check_given("score", score)
    table.check_finite("score", score)
    table.problems.raise_any()
    place = table.rows.image.places(truth.images)
    _check_known(table, place, truth.images)
    table.problems.raise_any()
    image = table.image(place)
    return DetectionColumns(image, label, corners, box_area, score, unknown, {})


def _known_classes(
    table: Table, truth: GroundTruth, as_is: bool
) -> tuple[Integers, dict[Name, int]]:
    """Return the class of each row, as `truth` numbers them; and how often it has not each."""
    table.check_classes()
    column = table.shape.class_columns[0]
    both = table.shape.class_columns[1:]
    known: Sequence[Name] = truth.class_ids
    if not table.shape.id_column or (both and truth.class_ids == truth.classes):
        column, known = "category", truth.classes
    found = table.rows.codes[column]
    if table.problems.count:
        return found.rows(), {}
    _check_kind(table, column, found, known)
    if both and column == "category_id":
        _check_called(table, table.called(), truth)
    unknown = sorted(found.number.keys() - set(known), key=found.number.__getitem__)
    if column == "category" and unknown and len(unknown) == len(found.number) and not as_is:
        table.problems.instead(
            nothing_in_common("category", "category is", unknown, known),
            f"use the ground truth's names; or, if all are of other classes indeed, give {INSIST}",
        )
    label = found.rows(places(found.number, (*known, *unknown)))
    counts = np.bincount(label)[len(known) :].tolist() if unknown else []
    return label, dict(zip(unknown, counts, strict=True))


def _check_called(table: Table, called: dict[Name, str], truth: GroundTruth) -> None:
    """Note categories that are another's name here than in the ground truth."""
    due = dict(zip(truth.class_ids, truth.classes, strict=True))
    for identifier, name in called.items():
        right = due.get(identifier, name)
        if right not in (name, distinct_name(name, identifier)):
            table.problems.add(
                "",
                f"category {spelt(identifier)} is {spelt(name)} here, {spelt(right)} in the "
                "ground truth",
                "use the ground truth's category ids",
            )


def _check_kind(table: Table, column: str, codes: Any, known: Sequence[Name]) -> None:
    """Note names that are text where the ground truth has numbers, or the reverse."""
    if not codes.number or not known:
        return
    name = next(iter(codes.number))
    if isinstance(name, str) != isinstance(known[0], str):
        table.problems.add(
            "",
            f"{column} holds {_kind(name)} such as {spelt(name)}; the ground truth has "
            f"{_kind(known[0])} such as {spelt(known[0])}",
            "spell them as the ground truth does",
        )


def _check_known(table: Table, place: Integers, known: tuple[Name, ...]) -> None:
    """Note detections on images that the ground truth has not."""
    if (place >= 0).all():
        return
    _check_kind(table, "image_id", table.rows.image, known)
    if table.problems.count:
        return
    image, names = table.image(), list(table.rows.image.number)
    rows = np.flatnonzero(place[image] < 0)
    if len(rows) == len(image):
        table.problems.instead(
            nothing_in_common("image", "image_id is", names, known),
            "give the results of the same images",
        )
        return
    table.report(
        rows,
        lambda row: f"image_id {spelt(names[image[row]])} is not in the ground truth",
        "score the detections of its images only; an image without objects is one of them",
    )


def _kind(name: Name) -> str:
    return "text" if isinstance(name, str) else "numbers"
