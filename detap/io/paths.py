"""What a path may be besides a file: standard input, and URLs."""

import os

Path = str | os.PathLike[str]

STDIN = "-"
"""The path that means standard input."""


def shown(path: Path) -> str:
    """Return `path` as messages and reports call it: a URL without password and signature."""
    text = os.fspath(path)
    if text == STDIN:
        return "<stdin>"
    if not is_url(text):
        return text
    text, query, _ = text.partition("?")
    scheme, _, rest = text.partition("://")
    place, slash, name = rest.partition("/")
    return f"{scheme}://{place.rpartition('@')[2]}{slash}{name}{query and '?...'}"


def is_url(path: Path) -> bool:
    """Return whether a path is a URL: ``scheme://``, with a scheme of two letters or more."""
    scheme, colon, _ = os.fspath(path).partition("://")
    return bool(colon) and len(scheme) > 1 and scheme.isascii() and scheme.isalnum()
