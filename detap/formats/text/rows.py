"""Rows of the files of a folder as columns, and the files' content."""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from detap.errors import InputError
from detap.formats.by_name.problems import Problems
from detap.formats.text.folder import Folder
from detap.io import stream as files
from detap.io.digest import read_hashed
from detap.io.limits import Limits
from detap.tables.detection import Flags, Floats, Integers

_OPEN = os.O_RDONLY
for _name in ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY"):
    _OPEN |= getattr(os, _name, 0)


@dataclass(slots=True)
class Rows:
    """The rows of all files, in order.

    Attributes
    ----------
    file, line, name : (N,) int32
        The file, the line in it (from 1) or the object, and the index in `names`.
    names : tuple of str
    flag : (N,) bool
    numbers : (P,) float64
        The numbers of all rows.
    ends : (N,) int64
        The end of the numbers of each row.
    """

    file: Integers
    line: Integers
    name: Integers
    names: tuple[str, ...]
    flag: Flags
    numbers: Floats
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.file)

    def table(self, width: int) -> Floats:
        """Return the numbers as (N, width), if each row has as many."""
        return self.numbers.reshape(-1, width)

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of numbers of each row, (N,)."""
        return np.diff(self.ends, prepend=0)


def used_names(
    name: Integers, words: Sequence[bytes], resolve: Callable[[str], str]
) -> tuple[tuple[str, ...], Integers]:
    """Return the resolved names that rows use, and their index (N,)."""
    used = np.flatnonzero(np.bincount(name, minlength=len(words)))
    resolved = [resolve(words[index].decode()) for index in used.tolist()]
    numbers: dict[str, int] = {}
    new_index = np.zeros(len(words), np.int32)
    new_index[used] = [numbers.setdefault(word, len(numbers)) for word in resolved]
    return tuple(numbers), new_index[name]


def contents(
    folder: Folder, members: Sequence[str], problems: Problems, limits: Limits
) -> Iterator[tuple[int, str, bytes]]:
    """Yield the index, path and content of each member; collect problems of unreadable ones.

    Plain files are read below the open folder, which is four times as fast as `read_hashed` and
    saves a tenth of the evaluation of small files.
    """
    descriptor = -1
    if members and "" not in members and os.open in os.supports_dir_fd:
        try:
            descriptor = os.open(folder.path, _OPEN)
        except OSError as error:
            files.refuse_os_error(folder.path, error)
    try:
        for number, member in enumerate(members):
            path = folder.file(member)
            plain = descriptor >= 0 and member not in folder.irregular
            data = _plain_content(descriptor, member, limits) if plain else None
            try:
                if data is None:
                    data, digest = read_hashed(path, limits)
                else:
                    digest = sha256(data).hexdigest() if limits.digests else ""
            except InputError as error:
                problems.extend(*error.problems)
                continue
            if digest:
                folder.digests[number] = digest
            yield number, path, data
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def first_words(folder: Folder, limits: Limits) -> list[list[str]]:
    """Return the first word of each nonblank line of each file, unchecked."""
    problems = Problems(limits.problems)
    texts = [
        data.decode("utf-8-sig", "replace")
        for _, _, data in contents(folder, [*folder.members.values()], problems, limits)
    ]
    problems.raise_any()
    return [[line.split()[0] for line in text.split("\n") if line.split()] for text in texts]


def _plain_content(folder: int, member: str, limits: Limits) -> bytes | None:
    """Return the content of a file; None if it is not plain, too large, or changes."""
    with suppress(OSError, ValueError):
        file = os.open(member, _OPEN, dir_fd=folder)
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode) or status.st_size > limits.file_bytes:
                return None
            data = os.read(file, status.st_size + 1)
        finally:
            os.close(file)
        if len(data) == status.st_size and not data.startswith(files.GZIP_MAGIC):
            return data
    return None
