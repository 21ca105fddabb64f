"""A badge: one number of a JSON report, as shields.io's endpoint takes it."""

from collections.abc import Mapping
from math import isnan
from typing import Any

from detap.errors import UsageError
from detap.escaping import escape
from detap.gates.baseline import metrics_of_record
from detap.gates.metric_names import resolve
from detap.report.numbers import fraction

COLOURS = {
    "failed": "red",
    "warned": "yellow",
    "passed": "brightgreen",
    "unjudged": "blue",  # no gate says whether the number is a good one
    "undefined": "lightgrey",
}
"""What each outcome is shown in: green only where gates were set, and every one of them passed."""


def badge(record: Mapping[str, Any], name: str | None = None, label: str = "") -> dict[str, Any]:
    """Return a badge, as the JSON that an endpoint serves.

    Parameters
    ----------
    record : mapping
        A JSON report.
    name : str, optional
        The number, as gates call it; by default the headline.
    label : str
        What stands before it; its name where left out.

    Raises
    ------
    UsageError
        Where no number is called so, or several.
    """
    numbers = metrics_of_record(record)
    number, *more = resolve(name, numbers)
    if more:
        raise UsageError(f"{name!r} stands for {1 + len(more)} numbers; a badge shows one")
    value = number.of(numbers)
    known = not isnan(value)
    text = f"{value:.0f}" if known and number.is_count(numbers) else fraction(value, 4)
    return {
        "schemaVersion": 1,
        "label": escape(label or number.text),
        "message": text if known else "undefined",
        "color": COLOURS[outcome_of(record) if known else "undefined"],
    }


def outcome_of(record: Mapping[str, Any]) -> str:
    """Return what came of the gates of a JSON report: a key of :data:`COLOURS`."""
    gates = record.get("gates")
    if gates is None:
        return "unjudged"
    return "failed" if not gates["passed"] else "warned" if gates["warned"] else "passed"
