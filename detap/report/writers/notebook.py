"""A result as a notebook table, a dict or a data frame."""

import html
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from detap.errors import UsageError
from detap.escaping import escape
from detap.evaluation.results import Result, class_rows
from detap.report.model import Cell, Column, Report
from detap.report.numbers import UNDEFINED, fraction
from detap.report.sections.detection import detection_report
from detap.report.writers.json import as_dict

if TYPE_CHECKING:
    from pandas import DataFrame


def to_dict(result: Result) -> dict[str, Any]:
    """Return the JSON report of a result as a dict; undefined numbers are None."""
    return as_dict(detection_report(result))


def to_dataframe(result: Result) -> "DataFrame":
    """Return the class rows of the JSON report; undefined numbers are NaN.

    Raises
    ------
    UsageError
        If pandas is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise UsageError(
            "to_dataframe needs pandas: pip install pandas; to_dict has the same without it"
        ) from None

    return pandas.DataFrame(class_rows(result))


def to_html(result: Result) -> str:
    """Return the summary and the classes as HTML, with names escaped."""
    report = detection_report(result)
    name, value = next(iter(report.summary.items()))
    return "".join(
        [
            "<div>",
            f"<p><strong>{_text(name)} {fraction(value, 4)}</strong> ",
            f"<code>{_text(report.signature)}</code></p>",
            _summary(report),
            _classes(report),
            "</div>",
        ]
    )


def _summary(report: Report) -> str:
    headings = ["metric", "value", *(column.heading for column in report.param_columns)]
    rows = (
        (_cell(name, "th"), _cell(fraction(value, 4)), *(_cell(text, "left") for text in params))
        for (name, value), params in zip(
            report.summary.items(), report.params.values(), strict=True
        )
    )
    return _table([_cell(heading, "th") for heading in headings], rows)


def _classes(report: Report) -> str:
    columns = [column for column in report.table.columns if column.priority == 0]
    head = [_cell(column.heading, "th") for column in columns]
    rows = [*report.table.rows, *([report.table.totals] if report.table.totals else [])]
    return _table(head, (_row(columns, row) for row in rows))


def _row(columns: Iterable[Column], row: Mapping[str, Cell]) -> list[str]:
    cells = []
    for column in columns:
        value = row[column.key]
        if column.kind == "name":
            cells.append(_cell(str(value), "left"))
        else:
            shown = UNDEFINED if value is None else value
            cells.append(
                _cell(fraction(float(value), 4) if isinstance(value, float) else str(shown))
            )
    return cells


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    titles = "".join(head)
    heading = f"<thead><tr>{titles}</tr></thead>" if titles else ""
    body = "".join(f"<tr>{''.join(cells)}</tr>" for cells in rows)
    return f"<table>{heading}<tbody>{body}</tbody></table>"


def _cell(text: str, kind: str = "right") -> str:
    if kind == "th":
        return f"<th>{_text(text)}</th>"
    return f'<td style="text-align: {kind}">{_text(text)}</td>'


def _text(name: str) -> str:
    return html.escape(escape(name))
