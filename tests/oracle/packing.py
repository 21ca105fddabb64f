"""Codes of bit columns, with Python dictionaries and sorts."""

from collections.abc import Sequence

Column = tuple[int, ...]


def distinct(columns: Sequence[Column]) -> tuple[list[int], list[int]]:
    """Return a number for each column, equal ones the same, and the first column of each number.

    Numbers are given by first occurrence.
    """
    first: dict[Column, int] = {}
    for n, column in enumerate(columns):
        first.setdefault(column, n)
    number = {column: number for number, column in enumerate(first)}
    return [number[column] for column in columns], list(first.values())


def ranks(columns: Sequence[Column]) -> list[int]:
    """Return the rank of each column among the distinct ones in ascending order."""
    order = sorted(set(columns))
    return [order.index(column) for column in columns]


def grouped(group: Sequence[int], groups: int, rows: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the start of each group, and the rows by group in their given order."""
    members = [[row for row in rows if group[row] == number] for number in range(groups)]
    start = [sum(map(len, members[:number])) for number in range(groups + 1)]
    return start, [row for one in members for row in one]


def in_order(label: Sequence[int], group: Sequence[int]) -> bool:
    """Return True if rows are sorted by label, and within a label by group."""
    pairs = list(zip(label, group, strict=True))
    return pairs == sorted(pairs)
