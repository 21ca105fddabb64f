"""One answer of a model: its boxes and notes, from JSON or from tokens in its text.

JSON may be broken off, malformed, or written like Python. A state machine reads one value without
recursion. An answer is read in linear time: an opening bracket that was open at a fault would fail
at the same fault, and is not tried again.
"""

import json
import math
import re
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from detap.io.json_text import short_json
from detap.text_input import quote

_LARGEST = 1e100
"""Areas of smaller boxes are finite."""


class Box(NamedTuple):
    """A box as the answer has it."""

    label: str  # white space is collapsed
    numbers: tuple[float, ...]  # in the order and unit of the dialect
    score: float = math.nan


class Answer:
    """Boxes, bad boxes and notes of one answer."""

    def __init__(self, line_label: str = "") -> None:
        self.line_label = line_label  # the class that was asked for; of boxes without a label
        self.boxes: list[Box] = []
        self.bad: list[str] = []  # the text of each bad box
        self.notes: set[str] = set()
        self.is_empty = False  # True if the answer says that there are no objects
        self.other_keys: set[str] = set()  # box keys of other dialects

    def add(self, label: object, numbers: object, text: str, score: object = None) -> None:
        """Add a box, a bad one unless it has four finite numbers and a label."""
        name = collapse(label) if isinstance(label, str) else ""
        name = name or self.line_label
        values = finite_numbers(numbers)
        if name and is_text(name) and len(values) == 4:
            self.boxes.append(Box(name, values, *finite_numbers([score])))
        else:
            self.bad.append(text)

    @property
    def failed(self) -> bool:
        """True if there is neither a box, nor a bad one, nor a valid empty answer."""
        return not (self.boxes or self.bad or self.is_empty)

    def all_notes(self) -> list[str]:
        """Return the codes of the notes, sorted."""
        conditions = {
            "bad-boxes": bool(self.bad),
            "failed": self.failed,
            "repeated-boxes": len({box[:2] for box in self.boxes}) < len(self.boxes),
        }
        return sorted({*self.notes, *(name for name, holds in conditions.items() if holds)})


def collapse(label: str) -> str:
    """Return a label without white space around it, and with single spaces."""
    return " ".join(label.split())


def is_text(label: str) -> bool:
    """Return False for half a surrogate pair, which no report can show."""
    return not any("\ud800" <= character <= "\udfff" for character in label)


def finite_numbers(values: object) -> tuple[float, ...]:
    """Return the numbers of a list; none if it has another value."""
    if not isinstance(values, list):
        return ()
    are_finite = all(isinstance(value, float) and abs(value) < _LARGEST for value in values)
    return tuple(values) if are_finite else ()


# --- JSON

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


# --- tokens of the model, or brackets between its tags

_DIGITS = re.compile(r"-?\d+(?:\.\d+)?")
_TAGS = re.compile(r"</?s>|<pad>|<\|im_end\|>")
"""Tags around an answer."""
_UNFINISHED = re.compile(r"<[|/\w]*\Z|<\|?(?:object_ref_start|ref|phrase)\|?>[^<]*\Z")
_PART_OF_TAG = re.compile(r"\s*(?:<[^<>]*)?\Z")


class TokenDialect(NamedTuple):
    """The regular expressions of boxes."""

    boxes: str
    """Boxes of one label: groups ``boxes``, ``end`` if they have one, and ``label``.

    Without the group ``label``, it is the text before.
    """
    box: str = r".+"  # one of the boxes; it ends with > or ] or ) or is broken off
    numbers: int = 4
    corners: Callable[[Sequence[float]], tuple[float, ...] | None] | None = None
    """Returns x1, y1, x2, y2 as fractions of the image, None for a bad box."""
    by_line: bool = False  # True if the label is that of the line
    box_key: str = ""  # JSON dialects have one


def _between(begin: str, end: str, characters: str, label: str = "") -> str:
    """Return the expression of boxes between tags, after a label."""
    label = f"(?:{label})?" if label else ""
    return rf"{label}{begin}(?P<boxes>(?:{characters})*)(?P<end>{end})?"


def _tag(name: str) -> str:
    return rf"<\|{name}\|>"


_BRACKETS, _IN_BRACKETS = r"[\[\]\d\s,.-]", r"\[[^\[\]]*\d[^\[\]]*\]?"
_REF = rf"{_tag('object_ref_start')}(?P<label>[^<]*){_tag('object_ref_end')}\s*"
_OF_REF = _tag("box_start"), _tag("box_end")


def cells(pair: Sequence[float]) -> tuple[float, ...] | None:
    """Return the corners of two cells of 32 by 32, as fractions of the image."""
    if max(pair) > 1023:
        return None
    (row1, column1), (row2, column2) = (divmod(cell, 32) for cell in pair)
    if row1 == row2 or column1 == column2:
        return column1 / 32, row1 / 32, (column2 + 1) / 32, (row2 + 1) / 32
    return tuple((cell + 0.5) / 32 for cell in (column1, row1, column2, row2))


PALIGEMMA = TokenDialect(
    r"(?P<boxes>(?:<loc\d{4}>\s*)+)(?:<seg\d{3}>\s*)*(?P<end>(?P<label>[^<;]*))"
)
FLORENCE_2 = TokenDialect(r"(?P<boxes>(?:<loc_\d+>)+)", r"(?:<loc_\d+>){1,4}")
KOSMOS_2 = TokenDialect(
    _between(
        "<object>",
        "</object>",
        r"<patch_index_\d+>|</delimiter_of_multi_objects/>",
        r"<phrase>(?P<label>[^<]*)</phrase>\s*",
    ),
    r"(?:<patch_index_\d+>)+",
    2,
    cells,
)
REX_OMNI = TokenDialect(_between(*_OF_REF, r"<\d+>|[,\s]|None", _REF), r"[^,\s][^,]*")
QWEN2_VL = TokenDialect(_between(*_OF_REF, r"[()\d\s,.-]", _REF), r"\(.+")
INTERNVL = TokenDialect(
    _between("<box>", "</box>", _BRACKETS, r"<ref>(?P<label>[^<]*)</ref>\s*"), _IN_BRACKETS
)
DEEPSEEK_VL2 = TokenDialect(
    _between(
        _tag("det"), _tag("/det"), _BRACKETS, rf"{_tag('ref')}(?P<label>[^<]*){_tag('/ref')}\s*"
    ),
    _IN_BRACKETS,
)
COGVLM = TokenDialect(
    r"\[\[(?=[\d\s\]])(?P<boxes>[\d\s,;.-]*)(?P<end>\]\])?", r"[^;]*\d[^;]*", by_line=True
)


def without_tags(text: str) -> str:
    """Return an answer without the tags that begin and end every answer."""
    return _TAGS.sub("", text)


def read_tokens(text: str, dialect: TokenDialect, answer: Answer) -> None:
    """Add the boxes of an answer in tokens."""
    end = 0
    last_label = ""
    for match in re.finditer(dialect.boxes, text):
        groups = match.groupdict()
        between = text[end : match.start()].rpartition(">")[2]
        label = groups.get("label", between) or ""
        if not label and not between.strip(" ,\n"):
            label = last_label  # several boxes of one label
        _add_boxes(match, "" if dialect.by_line else label, dialect, answer)
        end, last_label = match.end(), label
    if _UNFINISHED.search(text[end:]):
        answer.notes.add("truncated")


def _add_boxes(match: re.Match[str], label: str, dialect: TokenDialect, answer: Answer) -> None:
    """Add the boxes of a label."""
    groups, text = match.groupdict(), quote(match[0])
    boxes = re.findall(dialect.box, groups["boxes"].strip(), re.DOTALL)
    has_end = bool((groups.get("end") or "").strip())
    at_end = not has_end and _PART_OF_TAG.match(match.string, match.end()) is not None
    if at_end and "end" in groups:
        answer.notes.add("truncated")
    if has_end and boxes in ([], ["None"]):
        answer.is_empty = True
        return
    for index, box in enumerate(boxes):
        numbers = [float(number) for number in _DIGITS.findall(box)]
        is_last = index == len(boxes) - 1
        is_cut = is_last and not has_end and box.strip()[-1] not in ">)]"
        is_whole = len(numbers) == dialect.numbers and not is_cut
        if at_end and is_last and not is_whole:
            answer.notes.add("truncated")
        elif box.strip() == "None":
            continue
        elif is_whole and dialect.corners is not None:
            corners = dialect.corners(numbers)
            answer.add(label, None if corners is None else list(corners), text)
        else:
            answer.add(label, numbers if is_whole else None, text)
