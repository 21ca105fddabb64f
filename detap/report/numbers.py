"""Values of a report: numbers as text for people, rows, and what is undefined.

Text is rounded, but never to more than is true.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import isnan, nan

from detap.report.model import Cell, Report

UNDEFINED = "\N{EN DASH}"
"""How a table shows a number that is undefined."""

RULE = "\N{BOX DRAWINGS LIGHT HORIZONTAL}"
"""What a horizontal rule is made of."""

FINE = 9
"""With how many decimals small differences are shown."""

# A perfect detector has 0.9999999999999998 under the coco protocol, whose precision is
# tp / (tp + fp + 2**-52): that is 1, where 0.99999 is not.
_ONE = 1 - 1e-9


def share(value: float, decimals: int) -> str:
    """Return a number between 0 and 1 with so many decimals; undefined is a dash.

    What is above 0 is never shown as 0, and what is below 1 never as 1.
    """
    if isnan(value):
        return UNDEFINED
    smallest = 10.0**-decimals
    if 0 < value < smallest / 2:
        value = smallest
    elif 1 - smallest / 2 <= value < _ONE:
        value = 1 - smallest
    text = f"{value:.{decimals}f}"
    return text if value > 0 or float(text) else text.removeprefix("-")


def exact(value: float) -> str:
    """Return the shortest text that is this very number; undefined is a dash."""
    return UNDEFINED if isnan(value) else repr(float(value))


def change(value: float, decimals: int) -> str:
    """Return the difference of two shares with its sign; undefined is a dash.

    What is not 0 is never shown as 0.
    """
    if isnan(value):
        return UNDEFINED
    if value == 0:
        return f"{0:.{decimals}f}"
    smallest = 10.0**-decimals
    if abs(value) < smallest / 2:
        value = smallest if value > 0 else -smallest
    return f"{value:+.{decimals}f}"


def more(value: float) -> str:
    """Return the difference of two counts with its sign."""
    return f"{int(value):+d}" if value else "0"


def in_column(kind: str, value: int | float | None, decimals: int) -> str:
    """Return a number as a column of that kind shows it, shares with so many decimals."""
    if value is None:
        return UNDEFINED
    if kind == "fraction":
        return share(float(value), decimals)
    if kind in ("change", "precise_change"):
        return change(float(value), FINE if kind == "precise_change" else decimals)
    if kind == "count_change":
        return more(value)
    return exact(value) if kind == "exact" else str(value)


def described(report: Report, name: str) -> str:
    """Return the parameters of a metric of the summary as one text."""
    texts = report.params.get(name, ())
    if len(texts) < 2:
        return "".join(texts)
    columns = zip(report.param_columns, texts, strict=True)
    return ", ".join(f"{column.heading} {text}" for column, text in columns)


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


def plain(value: object) -> object:
    """Return a value with NaN replaced by None, at any depth."""
    if isinstance(value, float):
        return None if isnan(value) else value
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value
