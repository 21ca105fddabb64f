"""The report as text for people: one layout, in colour on a terminal.

The layout is computed here, for a given width, as lines of pieces of text, each with the part it
plays. Only colour needs rich, which takes 0.04 s to import: without colour it is left alone.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import zip_longest
from math import isnan
from typing import NamedTuple

from detap.names import fold, printable, width
from detap.report.model import Block, Cell, Column, Report, Table
from detap.report.numbers import RULE, UNDEFINED, in_column, share
from detap.report.sinks.registry import Style

Piece = tuple[str, str]
"""Text, and the part it plays: a key of `COLOURS`, or empty."""
Line = list[Piece]

COLOURS = {
    "heading": "bold",
    "rule": "dim",
    "dim": "dim",
    "total": "bold",
    "low": "red",
    "middle": "yellow",
    "high": "green",
    "title": "bold",
    "passed": "bold green",
    "warning": "bold yellow",
    "failed": "bold red",
}
_NAME_WIDTH = 24  # of a long name, what other columns give way to
_LEAST_NAME = 8
_VERDICTS = ("failed", "warning", "passed")  # the worst first
_MARKS = ("FAILED", "passed")  # verdicts, where a row has one
_WORDS = ("name", "text")  # kinds of columns that begin on the left


def render(report: Report, style: Style) -> str:
    """Return the report as lines of text."""
    return draw(_lines(report, style), style)


def draw(lines: Sequence[Line], style: Style) -> str:
    """Return lines as text, with terminal colours where the style has them."""
    if style.colour:
        return _coloured(lines)
    return "".join("".join(text for text, _ in line).rstrip() + "\n" for line in lines)


def _coloured(lines: Sequence[Line]) -> str:
    from io import StringIO  # these cost 0.04 s, on terminals alone

    from rich.console import Console
    from rich.text import Text

    console = Console(file=StringIO(), force_terminal=True, highlight=False, markup=False)
    with console.capture() as capture:
        for line in lines:
            text = Text.assemble(*((piece, COLOURS.get(part, "")) for piece, part in line))
            console.print(text, soft_wrap=True, crop=False, overflow="ignore")
    return capture.get()


def _lines(report: Report, style: Style) -> list[Line]:
    lines: list[Line] = []
    if report.answer:
        answer = _wrapped(printable(report.answer), style.width)
        lines = [[(piece, "title")] for piece in answer]
    failed = _failed_names(report)
    # Of what could not be read there are no classes to show.
    if report.table.rows or report.summary:
        lines += [*([[]] if lines else []), *table_lines(report.table, style, failed)]
    if report.summary:
        lines += [[], *_summary_lines(report, style, failed)]
    for block in report.blocks:
        lines += [[], *_block_lines(block, style)] if lines else _block_lines(block, style)
    if report.signature:
        lines += [[], [(printable(report.signature), "dim")]]
    return lines


def _failed_names(report: Report) -> frozenset[str]:
    """Return the names of the numbers whose gate failed."""
    if not any(block.verdicts for block in report.blocks):
        return frozenset()
    from detap.report.sections.gates import checks_of  # only with gates

    return frozenset(check["name"] for check in checks_of(report).failed)


def _block_lines(block: Block, style: Style) -> Iterator[Line]:
    if block.title:
        worst = next((word for word in _VERDICTS if word in block.verdicts), "title")
        yield [(block.title, worst)]
    if block.table is not None:
        yield from table_lines(block.table, style)
    for line, verdict in zip_longest(block.lines, block.verdicts, fillvalue=""):
        first, *rest = _wrapped(printable(line), style.width)
        word = len(first.partition(" ")[0]) if verdict else 0
        yield [(first[:word], verdict), (first[word:], "")]
        yield from ([(piece, "")] for piece in rest)


# --- the summary: a number per line, its name written out in aligned parts


def _summary_lines(
    report: Report, style: Style, failed: Container[str] = frozenset()
) -> list[Line]:
    names = list(report.summary)
    most = max(width(name) for name in names)
    indent = most + 2 + 6 + 2
    titles = [report.titles.get(name, ()) for name in names]
    lines: list[Line] = []
    if _title_width(titles) > style.width - indent:
        # What all have in common is said once.
        common = [parts[0] for parts in zip_longest(*titles) if len(set(parts)) == 1]
        titles = [tuple(part for part in parts if part not in common) for parts in titles]
        shorter, ending = _without_ending(titles)
        if ending and _title_width(titles) > style.width - indent >= _title_width(shorter):
            titles, common = shorter, [*common, ending]
        if common:
            lines.append([(", ".join(common), "dim")])
    sizes = _part_sizes(titles)
    aligned = _title_width(titles) <= style.width - indent
    for number, name in enumerate(names):
        value = report.summary[name]
        part = _part(value) if number == 0 else "dim" if isnan(value) else ""
        part = "failed" if name in failed else part
        line: Line = [(f"{name:<{most}}  ", "title" if number == 0 else "")]
        line.append((f"{share(value, 4):>6}", part))
        words = titles[number]
        if aligned:
            words = (
                "  ".join(f"{word:<{size}}" for word, size in zip(words, sizes, strict=False)),
            )
        first, *rest = _wrapped(", ".join(words), style.width - indent)
        line.append((f"  {first}", "dim"))
        lines += [line, *([(" " * indent + piece, "dim")] for piece in rest)]
    return lines


def _without_ending(titles: Sequence[tuple[str, ...]]) -> tuple[list[tuple[str, ...]], str]:
    """Return the titles without the words in which all their last parts end, and these in short.

    Of "at most 10 per image" and "at most 100 per image" it is "at most ... per image".
    """
    words = [parts[-1].split(" ") if parts else [""] for parts in titles]
    columns = zip(*(reversed(last) for last in words), strict=False)
    alike = [len(set(column)) == 1 for column in columns]
    count = min((*(n for n, same in enumerate(alike) if not same), len(words[0]) - 1))
    if not count or len(words) < 2:
        return list(titles), ""
    kept = [" ".join(last[:-count]) for last in words]
    begin = [word for word in words[0][:-count] if all(word in last for last in words)]
    said = " ".join([*begin, "\N{HORIZONTAL ELLIPSIS}", *words[0][-count:]])
    return [(*parts[:-1], last) for parts, last in zip(titles, kept, strict=True)], said


def _part_sizes(titles: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(width, parts)) for parts in zip_longest(*titles, fillvalue="")]


def _title_width(titles: Sequence[Sequence[str]]) -> int:
    sizes = _part_sizes(titles)
    return sum(sizes) + 2 * (len(sizes) - 1)


def _wrapped(text: str, limit: int) -> list[str]:
    from textwrap import wrap  # seldom needed

    if width(text) <= limit:
        return [text]
    return wrap(text, max(limit, 20), break_long_words=False, break_on_hyphens=False) or [""]


# --- tables: the richest layout that fits, folded names, side by side where nothing else helps


class _Shape(NamedTuple):
    """How much a table shows of itself."""

    long_headings: bool
    decimals: int
    gap: int
    priority: int

    def columns(self, table: Table) -> tuple[Column, ...]:
        return tuple(column for column in table.columns if column.priority <= self.priority)

    def heading(self, column: Column) -> str:
        return column.heading if self.long_headings else column.short

    def cell(self, column: Column, value: Cell) -> str:
        if value is None:
            return UNDEFINED
        if isinstance(value, str):
            return printable(value)
        return in_column(column.kind, value, self.decimals)


_SHAPES = (
    _Shape(long_headings=True, decimals=4, gap=2, priority=2),
    _Shape(long_headings=True, decimals=4, gap=2, priority=1),
    _Shape(long_headings=False, decimals=4, gap=2, priority=1),
    _Shape(long_headings=True, decimals=4, gap=2, priority=0),
    _Shape(long_headings=False, decimals=4, gap=2, priority=0),
    _Shape(long_headings=False, decimals=3, gap=2, priority=0),
    _Shape(long_headings=False, decimals=3, gap=1, priority=0),
)


def table_lines(table: Table, style: Style, failed: Container[str] = frozenset()) -> list[Line]:
    """Return the lines of a table: headings, a rule, rows, and totals under another rule.

    Numbers whose gate has failed, by the names that gates have for them, are shown so.

    The layout is the richest of which all columns fit; at least those of priority 0 are shown.
    Where even these do not fit they are shown in several parts, each with the names.
    """
    known: dict[tuple[Column, int], int] = {}
    for shape in _SHAPES:
        columns = shape.columns(table)
        sizes = _sizes(table, shape, columns, known)
        room = style.width - sum(sizes[1:]) - shape.gap * (len(columns) - 1)
        if room >= min(sizes[0], _NAME_WIDTH):
            break
    if room < min(sizes[0], _LEAST_NAME):
        return _parts(table, shape, columns, sizes, style, failed=failed)
    if style.fold:
        sizes[0] = min(sizes[0], room)
    return _grid(table, shape, columns, sizes, failed)


def _sizes(
    table: Table, shape: _Shape, columns: Sequence[Column], known: dict[tuple[Column, int], int]
) -> list[int]:
    """Return the width of each column; `known` are those of cells, by column and decimals."""
    rows = _all_rows(table)
    for column in columns:
        if (column, shape.decimals) not in known:
            known[column, shape.decimals] = max(
                width(shape.cell(column, row.get(column.key))) for row in rows
            )
    return [max(width(shape.heading(column)), known[column, shape.decimals]) for column in columns]


def _all_rows(table: Table) -> list[Mapping[str, Cell]]:
    rows = list(table.rows)
    if table.totals is not None:
        rows.append(table.totals)
    return rows or [{}]


def _parts(
    table: Table,
    shape: _Shape,
    columns: Sequence[Column],
    sizes: Sequence[int],
    style: Style,
    *,
    failed: Container[str],
) -> list[Line]:
    """Return the table in parts, each of as many columns as fit beside the name."""
    name = min(sizes[0], max(_LEAST_NAME, style.width // 3)) if style.fold else sizes[0]
    lines: list[Line] = []
    for chosen in _split(sizes, style.width - name, shape.gap):
        part = [columns[0], *(columns[number] for number in chosen)]
        lines += [[]] if lines else []
        widths = [name, *(sizes[number] for number in chosen)]
        lines += _grid(table, shape, part, widths, failed)
    return lines


def _split(sizes: Sequence[int], room: int, gap: int) -> list[list[int]]:
    """Return the numbers of the columns behind the name, in groups that fit into the room."""
    groups: list[list[int]] = [[]]
    taken = 0
    for number, size in list(enumerate(sizes))[1:]:
        if groups[-1] and taken + gap + size > room:
            groups.append([])
            taken = 0
        groups[-1].append(number)
        taken += gap + size
    return groups


def _grid(
    table: Table,
    shape: _Shape,
    columns: Sequence[Column],
    sizes: Sequence[int],
    failed: Container[str],
) -> list[Line]:
    rule: Line = [(RULE * (sum(sizes) + shape.gap * (len(sizes) - 1)), "rule")]
    headings = {column.key: shape.heading(column) for column in columns}
    lines = [*_row(shape, columns, sizes, headings, "heading"), rule]
    for row in table.rows:
        part = "dim" if _is_stranger(columns, row) else ""
        missed = _failed(columns, f"class:{row.get(columns[0].key)}.", failed)
        lines += _row(shape, columns, sizes, row, part, failed=missed)
    if table.totals is not None:
        missed = _failed(columns, "", failed) | _failed(columns, "m", failed)  # AP, or mAP
        lines += [rule, *_row(shape, columns, sizes, table.totals, "total", failed=missed)]
    return lines


def _failed(columns: Sequence[Column], prefix: str, failed: Container[str]) -> set[str]:
    """Return the keys of the columns whose number failed a gate, which calls it so."""
    return {column.key for column in columns if f"{prefix}{column.key}" in failed}


def _row(
    shape: _Shape,
    columns: Sequence[Column],
    sizes: Sequence[int],
    row: Mapping[str, Cell],
    part: str,
    *,
    failed: Container[str] = frozenset(),
) -> list[Line]:
    first, *folded = fold(shape.cell(columns[0], row.get(columns[0].key)), sizes[0])
    line: Line = [(first + " " * (sizes[0] - width(first)), part)]
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        value = row.get(column.key)
        text = shape.cell(column, value)
        role = "failed" if column.key in failed else part or _role(column, value)
        gap, filling = " " * shape.gap, " " * (size - width(text))
        line.append((gap + (text + filling if column.kind in _WORDS else filling + text), role))
    return [line, *([(piece, part)] for piece in folded)]


def _is_stranger(columns: Sequence[Column], row: Mapping[str, Cell]) -> bool:
    """Return whether a row takes no part in the means: its first number is undefined."""
    shares = [row.get(column.key) for column in columns if column.kind == "share"]
    return bool(shares) and isinstance(shares[0], float) and isnan(shares[0])


def _role(column: Column, value: Cell) -> str:
    if isinstance(value, float) and isnan(value):
        return "dim"
    if column.kind == "count":
        return "dim" if value == 0 else ""
    if column.key == "AP" and column.graded and isinstance(value, float):
        return _part(value)
    if column.kind == "text" and value in _MARKS:
        return str(value).lower()
    return ""


def _part(value: float) -> str:
    if isnan(value):
        return "dim"
    return "low" if value < 1 / 3 else "middle" if value < 2 / 3 else "high"
