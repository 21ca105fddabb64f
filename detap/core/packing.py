"""Pack columns: number distinct ones, group rows.

Detections have only a few hundred distinct match results: most are false positives at every area
range and threshold. A code into a table of these takes one or two bytes.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core import _packing

BitArray = NDArray[np.unsignedinteger[Any]]


class GroupedRows(NamedTuple):
    """Rows by group.

    Attributes
    ----------
    start : (groups + 1,) int64
        First index of each group in `order`.
    order : (n,) int64
        Rows.
    """

    start: NDArray[np.int64]
    order: NDArray[np.int64]


def number_columns(*tables: NDArray[Any]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Assign numbers to the columns of stacked tables, equal ones to equal columns.

    Parameters
    ----------
    *tables : (L, N) arrays of bool or of unsigned integers
        L may differ between tables; (N,) is one row.

    Returns
    -------
    codes : (N,) uint32
        Number of each column, from 0 by first occurrence.
    columns : (P,) int64
        First column of each number.
    """
    rows = [np.atleast_2d(np.ascontiguousarray(table)) for table in tables]
    code = np.zeros(rows[0].shape[1], np.uint32)
    if not len(code):
        return code, np.zeros(0, np.int64)
    return code, _packing.number_columns([row.view(np.uint8) for row in rows if row.size], code)


def group_rows(
    group: NDArray[np.int32], groups: int, rows: NDArray[np.int64] | None = None
) -> GroupedRows:
    """Sort rows stably by group.

    Parameters
    ----------
    group : (n,) int32
        Group of each row, from 0 to `groups` - 1.
    groups : int
    rows : (n,) int64, optional
        Order of the rows; ascending by default.
    """
    result = GroupedRows(np.zeros(groups + 1, np.int64), np.zeros(len(group), np.int64))
    given_rows = np.zeros(0, np.int64) if rows is None else rows
    _packing.order_by_group(group, result.start, given_rows, result.order)
    return result


def is_sorted(label: NDArray[np.int32], group: NDArray[np.int32]) -> bool:
    """Return True if rows are sorted by label, then by group."""
    return bool(_packing.is_sorted(label, group))


def rank_columns(table: BitArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Assign numbers to the columns of a table in lexicographic order of rows.

    Parameters
    ----------
    table : (L, P) array of unsigned integers

    Returns
    -------
    rank : (P,) int64
        Number of each column; equal columns get equal numbers.
    columns : (D,) int64
        A column of each number.
    """
    order = np.lexsort(table[::-1]) if len(table) else np.arange(table.shape[1])
    sorted_table = table[:, order]
    changed = np.any(sorted_table[:, 1:] != sorted_table[:, :-1], axis=0)
    number = np.concatenate([[0], np.cumsum(changed)])[: len(order)]
    rank = np.empty(len(order), np.int64)
    rank[order] = number
    return rank, order[np.concatenate([[True], changed])[: len(order)]]


def narrowest_dtype(max_value: int) -> str:
    """Return the narrowest little-endian unsigned dtype that holds a value."""
    return next(f"<u{width}" for width in (1, 2, 4, 8) if max_value < 1 << 8 * width)
