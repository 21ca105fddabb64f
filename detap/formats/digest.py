"""The sha256 of inputs, so that a report says what its numbers were computed from."""

import hashlib
import os
from collections.abc import Iterable

from detap.formats.files import open_regular, refuse_os_error


def sha256(path: str | os.PathLike[str], members: Iterable[str] = ()) -> str:
    """Return the sha256 of a file, or of the named files of a folder, in hexadecimal.

    Parameters
    ----------
    path : str or path
        The file as it lies on the disk (gzip is not expanded), or the folder.
    members : iterable of str
        For a folder: the files that were read, as paths relative to it. The digest is taken over
        the lines ``<digest>  <name>`` of each, sorted by name, as ``sha256sum`` prints them; so
        it depends neither on where the folder lies nor on the order of its entries.

    Raises
    ------
    InputError
        Where a file cannot be read.
    """
    names = sorted(members)
    if not names:
        return _file_digest(os.fspath(path))
    whole = hashlib.sha256()
    for name in names:
        digest = _file_digest(os.path.join(path, name))
        whole.update(f"{digest}  {name}\n".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()


def sha256_of_names(names: Iterable[object]) -> str:
    """Return the sha256 of a list of images, one a line, in hexadecimal."""
    listed = "\n".join(map(str, names))
    return hashlib.sha256(listed.encode("utf-8", "backslashreplace")).hexdigest()


def _file_digest(path: str) -> str:
    descriptor = open_regular(path)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        try:
            return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            refuse_os_error(path, error)
