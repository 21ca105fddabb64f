"""Evaluate gates; shared by `eval`, `rank` and `detap.testing`.

A detector or a ranking is passed as a :class:`Subject`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import isnan, sqrt
from typing import Any, Protocol, Self, TypeVar

from detap.analysis.intervals import MetricIntervals
from detap.analysis.power import PowerAnalysis
from detap.errors import Note
from detap.escaping import escape
from detap.gates.baseline import (
    differences,
    metrics_of_record,
    require_comparable,
    slice_differences,
    summary_differences,
    threshold_differences,
)
from detap.gates.checks import Gate, Intervals, check, check_direction
from detap.gates.config import CHANGES, BaselineReport, GateConfig, Limit, OptionNames
from detap.gates.metric_names import Metrics, escaped, resolve, row_key
from detap.gates.power import Resamples, power_analysis, underpowered_notes
from detap.gates.regressions import Regressions

# A drop of a class is large if it is more than twice the limit, and beyond the limit by more than
# three standard errors of the difference of two fractions of n objects each, which is at most
# sqrt(1 / (2 n)). That of a class with a few objects is never large.
_STANDARD_ERRORS = 3
_TIMES_THE_LIMIT = 2


class Subject(Protocol):
    """A detector or a ranking, with its result."""

    def metrics(self) -> Metrics:
        """Return the metrics that gates can name."""

    def resample(self, baseline: Self | None, config: GateConfig) -> Resamples:
        """Resample the drops from a baseline, or the metrics if there is none."""

    def find_regressions(
        self, gates: Sequence[Gate], baseline_metrics: Metrics | None, baseline: Self | None
    ) -> Regressions | None:
        """Return the classes and images behind the gates that did not pass."""
        return None

    def intervals(self, config: GateConfig) -> Intervals | None:
        """Return the confidence intervals of the metrics; None if they have none."""
        return None


S = TypeVar("S", bound=Subject)


@dataclass(frozen=True, slots=True, eq=False)
class GateResults:
    """The results of gates."""

    gates: tuple[Gate, ...] = ()
    notes: tuple[Note, ...] = ()
    regressions: Regressions | None = None  # behind the gates that did not pass
    power: PowerAnalysis | None = None
    # Of the metrics, if requested: of all images (None) and of each slice.
    intervals: Mapping[str | None, MetricIntervals] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """True if any gate failed."""
        return any(gate.failed for gate in self.gates)

    @property
    def problems(self) -> list[str | Note]:
        """The messages of failed gates, and the warnings of others."""
        return [
            gate.message if gate.failed else Note(f"gate-{gate.status}", gate.message)
            for gate in self.gates
            if gate.failed or gate.warned
        ]


def evaluate_gates(
    config: GateConfig,
    current: S,
    record: Callable[[], Mapping[str, Any]],
    *,
    baseline_report: BaselineReport | None = None,
    baseline: S | None = None,
) -> GateResults:
    """Evaluate the gates of a run."""
    metrics = current.metrics()
    baseline_metrics = None if baseline is None else baseline.metrics()
    if baseline_report is not None:
        baseline_metrics = _baseline_metrics(
            baseline_report, config, metrics, baseline_metrics, record
        )
    resampled = intervals = None
    if config.detectable_drop is not None or (config.confidence is not None and baseline):
        resampled = current.resample(baseline, config)
    if config.confidence is not None and baseline is None:
        intervals = current.intervals(config)
    elif config.confidence is not None and resampled is not None:
        intervals = Intervals(config.confidence, resampled.interval)
    check_limits = partial(
        check,
        metrics=metrics,
        baseline=baseline_metrics,
        intervals=intervals,
        min_ground_truths=config.min_ground_truths,
    )
    gates = check_limits(config.limits)
    check_direction(config.limits, metrics, config.option_names)
    power = None if resampled is None else power_analysis(gates, metrics, resampled, config)
    notes = [] if power is None else underpowered_notes(power)
    if baseline_metrics is not None:
        names = config.option_names
        hidden = _hidden_class_drops(gates, metrics, baseline_metrics, check_limits, names)
        notes = [*hidden, *notes]
    return GateResults(
        tuple(gates),
        tuple(notes),
        current.find_regressions(gates, baseline_metrics, baseline),
        power,
        {} if intervals is None else intervals.of_slices,
    )


def _baseline_metrics(
    report: BaselineReport,
    config: GateConfig,
    metrics: Metrics,
    evaluated: Metrics | None,
    record: Callable[[], Mapping[str, Any]],
) -> Metrics:
    """Return the metrics of a comparable report, or those of the evaluated earlier detector."""
    current, earlier = record(), report.record
    recorded = metrics_of_record(earlier, at_threshold="operating_point" in current)
    recorded = recorded.with_ids_of(metrics)
    if not config.allow_mismatch:
        full = metrics.with_missing(recorded)
        limited = [limit.name for limit in config.limits if limit.kind in CHANGES]
        names = [name for text in limited for name in resolve(text, full, recorded)]
        tags = dict.fromkeys(name.slice for name in names)
        lines = differences(current, earlier)
        lines += slice_differences(current, earlier, [tag for tag in tags if tag is not None])
        if any(full.at_threshold(name) for name in names):
            lines += threshold_differences(current, earlier)
        if evaluated is not None:
            option = config.option_names("baseline_detections")
            lines += summary_differences(earlier, evaluated.summary, option)
        require_comparable(escape(report.path), lines, config.option_names("allow_mismatch"))
    return recorded if evaluated is None else evaluated


def _hidden_class_drops(
    gates: Sequence[Gate],
    metrics: Metrics,
    baseline: Metrics,
    check_limits: Callable[[Sequence[Limit]], Sequence[Gate]],
    option_names: OptionNames,
) -> Iterator[Note]:
    """Yield a warning about each gate on a mean that hides large drops of classes."""
    of_drops = [gate for gate in gates if gate.kind == "drop"]
    gated = {(gate.metric.slice, gate.metric.row) for gate in of_drops}
    for gate in of_drops:
        tag, drops = gate.metric.slice, []
        if gate.metric.in_rows or gate.failed:
            continue
        for drop in _class_drops(gate, metrics.of_slice(tag), baseline.of_slice(tag)):
            checked = check_limits([Limit.of("drop", f"{drop[-1]}={gate.limit}")])
            ungated = all((tag, one.metric.row) not in gated for one in checked)
            if checked and ungated and all(one.status == "failed" for one in checked):
                drops.append(drop)
        if not drops:
            continue
        (largest, before, after, count, text, name), more = max(drops), len(drops) - 1
        passed = "passed" if gate.status == "passed" else "did not fail"
        others = f", and {more} more class{'es' if more > 1 else ''} dropped" if more else ""
        message = (
            f"{gate.name} {passed} but {text} dropped by {largest:.4f} "
            f"({before:.4f} to {after:.4f}, {count} ground truths)"
            f"{others}; gate it with {option_names.limit('max_drop', name, gate.limit)}"
        )
        yield Note("gate-hides-class-drop", message, len(drops))


def _class_drops(
    gate: Gate, current: Metrics, baseline: Metrics
) -> Iterator[tuple[float, float, float, int, str, str]]:
    """Yield the large drops of classes: drop, before, after, ground truths, name, and in gates."""
    assert gate.bound is not None
    name = current.row_name(gate.metric.metric)
    metric = current.metric_of(gate.metric.metric)
    if metric is not None and metric.bounds != (0, 1):
        return  # the standard error holds for fractions alone
    if name is None or not baseline.row_has(name):
        return
    before = baseline.by_key(name)
    tag = gate.metric.slice
    prefix = f"slice:{escaped(tag)}." if tag is not None else ""
    for row, value in zip(current.rows, current.by_row(name), strict=True):
        count = row.get("ground_truths")
        drop = before.get(row_key(row), value) - value
        if not count or isnan(drop):
            continue
        threshold = gate.bound + _STANDARD_ERRORS * sqrt(1 / (2 * int(count)))
        if drop > max(threshold, _TIMES_THE_LIMIT * gate.bound):
            names = [
                f"{prefix}{current.unit}:{text}.{name}"
                for text in (row["name"], escaped(str(row["name"])))
            ]
            yield drop, drop + value, value, int(count), names[0], names[1]
