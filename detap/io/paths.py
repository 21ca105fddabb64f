"""Paths of inputs: files, standard input and URLs."""

import os
from typing import NamedTuple

Path = str | os.PathLike[str]

STDIN = "-"
"""The path that means standard input."""


class SourceFile(NamedTuple):
    """A file (or folder) that a table was read from."""

    path: str  # as given by the caller
    records: int  # in the file, including skipped ones
    members: tuple[str, ...] = ()  # files read from a folder: sorted paths relative to it
    sha256: str = ""  # empty if not computed while reading
    reading: tuple[tuple[str, str], ...] = ()  # names and values of the reading options, sorted
    fixed_boxes: bool = False  # not read as x, y, width, height, or not readable otherwise


def shown(path: Path) -> str:
    """Return a path for display: URLs without password and query."""
    text = os.fspath(path)
    if text == STDIN:
        return "<stdin>"
    if not is_url(text):
        return text
    text, query, _ = text.partition("?")
    scheme, _, remaining = text.partition("://")
    host, slash, name = remaining.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{name}{query and '?...'}"


def is_url(path: Path) -> bool:
    """Return True for ``scheme://...`` with a scheme of two or more letters."""
    scheme, colon, _ = os.fspath(path).partition("://")
    return bool(colon) and len(scheme) > 1 and scheme.isascii() and scheme.isalnum()
