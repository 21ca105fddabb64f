"""The caller's columns and counts: taken as they are, or refused; never cast to another value.

numpy casts without a word: text to numbers, NaN to a flag, whole numbers beyond 2^53 to the nearest
float, a masked entry to what lies below the mask. Each of these would change what is counted.
"""

from collections.abc import Iterable, Sequence, Sized
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detap.errors import InputError, Problem, UsageError

Name = int | str
"""What the outside world calls an image or a class: a COCO id, or a word."""

MOST_ROWS = 2**31 - 1
"""Rows, images and classes are numbered in int32."""

MOST_THREADS = 1024

FARTHEST = 1e8
"""Coordinates beyond, of either sign, are no pixels of an image."""

_EXACT = 2**53
"""From here on not every whole number is a float64."""

_SPARSE = 8
"""A table of all numbers between the least and the largest id may have so many entries a row."""


class Names(NamedTuple):
    """A column of names, numbered.

    Attributes
    ----------
    distinct : list of int or str
        Each name once, sorted.
    number : (n,) int32
        Which of them each row has.
    """

    distinct: list[Name]
    number: NDArray[np.int32]


class Columns:
    """Reads the columns of one table, and refuses in its name.

    Parameters
    ----------
    table : str
        What errors call it.
    """

    whole = ""
    """What errors call the place of all rows together."""

    def __init__(self, table: str) -> None:
        self.table = table

    def fail(self, message: str, hint: str = "", location: str = "") -> NoReturn:
        """Raise the InputError of this table."""
        raise InputError(Problem(self.table, location, message, hint))

    def first(self, rows: NDArray[Any]) -> int:
        """Return the row that a note on ascending rows names."""
        return int(rows[0])

    def location(self, row: int) -> str:
        """Return what errors call a row."""
        return f"row {row}"

    def refuse(self, what: str, column: NDArray[Any], wrong: NDArray[Any], due: str) -> None:
        """Raise for the first row that is wrong, where one is."""
        if wrong.any():
            row = int(np.argmax(wrong))
            (value,) = column[row : row + 1].tolist()
            self.fail(f"{what} is {value!r}", f"it must be {due}", self.location(row))

    def names(self, what: str, values: ArrayLike) -> list[Name]:
        """Return what images or classes are called: all numbers, or all text.

        A float that is a whole number below 2^53 is that number.
        """
        return self._plain_names(what, self._one_a_row(what, values))

    def numbered(self, what: str, values: ArrayLike) -> Names:
        """Return the same, each name once and its number in every row.

        Whole numbers that lie close together are looked up in a table; of others, and of text, only
        the first of each run of equal ones becomes a value of Python.
        """
        column = self._one_a_row(what, values)
        if column.dtype.kind == "f" and _are_whole(column):
            column = column.astype(np.int64)
        if column.dtype.kind in "iu" and len(column):
            wide = column if column.dtype.kind == "u" else column.astype(np.int64, copy=False)
            low = wide.min()
            if int(wide.max()) - int(low) < _SPARSE * len(column):
                return _looked_up((wide - low).astype(np.intp, copy=False), int(low))
        if column.dtype.kind not in "iuU" or not len(column):
            return _numbered(self._plain_names(what, column))
        first = np.flatnonzero(np.append(True, column[1:] != column[:-1]))
        heads = _numbered(column[first].tolist())
        lengths = np.diff(first, append=len(column))
        return Names(heads.distinct, np.repeat(heads.number, lengths))

    def _one_a_row(self, what: str, values: ArrayLike) -> NDArray[Any]:
        column = self._taken(what, values)
        if column.ndim != 1:
            self.fail(f"{what} has the shape {column.shape}", "give one name a row, (n,)")
        return column

    def _plain_names(self, what: str, column: NDArray[Any]) -> list[Name]:
        found: list[Any] = column.tolist()
        kinds = set(map(type, found))
        if kinds <= {int} or kinds <= {str}:
            return found
        names = [name_of(value) for value in found]
        if None in names:
            row = names.index(None)
            hint = "call images and classes by whole numbers or text"
            self.fail(f"{what} is {found[row]!r}", hint, self.location(row))
        if len(set(map(type, names))) > 1:
            self.fail(f"{what} mixes numbers and text", "call all by numbers, or all by text")
        return names  # type: ignore[return-value]  # None is not among them

    def numbers(
        self, what: str, values: ArrayLike, shape: tuple[int, ...], *, kept: bool = True
    ) -> NDArray[np.float64]:
        """Return a column of numbers, (n,) or (n, 4) float64, each of them exactly as given.

        Where they are not kept, they may be the caller's own.
        """
        column = self._shaped(what, values, shape)
        if column.dtype.kind == "O":
            self._refuse_other_kinds(what, column)
        elif column.dtype.kind not in "iuf":
            self.fail(f"{what} are of the type {column.dtype}", "give numbers")
        try:
            with np.errstate(over="ignore"):
                exact = column.astype(np.float64, order="C", copy=kept)
        except (TypeError, ValueError, OverflowError) as error:
            self.fail(f"{what}: {error}", "give numbers of float64")
        if column.dtype.kind != "f" or column.dtype.itemsize > exact.itemsize:
            self.refuse(what, column, _cut(column, exact), "a number that float64 can hold exactly")
        return exact

    def flags(self, what: str, values: ArrayLike, length: int) -> NDArray[np.bool_]:
        """Return a column of flags, (n,) bool; 1 and 0 are taken for true and false."""
        column = self._shaped(what, values, (length,))
        if column.dtype.kind == "b":
            return column.astype(np.bool_)
        if column.dtype.kind in "iuf":
            wrong = np.asarray((column != 0) & (column != 1))
        else:
            wrong = np.array([not _is_flag(value) for value in column.tolist()], np.bool_)
        self.refuse(what, column, wrong, "true or false, or 1 or 0")
        return column.astype(np.bool_)

    def _shaped(self, what: str, values: ArrayLike, shape: tuple[int, ...]) -> NDArray[Any]:
        column = self._taken(what, values)
        if column.size == 0 and shape[0] == 0:
            return column.reshape(shape).astype(np.float64)
        if column.shape != shape:
            if len(shape) > 1 and column.dtype.kind == "O" and column.shape == shape[:1]:
                sizes = [len(row) if hasattr(row, "__len__") else 1 for row in column]
                row = next((k for k, size in enumerate(sizes) if size != shape[1]), 0)
                self.fail(f"{what} has {sizes[row]} numbers", f"give {shape[1]}", f"row {row}")
            self.fail(f"{what} has the shape {column.shape}", f"give {shape}: a row for each image")
        return column

    def array(self, what: str, values: Any) -> NDArray[Any]:
        """Return the values as an array of at least one axis, none of them cast."""
        return self._taken(what, as_array(values))

    def _taken(self, what: str, values: ArrayLike) -> NDArray[Any]:
        """Return the values as an array of at least one axis, none of them cast.

        What is no array yet becomes one of objects: numpy would find a type for all of them.
        """
        if isinstance(values, np.ma.MaskedArray):
            if np.ma.getmaskarray(values).any():
                self.fail(f"{what} has masked entries", "leave those rows out, or fill them")
            values = values.data
        if isinstance(values, Sized) and getattr(values, "shape", None) != ():
            check_rows(self.table, len(values), what)
        kind = None if hasattr(values, "__array__") else object
        try:
            return np.atleast_1d(np.asarray(values, dtype=kind))
        except (TypeError, ValueError) as error:
            self.fail(f"{what}: {error}", "give rows of one length")

    def _refuse_other_kinds(self, what: str, column: NDArray[Any]) -> None:
        entries = column.ravel().tolist()
        if all(map(_is_number, set(map(type, entries)))):
            return
        wrong = np.array([not _is_number(type(entry)) for entry in entries]).reshape(column.shape)
        self.refuse(what, column, _by_row(wrong), "numbers" if column.ndim > 1 else "a number")


def as_array(values: Any) -> Any:
    """Return what an array library holds as a numpy array, and anything else as it is.

    A tensor of PyTorch is taken from its device and its graph; bfloat16, which numpy does not have,
    becomes float32, which holds each of its values. PyTorch is not imported for that. What offers
    DLPack alone is taken through it.
    """
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        return (values.float() if str(values.dtype) == "torch.bfloat16" else values).numpy()
    if not hasattr(values, "__array__") and hasattr(values, "__dlpack__"):
        return np.from_dlpack(values)
    return values


def check_rows(table: str, count: int, what: str) -> None:
    """Refuse more rows, images or classes than int32 can number.

    Raises
    ------
    InputError
    """
    if count > MOST_ROWS:
        hint = f"at most {MOST_ROWS} can be numbered: score parts of them"
        raise InputError(Problem(table, "", f"{what} has {count} entries", hint))


def check_threads(threads: int | None) -> None:
    """Refuse what is no number of threads.

    Raises
    ------
    UsageError
    """
    if threads is None:
        return
    if isinstance(threads, bool) or not (isinstance(threads, int) and 1 <= threads <= MOST_THREADS):
        raise UsageError(
            f"threads is {threads!r}; give a whole number from 1 to {MOST_THREADS}, or None"
        )


def name_of(value: object) -> Name | None:
    """Return a name as a plain number or text; None for what is neither."""
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float | np.floating) and value.is_integer() and abs(float(value)) < _EXACT:
        return int(value)
    return None


def ordered(names: Iterable[Name]) -> list[Name]:
    """Return names sorted, numbers before text."""
    return sorted(names, key=lambda name: (isinstance(name, str), name))


def places(names: Iterable[Name], order: Iterable[Name]) -> NDArray[np.int32]:
    """Return the place of each of n names in an order, (n,); -1 where it has none there."""
    location = {name: at for at, name in enumerate(order)}
    return np.array([location.get(name, -1) for name in names], np.int32)


def renumbered(
    numbers: NDArray[np.int32], names: Sequence[Name], order: Sequence[Name]
) -> NDArray[np.int32]:
    """Return `numbers`, which count in `names`, counting in `order` instead, which has them all."""
    return numbers if order[: len(names)] == names else places(names, order)[numbers]


def _looked_up(offset: NDArray[np.intp], low: int) -> Names:
    """Return names that are whole numbers from `low` on, by how far beyond it they are."""
    there = np.zeros(int(offset.max()) + 1, np.bool_)
    there[offset] = True
    number = np.cumsum(there, dtype=np.int32) - np.int32(1)
    return Names([low + at for at in np.flatnonzero(there).tolist()], number[offset])


def _numbered(names: Sequence[Name]) -> Names:
    """Return names of one kind, numbered in sorted order."""
    distinct = sorted(set(names))
    return Names(distinct, places(names, distinct))


def _are_whole(column: NDArray[Any]) -> bool:
    return bool((np.abs(column) < _EXACT).all()) and bool((column == np.floor(column)).all())


def _is_number(kind: type) -> bool:
    return issubclass(kind, int | float | np.integer | np.floating) and kind is not bool


def _is_flag(value: object) -> bool:
    return (_is_number(type(value)) or isinstance(value, bool | np.bool_)) and value in (0, 1)


def _by_row(wrong: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return wrong if wrong.ndim == 1 else np.asarray(wrong.any(axis=1))


def _cut(column: NDArray[Any], exact: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which rows lost something on their way to float64."""
    suspect = np.isfinite(exact) & (np.abs(exact) >= _EXACT)
    if column.dtype.kind not in "iu":
        suspect |= np.asarray(column != exact, np.bool_) & ~np.isnan(exact)
    wrong = np.zeros(exact.shape, np.bool_)
    for at in zip(*np.nonzero(suspect), strict=True):
        # Python compares whole numbers with floats exactly; numpy casts them first.
        entry, value = column[at], exact[at].item()
        wrong[at] = (int(entry) if isinstance(entry, int | np.integer) else entry) != value
    return _by_row(wrong)
