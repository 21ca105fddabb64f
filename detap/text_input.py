"""What people type: numbers, and names that may be slips of the pen."""

import re
from collections.abc import Callable, Iterable
from math import isfinite

_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?"
_WHOLE = r"[+-]?\d{1,19}"


def number(text: str) -> float:
    """Return a finite number; Python's own float() would also take ``1_0`` and ``nan``.

    Raises
    ------
    ValueError
        Where the text is none.
    """
    if not re.fullmatch(_NUMBER, text.strip(), re.ASCII):
        raise ValueError(f"{text!r} is not a number")
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text!r} is too large")
    return value


def parse_int(text: str) -> int:
    """Return a whole number.

    Raises
    ------
    ValueError
        Where the text is none.
    """
    if not re.fullmatch(_WHOLE, text.strip(), re.ASCII):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def parse_fraction(given: object) -> float:
    """Return a number between 0 and 1, neither included, from text or from a number.

    Raises
    ------
    ValueError
        Where it is none.
    """
    try:
        value = number(given if isinstance(given, str) else repr(float(given)))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        value = 0.0
    if isinstance(given, bool) or not 0 < value < 1:
        raise ValueError(f"{given!r} is not between 0 and 1")
    return value


def score_or_best(text: str) -> float | str:
    """Return a score, or the word ``best``.

    Raises
    ------
    ValueError
        If the text is neither.
    """
    try:
        return text if text == "best" else number(text)
    except ValueError as error:
        raise ValueError(f"{error}; give a score, or best") from None


def is_whole(text: str) -> bool:
    """Tell whether a text is a whole number in plain digits; ``str.isdigit`` also takes others."""
    return text.isascii() and text.isdigit()


def join_names(names: Iterable[object]) -> str:
    """Return the first three different names, quoted and cut as messages do, and whether there are
    more.
    """  # noqa: D205 - one thought
    known = list(dict.fromkeys(names))
    return ", ".join(map(quote, known[:3])) + (", ..." if len(known) > 3 else "")


def quote(name: object) -> str:
    """Return a name as messages quote it: escaped, and cut when long."""
    return repr(f"{name[:57]}..." if isinstance(name, str) and len(name) > 60 else name)


def suggest(name: str, known: Iterable[str], shown: Callable[[str], str] = str) -> str:
    """Return ``"did you mean this or that?"``, or nothing where no known name is near.

    Small and capital letters are alike; `shown` is how a name is put.
    """
    found = nearest(name, known)
    return f"did you mean {' or '.join(map(shown, found))}?" if found else ""


def nearest(name: str, known: Iterable[str], least: float = 0.6) -> list[str]:
    """Return the known names that a slip may have meant, the nearest first; three at most.

    `least` is how much alike they are, from 0 to 1.
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only after a slip

    folded = {entry.lower(): entry for entry in known}
    return [folded[entry] for entry in get_close_matches(name.lower(), folded, n=3, cutoff=least)]
