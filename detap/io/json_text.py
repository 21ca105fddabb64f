"""Walking through a JSON text record by record, strictly, knowing the place of each.

The standard library's scanner parses one record at a time, so that a results file of millions
never stands in memory as objects, and a fault in one record does not hide those of the next.
What `json` would let pass is caught here: NaN, repeated keys, integers of any length, nesting
that overflows the stack.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from detap.io.file_kinds import BYTE_ORDER_MARK, MERGE_MARKER, kind_of
from detap.io.limits import Limits
from detap.io.problems import Problems

HOLDS_CONSTANTS = "holds NaN or Infinity, which is no JSON", "remove it"
"""What is said of :attr:`JsonText.constants`, and what to do."""

_SPACE = re.compile(r"[ \t\n\r]*")
_STRUCTURE = re.compile(r"[,:\]}]|.{20}", re.DOTALL)
_LONGEST_INTEGER = 400
_SHOWN = 60
_NEARBY = 1000
_HEAD = 1 << 16


class NotJsonError(Exception):
    """The text is not JSON from here on.

    Attributes
    ----------
    index : int
        Where in the text.
    message, remedy : str
        What is wrong and what to do.
    """

    def __init__(self, index: int, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.index = index
        self.message = message
        self.remedy = remedy


class LongInteger:
    """An integer of so many digits that converting it would be an attack."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"{self.text[:20]}... ({len(self.text)} digits)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LongInteger) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


def integer(text: str) -> int | LongInteger:
    """Convert the text of an integer, as ``json.loads(parse_int=)`` does, of any length."""
    return int(text) if len(text) <= _LONGEST_INTEGER else LongInteger(text)


def check_text(record: object) -> None:
    """Raise UnicodeEncodeError, a ValueError, if JSON holds half of a surrogate pair.

    Undecodable bytes of file names, as Python escapes them, are not.
    """
    json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogateescape")


def spelt(value: object) -> str:
    """Return a value as the file spells it, cut where it is long."""
    if isinstance(value, LongInteger):
        return repr(value)
    try:
        text = json.dumps(value, default=repr)
    except RecursionError:
        text = "a deeply nested value"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


class JsonText:
    """A JSON text and a position in it.

    Parameters
    ----------
    text : str
        The whole text.
    problems : Problems
        Receives repeated keys; everything else is raised.

    Attributes
    ----------
    index : int
        Where the next value begins.
    constants : int
        How many NaN and Infinity, which are no JSON, were met so far.
    """

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
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    self._repeated.append(key)
                seen.add(key)
        return united

    def _constant(self, name: str) -> float:
        self.constants += 1
        return float(name.replace("Infinity", "inf"))

    def where(self, index: int) -> str:
        """Return the line and column of an index, both counted from 1."""
        line = self.text.count("\n", 0, index) + 1
        column = index - self.text.rfind("\n", 0, index)
        return f"line {line}, column {column}"

    def peek(self) -> str:
        """Return the next character that is no space, or an empty string at the end."""
        match = _SPACE.match(self.text, self.index)
        self.index = match.end() if match else self.index
        return self.text[self.index : self.index + 1]

    def value(self, name: str, number: int = -1) -> Any:
        """Read the value that begins here, whatever it is.

        Parameters
        ----------
        name : str
            What messages call it, or the array that it lies in.
        number : int
            Its number in that array.
        """
        start = self.index
        try:
            value, self.index = self._decoder.raw_decode(self.text, start)
        except json.JSONDecodeError as error:
            raise self._unexpected(error.pos, error.msg) from None
        except RecursionError:
            raise NotJsonError(start, "is nested too deeply", "remove the nesting") from None
        for key in self._repeated:
            self.problems.add(
                name if number < 0 else f"{name}[{number}]",
                f"key {spelt(key)} stands twice in one object",
                "keep one of the two",
            )
        self._repeated.clear()
        return value

    def items(self) -> Iterator[int]:
        """Step through the array that begins here; the caller reads each item.

        Yields
        ------
        int
            The item's index. The position is at its beginning, and must be behind it afterwards.
        """
        self.index += 1
        if self.peek() == "]":
            self.index += 1
            return
        number = 0
        while True:
            yield number
            number += 1
            if self._comma_or("]"):
                return

    def members(self) -> Iterator[str]:
        """Step through the object that begins here; the caller reads each value.

        Yields
        ------
        str
            The key. The position is at the value, and must be behind it afterwards.
        """
        self.index += 1
        if self.peek() == "}":
            self.index += 1
            return
        while True:
            if self.peek() != '"':
                raise self._unexpected(self.index, "a key in double quotes is due")
            key = self.value("")
            if self.peek() != ":":
                raise self._unexpected(self.index, "':' is due")
            self.index += 1
            self.peek()
            yield key
            if self._comma_or("}"):
                return

    def _comma_or(self, end: str) -> bool:
        found = self.peek()
        if found not in (",", end) or not found:
            raise self._unexpected(self.index, f"',' or {end!r} is due")
        self.index += 1
        if found == ",":
            if self.peek() == end:
                raise self._unexpected(self.index, "a comma stands before it")
            return False
        return True

    def finish(self) -> None:
        """Check that nothing follows."""
        if self.peek():
            rest = self.text[self.index : self.index + 20]
            raise NotJsonError(
                self.index,
                f"the JSON value ends here, but {spelt(rest)} follows",
                "a JSON file holds one value: remove what follows",
            )

    def fault(self, error: NotJsonError) -> tuple[str, str, str]:
        """Return as what a reader reports text that is not JSON.

        Returns
        -------
        place, message, remedy : str
            What the text looks like instead, or where it is no longer JSON and why.
        """
        name, remedy = looks_like(self.text[:_HEAD].encode())
        near = self.text[max(0, error.index - _NEARBY) : error.index + _NEARBY]
        if not name and MERGE_MARKER.search(near.encode()):
            name, remedy = _MERGE_CONFLICT
        if name:
            return "", f"looks like {name}", remedy
        return self.where(error.index), error.message, error.remedy

    def _unexpected(self, index: int, message: str) -> NotJsonError:
        rest = self.text[index : index + _SHOWN].rstrip()
        if "Unterminated string" in message or not _STRUCTURE.search(rest):
            return NotJsonError(
                min(index, len(self.text)),
                f"the file is cut off: it ends after {len(self.text)} characters, in the middle of "
                "a value",
                "fetch or write it again",
            )
        found = spelt(rest[:20])
        reason = f": {message[:1].lower()}{message[1:]}"
        return NotJsonError(index, f"is not JSON at {found}{reason}", "write it as JSON")


_HTML = ("an HTML page", "the download failed: fetch the file itself")
_MERGE_CONFLICT = ("a file with unresolved merge conflicts", "resolve them and save it")

_KINDS = {
    "git-lfs": ("a Git LFS pointer", "fetch the file with `git lfs pull`"),
    "pickle": ("a Python pickle", "save it as JSON"),
    "gzip": ("gzip within gzip", "expand it once"),
    "zip": ("a zip archive", "unpack it"),
    "numpy": ("a NumPy array", "save it as JSON"),
    "png": ("an image", "name the JSON file"),
    "jpeg": ("an image", "name the JSON file"),
    "pdf": ("a PDF document", "name the JSON file"),
    "html": _HTML,
    "merge": _MERGE_CONFLICT,
}

_PATTERNS = (
    (re.compile(rb"(?i)\A\s*<(?:head|body)"), *_HTML),
    (re.compile(rb"\A\s*<"), "XML", "use --format voc if it is an annotation of PASCAL VOC"),
    (
        re.compile(rb"\A\s*\{[^\n]*\}[ \t\r]*\n\s*\{"),
        "JSON Lines",
        "put the records into one JSON array",
    ),
    (
        re.compile(
            rb"\A\s*[\[{(]*\s*(?:'|[a-z.]+\(|None\b|True\b|False\b)"
            rb"|[:,\[]\s*(?:None|True|False|array\(|tensor\()\b|[{,]\s*'\w+'\s*:"
        ),
        "Python text, not JSON",
        "write it with json.dump",
    ),
    (re.compile(rb"\A[^\0]{0,64}\0"), "binary data", "name the JSON file"),
)


def looks_like(data: bytes) -> tuple[str, str]:
    """Return what data that is no JSON looks like, and what to do; both empty if unknown.

    Parameters
    ----------
    data : bytes
        The file, or its beginning.
    """
    head = data[:_HEAD]
    kind = kind_of(head)
    if kind:
        return _KINDS[kind]
    for pattern, name, remedy in _PATTERNS:
        if pattern.search(head):
            return name, remedy
    return "", ""


def text_of(
    data: bytes,
    problems: Problems,
    limits: Limits,
    nesting: Callable[[bytes], int],
    due: str = "fetch or write it again",
) -> JsonText:
    """Return a JSON file as a text to walk through, of no deeper nesting than is allowed.

    Parameters
    ----------
    data : bytes
    problems : Problems
    limits : Limits
        `nesting` is obeyed.
    nesting : callable
        Returns how deep arrays and objects lie inside each other, at most.
    due : str
        What to do about an empty file.

    Raises
    ------
    InputError
        Where it is empty, too deep, or in another encoding.
    """
    if not data.strip():
        problems.add("", "is empty", due)
        problems.raise_any()
    text = decode(data, problems)
    depth = nesting(data)
    if depth > limits.nesting:
        problems.add(
            "",
            f"nests arrays and objects {depth} levels deep, {limits.nesting} are allowed",
            "raise the limit on nesting (--max-nesting) if that is meant",
        )
        problems.raise_any()
    return JsonText(text, problems)


def decode(data: bytes, problems: Problems) -> str:
    """Return UTF-8 bytes as text, without a byte order mark.

    Raises
    ------
    InputError
        Where the bytes are in another encoding.
    """
    utf16 = data.startswith((b"\xff\xfe", b"\xfe\xff")) or (
        b"\0" in data[:4] and data[:4].replace(b"\0", b"")[:1] in (b"{", b"[")
    )
    if utf16:
        problems.add("", "is UTF-16 or UTF-32 text, where UTF-8 is due", "save it as UTF-8")
        problems.raise_any()
    try:
        return data.removeprefix(BYTE_ORDER_MARK).decode()
    except UnicodeDecodeError as error:
        name, remedy = looks_like(data)
        if name:
            problems.add("", f"looks like {name}", remedy)
        else:
            where = f"byte {error.start}"
            problems.add(where, f"{data[error.start]:#04x} is not UTF-8", "save it as UTF-8")
        problems.raise_any()
        raise  # pragma: no cover - the line above raises
