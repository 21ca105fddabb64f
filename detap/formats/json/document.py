"""A JSON file that is read once: its members, its lists of records, and their problems."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from threading import Thread
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from detap.core.threads import memory_is_tight
from detap.errors import Problem
from detap.formats.json._fields import DONE, FIRST_WORD, LIMIT, ODD, Fields, Reader, nesting
from detap.io.digest import sha256_of_stream
from detap.io.file_kinds import BYTE_ORDER_MARK
from detap.io.json_text import (
    FURTHER_TEXT,
    HOLDS_CONSTANTS,
    JsonText,
    NotJsonError,
    integer,
    short_json,
    text_of,
)
from detap.io.limits import Limits
from detap.io.paths import STDIN, Path, shown
from detap.io.problems import FaultError, Problems
from detap.io.remote import new_hash
from detap.io.stream import Stream, read_bytes
from detap.tables._loops import number
from detap.tables.detection import Integers, Name

Record = dict[str, Any]
_MANY = 1 << 60
_MOST_PROBLEMS = 100_000
"""Problems of records after which others are counted only."""
_SUSPECT = 10_000
"""Wrong records after which the size of the whole file is checked before the rest is read."""
MISSING = np.iinfo(np.int64).min


class RecordProblems(Problems):
    """Problems in the order of the records, whenever they are added.

    `section` is that of the list, and `index` the record that is read, or behind all.
    """

    def __init__(self, limit: int, file: str) -> None:
        super().__init__(limit, file)
        self.section, self.index = 0, _MANY

    def at(self, index: int, location: str, message: str, hint: str = "") -> None:
        """Add a problem of a record of the section."""
        if self.has_room:
            position = self.section, index, self.count
            self._insert(position, Problem(self.file, location, message, hint))
        else:
            self.count += 1

    @property
    def has_room(self) -> bool:
        """False if there are so many problems that others are only counted, which is faster."""
        return self.count < _MOST_PROBLEMS

    def extend(self, *problems: Problem) -> None:
        """Add problems of the record that is read, or after those of all records so far."""
        for problem in problems:
            self._insert((self.section, self.index, self.count), problem)

    def add_first(self, location: str, message: str, hint: str = "") -> None:
        """Add a problem before all others."""
        self._insert((-1, 0, 0), Problem(self.file, location, message, hint))


class JsonFile:
    """A JSON file to be read; its progress may be asked for from another thread."""

    def __init__(self, path: Path) -> None:
        self.path = os.fspath(path)
        self.sha256 = ""  # of standard input, or if the limits require digests
        self._reader: Reader | None = None
        self._size = 0
        self._is_read = False
        self._thread: Thread | None = None
        self._parsed: Any = None
        self._error: BaseException | None = None  # of the thread

    def begin(self, parse: "Callable[[JsonFile], Any]") -> None:
        """Begin to parse the file in a thread; the compiled walk of records has no GIL."""
        if not memory_is_tight():
            self._thread = Thread(target=self._parse, args=(parse,), daemon=True)
            self._thread.start()

    def _parse(self, parse: "Callable[[JsonFile], Any]") -> None:
        try:
            self._parsed = parse(self)
        except BaseException as error:  # raised in the caller's thread
            self._error = error

    def parsed(self, parse: "Callable[[JsonFile], Any]") -> Any:
        """Return the result of the thread, or parse the file now, once."""
        if self._thread is not None:
            self._thread.join()
        elif self._parsed is None:
            self._parsed = parse(self)
        if self._error is not None:
            raise self._error
        return self._parsed

    @contextmanager
    def opened(self, limits: Limits) -> "Iterator[Document]":
        """Open the file as a document, which can be read again later."""
        try:
            with Stream(self.path, limits) as stream:
                data = stream.read_all() if self.path == STDIN else None
                read = stream.read if data is None else BytesIO(data).read
                self._size = stream.size
                self._reader = Reader(read, limits.file_bytes, limits.nesting)
                again = partial(read_bytes, self.path, limits)
                content = again if data is None else partial(bytes, data)
                yield Document(self._reader, content, shown(self.path), limits)
                if data is not None:
                    self.sha256 = new_hash(data).hexdigest()
                elif limits.digests:
                    self.sha256 = stream.sha256() or sha256_of_stream(stream)
                stream.check_unchanged()
        finally:
            self._is_read = True

    def fraction(self) -> float:
        """Return the fraction of the file read so far, where known."""
        if self._is_read or self._reader is None or not self._size:
            return float(self._is_read)
        return min(self._reader.given / self._size, 1.0)


class Document:
    """A JSON file and a position in it; `content` returns the whole file, to explain a fault."""

    def __init__(
        self, reader: Reader, content: Callable[[], bytes], file: str, limits: Limits
    ) -> None:
        self.reader = reader
        self.content = content
        self.limits = limits
        self.problems = RecordProblems(limits.problems, file)
        self._text = JsonText("", self.problems)
        self.constants = 0  # NaN and Infinity in the last value
        self.depth = 1
        self.current: RecordList | None = None
        self.peek = reader.peek
        reader.begin()

    def members(self) -> Iterator[str]:
        """Step through an object: yield each key, of which the caller reads the value."""
        reader, self.depth = self.reader, 2
        keys: set[str] = set()
        reader.skip()
        if reader.peek() == "}":
            reader.skip()
            return
        while True:
            self.problems.section += 1
            if reader.peek() != '"':
                self.fail("expected a key in double quotes")
            key: str = self.parse("", -1, 1)
            if reader.peek() != ":":
                self.fail("expected ':'")
            reader.skip()
            reader.peek()
            if key not in keys:
                yield key
            else:
                message = f"duplicate key {short_json(key)} in one object"
                self.problems.add_here("", message, "keep one of them")
                self.skip(key)
            keys.add(key)
            match reader.end_item("}"):
                case True:
                    self.problems.section += 1
                    return
                case None:
                    self.fail("expected ',' or '}'")

    def value(self, name: str) -> Any:
        """Read a member; add problems for repeated keys and NaN."""
        before = self.problems.count
        value = self.parse(name, -1, 1)
        if self.constants and self.problems.count == before:
            self.problems.add_here(name, *HOLDS_CONSTANTS)
        return value

    def skip(self, name: str) -> None:
        """Step over a member as :meth:`value`."""
        if self.peek() == "[":
            RecordList(self, name, Fields()).read()
        else:
            self.value(name)

    def again(self) -> "Document":
        """Return a document at the beginning of the same file."""
        data = self.content()
        reader = Reader(BytesIO(data).read, len(data), self.limits.nesting)
        return Document(reader, self.content, self.problems.file, self.limits)

    def member(self, name: str) -> Any:
        """Read the object up to a member, and return its value; None without it."""
        for key in self.members() if self.peek() == "{" else ():
            if key == name:
                return json.loads(self.reader.value() or b"null", parse_int=integer)
            self.skip(key)
        return None

    def finish(self) -> None:
        """Raise InputError if anything follows the value."""
        if self.reader.peek() or self.reader.failed:
            self.fail(*FURTHER_TEXT)

    def parse(self, name: str, number: int, depth: int) -> Any:
        """Read the next value, at a level below `depth`; `number` is that in the list `name`."""
        self.reader.peek()
        start = self.reader.offset
        data = self.reader.value()
        if data is None or depth + nesting(data) > self.limits.nesting:
            self.fail(start=start)
        text, self.problems.index = self._text, number if number >= 0 else _MANY
        try:
            text.text, text.index, text.constants = data.decode(), 0, 0
            value = text.value(name, number)
        except (UnicodeDecodeError, NotJsonError):
            self.fail(start=start)
        self.problems.index, self.constants = _MANY, text.constants
        if text.index != len(text.text):
            self.fail(start=start)
        return value

    def text(self) -> tuple[bytes, JsonText]:
        """Return the whole file; raise InputError if it is empty, too deep or not UTF-8."""
        data = self.content()
        problems = Problems(self.limits.problems, self.problems.file)
        return data, text_of(data, problems, self.limits, nesting)

    def fail(
        self, message: str = "expected ','", hint: str = "", start: int | None = None
    ) -> NoReturn:
        """Raise InputError for the next byte, or for the value from `start`, or what follows it."""
        offset = self.reader.offset if start is None else start
        current, self.current = self.current, None
        if current is not None and current.drain is not None:
            current.drain()
        data, text = self.text()
        mark = len(BYTE_ORDER_MARK) if data.startswith(BYTE_ORDER_MARK) else 0
        text.index = len(data[mark:offset].decode())
        try:
            if start is not None:
                text.value("")
            if hint:
                raise text.refused(text.index, message, hint)
            raise text.unexpected(text.index, message)
        except NotJsonError as error:
            self.problems.add_first(*text.fault(error))
        self.problems.raise_any()
        raise AssertionError("unreachable")  # pragma: no cover


class RecordList:
    """A list of records, read into the rows of columns."""

    def __init__(
        self,
        document: Document,
        name: str,
        fields: Fields,
        values_of: Callable[[Record], Mapping[str, Any]] | None = None,
    ) -> None:
        self.document = document
        self.name = name
        self.fields = fields
        self.section = 0
        self.drain: Callable[[], None] | None = None
        self.identify: Callable[[int], object] = partial(fields.key_of, "id")
        self.faulty: set[int] = set()
        self.lists = 0  # of the records, which are none
        self._values_of = values_of  # None to step over all
        if values_of is not None:
            fields.most = document.limits.records

    def read(self) -> None:
        """Read the list at the position of the document."""
        document, fields = self.document, self.fields
        reader, depth, problems = document.reader, document.depth, document.problems
        if depth > document.limits.nesting:
            document.text()
        self.section, document.current = problems.section, self
        reader.skip()
        while (state := reader.walk(fields, depth)) != DONE:
            if state == LIMIT:
                problems.add_first(self.location(fields.rows), *document.limits.exceeded)
                problems.raise_any()
            elif state == ODD:
                index, before = fields.rows, problems.count
                fields.append(self._values(index, document.parse(self.name, index, depth)))
                if document.constants and problems.count == before:
                    problems.at(index, self.location(index), *HOLDS_CONSTANTS)
                ended = reader.end_item("]")
                if ended is None:
                    document.fail("expected ',' or ']'")
                if ended:
                    break
            else:
                if self.drain is not None:
                    self.drain()
                fields.drain()
        document.current = None
        if self.drain is not None:
            self.drain()
            self.drain = None  # it refers to this list

    def _values(self, index: int, record: Any) -> Mapping[str, Any]:
        """Return the values of a record, none of a faulty one."""
        if self._values_of is None:
            return {}
        if not isinstance(record, dict):
            self.lists += isinstance(record, list)
            self.fault(index, None, FaultError(f"is {short_json(record)}, expected an object"))
            return {}
        try:
            return self._values_of(record)
        except FaultError as error:
            self.fault(index, record.get("id"), error)
            return {}

    def fault(self, index: int, identifier: object, error: FaultError) -> None:
        """Add the problem of a record."""
        self.faulty.add(index)
        if len(self.faulty) == _SUSPECT:
            self.document.content()  # raises if it expands beyond the limits
        known = identifier if isinstance(identifier, int | str) else None
        problems = self.document.problems
        section, problems.section = problems.section, self.section
        location = self.location(index, known) if problems.has_room else ""
        problems.at(index, location, error.message, error.hint)
        problems.section = section

    def fault_of_row(self, row: int, error: FaultError) -> None:
        """Add the problem of a record that was read."""
        self.fault(row, self.identify(row), error)

    def location(self, index: int, identifier: object = None) -> str:
        """Return the location of a record in messages."""
        suffix = "" if identifier is None else f" (id {short_json(identifier)})"
        return f"{self.name}[{index}]{suffix}"


def loaded(fields: Fields, name: str, row: int) -> Any:
    """Return the value of a row's span; None if it has none."""
    span = fields.span_of(name, row)
    return json.loads(span, parse_int=integer) if span else None


def names_of(fields: Fields, name: str) -> list[Name | None]:
    """Return the id of each row of a column; None where it is missing."""
    names: list[Name | None] = fields.names_of(_keys_of(fields, name).tolist())
    return names


def are_distinct(fields: Fields, name: str) -> bool:
    """Return True if the ids of a column are distinct integers, or missing."""
    keys = _keys_of(fields, name)
    keys = keys[keys != MISSING]
    return bool((keys < FIRST_WORD).all() and (np.diff(np.sort(keys)) > 0).all())


def _keys_of(fields: Fields, name: str) -> NDArray[np.int64]:
    return np.frombuffer(fields.bytes_of(name), np.int64)


class Ids:
    """A column of ids as `rows` of indices of the distinct ids, in order of occurrence.

    Rows without an id have that of another row, if one has any.
    """

    def __init__(self, fields: Fields, column: str) -> None:
        keys = fields.take(column)
        keys[keys == MISSING] = keys.max(initial=MISSING)  # MISSING is the lowest
        keys, self.rows = numbered(keys)
        names = fields.names_of(keys.tolist())
        self.index: dict[Any, int] = {name: i for i, name in enumerate(dict.fromkeys(names))}
        if len(self.index) < len(names):  # written in several ways, with escapes
            self.rows = np.array([self.index[name] for name in names], np.int32)[self.rows]

    def indices(self, index_by_id: Mapping[Name, int]) -> Integers:
        """Return the index of each row's id, -1 for an unknown id."""
        distinct = np.array([index_by_id.get(name, -1) for name in self.index], np.int32)
        return distinct[self.rows]

    @property
    def names(self) -> list[Any]:
        """The distinct ids; None if some are missing."""
        return list(self.index)


def numbered(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], Integers]:
    """Return the distinct keys in order of occurrence, and the index of each row's key."""
    low, high = (int(keys.min()), int(keys.max())) if len(keys) else (0, 0)
    if high - low < max(4 * len(keys), 1 << 20):  # a table is much faster than sorting
        numbers, rows = np.full(high - low + 1, -1, np.int32), np.empty(len(keys), np.int32)
        number(keys, low, numbers, rows)
        codes = np.flatnonzero(numbers >= 0)
        return codes[np.argsort(numbers[codes])] + low, rows
    index: dict[int, int] = {}
    rows = np.array([index.setdefault(key, len(index)) for key in keys.tolist()], np.int32)
    return np.array([*index]), rows
