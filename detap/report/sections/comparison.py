"""The reports of detap compare.

Of two detectors: metrics, classes and images side by side. Of several: ranking, pairs, groups of
those that do not differ significantly, and the metric by class.
"""

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
from detap.analysis.detectors import Detectors
from detap.analysis.intervals import Interval
from detap.analysis.power import Criterion, power_analysis
from detap.errors import Note
from detap.evaluation.results import class_rows
from detap.protocols import Protocol
from detap.report.fields import (
    Change,
    ClassId,
    Count,
    Empty,
    Input,
    MetricValue,
    Object,
    Signature,
    dict_of,
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

MOST_ROWS = 10  # of the main table on a terminal, unless more are requested
_SHORT = {**SHORT, "missed": "FN"}

MetricPair = Object(
    "MetricPair",
    "A metric of both detectors, and the difference with its confidence interval.",
    name=str,
    **each(float | None, "first", "second", "difference", "low", "high"),
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
    signature=Signature,
    protocol=dict[str, Any],
    conclusion=field(str, "The change of the primary metric in a sentence."),
    summary=Empty,
    metrics=field(list_of(MetricPair), "The summary metrics."),
    classes=Object(
        "ChangedClasses",
        "All classes, and the number of changed ones.",
        changed=Count,
        all=field(list_of(ClassPair), "In descending order of the change of the primary metric."),
    ),
    images=field(ChangedImages, required=False),
    errors=field(ErrorPairs, required=False),
    power=field(PowerData, required=False),
    selection=field(dict[str, Any], required=False),
)


DetectorInput = Object(
    "DetectorInput",
    "A file that was read.",
    others=Any,
    **Input.fields,
    detector=field(str, "The name of the detector; absent for ground truth.", required=False),
)

DetectorRow = Object(
    "DetectorRow",
    "The metrics of a detector, the compared one first.",
    others=MetricValue,
    name=str,
    rank=field(int, "From 1; equal detectors have the same.", minimum=1),
    **each(float | None, "low", "high"),
    difference=field(Change, "To the reference."),
    **each(float | None, "difference_low", "difference_high"),
    letters=field(str, "The letters of its groups; empty without intervals."),
    detections=Count,
)

PairEntry = Object(
    "PairEntry",
    "Two detectors, the better one first.",
    **each(str, "first", "second"),
    difference=field(Change, "Second minus first."),
    **each(float | None, "low", "high"),
    p=field(float | None, "Two-sided, by paired bootstrap."),
    adjusted_p=field(float | None, "Adjusted by Holm's method for all pairs."),
    min_detectable_difference=field(
        float | None, "Detected in 80% of samples; null if all resamples are equal."
    ),
)

GroupRow = Object(
    "GroupRow",
    "Detectors that do not differ significantly.",
    letter=str,
    detectors=field(list[str], "In the order of the ranking.", minItems=1),
)

ClassValues = Object(
    "ClassValues",
    "The compared metric of a class.",
    name=str,
    ground_truths=Count,
    values=field(dict_of(MetricValue), "By detector."),
)

RankingData = Object(
    "RankingData",
    "How detectors are ranked.",
    metric=str,
    higher_is_better=bool,
    reference=field(str, "The detector to which differences are taken."),
)

ResamplesData = Object(
    "ResamplesData",
    "The paired bootstrap over images.",
    confidence=field(float, "The level of intervals and groups."),
    **each(Count, "images", "resamples", "seed", "min_ground_truths"),
)

DetectorsReport = report_of(
    Literal["detectors"],
    "DetectorsReport",
    "The JSON report of detap compare of several detectors. Undefined metrics are null.",
    signature=Signature,
    protocol=dict[str, Any],
    inputs=list_of(DetectorInput),
    conclusion=str,
    summary=Empty,
    detectors=field(list_of(DetectorRow), "The best first.", minItems=2),
    ranking=RankingData,
    groups=field(list_of(GroupRow), "Empty without intervals."),
    pairs=field(list_of(PairEntry), "All pairs, in the order of the ranking.", minItems=1),
    classes=field(list_of(ClassValues), "Classes where the metric is defined for a detector."),
    resampling=ResamplesData,
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
    counts = columns_of("count", "ground_truths", priority=1)
    changed = [row for row in classes if _magnitude(row["difference"]) > 0]
    table = _table("class", comparison, changed, *counts)
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
            _changed("classes", classes, table, len(classes), max_rows),
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


_DIFFERENCE = Column("difference", "diff", "diff", "change")
_OF_REFERENCE = ("difference", "difference_low", "difference_high")  # with its interval


def _ends(kind: Literal["fraction", "change"], prefix: str = "") -> list[Column]:
    return [Column(f"{prefix}{end}", f"CI {end}", f"CI {end}", kind) for end in ("low", "high")]


def _table(
    heading: str, comparison: Comparison, rows: Sequence[Mapping[str, Cell]], *more: Column
) -> Table:
    """Return a table of pairs; `more` are further columns."""
    ends = () if comparison.resamples is None else ("low", "high")
    columns = (
        name_column(heading),
        *columns_of("fraction", "first", "second"),
        _DIFFERENCE,
        *(_ends("change") if ends else ()),
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
    return _changed("images", rows, Table(columns, tuple(rows)), len(names), max_rows)


def _errors(protocol: Protocol, *error_counts: ErrorCounts) -> Block:
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


def _changed(
    key: str, rows: Sequence[Mapping[str, Cell]], table: Table, count: int, max_rows: int | None
) -> Block:
    """Return the block of the classes or images that changed, out of `count`."""
    changed = len(table.rows)
    none = {"classes": "No class changed", "images": "No image changed"}
    title = f"{changed} of {count} {key} changed" if changed else none[key]
    return top_rows(key, title, {"changed": changed, "all": rows}, table, max_rows)


def top_rows(
    key: str, title: str, data: Mapping[str, Any], table: Table, max_rows: int | None
) -> Block:
    """Return a block of the first rows of a table, and a line with the number of the others."""
    top = table._replace(rows=table.rows[:max_rows])
    lines = hidden_rows(len(table.rows) - len(top.rows))
    return Block(key, title, data, lines, top if top.rows else None)


def detectors_report(
    detectors: Detectors,
    *,
    inputs: Sequence[Mapping[str, Any]] = (),
    notes: Sequence[Note] = (),
    max_rows: int | None = None,
    by_class: bool = False,
) -> Report:
    """Return the report of several detectors; `by_class` shows the table of classes."""
    shown = None if max_rows is None else max(max_rows, MOST_ROWS)
    metric, level = detectors.metric, f"{100 * detectors.settings.confidence:g}%"
    table = _ranking(detectors)
    own = dict.fromkeys(_OF_REFERENCE, nan)  # the reference has no difference to itself
    rows = tuple({**r, **own} if r["name"] == detectors.reference else r for r in table.rows)
    ranking = RankingData(metric.metric, metric=metric.name, reference=detectors.reference)
    counts = detectors.detectors[0].counts
    classes: Any = [
        ClassValues(name=name, ground_truths=counts.get(name, 0), values=values)
        for name, values in detectors.by_class.items()
    ]
    title = f"{metric.name} by class" if by_class else ""
    of_classes = class_table(detectors.names, classes) if by_class else None
    return Report(
        kind="detectors",
        title=f"Ranking by {metric.name}" + (f" ({level} CI)" if detectors.groups else ""),
        conclusion=_conclusion(detectors),
        signature=detectors.signature,
        protocol=detectors.protocol.as_dict(),
        inputs=tuple(inputs),
        table=table._replace(rows=rows, shown=shown),
        rows=table.rows,
        notes=(*notes, *detectors.notes),
        blocks=(
            Block("ranking", "", ranking),
            _groups(detectors, level),
            _pairs(detectors, level, max_rows),
            Block("classes", title, classes, table=of_classes),
            Block("resampling", "", ResamplesData(detectors.settings, images=detectors.images)),
            *selection_blocks(detectors.selection),
        ),
    )


def _conclusion(detectors: Detectors) -> str:
    best, *others = detectors.names
    text = f"Best {detectors.metric.name}: {best}, {fraction(detectors[best].value, 4)}"
    if not detectors.groups:
        return text
    groups = detectors.groups.values()
    alike = [name for name in others if any({best, name} <= {*group} for group in groups)]
    if not alike:
        return f"{text}; all others are significantly worse"
    more = f" and {len(alike) - 3} more" if len(alike) > 3 else ""
    return f"{text}; not significantly different: {', '.join(alike[:3])}{more}"


def _ranking(detectors: Detectors) -> Table:
    names = detectors.detectors[0].summary
    primary, *others = [
        Column(name, name, name, "fraction", min(index, 2), spec.metric.higher_is_better)
        for index, name in enumerate(names)
        for spec in [metrics.named(detectors.protocol, name)]
    ]
    rows: list[dict[str, Any]] = [
        {"name": one.name, "rank": detectors.rank(one.name), primary.key: one.value}
        | dict(zip(("low", "high"), detectors.interval(one.name), strict=True))
        | dict(zip(_OF_REFERENCE, detectors.to_reference(one.name)[2:5], strict=True))
        | {"letters": detectors.letters(one.name), **one.summary, "detections": one.detections}
        for one in detectors.detectors
    ]
    columns = [name_column("detector"), *columns_of("count", "rank"), primary, _DIFFERENCE]
    if detectors.groups:
        columns[3:3] = _ends("fraction")
        columns += _ends("change", "difference_")
        columns += columns_of("text", letters="group")
    columns += [*others, *columns_of("count", "detections", priority=2)]
    return Table(tuple(columns), tuple(rows), best=tuple(names))


def _groups(detectors: Detectors, level: str) -> Block:
    lines = [f"Differences are to {detectors.reference}."]
    if detectors.groups:
        resamples, images = detectors.settings.resamples, detectors.images
        lines.append(
            f"Detectors that share a letter do not differ significantly at the {level} level: "
            f"paired bootstrap, {resamples:,} resamples of {images:,} images, p-values of all "
            "pairs adjusted by Holm's method."
        )
    data: Any = [{"letter": key, "detectors": names} for key, names in detectors.groups.items()]
    return Block("groups", "", data, tuple(lines))


def _pairs(detectors: Detectors, level: str, max_rows: int | None) -> Block:
    """Return all pairs; without intervals they are in the JSON report only."""
    data: Any = [pair._asdict() for pair in detectors.pairs]
    if not detectors.groups:
        return Block("pairs", "", data)
    columns = [
        *columns_of("name", "first", "second"),
        _DIFFERENCE,
        *_ends("change"),
        *columns_of("fraction", "p", "adjusted_p"),
    ]
    line = "No minimum detectable difference: all resamples are equal."
    if not all(isnan(pair.min_detectable_difference) for pair in detectors.pairs):
        columns += columns_of("fraction", min_detectable_difference="min. diff")
        line = (
            f"A true difference of min. diff is detected with {100 * Criterion().power:g}% power "
            f"at the {level} level, before adjustment."
        )
    block = top_rows("pairs", "Pairs", data, Table(tuple(columns), tuple(data)), max_rows)
    return block._replace(lines=(*block.lines, line))


def class_table(names: Sequence[str], data: Sequence[dict[str, Any]]) -> Table:
    """Return the table of the block of classes: a column for each detector."""
    # A detector may have the name of another key.
    columns = [Column(f"detector {n}", name, name, "fraction") for n, name in enumerate(names)]
    rows = [row | {column.key: row["values"][column.heading] for column in columns} for row in data]
    counted = columns_of("count", "ground_truths", priority=1)
    return Table((name_column("class"), *columns, *counted), tuple(rows))
