"""Columns of a table as NumPy arrays, and the rows with missing values."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from detap.formats.arrow.schema import list_lengths
from detap.tables.columns import Columns, Name, name_of
from detap.tables.detection import Floats, Integers

Rows = NDArray[np.intp]

NONE = np.zeros(0, np.intp)
EXACT = 2**53


def to_numpy(column: Any, missing: float = 0) -> NDArray[Any]:
    """Convert an Arrow column to an array, with a value in the rows that are null.

    ``Array.to_numpy`` and ``Array.fill_null`` import pandas if installed, which takes longer than
    reading.
    """
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    nulls = null_rows(column)
    if len(nulls):
        buffers = [None, column.buffers()[1]]
        column = pa.Array.from_buffers(column.type, len(column), buffers, offset=column.offset)
    # A file may not align its buffers.
    values = np.require(np.from_dlpack(column), requirements="A")
    if len(nulls):
        values = values.copy()
        values[nulls] = missing
    return values


def null_rows(column: Any) -> Rows:
    """Return the rows that are null."""
    return np.flatnonzero(to_numpy(column.is_null())) if column.null_count else NONE


class Codes(NamedTuple):
    """A column of names as integer codes."""

    number: dict[Name, int]  # the code of each name that occurs
    rows: Integers  # (n,): the code of each row, 0 if missing
    missing: Rows  # rows without a name
    wrong: dict[int, Any]  # values that are not names, by code


def encode(column: Any) -> Codes:
    """Return the codes of an Arrow column of integers, whole floats or text."""
    if not pa.types.is_integer(column.type):
        return _encode_values(combined(column.dictionary_encode()))
    column = combined(column)
    missing, values = null_rows(column), to_numpy(column)
    given = np.setdiff1d(np.arange(len(values)), missing) if len(missing) else slice(None)
    names, rows = Columns("").index_names("", values[given])
    if len(missing):
        codes, rows = rows, np.zeros(len(values), np.int32)
        rows[given] = codes
    return Codes({name: code for code, name in enumerate(names)}, rows, missing, {})


def _encode_values(column: Any) -> Codes:
    """Return the codes of a dictionary-encoded column, whose values may be repeated or unused."""
    values = [*column.dictionary.to_pylist(), None]
    rows = to_numpy(column.indices).astype(np.intp)
    rows[null_rows(column.indices)] = len(values) - 1
    number: dict[Name, int] = {}
    wrong: dict[int, Any] = {}
    codes, null = np.zeros(len(values), np.int32), np.zeros(len(values), np.bool_)
    for index in np.flatnonzero(np.bincount(rows, minlength=len(values))).tolist():
        value = values[index]
        name = name_of(value)
        if value is None:
            null[index] = True
            continue
        codes[index] = code = number.setdefault(value if name is None else name, len(number))
        if name is None:
            wrong[code] = value
    return Codes(number, codes[rows], np.flatnonzero(null[rows]), wrong)


def combined(column: Any) -> Any:
    """Return a column as one array."""
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return column.unify_dictionaries().combine_chunks()


def fours(column: Any) -> tuple[Any, Rows]:
    """Return the values of lists of four, and the rows of other lengths."""
    lengths = to_numpy(list_lengths(column))
    four = lengths == 4
    if four.all():
        return column.flatten(), NONE
    values = np.zeros((len(lengths), 4))
    numbers = column.filter(pa.array(four)).flatten().cast(pa.float64())
    values[four] = to_numpy(numbers, np.nan).reshape(-1, 4)
    return pa.array(values.ravel()), np.flatnonzero(~four)


def sides_of(column: Any) -> Floats:
    """Return widths or heights, NaN if unusable."""
    if column.null_count:
        column = column.cast(pa.float64())
    values = to_numpy(column, np.nan).astype(np.float64)
    values[~((values > 0) & (values < EXACT))] = np.nan
    return values
