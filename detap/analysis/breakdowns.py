"""Recall and precision by size, aspect ratio, crowding and position; histograms.

Ground truths are grouped by their own box, detections by theirs: recall is of a group's ground
truths, precision of its detections.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.analysis.match_results import Counts, MatchResults
from detap.core.arrays import Boxes
from detap.display import Brief, Displayed
from detap.evaluation.results import Result
from detap.metrics.metric import ratios
from detap.tables.detection import Flags, Floats

Values = Floats | Counts
Group = NDArray[np.int64]

SIZES = (0.0, 16.0, 32.0, 64.0, 96.0, 192.0, inf)
"""Square roots of areas, in pixels; COCO's small ends at 32, its medium at 96."""

RATIOS = (0.0, 1 / 3, 2 / 3, 3 / 2, 3.0, inf)  # width over height

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
    parts: dict[str, Any] = {"position": None}
    for name, part in breakdowns_by_score(results, _thresholds(score)).items():
        columns = ("matched", "detections", "true_positives")
        parts[name] = replace(part, **{column: getattr(part, column)[:, 0] for column in columns})
    return Breakdowns(iou=results.iou, score_threshold=score, **parts)


def breakdowns_by_score(results: MatchResults, scores: Floats) -> dict[str, Breakdown]:
    """Compute the breakdowns at each of n descending score thresholds: counts are (B, n)."""
    scored, right = results.scored, results.true_positive
    # The first threshold that each score reaches; n if none.
    step = np.searchsorted(-scores, -results.boxes[0].score)
    truth_step = np.full(len(results.positive), len(scores))  # of the matching detection
    truth_step[results.matched_gt[right]] = step[right]

    def part(groups: Sequence[str], of_detections: Group, of_truth: Group) -> Breakdown:
        bins = len(groups)
        counted = of_truth[results.positive & (of_truth >= 0)]
        return Breakdown(
            groups=tuple(groups),
            ground_truths=np.bincount(counted, minlength=bins),
            matched=_counts(of_truth, truth_step, bins, len(scores)),
            detections=_counts(of_detections[scored], step[scored], bins, len(scores)),
            true_positives=_counts(of_detections[right], step[right], bins, len(scores)),
        )

    def between(edges: Sequence[float], of_detections: Values, of_truth: Values) -> Breakdown:
        names = [
            f"{low:.3g}-{'' if high == inf else f'{high:.3g}'}" for low, high in pairwise(edges)
        ]
        values = of_detections, of_truth
        return part(names, *(np.searchsorted(edges[1:-1], each, side="right") for each in values))

    everything = results if results.all_classes is None else results.all_classes[0]
    crowded = everything.boxes[1].image[everything.positive]
    crowd = np.bincount(crowded, minlength=results.images).astype(np.int64)
    edge = 1.0 if results.protocol.inclusive_pixels else 0.0
    parts = {
        "size": between(
            SIZES, *(np.sqrt(np.maximum(boxes.overlap_area, 0.0)) for boxes in results.boxes)
        ),
        "aspect_ratio": between(RATIOS, *(_ratio(boxes, edge) for boxes in results.boxes)),
        "crowding": between(COUNTS, *(crowd[boxes.image] for boxes in results.boxes)),
    }
    sizes = results.run.ground_truth.image_sizes
    if sizes is not None and not np.isnan(sizes).any(axis=1).all():
        parts["position"] = part(POSITIONS, *(_ninth(boxes, sizes) for boxes in results.boxes))
    return parts


def _thresholds(score: float | None) -> Floats:
    return np.array([-inf if score is None else score])


def _counts(group: Group, step: Group, bins: int, steps: int) -> Counts:
    """Count the members of groups at each threshold, (bins, steps) int64; -1 is no group."""
    cells = (group * (steps + 1) + step)[group >= 0]
    counts = np.bincount(cells, minlength=bins * (steps + 1))
    return np.cumsum(counts.reshape(bins, steps + 1)[:, :-1], axis=1)


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
    edges = np.linspace(low, high, bins + 1)
    right, wrong = (
        np.histogram(score[rows], edges)[0]
        for rows in (results.true_positive, results.false_positive)
    )
    return Histogram(edges=edges, true_positives=right, false_positives=wrong)


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
    histogram = iou_histogram_by_score(results, _thresholds(score), bins=bins)
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
        steps = np.searchsorted(-scores, -score[rows])
        return _counts(np.minimum(group, bins - 1), steps, bins, len(scores))

    return Histogram(
        edges=edges,
        true_positives=counts(right, results.matched_similarity[right]),
        false_positives=counts(wrong, near.same_class_similarity),
    )


def _ratio(boxes: Boxes, edge: float) -> Floats:
    sides = boxes.corners[:, 2:] - boxes.corners[:, :2] + edge
    out: Floats = np.full(len(sides), inf)
    np.divide(sides[:, 0], sides[:, 1], out=out, where=sides[:, 1] > 0)
    return out


def _ninth(boxes: Boxes, sizes: Floats) -> Group:
    """Return the image region of each box's center, or -1 without a size."""
    size = sizes[boxes.image]
    known: Flags = np.all(size > 0, axis=1)
    center = (boxes.corners[:, :2] + boxes.corners[:, 2:]) / 2
    third = np.zeros(center.shape)
    np.divide(3 * center, size, out=third, where=known[:, None])
    column, row = np.clip(np.floor(third), 0, 2).astype(np.int64).T
    return np.where(known, 3 * row + column, -1)
