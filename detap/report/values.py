"""Values of a report: rows and their last row, and what is undefined."""

from collections.abc import Iterable, Mapping, Sequence
from math import isnan, nan

from detap.report.model import Cell


def rows_of(columns: Mapping[str, Sequence[Cell]]) -> tuple[dict[str, Cell], ...]:
    """Return the rows of columns of one length, each from key to value."""
    return tuple(
        dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
    )


def is_undefined(value: Cell) -> bool:
    """Return whether a value is NaN, or none at all."""
    return value is None or (isinstance(value, float) and isnan(value))


def mean(values: Iterable[Cell]) -> float:
    """Return the mean of the values that are defined; NaN of none."""
    defined = [float(value) for value in values if value is not None and not is_undefined(value)]
    return sum(defined) / len(defined) if defined else nan


def total(values: Iterable[Cell]) -> int:
    """Return the sum of counts."""
    return sum(int(value or 0) for value in values)


def plain(value: object) -> object:
    """Return a value with NaN replaced by None, at any depth."""
    if isinstance(value, float):
        return None if isnan(value) else value
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value
