"""Recall and precision by size, aspect ratio, crowding and position; histograms.

Ground truths are grouped by their own box, detections by theirs: recall is of a group's ground
truths, precision of its detections.
"""

from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf

import numpy as np
from numpy.typing import NDArray

from detap.analysis.match_results import Counts, MatchResults, ratios
from detap.core.arrays import Boxes
from detap.display import Brief, Displayed
from detap.evaluation.results import Result
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
    """B groups of a data set."""

    groups: tuple[str, ...]  # names of the groups: ``"16-32"`` includes 16, but not 32
    ground_truths: Counts  # (B,)
    matched: Counts  # (B,)
    detections: Counts  # (B,)
    true_positives: Counts  # (B,)

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
    """Breakdowns of a data set by four properties."""

    iou: float
    score_threshold: float | None  # detections below it are left out
    size: Breakdown
    aspect_ratio: Breakdown
    crowding: Breakdown
    position: Breakdown | None  # by `POSITIONS`, without boxes on images of unknown size


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class Histogram(Brief):
    """Number of detections in each of B bins; the last includes its upper edge."""

    edges: Floats  # (B + 1,)
    true_positives: Counts  # (B,)
    false_positives: Counts  # (B,)


def breakdowns(
    result: Result | MatchResults, *, score: float | None = None, iou: float | None = None
) -> Breakdowns:
    """Compute recall and precision by size, aspect ratio, crowding and position."""
    results = MatchResults.of(result, iou)
    parts = breakdowns_by_score(results, np.array([-inf if score is None else score]))

    def first(part: Breakdown) -> Breakdown:
        return replace(
            part,
            matched=part.matched[:, 0],
            detections=part.detections[:, 0],
            true_positives=part.true_positives[:, 0],
        )

    return Breakdowns(
        iou=results.iou,
        score_threshold=score,
        size=first(parts["size"]),
        aspect_ratio=first(parts["aspect_ratio"]),
        crowding=first(parts["crowding"]),
        position=first(parts["position"]) if "position" in parts else None,
    )


def breakdowns_by_score(results: MatchResults, scores: Floats) -> dict[str, Breakdown]:
    """Compute the breakdowns at each of some score thresholds."""
    parts = _Parts(results, scores)
    detections, ground_truths = parts.detections, parts.ground_truths
    everything = results if results.all_classes is None else results.all_classes[0]
    crowded = everything.boxes[1].image[everything.positive]
    crowd = np.bincount(crowded, minlength=results.images).astype(np.int64)
    edge = 1.0 if results.protocol.inclusive_pixels else 0.0
    position = parts.by_place(results.run.ground_truth.image_sizes)
    return {
        "size": parts.between(SIZES, _side(detections), _side(ground_truths)),
        "aspect_ratio": parts.between(
            RATIOS, _ratio(detections, edge), _ratio(ground_truths, edge)
        ),
        "crowding": parts.between(COUNTS, crowd[detections.image], crowd[ground_truths.image]),
        **({} if position is None else {"position": position}),
    }


class _Parts:
    """Counts of detections and ground truths by group, without ignored ones."""

    def __init__(self, results: MatchResults, scores: Floats) -> None:
        detections, self.ground_truths = results.boxes
        rows = np.flatnonzero(results.scored)
        self.detections = Boxes._make(column[rows] for column in detections)
        self.right = results.true_positive[rows]
        self.positive = results.positive
        self.steps = _Steps(detections.score[rows], scores)
        # The step of the matching detection of each ground truth.
        self.truth_steps = self.steps.none(len(self.positive))
        self.truth_steps.first[results.matched_gt[rows[self.right]]] = self.steps.first[self.right]

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
        counted, bins = truth[self.positive], len(groups)
        return Breakdown(
            groups=groups,
            ground_truths=np.bincount(counted[counted >= 0], minlength=bins),
            matched=self.truth_steps.counts(truth, bins),
            detections=self.steps.counts(detection, bins),
            true_positives=self.steps.counts(np.where(self.right, detection, -1), bins),
        )


class _Steps:
    """The first of n falling score thresholds that each of some scores reaches; n if none."""

    def __init__(self, score: Floats, scores: Floats) -> None:
        self.count = len(scores)
        self.first = np.searchsorted(-scores, -score)

    def none(self, count: int) -> "_Steps":
        """Return the steps of scores that reach no threshold."""
        steps = copy(self)
        steps.first = np.full(count, self.count)
        return steps

    def counts(self, group: NDArray[np.int64], bins: int) -> Counts:
        """Count the members of groups at each threshold, (bins, n) int64; -1 is no group."""
        cells = (group * (self.count + 1) + self.first)[group >= 0]
        counts = np.bincount(cells, minlength=bins * (self.count + 1))
        return np.cumsum(counts.reshape(bins, self.count + 1)[:, :-1], axis=1)


def score_histogram(
    result: Result | MatchResults, *, bins: int = HISTOGRAM_BINS, iou: float | None = None
) -> Histogram:
    """Compute the histogram of the scores of true and false positives."""
    # The edges are from 0 to 1 if all scores are, else from the lowest to the highest score.
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
    """Compute the histogram of the IoU of true and false positives, from 0 to 1."""
    # For a true positive it is the IoU with its match, for a false positive the largest IoU with a
    # ground truth of its class that is not ignored.
    results = MatchResults.of(result, iou)
    scores = np.array([-inf if score is None else score])
    histogram = iou_histogram_by_score(results, scores, bins=bins)
    return replace(
        histogram,
        true_positives=histogram.true_positives[:, 0],
        false_positives=histogram.false_positives[:, 0],
    )


def iou_histogram_by_score(
    results: MatchResults, scores: Floats, *, bins: int = HISTOGRAM_BINS
) -> Histogram:
    """Compute :func:`iou_histogram` at n descending score thresholds: counts are (B, n)."""
    score, edges = results.boxes[0].score, np.linspace(0.0, 1.0, bins + 1)
    right = np.flatnonzero(results.true_positive)
    wrong = np.flatnonzero(results.false_positive).astype(np.int32)
    near = results.ground_truth_index.nearest(results.boxes[0], wrong, threads=results.run.threads)

    def counts(rows: NDArray[np.integer], values: Floats) -> Counts:
        # An IoU may round to more than 1.
        group = np.searchsorted(edges, np.clip(values, 0.0, 1.0), side="right") - 1
        return _Steps(score[rows], scores).counts(np.minimum(group, bins - 1), bins)

    return Histogram(
        edges=edges,
        true_positives=counts(right, results.matched_similarity(right)),
        false_positives=counts(wrong, near.same_class_similarity),
    )


def _histogram(right: Floats, wrong: Floats, edges: Floats) -> Histogram:
    def counts(values: Floats) -> Counts:
        return np.histogram(values, edges)[0]

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
