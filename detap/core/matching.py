"""Matching detections to ground truths, and the counts and curves that follow.

Axes: T thresholds, R recall levels, K classes, A area ranges, M detection limits, N detections,
G ground truths. Undefined is NaN.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core import _matching
from detap.core.threads import share, thread_count

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]

UNLIMITED = np.iinfo(np.int64).max


class Boxes(NamedTuple):
    """Columns of boxes, all of one length.

    Attributes
    ----------
    image, label : int32
        Dense numbers from 0.
    corners : (n, 4) float64
        x1, y1, x2, y2.
    overlap_area : float64
        The area that enters the union.
    area : float64
        The area that decides the range.
    score : float64
        Detections only; empty for ground truths.
    """

    image: Integers
    label: Integers
    corners: Floats
    overlap_area: Floats
    area: Floats
    score: Floats


class Rules(NamedTuple):
    """How to match and what to compute; :class:`detap.protocols.Protocol` explains each."""

    thresholds: tuple[float, ...]
    strict: bool
    best_free: bool
    last_of_equal: bool
    area_ranges: tuple[tuple[float, float], ...]
    limits: tuple[int | None, ...]
    ties_by_image: bool
    levels: tuple[float, ...]
    one_by_one: bool
    guard: float
    pixel_edge: bool


class Scores(NamedTuple):
    """What scoring gives.

    Attributes
    ----------
    precision : (M, A, T, R, K) float64
        Interpolated; M is 1, the largest limit, unless all limits were asked for.
    average : (T, K, A) float64
        Average precision at the largest limit.
    recall : (T, K, A, M) float64
        Final recall.
    positives : (A, K) int64
        Ground truths that count.
    counts : (7, K) int64
        At the first threshold and area range and the largest limit: ground truths that count,
        neutral ones, all detections, true positives, false positives, duplicates among those,
        and detections within the limit.
    match_truth : (A, T, N) int32
        The row of the ground truth matched, or -1. Empty unless matches were asked for.
    match_neutral : (A, T, N) bool
        Whether the detection counts neither way.
    match_counted : (N,) bool
        Whether it is within the largest limit.
    match_overlap : (N,) float64
        Its largest overlap with a ground truth of its class and image.
    """

    precision: Floats
    average: Floats
    recall: Floats
    positives: NDArray[np.int64]
    counts: NDArray[np.int64]
    match_truth: Integers
    match_neutral: NDArray[np.bool_]
    match_counted: NDArray[np.bool_]
    match_overlap: Floats


def detection_limits(limits: tuple[int | None, ...]) -> NDArray[np.int64]:
    """Return the limits as an array, the absent one as a number that no count reaches."""
    return np.array([UNLIMITED if limit is None else limit for limit in limits], np.int64)


def score(
    detections: Boxes,
    truths: Boxes,
    *,
    neutral: NDArray[np.bool_],
    absorbing: NDArray[np.bool_],
    void: NDArray[np.bool_],
    images: int,
    classes: int,
    rules: Rules,
    threads: int | None = None,
    all_limits: bool = False,
    matches: bool = False,
    rank: Integers | None = None,
) -> Scores:
    """Match detections to ground truths, class by class, and score them.

    Parameters
    ----------
    detections, truths : Boxes
        N and G rows, in file order.
    neutral, absorbing : (G,) bool
        Ground truths that need not be found; and those that take any number of detections.
    void : (G,) bool
        Ground truths that can be taken but never found: a match with one is none.
    images, classes : int
        How many of each there are.
    rules : Rules
        How to do it.
    threads : int, optional
        The result does not depend on it.
    all_limits : bool
        Whether precision is wanted at every detection limit, not only the largest.
    matches : bool
        Whether to keep the matches.
    rank : (N,) int32, optional
        The place of each detection, from 0, that the limits apply to; by default its place among
        those of its class and image.

    Returns
    -------
    Scores
    """
    n = len(detections.image)
    t_count, a_count = len(rules.thresholds), len(rules.area_ranges)
    shape = (len(rules.limits) if all_limits else 1, a_count, t_count, len(rules.levels), classes)
    kept = (a_count, t_count, n) if matches else (0, 0, 0)
    scores = Scores(
        precision=np.full(shape, np.nan),
        average=np.full((t_count, classes, a_count), np.nan),
        recall=np.full((t_count, classes, a_count, len(rules.limits)), np.nan),
        positives=np.zeros((a_count, classes), np.int64),
        counts=np.zeros((7, classes), np.int64),
        match_truth=np.full(kept, -1, np.int32),
        match_neutral=np.zeros(kept, np.bool_),
        match_counted=np.zeros(kept[2], np.bool_),
        match_overlap=np.zeros(kept[2]),
    )
    scorer = _matching.Scorer(
        dt_image=detections.image,
        dt_label=detections.label,
        dt_rank=np.zeros(0, np.int32) if rank is None else rank,
        dt_score=detections.score,
        dt_corners=detections.corners,
        dt_overlap_area=detections.overlap_area,
        dt_area=detections.area,
        gt_image=truths.image,
        gt_label=truths.label,
        gt_corners=truths.corners,
        gt_overlap_area=truths.overlap_area,
        gt_area=truths.area,
        gt_neutral=neutral.view(np.uint8),
        gt_absorbing=absorbing.view(np.uint8),
        gt_void=void.view(np.uint8),
        images=images,
        classes=classes,
        thresholds=np.array(rules.thresholds, np.float64),
        strict=rules.strict,
        best_free=rules.best_free,
        last_of_equal=rules.last_of_equal,
        area_low=np.array([low for low, _ in rules.area_ranges], np.float64),
        area_high=np.array([high for _, high in rules.area_ranges], np.float64),
        limits=detection_limits(rules.limits),
        ties_by_image=rules.ties_by_image,
        levels=np.array(rules.levels, np.float64),
        integrate=not rules.levels,
        one_by_one=rules.one_by_one,
        guard=rules.guard,
        edge=1.0 if rules.pixel_edge else 0.0,
        all_limits=all_limits,
        precision=scores.precision,
        average=scores.average,
        recall=scores.recall,
        positives=scores.positives,
        counts=scores.counts,
        matches=(
            scores.match_truth,
            scores.match_neutral.view(np.uint8),
            scores.match_counted.view(np.uint8),
            scores.match_overlap,
        )
        if matches
        else None,
    )
    wanted = threads or thread_count(n + len(truths.image))
    share(scorer.work, min(wanted, max(classes, 1)))
    return scores
