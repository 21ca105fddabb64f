"""What the images can show, as a part of a report."""

from collections.abc import Iterator, Sequence
from math import isnan
from typing import TYPE_CHECKING

from detap.report.model import Block, Column, Table
from detap.report.numbers import share

if TYPE_CHECKING:
    from detap.analysis.resolution import Margin, Reach, Resolution

KEY = "resolution"
"""The key of the block in the JSON report."""

_MOST_MARGINS = 10
_FEW = 30


def resolution_block(found: "Resolution", most: int | None = 10) -> Block:
    """Return the smallest drops that are told from noise, overall and by class.

    Parameters
    ----------
    found : Resolution
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


def _columns(found: "Resolution", shown: "Sequence[Reach]") -> tuple[Column, ...]:
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


def _lines(found: "Resolution", shown: "Sequence[Reach]") -> Iterator[str]:
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
    known = [margin for margin in found.margins if not isnan(margin.margin)]
    yield from (_told(margin, often) for margin in known[:_MOST_MARGINS])


def _told(margin: "Margin", often: str) -> str:
    side, other = ("below", "above") if margin.kind == "floor" else ("above", "below")
    away = share(margin.margin, 4)
    return (
        f"{margin.name} is held to {margin.limit} as it is: truly {away} {side}, it fails in "
        f"{often} such sets; truly {away} {other}, it passes in as many."
    )
