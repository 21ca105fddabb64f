"""Where to look: the worst images, confident mistakes, and annotations that may be wrong."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from detap.analysis.errors import TYPES, Errors
from detap.analysis.match_results import Counts, MatchResults
from detap.tables.detection import Floats, Integers

REASONS = ("missing_annotation", "wrong_label", "never_detected")
"""Why an annotation may be wrong, in the order of :attr:`LabelErrors.reason`.

missing_annotation
    a confident detection has no ground truth beneath it: an object may lack its annotation;
wrong_label
    it lies on a ground truth of another class: the annotation's class may be wrong;
never_detected
    no detection comes near a ground truth of a class that is mostly found: it may be no object.
"""

_MISSING_ANNOTATION, _WRONG_LABEL, _NEVER_DETECTED = range(3)


@dataclass(frozen=True, eq=False, kw_only=True)
class WorstImages:
    """Images with the most errors, the worst first.

    Attributes
    ----------
    score_threshold : float or None
        Detections below it are left out.
    image : (n,) int32
        Indices into the images of the ground truth.
    false_positives, false_negatives : (n,) int64
    """

    score_threshold: float | None
    image: Integers
    false_positives: Counts
    false_negatives: Counts


@dataclass(frozen=True, eq=False, kw_only=True)
class ConfidentErrors:
    """False positives by falling score.

    Attributes
    ----------
    detection : (n,) int32
        Rows of the detections.
    kind : (n,) int8
        Their types, indices into :data:`~detap.analysis.errors.TYPES`.
    target : (n,) int32
        The ground truths that they aim at or stand on, or -1.
    similarity : (n,) float64
        With these.
    """

    detection: Integers
    kind: NDArray[np.int8]
    target: Integers
    similarity: Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelErrors:
    """Annotations that may be wrong; those of a reason together, the most suspicious first.

    Attributes
    ----------
    reason : (n,) int8
        An index into :data:`REASONS`.
    detection : (n,) int32
        The row that makes it suspicious, or -1 where none does.
    ground_truth : (n,) int32
        The row that is suspicious, or -1 where one is lacking.
    weight : (n,) float64
        How suspicious: the score of the detection, or the recall of the class.
    """

    reason: NDArray[np.int8]
    detection: Integers
    ground_truth: Integers
    weight: Floats


def worst_images(
    results: MatchResults, *, score: float | None = None, max_count: int = 20
) -> WorstImages:
    """Return the images with the most false positives and false negatives, ties in their order.

    Parameters
    ----------
    results : MatchResults
    score : float, optional
        Detections below it are left out: what they found counts as not found.
    max_count : int
        How many images at most.
    """
    detections, truths = results.boxes
    kept = (
        np.ones(len(results.matched_gt), np.bool_) if score is None else detections.score >= score
    )
    matched = np.zeros(len(results.positive), np.bool_)
    matched[results.matched_gt[kept & results.true_positive]] = True
    false_positives = np.bincount(
        detections.image[kept & results.false_positive], minlength=results.images
    )
    missed = np.bincount(truths.image[results.positive & ~matched], minlength=results.images)
    order = np.argsort(-(false_positives + missed), kind="stable")[:max_count]
    order = order[(false_positives + missed)[order] > 0]
    return WorstImages(
        score_threshold=score,
        image=order.astype(np.int32),
        false_positives=false_positives[order],
        false_negatives=missed[order],
    )


def confident_errors(
    results: MatchResults, errors: Errors, *, max_count: int = 20
) -> ConfidentErrors:
    """Return the false positives of the highest scores.

    Parameters
    ----------
    results : MatchResults
    errors : Errors
        Of this outcome, in the convention of the protocol.
    max_count : int
        How many at most.
    """
    ranked = results.by_score
    rows = ranked[results.false_positive[ranked]][:max_count]
    return ConfidentErrors(
        detection=rows,
        kind=errors.kind[rows],
        target=errors.target[rows],
        similarity=errors.similarity[rows],
    )


def label_errors(
    results: MatchResults, errors: Errors, *, score: float | None = None, max_count: int = 20
) -> LabelErrors:
    """Return annotations that may be wrong.

    Parameters
    ----------
    results : MatchResults
    errors : Errors
        Of this outcome, in the convention of the protocol.
    score : float, optional
        The score from which a detection is confident; the median score of the true positives
        where left out.
    max_count : int
        How many for each reason at most.
    """
    if score is None:
        # The median, without numpy.median, which imports all of numpy.ma.
        right = np.sort(results.boxes[0].score[results.true_positive])
        middle = right[[(len(right) - 1) // 2, len(right) // 2]] if len(right) else np.inf
        score = float(np.mean(middle))
    ranked = results.by_score
    ranked = ranked[results.boxes[0].score[ranked] >= score]
    lists = [
        _of_detections(results, errors, ranked, _MISSING_ANNOTATION, max_count),
        _of_detections(results, errors, ranked, _WRONG_LABEL, max_count),
        _never_found(results, errors, max_count),
    ]
    reason, detection, truth, weight = (np.concatenate(c) for c in zip(*lists, strict=True))
    return LabelErrors(reason=reason, detection=detection, ground_truth=truth, weight=weight)


_Rows = tuple[NDArray[np.int8], Integers, Integers, Floats]


def _of_detections(
    results: MatchResults, errors: Errors, ranked: Integers, reason: int, max_count: int
) -> _Rows:
    kind = TYPES.index("background" if reason == _MISSING_ANNOTATION else "classification")
    of_kind = errors.kind[ranked] == kind
    if reason == _WRONG_LABEL:  # its annotation may be of a class that is not selected
        of_kind &= errors.target[ranked] >= 0
    rows = ranked[of_kind][:max_count]
    return (
        np.full(len(rows), reason, np.int8),
        rows,
        errors.target[rows],
        results.boxes[0].score[rows],
    )


def _never_found(results: MatchResults, errors: Errors, max_count: int) -> _Rows:
    """Return the ground truths at which no detection aims, of well found classes first."""
    truths = results.boxes[1]
    matched = results.by_class(truths.label[results.matched])
    recall = matched / np.maximum(results.ground_truth_counts, 1)
    rows = np.flatnonzero(errors.missed)
    rows = rows[recall[truths.label[rows]] > 0.5]
    order = np.lexsort((rows, -truths.overlap_area[rows], -recall[truths.label[rows]]))[:max_count]
    rows = rows[order]
    return (
        np.full(len(rows), _NEVER_DETECTED, np.int8),
        np.full(len(rows), -1, np.int32),
        rows.astype(np.int32),
        recall[truths.label[rows]],
    )
