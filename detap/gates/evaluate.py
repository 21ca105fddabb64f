"""The one judge: what comes of what is asked of a run (config.py).

``detap eval``, ``detap rank`` and :mod:`detap.testing` ask and are judged by this alone, so that
they cannot come to different verdicts. What they judge, a detector or a ranking, is a
:class:`Subject`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isnan, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeVar

from detap.errors import Note
from detap.escaping import escape
from detap.gates.config import CHANGES, BaselineReport, GateConfig, GateResults

if TYPE_CHECKING:
    from detap.analysis.power import PowerAnalysis
    from detap.gates.checks import Gate, Noise
    from detap.gates.metric_names import Metrics
    from detap.gates.power import Spread
    from detap.gates.regressions import Regressions

_STANDARD_ERRORS = 3
_TIMES_THE_LIMIT = 2


class Subject(Protocol):
    """What is judged: a detector or a ranking, with its result."""

    def metrics(self) -> "Metrics":
        """Return all that gates can name."""

    def noise(self, baseline: Self | None, config: GateConfig) -> "Spread":
        """Return how noisy its drops from an earlier one are, or its own numbers without one."""

    def find_regressions(
        self, gates: "Sequence[Gate]", baseline_metrics: "Metrics | None", baseline: Self | None
    ) -> "Regressions | None":
        """Return what the gates that did not pass are about."""


S = TypeVar("S", bound=Subject)


def evaluate_gates(
    config: GateConfig,
    current: S,
    record: Callable[[], Mapping[str, Any]],
    *,
    baseline_report: BaselineReport | None = None,
    baseline: S | None = None,
) -> GateResults:
    """Hold a run to what is asked of it.

    Parameters
    ----------
    config : GateConfig
    current : Subject
    record : callable
        Returns the report of it as it is in JSON, without the gates.
    baseline_report : BaselineReport, optional
        An earlier report.
    baseline : Subject, optional
        An earlier detector or ranking, on the same ground truth.

    Raises
    ------
    UsageError
        Where a gate names no number, or the earlier report may not be compared with.
    """
    from detap.gates.checks import check  # only with gates

    metrics = current.metrics()
    then = None if baseline is None else baseline.metrics()
    if baseline_report is not None:
        then = _baseline_metrics(baseline_report, config, metrics, then, record)
    by_intervals = config.confidence is not None and baseline is not None
    spread = noise = None
    if by_intervals or config.detectable_drop is not None:
        spread = current.noise(baseline, config)
        noise = spread if by_intervals else None
    case = _GateInputs(metrics, then, noise, config)
    gates = check(
        config.limits, metrics, then, noise=noise, min_ground_truths=config.min_ground_truths
    )
    shown, notes = _analyze_power(gates, metrics, spread, config)
    if not gates:
        return GateResults(power=shown)
    blame = current.find_regressions(gates, then, baseline)
    return GateResults(tuple(gates), (*_hidden_class_drops(gates, case), *notes), blame, shown)


def _analyze_power(
    gates: "Sequence[Gate]", metrics: "Metrics", spread: "Spread | None", config: GateConfig
) -> "tuple[PowerAnalysis | None, list[Note]]":
    """Return what the images can show, and a warning where gates ask for more."""
    if spread is None:
        return None, []
    from detap.gates.power import power_analysis, underpowered_notes  # only where it is known

    found = power_analysis(gates, metrics, spread, config)
    return found, underpowered_notes(found)


def _baseline_metrics(
    baseline_report: BaselineReport,
    config: GateConfig,
    metrics: "Metrics",
    then: "Metrics | None",
    record: Callable[[], Mapping[str, Any]],
) -> "Metrics":
    """Return the numbers to compare with, if the earlier report may be compared with.

    They are those of the earlier detector, `then`, where there is one.
    """
    from detap.gates.baseline import (  # only with a baseline
        differences,
        metrics_of_record,
        require_comparable,
        slice_differences,
        summary_differences,
        threshold_differences,
    )
    from detap.gates.metric_names import resolve

    now = record()
    recorded = metrics_of_record(baseline_report.record, at_threshold="operating_point" in now)
    recorded = recorded.with_ids_of(metrics)
    if not config.allow_mismatch:
        whole = metrics.with_missing(recorded)
        changes = [limit.name for limit in config.limits if limit.kind in CHANGES]
        names = [name for text in changes for name in resolve(text, whole, recorded)]
        tags = dict.fromkeys(name.slice for name in names)
        found = differences(now, baseline_report.record)
        found += slice_differences(
            now, baseline_report.record, [tag for tag in tags if tag is not None]
        )
        if any(whole.at_threshold(name) for name in names):
            found += threshold_differences(now, baseline_report.record)
        if then is not None:
            whose = config.option_names("baseline_detections")
            found += summary_differences(baseline_report.record, then.summary, whose)
        require_comparable(
            escape(baseline_report.path), found, config.option_names("allow_mismatch")
        )
    return recorded if then is None else then


# --- what a mean hides


class _GateInputs(NamedTuple):
    """All that gates are checked with."""

    metrics: "Metrics"
    baseline: "Metrics | None"
    noise: "Noise | None"
    config: GateConfig

    def fails(self, text: str) -> bool:
        """Tell whether one more limit on a drop would have failed."""
        from detap.gates.checks import Limit, check  # imported already

        gates = check(
            [Limit.of("drop", text)],
            self.metrics,
            self.baseline,
            noise=self.noise,
            min_ground_truths=self.config.min_ground_truths,
        )
        return bool(gates) and all(gate.status == "failed" for gate in gates)


class _ClassDrop(NamedTuple):
    """A class that fell far beyond what its mean may."""

    drop: float
    then: float
    now: float
    ground_truths: int
    name: str
    gate: str


def _hidden_class_drops(gates: "Sequence[Gate]", case: _GateInputs) -> Iterator[Note]:
    """Yield a warning for each gate on a mean that failed not, though a class fell far beyond it.

    Far is both: twice the limit, and beyond the limit by more than three standard errors of the
    difference of two shares of as many objects, which is at most ``sqrt(1 / (2 n))``. A class of a
    few objects never falls so far, whatever it does.
    """
    held = {
        (gate.metric_name.slice, gate.metric_name.row)
        for gate in gates
        if gate.kind == "drop" and gate.metric_name is not None
    }
    for gate in gates:
        name = gate.metric_name
        on_a_mean = name is not None and not name.in_rows
        if not on_a_mean or gate.kind != "drop" or gate.failed:
            continue
        falls = [fall for fall in _class_drops(gate, case, held) if case.fails(fall.gate)]
        if not falls:
            continue
        worst = max(falls)
        text, _, bound = worst.gate.rpartition("=")
        passed = "passed" if gate.status == "passed" else "did not fail"
        others = "" if len(falls) == 1 else f", and {len(falls) - 1} more classes dropped"
        yield Note(
            "gate-hides-class-drop",
            f"{gate.name} {passed} but {worst.name} dropped by {worst.drop:.4f} "
            f"({worst.then:.4f} to {worst.now:.4f}, {worst.ground_truths} ground truths){others}; "
            f"gate it with {case.config.option_names.limit('max_drop', text, bound)}",
            len(falls),
        )


def _class_drops(
    gate: "Gate", case: _GateInputs, held: "set[tuple[str | None, int | None]]"
) -> Iterator[_ClassDrop]:
    from detap.gates.metric_names import escaped, row_key  # imported already

    assert gate.metric_name is not None
    assert gate.bound is not None
    assert case.baseline is not None
    tag = gate.metric_name.slice
    now, then = case.metrics.of_slice(tag), case.baseline.of_slice(tag)
    measure = now.row_name(gate.metric_name.metric)
    metric = None if now.metric_of is None else now.metric_of(gate.metric_name.metric)
    if metric is not None and not (metric.higher_is_better and metric.bounds == (0, 1)):
        return  # its fall is no loss, or not the difference of two shares
    if measure is None or not then.row_has(measure):
        return
    was = dict(zip(map(row_key, then.rows), then.by_row(measure), strict=True))
    prefix = f"slice:{escaped(tag)}." if tag is not None else ""
    for place, (row, value) in enumerate(zip(now.rows, now.by_row(measure), strict=True)):
        count = row.get("ground_truths")
        drop = was.get(row_key(row), value) - value
        if not count or isnan(drop) or (tag, place) in held:
            continue
        far = gate.bound + _STANDARD_ERRORS * sqrt(1 / (2 * int(count)))
        if drop > max(far, _TIMES_THE_LIMIT * gate.bound):
            label = f"{now.unit}:{escaped(str(row['name']))}.{measure}"
            yield _ClassDrop(
                drop,
                drop + value,
                value,
                int(count),
                f"{prefix}{now.unit}:{row['name']}.{measure}",
                f"{prefix}{label}={gate.limit}",
            )
