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

    def numbers(self) -> "Metrics":
        """Return all that gates can name."""

    def noise(self, before: Self | None, demands: GateConfig) -> "Spread":
        """Return how noisy its drops from an earlier one are, or its own numbers without one."""

    def blame(
        self, gates: "Sequence[Gate]", then: "Metrics | None", before: Self | None
    ) -> "Regressions | None":
        """Return what the gates that did not pass are about."""


S = TypeVar("S", bound=Subject)


def evaluate_gates(
    demands: GateConfig,
    now: S,
    record: Callable[[], Mapping[str, Any]],
    *,
    kept: BaselineReport | None = None,
    before: S | None = None,
) -> GateResults:
    """Hold a run to what is asked of it.

    Parameters
    ----------
    demands : GateConfig
    now : Subject
    record : callable
        Returns the report of it as it is in JSON, without the gates.
    kept : BaselineReport, optional
        An earlier report.
    before : Subject, optional
        An earlier detector or ranking, on the same ground truth.

    Raises
    ------
    UsageError
        Where a gate names no number, or the earlier report may not be compared with.
    """
    from detap.gates.checks import check  # only with gates

    numbers = now.numbers()
    then = None if before is None else before.numbers()
    if kept is not None:
        then = _held_to(kept, demands, numbers, then, record)
    by_intervals = demands.confidence is not None and before is not None
    spread = noise = None
    if by_intervals or demands.detectable_drop is not None:
        spread = now.noise(before, demands)
        noise = spread if by_intervals else None
    case = _Case(numbers, then, noise, demands)
    gates = check(demands.limits, numbers, then, noise=noise, min_ground_truths=demands.fewest)
    shown, notes = _shown(gates, numbers, spread, demands)
    if not gates:
        return GateResults(power=shown)
    blame = now.blame(gates, then, before)
    return GateResults(tuple(gates), (*_overlooked(gates, case), *notes), blame, shown)


def _shown(
    gates: "Sequence[Gate]", numbers: "Metrics", spread: "Spread | None", demands: GateConfig
) -> "tuple[PowerAnalysis | None, list[Note]]":
    """Return what the images can show, and a warning where gates ask for more."""
    if spread is None:
        return None, []
    from detap.gates.power import resolved, too_fine  # only where it is known

    found = resolved(gates, numbers, spread, demands)
    return found, too_fine(found)


def _held_to(
    kept: BaselineReport,
    demands: GateConfig,
    numbers: "Metrics",
    then: "Metrics | None",
    record: Callable[[], Mapping[str, Any]],
) -> "Metrics":
    """Return the numbers to compare with, if the earlier report may be compared with.

    They are those of the earlier detector, `then`, where there is one.
    """
    from detap.gates.baseline import (  # only with a baseline
        differences,
        numbers_of_record,
        other_numbers,
        other_slices,
        other_threshold,
        refuse_differences,
    )
    from detap.gates.metric_names import resolve

    now = record()
    recorded = numbers_of_record(kept.record, at_threshold="operating_point" in now)
    recorded = recorded.with_ids_of(numbers)
    if not demands.allow_mismatch:
        whole = numbers.with_lost(recorded)
        changes = [limit.name for limit in demands.limits if limit.kind in CHANGES]
        names = [name for text in changes for name in resolve(text, whole, recorded)]
        tags = dict.fromkeys(name.slice for name in names)
        found = differences(now, kept.record)
        found += other_slices(now, kept.record, [tag for tag in tags if tag is not None])
        if any(whole.at_threshold(name) for name in names):
            found += other_threshold(now, kept.record)
        if then is not None:
            whose = demands.spell("baseline_detections")
            found += other_numbers(kept.record, then.summary, whose)
        refuse_differences(escape(kept.path), found, demands.spell("allow_mismatch"))
    return recorded if then is None else then


# --- what a mean hides


class _Case(NamedTuple):
    """All that gates are checked with."""

    numbers: "Metrics"
    then: "Metrics | None"
    noise: "Noise | None"
    demands: GateConfig

    def fails(self, text: str) -> bool:
        """Tell whether one more limit on a drop would have failed."""
        from detap.gates.checks import Limit, check  # imported already

        gates = check(
            [Limit.of("drop", text)],
            self.numbers,
            self.then,
            noise=self.noise,
            min_ground_truths=self.demands.fewest,
        )
        return bool(gates) and all(gate.status == "failed" for gate in gates)


class _Fall(NamedTuple):
    """A class that fell far beyond what its mean may."""

    drop: float
    then: float
    now: float
    ground_truths: int
    name: str
    gate: str


def _overlooked(gates: "Sequence[Gate]", case: _Case) -> Iterator[Note]:
    """Yield a warning for each gate on a mean that failed not, though a class fell far beyond it.

    Far is both: twice the limit, and beyond the limit by more than three standard errors of the
    difference of two shares of as many objects, which is at most ``sqrt(1 / (2 n))``. A class of a
    few objects never falls so far, whatever it does.
    """
    held = {
        (gate.stands_for.slice, gate.stands_for.row)
        for gate in gates
        if gate.kind == "drop" and gate.stands_for is not None
    }
    for gate in gates:
        name = gate.stands_for
        on_a_mean = name is not None and not name.in_rows
        if not on_a_mean or gate.kind != "drop" or gate.failed:
            continue
        falls = [fall for fall in _falls(gate, case, held) if case.fails(fall.gate)]
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
            f"gate it with {case.demands.spell.limit('max_drop', text, bound)}",
            len(falls),
        )


def _falls(
    gate: "Gate", case: _Case, held: "set[tuple[str | None, int | None]]"
) -> Iterator[_Fall]:
    from detap.gates.metric_names import escaped, row_key  # imported already

    assert gate.stands_for is not None
    assert gate.bound is not None
    assert case.then is not None
    tag = gate.stands_for.slice
    now, then = case.numbers.part(tag), case.then.part(tag)
    measure = now.row_name(gate.stands_for.measure)
    metric = None if now.metric_of is None else now.metric_of(gate.stands_for.measure)
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
            yield _Fall(
                drop,
                drop + value,
                value,
                int(count),
                f"{prefix}{now.unit}:{row['name']}.{measure}",
                f"{prefix}{label}={gate.limit}",
            )
