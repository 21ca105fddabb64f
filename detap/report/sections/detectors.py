"""The report of several detectors: ranking, pairs, groups, and the metric by class."""

from collections.abc import Mapping, Sequence
from math import isnan, nan
from typing import Any, Literal

from detap import metrics
from detap.analysis.detectors import Detectors
from detap.analysis.power import Criterion
from detap.errors import Note
from detap.report.fields import (
    Change,
    Count,
    Empty,
    Input,
    MetricValue,
    NoteEntry,
    Object,
    dict_of,
    each,
    field,
    list_of,
    report_of,
)
from detap.report.model import Block, Cell, Column, Report, Table, columns_of, name_column
from detap.report.numbers import fraction
from detap.report.sections.comparison import MOST_ROWS, top_rows
from detap.report.sections.selection import selection_blocks

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
        float | None,
        "The smallest true difference that is detected in 80% of samples; null if all resamples "
        "are equal.",
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
    signature=field(str, pattern="^protocol:"),
    protocol=dict[str, Any],
    inputs=list_of(DetectorInput),
    conclusion=str,
    summary=Empty,
    detectors=field(list_of(DetectorRow), "The best first.", minItems=2),
    notes=list_of(NoteEntry),
    ranking=RankingData,
    groups=field(list_of(GroupRow), "Empty without intervals."),
    pairs=field(list_of(PairEntry), "All pairs, in the order of the ranking.", minItems=1),
    classes=field(list_of(ClassValues), "Classes where the metric is defined for a detector."),
    resampling=ResamplesData,
    selection=field(dict[str, Any], required=False),
)


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
    # The reference has no difference to itself.
    own = dict.fromkeys(("difference", "difference_low", "difference_high"), nan)
    rows = tuple({**r, **own} if r["name"] == detectors.reference else r for r in table.rows)
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
            Block(
                "ranking",
                "",
                RankingData(metric.metric, metric=metric.name, reference=detectors.reference),
            ),
            _groups(detectors, level),
            _pairs(detectors, level, max_rows),
            _classes(detectors, shown=by_class),
            Block("resampling", "", ResamplesData(detectors.settings, images=detectors.images)),
            *selection_blocks(detectors.selection),
        ),
    )


def _conclusion(detectors: Detectors) -> str:
    best, *others = detectors.names
    text = f"Best {detectors.metric.name}: {best}, {fraction(detectors[best].value, 4)}"
    if not detectors.groups:
        return text
    letters = set(detectors.letters(best))
    alike = [name for name in others if letters.intersection(detectors.letters(name))]
    if not alike:
        return f"{text}; all others are significantly worse"
    more = f" and {len(alike) - 3} more" if len(alike) > 3 else ""
    return f"{text}; not significantly different: {', '.join(alike[:3])}{more}"


def _ranking(detectors: Detectors) -> Table:
    """Return the main table."""
    names = detectors.detectors[0].summary
    specs = [metrics.named(detectors.protocol, name) for name in names]
    primary, *others = [
        Column(name, name, name, "fraction", min(index, 2), spec.metric.higher_is_better)
        for index, (name, spec) in enumerate(zip(names, specs, strict=True))
    ]
    rows: list[dict[str, Cell]] = []
    for one in detectors.detectors:
        pair = detectors.to_reference(one.name)
        low, high = detectors.interval(one.name)
        rows.append(
            {
                "name": one.name,
                "rank": detectors.rank(one.name),
                primary.key: one.value,
                "low": low,
                "high": high,
                "difference": pair.difference,
                "difference_low": pair.low,
                "difference_high": pair.high,
                "letters": detectors.letters(one.name),
                **one.summary,
                "detections": one.detections,
            }
        )
    columns = [name_column("detector"), *columns_of("count", "rank"), primary, _DIFFERENCE]
    if detectors.groups:
        columns[3:3] = _ends("fraction")
        columns += _ends("change", "difference_")
        columns.append(Column("letters", "group", "group", "text"))
    columns += [*others, *columns_of("count", "detections", priority=2)]
    return Table(tuple(columns), tuple(rows), best=tuple(names))


_DIFFERENCE = Column("difference", "diff", "diff", "change")


def _ends(kind: Literal["fraction", "change"], prefix: str = "") -> list[Column]:
    return [Column(f"{prefix}{end}", f"CI {end}", f"CI {end}", kind) for end in ("low", "high")]


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
        Column("p", "p", "p", "fraction"),
        Column("adjusted_p", "adjusted p", "adj. p", "fraction"),
    ]
    line = "No minimum detectable difference: all resamples are equal."
    if not all(isnan(pair.min_detectable_difference) for pair in detectors.pairs):
        columns.append(Column("min_detectable_difference", "min. diff", "min. diff", "fraction"))
        line = (
            f"A true difference of min. diff is detected with {100 * Criterion().power:g}% power "
            f"at the {level} level, before adjustment."
        )
    block = top_rows("pairs", "Pairs", data, Table(tuple(columns), tuple(data)), max_rows)
    return block._replace(lines=(*block.lines, line))


def _classes(detectors: Detectors, *, shown: bool) -> Block:
    """Return the compared metric by class and detector."""
    counts = detectors.detectors[0].counts
    data: Any = [
        ClassValues(name=name, ground_truths=counts.get(name, 0), values=values)
        for name, values in detectors.by_class.items()
    ]
    table = class_table(detectors.names, data) if shown else None
    return Block("classes", f"{detectors.metric.name} by class" if shown else "", data, table=table)


def class_table(names: Sequence[str], data: Sequence[dict[str, Any]]) -> Table:
    """Return the table of the block of classes: a column for each detector."""
    # A detector may have the name of another key.
    columns = [Column(f"detector {n}", name, name, "fraction") for n, name in enumerate(names)]
    rows = [row | {column.key: row["values"][column.heading] for column in columns} for row in data]
    counted = columns_of("count", "ground_truths", priority=1)
    return Table((name_column("class"), *columns, *counted), tuple(rows))
