"""Read arrays from untrusted .npy and .npz files.

Nothing is unpickled. Only requested members of an archive are read, within the limits, and an
array's header must match its number of bytes.
"""

import os
import zipfile
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from detap.io.json_text import looks_like
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.io.stream import MIN_EXPANSION_LIMIT, Stream, refuse, refuse_os_error
from detap.tables.detection import Flags

Arrays = dict[str, NDArray[Any]]

_ZIP, _NPY = b"PK\x03\x04", b"\x93NUMPY"
NUMBERS, TEXT, _WHOLE = "biuf", "US", "iu"
"""Kinds of data types."""


def read_npz(path: Path, requested: Collection[str], limits: Limits = DEFAULT_LIMITS) -> Arrays:
    """Return the requested arrays of an .npz file, as far as it has them; at least one."""
    text = os.fspath(path)
    with _opened(text, _ZIP, "an .npz archive", limits) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return _members(archive, text, requested, limits)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
            refuse(text, f"is a damaged archive: {error}", "write it again with numpy.savez")


def read_npy(path: Path, limits: Limits = DEFAULT_LIMITS) -> NDArray[Any]:
    """Return the array of an .npy file."""
    text = os.fspath(path)
    with _opened(text, _NPY, "an .npy array", limits) as file:
        return _array(file, text)


@contextmanager
def _opened(path: str, magic: bytes, expected: str, limits: Limits) -> Iterator[BinaryIO]:
    with Stream(path, limits) as stream:
        try:
            file = stream.seekable()
            head = file.read(1 << 12)
            if not head.startswith(magic):
                name, _ = looks_like(head)
                detected = f"looks like {name}" if name else "unknown kind of file"
                save = "numpy.savez" if magic == _ZIP else "numpy.save"
                refuse(path, f"{detected}, expected {expected}", f"write it with {save}")
            file.seek(0)
            yield file
        except OSError as error:
            refuse_os_error(path, error)


def _members(
    archive: zipfile.ZipFile, path: str, requested: Collection[str], limits: Limits
) -> Arrays:
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        key = info.filename.removesuffix(".npy")
        if key in members:
            refuse(path, f"duplicate array {key!r}", "keep one of them")
        if info.filename.endswith(".npy"):
            members[key] = info
    keys = [key for key in requested if key in members]
    if not keys:
        available = ", ".join(sorted(members)[:20]) or "nothing"
        refuse(path, f"has none of the arrays {', '.join(requested)}", f"it has {available}")
    compressed = sum(members[key].compress_size for key in keys)
    size = sum(members[key].file_size for key in keys)
    allowed = min(limits.file_bytes, max(MIN_EXPANSION_LIMIT, limits.expansion * compressed))
    if size > allowed:
        hint = f"the limit is {allowed}; if you trust the file, raise it with --max-expansion"
        refuse(path, f"expands from {compressed} to {size} bytes", hint)
    arrays = {}
    for key in keys:
        with archive.open(members[key].filename) as member:
            arrays[key] = _array(member, path, f"array {key!r}")
    return arrays


def _array(file: IO[bytes], path: str, location: str = "") -> NDArray[Any]:
    """Return the array of a file in the .npy format, read to its end."""
    try:
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        if file.read(1):  # at the end, zipfile checks the sum of a member
            raise ValueError("more bytes than the array has")
    except (ValueError, ArithmeticError, MemoryError, RecursionError, SyntaxError) as error:
        reason = " ".join(str(error).split())[:120]
        hint = "write numbers or text with numpy.save"
        refuse(path, f"cannot be read: {reason}", hint, location)
    if array.dtype.kind not in NUMBERS + TEXT or not array.itemsize:
        refuse(path, f"has the type {array.dtype}", "save numbers or text", location)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


class ArraySource:
    """The files of the arrays: one archive, or one file per array."""

    def __init__(self, archive: str, paths: Mapping[str, str], arrays: Arrays) -> None:
        self.archive = archive
        self.paths = paths
        self.arrays = arrays

    def refuse(self, name: str, message: str, hint: str, location: str = "") -> NoReturn:
        """Raise InputError for an array."""
        if self.archive:
            location = f"array {name!r}" + (f", {location}" if location else "")
        refuse(self.archive or self.paths[name], message, hint, location)

    def refuse_cells(self, name: str, array: NDArray[Any], wrong: Flags, *words: str) -> None:
        """Raise InputError for the first wrong cell of an array; the message may have its value."""
        if wrong.any():
            row, column = np.argwhere(wrong)[0].tolist()
            message, hint = words
            text = message.format(array[row, column].item())
            self.refuse(name, text, hint, f"row {row}, column {column}")

    def require(self, *names: str) -> None:
        """Raise InputError if the archive lacks an array."""
        for name in names:
            if name not in self.arrays:
                refuse(self.archive, f"has no array {name!r}", f"it has {', '.join(self.arrays)}")

    def matrix(self, name: str) -> NDArray[Any]:
        """Return an array of rows and columns; raise InputError for another, or an empty one."""
        array = self.arrays[name]
        if array.ndim != 2 or 0 in array.shape:
            hint = "give (rows, columns), at least one each"
            self.refuse(name, f"has the shape {array.shape}", hint)
        return array

    def require_numbers(self, name: str, hint: str = "give numbers") -> None:
        """Raise InputError for an array of text."""
        if self.arrays[name].dtype.kind not in NUMBERS:
            self.refuse(name, f"has the type {self.arrays[name].dtype}", hint)

    def numbers(self, name: str) -> NDArray[Any]:
        """Return finite numbers exactly: float16 and float32 as float32, others as float64.

        Large integers or wider floats are refused: rounded, two values could become equal.
        """
        self.require_numbers(name)
        array = self.arrays[name]
        wrong = ~np.isfinite(array)
        self.refuse_cells(name, array, wrong, "is {}, which is not finite", "give finite numbers")
        if array.dtype in (np.float16, np.float32):
            return array.astype(np.float32, copy=False)
        if array.dtype.itemsize < 8 or array.dtype == np.float64:
            return array.astype(np.float64, copy=False)
        with np.errstate(over="ignore"):
            values = array.astype(np.float64)
        wrong = values != array
        if array.dtype.kind in _WHOLE:  # which NumPy compares as float64, and Python exactly
            wrong = np.abs(values) >= 2.0**53
            wrong[wrong] = values[wrong].astype(object) != array[wrong].astype(object)
        message = "is {}, which float64 cannot represent"
        hint = "use whole numbers up to 2^53, or floats of at most 64 bits"
        self.refuse_cells(name, array, wrong, message, hint)
        return values

    def flags(self, name: str, hint: str) -> Flags:
        """Return 0 and 1 as flags; raise InputError for other values."""
        self.require_numbers(name, "give 0 and 1 for each label")
        array = self.arrays[name]
        wrong = (array != 0) & (array != 1)
        self.refuse_cells(name, array, wrong, "is {!r}, expected 0 or 1", hint)
        return array.astype(np.bool_)

    def classes(self, name: str) -> NDArray[Any]:
        """Return names or class numbers; raise InputError for numbers that are not whole."""
        array = self.arrays[name]
        if array.dtype.kind == "f" and not (
            np.isfinite(array).all() and (array == np.floor(array)).all()
        ):
            hint = "give whole numbers or names"
            self.refuse(name, "has a class number that is not whole", hint)
        return array

    def names(self, key: str, count: int) -> tuple[str, ...]:
        """Return `count` distinct names as text; without the array, numbers from 0."""
        if key not in self.arrays:
            return tuple(map(str, range(count)))
        array = self.arrays[key]
        if array.ndim != 1 or array.dtype.kind not in _WHOLE + TEXT:
            self.refuse(key, "not a column of names", "give text or whole numbers, (n,)")
        names = array.tolist()
        if array.dtype.kind == "S":
            names = [name.decode("utf-8", "surrogateescape") for name in names]
        names = tuple(map(str, names))
        if len(set(names)) != len(names):
            twice = Counter(names).most_common(1)[0][0]
            self.refuse(key, f"duplicate name {twice!r}", "use distinct names")
        if len(names) != count:
            self.refuse(key, f"has {len(names)} name{'s' * (len(names) != 1)}", f"give {count}")
        return names
