"""The report as Markdown, for a pull-request comment or a step summary.

Names are shown as code: plain names between backticks, others with their marks as entities, so that
no name is a link, a mention, a tag or the end of a table cell. The text stays below the limit of a
comment on GitHub or GitLab; the number of omitted rows is given.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, takewhile

from detap.escaping import escape
from detap.report.checks import KEY, MARKS, checks_of, shortened
from detap.report.model import Report, Table
from detap.report.numbers import Grid, fraction, grid_of, summary_table
from detap.report.writers.registry import Style

MOST_CHARACTERS = 65_000  # a comment on GitHub holds 65,536, a step summary 1 MiB

_PLAIN = re.compile(r"[A-Za-z0-9_.:*%/+()=,-]+( [A-Za-z0-9_.:*%/+()=,-]+)*", re.ASCII)
_HARMLESS = frozenset(" ,;.:()%=+-'\N{EN DASH}")
_BOLD = ("FAILED", "warning")


def render(report: Report, style: Style) -> str:
    """Return the report as Markdown that ends in a newline."""
    conclusion = checks_of(report).conclusion
    if not conclusion and report.summary:
        name, value = next(iter(report.summary.items()))
        conclusion = f"{name} {fraction(value, 4)}"
    head = [f"## detap: {conclusion or report.kind.replace('_', ' ')}", ""]
    head += [text_of(report.conclusion), ""] if report.conclusion else []
    head += _gates(report, MOST_CHARACTERS // 2)
    if report.summary:
        head += [*_grid(grid_of(summary_table(report), _words)), ""]
    if report.title:
        head += [f"### {text_of(report.title)}", ""]
    if not report.summary:
        head += _table(report.table, MOST_CHARACTERS)
    tail = [
        f"- {'**warning**' if note.severity == 'warning' else 'info'}: {text_of(note.message)}"
        + (f" ({note.count})" if note.count > 1 else "")
        for note in report.notes
    ]
    if report.signature:
        tail += ["", f"<sub>{code(report.signature)}</sub>"]
    room = MOST_CHARACTERS - _size([*head, *tail])
    for block in report.blocks:
        if block.key == KEY:
            continue
        lines = [f"### {text_of(block.title)}", ""] if block.title else []
        lines += [*(f"- {text_of(line)}" for line in block.lines), *([""] if block.lines else [])]
        lines += [] if block.table is None else _table(block.table, room - _size(lines))
        head += lines
        room -= _size(lines)
    if report.table.rows and report.summary:
        opening = ["<details>", f"<summary>{len(report.table.rows)} rows</summary>", ""]
        closing = ["</details>", ""]
        head += [*opening, *_table(report.table, room - _size(opening + closing)), *closing]
    return "\n".join([*head, *tail]) + "\n"


def code(name: object) -> str:
    """Format a name as code."""
    text = escape(name)
    if _PLAIN.fullmatch(text):
        return f"`{text}`"
    return f"<code>{_entities(text)}</code>"


def text_of(sentence: str) -> str:
    """Escape links, mentions, tags and cell ends of a sentence."""
    # GitHub looks for mentions and issue numbers in the finished page, in which entities are
    # decoded, but not in code.
    text = "".join(
        f"<code>{mark}</code>" if mark in "@#" else mark if mark in _HARMLESS else _entities(mark)
        for mark in escape(sentence)
    )
    return text.replace("www.", "www&#46;")


def _entities(text: str) -> str:
    return "".join(mark if mark.isalnum() or mark in " ,;" else f"&#{ord(mark)};" for mark in text)


def _gates(report: Report, room: int) -> list[str]:
    """Return a table of the gates that fit, failed ones first."""
    checks = checks_of(report).all
    if not checks:
        return []
    rows = [
        (
            f"**{mark}**" if (mark := MARKS[check["status"]]) in _BOLD else mark,
            code(check["name"]),
            text_of(check["message"].removeprefix(check["name"]).strip()),
        )
        for check in shortened(checks)
    ]
    lines, shown = _fitting(Grid(["", "gate", ""], ["left"] * 3, rows), room)
    if shown < len(checks):
        counts = Counter(MARKS[check["status"]] for check in checks[shown:])
        if counts["passed"] == len(checks) - shown:
            text = f"{counts['passed']} more gates passed."
        else:
            parts = ", ".join(f"{count} {mark}" for mark, count in counts.items())
            text = f"{len(checks) - shown} more gates in the JSON report: {parts}."
        lines += ["", text]
    return [*lines, ""]


def _table(table: Table, room: int) -> list[str]:
    """Return a table of the rows that fit."""
    grid = grid_of(table, _words, "**{}**".format)
    lines, shown = _fitting(grid, room)
    if shown < len(grid.rows):
        lines += ["", f"{len(grid.rows) - shown} more rows in the JSON report."]
    return [*lines, ""]


def _words(text: str, kind: str) -> str:
    return code(text) if kind == "name" else text_of(text)


def _size(lines: Sequence[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def _fitting(grid: Grid, room: int) -> tuple[list[str], int]:
    """Return the lines and number of the rows that fit, with a sentence about the others."""
    lines = _grid(grid)
    sizes = accumulate(len(line) + 1 for line in lines)
    shown = max(sum(1 for _ in takewhile(lambda size: size <= room - 200, sizes)) - 2, 0)
    return lines[: shown + 2], shown


def _grid(grid: Grid) -> list[str]:
    marks = [{"left": ":---", "right": "---:"}[side] for side in grid.sides]
    return [f"| {' | '.join(cells)} |" for cells in (grid.headings, marks, *grid.rows)]
