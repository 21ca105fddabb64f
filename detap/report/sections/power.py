"""What the images can show, as a part of a report."""

from collections.abc import Iterator, Sequence
from math import isnan
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from detap.gates.config import Level
from detap.report.fields import Count
from detap.report.model import Block, Column, Table
from detap.report.numbers import share

if TYPE_CHECKING:
    from detap.analysis.power import DetectableDrop, PowerAnalysis, ThresholdMargin


class ReachEntry(TypedDict):
    """What can be told of a number."""

    name: Annotated[str, "The number's name in full, as in gates."]
    units: Annotated[Count, "How many images there are; of a ranking, queries."]
    standard_error: Annotated[
        float | None, "Of its drop; null where the resamples are all the same."
    ]
    smallest_drop: Annotated[
        float | None, "The least true drop that is told from noise as often as power says."
    ]
    limit: Annotated[float | None, "How far a gate lets it fall or rise."]
    fails_from: Annotated[float | None, "The true drop from which on that gate fails as often."]
    units_needed: Annotated[
        int | None,
        "How many images like these would tell the wished-for drop from "
        "noise; without a wish, one of the limit's size.",
    ]
    ground_truths: Annotated[int | None, "Of the class, where it is a class's number."]


class MarginEntry(TypedDict):
    """What can be told of a number that is held to a limit."""

    name: str
    kind: Level
    limit: Annotated[str, "As it was given."]
    standard_error: Annotated[float | None, "Of the number itself."]
    margin: Annotated[
        float | None,
        "Truly so far beyond its limit, it fails as often as power says; so "
        "far within, it passes as often.",
    ]


class ResolutionData(TypedDict):
    """What the images can show: the smallest drops that are told from noise."""

    level: Annotated[float, "Of the intervals that tell."]
    power: Annotated[float, "In which share of samples of as many images."]
    paired: Annotated[
        bool,
        "Whether the spread is that of the difference of two detectors; "
        "otherwise it is twice the variance of one's number.",
    ]
    unit: Literal["image", "query"]
    drop: Annotated[float | None, "The wished-for drop."]
    numbers: list[ReachEntry]
    classes: Annotated[list[ReachEntry], "Of each class besides."]
    margins: Annotated[list[MarginEntry], "Of what is held to a floor or ceiling."]


KEY = "resolution"
"""The key of the block in the JSON report."""

_MOST_MARGINS = 10
_FEW = 30


def resolution_block(found: "PowerAnalysis", most: int | None = 10) -> Block:
    """Return the smallest drops that are told from noise, overall and by class.

    Parameters
    ----------
    found : PowerAnalysis
    most : int or None
        How many classes people are shown, those of the largest such drops first; JSON has all.
    """
    criterion = found.criterion
    every = (*found.numbers, *found.classes)
    whole = [reach for reach in every if reach.ground_truths is None]
    classes = sorted(  # the largest drop first, what is not known last
        (reach for reach in every if reach.ground_truths is not None),
        key=lambda reach: (isnan(reach.smallest_drop), -reach.smallest_drop),
    )
    known = any(not isnan(reach.smallest_drop) for reach in every)
    shown = [*whole, *classes[:most]] if known else []
    return Block(
        KEY,
        f"What these {found.units} can show",
        {
            "level": criterion.level,
            "power": criterion.power,
            "paired": criterion.paired,
            "unit": found.unit,
            "drop": criterion.drop,
            "numbers": [reach._asdict() for reach in found.numbers],
            "classes": [reach._asdict() for reach in found.classes],
            "margins": [margin._asdict() for margin in found.margins],
        },
        tuple(_lines(found, shown)),
        Table(_columns(found, shown), tuple(reach._asdict() for reach in shown)) if shown else None,
    )


def _columns(found: "PowerAnalysis", shown: "Sequence[DetectableDrop]") -> tuple[Column, ...]:
    """Return the columns; those that no row has anything for are left out."""
    drop = found.criterion.drop
    needed = f"for {'the limit' if drop is None else f'{drop:g}'}"
    columns = (
        Column("name", "number", "number", "name"),
        Column("smallest_drop", "smallest drop", "least", "share"),
        Column("limit", "limit", "limit", "share"),
        Column("fails_from", "fails from", "fails", "share"),
        Column("units_needed", f"{found.units} {needed}", needed, "count"),
        Column("ground_truths", "ground truths", "GT", "count", 2),
    )
    rows = [reach._asdict() for reach in shown]
    return tuple(column for column in columns if any(row[column.key] is not None for row in rows))


def _lines(found: "PowerAnalysis", shown: "Sequence[DetectableDrop]") -> Iterator[str]:
    if not (found.numbers or found.classes):
        yield "Too few ground truths: nothing tells how noisy these numbers are."
        return
    if not shown:
        yield "No resample differs from another: nothing tells how noisy these numbers are."
        return
    criterion = found.criterion
    often = f"{100 * criterion.power:g} of 100"
    hidden = len(found.numbers) + len(found.classes) - len(shown)
    if hidden:
        yield f"{hidden} more {'class is' if hidden == 1 else 'classes are'} in the JSON report."
    yield (
        f"A true drop of this size is told from noise in {often} such sets of {found.units}: its "
        f"interval at {100 * criterion.level:g} % is wholly above 0."
    )
    if not criterion.paired:
        yield (
            "From one detector alone, taking another for as noisy and its errors for independent: "
            f"two on the same {found.units} tell smaller drops."
        )
    if found.numbers[0].units < _FEW:
        yield f"Of fewer than {_FEW} {found.units} this is rough."
    known = [_told(margin, often) for margin in found.margins if not isnan(margin.margin)]
    yield from known[:_MOST_MARGINS]


def _told(margin: "ThresholdMargin", often: str) -> str:
    side, other = ("below", "above") if margin.kind == "floor" else ("above", "below")
    away = share(margin.margin, 4)
    return (
        f"{margin.name} is held to {margin.limit} as it is: truly {away} {side}, it fails in "
        f"{often} such sets; truly {away} {other}, it passes in as many."
    )
