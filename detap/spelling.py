"""What people type: numbers, and names that may be slips of the pen."""

import re
from collections.abc import Iterable
from math import isfinite

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def number(text: str) -> float:
    """Return a finite number; Python's own float() would also take ``1_0`` and ``nan``.

    Raises
    ------
    ValueError
        Where the text is none.
    """
    if not _NUMBER.fullmatch(text.strip()):
        raise ValueError(f"{text!r} is not a number")
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text!r} is too large")
    return value


def is_whole(text: str) -> bool:
    """Tell whether a text is a whole number in plain digits; ``str.isdigit`` also takes others."""
    return text.isascii() and text.isdigit()


def near(name: str, known: Iterable[str]) -> str:
    """Return ``"did you mean this or that?"``, or nothing where no known name is near."""
    from difflib import get_close_matches  # noqa: PLC0415 - only after a slip

    found = get_close_matches(name, list(known), n=3)
    return f"did you mean {' or '.join(found)}?" if found else ""
