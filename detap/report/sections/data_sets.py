"""The report of several data sets."""

from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from typing import Any, Literal

from detap import metrics
from detap.analysis.data_sets import DataSets
from detap.analysis.intervals import Interval
from detap.errors import Note
from detap.report.fields import Count, MetricValue, Object, dict_of, each, field, list_of, report_of
from detap.report.model import Block, Cell, Column, Report, Table, columns_of, name_column
from detap.report.numbers import UNDEFINED, fraction
from detap.report.sections.gates import GatesData
from detap.report.sections.intervals import Ends, format_interval, with_ends

DataSetRow = Object(
    "DataSetRow",
    others=MetricValue,
    name=str,
    group=field(str | None, "Null for none."),
    images=field(int | None, "Null if a report does not state it."),
    **each(Count, "ground_truths", "detections"),
)

StatisticsEntry = Object(
    "StatisticsEntry",
    "A metric over the data sets where it is defined; it is undefined for those left out.",
    **each(MetricValue, "mean", "median"),
    **each(Object("NamedValue", data_set=str | None, value=MetricValue), "minimum", "maximum"),
    data_sets=Count,
    left_out=list[str],
)

GroupEntry = Object("GroupEntry", data_sets=field(int, minimum=1), summary=dict_of(MetricValue))

DataSetIntervals = Object(
    "DataSetIntervals",
    "Confidence intervals: bootstrap over the images of each data set.",
    confidence=float,
    **each(Count, "resamples", "seed", "min_ground_truths"),
    summary=field(dict_of(Ends), "Of the means."),
    data_sets=field(dict_of(dict_of(Ends)), "By data set and metric."),
)

DataSetsReport = report_of(
    Literal["data_sets"],
    "DataSetsReport",
    "The JSON report of detap eval --data-sets. Undefined metrics are null.",
    signature=field(str, "The common parts of the signatures.", pattern="^protocol:"),
    protocol=dict[str, Any],
    conclusion=str,
    summary=field(dict_of(MetricValue), "Over the data sets where it is defined.", minProperties=1),
    data_sets=field(list_of(DataSetRow), "In the order given.", minItems=1),
    statistics=dict_of(StatisticsEntry),
    groups=field(dict_of(GroupEntry), "By name, in the order given.", required=False),
    missing=field(list[str], "Data sets left out by --allow-missing.", required=False),
    intervals=field(DataSetIntervals, required=False),
    gates=field(GatesData, required=False),
)


def data_sets_report(
    data: DataSets, *, inputs: Sequence[Mapping[str, Any]] = (), notes: Sequence[Note] = ()
) -> Report:
    """Return the report of several data sets."""
    names = data.names
    primary = names[0]
    columns = {}
    for index, name in enumerate(names):
        metric = metrics.metric_named(data.protocol, name)  # None: of another version's report
        higher_is_better = metric is None or metric.higher_is_better
        columns[name] = Column(name, name, name, "fraction", min(index, 2), higher_is_better)
    rows: list[dict[str, Cell]] = [
        {"name": one.name, "group": one.group or None}
        | {name: data.values(name)[one.name] for name in names}
        | {key: getattr(one, key) for key in ("images", "ground_truths", "detections")}
        for one in data.sets
    ]
    table_columns: tuple[Column, ...] = (
        name_column("data set"),
        *(columns_of("name", "group") if data.groups else ()),
        *columns.values(),
        *columns_of("count", "images", "ground_truths", priority=1),
    )
    table = Table(table_columns, tuple(rows), {"name": "mean", **data.summary})
    if data.confidence is not None:
        of_sets = [_intervals(data, one.name) for one in data.sets]
        table = with_ends(table, primary, of_sets, _intervals(data))
    return Report(
        kind="data_sets",
        signature=data.signature,
        protocol=data.protocol.as_dict(),
        inputs=tuple(inputs),
        conclusion=_conclusion(data, primary),
        summary=data.summary,
        param_columns=tuple(_params(data, primary)),
        params={name: tuple(_params(data, name).values()) for name in names},
        columns=columns,
        table=table,
        rows=tuple(rows),
        notes=(*notes, *_notes(data)),
        blocks=tuple(_blocks(data, columns)),
    )


def _conclusion(data: DataSets, name: str) -> str:
    sets, missing = len(data.sets), len(data.missing)
    counted = len(data.defined(name))
    over = f"{counted}" if counted == sets else f"{counted} of {sets}"
    left_out = f"; {missing} missing" if missing else ""
    return f"Mean {name} over {over} data sets: {fraction(data.mean(name), 4)}{left_out}"


def _params(data: DataSets, name: str) -> dict[Column, str]:
    """Return the columns and texts behind the value of a metric in the summary."""
    lowest, value = data.minimum(name)
    texts = (fraction(data.median(name), 4), fraction(value, 4))
    params = dict(zip(columns_of("text", "median", "minimum"), texts, strict=True))
    params[Column("of", "data set", "data set", "text")] = lowest or UNDEFINED
    params |= dict.fromkeys(columns_of("count", "data_sets"), str(len(data.defined(name))))
    if data.confidence is None:
        return params
    level = f"{100 * data.confidence:g}% CI"
    return {Column("interval", level, level, "text"): format_interval(data.interval(name))} | params


def _blocks(data: DataSets, columns: Mapping[str, Column]) -> Iterator[Block]:
    names = data.names
    if data.groups:
        groups = {
            group: GroupEntry(
                data_sets=sum(one.group == group for one in data.sets),
                summary={name: data.mean(name, group) for name in names},
            )
            for group in data.groups
        }
        rows = tuple({"name": group, **of, **of["summary"]} for group, of in groups.items())
        counts = columns_of("count", "data_sets")
        table = Table((name_column("group"), *columns.values(), *counts), rows)
        yield Block("groups", "Group means", groups, table=table)
    statistics = {}
    for name in names:
        ends = {"minimum": data.minimum(name), "maximum": data.maximum(name)}
        statistics[name] = {
            "mean": data.mean(name),
            "median": data.median(name),
            **{key: {"data_set": of or None, "value": value} for key, (of, value) in ends.items()},
            "data_sets": len(data.defined(name)),
            "left_out": _left_out(data, name),
        }
    yield Block("statistics", "", statistics)
    if data.missing:
        yield Block("missing", "", data.missing)  # type: ignore[arg-type]
    if data.confidence is not None:
        line = (
            f"{100 * data.confidence:g}% CI: bootstrap, {data.resamples:,} resamples of the images "
            "of each data set"
        )
        intervals = DataSetIntervals(
            data,
            summary=_intervals(data),
            data_sets={one.name: _intervals(data, one.name) for one in data.sets},
        )
        yield Block("intervals", "", intervals, (line,))


def _intervals(data: DataSets, name: str | None = None) -> dict[str, Interval]:
    """Return the interval of each metric of a data set, or of the means."""
    return {metric: data.interval(metric, name) for metric in data.names}


def _left_out(data: DataSets, name: str) -> list[str]:
    """Return the data sets where a metric is undefined."""
    return [one for one, value in data.values(name).items() if isnan(value)]


def _notes(data: DataSets) -> Iterator[Note]:
    """Yield notes on data sets that are left out of means."""
    if data.missing:
        text = f"missing data sets are left out of the means: {', '.join(data.missing)}"
        yield Note("data-sets-missing", text, len(data.missing))
    undefined = {name: _left_out(data, name) for name in data.names}
    if left_out := list(dict.fromkeys(each for some in undefined.values() for each in some)):
        of = ", ".join(name for name, some in undefined.items() if some)
        text = f"data sets where {of} is undefined are left out of that mean: {', '.join(left_out)}"
        yield Note("data-sets-left-out", text, len(left_out), severity="info")
