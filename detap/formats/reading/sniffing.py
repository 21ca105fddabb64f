"""A look at the beginning of files, to tell what they are; it never complains."""

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from itertools import islice

_LOOKED_AT = 4096
_FILES = 16


def first_line(folder: str, behind: Callable[[bytes], bytes] = bytes) -> str:
    """Return the first line of the first text files of a folder that have any.

    Parameters
    ----------
    folder : str
    behind : callable, optional
        Returns what stands behind the head of a file, where such files have one.
    """
    with suppress(OSError, ValueError), os.scandir(folder) as entries:
        texts = (e.path for e in entries if e.name.lower().endswith(".txt") and e.is_file())
        for path in islice(texts, _FILES):
            text = behind(head(path)).decode("utf-8", "replace").strip()
            if text:
                return text.split("\n")[0]
    return ""


def head(path: str) -> bytes:
    """Return the first bytes of a regular file, gzip expanded; none of anything else."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return b""
        with open(path, "rb") as file:
            data = file.read(_LOOKED_AT)
    except (OSError, ValueError):
        return b""
    if data.startswith(b"\x1f\x8b"):
        import zlib  # seldom needed

        try:
            return zlib.decompressobj(31).decompress(data, _LOOKED_AT)
        except zlib.error:
            return b""
    return data
