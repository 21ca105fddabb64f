"""Results and tables in Python: as text, and as HTML for notebooks."""

import html
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from shutil import get_terminal_size
from typing import Any

import numpy as np

from detap.escaping import escape
from detap.report.model import Block, Cell, Report, Table, columns_of
from detap.report.numbers import Grid, fraction, grid_of, rows_of, summary_table
from detap.report.sections import breakdowns, calibration, confusion, errors, operating_point
from detap.report.sections.comparison import comparison_report, detectors_report
from detap.report.sections.data_sets import data_sets_report
from detap.report.sections.detection import detection_report
from detap.report.sections.image import CORNERS
from detap.report.sections.intervals import with_intervals
from detap.report.sections.ranking import classification_report, retrieval_report
from detap.report.writers import text
from detap.report.writers.registry import Style
from detap.tables.detection import Detections, GroundTruth

MOST_ROWS = 100  # of a table that are all shown; of more, the first and last `ENDS`
ENDS = 5
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
_FLAGS = ("crowd", "difficult", "ignore", "group_of")


def to_text(value: Any) -> str:
    """Return the tables of a result or of rows as text, as wide as the terminal."""
    style = Style(width=get_terminal_size((80, 24)).columns, fold=True)
    return text.render(_report(value), style).rstrip("\n")


def to_html(value: Any) -> str:
    """Return the tables of a result or of rows as HTML, with names escaped."""
    return "".join(["<div>", *_parts(_report(value)), "</div>"])


# --- the report of a value


def _report(value: Any) -> Report:
    report = _REPORTS[type(value).__name__](value)
    blocks = (block._replace(table=block.table and _cut(block.table)) for block in report.blocks)
    return replace(report, table=_cut(report.table), blocks=tuple(blocks))


def _cut(table: Table, count: int = 0) -> Table:
    """Return a table without the rows between the first and last of many; it may lack some."""
    if max(count, len(table.rows)) <= MOST_ROWS:
        return table
    between = dict.fromkeys((column.key for column in table.columns), ELLIPSIS)
    return table._replace(rows=(*table.rows[:ENDS], between, *table.rows[-ENDS:]))


def _of_blocks(*blocks: Block) -> Report:
    return Report(kind="", table=Table((), ()), blocks=blocks)


def _names(value: Any) -> list[dict[str, Cell]]:
    return [{"name": name} for name in value.classes]


def _operating_point(value: Any) -> Report:
    scores = {point.score for point in (value.overall, *value.by_class)}
    same = scores.pop() if len(scores) == 1 else None
    return _of_blocks(operating_point.block_of(value, same, _names(value)))


def _rows(value: GroundTruth | Detections) -> Report:
    """Return the report of a table: image, class, corners, and the score or the flags."""
    count = len(value)
    # Rows between the ends of a large table are never formatted.
    shown = range(count) if count <= MOST_ROWS else [*range(ENDS), *range(count - ENDS, count)]
    some = value.select(np.array(shown, np.int64))
    values: dict[str, Sequence[Cell]] = {
        "image": [str(value.images[index]) for index in some.image.tolist()],
        "class": [value.classes[label] for label in some.label.tolist()],
    }
    numbers = dict(zip(CORNERS, some.corners.T, strict=True))
    if isinstance(some, Detections):
        numbers["score"] = some.score
    values |= {key: [f"{x:.6g}" for x in column.tolist()] for key, column in numbers.items()}
    columns = [*columns_of("name", "image", "class"), *columns_of("count", *numbers)]
    if isinstance(some, GroundTruth) and any(getattr(value, flag).any() for flag in _FLAGS):
        columns += columns_of("text", "flags")
        flags = zip(*(getattr(some, flag).tolist() for flag in _FLAGS), strict=True)
        values["flags"] = [
            ", ".join(name for name, is_set in zip(_FLAGS, row, strict=True) if is_set)
            for row in flags
        ]
    table, title = _cut(Table(tuple(columns), rows_of(values)), count), repr(value)
    # Without rows, only the conclusion is text.
    return Report("", table, title=title if count else "", conclusion="" if count else title)


_REPORTS: dict[str, Callable[[Any], Report]] = {
    "Result": detection_report,
    "Comparison": comparison_report,
    "MetricIntervals": lambda v: with_intervals(detection_report(v.result), {None: v}),
    "DataSets": data_sets_report,
    "Detectors": detectors_report,
    "RetrievalResult": retrieval_report,
    "ClassificationResult": classification_report,
    "Errors": lambda v: _of_blocks(*errors.blocks_of(v, _names(v))),
    "Confusion": lambda v: _of_blocks(confusion.block_of(v)),
    "Calibration": lambda v: _of_blocks(calibration.block_of(v, _names(v))),
    "OperatingPoint": _operating_point,
    "Breakdowns": lambda v: _of_blocks(breakdowns.block_of(v, {})),
    "GroundTruth": _rows,
    "Detections": _rows,
}


# --- HTML


def _parts(report: Report) -> Iterator[str]:
    if report.summary:
        name, value = next(iter(report.summary.items()))
        yield (
            f"<p><strong>{_text(name)} {fraction(value, 4)}</strong> "
            f"<code>{_text(report.signature)}</code></p>"
        )
        sides = ["th", "right", *["left"] * len(report.param_columns)]
        yield _table(grid_of(summary_table(report), _text)._replace(sides=sides))
    yield _titled(report.title or report.conclusion, (), report.table)
    for block in report.blocks:
        if block.title:
            yield _titled(block.title, block.lines, block.table)


def _titled(title: str, lines: Iterable[str], table: Table | None) -> str:
    heading = f"<p><strong>{_text(title)}</strong></p>" if title else ""
    sentences = "".join(f"<p>{_text(line)}</p>" for line in lines)
    rows = ""
    if table is not None and (table.rows or table.totals is not None):
        columns = tuple(column for column in table.columns if column.priority == 0)
        rows = _table(grid_of(table._replace(columns=columns), _text))
    return heading + rows + sentences


def _table(grid: Grid) -> str:
    titles = "".join(f"<th>{heading}</th>" for heading in grid.headings)
    body = "".join(f"<tr>{''.join(map(_cell, row, grid.sides))}</tr>" for row in grid.rows)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _cell(content: str, side: str) -> str:
    return (
        f"<th>{content}</th>" if side == "th" else f'<td style="text-align: {side}">{content}</td>'
    )


def _text(name: str, kind: str = "") -> str:
    return html.escape(escape(name))
