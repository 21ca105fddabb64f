"""Write reports atomically: the old report or the new one remains.

A regular file is replaced by renaming a complete one of the same mode and folder. Other files and
inputs are never replaced.
"""

import errno
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from detap.errors import OutputError
from detap.escaping import escape
from detap.io.paths import SourceFile

STDOUT = "-"


def check_target(path: str, inputs: Iterable[str] = (), read: Iterable[SourceFile] = ()) -> None:
    """Raise OutputError if a report cannot be written to a path."""
    if path == STDOUT:
        return
    if not path or path.endswith(os.sep):
        raise OutputError(f"{escape(path) or 'output'}: not a file name")
    status = _status(path)
    if status is None:
        _check_folder(path)
        return
    if _standard_stream(status) is not None or stat.S_ISCHR(status.st_mode):
        return
    if not stat.S_ISREG(status.st_mode):
        kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        kind = kinds.get(stat.S_IFMT(status.st_mode), "a block device")
        raise OutputError(f"{escape(path)}: cannot write a report to {kind}")
    for source in (*inputs, *_candidates(path, status, read)):
        with suppress(OSError, ValueError):
            if os.path.samestat(os.stat(source), status):
                raise OutputError(f"{escape(path)}: is an input; use another name for the report")
    _check_folder(os.path.realpath(path))


def make_folder(path: str) -> None:
    """Make a folder if it does not exist."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{escape(path)}: is not a folder: {error.strerror}") from error


def write(
    path: str,
    data: bytes | Iterable[bytes | memoryview],
    inputs: Iterable[str] = (),
    read: Iterable[SourceFile] = (),
) -> None:
    """Write a complete report or nothing."""
    chunks = [data] if isinstance(data, bytes) else data
    if path == STDOUT:
        write_stdout(b"".join(chunks))
        return
    check_target(path, inputs, read)
    try:
        status = _status(path)
        if status is not None and not stat.S_ISREG(status.st_mode):
            opened = os.open(path, os.O_WRONLY | getattr(os, "O_NOCTTY", 0))
            try:
                _write_all(opened, chunks)
            finally:
                os.close(opened)
        elif status is not None and (stream := _standard_stream(status)) is not None:
            _write_all(stream, chunks)
        else:
            _replace(os.path.realpath(path), chunks, status)
    except OSError as error:
        raise OutputError(f"{escape(path)}: cannot be written: {_reason(error)}") from error


@contextmanager
def locked(path: str) -> Iterator[None]:
    """Hold a lock for a file: on its folder, because the file is replaced when written."""
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
    """Write to standard output; a pipe closed by its reader is not an error."""
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
    """Redirect standard output to null, so that flushing at exit cannot fail."""
    with suppress(OSError, ValueError, AttributeError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


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
            message = f"permission denied for folder {escape(folder)}; check its permissions"
            raise OutputError(f"{escape(path)}: {message}") from None
        except OSError:
            pass
        raise OutputError(f"{escape(path)}: no such folder {escape(folder)}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"{escape(path)}: folder {escape(folder)} is not writable")


def _standard_stream(status: os.stat_result) -> int | None:
    """Return 1 or 2 if the path leads to this stream, also if redirected to a file."""
    for stream in (1, 2):
        with suppress(OSError):
            if os.path.samestat(os.fstat(stream), status):
                return stream
    return None


def _candidates(path: str, status: os.stat_result, read: Iterable[SourceFile]) -> Iterator[str]:
    """Yield the folder members that may be the file, judged by a directory listing."""
    name = os.path.basename(os.path.realpath(path))
    for source in read:
        members = set(source.members)
        for inside in {member.rpartition("/")[0] for member in members}:
            with suppress(OSError), os.scandir(os.path.join(source.path, inside)) as entries:
                for entry in entries:
                    member = f"{inside}/{entry.name}" if inside else entry.name
                    matches = entry.name == name or entry.inode() == status.st_ino
                    if (matches or entry.is_symlink()) and member in members:
                        yield entry.path


def _write_all(stream: int, data: Iterable[bytes | memoryview]) -> None:
    for chunk in data:
        remaining = memoryview(chunk)
        while remaining:
            remaining = remaining[os.write(stream, remaining) :]


def _replace(path: str, data: Iterable[bytes | memoryview], old: os.stat_result | None) -> None:
    folder, name = os.path.split(path)
    # Recognizable, and short enough if the old name has the maximum length.
    temporary = os.path.join(folder, f".{name[:40]}.{os.urandom(6).hex()}.tmp")
    # os.open, unlike tempfile, respects the umask.
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
    except BaseException:  # also on interrupts: remove the incomplete file
        with suppress(OSError):
            os.unlink(temporary)
        raise
    with suppress(OSError):  # the rename is durable, if the system can sync a folder
        stream = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(stream)
        finally:
            os.close(stream)


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)
