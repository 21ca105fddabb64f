"""Text files of lines: decode them, and read or refuse a line that is not regular.

`_ragged.pyx` reads regular lines and hands all others to :meth:`LineForm.read_line`.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from detap.formats.by_name.problems import CORNERS
from detap.io.file_kinds import BYTE_ORDER_MARK, kind_of
from detap.io.problems import FaultError, Problems
from detap.text_input import quote

NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""A decimal number in ASCII; float() also accepts ``2_63``, ``nan`` and full-width digits."""

XYWH = ("x", "y", "width", "height")

SWAPPED = "use x1 y1 x2 y2, or boxes='xywh' (--{}-boxes xywh) if these are x, y, width and height"
"""The hint for swapped corners that are valid as x, y, width and height."""

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_SEPARATOR = re.compile(r"[ \t]+")
_SHOWN = 60


def number_fault(text: str) -> str:
    """Return the fault of a text that is not a finite decimal number, or ""."""
    if NUMBER.fullmatch(text):
        if math.isfinite(float(text)):
            return ""
        return "is too large for a number"
    if re.fullmatch(r"[+-]?[0-9]+,[0-9]+", text):
        return "is not a number (use a decimal point, not a comma)"
    if text.lower().lstrip("+-") in {"nan", "inf", "infinity"}:
        return "is not a finite number"
    return "is not a number" if text else "is empty, expected a number"


def box_fault(values: list[float], box_format: str) -> str:
    """Return the fault of four finite numbers that are not a box, or ""."""
    first, second, third, fourth = values
    if box_format == "xywh":
        width, height = third, fourth
        if not (math.isfinite(first + third) and math.isfinite(second + fourth)):
            return "box corner overflows"
    else:
        width, height = third - first, fourth - second
    return "" if math.isfinite(width * height) else "box area overflows"


Line = tuple[str, list[float], bool]
"""The word, the numbers and the flag of a line."""


@dataclass(frozen=True, slots=True)
class LineForm:
    """The columns of a line: a word and numbers, ``<key> [score]`` and a box unless given.

    `key` is the title of the column of the word, behind `lead` numbers. `resolve` returns the name
    for a word, or raises :class:`FaultError`. Lines of detections (`scored`) may lack the score.
    `titles` are those of the numbers, if they are more than a box, which then is not checked here.
    A line may end with one of the words `last`: the one that clears the flag, or sets it.
    """

    key: str
    scored: bool
    box_format: str
    resolve: Callable[[str], str]
    titles: tuple[str, ...] = ()
    lead: int = 0
    last: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The titles of the columns."""
        box = XYWH if self.box_format == "xywh" else CORNERS
        titles = self.titles or (*("score",) * self.scored, *box)
        return (*titles[: self.lead], self.key, *titles[self.lead :])

    @property
    def width(self) -> int:
        """Numbers per line, if it is fixed."""
        return len(self.columns) - 1

    @property
    def regular(self) -> dict[str, Any]:
        """The arguments of `RaggedLines` for these lines."""
        last = tuple(word.encode() for word in self.last)
        return {"counts": (self.width, self.width - self.scored), "lead": self.lead, "last": last}

    def prepared(self, data: bytes) -> bytes:
        """Return a file's content with blank lines in place of its header."""
        return data.removeprefix(BYTE_ORDER_MARK)

    def read_line(self, text: str) -> Line:
        """Read a line, or raise FaultError."""
        columns, titles = columns_of(text), self.columns
        if self.scored and len(columns) == len(titles) - 1:
            titles = tuple(title for title in titles if title != "score")
        flags = [self.last.index(word) for word in columns[len(titles) :] if word in self.last]
        if len(columns) != len(titles) + len(flags[:1]):
            raise FaultError(*self.wrong_count(columns))
        if spaced := self.spaced_name(columns):
            raise FaultError(*spaced)
        self.resolve(columns[self.lead])
        pairs = [*zip(titles, columns, strict=False)]
        word = pairs.pop(self.lead)[1]
        values = [number_of(*pair) for pair in pairs]
        if not self.titles and (fault := box_fault(values[-4:], self.box_format)):
            raise FaultError(fault, "correct the box")
        return word, values, flags == [1]

    def wrong_count(self, columns: list[str]) -> tuple[str, str]:
        """Return the message and hint for a wrong number of columns."""
        expected = len(self.columns)
        message = f"{has_columns(len(columns))}, expected {expected}"
        hint = f"write `{' '.join(self.columns)}{' [difficult]' if self.last else ''}`"
        numbers = are_numbers(columns)
        if any("," in column or ";" in column for column in columns):
            hint += ", separated by spaces"
        elif not self.scored and len(columns) == expected + 1 and all(numbers[1:]):
            message += ": has a score (detections?)"
        elif len(columns) > expected and all(numbers[1 - expected :]):
            hint += f", the {self.key} without spaces"
        return self.spaced_name(columns) or (message, hint)

    def spaced_name(self, columns: list[str]) -> tuple[str, str] | None:
        """Return the arguments of a fault for a class name of several words before numbers."""
        numbers = are_numbers(columns[:-1] if columns[-1:] == ["difficult"] else columns)
        words = columns[: numbers.index(True)] if True in numbers else []
        rest = len(numbers) - len(words)
        if (
            self.key != "class"
            or len(words) < 2
            or not all(numbers[len(words) :])
            or rest not in (4, 4 + self.scored)
        ):
            return None
        message = f"the class {quote(' '.join(words))} has spaces, which separate the columns"
        hint = f"write {'_'.join(words)} in both inputs, or numbers with --class-names"
        return message, hint

    def other_kind(self, data: bytes) -> str:
        """Return the kind of a file that does not have such lines, or ""."""
        kind = looks_like(data)
        first = data.lstrip().split(b"\n", 1)[0].split()
        fits = len(self.columns) - len(first) in (0, self.scored)
        return "" if kind in _WEAK and fits else kind


def plain_lines(data: bytes, file: str, problems: Problems) -> list[tuple[int, str]]:
    """Return the line numbers (from 1) and names of a list of names."""
    kind = looks_like(data)
    if kind:
        problems.add(file, "", f"looks like {kind}", "expected one name per line")
        return []
    return [(n, text.strip(" \t")) for n, text in decoded_lines(data, file, problems)]


def looks_like(data: bytes) -> str:
    """Return the kind of a file, or of its beginning, that is not plain text, or ""."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16 text (expected UTF-8)"
    if name := kind_of(data)[0]:
        return name
    head = data[:4096].removeprefix(BYTE_ORDER_MARK).lstrip()
    bracket = {b"{": "JSON", b"[": "JSON", b"<": "XML"}.get(head[:1], "")
    return bracket or ("binary data" if b"\0" in head else "")


_WEAK = ("JSON", "XML", "binary data")
"""Detected by one byte, which may also begin a class name."""


def decoded_lines(data: bytes, file: str, problems: Problems) -> Iterator[tuple[int, str]]:
    """Yield the nonblank lines with their numbers, from 1; collect the problems of others."""
    for number, raw in enumerate(data.removeprefix(BYTE_ORDER_MARK).split(b"\n"), 1):
        line = raw.removesuffix(b"\r")
        if line.strip(b" \t"):
            try:
                yield number, decoded(line)
            except FaultError as fault:
                problems.add(file, f"line {number}", fault.message, fault.hint)


def decoded(line: bytes) -> str:
    """Return the text of a line; raise FaultError if it is not plain text in UTF-8."""
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise FaultError(f"{line[:_SHOWN]!r} is not UTF-8", "save it as UTF-8") from None
    if control := _CONTROL.search(text):
        raise FaultError(f"contains control character {control.group()!r}", "remove it")
    return text


def columns_of(text: str) -> list[str]:
    """Return the columns of a line."""
    return _SEPARATOR.split(text.strip(" \t"))


def numbers_of(titles: Sequence[str], columns: Sequence[str]) -> list[float]:
    """Return columns as numbers; raise FaultError if one is not a number."""
    return [number_of(title, column) for title, column in zip(titles, columns, strict=True)]


def number_of(name: str, text: str) -> float:
    """Return the finite decimal number of a text; raise FaultError for other texts."""
    if fault := number_fault(text):
        raise FaultError(f"{name} {quote(text)} {fault}", "use a decimal number")
    return float(text)


def are_numbers(columns: Sequence[str]) -> list[bool]:
    """Return True for each column that is a decimal number."""
    return [NUMBER.fullmatch(column) is not None for column in columns]


def has_columns(count: int) -> str:
    """Return the beginning of a message about the number of columns."""
    return f"has {count} column{'s' * (count != 1)}"
