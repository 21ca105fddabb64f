"""Score calibration: confidence against accuracy in bins of the score.

Detections are grouped by score into B bins of equal width, [k / B, (k + 1) / B), the last one
closed. The gap of a bin is its mean score minus its mean value, which is 1 for a true positive and
0 for a false positive. The expected calibration error (ECE) is the mean absolute gap, weighted by
count; the maximum calibration error (MCE) is the largest. Ignored detections are left out.

In the localization-aware error (LaECE) the value of a true positive is its IoU, and the error is
the mean over classes.

References
----------
Naeini, Cooper and Hauskrecht, Obtaining Well Calibrated Probabilities Using Bayesian Binning, AAAI
2015; Oksuz, Joy and Dokania, Towards Building Self-Aware Object Detectors via Reliable Uncertainty
Quantification and Calibration, CVPR 2023.
"""

from dataclasses import dataclass

import numpy as np

from detap.analysis.match_results import Counts, MatchResults
from detap.core.curves import mean_of_defined
from detap.display import Brief, Displayed
from detap.errors import UsageError
from detap.evaluation.results import Result
from detap.tables.detection import Flags, Floats, Integers

BINS = 10
LOCALIZED_BINS = 25


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class Reliability(Brief):
    """Detections in B score bins; the means of an empty bin are NaN."""

    edges: Floats  # (B + 1,) a bin includes its lower edge; the last includes both
    count: Counts  # (B,)
    mean_score: Floats  # (B,)
    mean_value: Floats  # (B,)

    @property
    def gap(self) -> Floats:
        """Mean score minus mean value, (B,) float64."""
        return self.mean_score - self.mean_value

    @property
    def expected_error(self) -> float:
        """The mean absolute gap; NaN without detections."""
        if not self.count.sum():
            return float("nan")
        return float(np.nansum(np.abs(self.gap) * self.count) / self.count.sum())

    @property
    def largest_error(self) -> float:
        """The largest absolute gap; NaN without detections."""
        return float(np.nanmax(np.abs(self.gap))) if self.count.sum() else float("nan")


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class Calibration(Displayed):
    """Score calibration of a detector with K classes."""

    iou: float
    classes: tuple[str, ...]
    overall: Reliability  # the value is 1 for a true positive, 0 for a false one
    by_class: tuple[Reliability, ...]  # the same for each class
    localized: tuple[Reliability, ...]  # with its own bins

    @property
    def expected_error(self) -> float:
        """The expected calibration error, ECE."""
        return self.overall.expected_error

    @property
    def largest_error(self) -> float:
        """The maximum calibration error, MCE."""
        return self.overall.largest_error

    @property
    def localized_error(self) -> float:
        """The localization-aware ECE, LaECE: the mean over classes with detections."""
        return mean_of_defined(np.array([entry.expected_error for entry in self.localized]))


def calibration(
    result: Result | MatchResults,
    *,
    bins: int = BINS,
    localized_bins: int = LOCALIZED_BINS,
    iou: float | None = None,  # one of the protocol's thresholds; by default 0.5
) -> Calibration:
    """Compute the calibration errors of a detector's scores."""
    if min(bins, localized_bins) < 1:
        raise UsageError(f"{min(bins, localized_bins)} bins; calibration takes at least 1")
    results = MatchResults.of(result, iou)
    detections = results.boxes[0]
    rows = results.match_table.ranking.rows
    rows = rows[results.scored[rows]]
    score = detections.score[rows]
    outside = score[(score < 0) | (score > 1)]
    if len(outside):
        raise UsageError(
            f"{len(outside)} scores lie outside [0, 1], such as {float(outside[0])!r}; calibration "
            "requires probabilities"
        )
    right = results.true_positive[rows]
    overlap = np.where(right, results.matched_similarity[rows], 0.0)
    label, classes = detections.label[rows], len(results.classes)
    return Calibration(
        iou=results.iou,
        classes=results.classes,
        overall=_reliability(score, right, np.zeros_like(label), 1, bins)[0],
        by_class=_reliability(score, right, label, classes, bins),
        localized=_reliability(score, overlap, label, classes, localized_bins),
    )


def _reliability(
    score: Floats,
    value: Floats | Flags,
    label: Integers,
    classes: int,
    bins: int,
) -> tuple[Reliability, ...]:
    """Return the reliability of each class."""
    edges = np.arange(bins + 1) / bins
    bin_index = np.minimum(np.searchsorted(edges, score, side="right") - 1, bins - 1)
    cell = label.astype(np.int64) * bins + bin_index

    def summed(weights: Floats | Flags) -> Floats:
        sums = np.bincount(cell, weights=weights, minlength=classes * bins)
        return sums.astype(np.float64).reshape(classes, bins)

    count = summed(np.ones(len(cell))).astype(np.int64)
    nonzero = np.where(count > 0, count, np.nan)
    means = zip(count, summed(score) / nonzero, summed(value) / nonzero, strict=True)
    return tuple(
        Reliability(edges=edges, count=n, mean_score=mean_score, mean_value=mean_value)
        for n, mean_score, mean_value in means
    )
