"""Columns of a table as NumPy arrays, and the rows with missing values."""

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from detap.formats.arrow.schema import BOX, FLAGS, Shape, list_lengths
from detap.tables.columns import Columns, Name, name_of
from detap.tables.detection import Floats, Integers

Rows = NDArray[np.intp]

NAMES = ("image_id", "category_id", "category", "id")
"""Columns of numbers or text that identify something."""

_NONE = np.zeros(0, np.intp)
_EXACT = 2**53


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
    return np.flatnonzero(to_numpy(column.is_null())) if column.null_count else _NONE


class Codes(NamedTuple):
    """A column of names as integer codes."""

    number: dict[Name, int]  # the code of each name that occurs
    rows: Integers  # (n,): the code of each row, 0 if missing
    missing: Rows  # rows without a name
    wrong: dict[int, Any]  # values that are not names, by code


def encode(column: Any) -> Codes:
    """Return the codes of an Arrow column of integers, whole floats or text."""
    if not pa.types.is_integer(column.type):
        return _encode_values(_combined(column.dictionary_encode()))
    column = _combined(column)
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


class Boxes:
    """The columns of a table, converted; N boxes.

    A row of the table is a box, or an image if nested: it then has `counts` boxes, and `sizes`
    (rows, 2), NaN if unknown. `single` is True if boxes or scores have less than double precision.
    """

    def __init__(self, shape: Shape, table: Any) -> None:
        self.shape = shape
        self.single = False
        self._inexact: dict[str, Rows] = {}
        columns, lengths = shape.rows(table)
        self.counts = None if lengths is None else to_numpy(lengths).astype(np.int64)
        self.sizes: Floats | None = None
        if shape.sized:
            sides = [_sides(table[name].combine_chunks()) for name in ("width", "height")]
            self.sizes = np.stack(sides, axis=1)
        self.image = encode(table["image_id"])  # of each row of the table
        given = {name: encode(columns.pop(name)) for name in NAMES if name in columns}
        self._without = {name: codes.missing for name, codes in given.items()}
        self._without["image_id"] = self.image.missing
        self.codes = defaultdict(lambda: Codes({}, np.zeros(0, np.int32), _NONE, {}), given)
        box = [self._values(name, _combined(columns.pop(name))) for name in shape.box]
        if shape.box == (BOX,):
            box = list(box[0].reshape(-1, 4).T)
        self.boxes: Floats = np.empty((len(box[0]), 4))
        for k, column in enumerate(box):
            self.boxes[:, k] = column
        del box
        self._numbers = {
            name: self._values(name, _combined(column)) for name, column in columns.items()
        }

    def _values(self, name: str, column: Any) -> NDArray[Any]:
        """Return the numbers of a column; store the rows without one."""
        width, without = 1, null_rows(column)
        if name == BOX:
            column, uneven = _fours(column)
            without, width = np.union1d(without, uneven), 4
        if column.null_count:
            without = np.union1d(without, null_rows(column) // width)
        values = to_numpy(column)
        if name not in FLAGS and values.dtype in (np.int64, np.uint64):
            cut = np.flatnonzero((values > _EXACT) | (values.astype(np.int64) < -_EXACT)) // width
            self._inexact[name] = cut
        if values.dtype in (np.float32, np.float16) and name != "area":
            self.single = True
        self._without[name] = without
        return values

    def __len__(self) -> int:
        return len(self.boxes)

    def without(self, name: str) -> Rows:
        """Return the rows without a value in a column; all if there is no such column."""
        if name in self._without:
            return self._without[name]
        return np.arange(len(self))

    def inexact(self, name: str) -> Rows:
        """Return the rows whose integer float64 may not represent."""
        return self._inexact.get(name, _NONE)

    def numbers(self, name: str) -> Floats:
        """Return another column of numbers, (N,); zeros if there is none."""
        if name not in self._numbers:
            return np.zeros(len(self))
        return self._numbers[name].astype(np.float64)


def _combined(column: Any) -> Any:
    """Return a column as one array."""
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return column.unify_dictionaries().combine_chunks()


def _fours(column: Any) -> tuple[Any, Rows]:
    """Return the values of lists of four, and the rows of other lengths."""
    lengths = to_numpy(list_lengths(column))
    four = lengths == 4
    if four.all():
        return column.flatten(), _NONE
    values = np.zeros((len(lengths), 4))
    numbers = column.filter(pa.array(four)).flatten().cast(pa.float64())
    values[four] = to_numpy(numbers, np.nan).reshape(-1, 4)
    return pa.array(values.ravel()), np.flatnonzero(~four)


def _sides(column: Any) -> Floats:
    """Return widths or heights, NaN if unusable."""
    if column.null_count:
        column = column.cast(pa.float64())
    values = to_numpy(column, np.nan).astype(np.float64)
    values[~((values > 0) & (values < _EXACT))] = np.nan
    return values
