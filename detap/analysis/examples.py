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
class ImageErrorCounts:
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
    results: MatchResults, *, score: float | None = None, most: int = 20
) -> WorstImages:
    """Return the images with the most false positives and false negatives, ties in their order.

    Parameters
    ----------
    results : MatchResults
    score : float, optional
        Detections below it are left out: what they found counts as not found.
    most : int
        How many images at most.
    """
    detections, truths = results.boxes
    kept = (
        np.ones(len(results.matched_gt), np.bool_) if score is None else detections.score >= score
    )
    found = np.zeros(len(results.positive), np.bool_)
    found[results.matched_gt[kept & results.true]] = True
    wrong = np.bincount(detections.image[kept & results.false], minlength=results.images)
    lost = np.bincount(truths.image[results.positive & ~found], minlength=results.images)
    order = np.argsort(-(wrong + lost), kind="stable")[:most]
    order = order[(wrong + lost)[order] > 0]
    return WorstImages(
        score_threshold=score,
        image=order.astype(np.int32),
        false_positives=wrong[order],
        false_negatives=lost[order],
    )


def confident_mistakes(
    results: MatchResults, errors: Errors, *, most: int = 20
) -> ImageErrorCounts:
    """Return the false positives of the highest scores.

    Parameters
    ----------
    results : MatchResults
    errors : Errors
        Of this outcome, in the convention of the protocol.
    most : int
        How many at most.
    """
    ranked = results.by_score
    rows = ranked[results.false[ranked]][:most]
    return ImageErrorCounts(
        detection=rows,
        kind=errors.kind[rows],
        target=errors.target[rows],
        similarity=errors.similarity[rows],
    )


def label_errors(
    results: MatchResults, errors: Errors, *, score: float | None = None, most: int = 20
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
    most : int
        How many for each reason at most.
    """
    if score is None:
        # The median, without numpy.median, which imports all of numpy.ma.
        right = np.sort(results.boxes[0].score[results.true])
        middle = right[[(len(right) - 1) // 2, len(right) // 2]] if len(right) else np.inf
        score = float(np.mean(middle))
    ranked = results.by_score
    ranked = ranked[results.boxes[0].score[ranked] >= score]
    lists = [
        _of_detections(results, errors, ranked, _MISSING_ANNOTATION, most),
        _of_detections(results, errors, ranked, _WRONG_LABEL, most),
        _never_found(results, errors, most),
    ]
    reason, detection, truth, weight = (np.concatenate(c) for c in zip(*lists, strict=True))
    return LabelErrors(reason=reason, detection=detection, ground_truth=truth, weight=weight)


_Rows = tuple[NDArray[np.int8], Integers, Integers, Floats]


def _of_detections(
    results: MatchResults, errors: Errors, ranked: Integers, reason: int, most: int
) -> _Rows:
    kind = TYPES.index("background" if reason == _MISSING_ANNOTATION else "classification")
    here = errors.kind[ranked] == kind
    if reason == _WRONG_LABEL:  # its annotation may be of a class that is not selected
        here &= errors.target[ranked] >= 0
    rows = ranked[here][:most]
    return (
        np.full(len(rows), reason, np.int8),
        rows,
        errors.target[rows],
        results.boxes[0].score[rows],
    )


def _never_found(results: MatchResults, errors: Errors, most: int) -> _Rows:
    """Return the ground truths at which no detection aims, of well found classes first."""
    truths = results.boxes[1]
    found = results.by_class(truths.label[results.matched])
    recall = found / np.maximum(results.ground_truth_counts, 1)
    rows = np.flatnonzero(errors.missed)
    rows = rows[recall[truths.label[rows]] > 0.5]
    order = np.lexsort((rows, -truths.overlap_area[rows], -recall[truths.label[rows]]))[:most]
    rows = rows[order]
    return (
        np.full(len(rows), _NEVER_DETECTED, np.int8),
        np.full(len(rows), -1, np.int32),
        rows.astype(np.int32),
        recall[truths.label[rows]],
    )
