"""Reports onto disk and into pipes: the old report or the new one, never part of one.

A regular file is replaced by renaming a finished one onto it, made in the same folder, with the
old one's mode. Nothing that is not a regular file is ever replaced, and no input.
"""

import errno
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from detap.errors import OutputError
from detap.escaping import escape

if TYPE_CHECKING:
    from detap.tables.detection import SourceFile

STDOUT = "-"


def check_target(path: str, inputs: Iterable[str] = (), read: "Iterable[SourceFile]" = ()) -> None:
    """Make sure that a report can go to `path`, before the work is done that it is to hold.

    Parameters
    ----------
    path : str
        A file, existing or not; a device; or ``"-"``.
    inputs : iterable of str
        Paths that are being read and must not be written.
    read : iterable of SourceFile
        What was read besides: the files of a folder must not be written either.

    Raises
    ------
    OutputError
        Where the report cannot or must not be written there.
    """
    if path == STDOUT:
        return
    if not path or path.endswith(os.sep):
        raise OutputError(f"{escape(path) or 'output'}: is no name for a file")
    found = _status(path)
    if found is None:
        _check_folder(path)
        return
    if _our_own_stream(found) is not None or stat.S_ISCHR(found.st_mode):
        return
    if not stat.S_ISREG(found.st_mode):
        raise OutputError(f"{escape(path)}: cannot write a report onto {_kind(found.st_mode)}")
    for source in (*inputs, *_alike(path, found, read)):
        if _same(found, source):
            raise OutputError(f"{escape(path)}: is an input; give the report another name")
    _check_folder(os.path.realpath(path))


def write(
    path: str,
    data: bytes | Iterable[bytes | memoryview],
    inputs: Iterable[str] = (),
    read: "Iterable[SourceFile]" = (),
) -> None:
    """Write a report: all of it, or nothing.

    Parameters
    ----------
    path : str
        As in :func:`check_target`; a link is followed, and stays a link.
    data : bytes, or an iterable of such
        The whole report, perhaps in pieces, which are taken one by one.
    inputs, read : iterable
        As in :func:`check_target`.

    Raises
    ------
    OutputError
        Where it cannot be written; what was there is then untouched.
    """
    pieces = [data] if isinstance(data, bytes) else data
    if path == STDOUT:
        write_stdout(b"".join(pieces))
        return
    check_target(path, inputs, read)
    try:
        found = _status(path)
        if found is not None and not stat.S_ISREG(found.st_mode):
            opened = os.open(path, os.O_WRONLY | getattr(os, "O_NOCTTY", 0))
            try:
                _write_all(opened, pieces)
            finally:
                os.close(opened)
        elif found is not None and (stream := _our_own_stream(found)) is not None:
            _write_all(stream, pieces)
        else:
            _replace(os.path.realpath(path), pieces, found)
    except OSError as error:
        raise OutputError(f"{escape(path)}: cannot be written: {_reason(error)}") from error


@contextmanager
def locked(path: str) -> Iterator[None]:
    """Hold a file so that other processes that do the same wait.

    The lock is on the folder, as the file itself is replaced when it is written, and ends with
    the process. Where the system locks no folders, nothing waits.

    Parameters
    ----------
    path : str
        The file, existing or not.
    """
    folder = None
    try:
        with suppress(ImportError, OSError):  # Windows; some network file systems
            import fcntl

            folder = os.open(os.path.dirname(os.path.realpath(path)), os.O_RDONLY)
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        if folder is not None:
            os.close(folder)


def write_stdout(data: bytes) -> None:
    """Write to standard output; a reader that has closed it wants no more, which is no error.

    Raises
    ------
    OutputError
        Where it is closed on our side, or full.
    """
    try:
        if sys.stdout is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        silence_stdout()
    except OSError as error:
        silence_stdout()
        raise OutputError(f"standard output: cannot be written: {_reason(error)}") from error


def silence_stdout() -> None:
    """Send what standard output still holds nowhere, so that the exit does not fail on it."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise OutputError(f"{escape(path)}: cannot be written: {_reason(error)}") from error


def _check_folder(path: str) -> None:
    folder = os.path.dirname(os.path.realpath(path)) or os.curdir
    if not os.path.isdir(folder):
        try:
            os.stat(folder)
        except PermissionError:
            told = f"the folder {escape(folder)} may not be entered; check its permissions"
            raise OutputError(f"{escape(path)}: {told}") from None
        except OSError:
            pass
        raise OutputError(f"{escape(path)}: there is no folder {escape(folder)}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"{escape(path)}: the folder {escape(folder)} cannot be written to")


def _our_own_stream(found: os.stat_result) -> int | None:
    """Return the stream of ours that the path means, as /dev/stdout does.

    Such a path may lead to a pipe or to the file that the shell has opened for us: it is written
    through the open stream, as renaming would part the two.
    """
    for stream in (1, 2):
        with suppress(OSError):
            if os.path.samestat(os.fstat(stream), found):
                return stream
    return None


def _alike(path: str, found: os.stat_result, read: "Iterable[SourceFile]") -> Iterator[str]:
    """Yield the members of folders that may be `found`; a listing rules out all the others."""
    name = os.path.basename(os.path.realpath(path))
    for source in read:
        members = set(source.members)
        for inside in {member.rpartition("/")[0] for member in members}:
            with suppress(OSError), os.scandir(os.path.join(source.path, inside)) as entries:
                for entry in entries:
                    member = f"{inside}/{entry.name}" if inside else entry.name
                    alike = entry.name == name or entry.inode() == found.st_ino
                    if (alike or entry.is_symlink()) and member in members:
                        yield entry.path


def _same(found: os.stat_result, source: str) -> bool:
    try:
        return os.path.samestat(os.stat(source), found)
    except (OSError, ValueError):
        return False


def _kind(mode: int) -> str:
    kinds = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
    return next((name for test, name in kinds if test(mode)), "a device that is no stream")


def _write_all(stream: int, data: Iterable[bytes | memoryview]) -> None:
    for piece in data:
        rest = memoryview(piece)
        while rest:
            rest = rest[os.write(stream, rest) :]


def _replace(path: str, data: Iterable[bytes | memoryview], old: os.stat_result | None) -> None:
    folder, name = os.path.split(path)
    # The name stays recognisable, and short enough where the old one was as long as may be.
    temporary = os.path.join(folder, f".{name[:40]}.{os.urandom(6).hex()}.tmp")
    # os.open, unlike tempfile, gives a new file the mode that the umask asks for.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        stream = os.open(temporary, flags, 0o666)
        try:
            if old is not None and hasattr(os, "fchmod"):
                os.fchmod(stream, stat.S_IMODE(old.st_mode))
            _write_all(stream, data)
            os.fsync(stream)
        finally:
            os.close(stream)
        os.replace(temporary, path)
    except BaseException:  # also an interrupt or a termination: nothing half-made stays behind
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    """Make the rename itself last, where the system lets folders be synced."""
    with suppress(OSError):
        stream = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(stream)
        finally:
            os.close(stream)


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)
