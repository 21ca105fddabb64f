"""What is written: a new folder with all its files, or one new file; or nothing at all."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress

from detap.errors import OutputError
from detap.escaping import escape


def check_new(path: str) -> None:
    """Refuse a target that exists, or that no folder can hold.

    Raises
    ------
    OutputError
    """
    if not path or "\0" in path:
        raise OutputError(f"{escape(path) or 'output'}: is no name for a folder")
    if os.path.lexists(path):
        raise OutputError(f"{escape(path)}: exists already; give a new name, or remove it")
    parent = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(parent):
        raise OutputError(f"{escape(path)}: {escape(parent)} is no folder; make it first")


def write_new(path: str, files: Iterable[tuple[str, bytes]], *, single: bool) -> list[str]:
    """Write files into a new folder, or one as a new file, and return their names.

    Parameters
    ----------
    path : str
        What must not be there yet.
    files : iterable of (str, bytes)
        Names relative to the folder, and what each holds.
    single : bool
        Whether `path` is the one file.

    Raises
    ------
    OutputError
        Where it cannot be written; then nothing remains of it.
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
    # Never over a file of this run: names that differ in case alone are one on some systems.
    with open(path, "xb") as file:
        file.write(data)


def _move(source: str, path: str) -> None:
    """Put what is finished in its place, which must still be free."""
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, "it exists already", path)
    if os.path.isdir(source):
        os.rename(source, path)
        return
    with suppress(OSError):  # a link does not replace what another has put there meanwhile
        os.link(source, path)
        return
    os.rename(source, path)
