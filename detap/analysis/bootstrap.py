"""Uncertainty of metrics: paired bootstrap over the images of the test set.

See docs/statistics.md for the method, its assumptions and its measured coverage.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import atan, cos, nan, pi, sin, sqrt, tan
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from detap import metrics
from detap.core.resampling import Weights, draw_weights, leave_out
from detap.decimals import ROUNDING, snap
from detap.display import Brief
from detap.errors import UsageError
from detap.evaluation.results import Result
from detap.tables.columns import MOST_ROWS, check_threads
from detap.tables.detection import Floats

__all__ = [
    "Draws",
    "Resampled",
    "Weights",
    "draw_weights",
    "leave_out",
    "paired_resamples",
    "resampled",
    "standard_error",
]


class Draws(NamedTuple):
    """A metric of a detector, or a difference, in B resamples of the images."""

    drawn: Floats = np.zeros(0)  # (B,), or (K, B) by class; empty without an interval
    left_out: Floats = np.zeros(0)  # without one part of the images, for each (jackknife)

    def __sub__(self, other: "Draws") -> "Draws":
        """Return the difference in each resample."""
        return Draws(self.drawn - other.drawn, self.left_out - other.left_out)

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return the expanded percentile interval; NaN if no value is defined."""
        # The ends are the quantiles tail and 1 - tail, interpolated linearly; tail is
        # (1 - confidence) / 2, or with `left_out` the normal tail beyond the quantile of Student's
        # t, with the effective number of influential image parts as degrees of freedom (Hesterberg,
        # What Teachers Should Know About the Bootstrap, The American Statistician 69, 2015, section
        # 5.3). An end within rounding of 0 is 0.
        defined = self.drawn[~np.isnan(self.drawn)]
        if not len(defined):
            return nan, nan
        tail = (1 - confidence) / 2
        count = differing(self.left_out)
        if count is not None:
            tail = expanded(tail, max(1, round(count)))
        low, high = np.quantile(defined, [tail, 1 - tail]).tolist()
        return snap(low, 0.0), snap(high, 0.0)

    @property
    def beyond(self) -> int:
        """Number of differences at or beyond 0, on the side with fewer."""
        drawn = self.drawn
        return int(min(np.count_nonzero(drawn <= ROUNDING), np.count_nonzero(drawn >= -ROUNDING)))

    def p_value(self) -> float:
        """Return the two-sided p-value of a difference; NaN if no value is defined."""
        # Twice the tail a = (1 + number of resamples at or beyond 0) / (B + 1) (Davison and
        # Hinkley, Bootstrap Methods and Their Application, 1997, section 4.2), with the tail of
        # Student's t in place of the normal one, as for the interval: 1 - p is the level of the
        # interval that ends at 0 (Efron and Tibshirani, 1993, section 15.4).
        defined = np.count_nonzero(~np.isnan(self.drawn))
        if not defined:
            return nan
        tail, count = (1 + self.beyond) / (1 + defined), differing(self.left_out)
        if count is None or 2 * tail >= 1:
            return min(1.0, 2 * tail)
        freedom = max(1, round(count))
        distance = -NormalDist().inv_cdf(tail)
        # Rounded: the last bits depend on the platform.
        return round(1 - _student(atan(distance / sqrt(freedom)), freedom), 9)


@dataclass(frozen=True, repr=False, slots=True, eq=False)
class Resampled(Brief):
    """Metrics of one detector in B resamples of its images."""

    overall: dict[str, Draws]  # mean over the classes with ground truth in the resample
    by_class: dict[str, Draws]  # NaN for classes without ground truth in the resample

    def of(self, name: str, label: int | None = None) -> Draws:
        """Return a metric, or that of a class."""
        if label is None:
            return self.overall[name]
        return Draws(*(part[label] for part in self.by_class[name]))


def resampled(
    result: Result,
    weights: Weights,
    names: Sequence[str],
    *,
    threads: int | None = None,
) -> Resampled:
    """Compute metrics of a result in each resample of its images, by default in its threads."""
    threads = result._run.threads if threads is None else threads
    check_threads(threads)
    protocol = result.protocol
    protocol.require_score_matching(
        "use another --protocol, or omit --confidence and --detectable-drop"
    )
    metric_specs = [metrics.named_of_class(protocol, name) for name in names]
    match_table = result.match_table
    for image in (match_table.image, match_table.truth_image):  # int32 counts the rows
        if len(image) * weights.max_weight <= MOST_ROWS:
            continue
        per_image = np.bincount(image, minlength=match_table.images)
        heaviest = max(int((per_image @ block).max()) for block in weights.blocks)
        if heaviest > MOST_ROWS:
            raise UsageError(
                f"a resample of the images holds {heaviest} boxes; at most {MOST_ROWS} can be "
                "counted; omit --confidence"
            )
    tables_by_index: dict[int, Floats] = {}
    # AP and AR are resampled in one pass.
    for function in dict.fromkeys(type(spec.metric).resample for spec in metric_specs):
        indices = [i for i, m in enumerate(metric_specs) if type(m.metric).resample is function]
        specs = [metric_specs[i] for i in indices]
        tables = specs[0].metric.resample(result, weights, specs, threads)
        tables_by_index |= zip(indices, tables, strict=True)
    values = [tables_by_index[i] for i in range(len(metric_specs))]
    for spec, table in zip(metric_specs, values, strict=True):
        if spec.group:
            table[~result.in_group(spec.group)] = np.nan
    means = [
        spec.metric.resample_overall(result, weights, spec, table)
        for spec, table in zip(metric_specs, values, strict=True)
    ]
    overall, by_class = (
        {
            name: Draws(table[..., : weights.resamples], table[..., weights.resamples :])
            for name, table in zip(names, tables, strict=True)
        }
        for tables in (means, values)
    )
    return Resampled(overall, by_class)


def paired_resamples(
    first: Result,
    second: Result,
    *,
    resamples: int = 1000,
    seed: int = 0,
    threads: int | None = None,
) -> tuple[Resampled, ...]:
    """Compute the summaries of two results in the same resamples of images."""
    names = [s.name for s in metrics.summary(first.protocol) if s.metric.has_intervals]
    weights = leave_out(draw_weights(max(len(first.images), 1), resamples, seed))
    return tuple(resampled(result, weights, names, threads=threads) for result in (first, second))


def standard_error(spread: Floats) -> float:
    """Return the standard deviation of resamples; NaN if all are equal."""
    defined = spread[~np.isnan(spread)]
    if len(defined) < 2:
        return nan
    error = float(np.std(defined, ddof=1))
    return error if error > ROUNDING else nan


def differing(left_out: Floats) -> float | None:
    """Return the effective number of image parts with influence; None without any."""
    # For the influences u of the parts on a metric, it is sum(u**2)**2 / sum(u**4): k if k parts
    # have equal influence and the others none.
    defined = left_out[~np.isnan(left_out)]
    if not len(defined):
        return None
    influence = defined - defined.mean()
    influence[np.abs(influence) <= ROUNDING] = 0
    fourth = float((influence**4).sum())
    return float((influence**2).sum()) ** 2 / fourth if fourth else None


@cache
def expanded(tail: float, freedom: int) -> float:
    """Return the normal tail beyond the quantile of Student's t for a tail."""
    low, high = 0.0, pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        if (1 - _student(angle, freedom)) / 2 > tail:
            low = angle
        else:
            high = angle
    # Rounded: the last bits depend on the platform.
    return round(NormalDist().cdf(-sqrt(freedom) * tan(low)), 9)


def _student(angle: float, freedom: int) -> float:
    """Return the probability of Student's t between -t and t, for ``angle = atan(t / sqrt(n))``."""
    # Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
    odd = freedom % 2
    term, total = cos(angle) if odd else 1.0, 0.0
    for k in range(2 + odd, freedom + 1, 2):
        total += term
        term *= cos(angle) ** 2 * (k - 1) / k
    inside = sin(angle) * total
    return 2 * (angle + inside) / pi if odd else inside
