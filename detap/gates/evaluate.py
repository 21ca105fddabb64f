"""Evaluate gates; shared by `eval`, `rank` and `detap.testing`.

A detector or a ranking is passed as a :class:`Subject`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isnan, sqrt
from typing import Any, NamedTuple, Protocol, Self, TypeVar

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
from detap.gates.checks import DropIntervals, Gate, Limit, ValueIntervals, check, check_direction
from detap.gates.config import CHANGES, BaselineReport, GateConfig, GateResults
from detap.gates.metric_names import Metrics, escaped, resolve, row_key
from detap.gates.power import ResampledMetrics, power_analysis, underpowered_notes
from detap.gates.regressions import Regressions

_STANDARD_ERRORS = 3
_TIMES_THE_LIMIT = 2


class Subject(Protocol):
    """A detector or a ranking, with its result."""

    def metrics(self) -> Metrics:
        """Return the metrics that gates can name."""

    def resample(self, baseline: Self | None, config: GateConfig) -> ResampledMetrics:
        """Resample the drops from a baseline, or the metrics if there is none."""

    def find_regressions(
        self, gates: Sequence[Gate], baseline_metrics: Metrics | None, baseline: Self | None
    ) -> Regressions | None:
        """Return the classes and images behind the gates that did not pass."""

    def intervals(self, config: GateConfig) -> ValueIntervals | None:
        """Return the confidence intervals of the metrics; None if they have none."""


S = TypeVar("S", bound=Subject)


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
    by_intervals = config.confidence is not None and baseline is not None
    resampled = intervals = None
    if by_intervals or config.detectable_drop is not None:
        resampled = current.resample(baseline, config)
        intervals = resampled if by_intervals else None
    of_metrics = config.confidence is not None and baseline is None
    values = current.intervals(config) if of_metrics else None
    inputs = _GateInputs(metrics, baseline_metrics, intervals, config)
    gates = check(
        config.limits,
        metrics,
        baseline_metrics,
        intervals=intervals,
        values=values,
        min_ground_truths=config.min_ground_truths,
    )
    check_direction(config.limits, metrics, config.option_names)
    power, notes = _analyze_power(gates, metrics, resampled, config)
    of_slices = {} if values is None else values.of_slices
    if not gates:
        return GateResults(power=power, intervals=of_slices, resampled=resampled)
    regressions = current.find_regressions(gates, baseline_metrics, baseline)
    notes = [*_hidden_class_drops(gates, inputs), *notes]
    return GateResults(tuple(gates), tuple(notes), regressions, power, of_slices, resampled)


def _analyze_power(
    gates: Sequence[Gate],
    metrics: Metrics,
    resampled: ResampledMetrics | None,
    config: GateConfig,
) -> tuple[PowerAnalysis | None, list[Note]]:
    """Return the minimum detectable drops, and a warning if a limit is below its own."""
    if resampled is None:
        return None, []
    power = power_analysis(gates, metrics, resampled, config)
    return power, underpowered_notes(power)


def _baseline_metrics(
    report: BaselineReport,
    config: GateConfig,
    metrics: Metrics,
    evaluated: Metrics | None,
    record: Callable[[], Mapping[str, Any]],
) -> Metrics:
    """Return the baseline's metrics, if its report is comparable.

    Those of the earlier detector, `evaluated`, are preferred to those of the report.
    """
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


class _GateInputs(NamedTuple):
    """The inputs of all gates."""

    metrics: Metrics
    baseline: Metrics | None
    intervals: DropIntervals | None
    config: GateConfig

    def fails(self, text: str) -> bool:
        """Return True if a further limit on a drop would fail."""
        gates = check(
            [Limit.of("drop", text)],
            self.metrics,
            self.baseline,
            intervals=self.intervals,
            min_ground_truths=self.config.min_ground_truths,
        )
        return bool(gates) and all(gate.status == "failed" for gate in gates)


class _ClassDrop(NamedTuple):
    """A class that dropped far beyond the limit of its mean."""

    drop: float
    before: float
    after: float
    ground_truths: int
    name: str
    gate: str


def _hidden_class_drops(gates: Sequence[Gate], inputs: _GateInputs) -> Iterator[Note]:
    """Yield a warning for each gate on a mean that hides a large drop of a class.

    A drop is large if it is more than twice the limit, and beyond the limit by more than three
    standard errors of the difference of two fractions of as many objects, which is at most
    ``sqrt(1 / (2 n))``. The drop of a class with a few objects is never large.
    """
    gated = {
        (gate.metric_name.slice, gate.metric_name.row)
        for gate in gates
        if gate.kind == "drop" and gate.metric_name is not None
    }
    for gate in gates:
        name = gate.metric_name
        on_a_mean = name is not None and not name.in_rows
        if not on_a_mean or gate.kind != "drop" or gate.failed:
            continue
        drops = [drop for drop in _class_drops(gate, inputs, gated) if inputs.fails(drop.gate)]
        if not drops:
            continue
        worst = max(drops)
        text, _, bound = worst.gate.rpartition("=")
        passed = "passed" if gate.status == "passed" else "did not fail"
        more = len(drops) - 1
        others = f", and {more} more class{'es' if more > 1 else ''} dropped" if more else ""
        yield Note(
            "gate-hides-class-drop",
            f"{gate.name} {passed} but {worst.name} dropped by {worst.drop:.4f} "
            f"({worst.before:.4f} to {worst.after:.4f}, {worst.ground_truths} ground truths)"
            f"{others}; gate it with {inputs.config.option_names.limit('max_drop', text, bound)}",
            len(drops),
        )


def _class_drops(
    gate: Gate, inputs: _GateInputs, gated: set[tuple[str | None, int | None]]
) -> Iterator[_ClassDrop]:
    """Yield the large drops of classes without a gate."""
    assert gate.metric_name is not None
    assert gate.bound is not None
    assert inputs.baseline is not None
    tag = gate.metric_name.slice
    current, baseline = inputs.metrics.of_slice(tag), inputs.baseline.of_slice(tag)
    name = current.row_name(gate.metric_name.metric)
    metric = None if current.metric_of is None else current.metric_of(gate.metric_name.metric)
    if metric is not None and metric.bounds != (0, 1):
        return  # the standard error holds for fractions alone
    if name is None or not baseline.row_has(name):
        return
    before = dict(zip(map(row_key, baseline.rows), baseline.by_row(name), strict=True))
    prefix = f"slice:{escaped(tag)}." if tag is not None else ""
    rows = zip(current.rows, current.by_row(name), strict=True)
    for index, (row, value) in enumerate(rows):
        count = row.get("ground_truths")
        drop = before.get(row_key(row), value) - value
        if not count or isnan(drop) or (tag, index) in gated:
            continue
        threshold = gate.bound + _STANDARD_ERRORS * sqrt(1 / (2 * int(count)))
        if drop > max(threshold, _TIMES_THE_LIMIT * gate.bound):
            label = f"{current.unit}:{escaped(str(row['name']))}.{name}"
            yield _ClassDrop(
                drop,
                drop + value,
                value,
                int(count),
                f"{prefix}{current.unit}:{row['name']}.{name}",
                f"{prefix}{label}={gate.limit}",
            )
