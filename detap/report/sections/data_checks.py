"""The report of a data check: errors, statistics and counts by class."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from detap.checks.statistics import DataCheck
from detap.errors import Problem
from detap.report.fields import Count, Input, Object, Version, each, field, list_of, report_of
from detap.report.model import Block, Column, Report, Table, columns_of, name_column
from detap.report.numbers import with_totals

ProblemEntry = Object(
    "ProblemEntry", others=str, **each(str, "file", "location", "message", "hint")
)

CheckedClass = Object(
    "CheckedClass",
    others=Any,
    name=str,
    id=int | str,
    **each(field(Count, "Of boxes.", required=False), "ground_truths", "detections"),
)

CheckReport = report_of(
    Literal["check"],
    "CheckReport",
    "The JSON report of detap check.",
    version=Version,
    inputs=field(list_of(Input), "The readable inputs."),
    errors=Object(
        "ProblemsData",
        "Errors for which detap eval refuses the inputs.",
        others=Any,
        problems=list_of(ProblemEntry),
        omitted=field(Count, "Errors that are not listed."),
    ),
    statistics=field(dict[str, float | list[str] | None], "Null if not applicable."),
    classes=list_of(CheckedClass),
)

_MAX_NAMES = 5  # in text; JSON has all


def data_check_report(
    data_check: DataCheck,
    *,
    problems: Sequence[Problem] = (),
    omitted: int = 0,
    inputs: Sequence[Mapping[str, Any]] = (),
) -> Report:
    """Return the report of a data check."""
    rows = data_check.classes
    counted: list[str] = [key for key in ("ground_truths", "detections") if rows and key in rows[0]]
    table = with_totals((name_column("class"), *columns_of("count", *counted)), rows, "total")
    count, listed = len(problems) + omitted, [problem._asdict() for problem in problems]
    errors = {"problems": listed, "omitted": omitted}
    figures = {one.key: one.value for one in data_check.statistics}
    shown = tuple(
        {"name": one.title, "value": _format_value(one.value)} for one in data_check.statistics
    )
    columns = (name_column("Data set"), Column("value", "", "", "name"))
    return Report(
        kind="check",
        inputs=tuple(inputs),
        table=table if rows else table._replace(totals=None),
        notes=data_check.notes,
        blocks=(
            Block("errors", f"{count} error{'s' * (count != 1)}" if count else "No errors", errors),
            Block("statistics", "", figures, (), Table(columns, shown) if shown else None),
        ),
    )


def _format_value(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        more = f", ... ({len(value)})" if len(value) > _MAX_NAMES else ""
        return (", ".join(value[:_MAX_NAMES]) + more) or "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
