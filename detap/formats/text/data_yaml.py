"""Read a `data.yaml`: image folders and class names.

The reader supports the YAML that such files use: a mapping whose values are words, quoted or not,
lists of words (``- a`` on lines of their own, or ``[a, b]``) and mappings from numbers to words.
Other keys are skipped. Everything else is an error with its line, because a guess could give
classes the wrong names.

Reference: YAML 1.2.2, chapters 7 and 8; the keys are those of Ultralytics' data sets.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from detap.formats.by_name.problems import Problems
from detap.formats.text.lines import decoded_lines, looks_like, number_fault
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.io.stream import read_bytes
from detap.text_input import is_whole, quote

SPLITS = ("val", "test", "train")

_KEY = re.compile(
    r"""(?:([^\s'"#&*!|>%@`\[\]{},?:-][^:#]{0,99})|'([^']{1,99})'|"([^"\\]{1,99})"):(?:[ ]|$)"""
)
_QUOTED = re.compile(r"""'((?:[^']|'')*)'|"((?:[^"\\]|\\.)*)\"""")
_COMMENT = re.compile(r"[ ]#")
_FLOW_PLAIN_END = re.compile(r"[ ]#|[,\[\]{}]|:(?=[ ,\[\]{}]|$)")
_SPECIAL = frozenset("&*!|>%@`[]{},?\"'")
_ESCAPES = {"\\": "\\", '"': '"', "/": "/", "n": "\n", "t": "\t", " ": " "}
_NOTHING = frozenset({"", "~", "null", "Null", "NULL"})
_HINT = "write `names:` as a list, or as a mapping from 0, 1, ... to names"


class DataYaml(NamedTuple):
    """The content of a `data.yaml`.

    Attributes
    ----------
    file : str
    names : tuple of str
        The classes in the order of their numbers; empty without ``names``.
    path : str
        The base folder of `splits`; empty for the folder of the file.
    splits : dict of str to tuple of str
        Folders or image lists by ``train``, ``val`` and ``test``, as far as given.
    keypoints : (int, int) or None
        ``kpt_shape``: keypoints per row, and numbers per keypoint.
    sigmas : tuple of float
        ``kpt_oks_sigmas``, one per keypoint; empty if not given.
    """

    file: str
    names: tuple[str, ...]
    path: str
    splits: dict[str, tuple[str, ...]]
    keypoints: tuple[int, int] | None = None
    sigmas: tuple[float, ...] = ()


class _Fault(Exception):  # noqa: N818 - never seen outside
    """A fault in the file: its line, the message and the hint."""


class _Line(NamedTuple):
    number: int
    text: str

    @property
    def inner(self) -> bool:
        """True if the line belongs to the key above it."""
        return self.text.startswith((" ", "- ")) or self.text == "-"


@dataclass(slots=True)
class _Value:
    """The value of a key: the rest of its line, and the lines below that belong to it.

    `depth` is the number of open brackets.
    """

    line: int
    text: str
    depth: int = 0
    below: list[_Line] = field(default_factory=list)


Word = tuple[int, str]
"""A word and its line number."""


def read_data_yaml(path: Path, limits: Limits = DEFAULT_LIMITS) -> DataYaml:
    """Read a `data.yaml`.

    Raises
    ------
    InputError
        If a key cannot be read; lists every problem.
    """
    file = os.fspath(path)
    problems = Problems(limits.problems)
    data = read_bytes(path, limits)
    appearance = looks_like(data)
    if appearance and not data.lstrip().startswith(b"{"):
        problems.add(file, "", f"looks like {appearance}", "expected a data.yaml")
    problems.raise_any()
    lines = [_Line(*line) for line in decoded_lines(data, file, problems)]
    values: dict[str, _Value] = {}
    with _collect_fault(problems, file):
        values = _keys(lines)
    names: tuple[str, ...] = ()
    path_, splits, keypoints = "", {}, None
    sigmas: tuple[float, ...] = ()
    for key, value in values.items():
        with _collect_fault(problems, file):
            if key == "names":
                names = _names(value)
            elif key == "path":
                path_ = _single(value)
            elif key == "kpt_shape":
                keypoints = _keypoints(value)
            elif key == "kpt_oks_sigmas":
                sigmas = _sigmas(value)
            elif key in SPLITS and (entries := _entries(value)):
                splits[key] = entries
    if "nc" in values and names and not problems.count:
        with _collect_fault(problems, file):
            _check_count(values["nc"], names)
    if sigmas and keypoints and len(sigmas) != keypoints[0]:
        message = f"kpt_oks_sigmas has {len(sigmas)} numbers for {keypoints[0]} keypoints"
        location = f"line {values['kpt_oks_sigmas'].line}"
        problems.add(file, location, message, "give one per keypoint of kpt_shape")
    problems.raise_any()
    return DataYaml(file, names, path_, splits, keypoints, sigmas)


@contextmanager
def _collect_fault(problems: Problems, file: str) -> Iterator[None]:
    """Add a fault raised in the block to the problems."""
    try:
        yield
    except _Fault as fault:
        number, message, hint = fault.args
        problems.add(file, f"line {number}", message, hint)


def _keys(lines: list[_Line]) -> dict[str, _Value]:
    """Return the values of the top-level mapping by their keys."""
    values: dict[str, _Value] = {}
    value: _Value | None = None
    for line in lines:
        if line.text.lstrip(" ").startswith("#"):
            continue
        if value is not None and (line.inner or value.depth > 0):
            value.below.append(line)
            value.depth += _opened(line) if value.depth > 0 else 0
            continue
        if line.text.rstrip() in {"---", "..."} and value is None:
            continue
        match = _KEY.match(line.text)
        if match is None:
            message = f"{quote(line.text)} is not `key: value`"
            raise _Fault(line.number, message, "indent lines that belong to the key above")
        key = _key(match)
        if key in values:
            message = f"duplicate key {quote(key)} (also at line {values[key].line})"
            raise _Fault(line.number, message, "keep one of them")
        text = line.text[match.end() :].strip()
        depth = _opened(_Line(line.number, text)) if text.startswith(("[", "{")) else 0
        values[key] = value = _Value(line.number, text, depth)
    return values


def _key(match: re.Match[str]) -> str:
    return next(group for group in match.groups() if group is not None).rstrip()


def _opened(line: _Line) -> int:
    """Return the number of opening minus closing brackets of a line."""
    try:
        marks = [token for _, token, is_mark in _tokens([line]) if is_mark]
    except _Fault:
        return 0  # reading the value reports the fault
    return sum((mark in "[{") - (mark in "]}") for mark in marks)


# --- values


def _single(value: _Value) -> str:
    """Return a value that is a single word; empty if it is null."""
    if value.below:
        message = f"unexpected {quote(value.below[0].text.strip())}, expected one word"
        raise _Fault(value.below[0].number, message, "write it on the line of the key")
    word = _word(value.line, value.text)
    return "" if word in _NOTHING else word


def _entries(value: _Value) -> tuple[str, ...]:
    """Return a value that is a word or a list of words."""
    if _is_flow(value) or (value.below and not value.text.split("#")[0]):
        words, keys = _collection(value)
        if keys is None:
            return tuple(word for _, word in words)
        raise _Fault(value.line, "is a mapping", "use a folder, an image list, or a list of them")
    word = _single(value)
    return (word,) if word else ()


def _keypoints(value: _Value) -> tuple[int, int] | None:
    words = _entries(value)
    if not words:
        return None
    if len(words) == 2 and all(is_whole(word) and len(word) < 6 for word in words):
        count, size = map(int, words)
        if count > 0 and size in (2, 3):
            return count, size
    message = f"kpt_shape {quote(' '.join(words))} is not [K, 2] or [K, 3]"
    raise _Fault(value.line, message, "write the number of keypoints, and of numbers per keypoint")


def _sigmas(value: _Value) -> tuple[float, ...]:
    words = _entries(value)
    for word in words:
        if number_fault(word) or float(word) <= 0:
            message = f"kpt_oks_sigmas has {quote(word)}, which is not a number above 0"
            raise _Fault(value.line, message, "give one number per keypoint")
    return tuple(map(float, words))


def _names(value: _Value) -> tuple[str, ...]:
    words, keys = _collection(value)
    if keys is not None:
        words = _ordered(words, keys)
    first: dict[str, int] = {}
    for number, word in words:
        if not word:
            raise _Fault(number, "empty name", _HINT)
        if word in first:
            message = f"duplicate class {quote(word)} (also at line {first[word]})"
            raise _Fault(number, message, "list each class once")
        first[word] = number
    if not words:
        raise _Fault(value.line, "no class names", _HINT)
    return tuple(first)


def _ordered(words: list[Word], keys: list[Word]) -> list[Word]:
    """Return words sorted by their keys, which must be 0, 1, ..."""
    word_by_key: dict[int, Word] = {}
    for (number, key), word in zip(keys, words, strict=True):
        if not is_whole(key) or int(key[:9]) >= len(keys) or len(key) > 9:
            message = f"class {quote(key)} is not a number from 0 to {len(keys) - 1}"
            raise _Fault(number, message, "number the classes from 0 without gaps")
        if int(key) in word_by_key:
            first = word_by_key[int(key)][0]
            message = f"duplicate class {key} (also at line {first})"
            raise _Fault(number, message, "list each class once")
        word_by_key[int(key)] = word
    return [word_by_key[key] for key in range(len(word_by_key))]


def _check_count(value: _Value, names: tuple[str, ...]) -> None:
    count = _single(value)
    if count and count != str(len(names)):
        message = f"nc is {quote(count)}, but there are {len(names)} names"
        raise _Fault(value.line, message, "correct one of them")


def _is_flow(value: _Value) -> bool:
    return value.text.startswith(("[", "{"))


def _collection(value: _Value) -> tuple[list[Word], list[Word] | None]:
    """Return the words of a list, or the values and keys of a mapping."""
    if _is_flow(value):
        return _flow(value)
    if value.text and not value.text.startswith("#"):
        message = f"{quote(value.text)} is not a list or mapping"
        raise _Fault(value.line, message, _HINT)
    return _block(value.below)


def _block(lines: list[_Line]) -> tuple[list[Word], list[Word] | None]:
    """Return the items of a list or mapping with one line per item."""
    words: list[Word] = []
    keys: list[Word] = []
    depth = None
    for number, text in lines:
        inner = text.lstrip(" ")
        if depth is None:
            depth = len(text) - len(inner)
        if len(text) - len(inner) != depth:
            raise _Fault(number, "indentation differs from the line above", "indent both equally")
        if inner == "-" or inner.startswith("- "):
            words.append((number, _word(number, inner[1:].strip())))
            continue
        match = _KEY.match(inner)
        if match is None:
            raise _Fault(number, f"{quote(inner)} is not `- name` or `number: name`", _HINT)
        keys.append((number, _key(match)))
        words.append((number, _word(number, inner[match.end() :].strip())))
    if keys and len(keys) != len(words):
        raise _Fault(keys[0][0], "mixes a mapping and a list", _HINT)
    return words, keys or None


def _word(number: int, text: str) -> str:
    """Return the word in the rest of a line, without quotes and comment."""
    match = _QUOTED.match(text)
    if match is not None:
        remainder = text[match.end() :]
        if remainder.strip() and not re.match(r"[ ]+#", remainder):
            raise _Fault(
                number, f"unexpected {quote(remainder.strip())} after a quoted word", "remove it"
            )
        return _unquoted(number, match)
    if text.startswith("#"):
        return ""
    word = text[: _end(_COMMENT, text, 0)].rstrip()
    if word[:1] in _SPECIAL or word.startswith("- ") or ": " in word or word.endswith(":"):
        raise _Fault(number, f"{quote(word)} is not a plain word", "put the name in quotes")
    return word


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.search(text, start)
    return len(text) if match is None else match.start()


def _unquoted(number: int, match: re.Match[str]) -> str:
    single, double = match.groups()
    if single is not None:
        return str(single).replace("''", "'")

    def escaped(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            raise _Fault(number, f"unsupported escape \\{match[1]}", "write the character itself")
        return _ESCAPES[match[1]]

    return re.sub(r"\\(.)", escaped, str(double))


# --- brackets


def _tokens(lines: Iterable[_Line]) -> Iterator[tuple[int, str, bool]]:
    """Yield the words and punctuation of a value in brackets, with their lines."""
    for number, text in lines:
        start = 0
        while start < len(text):
            if text[start] == " ":
                start += 1
            elif text[start] == "#" and (start == 0 or text[start - 1] == " "):
                break
            elif text[start] in "[]{},":
                yield number, text[start], True
                start += 1
            elif text[start] == ":" and text[start + 1 : start + 2] in {"", " ", ",", "]", "}"}:
                yield number, ":", True
                start += 1
            elif match := _QUOTED.match(text, start):
                yield number, _unquoted(number, match), False
                start = match.end()
            elif text[start] in _SPECIAL:
                raise _Fault(number, f"{quote(text[start:])} is not a plain word", _HINT)
            else:
                end = max(_end(_FLOW_PLAIN_END, text, start), start + 1)
                yield number, text[start:end].rstrip(), False
                start = end


def _flow(value: _Value) -> tuple[list[Word], list[Word] | None]:
    """Return the items of ``[a, b]`` or ``{0: a, 1: b}``."""
    tokens = list(_tokens([_Line(value.line, value.text), *value.below]))
    last = tokens[-1][0]
    closing = {"[": "]", "{": "}"}[tokens[0][1]]
    inside = tokens[1:-1]
    if len(tokens) < 2 or tokens[-1][1:] != (closing, True):
        raise _Fault(last, f"the {tokens[0][1]!r} of line {value.line} is not closed", "close it")
    items: list[list[tuple[int, str, bool]]] = [[]]
    for token in inside:
        if token[1:] == (",", True):
            items.append([])
        else:
            items[-1].append(token)
    if not items[-1]:
        items.pop()  # trailing comma
    if closing == "]":
        return [_joined(item, last) for item in items], None
    pairs = [_pair(item, last) for item in items]
    return [word for _, word in pairs], [key for key, _ in pairs]


def _joined(tokens: list[tuple[int, str, bool]], last: int) -> Word:
    """Return the word that tokens form: a name of several words may span lines."""
    marks = [token for _, token, is_mark in tokens if is_mark]
    if not tokens or marks:
        message = f"unexpected {marks[0]!r} in a list of names" if marks else "empty name"
        raise _Fault(tokens[0][0] if tokens else last, message, _HINT)
    return tokens[0][0], " ".join(token for _, token, _ in tokens)


def _pair(tokens: list[tuple[int, str, bool]], last: int) -> tuple[Word, Word]:
    if len(tokens) < 3 or tokens[0][2] or tokens[1][1:] != (":", True):
        raise _Fault(tokens[0][0] if tokens else last, "is not `number: name`", _HINT)
    return tokens[0][:2], _joined(tokens[2:], last)
