"""The report as text for people: one layout, in colour on a terminal.

The layout is computed here, for a given width, as lines of pieces of text, each with the part it
plays. Only colour needs rich, which takes 0.04 s to import: without colour it is left alone.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import zip_longest
from math import isnan

from detap.names import fold, printable, widest, width
from detap.records import Record
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
_FIRST = Column("", "", "", "share", graded=True)  # of a summary without columns
_OTHER = Column("", "", "", "share")
_ROUNDED = ("share", "change")  # kinds of columns that a layout gives so many decimals


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
    failed: Collection[str] = ()
    if any(block.verdicts for block in report.blocks):
        from detap.report.sections.gates import checks_of  # only with gates

        failed = {check["name"] for check in checks_of(report).failed}
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


def _summary_lines(report: Report, style: Style, failed: Collection[str]) -> list[Line]:
    names = list(report.summary)
    most = widest(names)
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
        column = report.columns.get(name, _OTHER if number else _FIRST)
        part = _role(column, value)
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
    return [widest(parts) for parts in zip_longest(*titles, fillvalue="")]


def _title_width(titles: Sequence[Sequence[str]]) -> int:
    sizes = _part_sizes(titles)
    return sum(sizes) + 2 * (len(sizes) - 1)


def _wrapped(text: str, limit: int) -> list[str]:
    from textwrap import wrap  # seldom needed

    if width(text) <= limit:
        return [text]
    return wrap(text, max(limit, 20), break_long_words=False, break_on_hyphens=False) or [""]


# --- tables: the richest layout that fits, folded names, side by side where nothing else helps


class _Shape(Record):
    """How much a table shows of itself."""

    long_headings: bool
    decimals: int
    gap: int
    priority: int

    def columns(self, table: Table) -> tuple[Column, ...]:
        return tuple(column for column in table.columns if column.priority <= self.priority)

    def headings(self, columns: Sequence[Column]) -> list[str]:
        return [column.heading if self.long_headings else column.short for column in columns]

    def room(self, sizes: Sequence[int], width: int) -> int:
        """Return how wide names can be beside the other columns."""
        return width - sum(sizes[1:]) - self.gap * (len(sizes) - 1)

    def fits(self, sizes: Sequence[int], width: int) -> bool:
        return self.room(sizes, width) >= min(sizes[0], _NAME_WIDTH)


_SHAPES = (
    _Shape(long_headings=True, decimals=4, gap=2, priority=2),
    _Shape(long_headings=True, decimals=4, gap=2, priority=1),
    _Shape(long_headings=False, decimals=4, gap=2, priority=1),
    _Shape(long_headings=True, decimals=4, gap=2, priority=0),
    _Shape(long_headings=False, decimals=4, gap=2, priority=0),
    _Shape(long_headings=False, decimals=3, gap=2, priority=0),
    _Shape(long_headings=False, decimals=3, gap=1, priority=0),
)


class _Cells:
    """The cells of a table as text, those of a column made once for so many decimals."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._rows = [*table.rows, *([] if table.totals is None else [table.totals])]
        self._known: dict[tuple[Column, int], tuple[list[str], int]] = {}

    def of(self, column: Column, decimals: int) -> tuple[list[str], int]:
        """Return the cells of a column, that of the totals last, and the width of the widest."""
        key = column, decimals if column.kind in _ROUNDED else 0
        if key not in self._known:
            values = [row.get(column.key) for row in self._rows]
            texts = [_cell(column.kind, value, decimals) for value in values]
            self._known[key] = texts, widest(texts)
        return self._known[key]

    def sizes(self, shape: _Shape, columns: Sequence[Column]) -> list[int]:
        """Return the width of each column."""
        return [
            max(width(heading), self.of(column, shape.decimals)[1])
            for column, heading in zip(columns, shape.headings(columns), strict=True)
        ]

    def fit(self, shape: _Shape, room: int) -> bool:
        """Return whether all columns fit.

        Where headings are too wide, or the last row, no other cell is made for that.
        """
        columns = shape.columns(self.table)
        sizes = [width(heading) for heading in shape.headings(columns)]
        if not shape.fits(sizes, room):
            return False
        for row in self._rows[-1:]:
            cells = (_cell(c.kind, row.get(c.key), shape.decimals) for c in columns)
            sizes = [*map(max, sizes, map(width, cells))]
        return shape.fits(sizes, room) and shape.fits(self.sizes(shape, columns), room)


def _cell(kind: str, value: Cell, decimals: int) -> str:
    if value is None:
        return UNDEFINED
    return printable(value) if isinstance(value, str) else in_column(kind, value, decimals)


def table_lines(table: Table, style: Style, failed: Collection[str] = ()) -> list[Line]:
    """Return the lines of a table: headings, a rule, rows, and totals under another rule.

    Numbers whose gate has failed, by the names that gates have for them, are shown so.

    The layout is the richest of which all columns fit; at least those of priority 0 are shown.
    Where even these do not fit they are shown in several parts, each with the names.
    """
    cells = _Cells(table)
    shape = next((shape for shape in _SHAPES if cells.fit(shape, style.width)), _SHAPES[-1])
    columns = shape.columns(table)
    sizes = cells.sizes(shape, columns)
    room = shape.room(sizes, style.width)
    if room < min(sizes[0], _LEAST_NAME):
        return _parts(cells, shape, columns, sizes, style, failed=failed)
    if style.fold:
        sizes[0] = min(sizes[0], room)
    return _grid(cells, shape, columns, sizes, failed)


def _parts(
    cells: _Cells,
    shape: _Shape,
    columns: Sequence[Column],
    sizes: Sequence[int],
    style: Style,
    *,
    failed: Collection[str],
) -> list[Line]:
    """Return the table in parts, each of as many columns as fit beside the name."""
    name = min(sizes[0], max(_LEAST_NAME, style.width // 3)) if style.fold else sizes[0]
    lines: list[Line] = []
    for chosen in _split(sizes, style.width - name, shape.gap):
        part = [columns[0], *(columns[number] for number in chosen)]
        lines += [[]] if lines else []
        widths = [name, *(sizes[number] for number in chosen)]
        lines += _grid(cells, shape, part, widths, failed)
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
    cells: _Cells,
    shape: _Shape,
    columns: Sequence[Column],
    sizes: Sequence[int],
    failed: Collection[str],
) -> list[Line]:
    table = cells.table
    rule: Line = [(RULE * (sum(sizes) + shape.gap * (len(sizes) - 1)), "rule")]
    headings = [*map(printable, shape.headings(columns))]
    lines = [*_row(shape, columns, sizes, headings, ["heading"] * len(columns)), rule]
    texts = zip(*(cells.of(column, shape.decimals)[0] for column in columns), strict=True)
    for row, line in zip(table.rows, texts, strict=False):
        part = "dim" if _is_stranger(columns, row) else ""
        missed = _failed(columns, f"class:{row.get(columns[0].key)}.", failed)
        lines += _row(shape, columns, sizes, line, _roles(columns, row, part, missed))
    if table.totals is not None:
        missed = _failed(columns, "", failed) | _failed(columns, "m", failed)  # AP, or mAP
        roles = _roles(columns, table.totals, "total", missed)
        lines += [rule, *_row(shape, columns, sizes, next(texts), roles)]
    return lines


def _failed(columns: Sequence[Column], prefix: str, failed: Collection[str]) -> set[str]:
    """Return the keys of the columns whose number failed a gate, which calls it so."""
    if not failed:
        return set()
    return {column.key for column in columns if f"{prefix}{column.key}" in failed}


def _roles(
    columns: Sequence[Column], row: Mapping[str, Cell], part: str, failed: Collection[str]
) -> list[str]:
    """Return which part each cell of a row plays: the row's own, if that has one."""
    return [
        "failed" if column.key in failed else part or _role(column, row.get(column.key))
        for column in columns
    ]


def _row(
    shape: _Shape,
    columns: Sequence[Column],
    sizes: Sequence[int],
    texts: Sequence[str],
    roles: Sequence[str],
) -> list[Line]:
    first, *folded = fold(texts[0], sizes[0])
    line: Line = [(first + " " * (sizes[0] - width(first)), roles[0])]
    gap = " " * shape.gap
    for column, size, text, role in zip(columns[1:], sizes[1:], texts[1:], roles[1:], strict=True):
        filling = " " * (size - width(text))
        line.append((gap + (text + filling if column.kind in _WORDS else filling + text), role))
    return [line, *([(piece, roles[0])] for piece in folded)]


def _is_stranger(columns: Sequence[Column], row: Mapping[str, Cell]) -> bool:
    """Return whether a row takes no part in the means: its first number is undefined."""
    shares = [row.get(column.key) for column in columns if column.kind == "share"]
    return bool(shares) and isinstance(shares[0], float) and isnan(shares[0])


def _role(column: Column, value: Cell) -> str:
    if isinstance(value, float) and isnan(value):
        return "dim"
    if column.kind == "count":
        return "dim" if value == 0 else ""
    if column.graded and isinstance(value, float):
        good = value if column.higher_is_better else 1 - value
        return "low" if good < 1 / 3 else "middle" if good < 2 / 3 else "high"
    if column.kind == "text" and value in _MARKS:
        return str(value).lower()
    return ""
