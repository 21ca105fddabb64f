"""From batches of a table to whole columns of numpy, and the rows in which something is missing."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from detap.core.threads import memory_is_tight
from detap.formats.arrow._batches import interleave, number, translate
from detap.formats.arrow.shape import BOX, FLAGS, Shape, list_lengths
from detap.formats.reading.problems import FaultError
from detap.formats.reading.stream import MORE_RECORDS
from detap.tables._columns import unfilled
from detap.tables.columns import Name, name_of, places
from detap.tables.detection import Floats

Rows = NDArray[np.intp]

NAMES = ("image_id", "category_id", "category", "id")
"""Columns that call something, whether by numbers or text."""

_NONE = np.zeros(0, np.intp)
_SPARSE = 4
_SMALL = 1 << 20
"""Whole numbers are numbered by a table of at most so many entries for each row, and so many."""
_EXACT = 2**53
_WRAP = 2**64
_LARGE = 1e150
"""Numbers below have finite sums and products."""


class _Growing:
    """Rows of float64 (``d``) or int32 (``i``) that grow; batches are put in place as they come."""

    def __init__(self, capacity: int, width: int = 1, kind: bytes = b"d") -> None:
        self._shape = width, kind
        self.data: NDArray[Any] = np.asarray(unfilled(capacity, width, kind))

    def room(self, at: int, count: int) -> NDArray[Any]:
        """Return `count` rows from `at` on, to be filled."""
        short = at + count - len(self.data)
        if short > 0:
            more = unfilled(max(short, len(self.data)), *self._shape)
            self.data = np.concatenate([self.data, more])
        return self.data[at : at + count]


class Codes:
    """A column of names: each numbered when first met, so that no row becomes an object.

    Parameters
    ----------
    capacity : int
        How many rows are likely.

    Attributes
    ----------
    wrong : dict of int to object
        What is no name, by its number.
    """

    def __init__(self, capacity: int) -> None:
        self.wrong: dict[int, Any] = {}
        self._number: dict[Name, int] = {}
        self._codes = _Growing(capacity, kind=b"i")
        self._length = 0
        self._table = np.zeros(0, np.int32)
        self._low = 0
        self._count = 0

    @property
    def number(self) -> dict[Name, int]:
        """The names that occur, by number."""
        if len(self._number) < self._count:
            there = np.flatnonzero(self._table >= 0)
            places = there[np.argsort(self._table[there])].tolist()
            self._number = {self._low + place: k for k, place in enumerate(places)}
        return self._number

    def add(self, column: Any) -> Rows:
        """Take more rows; return those that have no name."""
        room = self._codes.room(self._length, len(column))
        self._length += len(column)
        if pa.types.is_integer(column.type) and column.null_count < len(column):
            return self._add_whole(column, room)
        given = pa.types.is_dictionary(column.type)
        if not given:
            column = column.dictionary_encode()
        names = column.dictionary.to_pylist()
        index = column.indices
        if index.null_count:
            index = index.cast(pa.int64()).fill_null(len(names))
            names.append(None)
        index = _aligned(index.to_numpy(zero_copy_only=False))
        used = list(range(len(names)))
        if given:  # it may hold names that no row has
            used = np.flatnonzero(np.bincount(index, minlength=len(names))).tolist()
        numbers = np.zeros(len(names), np.int32)
        numbers[used] = [self._numbered(names[k]) for k in used]
        translate(index, numbers, room)
        without = [k for k in used if names[k] is None]
        return np.flatnonzero(np.isin(index, without)) if without else _NONE

    def _add_whole(self, column: Any, room: NDArray[np.int32]) -> Rows:
        """Take whole numbers, by a table where they lie close together."""
        without = _NONE
        if column.null_count:
            without = np.flatnonzero(column.is_null())
            column = column.fill_null(column.drop_null()[0])
        values = _aligned(column.to_numpy(zero_copy_only=False))
        at = self._number_from(0, values, room)
        if at < len(values) and self._widen(int(values[at:].min()), int(values[at:].max())):
            at = self._number_from(at, values, room)
        if at < len(values):
            names, index = np.unique(values[at:], return_inverse=True)
            room[at:] = np.array([self._numbered(name) for name in names.tolist()], np.int32)[index]
        return without

    def _number_from(self, at: int, values: NDArray[Any], room: NDArray[np.int32]) -> int:
        """Take the values from `at` on; return where the table ends, or they do."""
        at, self._count = number(values, at, self._low % _WRAP, self._table, room, self._count)
        return at

    def _widen(self, low: int, high: int) -> bool:
        """Make sure that the table has entries from `low` to `high`; False where there is none."""
        first, last = self._low, self._low + len(self._table)
        if not self._count:
            first, last = low, low
        more = len(self._table) // 2
        start = min(low - more, first) if low < first else first
        stop = max(high + 1 + more, last) if high >= last else last
        if self._number or stop - start > _SPARSE * self._length + _SMALL:
            self._count = len(self.number)
            self._table = np.zeros(0, np.int32)
            return False
        table = np.asarray(unfilled(stop - start, 1, b"i"))
        table.fill(-1)
        table[first - start : last - start] = self._table
        self._low, self._table = start, table
        return True

    def _numbered(self, value: Any) -> int:
        if value is None:
            return 0
        if type(value) is not int and type(value) is not str:
            name = name_of(value)
            if name is None:
                self.wrong[self._number.setdefault(value, len(self._number))] = value
            value = value if name is None else name
        return self._number.setdefault(value, len(self._number))

    def places(self, order: Sequence[Name]) -> NDArray[np.int32]:
        """Return the place of each of n names in an order, (n,); -1 where it has none there."""
        wanted = np.asarray(order)
        if self._number or wanted.dtype != np.int64:
            return places(self.number, order)
        there = (wanted >= self._low) & (wanted < self._low + len(self._table))
        offset = wanted[there].astype(np.uint64) - np.uint64(self._low % _WRAP)
        numbers = self._table[offset]
        found = np.full(self._count, -1, np.int32)
        found[numbers[numbers >= 0]] = np.flatnonzero(there)[numbers >= 0]
        return found

    def rows(
        self, places: NDArray[np.int32] | None = None, *, again: bool = True
    ) -> NDArray[np.int32]:
        """Return the number of each row's name, or what `places` has in its stead.

        Parameters
        ----------
        places : (names,) int32, optional
        again : bool
            Whether rows are asked for again; else the numbers are overwritten.
        """
        codes = self._codes.data[: self._length]
        if places is None or not len(places):
            return codes
        found = np.asarray(unfilled(len(codes), 1, b"i")) if again else codes
        translate(codes, places, found)
        return found


def _aligned(values: NDArray[Any], kind: type | None = None) -> NDArray[Any]:
    """Return numbers as compiled code reads them; in a file they may lie at any place."""
    return np.require(values, kind, "A")


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
        self._box = _Growing(rows, 4)
        self.image = Codes(rows)
        self.codes: dict[str, Codes] = defaultdict(lambda: Codes(rows))
        self.single = False
        self.calm = True
        self._length = 0
        self._numbers: dict[str, _Growing] = defaultdict(lambda: _Growing(rows))
        self._without: dict[str, list[Rows]] = defaultdict(list)
        self._inexact: dict[str, list[Rows]] = defaultdict(list)
        self._counts: list[NDArray[np.int64]] = []
        self._sizes: list[Floats] = []
        at = 0
        with nullcontext() if memory_is_tight() else ThreadPoolExecutor(2) as threads:
            for batch in _one_ahead(batches, threads):
                columns = self._columns(batch)
                boxes = _begun(threads, self._take_boxes, columns)
                self._without["image_id"].append(self.image.add(batch.column("image_id")) + at)
                self._take_others(columns)
                boxes()
                self._length += len(next(iter(columns.values())))
                at += batch.num_rows
                if self._length > most:
                    raise FaultError(f"has more than {most} boxes", MORE_RECORDS)
        self.counts = self._of_images(self._counts, np.zeros(0, np.int64), shape.nested)
        self.sizes = self._of_images(self._sizes, np.zeros((0, 2)), shape.sized)

    @staticmethod
    def _of_images(parts: list[Any], none: Any, there: bool) -> Any:
        return np.concatenate([none, *parts]) if there else None

    def _columns(self, batch: Any) -> dict[str, Any]:
        """Return the columns of the boxes of a batch, and keep what it says of its images."""
        columns, counts = self.shape.rows(batch)
        if counts is not None:
            self._counts.append(counts.to_numpy(zero_copy_only=False).astype(np.int64))
        if self.shape.sized:
            sides = [_size(batch.column(name)) for name in ("width", "height")]
            self._sizes.append(np.stack(sides, axis=1))
        return columns

    def _take_boxes(self, columns: Mapping[str, Any]) -> None:
        box: list[NDArray[Any]] = []
        for name in self.shape.box:
            values = self._values(name, columns[name])
            box.extend([values] if name != BOX else values.reshape(-1, 4).T)
        single = all(column.dtype == np.float32 for column in box)
        kind = np.float32 if single else np.float64
        first, second, third, fourth = (_aligned(column, kind) for column in box)
        rows = self._box.room(self._length, len(first))
        self.calm &= interleave(first, second, third, fourth, rows, _LARGE)

    def _take_others(self, columns: Mapping[str, Any]) -> None:
        for name, column in columns.items():
            if name in NAMES:
                self._without[name].append(self.codes[name].add(column) + self._length)
            elif name not in self.shape.box:
                values = self._values(name, column)
                self._numbers[name].room(self._length, len(values))[:] = values

    def _values(self, name: str, column: Any) -> NDArray[Any]:
        """Return the numbers of a column, and keep the rows that have none."""
        width = 1
        without = np.flatnonzero(column.is_null()) if column.null_count else _NONE
        if name == BOX:
            column, uneven = _fours(column)
            without, width = np.union1d(without, uneven), 4
        if column.null_count:
            without = np.union1d(without, np.flatnonzero(column.is_null()) // width)
            column = column.fill_null(False if pa.types.is_boolean(column.type) else 0)
        values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
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
        return self._numbers[name].data[: self._length]


def _one_ahead(batches: Iterable[Any], threads: Executor | None) -> Iterator[Any]:
    """Give the batches, of which the next is read in a thread, if there is one, meanwhile."""
    rest = iter(batches)
    if threads is None:
        yield from rest
        return
    coming = threads.submit(next, rest, None)
    while (batch := coming.result()) is not None:
        coming = threads.submit(next, rest, None)
        yield batch


def _begun(
    threads: Executor | None, work: Callable[[Mapping[str, Any]], None], columns: Mapping[str, Any]
) -> Callable[[], None]:
    """Begin work in a thread, if there is one, or do it; return what waits for its end."""
    if threads is not None:
        return threads.submit(work, columns).result
    work(columns)
    return lambda: None


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
