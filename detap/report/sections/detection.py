"""The report of a detector: metrics, class table and notes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from detap import metrics
from detap.errors import Note
from detap.evaluation.results import Result, class_rows
from detap.metrics.metric import MetricSpec
from detap.metrics.ranked import Ranked
from detap.protocols import Protocol
from detap.report.fields import ClassId, Count, Object, field, list_of
from detap.report.model import Block, Cell, Column, PageSource, Report, columns_of, name_column
from detap.report.numbers import is_undefined, mean, names_of_classes, with_totals
from detap.report.sections.selection import selection_blocks

Points = Object(
    "Points",
    "The points behind a value. Of a miss rate or FROC: `fppi`, with `miss_rate` or "
    "`recall` there. At the best threshold: its `score`, and `precision` and `recall` "
    "there; null if no threshold qualifies.",
    others=Any,
)

ClassPoints = Object(
    "ClassPoints", "Of a class with ground truth.", others=Any, name=str, id=ClassId
)

DetailsData = Object(
    "DetailsData",
    classes=field(Count, "Classes with ground truth: the mean is over these."),
    by_class=field(list_of(ClassPoints), required=False),
    pooled=field(Points, "Of all classes ranked together.", required=False),
)

_COUNTED = ("ground_truths", "ignored", "detections", "true_positives", "false_positives")
_COUNTS = columns_of("count", *_COUNTED, "duplicates")
_UNSCORED_COUNTS = columns_of("count", *_COUNTED, "false_negatives")


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
    unscored: Iterable[Block] = ()  # or with made-up scores, or of answers
    if protocol.scores != "given" or result.detections.responses is not None:
        section = import_module("detap.report.sections.unscored")  # start-up time
        unscored = section.blocks(result)
    # The tolerance holds for the unchanged preset only.
    if protocol.tolerance and protocol == protocol.preset(protocol.name):
        source, tolerance, residue = protocol.source, protocol.tolerance, protocol.residue
        data = {"source": source, "tolerance": tolerance, "residue": residue}
        line = f"{protocol.name} reproduces {source} within {tolerance:g} ({residue})"
        blocks = (*blocks, Block("reproduces", "", data, (line,)))
    rows = class_rows(result)
    table = with_totals(
        class_columns(protocol),
        sorted_rows(rows, sort, reverse),
        "mean / sum" if protocol.has_scores else "all classes",
        _means(result, rows),
    )
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
        table=table,
        notes=(*result.notes, *notes),
        blocks=(*_metric_details(result), *unscored, *blocks),
        page_source=PageSource(result),
    )


def _param_columns(protocol: Protocol) -> tuple[Column, ...]:
    iou = "OKS" if protocol.iou_type == "keypoints" else "IoU"
    kitti = protocol.min_height or protocol.max_occlusion or protocol.max_truncation
    area = "difficulty" if kitti else "area"
    if not protocol.has_scores:
        return columns_of("text", iou=iou)
    return (
        *columns_of("text", iou=iou, area=area),
        *columns_of("count", "max_dets"),
        *(columns_of("text", "classes") if protocol.class_groups != "none" else ()),
    )


def class_columns(protocol: Protocol) -> tuple[Column, ...]:
    """Return the columns of the class table: name, metrics, counts."""
    specs = metrics.columns(protocol)
    columns = (_column(protocol, spec, spec.class_name) for spec in specs)
    counts = _COUNTS if protocol.has_scores else _UNSCORED_COUNTS
    return (name_column("class"), *columns, *counts)


def _column(protocol: Protocol, spec: MetricSpec, key: str) -> Column:
    """Return the column of a metric, with its unit and direction."""
    metric = spec.metric
    overall = spec.area == 0 and spec.max_dets_index == len(protocol.max_dets) - 1
    unit = f" [{metric.unit}]" if metric.unit else ""
    return Column(
        key,
        f"{metric.heading or key}{unit}",
        spec.heading or metric.heading or key,
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


def _means(result: Result, rows: Sequence[Mapping[str, Cell]]) -> dict[str, Cell]:
    """Return the means of the metrics of the class table: those of the summary, if it has them."""
    summary, specs = result.summary, metrics.columns(result.protocol)
    return {
        spec.class_name: summary[spec.name]
        if spec.name in summary
        else mean(row[spec.class_name] for row in rows)
        for spec in specs
    }


def _metric_details(result: Result) -> Iterator[Block]:
    """Yield a block on the metrics of the ranking that the summary lists, if there are any."""
    data: dict[str, dict[str, Any]] = {}
    lines: list[str] = []
    classes = len(result.classes)
    for spec in metrics.summary(result.protocol):
        metric = spec.metric
        if not isinstance(metric, Ranked):
            continue
        details = metric.details_by_class(result, spec)
        count = int((result.ground_truth_counts_of(spec) > 0).sum())
        data[spec.name] = {"classes": count}
        if spec.pooled:
            data[spec.name]["pooled"] = details.get(0, {})
            over = f"{count} classes ranked together"
        else:
            names = names_of_classes(result)
            by_class = [{**names[label], **points} for label, points in details.items()]
            data[spec.name]["by_class"] = by_class
            of_all = "" if count == classes else f" of {classes}"
            over = "of 1 class" if classes == 1 else f"mean over {count}{of_all} classes"
        remarks = metric.remarks(spec, [*details.values()], result.protocol) if details else []
        parts = remarks if classes == 1 and remarks else [over, *remarks]
        lines.append(f"{spec.name}: {'; '.join(parts)}")
    if data:
        yield Block("metric_details", "", data, tuple(lines))
