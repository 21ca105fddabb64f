"""``detap badge``: one metric of a report as a badge, JSON for the endpoint of shields.io."""

import json
import os
from collections.abc import Mapping
from functools import partial
from math import isnan
from typing import Any

import click

from detap.cli.command import Command, files
from detap.cli.options import general_options, option
from detap.errors import UsageError
from detap.escaping import escape
from detap.gates.baseline import metrics_of_record, read_baseline
from detap.gates.metric_names import resolve
from detap.io.writing import STDOUT, check_target, write
from detap.report.numbers import fraction

COLORS = {
    "failed": "red",
    "warned": "yellow",
    "passed": "brightgreen",
    "unjudged": "blue",  # no gates
    "undefined": "lightgrey",
}
"""The color of each outcome."""

_badge = partial(option, group="Badge")


@click.command(
    cls=Command,
    first="--metric --label --output",
    examples={
        "Primary metric": "detap badge report.json -o badge.json",
        "Another metric and label": (
            'detap badge report.json --metric class:person.AP --label "AP of persons"'
        ),
    },
)
@click.argument("report", metavar="REPORT", shell_complete=files)
@_badge(
    "--metric",
    metavar="NAME",
    help="Metric: AP50, class:person.AP; by default the primary metric.",
)
@_badge(
    "--label",
    default="",
    metavar="TEXT",
    help="Label; by default the name of the metric.",
)
@_badge(
    "-o",
    "--output",
    "badge_path",
    value_kind="path",
    envvar="DETAP_BADGE_OUTPUT",
    default=STDOUT,
    metavar="PATH",
    help="Write the badge here; - is stdout. [default: -]",
)
@general_options
def command(report: str, metric: str | None, label: str, badge_path: str) -> None:
    """Write a badge of a metric of a JSON report.

    Write JSON for the endpoint of shields.io. The badge is red if a gate failed, yellow with a
    warning, green if all gates passed, blue without gates.
    """
    if os.path.splitext(badge_path)[1].lower() not in ("", ".json"):
        message = (
            f"{escape(badge_path)}: a badge is JSON for shields.io, not an image; use a .json file"
        )
        raise UsageError(f"{message} and https://img.shields.io/endpoint?url=ADDRESS")
    check_target(badge_path, [report])
    content = badge(read_baseline(report), metric, label)
    write(badge_path, (json.dumps(content) + "\n").encode(), [report])


def badge(record: Mapping[str, Any], name: str | None = None, label: str = "") -> dict[str, Any]:
    """Return a badge as JSON for the endpoint."""
    numbers = metrics_of_record(record)
    number, *more = resolve(name, numbers)
    if more:
        raise UsageError(f"{name!r} selects {1 + len(more)} metrics; a badge shows one")
    value = number.of(numbers)
    known = not isnan(value)
    text = f"{value:.0f}" if known and number.is_count(numbers) else fraction(value, 4)
    outcome = "unjudged" if known else "undefined"
    if known and (gates := record.get("gates")) is not None:
        outcome = "failed" if not gates["passed"] else "warned" if gates["warned"] else "passed"
    return {
        "schemaVersion": 1,
        "label": escape(label or number.text),
        "message": text if known else "undefined",
        "color": COLORS[outcome],
    }
