"""Statistics and checks of tables without scoring, for `detap check`.

Readers check single records. These checks compare both tables, for mistakes that no record shows:
another box format, other class ids, other images. Such tables are valid, but their AP is near 0.

Overlaps are computed on evenly sampled images, at a bounded cost.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from detap.checks.mismatch import mismatch_notes
from detap.checks.sample import MIN_IOU, Sample
from detap.checks.tables import (
    area_notes,
    one_score,
    one_score_note,
    perhaps_undefined,
    repeated,
    repeated_detections,
    score_cut,
    score_cut_note,
)
from detap.errors import Note
from detap.tables.detection import Detections, Floats, GroundTruth


class Statistic(NamedTuple):
    """A statistic of the tables."""

    key: str  # its JSON key
    title: str  # its label in the table
    value: Any  # None if undefined


@dataclass(frozen=True, slots=True)
class DataCheck:
    """Result of :func:`examine`."""

    statistics: tuple[Statistic, ...]  # of the ground truth, of the detections, and of both
    notes: tuple[Note, ...]  # those of the readers come first
    classes: tuple[dict[str, Any], ...]  # name, id and counts of each class


def examine(ground_truth: GroundTruth | None, detections: Detections | None) -> DataCheck:
    """Compute statistics and checks of one table or both."""
    statistics: list[Statistic] = []
    notes: list[Note] = []
    if ground_truth is not None:
        count = _repeated(ground_truth)
        statistics += _truth_statistics(ground_truth, count)
        notes += [*ground_truth.notes, *_truth_notes(ground_truth, count)]
        notes += area_notes(ground_truth)
    if detections is not None:
        count = _repeated(detections)
        statistics += _detection_statistics(detections, count)
        notes += [*detections.notes, *_detection_notes(detections, count)]
    if ground_truth is not None and detections is not None:
        sample = Sample(ground_truth, detections)
        statistics += _common_statistics(ground_truth, detections, sample)
        notes += [
            *_missing_notes(ground_truth, detections),
            *mismatch_notes(ground_truth, detections, sample),
        ]
    distinct = tuple(dict.fromkeys(notes))  # both tables may have the same note
    return DataCheck(tuple(statistics), distinct, _class_rows(ground_truth, detections))


def _truth_statistics(truth: GroundTruth, duplicates: int) -> Iterator[Statistic]:
    per_image = np.bincount(truth.image, minlength=len(truth.images))
    yield Statistic("images", "images", len(truth.images))
    yield Statistic(
        "images_without_ground_truth", "  without ground truth", int((per_image == 0).sum())
    )
    yield Statistic("classes", "classes", len(truth.classes))
    yield Statistic("ground_truths", "ground truths", len(truth))
    for flag in ("crowd", "difficult", "ignore", "group_of"):
        count = int(np.count_nonzero(getattr(truth, flag)))
        if count:
            yield Statistic(flag, f"  marked {flag.replace('_', ' ')}", count)
    yield Statistic("ground_truth_sides", "  median shorter side (px)", _median_side(truth))
    yield from _box_statistics("ground_truth", truth, duplicates, truth.image_sizes)


def _detection_statistics(detections: Detections, duplicates: int) -> Iterator[Statistic]:
    score = detections.score
    per_image = np.bincount(detections.image, minlength=len(detections.images))
    yield Statistic("detections", "detections", len(detections))
    yield Statistic("detections_per_image", "  maximum per image", int(per_image.max(initial=0)))
    low, median, high = (
        (float(score.min()), float(np.median(score)), float(score.max()))
        if len(score) and detections.has_scores
        else (None, None, None)
    )
    yield Statistic("score_lowest", "  lowest score", low)
    yield Statistic("score_median", "  median score", median)
    yield Statistic("score_highest", "  highest score", high)
    distinct = tied = None
    if detections.has_scores:
        values, rank = np.unique(score, return_inverse=True)
        of_class = rank * np.int64(len(detections.classes)) + detections.label
        counts = np.unique(of_class, return_counts=True)[1]
        distinct, tied = len(values), int(counts[counts > 1].sum())
    yield Statistic("scores_distinct", "  distinct scores", distinct)
    yield Statistic("tied_detections", "  tied with another score of the class", tied)
    yield Statistic("detection_sides", "  median shorter side (px)", _median_side(detections))
    yield from _box_statistics("detections", detections, duplicates, None)


def _box_statistics(
    key: str, table: GroundTruth | Detections, duplicates: int, sizes: Floats | None
) -> Iterator[Statistic]:
    yield Statistic(f"{key}_repeated", "  duplicates (same image, class, box)", duplicates)
    yield Statistic(f"{key}_empty", "  zero area", int(np.count_nonzero(table.box_area <= 0)))
    if sizes is not None:
        low, high = table.corners[:, :2], table.corners[:, 2:]
        outside = ((high <= 0) | (low >= sizes[table.image])).any(axis=1)
        yield Statistic(f"{key}_outside", "  outside the image", int(np.count_nonzero(outside)))


def _median_side(table: GroundTruth | Detections) -> float | None:
    if not len(table):
        return None
    with np.errstate(over="ignore"):
        width_height = table.corners[:, 2:] - table.corners[:, :2]
        median = float(np.median(width_height.min(axis=1)))
    return median if np.isfinite(median) else None


def _repeated(table: GroundTruth | Detections) -> int:
    return repeated(table.image, table.label, table.corners)


def _truth_notes(truth: GroundTruth, duplicates: int) -> Iterator[Note]:
    if duplicates and not any(note.code == "repeated-objects" for note in truth.notes):
        message = "duplicate ground truths (same image, class, box) all count"
        yield Note("repeated-ground-truth", message, duplicates)
    used = np.bincount(truth.label, minlength=len(truth.classes))
    empty = int(np.count_nonzero(used == 0))
    if empty:
        message = "classes have no ground truth: their AP is undefined"
        yield Note("classes-without-ground-truth", message, empty, severity="info")


def _detection_notes(detections: Detections, duplicates: int) -> Iterator[Note]:
    yield from repeated_detections(duplicates, detections)
    score = detections.score
    if not detections.has_scores:
        return
    if one_score(score):
        yield one_score_note(len(score))
    elif (cut := score_cut(float(score.min(initial=np.inf)), len(score))) is not None:
        yield score_cut_note(cut)


def _common_statistics(
    truth: GroundTruth, detections: Detections, sample: "Sample"
) -> Iterator[Statistic]:
    has_gt, has_dt = truth.images_with_rows, detections.images_with_rows
    yield Statistic("images_with_detections", "images with detections", int(has_dt.sum()))
    missing = int(np.count_nonzero(has_gt & ~has_dt))
    yield Statistic("images_undetected", "  with ground truth, without detections", missing)
    only = _only(detections, truth)
    yield Statistic("classes_only_in_detections", "classes only in detections", only)
    yield Statistic("classes_undetected", "classes without detections", _only(truth, detections))
    yield Statistic("sampled_images", "images sampled for overlap", sample.images)
    yield Statistic("sampled_ground_truths", "  ground truths in these images", len(sample.rows))
    for key, title, flags in (
        ("met", f"  overlapped by any detection (IoU >= {MIN_IOU})", sample.overlapped),
        ("met_by_class", "  overlapped by a detection of the class", sample.overlapped_by_class),
    ):
        yield Statistic(key, title, float(flags.mean()) if len(flags) else None)


def _only(table: GroundTruth | Detections, other: GroundTruth | Detections) -> list[str]:
    """Return the names of classes with rows in `table` but not in `other`."""
    classes = max(len(table.classes), len(other.classes))
    in_table, in_other = (np.bincount(each.label, minlength=classes) > 0 for each in (table, other))
    return [table.classes[index] for index in np.flatnonzero(in_table & ~in_other)]


def _missing_notes(truth: GroundTruth, detections: Detections) -> Iterator[Note]:
    if not len(detections):
        return
    has_gt, has_dt = truth.images_with_rows, detections.images_with_rows
    undetected = int(np.count_nonzero(has_gt & ~has_dt))
    if 2 * undetected > int(has_gt.sum()):
        message = (
            "more than half of the images with ground truth have no detections; did the detector "
            "run on the whole split?"
        )
        yield Note("images-undetected", message, undetected)
    missing = _only(truth, detections)
    if missing and not any(note.code == "classes-without-file" for note in detections.notes):
        names = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
        metric = "AP" if detections.has_scores else "F1"
        message = f"classes with ground truth have no detections ({names}): their {metric} is 0"
        message += perhaps_undefined(truth, missing)
        yield Note("classes-undetected", message, len(missing), severity="info")


def _class_rows(
    truth: GroundTruth | None, detections: Detections | None
) -> tuple[dict[str, Any], ...]:
    tables = [table for table in (truth, detections) if table is not None]
    if not tables:
        return ()
    largest = max(tables, key=lambda table: len(table.classes))
    counts = {
        key: np.bincount(table.label, minlength=len(largest.classes)).tolist()
        for key, table in (("ground_truths", truth), ("detections", detections))
        if table is not None
    }
    return tuple(
        {"name": name, "id": identifier} | {key: values[k] for key, values in counts.items()}
        for k, (name, identifier) in enumerate(zip(largest.classes, largest.class_ids, strict=True))
    )
