"""Columns of record batches as NumPy arrays, and the rows with missing values."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from detap.formats.arrow.schema import BOX, FLAGS, Shape, list_lengths
from detap.io.limits import MORE_RECORDS
from detap.io.problems import FaultError
from detap.tables.columns import Columns, Name, name_of
from detap.tables.detection import Floats

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


class Codes:
    """A column of names as integer codes.

    Attributes
    ----------
    number : dict of int or str to int
        The code of each name that occurs.
    rows : (n,) int32
        The code of each row, 0 if missing.
    wrong : dict of int to object
        Values that are not names, by code.
    """

    def __init__(self) -> None:
        self.number: dict[Name, int] = {}
        self.wrong: dict[int, Any] = {}
        self.rows = np.zeros(0, np.int32)
        self._parts: list[NDArray[Any]] = []
        self._given: list[NDArray[np.bool_]] = []  # of integers, the rows with a value

    def add(self, column: Any) -> Rows:
        """Append the rows of a batch; return those without a name."""
        if not pa.types.is_integer(column.type):
            values, missing = self._encode(column)
            self._parts.append(values)
            return missing
        missing = null_rows(column)
        given = np.ones(len(column), np.bool_)
        given[missing] = False
        self._parts.append(to_numpy(column))
        self._given.append(given)
        return missing

    def finish(self) -> None:
        """Set the codes, after the last batch."""
        self.rows = np.concatenate(self._parts or [self.rows])
        if self._given:
            given = np.concatenate(self._given)
            values = self.rows if given.all() else self.rows[given]
            names, codes = Columns("").index_names("", values)
            self.number = {name: code for code, name in enumerate(names)}
            self.rows = codes
            if len(codes) < len(given):
                self.rows = np.zeros(len(given), np.int32)
                self.rows[given] = codes
        self._parts, self._given = [], []

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
        for k in used:
            codes[k] = self._code(names[k])
        null = np.array([name is None for name in names])
        return codes[rows], np.flatnonzero(null[rows])

    def _code(self, value: Any) -> int:
        if value is None:
            return 0
        name = name_of(value)
        code = self.number.setdefault(value if name is None else name, len(self.number))
        if name is None:
            self.wrong[code] = value
        return code


class Gathered:
    """The rows of a table.

    Attributes
    ----------
    shape : Shape
    image : Codes
        Of each row of the table: a box, or an image if nested.
    codes : dict of str to Codes
        The other columns of names, per box.
    boxes : (N, 4) float64
    counts : (rows,) int64 or None
        Number of boxes of each image; nested only.
    sizes : (rows, 2) float64 or None
        Width and height of each image, NaN if unknown; nested only.
    single : bool
        True if boxes or scores have less than double precision.
    """

    def __init__(self, shape: Shape, batches: Iterable[Any], rows: int, max_boxes: int) -> None:
        self.shape = shape
        self.image = Codes()
        self.codes: dict[str, Codes] = defaultdict(Codes)
        self.single = False
        self._length = 0
        self._numbers: dict[str, list[NDArray[Any]]] = defaultdict(list)
        self._without: dict[str, list[Rows]] = defaultdict(list)
        self._inexact: dict[str, list[Rows]] = defaultdict(list)
        self.boxes: Floats = np.empty((rows, 4))
        counts, sizes = [np.zeros(0, np.int64)], [np.zeros((0, 2))]
        start = 0
        for batch in batches:
            columns, lengths = shape.rows(batch)
            if lengths is not None:
                counts.append(to_numpy(lengths).astype(np.int64))
            if shape.sized:
                sides = [_sides(batch.column(name)) for name in ("width", "height")]
                sizes.append(np.stack(sides, axis=1))
            self._without["image_id"].append(self.image.add(batch.column("image_id")) + start)
            self._length += self._add(columns)
            start += batch.num_rows
            if self._length > max_boxes:
                raise FaultError(f"more than {max_boxes} boxes", MORE_RECORDS)
        self.boxes = self.boxes[: self._length]
        self.counts = np.concatenate(counts) if shape.nested else None
        self.sizes = np.concatenate(sizes) if shape.sized else None
        for codes in (self.image, *self.codes.values()):
            codes.finish()

    def _add(self, columns: Mapping[str, Any]) -> int:
        """Store the columns of a batch; return its number of boxes."""
        box = [self._values(name, columns[name]) for name in self.shape.box]
        if self.shape.box == (BOX,):
            box = list(box[0].reshape(-1, 4).T)
        for name, column in columns.items():
            if name in NAMES:
                self._without[name].append(self.codes[name].add(column) + self._length)
            elif name not in self.shape.box:
                self._numbers[name].append(self._values(name, column))
        end = self._length + len(box[0])
        if end > len(self.boxes):  # rows are images
            self.boxes = np.concatenate([self.boxes, np.empty((end, 4))])
        for k, column in enumerate(box):
            self.boxes[self._length : end, k] = column
        return len(box[0])

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


def _sides(column: Any) -> Floats:
    """Return widths or heights, NaN if unusable."""
    if column.null_count:
        column = column.cast(pa.float64())
    values = to_numpy(column, np.nan).astype(np.float64)
    values[~((values > 0) & (values < _EXACT))] = np.nan
    return values
