"""A badge: one metric of a JSON report, for the endpoint of shields.io."""

from collections.abc import Mapping
from math import isnan
from typing import Any

from detap.errors import UsageError
from detap.escaping import escape
from detap.gates.baseline import metrics_of_record
from detap.gates.metric_names import resolve
from detap.report.numbers import fraction

COLORS = {
    "failed": "red",
    "warned": "yellow",
    "passed": "brightgreen",
    "unjudged": "blue",  # no gates
    "undefined": "lightgrey",
}
"""The color of each outcome."""


def badge(record: Mapping[str, Any], name: str | None = None, label: str = "") -> dict[str, Any]:
    """Return a badge as JSON for the endpoint."""
    numbers = metrics_of_record(record)
    number, *more = resolve(name, numbers)
    if more:
        raise UsageError(f"{name!r} selects {1 + len(more)} metrics; a badge shows one")
    value = number.of(numbers)
    known = not isnan(value)
    text = f"{value:.0f}" if known and number.is_count(numbers) else fraction(value, 4)
    return {
        "schemaVersion": 1,
        "label": escape(label or number.text),
        "message": text if known else "undefined",
        "color": COLORS[outcome_of(record) if known else "undefined"],
    }


def outcome_of(record: Mapping[str, Any]) -> str:
    """Return the outcome of the gates of a JSON report: a key of :data:`COLORS`."""
    gates = record.get("gates")
    if gates is None:
        return "unjudged"
    return "failed" if not gates["passed"] else "warned" if gates["warned"] else "passed"
