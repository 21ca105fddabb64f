"""Looking at tables without scoring them: what is there, and what looks wrong about it.

Readers refuse what is invalid and note what is odd about single records. Here both tables are
looked at together, for mistakes that no record shows: boxes in another convention, class ids that
mean other classes, detections of other images. Such a table is scored without complaint, with an
average precision near 0 that costs its owner weeks.

Nothing here changes a number. What follows from overlaps is computed on a sample of the images,
spread evenly over all of them, so that its cost is bounded whatever the size of the tables.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from detap.checks.mismatch import suspicions
from detap.checks.sample import MEETS, Sample
from detap.checks.tables import (
    perhaps_undefined,
    repeated,
    repeated_detections,
    score_cut,
    score_cut_note,
)
from detap.errors import Note
from detap.tables.detection import Detections, Flags, Floats, GroundTruth


class Statistic(NamedTuple):
    """One thing that is so.

    Attributes
    ----------
    key : str
        What JSON calls it.
    title : str
        What people read.
    value : int, float, str, list or None
        None where there is nothing that could have it.
    """

    key: str
    title: str
    value: Any


@dataclass(frozen=True, slots=True)
class DataCheck:
    """What was found.

    Attributes
    ----------
    statistics : tuple of Statistic
        About the ground truth, the detections, and both together.
    notes : tuple of Note
        Those of the readers first.
    classes : tuple of dict
        For each class its name, id, and counts.
    """

    statistics: tuple[Statistic, ...]
    notes: tuple[Note, ...]
    classes: tuple[dict[str, Any], ...]


def examine(ground_truth: GroundTruth | None, detections: Detections | None) -> DataCheck:
    """Look at either table, or at both together.

    Parameters
    ----------
    ground_truth : GroundTruth or None
    detections : Detections or None
        Numbered as `ground_truth`, where that is given.
    """
    statistics: list[Statistic] = []
    notes: list[Note] = []
    if ground_truth is not None:
        statistics += _truth_statistics(ground_truth)
        notes += [*ground_truth.notes, *_truth_notes(ground_truth)]
    if detections is not None:
        statistics += _detection_statistics(detections)
        notes += [*detections.notes, *_detection_notes(detections)]
    if ground_truth is not None and detections is not None:
        sample = Sample(ground_truth, detections)
        statistics += _common_statistics(ground_truth, detections, sample)
        notes += [
            *_missing_notes(ground_truth, detections),
            *suspicions(ground_truth, detections, sample),
        ]
    once = tuple(dict.fromkeys(notes))  # both tables may have noted the same
    return DataCheck(tuple(statistics), once, _class_rows(ground_truth, detections))


def _truth_statistics(truth: GroundTruth) -> Iterator[Statistic]:
    filled = np.bincount(truth.image, minlength=len(truth.images))
    yield Statistic("images", "images", len(truth.images))
    yield Statistic(
        "images_without_ground_truth", "  without ground truth", int((filled == 0).sum())
    )
    yield Statistic("classes", "classes", len(truth.classes))
    yield Statistic("ground_truths", "ground truths", len(truth))
    for flag in ("crowd", "difficult", "ignore", "group_of"):
        count = int(np.count_nonzero(getattr(truth, flag)))
        if count:
            yield Statistic(flag, f"  marked {flag.replace('_', ' ')}", count)
    yield Statistic("ground_truth_sides", "  shorter side, median (px)", _median_side(truth))
    yield from _box_statistics("ground_truth", truth, truth.image_sizes)


def _detection_statistics(detections: Detections) -> Iterator[Statistic]:
    score = detections.score
    filled = np.bincount(detections.image, minlength=len(detections.images))
    yield Statistic("detections", "detections", len(detections))
    yield Statistic("detections_per_image", "  in one image, at most", int(filled.max(initial=0)))
    low, middle, high = (
        (float(score.min()), float(np.median(score)), float(score.max()))
        if len(score)
        else (None, None, None)
    )
    yield Statistic("score_lowest", "  lowest score", low)
    yield Statistic("score_median", "  median score", middle)
    yield Statistic("score_highest", "  highest score", high)
    distinct, tied = _ties(detections)
    yield Statistic("scores_distinct", "  distinct scores", distinct)
    yield Statistic("tied_detections", "  of a score that another of their class has", tied)
    yield Statistic("detection_sides", "  shorter side, median (px)", _median_side(detections))
    yield from _box_statistics("detections", detections, None)


def _box_statistics(
    key: str, table: GroundTruth | Detections, sizes: Floats | None
) -> Iterator[Statistic]:
    yield Statistic(
        f"{key}_repeated", "  that repeat another's image, class and box", _repeated(table)
    )
    yield Statistic(f"{key}_empty", "  without area", int(np.count_nonzero(table.box_area <= 0)))
    if sizes is not None:
        yield Statistic(f"{key}_outside", "  wholly outside their image", _outside(table, sizes))


def _median_side(table: GroundTruth | Detections) -> float | None:
    if not len(table):
        return None
    with np.errstate(over="ignore"):
        sides = table.corners[:, 2:] - table.corners[:, :2]
        middle = float(np.median(sides.min(axis=1)))
    return middle if np.isfinite(middle) else None


def _ties(detections: Detections) -> tuple[int, int]:
    """Return how many scores there are, and how many detections share theirs within a class."""
    order = np.lexsort((detections.score, detections.label))
    score, label = detections.score[order], detections.label[order]
    equal = (score[1:] == score[:-1]) & (label[1:] == label[:-1])
    touched = np.zeros(len(score), np.bool_)
    touched[1:] |= equal
    touched[:-1] |= equal
    return len(np.unique(detections.score)), int(np.count_nonzero(touched))


def _repeated(table: GroundTruth | Detections) -> int:
    return repeated(table.image, table.label, table.corners)


def _outside(table: GroundTruth | Detections, sizes: Floats) -> int:
    size = sizes[table.image]
    low, high = table.corners[:, :2], table.corners[:, 2:]
    return int(np.count_nonzero(((high <= 0) | (low >= size)).any(axis=1)))


def _truth_notes(truth: GroundTruth) -> Iterator[Note]:
    if not any(note.code == "repeated-objects" for note in truth.notes):
        count = _repeated(truth)
        if count:
            message = "ground truths repeat the image, class and box of another; all count"
            yield Note("repeated-ground-truth", message, count)
    used = np.bincount(truth.label, minlength=len(truth.classes))
    empty = int(np.count_nonzero(used == 0))
    if empty:
        message = "classes have no ground truth; their AP is undefined"
        yield Note("classes-without-ground-truth", message, empty, severity="info")


def _detection_notes(detections: Detections) -> Iterator[Note]:
    yield from repeated_detections(detections)
    score = detections.score
    if len(score) > 1 and bool((score == score[0]).all()):
        message = "all detections have one score: their order in the file decides the numbers"
        yield Note("one-score", message, len(score))
    elif (cut := score_cut(float(score.min(initial=np.inf)), len(score))) is not None:
        yield score_cut_note(cut)


def _common_statistics(
    truth: GroundTruth, detections: Detections, sample: "Sample"
) -> Iterator[Statistic]:
    with_truth, with_found = truth.filled, detections.filled
    yield Statistic("images_with_detections", "images with detections", int(with_found.sum()))
    bare = int(np.count_nonzero(with_truth & ~with_found))
    yield Statistic("images_undetected", "  with ground truth, but no detection", bare)
    only = _only(detections, truth)
    yield Statistic("classes_only_in_detections", "classes only in the detections", only)
    yield Statistic("classes_undetected", "classes without any detection", _only(truth, detections))
    yield Statistic("sampled_images", "images looked at for overlaps", sample.images)
    yield Statistic("sampled_ground_truths", "  ground truths in them", len(sample.rows))
    yield Statistic("met", f"  met by a detection of any class (IoU {MEETS})", _share(sample.met))
    yield Statistic("met_by_class", "  met by one of their own class", _share(sample.met_by_class))


def _share(flags: Flags) -> float | None:
    return float(flags.mean()) if len(flags) else None


def _only(table: GroundTruth | Detections, other: GroundTruth | Detections) -> list[str]:
    """Return the names of the classes that `table` has rows of and `other` has not."""
    classes = max(len(table.classes), len(other.classes))
    here = np.bincount(table.label, minlength=classes) > 0
    there = np.bincount(other.label, minlength=classes) > 0
    return [table.classes[number] for number in np.flatnonzero(here & ~there)]


def _missing_notes(truth: GroundTruth, detections: Detections) -> Iterator[Note]:
    if not len(detections):
        return
    with_truth, with_found = truth.filled, detections.filled
    bare = int(np.count_nonzero(with_truth & ~with_found))
    if 2 * bare > int(with_truth.sum()):
        message = (
            "images with ground truth have no detection, more than half of them: was the detector "
            "run on all of this split?"
        )
        yield Note("images-undetected", message, bare)
    missing = _only(truth, detections)
    if missing and not any(note.code == "classes-without-file" for note in detections.notes):
        names = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
        message = f"classes with ground truth have no detection ({names}): their AP is 0"
        message += perhaps_undefined(truth, missing)
        yield Note("classes-undetected", message, len(missing), severity="info")


def _class_rows(
    truth: GroundTruth | None, detections: Detections | None
) -> tuple[dict[str, Any], ...]:
    tables = [table for table in (truth, detections) if table is not None]
    if not tables:
        return ()
    names = max((table.classes for table in tables), key=len)
    ids = max((table.class_ids for table in tables), key=len)
    counts = {
        key: np.bincount(table.label, minlength=len(names)).tolist()
        for key, table in (("ground_truths", truth), ("detections", detections))
        if table is not None
    }
    return tuple(
        {"name": name, "id": identifier} | {key: values[k] for key, values in counts.items()}
        for k, (name, identifier) in enumerate(zip(names, ids, strict=True))
    )
