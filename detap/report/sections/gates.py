"""What a report says of gates, and how sinks find it again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from detap.gates.config import Kind
from detap.report.fields import Count, Limits
from detap.report.model import Block, Report

if TYPE_CHECKING:
    from detap.gates.checks import Gate
    from detap.gates.config import GateResults


class GateEntry(TypedDict):
    """A number against its limit."""

    kind: Kind
    name: Annotated[str, "The number's name in full: AP50, class:person.AP, slice:night.AP50."]
    verdict: Annotated[
        Literal["passed", "failed", "undefined", "inconclusive", "too-few"],
        "undefined fails too; the last two are warnings.",
    ]
    value: float | None
    limit: Annotated[str, "As it was given."]
    baseline: Annotated[
        float | None, "What the number was; null for a floor or ceiling, or where it was undefined."
    ]
    drop: Annotated[float | None, "By how much it fell; below 0 where it rose."]
    interval: Annotated[
        list[float | None] | None, "Of that drop: its two ends.", Limits(min_length=2, max_length=2)
    ]
    confidence: float | None
    ground_truths: Annotated[
        int | None,
        "How many the number counts: of its class, area range, slice or group of classes.",
    ]
    message: str


class GatesData(TypedDict):
    """Numbers against limits."""

    passed: Annotated[bool, "Whether none failed."]
    failed: Count
    warned: Count
    checks: list[GateEntry]


KEY = "gates"

MARKS = {
    "passed": "passed",
    "failed": "FAILED",
    "undefined": "FAILED",
    "inconclusive": "warning",
    "too-few": "warning",
}
"""What people read of a verdict."""

_MOST_SHOWN = 10

FAILURES = ("failed", "undefined")
WARNINGS = ("inconclusive", "too-few")


@dataclass(frozen=True, slots=True)
class Checks:
    """The gates of a report, as mappings; see ``Gate.as_dict`` in detap/gates/checks.py."""

    all: Sequence[Mapping[str, Any]]

    @property
    def failed(self) -> list[Mapping[str, Any]]:
        """Those that fail the run."""
        return [check for check in self.all if check["verdict"] in FAILURES]

    @property
    def failed_names(self) -> set[str]:
        """The names of those that fail the run."""
        return {check["name"] for check in self.failed}

    @property
    def warned(self) -> list[Mapping[str, Any]]:
        """Those that only warn."""
        return [check for check in self.all if check["verdict"] in WARNINGS]

    @property
    def verdict(self) -> str:
        """The outcome in a few words; empty where there are no gates."""
        count = len(self.all)
        if not count:
            return ""
        gates = "1 gate" if count == 1 else f"{count} gates"
        if self.failed:
            failed = f"{len(self.failed)} of {gates} failed"
            return "the gate failed" if count == 1 else failed
        passed = f"{gates} passed"
        return f"{passed}, {len(self.warned)} with a warning" if self.warned else passed


def checks_of(report: Report) -> Checks:
    """Return the gates of a report; none where it has no such block."""
    for block in report.blocks:
        if block.key == KEY:
            return Checks(block.data["checks"])
    return Checks(())


def shortened(checks: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return the checks that people are shown: of those that passed, the first few."""
    notable = sum(MARKS[check["verdict"]] != "passed" for check in checks)
    most = max(notable, _MOST_SHOWN)
    return checks if len(checks) <= most + 1 else checks[:most]


def gate_block(gates: "Sequence[Gate]") -> Block:
    """Return the part of a report that tells of the gates, those that failed first."""
    order = {"FAILED": 0, "warning": 1, "passed": 2}
    ranked = sorted(gates, key=lambda gate: order[MARKS[gate.verdict]])
    checks = Checks([gate.as_dict() for gate in ranked])
    told = shortened(checks.all)
    lines = [f"{MARKS[check['verdict']]:<7}  {check['message']}" for check in told]
    verdicts = [MARKS[check["verdict"]].lower() for check in told]
    if len(told) < len(ranked):
        lines.append(f"{'passed':<7}  {len(ranked) - len(told)} more")
        verdicts.append("passed")
    return Block(
        key=KEY,
        title=f"Gates: {checks.verdict}",
        data={
            "passed": not checks.failed,
            "failed": len(checks.failed),
            "warned": len(checks.warned),
            "checks": checks.all,
        },
        lines=tuple(lines),
        verdicts=tuple(verdicts),
    )


def judged_blocks(judged: "GateResults") -> tuple[Block, ...]:
    """Return the parts of a report that tell of gates, of what made them fail, and of noise."""
    blocks = [gate_block(judged.gates)] if judged.gates else []
    if judged.culprits is not None:
        from detap.report.sections.regressions import culprits_block  # seldom

        blocks.append(culprits_block(judged.culprits))
    if judged.resolution is not None:
        from detap.report.sections.power import resolution_block  # only with intervals

        blocks.append(resolution_block(judged.resolution))
    return tuple(blocks)
