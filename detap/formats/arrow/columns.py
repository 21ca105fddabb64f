"""Columns of a table as NumPy arrays."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from detap.formats.arrow.schema import is_list, list_lengths
from detap.tables.columns import EXACT, Columns, Name, name_of
from detap.tables.detection import Flags, Floats, Integers

NULL, WRONG = -1, -2
"""Codes of rows without a name, and of values that are not names."""


def to_numpy(column: Any) -> NDArray[Any]:
    """Convert an Arrow column to an array, arbitrary in the rows that are null."""
    # Array.to_numpy and Array.fill_null import pandas if installed, which takes long.
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if column.null_count:
        buffers = [None, column.buffers()[1]]
        column = pa.Array.from_buffers(column.type, len(column), buffers, offset=column.offset)
    # A file may not align its buffers.
    return np.require(np.from_dlpack(column), requirements="A")


def floats(column: Any) -> Floats:
    """Return numbers as float64, NaN where null or an integer that float64 may not represent."""
    values = to_numpy(column)
    numbers = values.astype(np.float64)
    if values.dtype in (np.int64, np.uint64):
        numbers[(values > EXACT) | (values.astype(np.int64) < -EXACT)] = np.nan
    numbers[is_null(column)] = np.nan
    return numbers


def is_null(column: Any) -> Flags:
    """Return a mask of the rows that are null."""
    return to_numpy(column.is_null()) == 1 if column.null_count else np.zeros(len(column), np.bool_)


def boxes_of(column: Any) -> Floats:
    """Return lists of four numbers, (N, 4), NaN for lists of other lengths."""
    four = ~is_absent(column)
    if four.all():  # pyarrow.array imports pandas
        return floats(column.flatten()).reshape(-1, 4)
    boxes = np.full((len(four), 4), np.nan)
    boxes[four] = floats(column.filter(pa.array(four)).flatten()).reshape(-1, 4)
    return boxes


def is_absent(column: Any) -> Flags:
    """Return a mask of the rows without a number, or without four in a list."""
    return floats(list_lengths(column)) != 4 if is_list(column.type) else is_null(column)


class Codes(NamedTuple):
    """A column of names as integer codes."""

    number: dict[Name, int]  # the code of each name that occurs
    rows: Integers  # (n,): the code of each row, or NULL, or WRONG


def encode(column: Any) -> Codes:
    """Return the codes of an Arrow column of integers, whole floats or text."""
    if not pa.types.is_integer(column.type):
        return _encode_values(combined(column.dictionary_encode()))
    column = combined(column)
    values, given = to_numpy(column), ~is_null(column)
    names, codes = Columns("").index_names("", values if given.all() else values[given])
    rows = np.full(len(values), NULL, np.int32)
    rows[given] = codes
    return Codes({name: code for code, name in enumerate(names)}, rows)


def _encode_values(column: Any) -> Codes:
    """Return the codes of a dictionary-encoded column, whose values may be repeated or unused."""
    values = [*column.dictionary.to_pylist(), None]
    rows = to_numpy(column.indices).astype(np.intp)
    rows[is_null(column.indices)] = len(values) - 1
    number: dict[Name, int] = {}
    codes = np.full(len(values), NULL, np.int32)
    for index in np.flatnonzero(np.bincount(rows, minlength=len(values))).tolist():
        name = name_of(values[index])
        if name is not None:
            codes[index] = number.setdefault(name, len(number))
        elif values[index] is not None:
            codes[index] = WRONG
    return Codes(number, codes[rows])


def combined(column: Any) -> Any:
    """Return a column as one array."""
    whole = isinstance(column, pa.Array)
    return column if whole else column.unify_dictionaries().combine_chunks()
