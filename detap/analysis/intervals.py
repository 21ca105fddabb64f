"""Confidence intervals of the metrics of one detector: bootstrap over images.

The images are drawn as in :mod:`detap.analysis.bootstrap`; see docs/statistics.md.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan, nan

import numpy as np

from detap import metrics
from detap.analysis.bootstrap import Resampled, draw_weights, leave_out, resampled, standard_error
from detap.display import Displayed
from detap.errors import Note, UsageError
from detap.evaluation.results import Result
from detap.metrics.metric import MetricSpec
from detap.protocols.summary import DEFAULT_MIN_GROUND_TRUTHS
from detap.tables.detection import Floats

Interval = tuple[float, float]

_MOST_BIAS = 0.25
"""In standard errors; a smaller bias can be ignored (Efron and Tibshirani, 1993, chapter 10)."""


@dataclass(frozen=True, repr=False, slots=True, eq=False)
class MetricIntervals(Displayed):
    """Confidence intervals of the metrics of a result."""

    result: Result
    summary: dict[str, Interval]  # NaN without an interval
    by_class: dict[str, Floats]  # the same for each class, in the order of ``result.by_class``
    confidence: float
    resamples: int
    seed: int
    min_ground_truths: int  # metrics of fewer ground truths have no interval
    others: tuple[dict[str, Interval], dict[str, Floats]]  # requested ones that are not listed
    notes: tuple[Note, ...]  # the metrics of the summary without an interval

    def __repr__(self) -> str:
        (name, (low, high)), *_ = self.summary.items()
        return f"MetricIntervals({self.confidence:g}, {name}=[{low:.4f}, {high:.4f}])"

    def of(self, name: str, label: int | None = None) -> Interval:
        """Return the interval of a metric, or of a class's; NaN without one."""
        overall, by_class = self.others
        if label is None:
            return self.summary.get(name) or overall.get(name) or (nan, nan)
        table = self.by_class.get(name, by_class.get(name))
        if table is None or label >= len(table):  # a class of the baseline alone
            return nan, nan
        low, high = table[label].tolist()
        return low, high


def metric_intervals(
    result: Result,
    *,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    min_ground_truths: int = DEFAULT_MIN_GROUND_TRUTHS,
    threads: int | None = None,
    others: Iterable[MetricSpec] = (),
) -> MetricIntervals:
    """Compute confidence intervals of all metrics of a result, overall and by class."""
    check_arguments(confidence, resamples, seed)
    listed, columns = metrics.summary(result.protocol), metrics.columns(result.protocol)
    others = tuple(others)
    specs = {spec.name: spec for spec in (*listed, *columns, *others) if spec.metric.has_intervals}
    weights = leave_out(draw_weights(max(len(result.images), 1), resamples, seed))
    values = resampled(result, weights, list(specs), threads=threads)
    counts = {name: result.ground_truth_counts_of(spec) for name, spec in specs.items()}

    def overall(spec: MetricSpec) -> Interval:
        enough = spec.name in specs and counts[spec.name].sum() >= min_ground_truths
        return values.of(spec.name).interval(confidence) if enough else (nan, nan)

    def by_class(spec: MetricSpec) -> Floats:
        table = np.full((len(result.classes), 2), nan)
        if spec.name in specs:
            for label in np.flatnonzero(counts[spec.name] >= min_ground_truths).tolist():
                table[label] = values.of(spec.name, label).interval(confidence)
        return table

    summary = {spec.name: overall(spec) for spec in listed}
    totals = {name: int(count.sum()) for name, count in counts.items()}
    notes = interval_notes(list(summary), totals, min_ground_truths)
    return MetricIntervals(
        result,
        summary,
        {spec.class_name: by_class(spec) for spec in columns},
        confidence,
        resamples,
        seed,
        min_ground_truths,
        (
            {spec.name: overall(spec) for spec in others if spec.metric.scope != "class"},
            {spec.class_name: by_class(spec) for spec in others},
        ),
        (*notes, *_bias_notes(result, summary, values)),
    )


def check_arguments(confidence: float, resamples: int, seed: int) -> None:
    """Raise UsageError if an argument is out of range."""
    if not 0 < confidence < 1:
        raise UsageError(f"confidence {confidence!r} is outside (0, 1)")
    if resamples < 1:
        raise UsageError(f"resamples {resamples!r} is less than 1")
    if seed < 0:
        raise UsageError(f"seed {seed!r} is less than 0")


def interval_notes(
    names: Sequence[str], counts: dict[str, int], min_ground_truths: int
) -> tuple[Note, ...]:
    """Return notes on metrics without an interval."""
    without = [name for name in names if name not in counts]
    few = [name for name in names if 0 < counts.get(name, 0) < min_ground_truths]
    too_few = f"fewer than {min_ground_truths} ground truths are counted (--min-ground-truths)"
    reasons = {
        "not-resampled": (without, "cannot be resampled"),
        "too-few-for-interval": (few, too_few),
    }
    text = "{}: {}, so that there is no interval"
    return tuple(
        Note(code, text.format(", ".join(group), reason), len(group), severity="info")
        for code, (group, reason) in reasons.items()
        if group
    )


def _bias_notes(
    result: Result, summary: dict[str, Interval], values: Resampled
) -> tuple[Note, ...]:
    """Return a note on metrics whose mean over the resamples is not near their value."""
    # A class on few images has a higher AP in resamples, which repeat images.
    biases = {
        name: float(np.nanmean(values.of(name).drawn)) - result.summary[name]
        for name, (low, _) in summary.items()
        if not isnan(low)
    }
    biased = [
        name
        for name, bias in biases.items()
        if abs(bias) > _MOST_BIAS * standard_error(values.of(name).drawn)
    ]
    if not biased:
        return ()
    text = (
        f"{', '.join(biased)}: mean of the resamples far from the value ({biased[0]}: "
        f"{biases[biased[0]]:+.4f}), so that the interval is shifted; use more images per class"
    )
    return (Note("biased-interval", text, len(biased), severity="info"),)
