"""Open inputs safely: regular files and URLs, within the limits.

Inputs are untrusted. A FIFO would block, opening a device may have side effects, and a small
archive may expand without end: each is an error before anything is read.
"""

import errno
import gzip
import io
import os
import stat
import sys
import zlib
from typing import Any, BinaryIO, NoReturn, cast

from detap.errors import InputError, Problem
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import STDIN, Path, is_url, shown
from detap.io.remote import RemoteFile

GZIP_MAGIC = b"\x1f\x8b"
_BLOCK = 1 << 20
MIN_EXPANSION_LIMIT = 16 << 20

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)

_REASONS = {
    errno.ENOENT: ("no such file or directory", ""),
    errno.EACCES: ("permission denied", "check its permissions"),
    errno.EPERM: ("permission denied", "check its permissions"),
    errno.ELOOP: ("too many symbolic links", "use the path of the file itself"),
    errno.ENOTDIR: ("no such file or directory: a part of the path is a file", ""),
    errno.ENAMETOOLONG: ("path is too long", ""),
}


def refuse(path: str, message: str, hint: str = "", location: str = "") -> NoReturn:
    """Raise InputError for a path."""
    raise InputError(Problem(shown(path), location, message, hint))


def refuse_os_error(path: str, error: OSError) -> NoReturn:
    """Raise InputError for an operating system error."""
    if is_url(path):
        message = "is a URL, expected a local file or folder"
        raise InputError(Problem(shown(path), "", message, "download it first")) from error
    message, hint = _REASONS.get(
        error.errno or 0, (f"cannot be read: {error.strerror or error}", "")
    )
    raise InputError(Problem(shown(path), "", message, hint)) from error


def _check_regular(path: str, mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    kind = next((name for test, name in _KINDS if test(mode)), "not a regular file")
    refuse(path, f"is {kind}, expected a file", "use the path of a regular file")


def open_regular(path: Path) -> int:
    """Open a regular file for reading, checked before and after; the caller closes it."""
    text = os.fspath(path)
    flags = os.O_RDONLY
    for name in ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"):
        flags |= getattr(os, name, 0)
    try:
        _check_regular(text, os.stat(text).st_mode)
        descriptor = os.open(text, flags)
    except OSError as error:
        refuse_os_error(text, error)
    except ValueError:
        refuse(repr(text), "invalid path: contains a NUL character")
    try:
        _check_regular(text, os.fstat(descriptor).st_mode)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


class Stream:
    """The bytes of one input, decompressed if gzip."""

    def __init__(self, path: Path, limits: Limits = DEFAULT_LIMITS) -> None:
        self.path = os.fspath(path)
        self.limits = limits
        self.size = 0  # of the file as stored; 0 for standard input and URLs of unknown size
        self._delivered = 0
        self._file: Any = None
        self._head = b""
        self._gzip: Any = None
        self._remote: RemoteFile | None = None
        self.status: os.stat_result | None = None
        self.descriptor = -1
        try:
            if self.path == STDIN:
                self._start_stdin()
            elif is_url(self.path):
                self._start_remote()
            else:
                self._start_file()
        except BaseException:
            self.close()
            raise

    def _start_stdin(self) -> None:
        # sys.stdin, not descriptor 0, so that a caller may replace it.
        source = getattr(sys.stdin, "buffer", None)
        if source is None:
            refuse(self.path, "is closed", "use a file, or pipe one in")
        self._file = source
        self._head = source.read(len(GZIP_MAGIC))
        if self._head == GZIP_MAGIC:
            compressed = self._head + source.read(self.limits.file_bytes)
            self.size = len(compressed)
            self._gzip = gzip.GzipFile(fileobj=io.BytesIO(compressed), mode="rb")

    def _start_remote(self) -> None:
        self._remote = RemoteFile(self.path, hashed=self.limits.digests)
        self._file = io.BufferedReader(self._remote, _BLOCK)
        self.size = self._remote.size or 0
        if self.size > self.limits.file_bytes:
            self._too_large()
        if self._file.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC):
            self._gzip = gzip.GzipFile(fileobj=self._file, mode="rb")

    def _start_file(self) -> None:
        self.descriptor = open_regular(self.path)
        self.status = os.fstat(self.descriptor)
        self.size = self.status.st_size
        if self.size > self.limits.file_bytes:
            self._too_large()
        magic = self._read_plain(len(GZIP_MAGIC))
        os.lseek(self.descriptor, 0, os.SEEK_SET)
        if magic == GZIP_MAGIC:
            self._file = os.fdopen(self.descriptor, "rb", buffering=_BLOCK)
            self._gzip = gzip.GzipFile(fileobj=self._file, mode="rb")
            self.descriptor = -1

    def read(self, count: int = _BLOCK) -> bytes:
        """Return the next bytes, about `count` at most; empty at the end."""
        if self._gzip is not None:
            block = self._expand(count)
        elif self._head:
            block, self._head = self._head, b""
        else:
            block = self._read_plain(count)
        self._delivered += len(block)
        if self._delivered > self.limits.file_bytes:
            self._too_large()
        return block

    def _read_plain(self, count: int) -> bytes:
        try:
            if self.descriptor >= 0:
                return os.read(self.descriptor, count)
            block: bytes = self._file.read(count)
            return block
        except OSError as error:
            refuse_os_error(self.path, error)

    def _expand(self, count: int) -> bytes:
        try:
            block: bytes = self._gzip.read(count)
        except (EOFError, zlib.error, OSError) as error:
            refuse(self.path, f"damaged gzip: {error}", "compress or download it again")
        times = self.limits.expansion
        allowed = max(MIN_EXPANSION_LIMIT, times * self.size)
        if self._delivered + len(block) > allowed:
            message = f"expands to more than {allowed} bytes, {times} times its size"
            hint = "if you trust the file, raise the limit with --max-expansion"
            refuse(self.path, message, hint)
        return block

    def _too_large(self) -> NoReturn:
        message = f"is larger than {self.limits.file_bytes} bytes"
        refuse(self.path, message, "raise the limit with --max-file-size")

    def read_all(self) -> bytes:
        """Return the remaining bytes; raise InputError if the file changed."""
        content = io.BytesIO()  # joining a list of blocks would need twice the memory
        while block := self.read():
            content.write(block)
        self.check_unchanged()
        return content.getvalue()

    def seekable(self) -> BinaryIO:
        """Return the bytes as a seekable file, closed with this stream, in memory if need be."""
        if self.descriptor >= 0:
            return os.fdopen(self.descriptor, "rb", buffering=0, closefd=False)
        if self._remote is not None and self._gzip is None and self._remote.seekable():
            return cast(BinaryIO, self._file)
        return io.BytesIO(self.read_all())

    def check_unchanged(self) -> None:
        """Raise InputError if the file changed since it was opened."""
        if self._remote is not None:
            self._remote.check_unchanged()
        if self.status is not None:
            descriptor = self._file.fileno() if self._file is not None else self.descriptor
            check_same(self.path, self.status, os.fstat(descriptor))

    def sha256(self) -> str:
        """Return the sha256 of a URL's file, computed while reading; else empty."""
        return "" if self._remote is None else self._remote.sha256()

    def close(self) -> None:
        """Close the file, but not standard input."""
        if self._file is not None and self.path != STDIN:
            self._file.close()
        elif self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_same(path: str, first: os.stat_result, last: os.stat_result) -> None:
    """Raise InputError if a file was changed or replaced between two calls of stat."""
    versions = [(s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns) for s in (first, last)]
    if versions[0] != versions[1]:
        refuse(path, "changed while it was being read", "retry when it is complete")


def read_bytes(path: Path, limits: Limits = DEFAULT_LIMITS) -> bytes:
    """Return the content of a regular file or standard input, decompressed."""
    with Stream(path, limits) as stream:
        return stream.read_all()
