"""Columns of record batches as NumPy arrays, and the rows with missing values."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from detap.formats.arrow.shape import BOX, FLAGS, Shape, list_lengths
from detap.io.limits import MORE_RECORDS
from detap.io.problems import FaultError
from detap.tables.columns import Name, indices_in, name_of
from detap.tables.detection import Floats

Rows = NDArray[np.intp]

NAMES = ("image_id", "category_id", "category", "id")
"""Columns of numbers or text that identify something."""

_NONE = np.zeros(0, np.intp)
_SPARSE = 4
_SMALL = 1 << 20
"""Integers are indexed by a table of at most `_SPARSE` per row plus `_SMALL`."""
_EXACT = 2**53
_LARGE = 1e150
"""Numbers below have finite sums and products."""


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
    values = np.require(
        np.from_dlpack(column), requirements="A"
    )  # a file may not align its buffers
    if len(nulls):
        values = values.copy()
        values[nulls] = missing
    return values


def null_rows(column: Any) -> Rows:
    """Return the rows that are null."""
    return np.flatnonzero(to_numpy(column.is_null())) if column.null_count else _NONE


class Codes:
    """A column of names as integer codes.

    Attributes
    ----------
    wrong : dict of int to object
        Values that are not names, by code.
    """

    def __init__(self) -> None:
        self.wrong: dict[int, Any] = {}
        self._number: dict[Name, int] = {}
        self._chunks: list[NDArray[Any]] = [np.zeros(0, np.int32)]
        self._missing: list[Rows] = [_NONE]
        self._length = 0
        self._integers = False

    def add(self, column: Any) -> Rows:
        """Append the rows of a batch; return those without a name."""
        self._integers = pa.types.is_integer(column.type)
        if self._integers:
            missing = null_rows(column)
            values = to_numpy(column)
        else:
            values, missing = self._encode(column)
        self._chunks.append(values)
        self._missing.append(missing + self._length)
        self._length += len(column)
        return missing

    def _encode(self, column: Any) -> tuple[NDArray[np.int32], Rows]:
        """Return the code of each row, and the rows without a name."""
        given = pa.types.is_dictionary(column.type)
        if not given:
            column = column.dictionary_encode()
        names = [*column.dictionary.to_pylist(), None]
        index = column.indices
        if index.null_count:
            index = index.cast(pa.int64())
        rows = to_numpy(index, len(names) - 1)
        used: Iterable[int] = range(len(names))
        if given:  # a dictionary may hold names that no row has
            used = np.flatnonzero(np.bincount(rows, minlength=len(names))).tolist()
        codes = np.zeros(len(names), np.int32)
        for index_of_name in used:
            codes[index_of_name] = self._code(names[index_of_name])
        null = np.array([name is None for name in names])
        return codes[rows], np.flatnonzero(null[rows])

    def _code(self, value: Any) -> int:
        if value is None:
            return 0
        name = name_of(value)
        code = self._number.setdefault(value if name is None else name, len(self._number))
        if name is None:
            self.wrong[code] = value
        return code

    @cached_property
    def _codes(self) -> NDArray[np.int32]:
        values = np.concatenate(self._chunks[1:] or self._chunks)
        self._chunks.clear()
        if not self._integers:
            return values
        missing = np.concatenate(self._missing)
        valid = np.ones(len(values), np.bool_)
        valid[missing] = False
        codes = np.zeros(len(values), np.int32)
        if valid.any():
            names, codes[valid] = _index_integers(values[valid] if len(missing) else values)
            self._number = {name: code for code, name in enumerate(names)}
        return codes

    @property
    def number(self) -> dict[Name, int]:
        """The code of each name that occurs."""
        _ = self._codes
        return self._number

    def positions(self, order: Sequence[Name]) -> NDArray[np.int32]:
        """Return the position of each name in an order, (n,); -1 if absent."""
        return indices_in(self.number, order)

    def rows(self, positions: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """Return the code of each row, or the value of `positions` for it."""
        return self._codes if positions is None or not len(positions) else positions[self._codes]


def _index_integers(values: NDArray[Any]) -> tuple[list[int], NDArray[np.int32]]:
    """Return the distinct values, sorted, and the index of each value among them."""
    low, high = int(values.min()), int(values.max())
    if high - low >= _SPARSE * len(values) + _SMALL:
        names, index = np.unique(values, return_inverse=True)
        return names.tolist(), index.astype(np.int32)
    offset = (values if values.dtype == np.uint64 else values.astype(np.int64)) - low
    occurs = np.zeros(high - low + 1, np.bool_)
    occurs[offset] = True
    index = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    return [low + k for k in np.flatnonzero(occurs).tolist()], index[offset]


class Gathered:
    """The rows of a table.

    Attributes
    ----------
    shape : Shape
    image : Codes
        Of each row of the table: a box, or an image if nested.
    codes : dict of str to Codes
        The other columns of names, per box.
    counts : (rows,) int64 or None
        Number of boxes of each image; nested only.
    sizes : (rows, 2) float64 or None
        Width and height of each image, NaN if unknown; nested only.
    single : bool
        True if boxes or scores have less than double precision.
    small : bool
        True if all box values are finite, and so small that corners and areas are finite too.
    """

    def __init__(self, shape: Shape, batches: Iterable[Any], rows: int, max_boxes: int) -> None:
        self.shape = shape
        self.image = Codes()
        self.codes: dict[str, Codes] = defaultdict(Codes)
        self.single = False
        self.small = True
        self._length = 0
        self._box = np.empty((rows, 4))
        self._numbers: dict[str, list[NDArray[Any]]] = defaultdict(list)
        self._without: dict[str, list[Rows]] = defaultdict(list)
        self._inexact: dict[str, list[Rows]] = defaultdict(list)
        self._counts: list[NDArray[np.int64]] = []
        self._sizes: list[Floats] = []
        start = 0
        for batch in batches:
            columns = self._columns(batch)
            self._without["image_id"].append(self.image.add(batch.column("image_id")) + start)
            self._add_boxes(columns)
            self._add_others(columns)
            self._length += len(next(iter(columns.values())))
            start += batch.num_rows
            if self._length > max_boxes:
                raise FaultError(f"more than {max_boxes} boxes", MORE_RECORDS)
        self.counts = self._of_images(self._counts, np.zeros(0, np.int64), shape.nested)
        self.sizes = self._of_images(self._sizes, np.zeros((0, 2)), shape.sized)

    @staticmethod
    def _of_images(parts: list[Any], empty: Any, present: bool) -> Any:
        return np.concatenate([empty, *parts]) if present else None

    def _columns(self, batch: Any) -> dict[str, Any]:
        """Return the box columns of a batch; store its image counts and sizes."""
        columns, counts = self.shape.rows(batch)
        if counts is not None:
            self._counts.append(to_numpy(counts).astype(np.int64))
        if self.shape.sized:
            sides = [_size(batch.column(name)) for name in ("width", "height")]
            self._sizes.append(np.stack(sides, axis=1))
        return columns

    def _add_boxes(self, columns: Mapping[str, Any]) -> None:
        values = [self._values(name, columns[name]) for name in self.shape.box]
        if self.shape.box == (BOX,):
            values = list(values[0].reshape(-1, 4).T)
        count = len(values[0])
        short = self._length + count - len(self._box)
        if short > 0:
            self._box = np.concatenate([self._box, np.empty((max(short, len(self._box)), 4))])
        for k, column in enumerate(values):
            self._box[self._length : self._length + count, k] = column
            low, high = float(column.min(initial=0)), float(column.max(initial=0))
            self.small &= low > -_LARGE and high < _LARGE

    def _add_others(self, columns: Mapping[str, Any]) -> None:
        for name, column in columns.items():
            if name in NAMES:
                self._without[name].append(self.codes[name].add(column) + self._length)
            elif name not in self.shape.box:
                self._numbers[name].append(self._values(name, column))

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
            self._inexact[name].append(cut + self._length)
        if values.dtype in (np.float32, np.float16) and name != "area":
            self.single = True
        self._without[name].append(without + self._length)
        return values

    def __len__(self) -> int:
        return self._length

    def without(self, name: str) -> Rows:
        """Return the rows without a value in a column; all if there is no such column."""
        if name not in self._without:
            known = name == "image_id" or name in self.shape.fields
            return _NONE if known else np.arange(self._length)
        return np.concatenate(self._without[name])

    def inexact(self, name: str) -> Rows:
        """Return the rows whose integer float64 may not represent."""
        return np.concatenate([_NONE, *self._inexact.get(name, ())])

    def boxes(self) -> Floats:
        """Return the numbers of the boxes, (N, 4)."""
        return self._box[: self._length]

    def numbers(self, name: str) -> Floats:
        """Return another column of numbers, (N,); zeros if there is none."""
        if name not in self._numbers:
            return np.zeros(self._length)
        return np.concatenate(self._numbers[name], dtype=np.float64)


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


def _size(column: Any) -> Floats:
    """Return widths or heights, NaN if unusable."""
    if column.null_count:
        column = column.cast(pa.float64())
    values = to_numpy(column, np.nan).astype(np.float64)
    values[~((values > 0) & (values < _EXACT))] = np.nan
    return values
