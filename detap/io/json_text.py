"""Strict JSON reader that yields one record at a time.

The standard library's scanner parses each record alone: memory stays small, and a fault in one
record does not hide those of the next. Unlike `json`, this reader reports NaN, repeated keys, very
long integers and nesting that would overflow the stack.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from detap.io.file_kinds import BYTE_ORDER_MARK, HTML, kind_of, merge_conflict
from detap.io.limits import Limits
from detap.io.problems import Problems
from detap.io.stream import refuse

HOLDS_CONSTANTS = "contains NaN or Infinity, which are not valid JSON", "remove it"
"""The message and hint for :attr:`JsonText.constants`."""
FURTHER_TEXT = "unexpected text after the JSON value", "remove it: a JSON file has one value"

_SPACE = re.compile(r"[ \t\n\r]*")
_STRUCTURE = re.compile(r"[,:\]}]|.{20}", re.DOTALL)
_LONGEST_INTEGER = 400
_SHOWN = 60
_EXCERPT = 20
_NEARBY = 1000
_HEAD = 1 << 16


class NotJsonError(Exception):
    """The text is not valid JSON."""

    def __init__(self, index: int, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.index = index
        self.message = message
        self.hint = hint


def integer(text: str) -> int | float:
    """Convert an integer's text; a very long one, which would take time, is infinite."""
    return int(text) if len(text) <= _LONGEST_INTEGER else float(text)


def check_text(record: object) -> None:
    """Raise UnicodeEncodeError, a ValueError, for half a surrogate pair, except of file names."""
    json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogateescape")


def distinct(pairs: Iterable[Sequence[Any]], message: str = "duplicate key {}") -> dict[str, Any]:
    """Return pairs of key and value as a dict; raise ValueError for a repeated key."""
    record: dict[str, Any] = {}
    for key, value in pairs:
        if key in record:
            raise ValueError(message.format(repr(key)))
        record[key] = value
    return record


def short_json(value: object) -> str:
    """Return a value as JSON text, shortened if long."""
    try:
        text = json.dumps(value, default=repr)
    except RecursionError:
        text = "a deeply nested value"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


class JsonText:
    """A JSON text and a position in it."""

    def __init__(self, text: str, problems: Problems) -> None:
        self.text = text
        self.problems = problems
        self.index = 0
        self.constants = 0
        self._repeated: list[str] = []
        self._decoder = json.JSONDecoder(
            object_pairs_hook=self._unite, parse_constant=self._constant, parse_int=integer
        )

    def _unite(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        united = dict(pairs)
        if len(united) != len(pairs):
            self._repeated += (Counter(key for key, _ in pairs) - Counter([*united])).elements()
        return united

    def _constant(self, name: str) -> float:
        self.constants += 1
        return float(name.replace("Infinity", "inf"))

    def where(self, index: int) -> str:
        """Return the line and column of an index, both from 1."""
        line = self.text.count("\n", 0, index) + 1
        column = index - self.text.rfind("\n", 0, index)
        return f"line {line}, column {column}"

    def peek(self) -> str:
        """Return the next character other than white space; empty at the end."""
        match = _SPACE.match(self.text, self.index)
        self.index = match.end() if match else self.index
        return self.text[self.index : self.index + 1]

    def value(self, name: str, number: int = -1) -> Any:
        """Read the next value."""
        start = self.index
        try:
            value, self.index = self._decoder.raw_decode(self.text, start)
        except json.JSONDecodeError as error:
            raise self.unexpected(error.pos, error.msg) from None
        except RecursionError:
            raise NotJsonError(start, "is nested too deeply", "reduce the nesting") from None
        for key in self._repeated:
            location = name if number < 0 else f"{name}[{number}]"
            message = f"duplicate key {short_json(key)} in one object"
            self.problems.add_here(location, message, "keep one of them")
        self._repeated.clear()
        return value

    def only_value(self, name: str = "") -> Any:
        """Read the value of a text that has no other."""
        self.peek()
        value = self.value(name)
        if self.peek():
            raise self.refused(self.index, *FURTHER_TEXT)
        return value

    def fault(self, error: NotJsonError) -> tuple[str, str, str]:
        """Return the location, message and hint for text that is not JSON."""
        name, hint = looks_like(self.text[:_HEAD].encode())
        context = self.text[max(0, error.index - _NEARBY) : error.index + _NEARBY]
        if not name:
            name, hint = merge_conflict(context.encode())
        if name:
            return "", f"looks like {name}", hint
        return self.where(error.index), error.message, error.hint

    def refused(self, index: int, message: str, hint: str) -> NotJsonError:
        """Return the error for text that may not be at an index."""
        shown = short_json(self.text[index : index + _EXCERPT])
        return NotJsonError(index, f"{message}: {shown}", hint)

    def unexpected(self, index: int, message: str) -> NotJsonError:
        """Return the error for invalid JSON at an index."""
        remaining = self.text[index : index + _SHOWN].rstrip()
        if "Unterminated string" in message or not _STRUCTURE.search(remaining):
            size = len(self.text)
            message = f"file is truncated: it ends inside a value, after {size} characters"
            return NotJsonError(min(index, size), message, "download or write it again")
        before = self.text[max(0, index - _NEARBY) : index].rstrip()
        if before.endswith(",") and remaining[0] in "]}":
            message = "trailing comma"
        reason = f": {message[:1].lower()}{message[1:]}"
        return NotJsonError(
            index, f"invalid JSON at {short_json(remaining[:_EXCERPT])}{reason}", "write valid JSON"
        )


_PATTERNS = (
    (re.compile(rb"(?i)\A\s*<(?:head|body)"), *HTML),
    (re.compile(rb"\A\s*<"), "XML", "for PASCAL VOC annotations use --format voc"),
    (
        re.compile(rb"\A\s*\{[^\n]*\}[ \t\r]*\n\s*\{"),
        "JSON Lines",
        "write the records as one JSON array",
    ),
    (
        re.compile(
            rb"\A\s*[\[{(]*\s*(?:'|[a-z.]+\(|None\b|True\b|False\b)"
            rb"|[:,\[]\s*(?:None|True|False|array\(|tensor\()\b|[{,]\s*'\w+'\s*:"
        ),
        "Python text, not JSON",
        "write it with json.dump",
    ),
    (re.compile(rb"\A[^\0]{0,64}\0"), "binary data", "use the JSON file"),
)


def looks_like(data: bytes) -> tuple[str, str]:
    """Return the kind of data other than JSON, and a hint; both empty if unknown."""
    head = data[:_HEAD]
    kind = kind_of(head)
    kinds = ((name, hint) for pattern, name, hint in _PATTERNS if pattern.search(head))
    return kind if kind[0] else next(kinds, kind)


def text_of(
    data: bytes,
    problems: Problems,
    limits: Limits,
    nesting: Callable[[bytes], int],
    expected: str = "download or write it again",
) -> JsonText:
    """Return a reader for a JSON file."""
    if not data.strip():
        refuse(problems.file, "is empty", expected)
    text = decode(data, problems.file)
    depth = nesting(data)
    if depth > limits.nesting:
        message = f"JSON is nested {depth} levels deep, the limit is {limits.nesting}"
        refuse(problems.file, message, "raise the limit with --max-nesting")
    return JsonText(text, problems)


def refuse_utf16(data: bytes, file: str) -> None:
    """Raise InputError if the data is UTF-16 or UTF-32."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or (
        b"\0" in data[:4] and data[:4].replace(b"\0", b"")[:1] in (b"{", b"[")
    ):
        refuse(file, "is UTF-16 or UTF-32 text, expected UTF-8", "save it as UTF-8")


def decode(data: bytes, file: str, first_line: int = 0) -> str:
    """Return UTF-8 bytes as text without a file's byte order mark; errors name a given line."""
    refuse_utf16(data, file)
    try:
        return (data if first_line > 1 else data.removeprefix(BYTE_ORDER_MARK)).decode()
    except UnicodeDecodeError as error:
        name, hint = looks_like(data)
        if name:
            refuse(file, f"looks like {name}", hint)
        line = first_line + data.count(b"\n", 0, error.start)
        where = f"line {line}" if first_line else f"byte {error.start}"
        refuse(file, f"{data[error.start]:#04x} is not UTF-8", "save it as UTF-8", where)
