"""The gates of a report."""

from collections.abc import Sequence

from detap.gates.checks import Gate, GateStatus
from detap.gates.config import Kind
from detap.gates.evaluate import GateResults
from detap.report.checks import KEY, MARKS, Checks, shortened
from detap.report.fields import Count, Object, each, field, list_of
from detap.report.model import Block
from detap.report.sections.power import power_block
from detap.report.sections.regressions import regressions_block

GateEntry = Object(
    "GateEntry",
    kind=Kind,
    name=field(str, "The metric's full name: AP50, class:person.AP, slice:night.AP50."),
    status=field(GateStatus, "undefined fails too; the last two are warnings."),
    value=float | None,
    limit=field(str, "As given."),
    baseline=field(float | None, "Null for a minimum or maximum, or if undefined."),
    drop=field(float | None, "Negative if the metric rose."),
    interval=field(
        list[float | None] | None,
        "Of the drop; of the metric with a minimum or maximum.",
        minItems=2,
        maxItems=2,
    ),
    confidence=float | None,
    ground_truths=field(int | None, "Of the metric's class, area range, slice or class group."),
    message=str,
)

GatesData = Object(
    "GatesData",
    passed=field(bool, "True if no gate failed."),
    **each(Count, "failed", "warned"),
    checks=list_of(GateEntry),
)


def gate_block(gates: Sequence[Gate]) -> Block:
    """Return the gates block, failed gates first."""
    order = {"FAILED": 0, "warning": 1, "passed": 2}
    ranked = sorted(gates, key=lambda gate: order[MARKS[gate.status]])
    checks = Checks([GateEntry(gate) for gate in ranked])
    shown = shortened(checks.all)
    results = [(MARKS[check["status"]], check["message"]) for check in shown]
    if len(shown) < len(ranked):
        results.append(("passed", f"{len(ranked) - len(shown)} more"))
    return Block(
        key=KEY,
        title=f"Gates: {checks.conclusion.replace(' gates', '')}",
        data={
            "passed": not checks.failed,
            "failed": len(checks.failed),
            "warned": len(checks.warned),
            "checks": checks.all,
        },
        lines=tuple(f"{mark:<7}  {message}" for mark, message in results),
        verdicts=tuple(mark.lower() for mark, _ in results),
    )


def gate_blocks(results: GateResults) -> tuple[Block, ...]:
    """Return the blocks of gates, regressions and power."""
    blocks = [gate_block(results.gates)] if results.gates else []
    if results.regressions is not None:
        blocks.append(regressions_block(results.regressions))
    if results.power is not None:
        blocks.append(power_block(results.power))
    return tuple(blocks)
