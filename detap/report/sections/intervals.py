"""Confidence intervals of the metrics in a report."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan, nan
from typing import Any

from detap import metrics
from detap.analysis.intervals import Interval, MetricIntervals
from detap.report.fields import ClassId, Count, Object, dict_of, field, list_of
from detap.report.model import Block, Cell, Column, Report, Table
from detap.report.numbers import UNDEFINED, fraction, names_of_classes, rows_of

_SIDES = ("low", "high")
_Ends = Mapping[str, Interval]  # by metric

Ends = field(
    list[float | None], "Lower and upper end; null without an interval.", minItems=2, maxItems=2
)

ClassIntervals = Object("ClassIntervals", others=Ends, name=str, id=ClassId)

SliceIntervalsData = Object(
    "SliceIntervalsData", summary=dict_of(Ends), classes=list_of(ClassIntervals)
)

IntervalsData = Object(
    "IntervalsData",
    "The confidence intervals of the metrics: bootstrap over images.",
    confidence=field(float, "The level of the intervals."),
    resamples=field(int, minimum=1),
    seed=Count,
    min_ground_truths=field(Count, "Metrics of fewer ground truths have no interval."),
    summary=dict_of(Ends),
    classes=field(list_of(ClassIntervals), "In the order of the ground truth."),
    slices=field(dict_of(SliceIntervalsData), required=False),
)


def with_intervals(report: Report, of_slices: Mapping[str | None, MetricIntervals]) -> Report:
    """Return the report with the confidence intervals of its metrics."""
    intervals = of_slices[None]
    primary = metrics.summary(intervals.result.protocol)[0]
    level = f"{100 * intervals.confidence:g}% CI"
    params = {
        name: (format_interval(intervals.summary[name]), *report.params[name])
        for name in report.summary
    }
    slices = {tag: one for tag, one in of_slices.items() if tag is not None}
    blocks = [*report.blocks]
    for number, block in enumerate(blocks):
        if block.key == "slices" and block.table is not None:
            name, tags = primary.name, [str(row["name"]) for row in block.table.rows]
            ends = [{name: slices[tag].of(name) if tag in slices else (nan, nan)} for tag in tags]
            blocks[number] = block._replace(table=with_ends(block.table, name, ends, {}))
    of_parts = {"slices": {tag: _data(one) for tag, one in slices.items()}} if slices else {}
    data = IntervalsData(intervals, **_data(intervals), **of_parts)
    # The class table with the intervals: columns of the primary metric, cells of all.
    names = [(name["name"], name["id"]) for name in names_of_classes(intervals.result)]
    by_class: Any = dict(zip(names, rows_of(intervals.by_class), strict=True))
    of_means = {
        spec.class_name: intervals.of(spec.name)
        for spec in metrics.columns(intervals.result.protocol)
        if spec.metric.scope == "both"
    }
    of_rows = [by_class[row["name"], row["id"]] for row in report.table.rows]
    images = len(intervals.result.images)
    line = f"{level}: bootstrap, {intervals.resamples:,} resamples of {images:,} images"
    return replace(
        report,
        param_columns=(Column("interval", level, level, "text"), *report.param_columns),
        params=params,
        table=with_ends(report.table, primary.class_name, of_rows, of_means),
        rows=report.table.rows,
        notes=(*report.notes, *intervals.notes),
        blocks=(*blocks, Block("intervals", "", data, (line,))),
    )


def _data(intervals: MetricIntervals) -> dict[str, Any]:
    by_class = zip(names_of_classes(intervals.result), rows_of(intervals.by_class), strict=True)
    classes = [{**name, **ends} for name, ends in by_class]
    return {"summary": intervals.summary, "classes": classes}


def with_ends(table: Table, name: str, rows: Sequence[_Ends], totals: _Ends) -> Table:
    """Return a table with the intervals of its rows and totals; columns of one metric show them."""
    index = next(i for i, column in enumerate(table.columns) if column.key == name) + 1
    ends = (Column(f"{name}_{side}", f"CI {side}", f"CI {side}", "fraction") for side in _SIDES)
    return table._replace(
        columns=(*table.columns[:index], *ends, *table.columns[index:]),
        rows=tuple({**row, **_cells(of)} for row, of in zip(table.rows, rows, strict=True)),
        totals=table.totals and {**table.totals, **_cells(totals)},
    )


def _cells(ends: _Ends) -> dict[str, Cell]:
    return {
        f"{name}_{side}": end
        for name, pair in ends.items()
        for side, end in zip(_SIDES, pair, strict=True)
    }


def format_interval(ends: Interval) -> str:
    """Format an interval."""
    low, high = ends
    return UNDEFINED if isnan(low) else f"[{fraction(low, 4)}, {fraction(high, 4)}]"
