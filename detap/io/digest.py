"""SHA-256 digests of inputs, recorded in reports."""

import io
import os
from collections.abc import Iterable, Mapping
from typing import Any

from detap.io.limits import Limits
from detap.io.paths import STDIN, Path, SourceFile, is_url, shown
from detap.io.remote import RemoteFile, new_hash
from detap.io.stream import Stream, check_same, open_regular, refuse_os_error

_BLOCK = 1 << 20


def sha256(
    path: Path,
    members: Iterable[str] = (),
    digests: Mapping[str, str] | None = None,
) -> str:
    """Return the sha256 of a file, or of the named files of a folder, in hexadecimal."""
    names = sorted(members)
    digests = digests or {}
    if not names:
        return digests.get("") or _file_digest(os.fspath(path))
    listed = (
        f"{digests.get(name) or _file_digest(os.path.join(path, name))}  {name}\n" for name in names
    )
    return _of_text("".join(listed), "surrogateescape")


def sha256_of_source(source: SourceFile) -> str | None:
    """Return the sha256 of an input, computed now if needed; None for standard input."""
    if source.sha256 or source.path in {STDIN, shown(STDIN)}:
        return source.sha256 or None
    return sha256(source.path, source.members)


def sha256_of_stream(stream: Stream) -> str:
    """Return the sha256 of a stream's file."""
    return _file_digest(stream.path, stream.status)


def read_hashed(path: str, limits: Limits) -> tuple[bytes, str]:
    """Return a file's expanded content, and its sha256 if `limits` asks for digests."""
    with Stream(path, limits) as stream:
        digest = started(stream)
        data = stream.read_all()
    if digest is None:
        return data, ""
    digest.update(data)
    return data, digest.hexdigest()


def started(stream: Stream) -> Any:
    """Return a hash for the bytes of a stream; None without digests, for gzip and stdin."""
    return new_hash() if stream.limits.digests and stream.descriptor >= 0 else None


def sha256_of_names(names: Iterable[object]) -> str:
    """Return the sha256 of a list of images, one per line, in hexadecimal."""
    listed = "\n".join(map(str, names))
    return _of_text(listed, "backslashreplace")


def _of_text(text: str, errors: str) -> str:
    return str(new_hash(text.encode("utf-8", errors)).hexdigest())


def _of_file(file: io.RawIOBase) -> str:
    digest = new_hash()
    while block := file.read(_BLOCK):
        digest.update(block)
    return str(digest.hexdigest())


def _file_digest(path: str, before: os.stat_result | None = None) -> str:
    if is_url(path):
        with RemoteFile(path) as remote:
            return _of_file(remote)
    with io.FileIO(open_regular(path)) as file:
        if before is not None:
            check_same(path, before, os.fstat(file.fileno()))
        try:
            return _of_file(file)
        except OSError as error:
            refuse_os_error(path, error)
