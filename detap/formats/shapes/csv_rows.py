"""Rows of a CSV file with a header."""

import csv
from collections.abc import Iterator
from io import StringIO
from typing import NamedTuple

from detap.errors import InputError
from detap.formats.by_name.problems import Problems
from detap.formats.text.lines import looks_like
from detap.io.json_text import decode
from detap.io.limits import Limits
from detap.io.problems import Problems as FileProblems


class Row(NamedTuple):
    """A row, with its line in the file."""

    line: int
    values: dict[str, str]


class Table(NamedTuple):
    """The rows of a file."""

    header: tuple[str, ...]
    rows: list[Row]


def read_csv(
    data: bytes, file: str, problems: Problems, limits: Limits, expected: str
) -> Table | None:
    """Return the rows of a CSV file; None after collecting a problem.

    Values have no outer white space; blank lines are skipped. A quoted value may not span lines.
    `expected` is the hint for other content.
    """
    kind = looks_like(data)
    if kind or not data.strip():
        message = f"looks like {kind}" if kind else "is empty"
        problems.add(file, "", message, expected)
        return None
    file_problems = FileProblems(file, limits.problems)
    try:
        text = decode(data, file_problems)
    except InputError as error:
        problems.extend(*error.problems)
        return None
    before = problems.count
    lines = _lines(text, file, problems)
    line, header = next(lines, (1, []))
    header[:1] = [name.removeprefix("#") for name in header[:1]]
    rows = []
    for line, values in lines:
        if len(values) == len(header):
            rows.append(Row(line, dict(zip(header, values, strict=True))))
        else:
            message = f"has {len(values)} columns, expected {len(header)}"
            problems.add(file, f"line {line}", message, "write as many as the header has")
    repeated = {name for name in header if name and header.count(name) > 1}
    for name in sorted(repeated):
        problems.add(file, "line 1", f"duplicate column {name}", "keep one")
    return None if problems.count > before else Table(tuple(header), rows)


def _lines(text: str, file: str, problems: Problems) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and values of each line that is not blank."""
    reader = csv.reader(StringIO(text, newline=""), strict=True, skipinitialspace=True)
    before = 0
    try:
        for values in reader:
            if reader.line_num > before + 1:
                message = "a quoted field spans several lines"
                problems.add(file, f"line {before + 1}", message, "write one row per line")
                return
            before = reader.line_num
            if any(values):
                yield before, [value.strip() for value in values]
    except csv.Error as error:
        problems.add(file, f"line {reader.line_num}", f"invalid CSV: {error}", "correct the line")
