"""The rows of many files as columns, from the fast or the fallback reader."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from detap.errors import InputError
from detap.formats.by_name.problems import Problems
from detap.formats.text import _scan as _voc_text
from detap.formats.text.folder import Folder
from detap.formats.text.lines import LineForm, Lines
from detap.io import stream as files
from detap.io.limits import Limits
from detap.io.problems import FaultError
from detap.tables.detection import Flags, Floats, Integers

MAX_SCANNED_BYTES = 1 << 30
"""The scanner does not read larger files into memory."""


@dataclass(slots=True)
class Rows:
    """The rows of all files, in order.

    Attributes
    ----------
    file, name : (N,) int32
        The file, and the index in `names` of the first column or object name.
    names : tuple of str
    values : (N, k) float64
    flag : (N,) bool
    """

    file: Integers
    name: Integers
    names: tuple[str, ...]
    values: Floats
    flag: Flags

    def __len__(self) -> int:
        return len(self.file)


def no_rows(width: int) -> Rows:
    """Return zero rows with `width` numbers each."""
    return Rows(
        np.zeros(0, np.int32),
        np.zeros(0, np.int32),
        (),
        np.zeros((0, width)),
        np.zeros(0, np.bool_),
    )


def merge(scanned: Rows, fallback: Mapping[int, Lines]) -> Rows:
    """Merge the rows of both readers in the order of the files."""
    if not any(lines.names for lines in fallback.values()):
        return scanned
    numbers = {name: number for number, name in enumerate(scanned.names)}
    file, name, values, flag = [], [], [], []
    for number in sorted(fallback):
        lines = fallback[number]
        file += [number] * len(lines.names)
        name += [numbers.setdefault(word, len(numbers)) for word in lines.names]
        values += lines.values
        flag += lines.flags
    files_ = np.concatenate([scanned.file, np.array(file, np.int32)])
    order = np.argsort(files_, kind="stable")
    return Rows(
        files_[order],
        np.concatenate([scanned.name, np.array(name, np.int32)])[order],
        tuple(numbers),
        np.concatenate([scanned.values, np.array(values, np.float64)])[order],
        np.concatenate([scanned.flag, np.array(flag, np.bool_)])[order],
    )


def read_fallback(
    folder: Folder,
    members: Sequence[str],
    numbers: Iterable[int],
    read: Callable[[bytes, str, int], Lines],
    *,
    scanned: Rows,
    problems: Problems,
    limits: Limits,
) -> Rows:
    """Read the remaining files with the fallback reader; return all rows.

    Parameters
    ----------
    folder : Folder
    members : sequence of str
        All files.
    numbers : iterable of int
        Indices of the remaining files.
    read : callable
        Returns the rows for a file's content, path and index.
    scanned : Rows
        The rows of the fast reader.
    problems : Problems
        Collects the problems.
    limits : Limits
        Limits on the input size.

    Raises
    ------
    InputError
        If there are more rows than the limit.
    """
    fallback: dict[int, Lines] = {}
    records = len(scanned)
    for number in numbers:
        file = folder.file(members[number])
        data = content(file, problems, limits)
        if data is not None:
            fallback[number] = read(data, file, number)
            records += len(fallback[number].names)
        if records > limits.records:
            files.refuse(folder.given, *limits.exceeded)
    return merge(scanned, fallback)


def scan_text(
    folder: Folder, form: LineForm, members: Sequence[str], limits: Limits
) -> tuple[Rows, list[int]]:
    """Return the rows of the fast reader, and the files it falls back for."""
    with scannable(folder, members) as (descriptor, paths):
        unread, file, name, flag, values, words = _voc_text.scan_files(
            descriptor,
            paths,
            [encoded(word, number) for number, word in enumerate(form.known or ())],
            grow=form.known is None,
            width=len(form.columns) - 1,
            **form.scanned,
            file_bytes=min(limits.file_bytes, MAX_SCANNED_BYTES),
            records=limits.records,
            digests=folder.digests if limits.digests else None,
        )
    try:
        # Words of a partly scanned file may have no rows and may be invalid names.
        names, name = used_names(name, words, form.resolve, form.known)
    except FaultError:
        return no_rows(len(form.columns) - 1), list(range(len(members)))
    return Rows(file, name, names, values, flag), unread


def used_names(
    name: Integers,
    words: Sequence[bytes],
    resolve: Callable[[str], str],
    known: Sequence[str] | None = None,
) -> tuple[tuple[str, ...], Integers]:
    """Return the resolved names that rows use, and their index (N,)."""
    used = np.flatnonzero(np.bincount(name, minlength=len(words)))
    if known is not None:
        resolved = [known[index] for index in used.tolist()]
    else:
        resolved = [resolve(words[index].decode()) for index in used.tolist()]
    numbers: dict[str, int] = {}
    new_index = np.zeros(len(words), np.int32)
    new_index[used] = [numbers.setdefault(word, len(numbers)) for word in resolved]
    return tuple(numbers), new_index[name]


def encoded(word: str, number: int) -> bytes:
    """Encode a word; one that UTF-8 cannot encode gets bytes that no file contains."""
    try:
        return word.encode()
    except UnicodeEncodeError:
        return b"\0%d" % number


@contextmanager
def scannable(folder: Folder, members: Sequence[str]) -> Iterator[tuple[int, list[bytes | None]]]:
    """Yield the descriptor of a folder and its encoded member names for a scanner.

    Members that are not regular files are None and never opened.
    """
    flags = getattr(os, "O_DIRECTORY", None)
    descriptor = -1
    if flags is not None and "" not in members:
        try:
            descriptor = os.open(folder.path, os.O_RDONLY | flags | os.O_CLOEXEC)
        except OSError as error:
            files.refuse_os_error(folder.path, error)
    names = [member if descriptor >= 0 else folder.file(member) for member in members]
    irregular = folder.irregular
    try:
        yield (
            descriptor,
            [
                None if member in irregular else os.fsencode(name)
                for name, member in zip(names, members, strict=True)
            ],
        )
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def content(file: str, problems: Problems, limits: Limits) -> bytes | None:
    """Return the content of a file; None after collecting a problem."""
    try:
        return files.read_bytes(file, limits)
    except InputError as error:
        problems.extend(*error.problems)
        return None
