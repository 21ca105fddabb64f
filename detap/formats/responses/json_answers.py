"""Find JSON in the text of an answer, also broken off, malformed, or written like Python.

A state machine reads one value without recursion. An answer is read in linear time: an opening
bracket that was open at a fault would fail at the same fault, and is not tried again.
"""

import json
import math
import re
from collections import deque
from typing import Any, NamedTuple

from detap.formats.responses.answer import Answer
from detap.io.json_text import short_json

BOX_KEYS = ("bbox_2d", "box_2d", "bbox", "box")
"""Keys that name a box in one of the dialects."""
_NESTING = 100

_SPACE = r"[ \t\n\r]*"
_DOUBLE = r'"[^"\\\x00-\x1f]*(?:\\[^\x00-\x1f][^"\\\x00-\x1f]*)*'
_SINGLE = r"'[^'\\\x00-\x1f]*(?:\\[^\x00-\x1f][^'\\\x00-\x1f]*)*"
_TOKEN = re.compile(
    rf"""{_SPACE}(?:(?P<mark>[\[\]{{}}:,])|(?P<double>{_DOUBLE}")|(?P<single>{_SINGLE}')"""
    r"|(?P<word>-?[A-Za-z]+)|(?P<number>[-0-9][0-9.eE+-]*))"
)
_BROKEN_OFF = re.compile(rf"{_SPACE}(?:(?:{_DOUBLE}|{_SINGLE})\\?)?\Z")
"""The text ends before a token, or in a string."""
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_PART_OF_NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][+-]?[0-9]*)?)?")
_JSON_WORDS = {
    "true": True,
    "false": False,
    "null": None,
    "NaN": math.nan,
    "Infinity": math.inf,
    "-Infinity": -math.inf,
}
_PYTHON_WORDS = {"True": True, "False": False, "None": None}
_OPENING = re.compile(
    rf"""\{{(?={_SPACE}(?:["'}}]|\Z))"""
    rf"""|\[(?={_SPACE}(?:[\[{{\]"']|\Z|[A-Za-z0-9.+-]+{_SPACE}(?:[,\]]|\Z)))"""
)
"""A bracket that may begin a value: others are prose, and there may be a million."""
_MANY = re.compile(r"\[+")
_IN_SINGLE_QUOTES = re.compile(r"\\(.)|\"")


class JsonDialect(NamedTuple):
    """The keys of a box, its label and its score."""

    box_key: str
    label_key: str = "label"
    score_key: str = ""  # scores are not read without it


class _FaultyError(Exception):
    """The text is no JSON at this position; `broken_off` if it ends there."""

    def __init__(self, position: int, *, broken_off: bool = False) -> None:
        super().__init__(position)
        self.position, self.broken_off = position, broken_off


class _Open:
    """An array or object that is not complete yet."""

    def __init__(self, start: int, value: Any) -> None:
        self.start, self.value, self.key = start, value, ""

    def put(self, value: Any) -> None:
        """Append a value, or set that of the key."""
        if isinstance(self.value, dict):
            self.value[self.key] = value
        else:
            self.value.append(value)


class _Value:
    """One array or object of a text, as far as it can be read."""

    def __init__(self, text: str, start: int, keys: frozenset[str]) -> None:
        self.text, self.position, self.keys = text, start, keys
        self.objects: list[tuple[int, dict[str, Any]]] = []  # complete ones with a box key
        self.is_lenient = self.has_empty_array = False
        self.is_broken_off = self.is_malformed = False
        self.tried: list[int] = []  # the brackets that are not closed
        self._open: deque[_Open] = deque()
        self._expected = "value"
        try:
            self._read()
        except _FaultyError as fault:
            self.position = fault.position
            self.is_broken_off, self.is_malformed = fault.broken_off, not fault.broken_off
        self.tried += [one.start for one in self._open]
        self.objects.sort(key=lambda item: item[0])  # outer before inner

    def _read(self) -> None:
        """Read tokens up to the end of the value."""
        text = self.text
        while True:
            token = _TOKEN.match(text, self.position)
            if token is None:
                broken_off = _BROKEN_OFF.match(text, self.position) is not None
                raise _FaultyError(self.position, broken_off=broken_off)
            kind = token.lastgroup or ""
            start, self.position = token.start(kind), token.end()
            if kind == "mark":
                if self._mark(token[kind], start):
                    return
            elif self._expected in ("key", "first key") and kind in ("double", "single"):
                self._open[-1].key = self._scalar(kind, token[kind], start)
                self._expected = "colon"
            elif self._expected in ("value", "first value", "next value"):
                self._open[-1].put(self._scalar(kind, token[kind], start))
                self._expected = "comma"
            else:
                raise _FaultyError(start)

    def _mark(self, mark: str, start: int) -> bool:
        """Take a bracket, colon or comma; return True at the end of the value."""
        expected = self._expected
        if mark in "[{" and expected in ("value", "first value", "next value"):
            self._begin(mark, start)
        elif mark in "]}" and self._may_close(mark):
            self.is_lenient |= expected in ("key", "next value")  # after a comma
            return self._close()
        elif mark == ":" and expected == "colon":
            self._expected = "value"
        elif mark == "," and expected == "comma":
            self._expected = "key" if isinstance(self._open[-1].value, dict) else "next value"
        else:
            raise _FaultyError(start)
        return False

    def _begin(self, mark: str, start: int) -> None:
        if len(self._open) == _NESTING:
            if self.objects:
                raise _FaultyError(start)
            # The outermost one is malformed; reading goes on with the next.
            self.tried.append(self._open.popleft().start)
        self._open.append(_Open(start, [] if mark == "[" else {}))
        self._expected = "first value" if mark == "[" else "first key"

    def _may_close(self, mark: str) -> bool:
        if isinstance(self._open[-1].value, dict):
            return mark == "}" and self._expected in ("first key", "key", "comma")
        return mark == "]" and self._expected in ("first value", "next value", "comma")

    def _close(self) -> bool:
        closed = self._open.pop()
        if closed.value == []:
            self.has_empty_array = True
        elif isinstance(closed.value, dict) and not self.keys.isdisjoint(closed.value):
            self.objects.append((closed.start, closed.value))
        if not self._open:
            return True
        self._open[-1].put(closed.value)
        self._expected = "comma"
        return False

    def _scalar(self, kind: str, token: str, start: int) -> Any:
        """Return a text, number or constant."""
        if kind == "number":
            if _NUMBER.fullmatch(token):
                return float(token)
            raise self._cut(start, is_part=_PART_OF_NUMBER.fullmatch(token) is not None)
        if kind == "word":
            if token in _JSON_WORDS:
                return _JSON_WORDS[token]
            self.is_lenient |= token in _PYTHON_WORDS
            if token in _PYTHON_WORDS:
                return _PYTHON_WORDS[token]
            words = (*_JSON_WORDS, *_PYTHON_WORDS)
            raise self._cut(start, is_part=any(word.startswith(token) for word in words))
        if kind == "single":
            self.is_lenient = True
            token = f'"{_IN_SINGLE_QUOTES.sub(_double_quoted, token[1:-1])}"'
        try:
            return json.loads(token)
        except ValueError:  # an unknown escape
            raise _FaultyError(start) from None

    def _cut(self, start: int, *, is_part: bool) -> _FaultyError:
        """Return the fault of a part of a token, which may be at the end of the text."""
        return _FaultyError(start, broken_off=is_part and self.position == len(self.text))


def _double_quoted(match: re.Match[str]) -> str:
    """Return a part of a text in single quotes as in double quotes."""
    if match[0] == "\\'":
        return "'"
    return match[0] if match[1] else '\\"'


def after_thinking(text: str, answer: Answer) -> str:
    """Return the text after the thoughts of a model; none if these have no end."""
    text = text.rpartition("</think>")[2]
    if "<think>" in text:
        answer.notes.add("unfinished-thinking")
        return ""
    return text


def read_json(text: str, dialect: JsonDialect, answer: Answer) -> None:
    """Add the boxes of an answer in JSON."""
    keys = frozenset((*BOX_KEYS, dialect.box_key))
    tried: set[int] = set()
    position = blocks = 0
    while opening := _OPENING.search(text, position):
        start = opening.start()
        if many := _MANY.match(text, start):
            start = max(start, many.end() - _NESTING)  # those before are nested too deeply
        position = start + 1
        if start in tried:
            continue
        value = _Value(text, start, keys)
        for _, record in value.objects:
            _add(record, dialect, answer)
        blocks += bool(value.objects)
        if value.is_broken_off:
            answer.notes.add("truncated")
        elif value.is_malformed and value.objects:
            answer.notes.add("malformed")
        elif not value.is_malformed:
            answer.is_empty |= value.has_empty_array
        if value.is_lenient and (value.objects or not value.is_malformed):
            answer.notes.add("lenient-json")
        if value.is_broken_off:
            break
        if value.is_malformed and not value.objects:
            tried.update(value.tried)
        else:
            position = value.position
    if blocks > 1:
        answer.notes.add("several-blocks")


def _add(record: dict[str, Any], dialect: JsonDialect, answer: Answer) -> None:
    """Add the box of an object with a box key."""
    if dialect.box_key not in record:
        answer.other_keys.update(key for key in BOX_KEYS if key in record)
    box, label = record.get(dialect.box_key), record.get(dialect.label_key)
    score = record.get(dialect.score_key) if dialect.score_key else None
    answer.add(label, box, short_json(record), score)
