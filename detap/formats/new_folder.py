"""Write a new folder or file atomically."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress

from detap.errors import OutputError
from detap.escaping import escape


def check_new(path: str) -> None:
    """Raise OutputError if the target exists or its folder does not."""
    if not path or "\0" in path:
        raise OutputError(f"{escape(path) or 'output'}: invalid output path")
    if os.path.lexists(path):
        raise OutputError(f"{escape(path)}: already exists; use another name, or remove it")
    parent = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(parent):
        raise OutputError(f"{escape(path)}: {escape(parent)} is not a folder; create it first")


def write_new(path: str, files: Iterable[tuple[str, bytes]], *, single: bool) -> list[str]:
    """Write files into a new folder, or a single new file, atomically; return their names.

    Names are relative to the folder. If it cannot be written, nothing remains.
    """
    check_new(path)
    folder = ""
    try:
        parent = os.path.dirname(os.path.abspath(path))
        folder = tempfile.mkdtemp(prefix=".detap-", dir=parent)
        inside = os.path.join(folder, "new")
        os.mkdir(inside)
        names = []
        for name, data in files:
            _write(os.path.join(inside, *name.split("/")), data)
            names.append(name)
        _move(os.path.join(inside, names[0]) if single else inside, path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(f"{escape(path)}: cannot be written: {reason}") from error
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
    return names


def _write(path: str, data: bytes) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    # On some systems, names that differ only in case are the same file.
    with open(path, "xb") as file:
        file.write(data)


def _move(source: str, path: str) -> None:
    """Move the finished output to its path, which must not exist."""
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, "already exists", path)
    if os.path.isdir(source):
        os.rename(source, path)
        return
    with suppress(OSError):  # a link does not replace a file created meanwhile
        os.link(source, path)
        return
    os.rename(source, path)
