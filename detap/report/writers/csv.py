"""The main table as CSV (RFC 4180, UTF-8, lines ending in a newline).

Undefined is an empty field. Spreadsheets run a field that begins with ``=``, ``+``, ``-``, ``@``, a
tab or a carriage return as a formula: such a name gets an apostrophe in front. A name that begins
with an apostrophe gets another one: readers remove one leading apostrophe.
"""

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from math import isnan

from detap.escaping import escape
from detap.report.model import Cell, Report
from detap.report.writers.registry import Style

_ACTING = tuple("=+-@'\t\r\uff1d\uff0b\uff0d\uff20")


def render(report: Report, style: Style) -> str:
    """Return the headings and rows of the main table, with all keys of the rows."""
    table = report.table
    keys = list(table.rows[0]) if table.rows else [column.key for column in table.columns]
    return write(keys, ([row[key] for key in keys] for row in table.rows))


def write(headings: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Return CSV text of headings and rows."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(headings)
    writer.writerows([field(value) for value in row] for row in rows)
    return text.getvalue()


def field(value: Cell) -> str:
    """Return a value as a field that spreadsheets do not run."""
    if value is None or (isinstance(value, float) and isnan(value)):
        return ""
    if isinstance(value, str):
        name = escape(value)
        return f"'{name}" if name.startswith(_ACTING) else name
    return repr(value)
