"""Recall and precision by size, aspect ratio, crowding and position; histograms.

Ground truths are grouped by their own box, detections by theirs: recall is of a group's ground
truths, precision of its detections.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import inf

import numpy as np
from numpy.typing import NDArray

from detap.analysis.match_results import Counts, MatchResults, ratios
from detap.core.matching import Boxes
from detap.evaluation.results import Result
from detap.records import Brief, Displayed
from detap.tables.detection import Flags, Floats

Values = Floats | Counts

SIZES = (0.0, 16.0, 32.0, 64.0, 96.0, 192.0, inf)
"""Square roots of areas, in pixels; COCO's small ends at 32, its medium at 96."""

RATIOS = (0.0, 1 / 3, 2 / 3, 3 / 2, 3.0, inf)
"""Width over height."""

COUNTS = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, inf)
"""Number of ground truths in the image, without ignored ones."""

POSITIONS = tuple(
    f"{row} {column}"
    for row in ("top", "middle", "bottom")
    for column in ("left", "center", "right")
)
"""Image region (3 x 3) of the box center."""

HISTOGRAM_BINS = 20


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class Breakdown(Brief):
    """B groups of a data set.

    Attributes
    ----------
    groups : tuple of B str
        Names of the groups: ``"16-32"`` includes 16, but not 32.
    ground_truths, matched : (B,) int64
        Number of ground truths and of matched ones, without ignored.
    detections, true_positives : (B,) int64
        Number of detections and of true positives, without ignored.
    """

    groups: tuple[str, ...]
    ground_truths: Counts
    matched: Counts
    detections: Counts
    true_positives: Counts

    @property
    def recall(self) -> Floats:
        """Recall of each group, (B,) float64; NaN without ground truths."""
        return ratios(self.matched, self.ground_truths)

    @property
    def precision(self) -> Floats:
        """Precision of each group, (B,) float64; NaN without detections."""
        return ratios(self.true_positives, self.detections)


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class Breakdowns(Displayed):
    """Breakdowns of a data set by four properties.

    Attributes
    ----------
    iou : float
    score_threshold : float or None
        Detections below it are left out.
    size, aspect_ratio, crowding : Breakdown
        By :data:`SIZES`, :data:`RATIOS` and :data:`COUNTS`.
    position : Breakdown or None
        By :data:`POSITIONS`, without boxes on images of unknown size; None if no size is known.
    """

    iou: float
    score_threshold: float | None
    size: Breakdown
    aspect_ratio: Breakdown
    crowding: Breakdown
    position: Breakdown | None


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class Histogram(Brief):
    """Number of detections in each of B bins; the last includes its upper edge.

    Attributes
    ----------
    edges : (B + 1,) float64
    true_positives, false_positives : (B,) int64
    """

    edges: Floats
    true_positives: Counts
    false_positives: Counts


def breakdowns(
    result: Result | MatchResults, *, score: float | None = None, iou: float | None = None
) -> Breakdowns:
    """Compute recall and precision by size, aspect ratio, crowding and position.

    Parameters
    ----------
    result : Result or MatchResults
    score : float, optional
        Detections below it are left out.
    iou : float, optional
        One of the protocol's thresholds; by default 0.5.

    Raises
    ------
    UsageError
        If the protocol does not match by score, or does not have the threshold.
    """
    results = MatchResults.of(result, iou)
    kept = results.scored
    if score is not None:
        kept = kept & (results.boxes[0].score >= score)
    parts = _Parts(results, kept)
    detections, ground_truths = parts.detections, parts.ground_truths
    everything = results if results.all_classes is None else results.all_classes[0]
    crowded = everything.boxes[1].image[everything.positive]
    crowd = np.bincount(crowded, minlength=results.images).astype(np.int64)
    edge = 1.0 if results.protocol.inclusive_pixels else 0.0
    return Breakdowns(
        iou=results.iou,
        score_threshold=score,
        size=parts.between(SIZES, _side(detections), _side(ground_truths)),
        aspect_ratio=parts.between(RATIOS, _ratio(detections, edge), _ratio(ground_truths, edge)),
        crowding=parts.between(COUNTS, crowd[detections.image], crowd[ground_truths.image]),
        position=parts.by_place(results.run.ground_truth.image_sizes),
    )


class _Parts:
    """Counts of detections and ground truths by group, without ignored ones."""

    def __init__(self, results: MatchResults, kept: Flags) -> None:
        detections, self.ground_truths = results.boxes
        rows = np.flatnonzero(kept)
        self.detections = Boxes._make(column[rows] for column in detections)
        self.right = results.true_positive[rows]
        self.positive = results.positive
        self.matched = np.zeros(len(self.positive), np.bool_)
        self.matched[results.matched_gt[rows[self.right]]] = True

    def between(self, edges: tuple[float, ...], detection: Values, truth: Values) -> Breakdown:
        inner = np.array(edges[1:-1])
        return self.counted(
            tuple(
                f"{low:.3g}-" + ("" if high == inf else f"{high:.3g}")
                for low, high in pairwise(edges)
            ),
            np.searchsorted(inner, detection, side="right"),
            np.searchsorted(inner, truth, side="right"),
        )

    def by_place(self, sizes: Floats | None) -> Breakdown | None:
        if sizes is None or np.isnan(sizes).any(axis=1).all():
            return None
        return self.counted(
            POSITIONS, _ninth(self.detections, sizes), _ninth(self.ground_truths, sizes)
        )

    def counted(
        self, groups: tuple[str, ...], detection: NDArray[np.int64], truth: NDArray[np.int64]
    ) -> Breakdown:
        def tally(group: NDArray[np.int64]) -> Counts:
            return np.bincount(group[group >= 0], minlength=len(groups))

        return Breakdown(
            groups=groups,
            ground_truths=tally(truth[self.positive]),
            matched=tally(truth[self.matched]),
            detections=tally(detection),
            true_positives=tally(detection[self.right]),
        )


def score_histogram(
    result: Result | MatchResults, *, bins: int = HISTOGRAM_BINS, iou: float | None = None
) -> Histogram:
    """Compute the histogram of the scores of true and false positives.

    The edges are from 0 to 1 if all scores are, else from the lowest to the highest score.
    Parameters and errors are those of :func:`breakdowns`.
    """
    results = MatchResults.of(result, iou)
    score = results.boxes[0].score
    judged = score[results.scored]
    low, high = (float(judged.min()), float(judged.max())) if len(judged) else (0.0, 1.0)
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    return _histogram(
        score[results.true_positive],
        score[results.false_positive],
        np.linspace(low, high, bins + 1),
    )


def iou_histogram(
    result: Result | MatchResults,
    *,
    score: float | None = None,
    bins: int = HISTOGRAM_BINS,
    iou: float | None = None,
) -> Histogram:
    """Compute the histogram of the IoU of true and false positives, from 0 to 1.

    For a true positive it is the IoU with its match, for a false positive the largest IoU with a
    ground truth of its class that is not ignored. Parameters and errors are those of
    :func:`breakdowns`.
    """
    results = MatchResults.of(result, iou)
    kept = results.scored if score is None else results.scored & (results.boxes[0].score >= score)
    right = np.flatnonzero(kept & results.true_positive)
    wrong = np.flatnonzero(kept & results.false_positive).astype(np.int32)
    near = results.ground_truth_index.nearest(results.boxes[0], wrong, threads=results.run.threads)
    return _histogram(
        results.matched_similarity(right),
        near.same_class_similarity,
        np.linspace(0.0, 1.0, bins + 1),
    )


def _histogram(right: Floats, wrong: Floats, edges: Floats) -> Histogram:
    def counts(values: Floats) -> Counts:
        # An IoU may round to more than 1.
        return np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]

    return Histogram(edges=edges, true_positives=counts(right), false_positives=counts(wrong))


def _side(boxes: Boxes) -> Floats:
    side: Floats = np.sqrt(np.maximum(boxes.overlap_area, 0.0))
    return side


def _ratio(boxes: Boxes, edge: float) -> Floats:
    sides = boxes.corners[:, 2:] - boxes.corners[:, :2] + edge
    out: Floats = np.full(len(sides), inf)
    np.divide(sides[:, 0], sides[:, 1], out=out, where=sides[:, 1] > 0)
    return out


def _ninth(boxes: Boxes, sizes: Floats) -> NDArray[np.int64]:
    """Return the image region of each box's center, or -1 without a size."""
    size = sizes[boxes.image]
    known: Flags = np.all(size > 0, axis=1)
    center = (boxes.corners[:, :2] + boxes.corners[:, 2:]) / 2
    third = np.zeros(center.shape)
    np.divide(3 * center, size, out=third, where=known[:, None])
    column, row = np.clip(np.floor(third), 0, 2).astype(np.int64).T
    return np.where(known, 3 * row + column, -1)
