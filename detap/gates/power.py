"""What the images can show of the numbers that gates hold, and whether a limit asks for more."""

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from detap.analysis.power import (
    Criterion,
    DetectableDrop,
    PowerAnalysis,
    ThresholdMargin,
    standard_error,
    units_needed,
)
from detap.errors import Note
from detap.gates.checks import Gate, Noise
from detap.gates.config import CHANGES
from detap.gates.metric_names import MetricName, Metrics, resolve
from detap.tables.detection import Floats

if TYPE_CHECKING:
    from detap.gates.config import GateConfig


class Spread(Noise, Protocol):
    """How noisy drops are, or numbers, where there is no earlier detector."""

    @property
    def unit(self) -> str:
        """What is resampled: ``"image"`` or ``"query"``."""

    @property
    def paired(self) -> bool:
        """Whether there is an earlier detector."""

    def drops(self, name: MetricName) -> Floats | None:
        """Return the drop of a number in each resample; None where it has none."""

    def values(self, name: MetricName) -> Floats | None:
        """Return a number in each resample; None where it cannot be resampled."""

    def count(self, tag: str | None) -> int:
        """Return how many units there are, in a slice or in all."""


def power_analysis(
    gates: Sequence[Gate], metrics: Metrics, spread: Spread, config: "GateConfig"
) -> PowerAnalysis:
    """Return what the images can show of the numbers of gates; of the headline without any.

    Parameters
    ----------
    gates : sequence of Gate
    metrics : Numbers
        Of the detector now.
    spread : Spread
        How noisy they are.
    config : GateConfig
    """
    criterion = Criterion(spread.confidence, spread.paired, config.detectable_drop)
    by_interval = spread.paired and config.confidence is not None

    def reach(name: MetricName, limit: float | None) -> Iterator[DetectableDrop]:
        counted = name.ground_truths(metrics)
        if counted is not None and counted < config.min_ground_truths:
            return
        series = spread.drops(name) if spread.paired else spread.values(name)
        if series is not None:
            yield DetectableDrop.of(
                name.text,
                series,
                spread.count(name.slice),
                criterion,
                limit=limit,
                by_interval=by_interval,
                ground_truths=None if name.row is None else counted,
            )

    held: dict[MetricName, float | None] = {}
    for gate in gates:
        if gate.metric_name is not None:
            known = [
                entry for entry in (held.get(gate.metric_name), gate.bound) if entry is not None
            ]
            held[gate.metric_name] = min(known, default=None)
    rows = [found for name, limit in held.items() for found in reach(name, limit)]
    if not rows:
        held = {resolve(None, metrics)[0]: None}
        rows = [found for name in held for found in reach(name, None)]
    return PowerAnalysis(
        criterion,
        spread.unit,
        tuple(rows),
        tuple(found for name in _classes_of(held, metrics) for found in reach(name, None)),
        tuple(_margins(gates, spread, criterion)),
    )


def _margins(
    gates: Sequence[Gate], spread: Spread, criterion: Criterion
) -> Iterator[ThresholdMargin]:
    """Yield how far beyond floors and ceilings numbers must be, where they can be resampled."""
    for gate in gates:
        series = None
        if gate.kind not in CHANGES and gate.metric_name is not None:
            series = spread.values(gate.metric_name)
        if series is not None:
            error = standard_error(series)
            yield ThresholdMargin(gate.name, gate.kind, gate.limit, error, criterion.beyond(error))


def _classes_of(held: Collection[MetricName], metrics: Metrics) -> Iterator[MetricName]:
    """Yield the numbers of each class beside those of all classes, where no gate holds them."""
    for name in held:
        if name.in_rows or name.slice is not None:
            continue
        metric = metrics.row_name(name.metric)
        if metric is not None and any(row.get("ground_truths") for row in metrics.rows):
            of_classes = resolve(f"{metrics.unit}:*.{metric}", metrics)
            yield from (entry for entry in of_classes if entry not in held)


def underpowered_notes(found: PowerAnalysis) -> list[Note]:
    """Return a warning where limits are smaller than any drop that is told from noise."""
    fine = [reach for reach in found.numbers if reach.too_fine]
    if not fine:
        return []
    worst = max(fine, key=lambda reach: reach.min_detectable_drop / (reach.limit or 1))
    criterion, units = found.criterion, found.units
    others = "" if len(fine) == 1 else f"; so are {len(fine) - 1} other limits"
    alone = "" if criterion.paired else ", or less if the earlier one errs on the same"
    takes = units_needed(worst.units, worst.min_detectable_drop, worst.limit)
    return [
        Note(
            "gate-underpowered",
            f"the limit of {worst.name}, {worst.limit:.6g}, is less than these {worst.units:,} "
            f"{units} can show: they tell a drop from {worst.min_detectable_drop:.4f} on from noise"
            f"{alone} (at {100 * criterion.level:g} %, in {100 * criterion.power:g} of 100 cases), "
            f"and that one would take {takes:,}{others}",
            len(fine),
        )
    ]
