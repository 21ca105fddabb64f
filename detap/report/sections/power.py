"""The minimum detectable drops of a report."""

from collections.abc import Iterator
from math import isnan
from typing import Literal

from detap.analysis.power import PowerAnalysis
from detap.gates.config import Level
from detap.report.fields import Count, Object, each, field, list_of
from detap.report.model import Block, Column, Table, columns_of, name_column
from detap.report.numbers import fraction

DetectableDropEntry = Object(
    "DetectableDropEntry",
    "The smallest true drop of a metric that is detected with this power.",
    name=field(str, "The metric's full name, as in gates."),
    units=field(Count, "Images, or queries."),
    standard_error=field(float | None, "Of the drop; null if all resamples are equal."),
    min_detectable_drop=float | None,
    limit=field(float | None, "The drop or rise that a gate allows."),
    drop_failing_gate=field(float | None, "The true drop that fails the gate with this power."),
    images_needed=field(int | None, "To detect `drop`, or else a drop of the limit's size."),
    ground_truths=field(int | None, "Of the class, for a class metric."),
)

MarginEntry = Object(
    "MarginEntry",
    "The distance from a minimum or maximum at which its gate fails (or passes) with this power.",
    name=str,
    kind=Level,
    limit=field(str, "As given."),
    standard_error=field(float | None, "Of the metric."),
    margin=float | None,
)

PowerData = Object(
    "PowerData",
    "The minimum detectable drops, by statistical power.",
    level=field(float, "The level of the confidence intervals."),
    power=field(float, "The fraction of samples in which the drop is detected."),
    paired=field(bool, "Of two detectors; otherwise twice the variance of one is used."),
    unit=Literal["image", "query"],
    drop=field(float | None, "The drop of --detectable-drop."),
    **each(list_of(DetectableDropEntry), "metrics", "classes"),
    margins=list_of(MarginEntry),
)

_MOST_MARGINS = 10
_FEW = 30


def power_block(analysis: PowerAnalysis, most: int | None = 10) -> Block:
    """Return the minimum detectable drops, overall and by class."""
    criterion = analysis.criterion
    rows = (*analysis.metrics, *analysis.classes)
    known = [row for row in rows if not isnan(row.min_detectable_drop)]
    overall = [row for row in known if row.ground_truths is None]
    classes = sorted(  # largest drop first
        (row for row in known if row.ground_truths is not None),
        key=lambda row: -row.min_detectable_drop,
    )
    shown = [row._asdict() for row in [*overall, *classes][:most]]
    needed = "" if criterion.drop is None else f" for {criterion.drop:g}"
    columns = (
        name_column("metric"),
        *columns_of("fraction", min_detectable_drop="min. drop", limit="limit"),
        *columns_of("fraction", drop_failing_gate="gate fails from"),
        Column("images_needed", f"{analysis.units} needed{needed}", f"needed{needed}", "count"),
        *columns_of("count", "ground_truths", priority=2),
    )
    with_values = tuple(c for c in columns if any(row[c.key] is not None for row in shown))
    return Block(
        "power",
        "Minimum detectable drop",
        PowerData(
            criterion,
            unit=analysis.unit,
            metrics=[row._asdict() for row in analysis.metrics],
            classes=[row._asdict() for row in analysis.classes],
            margins=[margin._asdict() for margin in analysis.margins],
        ),
        tuple(_lines(analysis, len(shown), len(known) - len(shown))),
        Table(with_values, tuple(shown)) if shown else None,
    )


def _lines(analysis: PowerAnalysis, shown: int, hidden: int) -> Iterator[str]:
    if not (analysis.metrics or analysis.classes):
        yield "Too few ground truths to estimate the noise."
        return
    if not shown:
        yield "All resamples are equal: the noise cannot be estimated."
        return
    criterion = analysis.criterion
    power = f"{100 * criterion.power:g}% power"
    if hidden:
        yield f"{hidden} more in the JSON report."
    if unknown := len(analysis.metrics) + len(analysis.classes) - shown - hidden:
        names = "1 metric is" if unknown == 1 else f"{unknown} metrics are"
        yield f"{names} left out: all resamples are equal, so that the noise cannot be estimated."
    level = f"{100 * criterion.level:g}% level"
    yield f"A drop of this size is detected with {power} at the {level}."
    if not criterion.paired:
        yield (
            "Estimated from one detector, assuming independent errors; comparing two detectors on "
            f"the same {analysis.units} detects smaller drops."
        )
    if analysis.metrics[0].units < _FEW:
        yield f"Rough estimate: fewer than {_FEW} {analysis.units}."
    known = [margin for margin in analysis.margins if not isnan(margin.margin)]
    for margin in known[:_MOST_MARGINS]:
        side, other = ("below", "above") if margin.kind == "minimum" else ("above", "below")
        away = fraction(margin.margin, 4)
        yield (
            f"{margin.name}, limit {margin.limit}: a true value {away} {side} the limit fails with "
            f"{power}, one {away} {other} it passes with {power}."
        )
