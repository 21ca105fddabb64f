"""Columns packed: equal ones numbered alike, rows put in the order of groups.

What becomes of a detection is one of a few hundred things, whatever the area ranges and thresholds:
most are false positives in every respect. A number into a table of these takes a byte or two.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core import _packing

Words = NDArray[np.unsignedinteger[Any]]


class Grouped(NamedTuple):
    """Rows group by group.

    Attributes
    ----------
    start : (groups + 1,) int64
        Where each group begins in `order`.
    order : (n,) int64
        Rows.
    """

    start: NDArray[np.int64]
    order: NDArray[np.int64]


def distinct(*tables: NDArray[Any]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Give the columns of tables that stand side by side numbers, equal ones the same.

    Parameters
    ----------
    *tables : (L, N) arrays of bool or of unsigned integers
        L may differ from table to table; a (N,) array is taken for a table of one row.

    Returns
    -------
    codes : (N,) uint32
        The number of each column, from 0 by first occurrence.
    columns : (P,) int64
        The first column of each number.
    """
    rows = [np.atleast_2d(np.ascontiguousarray(table)) for table in tables]
    code = np.zeros(rows[0].shape[1], np.uint32)
    if not len(code):
        return code, np.zeros(0, np.int64)
    return code, _packing.number_columns([row.view(np.uint8) for row in rows if row.size], code)


def grouped(
    group: NDArray[np.int32], groups: int, rows: NDArray[np.int64] | None = None
) -> Grouped:
    """Return rows group by group, those of a group in the order in which they are given.

    Parameters
    ----------
    group : (n,) int32
        Of each row, from 0 to `groups` - 1.
    groups : int
    rows : (n,) int64, optional
        The rows in the order wanted; by default ascending.
    """
    found = Grouped(np.zeros(groups + 1, np.int64), np.zeros(len(group), np.int64))
    given = np.zeros(0, np.int64) if rows is None else rows
    _packing.order_by_group(group, found.start, given, found.order)
    return found


def in_order(label: NDArray[np.int32], group: NDArray[np.int32]) -> bool:
    """Return whether rows stand by label, and those of a label by group."""
    return bool(_packing.is_sorted(label, group))


def ranked_columns(table: Words) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give the columns of a table numbers in their order, equal ones the same.

    The first row weighs most.

    Parameters
    ----------
    table : (L, P) array of unsigned integers

    Returns
    -------
    rank : (P,) int64
        The number of each column.
    columns : (D,) int64
        A column of each number.
    """
    order = np.lexsort(table[::-1]) if len(table) else np.arange(table.shape[1])
    there = table[:, order]
    changed = np.any(there[:, 1:] != there[:, :-1], axis=0)
    number = np.concatenate([[0], np.cumsum(changed)])[: len(order)]
    rank = np.empty(len(order), np.int64)
    rank[order] = number
    return rank, order[np.concatenate([[True], changed])[: len(order)]]


def narrow(most: int) -> str:
    """Return the narrowest type of unsigned integers that holds a number, little-endian."""
    return next(f"<u{width}" for width in (1, 2, 4, 8) if most < 1 << 8 * width)
