"""The report of a data check: errors, statistics and counts by class."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from detap.checks.statistics import DataCheck, Statistic
from detap.errors import Problem
from detap.report.fields import Count, Limits, extra_items
from detap.report.model import Block, Column, Report, Table


@extra_items(Any)
class CheckedInput(TypedDict):
    """A file that was read."""

    role: Literal["ground_truth", "detections"]
    path: str
    sha256: Annotated[str | None, Limits(pattern=r"^[0-9a-f]{64}$")]
    files: Annotated[int, Limits(minimum=1)]
    records: Count


@extra_items(str)
class ProblemEntry(TypedDict):
    """An error in the input."""

    file: str
    location: str
    message: str
    hint: str


@extra_items(Any)
class ProblemsData(TypedDict):
    """Errors for which detap eval refuses the inputs."""

    problems: list[ProblemEntry]
    omitted: Annotated[Count, "Errors that are not listed."]


@extra_items(Any)
class CheckNote(TypedDict):
    """A note on the inputs."""

    code: Annotated[str, Limits(pattern=r"^[a-z0-9-]+$")]
    message: str
    count: Count
    severity: Literal["warning", "info"]


@extra_items(Any)
class CheckedClass(TypedDict):
    """A class and its number of boxes."""

    name: str
    id: int | str
    ground_truths: NotRequired[Count]
    detections: NotRequired[Count]


@extra_items(Any)
class CheckReport(TypedDict):
    """The JSON report of detap check.

    New keys do not change schema_version; removed or changed keys do.
    """

    schema_version: Literal[2]
    detap_version: Annotated[str, Limits(pattern=r"^[0-9]+\.[0-9]+")]
    kind: Literal["check"]
    inputs: Annotated[list[CheckedInput], "The readable inputs."]
    errors: ProblemsData
    notes: list[CheckNote]
    statistics: Annotated[
        dict[str, float | list[str] | None],
        "Data set statistics by key: a count, a number or names; null if not applicable.",
    ]
    classes: list[CheckedClass]


_COUNTS = (
    Column("ground_truths", "ground truths", "GT", "count"),
    Column("detections", "detections", "det", "count"),
)
_MAX_NAMES = 5
"""Maximum number of names in text; JSON has all."""


def data_check_report(
    data_check: DataCheck,
    *,
    problems: Sequence[Problem] = (),
    omitted: int = 0,
    inputs: Sequence[Mapping[str, Any]] = (),
) -> Report:
    """Return the report of a data check."""
    rows = data_check.classes
    counts = [column for column in _COUNTS if rows and column.key in rows[0]]
    totals = {column.key: sum(row[column.key] for row in rows) for column in counts}
    columns = (Column("name", "class", "class", "name"), *counts)
    return Report(
        kind="check",
        inputs=tuple(inputs),
        table=Table(columns, rows, {"name": "total", **totals} if rows else None),
        notes=data_check.notes,
        blocks=(_errors(problems, omitted), *_statistics(data_check.statistics)),
    )


def _errors(problems: Sequence[Problem], omitted: int) -> Block:
    listed = [problem._asdict() for problem in problems]
    count = len(problems) + omitted
    title = f"{count} error{'s' * (count != 1)}" if count else "No errors"
    return Block("errors", title, {"problems": listed, "omitted": omitted})


def _statistics(statistics: Sequence[Statistic]) -> tuple[Block, ...]:
    rows = tuple(
        {"name": statistic.title, "value": _format_value(statistic.value)}
        for statistic in statistics
    )
    columns = (
        Column("name", "Data set", "Data set", "name"),
        Column("value", "", "", "name"),
    )
    data = {statistic.key: statistic.value for statistic in statistics}
    return (Block("statistics", "", data, (), Table(columns, rows) if rows else None),)


def _format_value(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        more = f", ... ({len(value)})" if len(value) > _MAX_NAMES else ""
        return (", ".join(value[:_MAX_NAMES]) + more) or "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
