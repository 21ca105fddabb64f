"""Parse numbers typed by people; suggest names for typing errors."""

import re
from collections.abc import Callable, Iterable
from math import isfinite

_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?"
_WHOLE = r"[+-]?\d{1,19}"


def number(text: str) -> float:
    """Parse a finite number; float() would also accept ``1_0`` and ``nan``."""
    if not re.fullmatch(_NUMBER, text.strip(), re.ASCII):
        raise ValueError(f"{text!r} is not a number")
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text!r} is too large")
    return value


def parse_int(text: str) -> int:
    """Parse an integer."""
    if not re.fullmatch(_WHOLE, text.strip(), re.ASCII):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def parse_fraction(given: object) -> float:
    """Return a number in (0, 1) from text or a number."""
    try:
        value = number(given if isinstance(given, str) else repr(float(given)))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        value = 0.0
    if isinstance(given, bool) or not 0 < value < 1:
        raise ValueError(f"{given!r} is not between 0 and 1")
    return value


def score_or_best(text: str) -> float | str:
    """Parse a score or the word ``best``."""
    try:
        return text if text == "best" else number(text)
    except ValueError as error:
        raise ValueError(f"{error}; give a score, or best") from None


def is_whole(text: str) -> bool:
    """Return True if the text is ASCII digits; ``str.isdigit`` also accepts others."""
    return text.isascii() and text.isdigit()


def join_names(names: Iterable[object]) -> str:
    """Join the first three distinct names, quoted; ``...`` stands for further ones."""
    distinct = list(dict.fromkeys(names))
    return ", ".join(map(quote, distinct[:3])) + (", ..." if len(distinct) > 3 else "")


def quote(name: object) -> str:
    """Quote a name for a message: escaped, and shortened if long."""
    return repr(f"{name[:57]}..." if isinstance(name, str) and len(name) > 60 else name)


def suggest(name: str, known: Iterable[str], to_text: Callable[[str], str] = str) -> str:
    """Return ``"did you mean x or y?"``; empty if no known name is similar, ignoring case."""
    similar = nearest(name, known)
    return f"did you mean {' or '.join(map(to_text, similar))}?" if similar else ""


def nearest(name: str, known: Iterable[str], min_ratio: float = 0.6) -> list[str]:
    """Return up to three known names, most similar first."""
    from difflib import get_close_matches  # noqa: PLC0415 - start-up time

    by_lower = {each.lower(): each for each in known}
    return [by_lower[each] for each in get_close_matches(name.lower(), by_lower, 3, min_ratio)]
