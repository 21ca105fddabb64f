"""Validation of columns and counts from callers, without lossy casts.

numpy silently casts text to numbers, NaN to a flag, integers beyond 2^53 to the nearest float, and
uses the value below a mask. Each of these would change the metrics.
"""

from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Any, NamedTuple, NoReturn
from unicodedata import normalize

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detap.errors import InputError, Problem, UsageError

Name = int | str
"""Name of an image or class: a COCO id, or text."""

MOST_ROWS = 2**31 - 1
"""Limit of rows, images and classes, whose indices are int32."""

MOST_THREADS = 1024

FARTHEST = 1e8
"""Limit of the absolute value of coordinates."""

EXACT = 2**53
"""From here on not every integer is a float64."""

_SPARSE = 8
"""Maximal entries per row of a lookup table from the smallest to the largest id."""


def check_scores(score: NDArray[np.float64], location: Callable[[int], tuple[str, str]]) -> None:
    """Raise InputError, at file and location of a row, if only some detections have a score."""
    missing = np.flatnonzero(np.isnan(score))
    if 0 < len(missing) < len(score):
        have = "has" if len(missing) == 1 else "have"
        message = (
            f"score is missing; {len(missing)} of {len(score)} records {have} none: give all "
            "records a score, or none"
        )
        raise InputError(Problem(*location(int(missing[0])), message))


class Names(NamedTuple):
    """A column of names as indices."""

    distinct: list[Name]  # distinct names, sorted
    number: NDArray[np.int32]  # (n,): index into `distinct` of each row


class Columns:
    """Reader of the columns of one table."""

    names_column = "image"
    """The column whose length the others have, in error messages."""

    def __init__(self, table: str, whole: str = "") -> None:
        self.table, self.whole = table, whole

    def fail(self, message: str, hint: str = "", location: str = "") -> NoReturn:
        """Raise the InputError of this table."""
        raise InputError(Problem(self.table, location, message, hint))

    def first(self, rows: NDArray[Any]) -> int:
        """Return the row that a note names, of ascending rows."""
        return int(rows[0])

    def location(self, row: int) -> str:
        """Return the location of a row in errors."""
        return f"{self.whole}, row {row}" if self.whole else f"row {row}"

    def refuse(self, what: str, column: NDArray[Any], wrong: NDArray[Any], expected: str) -> None:
        """Raise InputError for the first row with an invalid value; `wrong` is (n,) or (n, k)."""
        if wrong.any():
            row = int(np.nonzero(wrong)[0][0])
            (value,) = column[row : row + 1].tolist()
            self.fail(f"{what} is {value!r}", f"expected {expected}", self.location(row))

    def names(self, what: str, values: ArrayLike) -> list[Name]:
        """Return the names of images or classes: all integers (also as floats), or all text."""
        return self._plain_names(what, self._one_a_row(what, values))

    def index_names(self, what: str, values: ArrayLike) -> Names:
        """Return the distinct names, and the index of each row."""
        column = self._one_a_row(what, values)
        if column.dtype.kind == "f" and (np.abs(column) < EXACT).all():
            whole = column.astype(np.int64)
            column = whole if (whole == column).all() else column
        if column.dtype.kind not in "iuU" or not len(column):
            return _numbered(self._plain_names(what, column))
        if column.dtype.kind != "U":
            wide = column if column.dtype.kind == "u" else column.astype(np.int64, copy=False)
            low = wide.min()
            if int(wide.max()) - int(low) < _SPARSE * len(column):  # a lookup table
                offset = (wide - low).astype(np.intp, copy=False)
                present = np.zeros(int(offset.max()) + 1, np.bool_)
                present[offset] = True
                number = np.cumsum(present, dtype=np.int32) - np.int32(1)
                distinct: list[Name] = [int(low) + k for k in np.flatnonzero(present).tolist()]
                return Names(distinct, number[offset])
        # Only the first of each run of equal values becomes a Python object.
        first = np.flatnonzero(np.append(True, column[1:] != column[:-1]))
        heads = _numbered(column[first].tolist())
        lengths = np.diff(first, append=len(column))
        return Names(heads.distinct, np.repeat(heads.number, lengths))

    def _one_a_row(self, what: str, values: ArrayLike) -> NDArray[Any]:
        column = self._taken(what, values)
        if column.ndim != 1:
            self.fail(f"{what} has shape {column.shape}", "expected (n,), one name per row")
        return column

    def _plain_names(self, what: str, column: NDArray[Any]) -> list[Name]:
        values: list[Any] = column.tolist()
        types = set(map(type, values))
        if types <= {int} or types <= {str}:
            return values
        names = [name_of(value) for value in values]
        if None in names:
            row = names.index(None)
            self.fail(
                f"{what} is {values[row]!r}", "expected an integer or text", self.location(row)
            )
        if len(set(map(type, names))) > 1:
            self.fail(f"{what} mixes numbers and text", "use only numbers, or only text")
        return names  # type: ignore[return-value]  # None is not among them

    def numbers(
        self, what: str, values: ArrayLike, shape: tuple[int, ...], *, kept: bool = True
    ) -> NDArray[np.float64]:
        """Return numbers as exact float64, which may share memory if they are not kept."""
        column = self._shaped(what, values, shape)
        if column.dtype.kind == "O":
            flat = column.ravel().tolist()
            if not all(map(_is_number, set(map(type, flat)))):
                wrong = np.array([not _is_number(type(v)) for v in flat]).reshape(column.shape)
                self.refuse(what, column, wrong, "numbers" if column.ndim > 1 else "a number")
        elif column.dtype.kind not in "iuf":
            self.fail(f"{what} has dtype {column.dtype}", "expected numbers")
        try:
            with np.errstate(over="ignore"):
                exact = column.astype(np.float64, order="C", copy=kept)
        except (TypeError, ValueError, OverflowError) as error:
            self.fail(f"{what}: {error}", "expected float64 numbers")
        if column.dtype.kind != "f" or column.dtype.itemsize > exact.itemsize:
            self.refuse(what, column, _cut(column, exact), "a number that float64 holds exactly")
        return exact

    def finite(self, what: str, values: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Return finite numbers."""
        column = self.numbers(what, values, shape)
        self.refuse(what, column, ~np.isfinite(column), "a finite number")
        return column

    def flags(self, what: str, values: ArrayLike, length: int) -> NDArray[np.bool_]:
        """Return a column of flags, (n,) bool; 1 and 0 are accepted."""
        column = self._shaped(what, values, (length,))
        if column.dtype.kind in "biuf":
            wrong = np.asarray((column != 0) & (column != 1))
        else:
            wrong = np.array([not _is_flag(value) for value in column.tolist()], np.bool_)
        self.refuse(what, column, wrong, "true, false, 1 or 0")
        return column.astype(np.bool_)

    def _shaped(self, what: str, values: ArrayLike, shape: tuple[int, ...]) -> NDArray[Any]:
        column = self._taken(what, values)
        if column.size == 0 and shape[0] == 0:
            return column.reshape(shape).astype(np.float64)
        if column.shape != shape:
            if len(shape) > 1 and column.dtype.kind == "O" and column.shape == shape[:1]:
                sizes = [len(row) if hasattr(row, "__len__") else 1 for row in column]
                row = next((k for k, size in enumerate(sizes) if size != shape[1]), 0)
                self.fail(f"{what} has {sizes[row]} values", f"expected {shape[1]}", f"row {row}")
            rows, *others = shape
            generic = ", ".join(["n", *map(str, others)]) if others else "n,"
            hint = f"expected ({generic}), n = {rows} as in {self.names_column}"
            self.fail(f"{what} has shape {column.shape}", hint)
        return column

    def array(self, what: str, values: Any) -> NDArray[Any]:
        """Return values as an array of at least one dimension, without casts."""
        return self._taken(what, as_array(values))

    def _taken(self, what: str, values: ArrayLike) -> NDArray[Any]:
        """Return an array without casts; of a list an object array, so that all types are seen."""
        if isinstance(values, np.ma.MaskedArray):
            if np.ma.getmaskarray(values).any():
                self.fail(f"{what} has masked entries", "remove or fill those rows")
            values = values.data
        if isinstance(values, Sized) and getattr(values, "shape", None) != ():
            check_rows(self.table, len(values), what)
        dtype = None if hasattr(values, "__array__") else object
        try:
            return np.atleast_1d(np.asarray(values, dtype=dtype))
        except (TypeError, ValueError) as error:
            self.fail(f"{what}: {error}", "expected rows of equal length")


def as_array(values: Any) -> Any:
    """Convert arrays of other libraries to numpy (bfloat16 to float32); return others unchanged."""
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        return (values.float() if str(values.dtype) == "torch.bfloat16" else values).numpy()
    if not hasattr(values, "__array__") and hasattr(values, "__dlpack__"):
        return np.from_dlpack(values)
    return values


def check_rows(table: str, count: int, what: str) -> None:
    """Raise InputError for more rows, images or classes than int32 can index."""
    if count > MOST_ROWS:
        message = f"{what} has {count} entries, at most {MOST_ROWS} are supported"
        raise InputError(Problem(table, "", message))


def check_threads(threads: int | None) -> None:
    """Raise UsageError for an invalid number of threads."""
    is_int = isinstance(threads, int) and not isinstance(threads, bool)
    if threads is not None and not (is_int and 1 <= threads <= MOST_THREADS):
        raise UsageError(
            f"threads is {threads!r}; expected an integer from 1 to {MOST_THREADS}, or None"
        )


def name_of(value: object) -> Name | None:
    """Convert a name to int or str; return None if it is neither."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, float | np.floating) and value.is_integer() and abs(float(value)) < EXACT:
        return int(value)
    return None


def ordered(names: Iterable[Name]) -> list[Name]:
    """Sort names, numbers before text."""
    return sorted(names, key=lambda name: (isinstance(name, str), name))


def indices_in(names: Iterable[Name], order: Iterable[Name]) -> NDArray[np.int32]:
    """Return the index of each name in `order`, (n,) int32; -1 if it is missing."""
    index_by_name = {name: index for index, name in enumerate(order)}
    return np.array([index_by_name.get(name, -1) for name in names], np.int32)


def in_form_of(names: tuple[Name, ...], order: tuple[Name, ...]) -> tuple[Name, ...]:
    """Return names, with unknown ones as the name in `order` that differs in Unicode form only."""
    texts = [name for name in names if isinstance(name, str) and not name.isascii()]
    unknown = {*texts}.difference(order)
    if not unknown:
        return names
    forms: dict[str, list[Name]] = {}
    for name in dict.fromkeys(order):
        if isinstance(name, str):
            forms.setdefault(normalize("NFC", name), []).append(name)
    alike = {name: forms.get(normalize("NFC", name), []) for name in unknown}
    same: dict[Name, Name] = {name: of[0] for name, of in alike.items() if len(of) == 1}
    return tuple(same.get(name, name) for name in names)


def reindexed(
    numbers: NDArray[np.int32], names: Sequence[Name], order: Sequence[Name]
) -> NDArray[np.int32]:
    """Convert indices into `names` to indices into `order`, which has all names."""
    return numbers if order[: len(names)] == names else indices_in(names, order)[numbers]


def _numbered(names: Sequence[Name]) -> Names:
    """Index names of one type in sorted order."""
    distinct = sorted(set(names))
    return Names(distinct, indices_in(names, distinct))


def _is_number(cls: type) -> bool:
    return issubclass(cls, int | float | np.integer | np.floating) and cls is not bool


def _is_flag(value: object) -> bool:
    return (_is_number(type(value)) or isinstance(value, bool | np.bool_)) and value in (0, 1)


def _cut(column: NDArray[Any], exact: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark values that changed by the conversion to float64."""
    suspect = np.isfinite(exact) & (np.abs(exact) >= EXACT)
    if column.dtype.kind not in "iu":
        suspect |= np.asarray(column != exact, np.bool_) & ~np.isnan(exact)
    wrong = np.zeros(exact.shape, np.bool_)
    for index in zip(*np.nonzero(suspect), strict=True):
        # Python compares integers with floats exactly; numpy casts them first.
        original, value = column[index], exact[index].item()
        integer = isinstance(original, int | np.integer)
        wrong[index] = (int(original) if integer else original) != value
    return wrong
