"""Detect YOLO data by a few lines of a few files."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

_FILES = 16
_LINES = 64
_HEAD = 4096
_NUMBER = re.compile(rb"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def fits(path: str) -> bool:
    """Return True for a `data.yaml`, ``obj.data``, its folder, or a class and fractions."""
    if path.lower().endswith((".yaml", ".yml", ".data")):
        return True
    with suppress(OSError, ValueError):
        if any(os.path.isfile(os.path.join(path, name)) for name in ("data.yaml", "obj.data")):
            return True
        lines = [line for file in _text_files(path) for line in _lines(file)]
        return bool(lines) and 2 * sum(map(_fits, lines)) > len(lines)
    return False


def _text_files(path: str) -> Iterator[str]:
    """Yield a file, or a few text files of a folder or its sub-folder `labels`."""
    if os.path.isfile(path):
        yield path
        return
    with os.scandir(path) as entries:
        paths = (
            e.path for e in entries if e.name.endswith(".txt") and e.name[0] != "." and e.is_file()
        )
        files = list(islice((name for name in paths if not name.endswith("classes.txt")), _FILES))
    below = os.path.join(path, "labels")
    if files or not os.path.isdir(below):
        yield from files
    else:
        yield from _text_files(below)


def _lines(path: str) -> list[bytes]:
    with open(path, "rb") as file:
        text = file.read(_HEAD)
    complete = text if len(text) < _HEAD else text.rpartition(b"\n")[0]
    return [line for line in complete.split(b"\n")[:_LINES] if line.strip()]


def _fits(line: bytes) -> bool:
    word, *columns = line.split()
    if not word.isdigit() or len(columns) < 4 or not all(map(_NUMBER.fullmatch, columns)):
        return False
    return all(abs(float(column)) <= 2 for column in columns) and any(
        b"." in column for column in columns
    )
