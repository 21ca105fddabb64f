"""How far each number moves with the order of equal scores."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict

from detap.report.fields import Share, extra_items
from detap.report.model import Block, Column, Table

if TYPE_CHECKING:
    from detap.evaluation.tie_range import TieRange


@extra_items(Share)
class TieRangeEntry(TypedDict):
    """A number, and the bounds of it over the orders of equal scores."""

    lowest: Share
    value: Share
    highest: Share


_COLUMNS = (
    Column("name", "number", "number", "name"),
    Column("lowest", "lowest", "lowest", "share"),
    Column("value", "as ranked", "ranked", "share"),
    Column("highest", "highest", "highest", "share"),
)


def tie_block(ranges: "Mapping[str, TieRange]") -> Block:
    """Return how far each number moves with the order of equal scores, as a part of a report."""
    rows = [{"name": name, **found._asdict()} for name, found in ranges.items()]
    data = {name: found._asdict() for name, found in ranges.items()}
    title = "no order of equal scores goes beyond"
    return Block("tie_range", title, data, table=Table(_COLUMNS, tuple(rows)))
