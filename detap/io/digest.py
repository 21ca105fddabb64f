"""The sha256 of inputs, so that a report says what its numbers were computed from."""

import io
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from detap.io.limits import Limits
from detap.io.paths import STDIN, Path, is_url, shown
from detap.io.stream import Stream, check_same, open_regular, refuse_os_error

if TYPE_CHECKING:
    import hashlib

    from detap.tables.detection import SourceFile

_BLOCK = 1 << 16
"""Bytes read at once: they stay in a core's own cache until the digest has taken them."""


def sha256(
    path: Path,
    members: Iterable[str] = (),
    known: Mapping[str, str] | None = None,
) -> str:
    """Return the sha256 of a file, or of the named files of a folder, in hexadecimal.

    Parameters
    ----------
    path : str or path
        The file as it lies on the disk (gzip is not expanded), or the folder.
    members : iterable of str
        For a folder: the files that were read, as paths relative to it. The digest is taken over
        the lines ``<digest>  <name>`` of each, sorted by name, as ``sha256sum`` prints them; so
        it depends neither on where the folder lies nor on the order of its entries.
    known : mapping of str to str, optional
        The digests of members, or of the file by the name "", that were taken while they were
        read; the others are read again.

    Raises
    ------
    InputError
        Where a file cannot be read.
    """
    names = sorted(members)
    known = known or {}
    if not names:
        return known.get("") or _file_digest(os.fspath(path))
    listed = (
        f"{known.get(name) or _file_digest(os.path.join(path, name))}  {name}\n" for name in names
    )
    return _of_text("".join(listed), "surrogateescape")


def sha256_of_source(source: "SourceFile") -> str | None:
    """Return the sha256 of an input: taken while it was read, else now; None for lost stdin."""
    if source.sha256 or source.path in {STDIN, shown(STDIN)}:
        return str(source.sha256) or None
    return sha256(source.path, source.members)


def sha256_of_stream(stream: Stream) -> str:
    """Return the sha256 of the file that a stream reads.

    Raises
    ------
    InputError
        Where it cannot be read, or is no longer the file that its path leads to.
    """
    return _file_digest(stream.path, stream.status)


def read_hashed(path: str, limits: Limits) -> tuple[bytes, str]:
    """Return the content of a file, gzip expanded, and its sha256 where `limits` want digests."""
    with Stream(path, limits) as stream:
        digest = started(stream)
        data = stream.read_all()
    if digest is None:
        return data, ""
    digest.update(data)
    return data, digest.hexdigest()


def started(stream: Stream) -> "hashlib._Hash | None":
    """Return a sha256 for the bytes of a stream; None where none is wanted, or of gzip and stdin.

    That of gzip is of the file as it lies on the disk, which is read again for it.
    """
    return new() if stream.limits.digests and stream.descriptor >= 0 else None


def sha256_of_names(names: Iterable[object]) -> str:
    """Return the sha256 of a list of images, one a line, in hexadecimal."""
    listed = "\n".join(map(str, names))
    return _of_text(listed, "backslashreplace")


def new() -> "hashlib._Hash":
    """Return the sha256 of nothing yet."""
    import hashlib  # OpenSSL costs 0.003 s, and is seldom needed for files

    return hashlib.sha256()


def _of_text(text: str, errors: str) -> str:
    digest = new()
    digest.update(text.encode("utf-8", errors))
    return digest.hexdigest()


def _of_file(file: io.RawIOBase) -> str:
    digest = new()
    block = memoryview(bytearray(_BLOCK))
    while count := file.readinto(block):
        digest.update(block[:count])
    return digest.hexdigest()


def _file_digest(path: str, before: os.stat_result | None = None) -> str:
    if is_url(path):
        from detap.io.remote import RemoteFile  # seldom needed

        with RemoteFile(path) as remote:
            return _of_file(remote)
    with io.FileIO(open_regular(path)) as file:
        if before is not None:
            check_same(path, before, os.fstat(file.fileno()))
        try:
            digest = _of_file(file)
        except OSError as error:
            refuse_os_error(path, error)
        if before is not None:
            check_same(path, before, os.fstat(file.fileno()))
        return digest
