"""Minimum detectable drops of metrics with gates, and warnings about underpowered gates."""

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from detap.analysis.power import (
    Criterion,
    DetectableDrop,
    PowerAnalysis,
    ThresholdMargin,
    images_needed,
    standard_error,
)
from detap.errors import Note
from detap.gates.checks import DropIntervals, Gate
from detap.gates.config import CHANGES, GateConfig
from detap.gates.metric_names import MetricName, Metrics, resolve
from detap.tables.detection import Floats


class ResampledMetrics(DropIntervals, Protocol):
    """Resampled drops of metrics, or resampled metrics without a baseline."""

    @property
    def unit(self) -> str:
        """The unit that is resampled: ``"image"`` or ``"query"``."""

    @property
    def paired(self) -> bool:
        """True if there is a baseline."""

    def drops(self, name: MetricName) -> Floats | None:
        """Return the drop of a metric in each resample; None if it has none."""

    def values(self, name: MetricName) -> Floats | None:
        """Return a metric in each resample; None if it cannot be resampled."""

    def count(self, tag: str | None) -> int:
        """Return the number of units, in a slice or overall."""


def power_analysis(
    gates: Sequence[Gate], metrics: Metrics, resampled: ResampledMetrics, config: GateConfig
) -> PowerAnalysis:
    """Compute the minimum detectable drops of metrics with gates.

    Without gates, that of the primary metric.
    """
    criterion = Criterion(resampled.confidence, resampled.paired, config.detectable_drop)
    by_interval = resampled.paired and config.confidence is not None

    def detectable(name: MetricName, limit: float | None) -> Iterator[DetectableDrop]:
        count = name.ground_truths(metrics)
        if count is not None and count < config.min_ground_truths:
            return
        series = resampled.drops(name) if resampled.paired else resampled.values(name)
        if series is not None:
            yield DetectableDrop.of(
                name.text,
                series,
                resampled.count(name.slice),
                criterion,
                limit=limit,
                by_interval=by_interval,
                ground_truths=None if name.row is None else count,
            )

    limits: dict[MetricName, float | None] = {}
    for gate in gates:
        if gate.metric_name is not None:
            bounds = [
                bound for bound in (limits.get(gate.metric_name), gate.bound) if bound is not None
            ]
            limits[gate.metric_name] = min(bounds, default=None)
    rows = [row for name, limit in limits.items() for row in detectable(name, limit)]
    if not rows:
        limits = {resolve(None, metrics)[0]: None}
        rows = [row for name in limits for row in detectable(name, None)]
    return PowerAnalysis(
        criterion,
        resampled.unit,
        tuple(rows),
        tuple(row for name in _class_metrics(limits, metrics) for row in detectable(name, None)),
        tuple(_margins(gates, resampled, criterion)),
    )


def _margins(
    gates: Sequence[Gate], resampled: ResampledMetrics, criterion: Criterion
) -> Iterator[ThresholdMargin]:
    """Yield the margins of minimums and maximums whose metric can be resampled."""
    for gate in gates:
        series = None
        if gate.kind not in CHANGES and gate.metric_name is not None:
            series = resampled.values(gate.metric_name)
        if series is not None:
            error = standard_error(series)
            yield ThresholdMargin(gate.name, gate.kind, gate.limit, error, criterion.margin(error))


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
    return [
        Note(
            "gate-underpowered",
            f"{worst.name} limit {worst.limit:.6g} is below the minimum detectable drop "
            f"{worst.min_detectable_drop:.4f} of these {worst.units:,} {power.units}; "
            f"{units:,} {power.units} are needed{others}",
            len(rows),
        )
    ]
