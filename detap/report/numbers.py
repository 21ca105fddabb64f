"""Format the values of a report: rounded numbers, rows, undefined values."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from math import isfinite, isnan, nan
from operator import add
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.decimals import nearly_equal
from detap.evaluation.results import Result
from detap.report.model import Cell, Column, Report, Table, columns_of, name_column

UNDEFINED = "\N{EN DASH}"
RULE = "\N{BOX DRAWINGS LIGHT HORIZONTAL}"
FINE = 9  # the decimals of small differences
WORDS = ("name", "text")  # the kinds of left-aligned columns
# A perfect detector has 0.9999999999999998 under the coco protocol, whose precision is
# tp / (tp + fp + 2**-52). It is shown as 1, 0.99999 is not.
_ONE = 1 - 1e-9


def fraction(value: float, decimals: int) -> str:
    """Format a fraction; a value above 0 is never shown as 0, nor one below 1 as 1."""
    if isnan(value):
        return UNDEFINED
    smallest = 10.0**-decimals
    if 0 < value < smallest / 2:
        value = smallest
    elif 1 - smallest / 2 <= value < _ONE:
        value = 1 - smallest
    text = f"{value:.{decimals}f}"
    return text if value > 0 or float(text) else text.removeprefix("-")


def threshold(value: float, min_decimals: int = 0) -> str:
    """Format a score threshold; it is never rounded up, so that it keeps the same detections."""
    for decimals in range(min_decimals, 17):
        text = f"{value:.{decimals}f}"
        if 0 <= value - float(text) <= 1e-6 * abs(value):
            return text
    return exact(value)


def at_score(value: float | None) -> str:
    """Return the end of a caption that names a score threshold; empty without one."""
    return "" if value is None else f", score >= {threshold(value)}"


def hidden_rows(count: int) -> tuple[str, ...]:
    """Return the line that counts the rows left out, if there are any."""
    return (f"{count} more: -v shows all",) if count else ()


def exact(value: float) -> str:
    """Format a number with all its digits; undefined is a dash."""
    return UNDEFINED if isnan(value) else repr(float(value))


def change(value: float, decimals: int) -> str:
    """Format the difference of two fractions with its sign; only 0 is shown as 0."""
    if isnan(value):
        return UNDEFINED
    if value == 0:
        return f"{0:.{decimals}f}"
    smallest = 10.0**-decimals
    if abs(value) < smallest / 2:
        value = smallest if value > 0 else -smallest
    return f"{value:+.{decimals}f}"


def in_column(kind: str, value: int | float | None, decimals: int) -> str:
    """Format a number for a kind of column, fractions with a number of decimals."""
    if value is None or isnan(value):
        return UNDEFINED
    if kind == "fraction":
        return fraction(float(value), decimals)
    if kind == "threshold":
        return threshold(float(value), decimals)
    if kind in ("change", "precise_change"):
        return change(float(value), FINE if kind == "precise_change" else decimals)
    if kind == "count_change":
        return f"{int(value):+d}" if value else "0"
    return exact(value) if kind == "exact" else str(value)


def formatted_columns(
    table: Table, words: Callable[[str, str], str], decimals: int = 4
) -> list[list[str]]:
    """Return the texts of the columns, totals last; `words` formats text of a kind of column."""
    rows = [*table.rows, *([] if table.totals is None else [table.totals])]
    return [
        [
            words(value, column.kind)
            if isinstance(value := row.get(column.key), str)
            else in_column(column.kind, value, decimals)
            for row in rows
        ]
        for column in table.columns
    ]


class Grid(NamedTuple):
    """The texts of a table: its headings, the side of each column, and its rows."""

    headings: Sequence[str]
    sides: Sequence[str]  # `left` or `right`
    rows: Sequence[Sequence[str]]


def grid_of(
    table: Table, words: Callable[[str, str], str], strong: Callable[[str], str] = str
) -> Grid:
    """Return the texts of a table; `strong` formats the best values."""
    texts = formatted_columns(table, words)
    index = {column.key: number for number, column in enumerate(table.columns)}
    for row, key in best_cells(table):
        texts[index[key]][row] = strong(texts[index[key]][row])
    return Grid(
        [words(column.heading, "text") for column in table.columns],
        ["left" if column.kind in WORDS else "right" for column in table.columns],
        [*zip(*texts, strict=True)],
    )


def best_cells(table: Table) -> set[tuple[int, str]]:
    """Return the row and column of each emphasized value."""
    best = set()
    if table.interval:
        key, low, high = table.interval
        best = {(n, key) for n, row in enumerate(table.rows) if excludes_zero(row[low], row[high])}
    for column in (column for column in table.columns if column.key in table.best):
        values = [(n, row[column.key]) for n, row in enumerate(table.rows)]
        numbers = {n: v for n, v in values if isinstance(v, float) and not isnan(v)}
        extreme = (max if column.higher_is_better else min)(numbers.values(), default=nan)
        best |= {(n, column.key) for n, value in numbers.items() if nearly_equal(value, extreme)}
    return best


def excludes_zero(low: Cell, high: Cell) -> bool:
    """Return True if an interval excludes 0."""
    return isinstance(low, float) and isinstance(high, float) and (low > 0 or high < 0)


def summary_table(report: Report) -> Table:
    """Return the name, value and parameters of each metric of the summary."""
    columns = (name_column("metric"), *columns_of("fraction", "value"), *report.param_columns)
    keys = [column.key for column in columns]
    rows: Iterable[dict[str, Cell]] = (
        dict(zip(keys, (name, value, *report.params.get(name, ())), strict=True))
        for name, value in report.summary.items()
    )
    return Table(columns, tuple(rows))


def described(report: Report, name: str) -> str:
    """Format the parameters of a metric of the summary."""
    texts = report.params.get(name, ())
    columns = zip(report.param_columns if texts else (), texts, strict=True)
    return ", ".join(f"{column.heading} {text}" for column, text in columns)


def names_of_classes(result: Result) -> list[dict[str, Cell]]:
    """Return the name and id of each class; no ids if classes are scored as one."""
    ids = [None] * len(result.classes) if result.protocol.class_agnostic else result.class_ids
    return [{"name": name, "id": key} for name, key in zip(result.classes, ids, strict=True)]


def rows_of(columns: Mapping[str, Sequence[Cell] | NDArray[Any]]) -> tuple[dict[str, Cell], ...]:
    """Return the rows of columns as mappings."""
    lists = [v.tolist() if isinstance(v, np.ndarray) else v for v in columns.values()]
    return tuple(dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True))


def with_totals(
    columns: Sequence[Column],
    rows: Sequence[Mapping[str, Cell]],
    name: str,
    means: Mapping[str, Cell] = MappingProxyType({}),
) -> Table:
    """Return a table whose last row has the sums of the counts, and means of other columns."""
    counted = [column.key for column in columns if column.kind == "count"]
    sums = {key: sum(int(row[key] or 0) for row in rows) for key in counted}
    return Table(tuple(columns), tuple(rows), {"name": name, **means, **sums})


def is_undefined(value: Cell) -> bool:
    """Return True if a value is NaN or None."""
    return value is None or (isinstance(value, float) and isnan(value))


def mean(values: Iterable[Cell]) -> float:
    """Return the mean of the defined values; NaN without any."""
    defined = [float(value) for value in values if value is not None and not is_undefined(value)]
    # Not sum(), which compensates rounding from Python 3.12 on.
    return reduce(add, defined) / len(defined) if defined else nan


def plain(value: object) -> Any:
    """Replace NaN and infinity by None, at any depth."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
