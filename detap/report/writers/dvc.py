"""The metrics as a DVC metrics file: nested JSON, which ``dvc metrics diff`` compares.

Undefined is null. Keys are those of ``Result.metrics``, a level per slash.
"""

from typing import Any

from detap.report.model import Report
from detap.report.numbers import plain
from detap.report.writers.json import dump
from detap.report.writers.registry import Style


def render(report: Report, style: Style) -> str:
    """Return the summary and the metrics of each row."""
    fractions = [column.key for column in report.table.columns if column.kind == "fraction"]
    record: dict[str, Any] = dict(report.summary)
    if report.kind in ("detection", "classification"):
        record["class"] = {
            row["name"]: {key: row[key] for key in fractions} for row in report.table.rows
        }
    return dump(plain(record))
