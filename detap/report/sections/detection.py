"""The report of a detector: metrics, class table and notes."""

from collections.abc import Mapping, Sequence
from typing import Any

from detap import metrics
from detap.errors import Note
from detap.evaluation.results import Result, class_rows
from detap.metrics.metric import MetricSpec
from detap.protocols import Protocol
from detap.report.model import Block, Cell, Column, PageSource, Report, Table
from detap.report.numbers import is_undefined, mean
from detap.report.sections.metric_details import metric_details
from detap.report.sections.selection import selection_blocks

_COUNTS = (
    Column("ground_truths", "ground truths", "GT", "count"),
    Column("ignored", "ignored", "ignored", "count"),
    Column("detections", "detections", "det", "count"),
    Column("true_positives", "true positives", "TP", "count"),
    Column("false_positives", "false positives", "FP", "count"),
    Column("duplicates", "duplicates", "dup", "count"),
)


def detection_report(
    result: Result,
    *,
    inputs: Sequence[Mapping[str, Any]] = (),
    notes: Sequence[Note] = (),
    blocks: Sequence[Block] = (),
    sort: str | None = None,
    reverse: bool = False,
) -> Report:
    """Return the report of a detector."""
    protocol = result.protocol
    blocks = (*blocks, *selection_blocks(result.selection))
    # The tolerance holds for the unchanged preset only.
    if protocol.tolerance and protocol == protocol.preset(protocol.name):
        blocks = (*blocks, _reproduction(protocol))
    rows = class_rows(result)
    columns = class_columns(protocol)
    specs = metrics.summary(protocol)
    param_columns = _param_columns(protocol)
    return Report(
        kind="detection",
        signature=result.signature,
        protocol=protocol.as_dict(),
        inputs=tuple(inputs),
        summary=dict(result.summary),
        param_columns=param_columns,
        params={
            spec.name: tuple(getattr(spec.params, column.key) for column in param_columns)
            for spec in specs
        },
        columns={spec.name: _column(protocol, spec, spec.name) for spec in specs},
        table=Table(columns, sorted_rows(rows, sort, reverse), _totals(result, columns, rows)),
        notes=(*result.notes, *notes),
        blocks=(*metric_details(result), *blocks),
        page_source=PageSource(result),
    )


def _reproduction(protocol: Protocol) -> Block:
    """Return the tolerance of the preset against its source."""
    data = {"source": protocol.source, "tolerance": protocol.tolerance, "residue": protocol.residue}
    within = f"within {protocol.tolerance:g} ({protocol.residue})"
    line = f"{protocol.name} reproduces {protocol.source} {within}"
    return Block("reproduces", "", data, (line,))


def _param_columns(protocol: Protocol) -> tuple[Column, ...]:
    """Return the columns of the parameters of the summary's metrics."""
    iou = "OKS" if protocol.iou_type == "keypoints" else "IoU"
    kitti = protocol.min_height or protocol.max_occlusion or protocol.max_truncation
    area = "difficulty" if kitti else "area"
    columns = (
        Column("iou", iou, iou, "text"),
        Column("area", area, area, "text"),
        Column("max_dets", "max dets", "max dets", "count"),
        Column("classes", "classes", "classes", "text"),
    )
    return columns if protocol.class_groups != "none" else columns[:-1]


def class_columns(protocol: Protocol) -> tuple[Column, ...]:
    """Return the columns of the class table: name, metrics, counts."""
    specs = metrics.columns(protocol)
    columns = (_column(protocol, spec, spec.class_name) for spec in specs)
    return (Column("name", "class", "class", "name"), *columns, *_COUNTS)


def _column(protocol: Protocol, spec: MetricSpec, key: str) -> Column:
    """Return the column of a metric, with its unit and direction."""
    metric = spec.metric
    overall = spec.area == 0 and spec.max_dets_index == len(protocol.max_dets) - 1
    unit = f" [{metric.unit}]" if metric.unit else ""
    return Column(
        key,
        f"{key}{unit}",
        spec.heading or key,
        "fraction",
        0 if overall else metric.column_priority,
        higher_is_better=metric.higher_is_better,
    )


def sorted_rows(
    rows: Sequence[dict[str, Cell]], key: str | None, reverse: bool
) -> tuple[dict[str, Cell], ...]:
    """Sort the rows by a column (stable)."""
    if key is None:
        return tuple(reversed(rows)) if reverse else tuple(rows)
    last = [row for row in rows if is_undefined(row[key])]
    defined = [row for row in rows if not is_undefined(row[key])]
    descending = not isinstance(defined[0][key], str) if defined else False
    defined.sort(key=lambda row: row[key], reverse=descending != reverse)  # type: ignore[arg-type,return-value]
    return (*defined, *last)


def _totals(
    result: Result, columns: Sequence[Column], rows: Sequence[Mapping[str, Cell]]
) -> dict[str, Cell]:
    """Return the last row: the means of the summary, the sums of the counts."""
    totals: dict[str, Cell] = {"name": "mean / sum"}
    summary = result.summary
    means = {spec.class_name: spec.name for spec in metrics.columns(result.protocol)}
    for column in columns[1:]:
        if column.kind == "count":
            totals[column.key] = sum(int(row[column.key] or 0) for row in rows)
        elif means[column.key] in summary:
            totals[column.key] = summary[means[column.key]]
        else:
            totals[column.key] = mean(row[column.key] for row in rows)
    return totals
