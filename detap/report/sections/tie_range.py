"""Bounds of metrics over all orders of tied scores."""

from detap.evaluation.results import Result
from detap.evaluation.tie_range import tie_range
from detap.report.fields import Fraction, Object, each, field
from detap.report.model import Block, Column, Table, name_column

TieRangeEntry = Object(
    "TieRangeEntry",
    "A metric and its bounds over all orders of tied scores.",
    others=Fraction,
    **each(Fraction, "lowest", "value", "highest"),
    mean=field(Fraction, "Over random rankings, with --missing-scores 1.", required=False),
    standard_error=field(float, "Of the mean.", required=False),
    orders=field(int, "The number of random rankings.", required=False),
)

_COLUMNS = (
    name_column("metric"),
    Column("lowest", "lowest", "lowest", "fraction"),
    Column("value", "reported", "reported", "fraction"),
    Column("highest", "highest", "highest", "fraction"),
)


def tie_block(result: Result) -> Block:
    """Return the bounds of metrics over all orders of tied scores."""
    data = {name: bounds._asdict() for name, bounds in tie_range(result).items()}
    rows = [{"name": name, **bounds} for name, bounds in data.items()]
    title = "Bounds over all orders of tied scores"
    return Block("tie_range", title, data, table=Table(_COLUMNS, tuple(rows)))
