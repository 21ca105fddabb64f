"""One answer of a model: its boxes and notes, from JSON or from tokens in its text.

JSON may be broken off, malformed, or written like Python; it is read to a depth of 100. An answer
is read in linear time: brackets before a fault are not tried again. Those that are open would fail
at the same fault, and the others have no box.
"""

import json
import math
import re
from collections.abc import Callable
from operator import itemgetter
from typing import Any, NamedTuple

from detap.io.json_text import short_json
from detap.text_input import quote

_LARGEST = 1e100
"""Areas of smaller boxes are finite."""
_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half a pair, which no report can show."""


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
        if name and not _SURROGATE.search(name) and len(values) == 4:
            self.boxes.append(Box(name, values, *finite_numbers([score])))
        else:
            self.bad.append(text)
            self.notes.add("bad-boxes")

    @property
    def failed(self) -> bool:
        """True if there is neither a box, nor a bad one, nor a valid empty answer."""
        return not (self.boxes or self.bad or self.is_empty)

    def all_notes(self) -> list[str]:
        """Return the codes of the notes, sorted."""
        repeats = len({box[:2] for box in self.boxes}) < len(self.boxes)
        more = ["failed"] * self.failed + ["repeated-boxes"] * repeats
        return sorted({*self.notes, *more})


def collapse(label: str) -> str:
    """Return a label without white space around it, and with single spaces."""
    return " ".join(label.split())


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
_TEXT = rf"""(?:{_DOUBLE}"|{_SINGLE}')"""
_CUT_TEXT = rf"(?:{_DOUBLE}|{_SINGLE})\\?\Z"
_TOKEN = re.compile(rf"{_SPACE}([\[\]{{}}:,]|{_TEXT}|[\w.+-]+)")
_BROKEN_OFF = re.compile(rf"{_SPACE}(?:{_CUT_TEXT}|[-\d][\d.eE+-]*\Z|[tfnTFN][a-z]*\Z|\Z)")
"""The text ends before a token, or in one."""
_OBJECT = rf"\{{(?={_SPACE}(?:{_TEXT}{_SPACE}(?::|\Z)|{_CUT_TEXT}|\Z))"
_ITEM = rf"(?:{_TEXT}|[\w.+-]+|\[{_SPACE}\]|{{{_SPACE}}}){_SPACE}(?:[,\]]|\Z)"
_FIRST = rf"{_ITEM}|{_CUT_TEXT}|{_OBJECT}|\[(?!{_SPACE}\])"
_ARRAY = rf"\[(?!\[{{{_NESTING}}})(?={_SPACE}(?:{_FIRST}|\]|\Z))"
_OPENING = re.compile(f"{_OBJECT}|{_ARRAY}")
"""A bracket that may begin a value that matters: others are prose, and there may be a million."""
_CLOSING = {"[": "]", "{": "}"}
_NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|Infinity)|NaN")
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}


class JsonDialect(NamedTuple):
    """The keys of a box, its label and its score."""

    box_key: str
    label_key: str = "label"
    score_key: str = ""  # scores are not read without it


class _Value:
    """One array or object of a text, as far as it can be read."""

    def __init__(self, text: str, start: int, keys: frozenset[str]) -> None:
        self.text, self.keys = text, keys
        self.objects: list[tuple[int, dict[str, Any]]] = []  # complete ones with a box key
        self.brackets: list[int] = []  # the positions of those that open
        self.is_lenient = self.has_empty_array = False
        self.fault = ""
        self._end = start
        self._advance()
        try:
            self._read()
        except ValueError:
            broken_off = _BROKEN_OFF.match(text, self.position)
            self.fault = "truncated" if broken_off else "malformed"
        self.objects.sort(key=itemgetter(0))  # outer before inner

    def _advance(self) -> None:
        """Go to the next token, which is empty if there is none."""
        self.position = self._end
        match = _TOKEN.match(self.text, self.position)
        self.token, self._end = (match[1], match.end()) if match else ("", self.position)

    def _read(self, depth: int = 0) -> Any:
        """Return the value that begins here; raise ValueError if it is none."""
        closing = _CLOSING.get(self.token)
        if closing is None:
            return self._scalar()
        if depth == _NESTING:
            raise ValueError
        start = self._end - 1
        self.brackets.append(start)
        value: Any = [] if closing == "]" else {}
        self._advance()
        while self.token != closing:
            if closing == "]":
                value.append(self._read(depth + 1))
            else:
                key = self._text()
                self._require(":")
                value[key] = self._read(depth + 1)
            if self.token != closing:
                self._require(",")
                self.is_lenient |= self.token == closing
        self.has_empty_array |= value == []
        if closing == "}" and not self.keys.isdisjoint(value):
            self.objects.append((start, value))
        self._advance()
        return value

    def _require(self, mark: str) -> None:
        if self.token != mark:
            raise ValueError
        self._advance()

    def _scalar(self) -> Any:
        """Return a number, constant or text."""
        token = self.token
        if _NUMBER.fullmatch(token):
            value: Any = float(token)
        elif token in _WORDS:
            self.is_lenient |= token[0].isupper()  # as Python writes them
            value = _WORDS[token]
        else:
            return self._text()
        self._advance()
        return value

    def _text(self) -> Any:
        """Return a text in double or single quotes."""
        token = self.token
        if token[:1] == "'":
            self.is_lenient = True
            inner = token[1:-1].replace("\\'", "'").replace('\\"', '"').replace('"', '\\"')
            token = f'"{inner}"'
        elif token[:1] != '"':
            raise ValueError
        text = json.loads(token)
        self._advance()
        return text


def read_json(text: str, dialect: JsonDialect, answer: Answer) -> None:
    """Add the boxes of an answer in JSON."""
    keys = frozenset((*BOX_KEYS, dialect.box_key))
    tried: set[int] = set()
    position = blocks = 0
    while opening := _OPENING.search(text, position):
        start = opening.start()
        position = start + 1
        if start in tried:
            continue
        value = _Value(text, start, keys)
        if value.fault == "malformed" and not value.objects:  # prose
            tried.update(value.brackets)
            answer.is_empty |= value.has_empty_array
            continue
        for _, record in value.objects:
            if dialect.box_key not in record:
                answer.other_keys.update(key for key in BOX_KEYS if key in record)
            label, box = record.get(dialect.label_key), record.get(dialect.box_key)
            score = record.get(dialect.score_key) if dialect.score_key else None
            answer.add(label, box, short_json(record), score)
        position = value.position
        blocks += bool(value.objects)
        answer.is_empty |= value.has_empty_array and not value.fault
        answer.notes.update({value.fault, "lenient-json" * value.is_lenient} - {""})
        if value.fault == "truncated":
            break
    if blocks > 1:
        answer.notes.add("several-blocks")


# --- tokens of the model, or brackets between its tags

_DIGITS = re.compile(r"-?\d+(?:\.\d+)?")
TAGS = re.compile(r"</?s>|<pad>|<\|im_end\|>")
"""Tags that begin and end every answer."""
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
    corners: Callable[[list[float]], list[float]] = list
    """Returns x1, y1, x2, y2 of these numbers; nothing for a bad box."""
    box_key: str = ""  # JSON dialects have one


def _between(begin: str, end: str, characters: str, label: tuple[str, str]) -> str:
    """Return the expression of boxes between tags, after a label between two others."""
    of_label = rf"(?:{label[0]}(?P<label>[^<]*){label[1]}\s*)?"
    return rf"{of_label}{begin}(?P<boxes>(?:{characters})*)(?P<end>{end})?"


def _tags(begin: str, end: str) -> tuple[str, str]:
    return rf"<\|{begin}\|>", rf"<\|{end}\|>"


_BRACKETS, _IN_BRACKETS = r"[\[\]\d\s,.-]", r"\[[^\[\]]*\d[^\[\]]*\]?"
_PATCHES, _PHRASE = r"<patch_index_\d+>|</delimiter_of_multi_objects/>", ("<phrase>", "</phrase>")
_REF, _BOX = _tags("object_ref_start", "object_ref_end"), _tags("box_start", "box_end")


def cells(pair: list[float]) -> list[float]:
    """Return the corners of two cells of 32 by 32, as fractions of the image; nothing beyond."""
    if max(pair) > 1023:
        return []
    (row1, column1), (row2, column2) = (divmod(cell, 32) for cell in pair)
    if row1 == row2 or column1 == column2:
        return [column1 / 32, row1 / 32, (column2 + 1) / 32, (row2 + 1) / 32]
    return [(cell + 0.5) / 32 for cell in (column1, row1, column2, row2)]


PALIGEMMA = TokenDialect(
    r"(?P<boxes>(?:<loc\d{4}>\s*)+)(?:<seg\d{3}>\s*)*(?P<end>(?P<label>[^<;]*))"
)
FLORENCE_2 = TokenDialect(r"(?P<boxes>(?:<loc_\d+>)+)", r"(?:<loc_\d+>){1,4}")
KOSMOS_2 = TokenDialect(
    _between("<object>", "</object>", _PATCHES, _PHRASE), r"(?:<patch_index_\d+>)+", 2, cells
)
REX_OMNI = TokenDialect(_between(*_BOX, r"<\d+>|[,\s]|None", _REF), r"[^,\s][^,]*")
QWEN2_VL = TokenDialect(_between(*_BOX, r"[()\d\s,.-]", _REF), r"\(.+")
INTERNVL = TokenDialect(_between("<box>", "</box>", _BRACKETS, ("<ref>", "</ref>")), _IN_BRACKETS)
DEEPSEEK_VL2 = TokenDialect(
    _between(*_tags("det", "/det"), _BRACKETS, _tags("ref", "/ref")), _IN_BRACKETS
)
COGVLM = TokenDialect(
    r"(?P<label>)\[\[(?=[\d\s\]])(?P<boxes>[\d\s,;.-]*)(?P<end>\]\])?", r"[^;]*\d[^;]*"
)


def read_tokens(text: str, dialect: TokenDialect, answer: Answer) -> None:
    """Add the boxes of an answer in tokens."""
    end, last_label = 0, ""
    for match in re.finditer(dialect.boxes, text):
        groups = match.groupdict()
        between = text[end : match.start()].rpartition(">")[2]
        label = groups.get("label", between) or ""
        if not label and not between.strip(" ,\n"):
            label = last_label  # several boxes of one label
        end, last_label = match.end(), label
        boxes = re.findall(dialect.box, groups["boxes"].strip(), re.DOTALL)
        shown = quote(match[0])
        has_end = bool((groups.get("end") or "").strip())
        at_end = not has_end and _PART_OF_TAG.match(text, end) is not None
        if at_end and "end" in groups:
            answer.notes.add("truncated")
        if has_end and boxes in ([], ["None"]):
            answer.is_empty = True
            continue
        for index, box in enumerate(boxes, 1):
            numbers = [float(number) for number in _DIGITS.findall(box)]
            is_last = index == len(boxes)
            is_cut = is_last and not has_end and box.strip()[-1] not in ">)]"
            is_whole = len(numbers) == dialect.numbers and not is_cut
            if at_end and is_last and not is_whole:
                answer.notes.add("truncated")
            elif box.strip() != "None":
                answer.add(label, dialect.corners(numbers) if is_whole else None, shown)
    if _UNFINISHED.search(text[end:]):
        answer.notes.add("truncated")
