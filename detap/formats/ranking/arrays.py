"""Read arrays from untrusted .npy and .npz files.

Nothing is unpickled. Only requested members of an archive are read, within the limits, and an
array's header must match its number of bytes.
"""

import os
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from io import BytesIO
from math import prod
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from detap.io.json_text import looks_like
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.io.stream import MIN_EXPANSION_LIMIT, Stream, refuse, refuse_os_error

Arrays = dict[str, NDArray[Any]]

ZIP_MAGIC = b"PK\x03\x04"
NPY_MAGIC = b"\x93NUMPY"
_ENCRYPTED = 1

NUMBERS = "biuf"
"""Kinds of data types that are numbers."""

TEXT = "US"
_WHOLE = "iu"
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_npz(path: Path, requested: Collection[str], limits: Limits = DEFAULT_LIMITS) -> Arrays:
    """Return the requested arrays of an .npz file, as far as it has them.

    Raise InputError for a file that is damaged, too large, or has Python objects or none of the
    arrays.
    """
    text = os.fspath(path)
    with _opened(text, ZIP_MAGIC, "an .npz archive", limits) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return _members(archive, text, requested, limits)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
            refuse(text, f"is a damaged archive: {error}", "write it again with numpy.savez")
        except OSError as error:
            refuse_os_error(text, error)


def read_npy(path: Path, limits: Limits = DEFAULT_LIMITS) -> NDArray[Any]:
    """Return the array of an .npy file."""
    text = os.fspath(path)
    with _opened(text, NPY_MAGIC, "an .npy array", limits) as file:
        try:
            data = file.read()
        except OSError as error:
            refuse_os_error(text, error)
    return _array(data, text, "")


@contextmanager
def _opened(path: str, magic: bytes, expected: str, limits: Limits) -> Iterator[BinaryIO]:
    with Stream(path, limits) as stream:
        file = stream.seekable()
        try:
            head = file.read(1 << 12)
        except OSError as error:
            refuse_os_error(path, error)
        if not head.startswith(magic):
            name, _ = looks_like(head)
            detected = f"looks like {name}" if name else "unknown kind of file"
            save = "numpy.savez" if magic == ZIP_MAGIC else "numpy.save"
            refuse(path, f"{detected}, expected {expected}", f"write it with {save}")
        file.seek(0)
        yield file


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
        refuse(
            path,
            f"expands from {compressed} to {size} bytes",
            f"the limit is {allowed}; if you trust the file, raise it with --max-expansion",
        )
    return {key: _array(_expanded(archive, members[key], path), path, key) for key in keys}


def _expanded(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: str) -> bytes:
    if info.flag_bits & _ENCRYPTED:
        refuse(path, "is encrypted", "write it without a password", info.filename)
    with archive.open(info) as member:
        data = member.read(info.file_size + 1)
    if len(data) != info.file_size:
        message = "is damaged: the length of a member is not the declared one"
        refuse(path, message, location=info.filename)
    return data


def _array(data: bytes, path: str, key: str) -> NDArray[Any]:
    location = f"array {key!r}" if key else ""
    stream = BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        if version not in _HEADERS:
            raise ValueError(f"format version {version[0]}.{version[1]} is unknown")
        shape, fortran, kind = _HEADERS[version](stream)
    except (ValueError, EOFError, MemoryError, RecursionError, SyntaxError) as error:
        reason = " ".join(str(error).split())[:80]
        refuse(path, f"has a damaged header: {reason}", "write it again with numpy.save", location)
    if kind.hasobject:
        refuse(
            path,
            "contains Python objects, which are never unpickled",
            "save numbers or text: give the array a dtype",
            location,
        )
    if kind.names is not None or kind.kind not in NUMBERS + TEXT:
        refuse(path, f"has the type {kind}", "save numbers or text", location)
    start = stream.tell()
    if prod(shape) * kind.itemsize != len(data) - start or min(shape, default=0) < 0:
        refuse(
            path,
            f"has {len(data) - start} bytes, expected {shape} of {kind}",
            "write it again with numpy.save",
            location,
        )
    if prod(shape) == 0:
        return np.zeros(shape, kind)
    array = np.frombuffer(data, kind, offset=start)
    array = array.reshape(shape, order="F" if fortran else "C")
    return array.astype(kind.newbyteorder("="), copy=False)


def names_of(arrays: Arrays, path: str, key: str, count: int) -> tuple[str, ...]:
    """Return `count` distinct names as text; without the array, numbers from 0."""
    if key not in arrays:
        return tuple(map(str, range(count)))
    array, location = arrays[key], f"array {key!r}"
    if array.ndim != 1 or array.dtype.kind not in _WHOLE + TEXT:
        refuse(path, "not a column of names", "give text or whole numbers, (n,)", location)
    if array.dtype.kind == "S":
        names = tuple(name.decode("utf-8", "surrogateescape") for name in array.tolist())
    else:
        names = tuple(map(str, array.tolist()))
    if len(set(names)) != len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        refuse(path, f"duplicate name {twice!r}", "use distinct names", location)
    if len(names) != count:
        refuse(path, f"has {len(names)} names", f"give {count}", location)
    return names


def inexact(array: NDArray[Any]) -> tuple[str, str, str] | None:
    """Return the location, message and hint of a number that float64 cannot hold.

    Rounding large integers or wider floats could make two values equal.
    """
    if array.dtype.itemsize < 8 or array.dtype == np.float64:
        return None
    bits = 8 * array.dtype.itemsize - (array.dtype.kind == "i")
    with np.errstate(over="ignore"):
        values = array.astype(np.float64)
        fits = np.isfinite(values)
    if array.dtype.kind in _WHOLE:
        fits = values < 2.0**bits  # the largest are rounded beyond their own type
    same = fits & (np.where(fits, values, 0.0).astype(array.dtype) == array)
    if same.all():
        return None
    row, column = np.argwhere(~same)[0].tolist()
    return (
        f"row {row}, column {column}",
        f"is {array[row, column]}, which float64 cannot represent",
        "use whole numbers up to 2^53, or floats of at most 64 bits",
    )
