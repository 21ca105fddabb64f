"""First bytes of files, for format detection; raises no errors."""

import os
import re
import stat
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from itertools import islice

HEAD_BYTES = 4096
_FILES = 16
_JSON_TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*(:?)|[\[\]{}]')


def first_line(folder: str, strip: Callable[[bytes], bytes] = bytes) -> str:
    """Return the first line of the first text file in a folder that `strip` does not empty."""
    with suppress(OSError, ValueError), os.scandir(folder) as entries:
        texts = (e.path for e in entries if e.name.lower().endswith(".txt") and e.is_file())
        for path in islice(texts, _FILES):
            text = strip(head(path)).decode("utf-8", "replace").strip()
            if text:
                return text.split("\n")[0]
    return ""


def first_files_fit(folder: str, fits: Callable[[str], bool]) -> bool:
    """Return True if the first JSON files of a folder are of a format, and one is not empty."""
    with suppress(OSError), os.scandir(folder) as entries:
        names = (e.path for e in entries if e.name.lower().endswith(".json"))
        paths = [*islice(names, _FILES)]
        fitting = {path for path in paths if fits(path)}
        return bool(fitting) and all(p in fitting or head(p).strip() == b"[]" for p in paths)
    return False


def head(path: str, size: int = HEAD_BYTES) -> bytes:
    """Return the first bytes of a regular file, decompressed if gzip; else no bytes."""
    with suppress(OSError, ValueError, zlib.error):
        if stat.S_ISREG(os.stat(path).st_mode):
            with open(path, "rb") as file:
                data = file.read(size)
            is_gzip = data.startswith(b"\x1f\x8b")
            return zlib.decompressobj(31).decompress(data, size) if is_gzip else data
    return b""


def json_paths(path: str) -> frozenset[str]:
    """Return the paths of keys in the first bytes of a JSON file, such as ``.images[].width``."""
    return _json_paths(head(path))


@lru_cache(maxsize=1)  # several formats look at one file
def _json_paths(data: bytes) -> frozenset[str]:
    paths: set[str] = set()
    stack: list[str] = []
    for token in _JSON_TOKEN.finditer(data):
        if token[2] and stack and stack[-1] != "[]":
            stack[-1] = "." + token[1].decode("utf-8", "replace")
            paths.add("".join(stack))
        elif token[0] in (b"[", b"{"):
            stack.append("[]" if token[0] == b"[" else "")
            paths.add("".join(stack))
        elif token[0] in (b"]", b"}") and stack:
            stack.pop()
    return frozenset(paths)
