"""Arrays from .npy and .npz files, which come from strangers.

Nothing is unpickled. An archive's members are read only when they are wanted, and only as large as
the limits allow; an array's header must fit the bytes that follow it.
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
from detap.io.stream import EXPANSION_FLOOR, Stream, refuse, refuse_os_error

Arrays = dict[str, NDArray[Any]]

ZIP_MAGIC = b"PK\x03\x04"
NPY_MAGIC = b"\x93NUMPY"
_ENCRYPTED = 1
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_npz(path: Path, wanted: Collection[str], limits: Limits = DEFAULT_LIMITS) -> Arrays:
    """Return the arrays of an .npz file that are wanted and there.

    Parameters
    ----------
    path : str or path
        The file.
    wanted : collection of str
        Keys. Other members are not looked at.
    limits : Limits
        `file_bytes` and `expansion` are obeyed.

    Raises
    ------
    InputError
        Where the file is no such archive, damaged, too large, or holds Python objects; or where
        it has none of the keys.
    """
    text = os.fspath(path)
    with _opened(text, ZIP_MAGIC, "an .npz archive", limits) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return _members(archive, text, wanted, limits)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
            refuse(text, f"is a damaged archive: {error}", "write it again with numpy.savez")
        except OSError as error:
            refuse_os_error(text, error)


def read_npy(path: Path, limits: Limits = DEFAULT_LIMITS) -> NDArray[Any]:
    """Return the array of an .npy file.

    Raises
    ------
    InputError
        As :func:`read_npz`.
    """
    text = os.fspath(path)
    with _opened(text, NPY_MAGIC, "an .npy array", limits) as file:
        try:
            data = file.read()
        except OSError as error:
            refuse_os_error(text, error)
    return _array(data, text, "")


@contextmanager
def _opened(path: str, magic: bytes, due: str, limits: Limits) -> Iterator[BinaryIO]:
    with Stream(path, limits) as stream:
        file = stream.seekable()
        try:
            head = file.read(1 << 12)
        except OSError as error:
            refuse_os_error(path, error)
        if not head.startswith(magic):
            name, _ = looks_like(head)
            found = f"looks like {name}" if name else "is something else"
            save = "numpy.savez" if magic == ZIP_MAGIC else "numpy.save"
            refuse(path, f"{found}, where {due} is due", f"write it with {save}")
        file.seek(0)
        yield file


def _members(
    archive: zipfile.ZipFile, path: str, wanted: Collection[str], limits: Limits
) -> Arrays:
    found: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        key = info.filename.removesuffix(".npy")
        if key in found:
            refuse(path, f"has the array {key!r} twice", "keep one of them")
        if info.filename.endswith(".npy"):
            found[key] = info
    keys = [key for key in wanted if key in found]
    if not keys:
        have = ", ".join(sorted(found)[:20]) or "nothing"
        refuse(path, f"has none of the arrays {', '.join(wanted)}", f"it has {have}")
    compressed = sum(found[key].compress_size for key in keys)
    size = sum(found[key].file_size for key in keys)
    allowed = min(limits.file_bytes, max(EXPANSION_FLOOR, limits.expansion * compressed))
    if size > allowed:
        refuse(
            path,
            f"expands to {size} bytes, of {compressed}",
            f"at most {allowed} are read; raise the limit if the file is to be trusted",
        )
    return {key: _array(_expanded(archive, found[key], path), path, key) for key in keys}


def _expanded(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: str) -> bytes:
    if info.flag_bits & _ENCRYPTED:
        refuse(path, "is encrypted", "write it without a password", info.filename)
    with archive.open(info) as member:
        data = member.read(info.file_size + 1)
    if len(data) != info.file_size:
        refuse(path, "is damaged: a member is not as long as it says", "", info.filename)
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
        what = " ".join(str(error).split())[:80]
        refuse(path, f"has a damaged header: {what}", "write it again with numpy.save", location)
    if kind.hasobject:
        refuse(
            path,
            "holds Python objects, which are never unpickled",
            "save numbers or text: give the array a dtype",
            location,
        )
    if kind.names is not None or kind.kind not in "biufUS":
        refuse(path, f"has the type {kind}", "save numbers or text", location)
    start = stream.tell()
    if prod(shape) * kind.itemsize != len(data) - start or min(shape, default=0) < 0:
        refuse(
            path,
            f"has {len(data) - start} bytes, where {shape} of {kind} are due",
            "write it again with numpy.save",
            location,
        )
    if prod(shape) == 0:
        return np.zeros(shape, kind)
    array = np.frombuffer(data, kind, offset=start)
    array = array.reshape(shape, order="F" if fortran else "C")
    return array.astype(kind.newbyteorder("="), copy=False)


def names_of(arrays: Arrays, path: str, key: str, count: int) -> tuple[str, ...]:
    """Return a column of so many names as text; where there is none, numbers from 0.

    Raises
    ------
    InputError
        Where it is no column of text or whole numbers, or a name is repeated.
    """
    if key not in arrays:
        return tuple(map(str, range(count)))
    array, location = arrays[key], f"array {key!r}"
    if array.ndim != 1 or array.dtype.kind not in "iuUS":
        refuse(path, "is no column of names", "give text or whole numbers, (n,)", location)
    if array.dtype.kind == "S":
        names = tuple(name.decode("utf-8", "surrogateescape") for name in array.tolist())
    else:
        names = tuple(map(str, array.tolist()))
    if len(set(names)) != len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        refuse(path, f"has the name {twice!r} twice", "make names distinct", location)
    if len(names) != count:
        refuse(path, f"has {len(names)} names", f"give {count}", location)
    return names


def inexact(array: NDArray[Any]) -> tuple[str, str, str] | None:
    """Return where a matrix has a number that float64 does not, what is said of it, and a remedy.

    Whole numbers beyond 2^53 and those of wider floats may be none: rounded, two would be one.
    """
    if array.dtype.itemsize < 8 or array.dtype == np.float64:
        return None
    bits = 8 * array.dtype.itemsize - (array.dtype.kind == "i")
    with np.errstate(over="ignore"):
        values = array.astype(np.float64)
        fits = np.isfinite(values)
    if array.dtype.kind in "iu":
        fits = values < 2.0**bits  # the largest are rounded beyond their own type
    same = fits & (np.where(fits, values, 0.0).astype(array.dtype) == array)
    if same.all():
        return None
    row, column = np.argwhere(~same)[0].tolist()
    return (
        f"row {row}, column {column}",
        f"is {array[row, column]}, which double precision (float64) does not hold",
        "give numbers that it does: whole ones up to 2^53, or floats of at most 64 bits",
    )
