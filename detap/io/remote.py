"""Files that a URL names, opened by fsspec: ``s3://``, ``gs://``, ``https://``, ``memory://``.

What the many libraries behind it raise becomes an error of ours that names the URL, without what a
signed one must not show.
"""

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from detap.errors import InputError, Problem, UsageError
from detap.io.paths import shown

_LOOKS = ("size", "ETag", "etag", "LastModified", "mtime", "updated", "created", "generation")
"""What tells one content of a URL from another, as far as its library says it."""


def matching_urls(pattern: str) -> list[str]:
    """Return the URLs of the files that match a URL with ``*``.

    Raises
    ------
    UsageError, InputError
        As of :class:`RemoteFile`.
    """
    core = _fsspec_core(pattern)
    with _said_of(pattern):
        system, path = core.url_to_fs(pattern)
        return [system.unstrip_protocol(found) for found in system.glob(path)]


def _fsspec_core(url: str) -> Any:
    try:
        import fsspec.core
    except ImportError:
        remedy = "pip install 'detap[remote]'"
        raise UsageError(f"{shown(url)}: URLs are read with fsspec: {remedy}") from None
    return fsspec.core


class RemoteFile(io.RawIOBase):
    """A file that a URL names, from its start on.

    Parameters
    ----------
    url : str
        Not more than one scheme: ``a::b://`` is a path like any other.
    hashed : bool
        Whether the sha256 is taken of what is read.

    Attributes
    ----------
    size : int or None
        Bytes; None where the server does not say.

    Raises
    ------
    UsageError
        Where fsspec, or what it needs for the scheme, is not installed.
    InputError
        Where the file cannot be had; by any method.
    """

    def __init__(self, url: str, *, hashed: bool = False) -> None:
        super().__init__()
        self.url = url
        self._digest, self._taken = (hashlib.sha256() if hashed else None), 0
        core = _fsspec_core(url)
        with _said_of(url):
            self._system, self._path = core.url_to_fs(url)
            found = self._info()
            self._looks = _looks(found)
            if self._looks.get("type", "file") != "file":
                message = "is a folder, or no file, where a file is due"
                raise InputError(Problem(shown(url), "", message, "name a file"))
            # HTTP asks for the size again unless it is given.
            known = "http" in self._system.protocol and found.get("partial", True)
            more = {"size": found["size"]} if known and found.get("size") else {}
            self._file: Any = self._system.open(self._path, "rb", **more)
        size = self._looks.get("size")
        self.size = size if isinstance(size, int) else None

    def _info(self) -> dict[str, Any]:
        self._system.invalidate_cache()
        found: dict[str, Any] = self._system.info(self._path)
        return found

    def check_unchanged(self) -> None:
        """Refuse a file that was written to since it was opened, where its server tells."""
        with _said_of(self.url):
            looks = _looks(self._info())
        if looks != self._looks:
            message = "changed while it was being read"
            raise InputError(Problem(shown(self.url), "", message, "try again when it is complete"))

    def sha256(self) -> str:
        """Return the sha256 of the file if all of it was read once, in order; else nothing."""
        whole = self._digest is not None and self._taken == self.size
        return self._digest.hexdigest() if whole and self._digest is not None else ""

    def stamp(self) -> str:
        """Return what changes when the file does, as far as its server tells."""
        return repr(sorted(self._looks.items()))

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def seekable(self) -> bool:
        """Say whether parts of it can be read in any order."""
        with _said_of(self.url):
            return bool(self._file.seekable())

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to another place."""
        self._digest = None
        with _said_of(self.url):
            return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        """Return the place of the next byte."""
        return int(self._file.tell())

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` with the next bytes, or a part of it; return how many."""
        with _said_of(self.url):
            data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        if self._digest is not None:
            self._digest.update(data)
            self._taken += len(data)
        return len(data)

    def close(self) -> None:
        """Close it."""
        if not self.closed:
            file = getattr(self, "_file", None)
            if file is not None:
                file.close()
        super().close()


def _looks(found: dict[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in (*_LOOKS, "type") if found.get(name) is not None}


@contextmanager
def _said_of(url: str) -> Iterator[None]:
    """Make what is raised inside an error that names the URL."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:
        # botocore, aiohttp, gcsfs and others raise what they like; none of it is our defect.
        _refuse(url, error)


def _is_absence(cause: BaseException) -> bool:
    """Return False for HTTP errors other than 404 and 410, which fsspec does not tell apart."""
    of_http = type(cause).__module__.startswith("aiohttp")
    return not of_http or getattr(cause, "status", None) in (404, 410)


def _refuse(url: str, error: BaseException) -> NoReturn:
    cause = error.__cause__
    if isinstance(error, FileNotFoundError) and cause is not None and not _is_absence(cause):
        error = cause
    text = " ".join(str(error).replace(url, shown(url)).split())
    _, _, query = url.partition("?")
    if query:
        text = text.replace(query, "...")
    told = ": ".join(filter(None, (type(error).__name__, text[:200])))
    if isinstance(error, ImportError) or (isinstance(error, ValueError) and "rotocol" in text):
        raise UsageError(f"{shown(url)}: cannot be opened: {text[:200]}") from None
    message, remedy = f"cannot be read: {told}", "check the network, and the credentials"
    if isinstance(error, FileNotFoundError):
        message, remedy = "does not exist", "check the URL"
    elif isinstance(error, PermissionError):
        message, remedy = f"may not be read: {told}", "check the credentials"
    raise InputError(Problem(shown(url), "", message, remedy)) from None
