"""Bounds of metrics over all orders of tied scores."""

from collections.abc import Mapping

from detap.evaluation.results import Result
from detap.evaluation.tie_range import tie_range
from detap.report.fields import Fraction, Object, each, field
from detap.report.model import Block, Cell, Column, Table, columns_of, name_column

TieRangeEntry = Object(
    "TieRangeEntry",
    "A metric and its bounds over all orders of tied scores.",
    others=Fraction,
    **each(Fraction, "lowest", "value", "highest"),
    mean=field(Fraction, "Over random rankings, with --missing-scores 1.", required=False),
    standard_error=field(float, "Of the mean.", required=False),
    orders=field(int, "Of random rankings.", required=False),
)


def tie_block(result: Result) -> Block:
    """Return the bounds of metrics over all orders of tied scores."""
    data = {name: bounds._asdict() for name, bounds in tie_range(result).items()}
    reported = Column("value", "reported", "reported", "fraction")
    return bounds_block("Bounds over all orders of tied scores", data, reported)


def bounds_block(title: str, data: Mapping[str, Mapping[str, Cell]], inner: Column) -> Block:
    """Return the bounds of metrics, with a column between the lowest and the highest."""
    lowest, highest = columns_of("fraction", "lowest", "highest")
    rows = tuple({"name": name, **bounds} for name, bounds in data.items())
    columns = (name_column("metric"), lowest, inner, highest)
    return Block("tie_range", title, data, table=Table(columns, rows))
