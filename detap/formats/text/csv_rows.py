"""Rows of CSV files with a header."""

import csv
from collections.abc import Iterator
from io import StringIO
from typing import NamedTuple

from detap.formats.text.lines import has_columns, looks_like
from detap.io.json_text import decode
from detap.io.problems import FaultError, Problems


class Row(NamedTuple):
    """A row, with its first line in the file."""

    line: int
    values: dict[str, str]


def csv_table(text: str, problems: Problems) -> Iterator[tuple[int, list[str]]]:
    """Yield the line and the values of each row that is not blank; the header first.

    Values have no outer white space. The problems of rows with more or fewer values are collected.
    """
    reader = csv.reader(StringIO(text, newline=""), strict=True, skipinitialspace=True)
    line, expected = 1, 0
    try:
        for record in reader:
            values = [value.strip() for value in record]
            if any(values):
                expected = expected or len(values)
                if len(values) == expected:
                    yield line, values
                else:
                    message = f"{has_columns(len(values))}, expected {expected}"
                    problems.add_here(f"line {line}", message, "write as many as the header has")
            line = reader.line_num + 1
    except csv.Error as error:
        problems.add_here(f"line {reader.line_num}", f"invalid CSV: {error}", "correct the line")


def read_csv(data: bytes, problems: Problems, expected: str) -> tuple[list[str], list[Row]]:
    """Return the header and rows of a CSV file; raise FaultError for other files."""
    kind = looks_like(data)
    if kind or not data.strip():
        raise FaultError(f"looks like {kind}" if kind else "is empty", expected)
    table = csv_table(decode(data, problems.file, 1), problems)
    first, *others = next(table, (0, [""]))[1]
    header = [first.removeprefix("#"), *others]
    for name in sorted({name for name in header if name and header.count(name) > 1}):
        problems.add_here("line 1", f"duplicate column {name}", "keep one")
    return header, [Row(line, dict(zip(header, values, strict=True))) for line, values in table]
