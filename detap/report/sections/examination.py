"""From an examination to a report: what is wrong, what is there, and the counts of each class."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from detap.errors import Problem
from detap.report.model import Block, Column, Report, Table

if TYPE_CHECKING:
    from detap.checks.statistics import Examination, Fact

_COUNTS = (
    Column("ground_truths", "ground truths", "GT", "count"),
    Column("detections", "detections", "det", "count"),
)
_NAMES = 5
"""Names that a line for people lists; JSON has all."""


def examination_report(
    examination: "Examination",
    *,
    problems: Sequence[Problem] = (),
    omitted: int = 0,
    inputs: Sequence[Mapping[str, Any]] = (),
) -> Report:
    """Return the report of what was examined.

    Parameters
    ----------
    examination : Examination
        Of :func:`detap.checks.statistics.examine`; empty where nothing could be read.
    problems : sequence of Problem
        What is wrong with the inputs.
    omitted : int
        How many further problems there are.
    inputs : sequence of mapping
        As :func:`detap.report.inputs.describe` makes them.
    """
    rows = examination.classes
    counts = [column for column in _COUNTS if rows and column.key in rows[0]]
    totals = {column.key: sum(row[column.key] for row in rows) for column in counts}
    columns = (Column("name", "class", "class", "name"), *counts)
    return Report(
        kind="check",
        inputs=tuple(inputs),
        table=Table(columns, rows, {"name": "total", **totals} if rows else None),
        notes=examination.notes,
        blocks=(_errors(problems, omitted), *_facts(examination.facts)),
    )


def _errors(problems: Sequence[Problem], omitted: int) -> Block:
    listed = [problem._asdict() for problem in problems]
    count = len(problems) + omitted
    title = f"{count} error{'s' * (count != 1)}" if count else "no errors"
    return Block("errors", title, {"problems": listed, "omitted": omitted})


def _facts(facts: Sequence["Fact"]) -> tuple[Block, ...]:
    rows = tuple({"name": fact.title, "value": _shown(fact.value)} for fact in facts)
    columns = (
        Column("name", "what is there", "what is there", "name"),
        Column("value", "", "", "name"),
    )
    data = {fact.key: fact.value for fact in facts}
    return (Block("facts", "", data, (), Table(columns, rows) if rows else None),)


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        more = f", ... ({len(value)})" if len(value) > _NAMES else ""
        return (", ".join(value[:_NAMES]) + more) or "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
