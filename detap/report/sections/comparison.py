"""The report of two detectors: metrics, classes and images side by side."""

from collections.abc import Mapping, Sequence
from math import isnan, nan
from typing import Any, Literal

from detap import metrics
from detap.analysis.comparison import (
    KINDS,
    LABELS,
    Comparison,
    ErrorCounts,
    count_errors,
    difference,
)
from detap.analysis.intervals import Interval
from detap.analysis.power import power_analysis
from detap.errors import Note
from detap.evaluation.results import class_rows
from detap.protocols import Protocol
from detap.report.fields import (
    ClassId,
    Count,
    Empty,
    Input,
    NoteEntry,
    Object,
    each,
    field,
    list_of,
    report_of,
)
from detap.report.model import Block, Cell, Column, Report, Table, columns_of, name_column
from detap.report.numbers import change, excludes_zero, fraction, hidden_rows
from detap.report.sections.errors import SHORT
from detap.report.sections.power import PowerData, power_block
from detap.report.sections.selection import selection_blocks

MOST_ROWS = 10
"""Rows of the main table on a terminal, unless more are requested."""

_SHORT = {**SHORT, "missed": "FN"}

MetricPair = Object(
    "MetricPair",
    "A metric of both detectors and the difference.",
    name=str,
    **each(float | None, "first", "second", "difference"),
    low=field(float | None, "The lower end of the confidence interval of the difference."),
    high=float | None,
)

ClassPair = Object(
    "ClassPair",
    "The primary metric of a class for both detectors and the difference.",
    others=Any,
    name=str,
    id=ClassId,
    **each(float | None, "first", "second", "difference", "low", "high"),
    ground_truths=Count,
)

ChangedClasses = Object(
    "ChangedClasses",
    "All classes, and the number of changed ones.",
    changed=Count,
    all=field(list_of(ClassPair), "In descending order of the change of the primary metric."),
)

ImageChange = Object(
    "ImageChange",
    "The change of the errors on an image, second minus first.",
    others=Any,
    name=int | str,
    **each(int, "errors", *KINDS),
)

ChangedImages = Object(
    "ChangedImages",
    "The images with changed errors, and their number.",
    changed=Count,
    all=field(
        list_of(ImageChange), "Images with changed errors, in descending order of the change."
    ),
)

ErrorPair = Object(
    "ErrorPair",
    "The errors of one type for both detectors.",
    others=Any,
    **each(Count, "first", "second"),
    difference=int,
)

ErrorPairs = Object(
    "ErrorPairs",
    "The errors by type at the best-F1 threshold.",
    others=ErrorPair,
    **each(ErrorPair, *KINDS),
)

ComparisonReport = report_of(
    Literal["comparison"],
    "ComparisonReport",
    "The JSON report of detap compare. Undefined metrics are null.",
    signature=field(str, pattern="^protocol:"),
    protocol=dict[str, Any],
    inputs=list_of(Input),
    conclusion=field(str, "The change of the primary metric in a sentence."),
    summary=Empty,
    metrics=field(list_of(MetricPair), "The summary metrics."),
    classes=ChangedClasses,
    images=field(ChangedImages, required=False),
    errors=field(ErrorPairs, required=False),
    power=field(PowerData, required=False),
    notes=list_of(NoteEntry),
    selection=field(dict[str, Any], required=False),
)


def comparison_report(
    comparison: Comparison,
    *,
    inputs: Sequence[Mapping[str, Any]] = (),
    notes: Sequence[Note] = (),
    max_rows: int | None = None,
    drop: float | None = None,
) -> Report:
    """Return the report of two detectors, with at most `max_rows` classes, and images."""
    protocol = comparison.first.protocol
    second = comparison.second.summary
    rows = [
        pair_row(name, value, second[name], comparison.interval(name))
        for name, value in comparison.first.summary.items()
    ]
    analysis = power_analysis(comparison, drop)  # None if images were not resampled
    power = () if analysis is None else (power_block(analysis, max_rows),)
    level = "" if comparison.resamples is None else f" ({100 * comparison.confidence:g}% CI)"
    errors = count_errors(comparison.first), count_errors(comparison.second)
    classes = _class_rows(comparison, errors)
    shown = None if max_rows is None else max(max_rows, MOST_ROWS)
    return Report(
        kind="comparison",
        title=f"Comparison{level}",
        conclusion=conclusion(rows[0], classes, comparison),
        signature=comparison.second.signature,
        protocol=protocol.as_dict(),
        inputs=tuple(inputs),
        table=_table("metric", comparison, rows)._replace(shown=shown),
        notes=tuple(notes),
        blocks=(
            _errors(protocol, *errors),
            _classes(comparison, classes, max_rows),
            *power,
            _images(comparison, errors, max_rows),
            *selection_blocks(comparison.second.selection),
        ),
    )


def conclusion(
    metric: Mapping[str, Any], classes: Sequence[Mapping[str, Any]], comparison: Comparison | None
) -> str:
    """Describe the difference of a metric, and count the classes that changed, given by rows."""
    name, value, low, high = (metric[key] for key in ("name", "difference", "low", "high"))
    if isnan(value):
        text = f"{name} is undefined for one of the detectors"
    elif value == 0:
        text = f"{name} is unchanged"
    else:
        text = f"{name} {'rose' if value > 0 else 'dropped'} by {fraction(abs(value), 4)}"
        if comparison is None or comparison.resamples is None:
            text += " (no interval: no resamples)"
        elif isnan(low):
            text += f" (no interval: fewer than {comparison.min_ground_truths} ground truths)"
        else:
            ends = f"{change(low, 4)} to {change(high, 4)}"
            text += f" ({100 * comparison.confidence:g}% CI {ends})"
            text += "" if excludes_zero(low, high) else ", within noise"
    if len(classes) < 2:
        return text
    without = sum(isnan(row["low"]) for row in classes)
    if without == len(classes):
        changed = sum(_magnitude(row["difference"]) > 0 for row in classes)
        return f"{text}; {changed} of {without} classes changed, none has an interval"
    changed = sum(excludes_zero(row["low"], row["high"]) for row in classes)
    text += f"; {changed} of {len(classes)} classes changed beyond noise"
    if without:
        text += f", {without} {'has' if without == 1 else 'have'} no interval"
    return text


def pair_row(
    name: Cell, first: Any, second: Any, interval: Interval, **more: Cell
) -> dict[str, Any]:
    """Return a metric of both, and the difference with its interval; None is undefined."""
    first, second = (nan if value is None else value for value in (first, second))
    row = {"name": name, **more, "first": first, "second": second}
    low, high = interval
    return row | {"difference": difference(float(first), float(second)), "low": low, "high": high}


def _table(
    heading: str, comparison: Comparison, rows: Sequence[Mapping[str, Cell]], *more: Column
) -> Table:
    """Return a table of pairs; `more` are further columns."""
    ends = () if comparison.resamples is None else ("low", "high")
    columns = (
        name_column(heading),
        *columns_of("fraction", "first", "second"),
        Column("difference", "diff", "diff", "change"),
        *(Column(end, f"CI {end}", f"CI {end}", "change") for end in ends),
        *more,
    )
    return Table(columns, tuple(rows), interval=("difference", *ends) if ends else ())


def _class_rows(
    comparison: Comparison, errors: tuple[ErrorCounts, ErrorCounts]
) -> list[dict[str, Cell]]:
    """Return the classes by descending change of the primary metric."""
    class_pairs = zip(class_rows(comparison.first), class_rows(comparison.second), strict=True)
    primary = metrics.summary(comparison.first.protocol)[0]
    key = primary.class_name
    changes = (errors[1].by_class - errors[0].by_class).tolist()
    rows = []
    for label, (first, second) in enumerate(class_pairs):
        ends = comparison.interval(primary.name, label)
        row = pair_row(second["name"], first[key], second[key], ends, id=second["id"])
        row["ground_truths"] = second["ground_truths"]
        rows.append(row | dict(zip(KINDS, changes[label], strict=True)))
    rows.sort(key=lambda row: -_magnitude(row["difference"]))
    return rows


def _classes(
    comparison: Comparison, rows: Sequence[Mapping[str, Cell]], max_rows: int | None
) -> Block:
    changed = [row for row in rows if _magnitude(row["difference"]) > 0]
    title = _title("class", "classes", len(changed), len(rows))
    data = {"changed": len(changed), "all": rows}
    counts = columns_of("count", "ground_truths", priority=1)
    return top_rows("classes", title, data, _table("class", comparison, changed, *counts), max_rows)


def _magnitude(difference: Cell) -> float:
    return abs(difference) if isinstance(difference, float) and not isnan(difference) else 0.0


def _images(
    comparison: Comparison, errors: tuple[ErrorCounts, ErrorCounts], max_rows: int | None
) -> Block:
    """Return the images by descending change of their errors, worse ones first."""
    changed = (errors[1].by_image - errors[0].by_image).tolist()
    names = comparison.first.images
    totals = [(sum(counts), image, counts) for image, counts in enumerate(changed) if any(counts)]
    totals.sort(key=lambda row: (abs(row[0]), row[0]), reverse=True)
    rows: list[dict[str, Cell]] = [
        {"name": names[image], "errors": total, **dict(zip(KINDS, counts, strict=True))}
        for total, image, counts in totals
    ]
    columns = (
        name_column("image"),
        Column("errors", "errors", "all", "count_change"),
        *(Column(kind, LABELS[kind], _SHORT[kind], "count_change") for kind in KINDS),
    )
    title = _title("image", "images", len(rows), len(names))
    data = {"changed": len(rows), "all": rows}
    return top_rows("images", title, data, Table(columns, tuple(rows)), max_rows)


def _errors(protocol: Protocol, *error_counts: ErrorCounts) -> Block:
    """Return the errors of both by type."""
    totals = (errors.by_image.sum(axis=0).tolist() for errors in error_counts)
    data: dict[str, dict[str, Cell]] = {
        kind: {"first": first, "second": second, "difference": second - first}
        for kind, first, second in zip(KINDS, *totals, strict=True)
    }
    columns = (
        name_column("errors"),
        *columns_of("count", "first", "second"),
        Column("difference", "diff", "diff", "count_change"),
    )
    rows = tuple({"name": LABELS[kind], **counts} for kind, counts in data.items())
    iou = protocol.iou_thresholds[0]  # as in `count_errors`
    point = " and the best-F1 score of each class" if protocol.has_scores else ""
    title = f"Errors at IoU {iou:g}{point}"
    return Block("errors", title, data, table=Table(columns, rows))


def _title(singular: str, plural: str, changed: int, count: int) -> str:
    return f"{changed} of {count} {plural} changed" if changed else f"No {singular} changed"


def top_rows(
    key: str, title: str, data: Mapping[str, Any], table: Table, max_rows: int | None
) -> Block:
    """Return a block of the first rows of a table, and a line with the number of the others."""
    top = table._replace(rows=table.rows[:max_rows])
    lines = hidden_rows(len(table.rows) - len(top.rows))
    return Block(key, title, data, lines, top if top.rows else None)
