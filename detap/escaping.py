r"""Escape untrusted names for terminals; measure text width.

Class names and paths come from files that anybody can write. A control character moves the cursor
or recolors the screen, a bidirectional one reorders the line, a zero-width one makes two names look
the same. All of these are shown as escapes, such as ``\x1b`` or ``\u202e``.
"""

from collections.abc import Iterable
from itertools import chain
from unicodedata import category, east_asian_width

# Invisible characters of the categories letter and mark: fillers, joiners and selectors.
_INVISIBLE = frozenset(
    chain(
        (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0),
        range(0x180B, 0x1810),
        range(0xFE00, 0xFE10),
        range(0xE0100, 0xE01F0),
    )
)
_BREAKS = " _-/.,:"


def escape(name: object) -> str:
    """Return a name with unsafe characters escaped."""
    text = str(name)
    if not (text.isascii() and text.isprintable()):
        text = "".join(char if _is_safe(char) else _escape(char) for char in text)
    return _without_commands(text) if "::" in text or "##" in text else text


def _without_commands(text: str) -> str:
    """Escape the commands that GitHub, Azure and TeamCity execute from logs."""
    head = text.lstrip()
    if head.startswith("::"):
        text = f"{text[: len(text) - len(head)]}{_escape(':')}{head[1:]}"
    for command in ("##[", "##vso[", "##teamcity["):
        text = text.replace(command, f"#{_escape('#')}{command[2:]}")
    return text


def escape_lines(text: str) -> str:
    """Escape each line of a text."""
    return "\n".join(escape(line) for line in text.split("\n"))


def _is_safe(character: str) -> bool:
    if ord(character) in _INVISIBLE:
        return False
    return character.isprintable() or category(character) == "Zs"


def _escape(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def width(text: str) -> int:
    """Return the number of terminal columns of printable text."""
    if text.isascii():
        return len(text)
    spacing = [char for char in text if category(char) not in ("Mn", "Me")]
    return len(spacing) + sum(east_asian_width(char) in "WF" for char in spacing)


def widest(texts: Iterable[str]) -> int:
    """Return the width of the widest text; 0 if there is none."""
    return max(map(width, texts), default=0)


def fold(text: str, limit: int) -> list[str]:
    """Split text into lines of at most `limit` columns, after a space or ``_`` where possible."""
    limit = max(limit, 2)
    lines: list[str] = []
    start = 0
    while width(text[start:]) > limit:
        end, taken = start, 0
        while taken + width(text[end]) <= limit:
            taken += width(text[end])
            end += 1
        after_break = max(text.rfind(char, start, end) + 1 for char in _BREAKS)
        if after_break > start + (end - start) // 2:
            end = after_break
        lines.append(text[start:end])
        start = end
    return [*lines, text[start:]]
