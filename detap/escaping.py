r"""Names from strangers, made harmless to print, and their width on a terminal.

Class names and paths come out of files that anybody can write. A control character in one moves
the cursor or recolours the screen, a bidirectional one reorders the line, a zero-width one makes
two names look the same. All of these are shown as escapes, ``\x1b`` or ``\u202e``.
"""

from collections.abc import Collection
from itertools import chain

# Invisible although their category is that of a letter or a mark: fillers, joiners and selectors.
_INVISIBLE = frozenset(
    chain(
        (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0),
        range(0x180B, 0x1810),
        range(0xFE00, 0xFE10),
        range(0xE0100, 0xE01F0),
    )
)
_BREAKS = " _-/.,:"
_OWN = frozenset("\N{EN DASH}\N{HORIZONTAL ELLIPSIS}\N{BOX DRAWINGS LIGHT HORIZONTAL}")
"""Marks of detap's own texts: of one column, which takes no tables of Unicode to know."""


def escape(name: object) -> str:
    """Return a name as text that no terminal, log or table can take for anything but text.

    Parameters
    ----------
    name : object
        Usually a str; anything else is taken by its ``str()``.
    """
    text = str(name)
    if not (text.isascii() and text.isprintable()):
        text = "".join(mark if _harmless(mark) else _escape(mark) for mark in text)
    return _without_commands(text) if "::" in text or "##" in text else text


def _without_commands(text: str) -> str:
    """Return text that no CI system takes for a command to itself when it is in a log.

    GitHub's runner takes a line that begins with ``::`` for one, and ``##[`` anywhere in it, Azure
    ``##vso[``, TeamCity ``##teamcity[``.
    """
    head = text.lstrip()
    if head.startswith("::"):
        text = f"{text[: len(text) - len(head)]}{_escape(':')}{head[1:]}"
    for command in ("##[", "##vso[", "##teamcity["):
        text = text.replace(command, f"#{_escape('#')}{command[2:]}")
    return text


def escape_lines(text: str) -> str:
    """Return text of several lines with each made :func:`escape`."""
    return "\n".join(escape(line) for line in text.split("\n"))


def _harmless(character: str) -> bool:
    if ord(character) in _INVISIBLE:
        return False
    return character.isprintable() or _category(character) == "Zs"


def _escape(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def width(text: str) -> int:
    """Return how many columns printable text takes on a terminal."""
    if text.isascii():
        return len(text)
    marks = [mark for mark in text if not (mark.isascii() or mark in _OWN)]
    if not marks:
        return len(text)
    from unicodedata import category, east_asian_width  # most names are ASCII and need no tables

    spacing = [mark for mark in marks if category(mark) not in ("Mn", "Me")]
    wide = sum(east_asian_width(mark) in "WF" for mark in spacing)
    return len(text) - (len(marks) - len(spacing)) + wide


def widest(texts: Collection[str]) -> int:
    """Return how many columns the widest of printable texts takes; 0 where there is none."""
    of = len if all(map(str.isascii, texts)) else width
    return max(map(of, texts), default=0)


def _category(character: str) -> str:
    import unicodedata  # as in `width`

    return unicodedata.category(character)


def fold(text: str, limit: int) -> list[str]:
    """Return the lines, each of at most `limit` columns, that hold all of the text.

    A line ends behind a space or a mark such as ``_`` where it has one in its second half, and
    anywhere otherwise. Nothing is left out: joined, the lines are the text again.
    """
    limit = max(limit, 2)
    lines: list[str] = []
    start = 0
    while width(text[start:]) > limit:
        end, taken = start, 0
        while taken + width(text[end]) <= limit:
            taken += width(text[end])
            end += 1
        at_mark = max(text.rfind(mark, start, end) + 1 for mark in _BREAKS)
        if at_mark > start + (end - start) // 2:
            end = at_mark
        lines.append(text[start:end])
        start = end
    return [*lines, text[start:]]
