"""The report as text, in color on a terminal.

The layout is computed for a given width, as lines of pieces of text, each with its role. Only color
needs rich, which takes 0.04 s to import.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache, partial
from io import StringIO
from itertools import zip_longest
from math import isnan
from operator import attrgetter
from textwrap import wrap
from typing import NamedTuple

from detap.escaping import escape, fold, widest, width
from detap.report.checks import checks_of
from detap.report.model import Block, Cell, Column, Report, Table
from detap.report.numbers import (
    RULE,
    WORDS,
    best_cells,
    described,
    formatted_columns,
    hidden_rows,
    summary_table,
)
from detap.report.writers.registry import Style

Piece = tuple[str, str]  # text and its role: a key of `COLORS`, or empty
Line = list[Piece]

COLORS = {
    "heading": "bold",
    "rule": "dim",
    "dim": "dim",
    "total": "bold",
    "best": "bold",
    "title": "bold",
    "passed": "bold green",
    "warning": "bold yellow",
    "failed": "bold red",
}
_NAME_WIDTH = 24  # of a long name, before other columns are dropped
_LEAST_NAME = 8
_EMPTY_ROWS = 10  # of classes without boxes, shown at most
_VERDICTS = ("failed", "warning", "passed")  # the worst first
_MARKS = {"FAILED": "failed", "passed": "passed"}  # verdicts, where a row has one
_FRACTION = Column("", "", "", "fraction")  # of a summary without columns


def render(report: Report, style: Style) -> str:
    """Return the report as lines of text, with terminal colors if the style has them."""
    lines = _lines(report, style)
    if not style.color:
        return "".join("".join(piece for piece, _ in line).rstrip() + "\n" for line in lines)
    from rich import console, text

    terminal = console.Console(file=StringIO(), force_terminal=True, highlight=False, markup=False)
    with terminal.capture() as capture:
        for line in lines:
            colored = text.Text.assemble(*((piece, COLORS.get(part, "")) for piece, part in line))
            terminal.print(colored, soft_wrap=True, crop=False, overflow="ignore")
    return capture.get()


def _lines(report: Report, style: Style) -> list[Line]:
    lines: list[Line] = []
    if report.conclusion:
        conclusion = _wrapped(escape(report.conclusion), style.width)
        lines += [[], *([(piece, "title")] for piece in conclusion)]
    failed = {check["name"] for check in checks_of(report).failed}
    # Input that could not be read has no classes.
    if report.table.rows or report.summary:
        title: list[Line] = [[(report.title, "title")]] if report.title else []
        # Many classes without boxes are a line with their number.
        table, counts = report.table, ("ground_truths", "ignored", "detections")
        rows = tuple(row for row in table.rows if any(row.get(key) != 0 for key in counts))
        omitted = len(table.rows) - len(rows)
        table = table._replace(rows=rows) if omitted > _EMPTY_ROWS else table
        first = table._replace(rows=table.rows[: table.shown])
        lines += [[], *title, *table_lines(first, style, failed)]
        lines += ([(text, "dim")] for text in hidden_rows(len(table.rows) - len(first.rows)))
        if omitted > _EMPTY_ROWS:
            text = f"{omitted} classes without ground truth and detections are not shown"
            lines += ([(piece, "dim")] for piece in _wrapped(text, style.width))
    if report.summary:
        lines += [[], *_summary_lines(report, style, failed)]
    for block in report.blocks:
        if block_lines := [*_block_lines(block, style)]:
            lines += [[], *block_lines]
    if report.signature:
        lines += [[], [(escape(report.signature), "dim")]]
    return lines[1:]


def _block_lines(block: Block, style: Style) -> Iterator[Line]:
    if block.title:
        worst = next((word for word in _VERDICTS if word in block.verdicts), "title")
        yield [(block.title, worst)]
    if block.table is not None:
        yield from table_lines(block.table, style)
    for line, verdict in zip_longest(block.lines, block.verdicts, fillvalue=""):
        first, *rest = _wrapped(escape(line), style.width)
        word = len(first.partition(" ")[0]) if verdict else 0
        yield [(first[:word], verdict), (first[word:], "")]
        yield from ([(piece, "")] for piece in rest)


# --- the summary: a metric per line, with its parameters


def _summary_lines(report: Report, style: Style, failed: Collection[str]) -> Iterator[Line]:
    table = summary_table(report)
    shown = _layout(table, _texts(table, 4), _LONG, 2)
    headings, *rows = zip(*(_aligned(column, 0) for column in shown), strict=True)
    in_columns = sum(column.size for column in shown) + 2 * (len(shown) - 1) <= style.width
    indent = shown[0].size + 2 + shown[1].size + 2
    if in_columns:
        yield [("  ".join(headings), "heading")]
    for number, (row, (metric, value)) in enumerate(zip(rows, report.summary.items(), strict=True)):
        column = report.columns.get(metric, _FRACTION)
        role = "failed" if metric in failed else _role(column, value)
        line: Line = [(f"{row[0]}  ", "" if number else "title"), (row[1], role)]
        if in_columns:
            yield [*line, ("".join(f"  {text}" for text in row[2:]), "dim")]
            continue
        first, *rest = _wrapped(described(report, metric), style.width - indent)
        yield [*line, (f"  {first}", "dim")]
        yield from ([(" " * indent + piece, "dim")] for piece in rest)


def _wrapped(text: str, limit: int) -> list[str]:
    if width(text) <= limit:
        return [text]
    return wrap(text, max(limit, 20), break_long_words=False, break_on_hyphens=False) or [""]


# --- tables: the most detailed layout that fits, else in several parts


_LONG = attrgetter("heading")
_SHORT = attrgetter("short")
# Headings, decimals, gap between columns, and the highest priority of a column.
_SHAPES = (
    (_LONG, 4, 2, 2),
    (_LONG, 4, 2, 1),
    (_SHORT, 4, 2, 1),
    (_LONG, 4, 2, 0),
    (_SHORT, 4, 2, 0),
    (_SHORT, 3, 2, 0),
    (_SHORT, 3, 1, 0),
)


class _Shown(NamedTuple):
    """The text of a column: heading, cells (totals last) and width."""

    column: Column
    heading: str
    cells: list[str]
    size: int


def table_lines(table: Table, style: Style, failed: Collection[str] = ()) -> list[Line]:
    """Return the lines of a table in the most detailed layout that fits."""
    # Columns of priority 0 are always shown, if needed in several parts, each with the names.
    texts = cache(partial(_texts, table))
    for heading_of, decimals, gap, priority in _SHAPES:
        names, *others = _layout(table, texts(decimals), heading_of, priority)
        room = style.width - sum(gap + column.size for column in others)
        if room >= min(names.size, _NAME_WIDTH):
            break
    parts = [others]
    if room < min(names.size, _LEAST_NAME):
        room = max(_LEAST_NAME, style.width // 3)
        limit = style.width - (min(names.size, room) if style.fold else names.size)
        parts, taken = [[]], 0
        for column in others:
            if parts[-1] and taken + gap + column.size > limit:
                parts.append([])
                taken = 0
            parts[-1].append(column)
            taken += gap + column.size
    if style.fold:
        names = names._replace(size=min(names.size, room))
    lines: list[Line] = []
    for part in parts:
        lines += [[], *_grid(table, [names, *part], gap, failed)]
    return lines[1:]


def _texts(table: Table, decimals: int) -> list[list[str]]:
    return formatted_columns(table, lambda text, _: escape(text), decimals)


def _layout(
    table: Table, texts: Sequence[list[str]], heading_of: Callable[[Column], str], priority: int
) -> list[_Shown]:
    return [
        _Shown(column, heading, cells, max(width(heading), widest(cells)))
        for column, cells in zip(table.columns, texts, strict=True)
        if column.priority <= priority
        for heading in [heading_of(column)]
    ]


def _grid(table: Table, shown: Sequence[_Shown], gap: int, failed: Collection[str]) -> list[Line]:
    columns = [each.column for each in shown]
    rule: Line = [(RULE * (sum(each.size for each in shown) + gap * (len(shown) - 1)), "rule")]
    names, *others = shown
    aligned = zip(*(_aligned(each, gap) for each in others), strict=True)
    texts = zip([escape(names.heading), *names.cells], aligned, strict=True)
    lines = [*_row(names.size, *next(texts), ["heading"] * len(shown)), rule]
    first = next((column.key for column in columns if column.kind == "fraction"), "")
    best = best_cells(table)
    rows = [*table.rows, *([] if table.totals is None else [table.totals])]
    for number, (row, (name, line)) in enumerate(zip(rows, texts, strict=True)):
        if number == len(table.rows):
            lines.append(rule)
            part, prefixes = "total", ["", "m"]  # AP, or mAP
        else:
            # The means exclude classes whose first metric is undefined.
            value = row.get(first)
            part = "dim" if isinstance(value, float) and isnan(value) else ""
            prefixes = [f"class:{row.get(columns[0].key)}."]
        # The gate of a cell is named by a prefix and the key of the column.
        roles = [
            "best"
            if (number, column.key) in best
            else "failed"
            if any(f"{prefix}{column.key}" in failed for prefix in prefixes)
            else part or _role(column, row.get(column.key))
            for column in columns
        ]
        lines += _row(names.size, name, line, roles)
    return lines


def _aligned(shown: _Shown, gap: int) -> list[str]:
    """Return the heading and the cells of a column, as wide as it is, behind a gap."""
    texts = [escape(shown.heading), *shown.cells]
    fillings = [" " * (shown.size - width(text)) for text in texts]
    pairs = zip(fillings, texts, strict=True)
    if shown.column.kind in WORDS:
        return [" " * gap + text + filling for filling, text in pairs]
    return [" " * gap + filling + text for filling, text in pairs]


def _row(size: int, name: str, cells: Sequence[str], roles: Sequence[str]) -> list[Line]:
    first, *folded = fold(name, size)
    line: Line = [(first + " " * (size - width(first)), roles[0])]
    line += zip(cells, roles[1:], strict=True)
    return [line, *([(piece, roles[0])] for piece in folded)]


def _role(column: Column, value: Cell) -> str:
    if isinstance(value, float) and isnan(value):
        return "dim"
    if column.kind == "count":
        return "dim" if value == 0 else ""
    return _MARKS.get(str(value), "") if column.kind == "text" else ""
