"""From batches of a table to whole columns of numpy, and the rows in which something is missing."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from detap.core.threads import memory_is_tight
from detap.formats.arrow.shape import BOX, FLAGS, Shape, UnfitError, list_lengths
from detap.tables.columns import Name, name_of
from detap.tables.detection import Floats

Rows = NDArray[np.intp]

NAMES = ("image_id", "category_id", "category", "id")
"""Columns that call something, whether by numbers or text."""

_NONE = np.zeros(0, np.intp)
_SPARSE = 4
"""Whole numbers are numbered by a table of at most so many entries for each row."""
_EXACT = 2**53
_LARGE = 1e150
"""Numbers below have finite sums and products."""


class _Part(NamedTuple):
    """A part of a column: the number of each name, and what stands for that name, less `low`."""

    numbers: NDArray[np.int32]
    codes: NDArray[Any]
    low: int


_LATER = _Part(np.zeros(0, np.int32), _NONE, 0)


class Codes:
    """A column of names: each numbered when first met, so that no row becomes an object.

    Attributes
    ----------
    wrong : dict of int to object
        What is no name, by its number.
    """

    def __init__(self) -> None:
        self.wrong: dict[int, Any] = {}
        self._number: dict[Name, int] = {}
        self._parts: list[_Part] = []
        self._whole: dict[int, NDArray[Any]] = {}

    @property
    def number(self) -> dict[Name, int]:
        """The names that occur, by number."""
        if self._whole:
            self._number_whole()
        return self._number

    def add(self, column: Any) -> Rows:
        """Take more rows; return those that have no name."""
        if pa.types.is_integer(column.type) and not column.null_count and len(column):
            self._whole[len(self._parts)] = column.to_numpy()
            self._parts.append(_LATER)
            return _NONE
        given = pa.types.is_dictionary(column.type)
        if not given:
            column = column.dictionary_encode()
        names = column.dictionary.to_pylist()
        index = column.indices
        if index.null_count:
            index = index.cast(pa.int64()).fill_null(len(names))
            names.append(None)
        index = index.to_numpy(zero_copy_only=False)
        used = list(range(len(names)))
        if given:  # it may hold names that no row has
            used = np.flatnonzero(np.bincount(index, minlength=len(names))).tolist()
        numbers = np.zeros(len(names), np.int32)
        numbers[used] = [self._numbered(names[k]) for k in used]
        self._parts.append(_Part(numbers, index, 0))
        without = [k for k in used if names[k] is None]
        return np.flatnonzero(np.isin(index, without)) if without else _NONE

    def _number_whole(self) -> None:
        """Give whole numbers their numbers, by a table where they lie close together."""
        columns, self._whole = self._whole, {}
        low = min(int(values.min()) for values in columns.values())
        high = max(int(values.max()) for values in columns.values())
        if high - low >= _SPARSE * sum(map(len, columns.values())):
            for at, values in columns.items():
                names, index = np.unique(values, return_inverse=True)
                numbers = np.array([self._numbered(name) for name in names.tolist()], np.int32)
                self._parts[at] = _Part(numbers, index, 0)
            return
        there = np.zeros(high - low + 1, np.bool_)
        for values in columns.values():
            there[values - low] = True
        used = np.flatnonzero(there)
        numbers = np.zeros(len(there), np.int32)
        numbers[used] = [self._numbered(low + k) for k in used.tolist()]
        for at, values in columns.items():
            self._parts[at] = _Part(numbers, values, low)

    def _numbered(self, value: Any) -> int:
        if value is None:
            return 0
        if type(value) is not int and type(value) is not str:
            name = name_of(value)
            if name is None:
                self.wrong[self._number.setdefault(value, len(self._number))] = value
            value = value if name is None else name
        return self._number.setdefault(value, len(self._number))

    def rows(self, places: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """Return the number of each row's name, or what `places` has in its stead."""
        named = bool(self.number)  # which numbers them
        parts = [np.zeros(0, np.int32)]
        for numbers, codes, low in self._parts:
            by_code = places[numbers] if places is not None and named else numbers
            parts.append(by_code.take(codes - low if low else codes))
        return np.concatenate(parts)


class _Numbers:
    """Columns of float64 that grow, of which batches are put in place as they come."""

    def __init__(self, capacity: int, width: int) -> None:
        self.data = np.empty((capacity, width))

    def put(self, at: int, values: NDArray[Any], side: int | slice) -> None:
        short = at + len(values) - len(self.data)
        if short > 0:
            more = np.empty((max(short, len(self.data)), self.data.shape[1]))
            self.data = np.concatenate([self.data, more])
        self.data[at : at + len(values), side] = values


class Gathered:
    """The rows of a table, read.

    Attributes
    ----------
    shape : Shape
    image : Codes
        Of each row of the table: a box, or an image where nested.
    codes : dict of str to Codes
        The other columns of names, by box.
    counts : (rows,) int64 or None
        How many boxes each image has; nested only.
    sizes : (rows, 2) float64 or None
        Width and height of each image, NaN where unknown; nested only.
    single : bool
        Whether boxes or scores are of less than double precision.
    calm : bool
        Whether all numbers of the boxes are finite, and so small that what is made of them is, too.
    """

    def __init__(self, shape: Shape, batches: Iterable[Any], rows: int, most: int) -> None:
        self.shape = shape
        self._box = _Numbers(rows, 4)
        self.image = Codes()
        self.codes: dict[str, Codes] = defaultdict(Codes)
        self.single = False
        self.calm = True
        self._length = 0
        self._numbers: dict[str, _Numbers] = defaultdict(lambda: _Numbers(rows, 1))
        self._without: dict[str, list[Rows]] = defaultdict(list)
        self._inexact: dict[str, list[Rows]] = defaultdict(list)
        self._counts: list[NDArray[np.int64]] = []
        self._sizes: list[Floats] = []
        at = 0
        for batch in _one_ahead(batches):
            self._without["image_id"].append(self.image.add(batch.column("image_id")) + at)
            self._take_batch(batch)
            at += batch.num_rows
            if self._length > most:
                remedy = "raise the limit on records (--max-records) if that is meant"
                raise UnfitError(f"has more than {most} boxes", remedy)
        self.counts = self._of_images(self._counts, np.zeros(0, np.int64), shape.nested)
        self.sizes = self._of_images(self._sizes, np.zeros((0, 2)), shape.sized)

    @staticmethod
    def _of_images(parts: list[Any], none: Any, there: bool) -> Any:
        return np.concatenate([none, *parts]) if there else None

    def _take_batch(self, batch: Any) -> None:
        columns, counts = self.shape.rows(batch)
        if counts is not None:
            self._counts.append(counts.to_numpy(zero_copy_only=False).astype(np.int64))
        if self.shape.sized:
            sides = [_size(batch.column(name)) for name in ("width", "height")]
            self._sizes.append(np.stack(sides, axis=1))
        for name, column in columns.items():
            if name in NAMES:
                self._without[name].append(self.codes[name].add(column) + self._length)
            else:
                self._take_numbers(name, column)
        self._length += len(next(iter(columns.values())))

    def _take_numbers(self, name: str, column: Any) -> None:
        width = 1
        without = np.flatnonzero(column.is_null()) if column.null_count else _NONE
        if name == BOX:
            column, uneven = _fours(column)
            without, width = np.union1d(without, uneven), 4
        if column.null_count:
            without = np.union1d(without, np.flatnonzero(column.is_null()) // width)
            column = column.fill_null(False if pa.types.is_boolean(column.type) else 0)
        values = column.to_numpy(zero_copy_only=False)
        if name not in FLAGS and values.dtype in (np.int64, np.uint64):
            cut = np.flatnonzero((values > _EXACT) | (values.astype(np.int64) < -_EXACT)) // width
            self._inexact[name].append(cut + self._length)
        self.single |= values.dtype in (np.float32, np.float16) and name != "area"
        if name in self.shape.box:
            self.calm &= not len(values) or _is_calm(values)
            side = slice(None) if width > 1 else self.shape.box.index(name)
            self._box.put(self._length, values.reshape(-1, 4) if width > 1 else values, side)
        else:
            self._numbers[name].put(self._length, values, 0)
        self._without[name].append(without + self._length)

    def __len__(self) -> int:
        return self._length

    def without(self, name: str) -> Rows:
        """Return the rows in which a column has nothing; all, where there is no such column."""
        if name not in self._without:
            known = name == "image_id" or name in self.shape.fields
            return _NONE if known else np.arange(self._length)
        return np.concatenate(self._without[name])

    def inexact(self, name: str) -> Rows:
        """Return the rows whose whole number float64 may not hold."""
        return np.concatenate([_NONE, *self._inexact.get(name, ())])

    def boxes(self) -> Floats:
        """Return the numbers of the boxes, (N, 4)."""
        return self._box.data[: self._length]

    def numbers(self, name: str) -> Floats:
        """Return another column of numbers, (N,); zeros where there is none."""
        if name not in self._numbers:
            return np.zeros(self._length)
        return self._numbers[name].data[: self._length, 0]


def _one_ahead(batches: Iterable[Any]) -> Iterator[Any]:
    """Give the batches, of which the next is read in a thread while one is being used."""
    rest = iter(batches)
    if memory_is_tight():
        yield from rest
        return
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, rest, None)
        while (batch := coming.result()) is not None:
            coming = thread.submit(next, rest, None)
            yield batch


def _is_calm(values: NDArray[Any]) -> bool:
    return float(values.min()) > -_LARGE and float(values.max()) < _LARGE


def _fours(column: Any) -> tuple[Any, Rows]:
    """Return the numbers of lists, four of each, and the rows of lists of another length."""
    lengths = list_lengths(column).fill_null(0).to_numpy(zero_copy_only=False)
    if not len(lengths) or (lengths == 4).all():
        return column.flatten(), _NONE
    due = lengths == 4
    values = np.zeros((len(lengths), 4))
    good = column.filter(pa.array(due)).flatten()
    values[due] = good.fill_null(np.nan).to_numpy(zero_copy_only=False).reshape(-1, 4)
    return pa.array(values.ravel()), np.flatnonzero(~due)


def _size(column: Any) -> Floats:
    """Return widths or heights, NaN where they cannot be used."""
    values = np.asarray(column.to_numpy(zero_copy_only=False), np.float64)
    values = values.copy()
    values[~((values > 0) & (values < _EXACT))] = np.nan
    return values
