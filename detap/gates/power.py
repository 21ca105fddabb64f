"""Minimum detectable drops of metrics with gates, and warnings about underpowered gates."""

from collections.abc import Collection, Iterator, Sequence
from math import nan
from typing import ClassVar

from detap.analysis.bootstrap import Draws, standard_error
from detap.analysis.power import (
    LEVEL,
    Criterion,
    DetectableDrop,
    PowerAnalysis,
    ThresholdMargin,
    images_needed,
)
from detap.errors import Note
from detap.gates.checks import Gate, Interval
from detap.gates.config import CHANGES, GateConfig
from detap.gates.metric_names import MetricName, Metrics, resolve


class Resamples:
    """Metrics in resamples of images or queries, and their drops from a baseline."""

    unit: ClassVar[str]
    """The resampled unit: ``"image"`` or ``"query"``."""

    def __init__(self, config: GateConfig, *, paired: bool) -> None:
        self.confidence = LEVEL if config.confidence is None else config.confidence
        self.paired = paired

    def draws(self, name: MetricName, *, earlier: bool = False) -> Draws | None:
        """Return a metric, or that of the baseline; None if it cannot be resampled."""
        raise NotImplementedError

    def count(self, tag: str | None) -> int:
        """Return the number of units, in a slice or overall."""
        raise NotImplementedError

    def drops(self, name: MetricName) -> Draws | None:
        """Return the drop of a metric; None if it has none."""
        before, after = self.draws(name, earlier=True), self.draws(name)
        return None if before is None or after is None else before - after

    def interval(self, name: MetricName) -> Interval:
        """Return the confidence interval of the drop of a metric."""
        drops = self.drops(name)
        return (nan, nan) if drops is None else drops.interval(self.confidence)


def power_analysis(
    gates: Sequence[Gate], metrics: Metrics, resampled: Resamples, config: GateConfig
) -> PowerAnalysis:
    """Compute the minimum detectable drops of metrics with gates, or of the primary metric."""
    criterion = Criterion(resampled.confidence, resampled.paired, config.detectable_drop)
    by_interval = resampled.paired and config.confidence is not None

    def detectable(name: MetricName, limit: float | None) -> Iterator[DetectableDrop]:
        count = name.ground_truths(metrics)
        if count is not None and count < config.min_ground_truths:
            return
        draws = resampled.drops(name) if resampled.paired else resampled.draws(name)
        if draws is not None:
            yield DetectableDrop.of(
                name.text,
                draws.drawn,
                resampled.count(name.slice),
                criterion,
                limit=limit,
                by_interval=by_interval,
                ground_truths=None if name.row is None else count,
            )

    limits: dict[MetricName, float | None] = {}
    margins = []  # of minimums and maximums whose metric can be resampled
    for gate in gates:
        bounds = (limits.get(gate.metric), gate.bound)
        limits[gate.metric] = min((b for b in bounds if b is not None), default=None)
        draws = None if gate.kind in CHANGES else resampled.draws(gate.metric)
        if draws is not None:
            error = standard_error(draws.drawn)
            margin = criterion.margin(error)
            margins.append(ThresholdMargin(gate.name, gate.kind, gate.limit, error, margin))
    rows = [row for name, limit in limits.items() for row in detectable(name, limit)]
    if not rows:
        limits = {resolve(None, metrics)[0]: None}
        rows = [row for name in limits for row in detectable(name, None)]
    return PowerAnalysis(
        criterion,
        resampled.unit,
        tuple(rows),
        tuple(row for name in _class_metrics(limits, metrics) for row in detectable(name, None)),
        tuple(margins),
    )


def _class_metrics(limited: Collection[MetricName], metrics: Metrics) -> Iterator[MetricName]:
    """Yield the class metrics behind means, except those that have a gate."""
    for name in limited:
        if name.in_rows or name.slice is not None:
            continue
        metric = metrics.row_name(name.metric)
        if metric is not None and any(row.get("ground_truths") for row in metrics.rows):
            of_classes = resolve(f"{metrics.unit}:*.{metric}", metrics)
            yield from (class_name for class_name in of_classes if class_name not in limited)


def underpowered_notes(power: PowerAnalysis) -> list[Note]:
    """Return a warning if limits are below the minimum detectable drop."""
    rows = [row for row in power.metrics if row.is_underpowered]
    if not rows:
        return []
    worst = max(rows, key=lambda row: row.min_detectable_drop / (row.limit or 1))
    units = images_needed(worst.units, worst.min_detectable_drop, worst.limit)
    others = "" if len(rows) == 1 else f"; {len(rows) - 1} more limits are too low"
    message = (
        f"{worst.name} limit {worst.limit:.6g} is below the minimum detectable drop "
        f"{worst.min_detectable_drop:.4f} of these {worst.units:,} {power.units}; "
        f"{units:,} {power.units} are needed{others}"
    )
    return [Note("gate-underpowered", message, len(rows))]
