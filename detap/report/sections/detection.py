"""From a result to a report: which numbers, under which names, in which order.

No formula is here, and nothing is rounded.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from detap import metrics
from detap.errors import Note
from detap.report.model import Block, Cell, Column, PageSource, Report, Table
from detap.report.numbers import is_undefined, mean

if TYPE_CHECKING:
    from detap.evaluation.detection import Result
    from detap.protocols import MetricSpec, Protocol


_COUNTS = (
    Column("ground_truths", "ground truths", "GT", "count"),
    Column("ignored", "ignored", "ignored", "count"),
    Column("detections", "detections", "det", "count"),
    Column("true_positives", "true positives", "TP", "count"),
    Column("false_positives", "false positives", "FP", "count"),
    Column("duplicates", "duplicates", "dup", "count"),
)


def detection_report(
    result: "Result",
    *,
    inputs: Sequence[Mapping[str, Any]] = (),
    notes: Sequence[Note] = (),
    blocks: Sequence[Block] = (),
    sort: str | None = None,
    reverse: bool = False,
) -> Report:
    """Return the report of an evaluated detector.

    Parameters
    ----------
    result : Result
        Of :func:`detap.evaluate`.
    inputs : sequence of mapping
        As :func:`detap.report.inputs.describe_inputs` makes them; may be left out for arrays.
    notes : sequence of Note
        What is to be said besides the result's own notes.
    blocks : sequence of Block
        Further parts, such as a cross-check.
    sort : str, optional
        The key of the column that orders the classes, of :func:`class_columns`: names ascend,
        numbers descend, undefined ones last. By default classes stay in their own order.
    reverse : bool
        Whether that order is turned round (undefined ones stay last).
    """
    from detap.evaluation.results import class_rows  # numpy, which comes with a result

    if result.selection is not None:
        from detap.report.sections.selection import selection_blocks  # a plain run selects nothing

        blocks = (*blocks, *selection_blocks(result.selection))
    protocol = result.protocol
    # Of a protocol that departs from its preset nothing is promised.
    if protocol.tolerance and protocol == protocol.preset(protocol.name):
        blocks = (*blocks, _reproduction(protocol))
    rows = class_rows(result)
    columns = class_columns(protocol)
    entries = metrics.summary(protocol)
    param_columns = _param_columns(protocol)
    return Report(
        kind="detection",
        signature=result.signature,
        protocol=protocol.as_dict(),
        inputs=tuple(inputs),
        summary=dict(result.summary),
        param_columns=param_columns,
        params={
            entry.name: tuple(getattr(entry.params, column.key) for column in param_columns)
            for entry in entries
        },
        columns={
            entry.name: _column(protocol, entry, entry.name, primary=entry is entries[0])
            for entry in entries
        },
        table=Table(columns, sorted_rows(rows, sort, reverse), _totals(result, columns, rows)),
        notes=(*result.notes, *notes),
        blocks=tuple(blocks),
        page_source=PageSource(result),
    )


def _reproduction(protocol: "Protocol") -> Block:
    """Say how far numbers may be from those of the preset's source."""
    data = {"source": protocol.source, "tolerance": protocol.tolerance, "residue": protocol.residue}
    within = f"within {protocol.tolerance:g} ({protocol.residue})"
    line = f"{protocol.name} reproduces {protocol.source} {within}"
    return Block("reproduces", "", data, (line,))


def _param_columns(protocol: "Protocol") -> tuple[Column, ...]:
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


def class_columns(protocol: "Protocol") -> tuple[Column, ...]:
    """Return the columns of the class table: the name, the metrics, the counts."""
    primary = metrics.summary(protocol)[0]
    columns = [Column("name", "class", "class", "name")]
    for entry in metrics.columns(protocol):
        columns.append(_column(protocol, entry, entry.class_name, primary=entry == primary))
    return (*columns, *_COUNTS)


def _column(protocol: "Protocol", entry: "MetricSpec", key: str, *, primary: bool) -> Column:
    """Return the column of a number, with the unit and the direction of its metric."""
    metric = entry.metric
    whole = entry.area == 0 and entry.max_dets_index == len(protocol.max_dets) - 1
    unit = f" [{metric.unit}]" if metric.unit else ""
    return Column(
        key,
        f"{key}{unit}",
        entry.heading or key,
        "fraction",
        0 if whole else metric.column_priority,
        graded=primary and metric.bounds == (0, 1),
        higher_is_better=metric.higher_is_better,
    )


def sorted_rows(
    rows: Sequence[dict[str, Cell]], key: str | None, reverse: bool
) -> tuple[dict[str, Cell], ...]:
    """Return the rows in the order of a column; rows of equal value stay in their order."""
    if key is None:
        return tuple(reversed(rows)) if reverse else tuple(rows)
    last = [row for row in rows if is_undefined(row[key])]
    rest = [row for row in rows if not is_undefined(row[key])]
    falls = not isinstance(rest[0][key], str) if rest else False
    rest.sort(key=lambda row: row[key], reverse=falls != reverse)  # type: ignore[arg-type,return-value]
    return (*rest, *last)


def _totals(
    result: "Result", columns: Sequence[Column], rows: Sequence[Mapping[str, Cell]]
) -> dict[str, Cell]:
    """Return the last row: the means as the summary has them, the sums of the counts."""
    totals: dict[str, Cell] = {"name": "mean / sum"}
    summary = result.summary
    means = {entry.class_name: entry.name for entry in metrics.columns(result.protocol)}
    for column in columns[1:]:
        if column.kind == "count":
            totals[column.key] = sum(int(row[column.key] or 0) for row in rows)
        elif means[column.key] in summary:
            totals[column.key] = summary[means[column.key]]
        else:
            totals[column.key] = mean(row[column.key] for row in rows)
    return totals
