"""The rows of many VOC files as columns: scanned where regular, else read with care."""

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
"""A larger text file is not read whole into memory by the scanner."""


@dataclass(slots=True)
class Rows:
    """The rows of all files, in their order.

    `file` (N,) is which file each row is of, `name` (N,) which of `names` its first column (or its
    object's name) is, `values` (N, k) its numbers, `flag` (N,) its flag.
    """

    file: Integers
    name: Integers
    names: tuple[str, ...]
    values: Floats
    flag: Flags

    def __len__(self) -> int:
        return len(self.file)


def no_rows(width: int) -> Rows:
    """Return no rows of that many numbers."""
    return Rows(
        np.zeros(0, np.int32),
        np.zeros(0, np.int32),
        (),
        np.zeros((0, width)),
        np.zeros(0, np.bool_),
    )


def merge(scanned: Rows, careful: Mapping[int, Lines]) -> Rows:
    """Return the scanned rows and those read with care, by number of file, in one order."""
    if not any(lines.names for lines in careful.values()):
        return scanned
    numbers = {name: number for number, name in enumerate(scanned.names)}
    file, name, values, flag = [], [], [], []
    for number in sorted(careful):
        lines = careful[number]
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


def with_care(
    folder: Folder,
    members: Sequence[str],
    numbers: Iterable[int],
    read: Callable[[bytes, str, int], Lines],
    *,
    scanned: Rows,
    problems: Problems,
    limits: Limits,
) -> Rows:
    """Return the rows that were scanned, and those of the other files of a folder.

    Parameters
    ----------
    folder : Folder
        Where they are.
    members : sequence of str
        All files, in the order of their numbers.
    numbers : iterable of int
        Of the other files.
    read : callable
        Takes what a file holds, its path and its number, and returns its rows.
    scanned : Rows
        Not more than the limit.
    problems : Problems
        Gets what is wrong with them.
    limits : Limits
        What is accepted at most.

    Raises
    ------
    InputError
        Once there are more than the limit.
    """
    careful: dict[int, Lines] = {}
    records = len(scanned)
    for number in numbers:
        file = folder.file(members[number])
        data = content(file, problems, limits)
        if data is not None:
            careful[number] = read(data, file, number)
            records += len(careful[number].names)
        if records > limits.records:
            files.refuse(folder.given, *limits.exceeded)
    return merge(scanned, careful)


def scan_text(
    folder: Folder, form: LineForm, members: Sequence[str], limits: Limits
) -> tuple[Rows, list[int]]:
    """Return what the scanner made of the files, and those that it declined."""
    with scannable(folder, members) as (descriptor, paths):
        declined, file, name, flag, values, words = _voc_text.scan_files(
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
        # Words of a file that was declined half-way may have no row, and may be no names at all.
        names, name = met(name, words, form.resolve, form.known)
    except FaultError:
        return no_rows(len(form.columns) - 1), list(range(len(members)))
    return Rows(file, name, names, values, flag), declined


def met(
    name: Integers,
    words: Sequence[bytes],
    resolve: Callable[[str], str],
    known: Sequence[str] | None = None,
) -> tuple[tuple[str, ...], Integers]:
    """Return the names that rows have, resolved, and `name` (N,) counting in them."""
    used = np.flatnonzero(np.bincount(name, minlength=len(words)))
    if known is not None:
        called = [known[at] for at in used.tolist()]
    else:
        called = [resolve(words[at].decode()) for at in used.tolist()]
    numbers: dict[str, int] = {}
    place = np.zeros(len(words), np.int32)
    place[used] = [numbers.setdefault(word, len(numbers)) for word in called]
    return tuple(numbers), place[name]


def encoded(word: str, number: int) -> bytes:
    """Return a word as files spell it; what no file in UTF-8 can spell, as what none has."""
    try:
        return word.encode()
    except UnicodeEncodeError:
        return b"\0%d" % number


@contextmanager
def scannable(folder: Folder, members: Sequence[str]) -> Iterator[tuple[int, list[bytes | None]]]:
    """Give the descriptor of a folder and the names of its members, as the scanners want them.

    Members that are no regular files are None, so that they are never opened.
    """
    flags = getattr(os, "O_DIRECTORY", None)
    descriptor = -1
    if flags is not None and "" not in members:
        try:
            descriptor = os.open(folder.path, os.O_RDONLY | flags | os.O_CLOEXEC)
        except OSError as error:
            files.refuse_os_error(folder.path, error)
    names = [member if descriptor >= 0 else folder.file(member) for member in members]
    odd = folder.odd
    try:
        yield (
            descriptor,
            [
                None if member in odd else os.fsencode(name)
                for name, member in zip(names, members, strict=True)
            ],
        )
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def content(file: str, problems: Problems, limits: Limits) -> bytes | None:
    """Return what a file of a folder holds; None for one with a problem, which is added."""
    try:
        return files.read_bytes(file, limits)
    except InputError as error:
        problems.note(*error.problems)
        return None
