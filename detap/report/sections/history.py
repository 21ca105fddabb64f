"""Runs over time: a table for each series that can be compared within itself."""

from collections.abc import Sequence
from math import isnan
from typing import Any, Literal

from detap.errors import Note
from detap.escaping import escape
from detap.gates.history import Series
from detap.report.fields import Empty, Object, Signature, field, list_of, report_of
from detap.report.model import Block, Cell, Column, Kind, Report, Table, columns_of, name_column

HistoryEntry = Object(
    "HistoryEntry",
    others=field(float | None, "A metric, by name."),
    name=field(str, "The path of the report."),
    gates=field(Literal["passed", "FAILED", None], "Null without gates."),
    change=field(float | None, "Of the first metric since the previous run; null for the first."),
    detap_version=str,
)

SeriesEntry = Object(
    "SeriesEntry",
    "Reports that are comparable with each other only.",
    differences=field(list[str], minItems=1),
    signature=str,
    reports=field(list_of(HistoryEntry), minItems=1),
)

NotComparableData = Object(
    "NotComparableData", others=Any, series=field(list_of(SeriesEntry), minItems=1)
)

HistoryReport = report_of(
    Literal["history"],
    "HistoryReport",
    "The JSON report of detap history. Undefined metrics are null.",
    signature=Signature,
    protocol=dict[str, Any],
    inputs=field(list[Any], "The ground truth of the latest report."),
    summary=Empty,
    reports=field(list_of(HistoryEntry), "Comparable with the latest, in order.", minItems=1),
    notes=list[Any],
    not_comparable=field(NotComparableData, required=False),
)

KEY = "history"


def history_report(series: Sequence[Series]) -> Report:
    """Return the report of runs, the series of the latest run first."""
    latest = series[0].runs[-1].record
    truth = [item for item in latest["inputs"] if item.get("role") == "ground_truth"]
    blocks: list[Block] = []
    data: list[dict[str, Any]] = []  # of all remaining series, in the first block
    for other in series[1:]:
        table = _table(other)
        data.append(SeriesEntry(other, signature=other.runs[-1].signature, reports=table.rows))
        title = f"Not comparable with the latest report: {len(other.runs)}"
        key, of_all = ("", {}) if blocks else ("not_comparable", {"series": data})
        blocks.append(Block(key, title, of_all, tuple(map(escape, other.differences)), table))
    return Report(
        kind=KEY,
        signature=series[0].runs[-1].signature,
        protocol=latest["protocol"],
        inputs=tuple(truth),
        table=_table(series[0]),
        notes=tuple(history_notes(series)),
        blocks=tuple(blocks),
    )


def history_block(series: Series) -> Block:
    """Return the runs of a series as a part of another report."""
    table = _table(series)
    title = f"{table.columns[1].heading} over {len(series.runs)} runs"
    return Block(KEY, title, {"reports": table.rows}, table=table)


def history_notes(series: Sequence[Series]) -> list[Note]:
    """Return a note if some reports are not comparable with the latest."""
    count = sum(len(other.runs) for other in series[1:])
    text = "reports not comparable with the latest, listed separately"
    return [Note("history-not-comparable", text, count)] if count else []


def _table(series: Series) -> Table:
    first, *others = series.runs[-1].metrics
    versions = {run.version for run in series.runs}
    columns = [
        name_column("report"),
        _metric_column(first, series, 0),
        Column("change", "change", "diff", "count_change" if first in series.counts else "change"),
        *columns_of("text", "gates"),
        *(_metric_column(name, series, 1) for name in others),
    ]
    if len(versions) > 1:
        columns.append(Column("detap_version", "detap", "detap", "text", 1))
    rows = []
    for run, change in zip(series.runs, series.changes, strict=True):
        gates = run.record.get("gates")
        row: dict[str, Cell] = {
            "name": run.name,
            "gates": gates if gates is None else "passed" if gates["passed"] else "FAILED",
            "detap_version": run.version,
            "change": change,
        }
        for name in (first, *others):
            value = run.metrics[name]
            row[name] = int(value) if name in series.counts and not isnan(value) else value
        rows.append(row)
    return Table(tuple(columns), tuple(rows))


def _metric_column(name: str, series: Series, priority: int) -> Column:
    kind: Kind = "count" if name in series.counts else "fraction"
    return Column(name, name, name, kind, priority)
