"""Rows of a query, an item and a number, from TREC text, CSV or JSON."""

from collections.abc import Iterable, Iterator, Sequence
from math import nan
from typing import Any, NamedTuple

from detap.formats.coco.records import score_of
from detap.formats.shapes.values import json_value, object_of
from detap.formats.text.csv_rows import csv_table
from detap.formats.text.lines import has_columns, number_of
from detap.io.file_kinds import BYTE_ORDER_MARK
from detap.io.json_text import decode, looks_like, short_json
from detap.io.limits import Limits
from detap.io.paths import Path
from detap.io.problems import FaultError, Problems
from detap.io.stream import read_bytes, refuse
from detap.text_input import is_whole


class Form(NamedTuple):
    """A kind of file: runs or relevance judgments."""

    what: str  # its name in messages
    number: str  # the name of its number
    columns: tuple[str, ...]  # of TREC text
    default: float | None = None  # number in CSV and JSON, None if it is required


RUN = Form("a run", "score", ("query", "Q0", "item", "rank", "score", "tag"))
QRELS = Form("judgments", "relevance", ("query", "iteration", "item", "relevance"), 1.0)

SYNONYMS = {
    "query": ("query", "query_id", "qid", "q_id"),
    "item": ("item", "item_id", "doc", "doc_id", "docid", "docno", "document"),
    "score": ("score", "sim"),
    "relevance": ("relevance", "rel", "grade", "label"),
}
"""Accepted column names and keys in CSV and JSON."""

Row = tuple[int, str, str, float]
"""A line, or record counted from 1, with its query, item and number."""


class Rows:
    """The rows of a file, in order; `unit` is "line" or "record"."""

    def __init__(self, unit: str, rows: Iterable[Row]) -> None:
        self.unit = unit
        self.location: list[int] = []
        self.query: list[str] = []
        self.item: list[str] = []
        self.number: list[float] = []
        for location, query, item, number in rows:
            self.location.append(location)
            self.query.append(query)
            self.item.append(item)
            self.number.append(number)

    def repeated(self) -> Iterator[tuple[int, int]]:
        """Yield each row of the same query and item as another, and the first of these."""
        first: dict[tuple[str, str], int] = {}
        for row, pair in enumerate(zip(self.query, self.item, strict=True)):
            earlier = first.setdefault(pair, row)
            if earlier != row:
                yield row, earlier

    def location_of(self, row: int) -> str:
        """Return the location of a row for messages, such as ``line 3``."""
        return f"{self.unit} {self.location[row]}"


def read_rows(path: Path, form: Form, problems: Problems, limits: Limits) -> Rows:
    """Return the rows of a file in any of the three formats; collect problems.

    Raise InputError if the file cannot be read, or is of another kind.
    """
    data = read_bytes(path, limits)
    start = data.removeprefix(BYTE_ORDER_MARK).lstrip()[:1]
    if start in (b"[", b"{"):
        return Rows("record", _from_json(data, form, problems, limits))
    refuse_others(data, form.what, "TREC text, CSV or JSON", problems.file)
    text = decode(data, problems.file)
    first = next((line for line in text.splitlines() if line.strip()), "")
    if "," in first and len(first.split()) != len(form.columns):
        return Rows("line", _from_csv(text, form, problems))
    query, item = form.columns.index("query"), form.columns.index("item")
    rows = text_rows(text, form.columns, form.number, problems)
    return Rows("line", ((line, words[query], words[item], value) for line, words, value in rows))


def refuse_others(data: bytes, what: str, forms: str, file: str) -> None:
    """Raise InputError for data that looks like a web page, an archive, a pickle, ..."""
    name, _ = ("", "") if data.startswith((b"\xff\xfe", b"\xfe\xff")) else looks_like(data)
    if name and name != "Python text, not JSON":
        refuse(file, f"looks like {name}, expected {what}", f"use {forms}")


def text_rows(
    text: str, columns: Sequence[str], number: str, problems: Problems, file: str = ""
) -> Iterator[tuple[int, list[str], float]]:
    """Yield the line, the words and the number of each row of text; collect problems.

    `number` is the title of the column with the number; `file` precedes locations.
    """
    usage = f"write `{' '.join(columns)}`"
    for line, words in enumerate(map(str.split, text.split("\n")), 1):
        if not words:
            continue
        with problems.collected(f"{file}line {line}"):
            if len(words) != len(columns):
                raise FaultError(f"{has_columns(len(words))}, expected {len(columns)}", usage)
            yield line, words, number_in_text(number, words[columns.index(number)])


def _from_csv(text: str, form: Form, problems: Problems) -> Iterator[Row]:
    table = csv_table(text, problems)
    headings = [heading.lower() for heading in next(table, (0, []))[1]]
    columns = {
        name: next((headings.index(word) for word in SYNONYMS[name] if word in headings), -1)
        for name in ("query", "item", form.number)
    }
    if form.default is not None and columns[form.number] < 0:
        del columns[form.number]
    missing = [name for name, index in columns.items() if index < 0]
    if missing:
        have = ", ".join(map(repr, headings[:10]))
        message = f"has no column {' and no column '.join(map(repr, missing))}; it has {have}"
        refuse(problems.file, message, f"write a first line query,item,{form.number}")
    for line, cells in table:
        with problems.collected(f"line {line}"):
            values = {form.number: str(form.default)}
            values |= {name: cells[index] for name, index in columns.items()}
            value = number_in_text(form.number, values[form.number])
            if not values["query"] or not values["item"]:
                raise FaultError("empty query or item", "write both")
            yield line, values["query"], values["item"], value


def _from_json(data: bytes, form: Form, problems: Problems, limits: Limits) -> Iterator[Row]:
    with problems.collected():
        content, _ = json_value(data, problems, limits, f"use {form.what}")
        for number, (where, record) in enumerate(_records(content, form), 1):
            with problems.collected(where):
                yield number, *_cells_of(record, form)


def _records(content: Any, form: Form) -> Iterator[tuple[str, Any]]:
    """Yield the location and content of each record of a list, or of an object of queries."""
    if isinstance(content, list):
        yield from ((f"record {number}", record) for number, record in enumerate(content, 1))
        return
    for query, items in content.items():
        where = f"query {short_json(query)}"
        if not isinstance(items, dict):
            yield where, items
            continue
        for item, number in items.items():
            record = {"query": query, "item": item, form.number: nan if number is None else number}
            yield f"{where}, item {short_json(item)}", record


def _cells_of(record: Any, form: Form) -> tuple[str, str, float]:
    """Return the query, item and number of a record."""
    values = object_of(record, f'write {{"query": ..., "item": ..., "{form.number}": ...}}')
    query, item, number = (
        next((values[word] for word in SYNONYMS[name] if word in values), None)
        for name in ("query", "item", form.number)
    )
    if (query := name_of(query)) is None or (item := name_of(item)) is None:
        raise FaultError("has no query or no item", "write each as text or a whole number")
    value = form.default if number is None else number
    if value is None:
        raise FaultError(f"{form.number} is missing", "use a finite number")
    return query, item, score_of(value, form.number)


def name_of(value: Any) -> str | None:
    """Return a JSON value as a name, or None if it is not one."""
    is_name = isinstance(value, str | int) and not isinstance(value, bool)
    return str(value) or None if is_name else None


def number_in_text(name: str, text: str) -> float:
    """Return the number of a text; raise FaultError if it is not finite, or float64 rounds it."""
    number = number_of(name, text)
    digits = text.lstrip("+-")
    return score_of(int(text), name) if 15 < len(digits) <= 309 and is_whole(digits) else number
