"""Examples: worst images, confident errors and possible label errors."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from detap.analysis.errors import TYPES, Errors
from detap.analysis.match_results import Counts, MatchResults
from detap.display import Brief
from detap.tables.detection import Floats, Integers

REASONS = ("missing_annotation", "wrong_label", "never_detected")
"""Reasons for a possible label error, in the order of :attr:`LabelErrors.reason`.

missing_annotation
    a confident detection on the background: the object's annotation may be missing;
wrong_label
    a confident detection on a ground truth of another class: its class may be wrong;
never_detected
    a missed ground truth of a class with recall above 0.5: it may not be an object.
"""

_MISSING_ANNOTATION, _WRONG_LABEL, _NEVER_DETECTED = range(3)


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class WorstImages(Brief):
    """Images with the most errors, the worst first."""

    score_threshold: float | None  # detections below it are left out
    image: Integers  # (n,) indices into the images of the ground truth
    false_positives: Counts  # (n,)
    false_negatives: Counts  # (n,)


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class ConfidentErrors(Brief):
    """False positives with the highest scores."""

    detection: Integers  # (n,) rows of the detections
    kind: NDArray[np.int8]  # (n,) their types, indices into `TYPES`
    target: Integers  # (n,) the ground truths that they are attributed to, or -1
    similarity: Floats  # (n,) ioU or OKS with the target


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class LabelErrors(Brief):
    """Possible label errors by reason, the most suspicious first."""

    reason: NDArray[np.int8]  # (n,) an index into `REASONS`
    detection: Integers  # (n,) row of the detection, or -1 for ``never_detected``
    ground_truth: Integers  # (n,) row of the ground truth, or -1 if it may be missing
    weight: Floats  # (n,) score of the detection, or recall of the class


def worst_images(
    results: MatchResults, *, score: float | None = None, max_count: int
) -> WorstImages:
    """Return the images with the most false positives and false negatives."""
    detections, ground_truths = results.boxes
    kept = (
        np.ones(len(results.matched_gt), np.bool_) if score is None else detections.score >= score
    )
    matched = np.zeros(len(results.positive), np.bool_)
    matched[results.matched_gt[kept & results.true_positive]] = True
    false_positives = np.bincount(
        detections.image[kept & results.false_positive], minlength=results.images
    )
    missed = np.bincount(ground_truths.image[results.positive & ~matched], minlength=results.images)
    order = np.argsort(-(false_positives + missed), kind="stable")[:max_count]
    order = order[(false_positives + missed)[order] > 0]
    return WorstImages(
        score_threshold=score,
        image=order.astype(np.int32),
        false_positives=false_positives[order],
        false_negatives=missed[order],
    )


def confident_errors(results: MatchResults, errors: Errors, *, max_count: int) -> ConfidentErrors:
    """Return the false positives with the highest scores."""
    ranked = results.by_score
    rows = ranked[results.false_positive[ranked]][:max_count]
    return ConfidentErrors(
        detection=rows,
        kind=errors.kind[rows],
        target=errors.target[rows],
        similarity=errors.similarity[rows],
    )


def label_errors(
    results: MatchResults, errors: Errors, *, score: float | None = None, max_count: int
) -> LabelErrors:
    """Find possible label errors."""
    if score is None:
        # numpy.median would import numpy.ma.
        right = np.sort(results.boxes[0].score[results.true_positive])
        middle = right[[(len(right) - 1) // 2, len(right) // 2]] if len(right) else np.inf
        score = float(np.mean(middle))
    ranked = results.by_score
    ranked = ranked[results.boxes[0].score[ranked] >= score]
    lists = [
        _of_detections(results, errors, ranked, _MISSING_ANNOTATION, max_count),
        _of_detections(results, errors, ranked, _WRONG_LABEL, max_count),
        _never_detected(results, errors, max_count),
    ]
    reason, detection, truth, weight = (np.concatenate(c) for c in zip(*lists, strict=True))
    return LabelErrors(reason=reason, detection=detection, ground_truth=truth, weight=weight)


_Rows = tuple[NDArray[np.int8], Integers, Integers, Floats]


def _of_detections(
    results: MatchResults, errors: Errors, ranked: Integers, reason: int, max_count: int
) -> _Rows:
    kind = TYPES.index("background" if reason == _MISSING_ANNOTATION else "classification")
    of_kind = errors.kind[ranked] == kind
    if reason == _WRONG_LABEL:  # the target's class may not be selected
        of_kind &= errors.target[ranked] >= 0
    rows = ranked[of_kind][:max_count]
    return (
        np.full(len(rows), reason, np.int8),
        rows,
        errors.target[rows],
        results.boxes[0].score[rows],
    )


def _never_detected(results: MatchResults, errors: Errors, max_count: int) -> _Rows:
    """Return the missed ground truths of classes with recall above 0.5, highest recall first."""
    ground_truths = results.boxes[1]
    matched = results.by_class(ground_truths.label[results.matched])
    recall = matched / np.maximum(results.ground_truth_counts, 1)
    rows = np.flatnonzero(errors.missed)
    rows = rows[recall[ground_truths.label[rows]] > 0.5]
    order = np.lexsort(
        (rows, -ground_truths.overlap_area[rows], -recall[ground_truths.label[rows]])
    )[:max_count]
    rows = rows[order]
    return (
        np.full(len(rows), _NEVER_DETECTED, np.int8),
        np.full(len(rows), -1, np.int32),
        rows.astype(np.int32),
        recall[ground_truths.label[rows]],
    )
