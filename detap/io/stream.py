"""Opening inputs: only regular files, never more of them than the limits allow.

A path may be a URL: what it names is opened here for every reader alike.

An input comes from strangers. A FIFO would hang, a device may act, a small archive may expand
without end: each is refused with a message before anything is read from it.
"""

import errno
import io
import os
import stat
import sys
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn, cast

from detap.errors import InputError, Problem
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import STDIN, Path, is_url, shown

if TYPE_CHECKING:
    from detap.io.remote import RemoteFile

GZIP_MAGIC = b"\x1f\x8b"
_BLOCK = 1 << 20
EXPANSION_FLOOR = 16 << 20

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)

_REASONS = {
    errno.ENOENT: ("does not exist", "check the path"),
    errno.EACCES: ("may not be read", "check its permissions"),
    errno.EPERM: ("may not be read", "check its permissions"),
    errno.ELOOP: ("is a loop of links", "name the file itself"),
    errno.ENOTDIR: ("does not exist: a part of the path is no folder", "check the path"),
    errno.ENAMETOOLONG: ("is too long for a path", "check the path"),
}


def refuse(path: str, message: str, remedy: str = "", place: str = "") -> NoReturn:
    """Raise the :class:`InputError` that says `message` of `path`."""
    raise InputError(Problem(shown(path), place, message, remedy))


def refuse_os_error(path: str, error: OSError) -> NoReturn:
    """Raise the :class:`InputError` that says what the system said of `path`."""
    if is_url(path):
        message = "is a URL, where a file or folder of this machine is due"
        raise InputError(Problem(shown(path), "", message, "copy it here")) from error
    message, remedy = _REASONS.get(
        error.errno or 0, (f"cannot be read: {error.strerror or error}", "")
    )
    raise InputError(Problem(shown(path), "", message, remedy)) from error


def _check_regular(path: str, mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    kind = next((name for test, name in _KINDS if test(mode)), "no regular file")
    refuse(path, f"is {kind}, where a file is due", "name a regular file")


def open_regular(path: Path) -> int:
    """Open a regular file for reading and return its descriptor, which the caller closes.

    Anything else is refused without being opened, so that a FIFO cannot hang and a device cannot
    act. Between the look and the opening the path may come to mean something else: the opening
    does not block either, and the look is repeated on the descriptor.

    Raises
    ------
    InputError
        Where the path does not exist, may not be read, or is no regular file.
    """
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
        refuse(repr(text), "is no path: it contains a NUL character")
    try:
        _check_regular(text, os.fstat(descriptor).st_mode)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


class Stream:
    """The bytes of one input from its start to its end, expanded where they are gzip.

    Parameters
    ----------
    path : str or path
        ``"-"`` is standard input; a URL is opened by fsspec.
    limits : Limits
        `file_bytes` and `expansion` are obeyed.

    Attributes
    ----------
    descriptor : int
        Of a plain file, from which the bytes may also be read directly; else -1.
    status : os.stat_result or None
        Of the file when it was opened; None for standard input and URLs.
    size : int
        Bytes of the file as it lies on the disk; 0 for standard input, and where a URL's server
        does not say.

    Raises
    ------
    InputError
        By any method: too large, expanding too far, damaged, changed while being read.
    """

    def __init__(self, path: Path, limits: Limits = DEFAULT_LIMITS) -> None:
        self.path = os.fspath(path)
        self.limits = limits
        self.size = 0
        self.given = 0
        self._file: Any = None
        self._head = b""
        self._gzip: Any = None
        self._remote: RemoteFile | None = None
        self.status: os.stat_result | None = None
        if self.path == STDIN:
            self.descriptor = -1
            self._start_stdin()
        elif is_url(self.path):
            self.descriptor = -1
            self._start_remote()
        else:
            self.descriptor = open_regular(self.path)
            self.status = os.fstat(self.descriptor)
            self.size = self.status.st_size
            self._start_file()

    def _start_stdin(self) -> None:
        # Through sys.stdin, not descriptor 0, so that a caller may put another stream there.
        source = getattr(sys.stdin, "buffer", None)
        if source is None:
            refuse(self.path, "is closed", "name a file, or pipe one in")
        self._file = source
        self._head = source.read(len(GZIP_MAGIC))
        if self._head == GZIP_MAGIC:
            compressed = self._head + source.read(self.limits.file_bytes)
            self.size = len(compressed)
            self._gzip = gzip_file(io.BytesIO(compressed))

    def _start_remote(self) -> None:
        from detap.io.remote import RemoteFile  # seldom needed

        self._remote = RemoteFile(self.path, hashed=self.limits.digests)
        self._file = io.BufferedReader(self._remote, _BLOCK)
        self.size = self._remote.size or 0
        try:
            if self.size > self.limits.file_bytes:
                self._too_large()
            if self._file.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC):
                self._gzip = gzip_file(self._file)
        except BaseException:
            self.close()
            raise

    def _start_file(self) -> None:
        if self.size > self.limits.file_bytes:
            self.close()
            self._too_large()
        try:
            magic = self._read_plain(len(GZIP_MAGIC))
            os.lseek(self.descriptor, 0, os.SEEK_SET)
        except BaseException:
            self.close()
            raise
        if magic == GZIP_MAGIC:
            self._file = os.fdopen(self.descriptor, "rb", buffering=_BLOCK)
            self._gzip = gzip_file(self._file)
            self.descriptor = -1

    def read(self, count: int = _BLOCK) -> bytes:
        """Return the next bytes, at most `count` or a little more; none at the end."""
        if self._gzip is not None:
            block = self._expand(count)
        elif self._head:
            block, self._head = self._head, b""
        else:
            block = self._read_plain(count)
        self.given += len(block)
        if self.given > self.limits.file_bytes:
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
        import zlib  # most inputs do not need it

        try:
            block: bytes = self._gzip.read(count)
        except (EOFError, zlib.error, OSError) as error:
            refuse(self.path, f"is damaged gzip: {error}", "compress it again or fetch it again")
        allowed = max(EXPANSION_FLOOR, self.limits.expansion * self.size)
        if self.given + len(block) > allowed:
            refuse(
                self.path,
                f"expands to more than {allowed} bytes, {self.limits.expansion} times its size",
                "raise the limit on expansion (--max-expansion) if the file is to be trusted",
            )
        return block

    def _too_large(self) -> NoReturn:
        refuse(
            self.path,
            f"is larger than {self.limits.file_bytes} bytes",
            "raise the limit on file size (--max-file-size) if that is meant",
        )

    def read_all(self) -> bytes:
        """Return every byte from here to the end, and check that the file did not change."""
        whole = io.BytesIO()  # which hands over what it holds: joined parts would be held twice
        while block := self.read():
            whole.write(block)
        self.check_unchanged()
        return whole.getvalue()

    def seekable(self) -> BinaryIO:
        """Return the bytes as a file that can be read in any order, closed with this stream.

        What cannot be (standard input, gzip) is read whole.
        """
        if self.descriptor >= 0:
            return os.fdopen(self.descriptor, "rb", buffering=0, closefd=False)
        if self._remote is not None and self._gzip is None and self._remote.seekable():
            return cast(BinaryIO, self._file)
        return io.BytesIO(self.read_all())

    def check_unchanged(self) -> None:
        """Refuse a file that was written to since it was opened."""
        if self._remote is not None:
            self._remote.check_unchanged()
        if self.status is not None:
            now = os.fstat(self._file.fileno() if self._file is not None else self.descriptor)
            check_same(self.path, self.status, now)

    def sha256(self) -> str:
        """Return the sha256 of what a URL names, taken while it was read; else nothing."""
        return "" if self._remote is None else self._remote.sha256()

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self._file is not None and self.path != STDIN:
            self._file.close()
        elif self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_same(path: str, before: os.stat_result, now: os.stat_result) -> None:
    """Refuse a file that was written to, or replaced, between two looks at it."""
    looks = [(s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns) for s in (before, now)]
    if looks[0] != looks[1]:
        refuse(path, "changed while it was being read", "try again when it is complete")


def gzip_file(compressed: BinaryIO) -> BinaryIO:
    """Return the expanded content of `compressed` as a stream."""
    import gzip  # most inputs do not need it

    return cast(BinaryIO, gzip.GzipFile(fileobj=compressed, mode="rb"))


def read_bytes(path: Path, limits: Limits = DEFAULT_LIMITS) -> bytes:
    """Return the content of a regular file (or of standard input, ``"-"``), gzip expanded.

    Raises
    ------
    InputError
        As :class:`Stream`.
    """
    with Stream(path, limits) as stream:
        return stream.read_all()
