"""Files at URLs, opened by fsspec: ``s3://``, ``gs://``, ``https://``, ``memory://``.

Exceptions of the libraries behind fsspec become errors that name the URL without its secrets.
"""

import io
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from detap.errors import InputError, Problem, UsageError
from detap.io.paths import shown

_VERSION_FIELDS = (
    *("type", "size", "ETag", "etag", "LastModified"),
    *("mtime", "updated", "created", "generation"),
)
"""Fields of fsspec's file info that change with the file."""


def new_hash(data: bytes = b"") -> Any:
    """Return a new sha256 hash of data."""
    with suppress(ModuleNotFoundError):  # Python without OpenSSL
        import _hashlib  # noqa: F401  # if memory lacks, hashlib would only log that

    import hashlib  # OpenSSL takes 4 MB and 0.003 s

    return hashlib.sha256(data)


def matching_urls(pattern: str) -> list[str]:
    """Return the URLs of the files that match a URL with ``*``."""
    core = _fsspec_core(pattern)
    with _errors_of(pattern):
        system, path = core.url_to_fs(pattern)
        return [system.unstrip_protocol(match) for match in system.glob(path)]


def _fsspec_core(url: str) -> Any:
    try:
        import fsspec.core
    except ImportError:
        message = "URLs need fsspec; pip install 'detap[remote]'"
        raise UsageError(f"{shown(url)}: {message}") from None
    return fsspec.core


class RemoteFile(io.RawIOBase):
    """A file at a URL, read from its start."""

    def __init__(self, url: str, *, hashed: bool = False) -> None:
        super().__init__()
        self.url = url
        self._digest, self._taken = (new_hash() if hashed else None), 0
        core = _fsspec_core(url)
        with _errors_of(url):
            self._system, self._path = core.url_to_fs(url)
            info = self._info()
            self._version = _version(info)
            if self._version.get("type", "file") != "file":
                message = "is a folder, expected a file"
                raise InputError(Problem(shown(url), "", message, "use the path of a file"))
            # Without a size, HTTP requests it again.
            known = "http" in self._system.protocol and info.get("partial", True)
            more = {"size": info["size"]} if known and info.get("size") else {}
            self._file: Any = self._system.open(self._path, "rb", **more)
        size = self._version.get("size")
        self.size = size if isinstance(size, int) else None

    def _info(self) -> dict[str, Any]:
        self._system.invalidate_cache()
        info: dict[str, Any] = self._system.info(self._path)
        return info

    def check_unchanged(self) -> None:
        """Raise InputError if the file changed since it was opened, if detectable."""
        with _errors_of(self.url):
            version = _version(self._info())
        if version != self._version:
            message = "changed while it was being read"
            raise InputError(Problem(shown(self.url), "", message, "retry when it is complete"))

    def sha256(self) -> str:
        """Return the sha256 if all was read once, in order; else an empty string."""
        complete = self._digest is not None and self._taken == self.size
        return self._digest.hexdigest() if complete and self._digest is not None else ""

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True if any position can be read."""
        with _errors_of(self.url):
            return bool(self._file.seekable())

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to another position."""
        self._digest = None
        with _errors_of(self.url):
            return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        """Return the position of the next byte."""
        return int(self._file.tell())

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes into `buffer`; return their number."""
        with _errors_of(self.url):
            data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        if self._digest is not None:
            self._digest.update(data)
            self._taken += len(data)
        return len(data)

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            file = getattr(self, "_file", None)
            if file is not None:
                file.close()
        super().close()


def _version(info: dict[str, Any]) -> dict[str, Any]:
    return {name: info[name] for name in _VERSION_FIELDS if info.get(name) is not None}


@contextmanager
def _errors_of(url: str) -> Iterator[None]:
    """Convert exceptions to errors that name the URL."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:
        # botocore, aiohttp, gcsfs and others raise exceptions of many types.
        _refuse(url, error)


def _refuse(url: str, error: BaseException) -> NoReturn:
    cause = error.__cause__
    if isinstance(error, FileNotFoundError) and cause is not None:
        of_http = type(cause).__module__.startswith("aiohttp")
        if of_http and getattr(cause, "status", None) not in (404, 410):
            error = cause  # fsspec raises it for all statuses
    text = " ".join(str(error).replace(url, shown(url)).split())
    _, _, query = url.partition("?")
    if query:
        text = text.replace(query, "...")
    reason = ": ".join(filter(None, (type(error).__name__, text[:200])))
    if isinstance(error, ImportError) or (isinstance(error, ValueError) and "rotocol" in text):
        raise UsageError(f"{shown(url)}: cannot be opened: {text[:200]}") from None
    message, hint = f"cannot be read: {reason}", "check the network and the credentials"
    if isinstance(error, FileNotFoundError):
        message, hint = "no such file or directory", "check the URL"
    elif isinstance(error, PermissionError):
        message, hint = f"permission denied: {reason}", "check the credentials"
    raise InputError(Problem(shown(url), "", message, hint)) from None
