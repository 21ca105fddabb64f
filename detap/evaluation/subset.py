"""Subsets of tables by image and class."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from detap.errors import UsageError
from detap.protocols import Protocol
from detap.tables.detection import Detections, Flags, GroundTruth, Integers, Name
from detap.text_input import suggest

Table = TypeVar("Table", GroundTruth, Detections)


def select(
    ground_truth: GroundTruth,
    detections: Detections,
    *,
    classes: Iterable[str] | None = None,
    images: Iterable[Name] | None = None,
) -> tuple[GroundTruth, Detections]:
    """Return both tables with only some classes and images, reindexed.

    Some protocols use other classes too (max dets per image, KITTI's neighbor classes), so that
    metrics may change; ``evaluate(classes=...)`` selects after the evaluation instead.

    Parameters
    ----------
    ground_truth, detections : GroundTruth, Detections
        `detections` is reindexed like `ground_truth` first.
    classes : iterable of str, optional
        Names; the order is that of the tables.
    images : iterable of int or str, optional
        Names of the images.

    Raises
    ------
    UsageError
        If a name is unknown, with near ones, or none is given.
    """
    from detap.tables.arguments import check_table

    check_table(ground_truth, GroundTruth)
    check_table(detections, Detections)
    detections = detections.reindex_like(ground_truth)
    keep_class = name_mask("class", detections.classes, classes)
    keep_image = name_mask("image", ground_truth.images, images)
    return shrink(ground_truth, keep_image, keep_class), shrink(detections, keep_image, keep_class)


def shrink(table: Table, keep_image: Flags, keep_class: Flags | None = None) -> Table:
    """Return a table with only some images and classes, reindexed."""
    rows: Flags = np.ones(len(table), np.bool_)
    new_image = np.cumsum(keep_image, dtype=np.int32) - np.int32(1)
    changes: dict[str, Any] = {}
    all_images = bool(keep_image.all())
    if not all_images:
        rows = keep_image[table.image]
        changes["images"] = _names(table.images, keep_image)
    if keep_class is not None:
        rows &= keep_class[table.label]
        new_class = np.cumsum(keep_class, dtype=np.int32) - np.int32(1)
        changes["classes"] = _names(table.classes, keep_class)
        changes["class_ids"] = _names(table.class_ids, keep_class)
    selected = table if rows.all() else table.select(np.flatnonzero(rows))
    if not all_images:
        changes["image"] = new_image[selected.image]
    if keep_class is not None:
        changes["label"] = new_class[selected.label]
    if isinstance(table, GroundTruth):
        new_numbers = new_image, new_class if keep_class is not None else None
        changes["listed"] = {
            name: _select_pairs(pairs, (keep_image, keep_class), new_numbers)
            for name, pairs in table.listed.items()
        }
        if table.image_sizes is not None:
            changes["image_sizes"] = table.image_sizes[keep_image]
    return replace(selected, **changes)


def split_classes(ground_truth: GroundTruth, protocol: Protocol, count: int) -> Integers:
    """Return the chunk of each class, and of classes without ground truth, (K + 1,).

    There is one chunk if the matches of a class depend on other classes.
    """
    classes = len(ground_truth.classes)
    chunk_of_class = np.zeros(classes + 1, np.int32)
    if (
        protocol.class_agnostic
        or protocol.matching != "by-score"
        or protocol.max_dets_scope == "image"
        or protocol.images_without_ground_truth == "ignore"
    ):
        return chunk_of_class
    sizes = np.bincount(ground_truth.label, minlength=classes + 1)
    filled = np.zeros(min(count, classes), np.int64)
    for label in np.argsort(-sizes, kind="stable").tolist():
        chunk_of_class[label] = number = int(filled.argmin())
        filled[number] += sizes[label] + 1
    return chunk_of_class


def _select_pairs(
    pairs: Integers,
    keep: tuple[Flags, Flags | None],
    numbers: tuple[Integers, Integers | None],
) -> Integers:
    """Return the selected pairs of image and class, reindexed."""
    image, label = pairs.T
    mask = keep[0][image]
    if keep[1] is not None and numbers[1] is not None:
        mask = mask & keep[1][label]
        label = numbers[1][label]
    reindexed = np.stack([numbers[0][image], label], axis=1).astype(np.int32)
    selected: Integers = reindexed[mask]
    return selected


def _names(values: tuple[Any, ...], keep: Flags) -> tuple[Any, ...]:
    return tuple(values[number] for number in np.flatnonzero(keep[: len(values)]).tolist())


def name_mask(
    subject: str, names: tuple[Name, ...] | tuple[str, ...], chosen: Iterable[Name] | None
) -> Flags:
    """Return a mask of the selected names, (n,) bool."""
    if chosen is None:
        return np.ones(len(names), np.bool_)
    requested = set(chosen)
    if not requested:
        raise UsageError(f"no {subject} is selected")
    unknown = sorted(map(str, requested - set(names)))
    if unknown:
        hint = suggest(unknown[0], map(str, names))
        message = f"{subject} {unknown[0]!r} is not in the ground truth"
        raise UsageError("; ".join(filter(None, (message, hint))))
    return np.array([name in requested for name in names], np.bool_)
