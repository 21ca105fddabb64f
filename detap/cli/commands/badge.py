"""``detap badge``: one metric of a report as a badge."""

import json
import os
from functools import partial

import click

from detap.cli.command import Command, files
from detap.cli.options import general_options, option, stack
from detap.errors import UsageError
from detap.escaping import escape
from detap.gates.baseline import read_baseline
from detap.io.writing import STDOUT, check_target, write
from detap.report.badge import badge

_badge = partial(option, group="Badge")

badge_options = stack(
    _badge(
        "--metric",
        metavar="NAME",
        help="Metric: AP50, class:person.AP; by default the primary metric.",
    ),
    _badge(
        "--label",
        default="",
        metavar="TEXT",
        help="Label; by default the name of the metric.",
    ),
    _badge(
        "-o",
        "--output",
        "badge_path",
        value_kind="path",
        default=STDOUT,
        metavar="PATH",
        help="Write the badge here; - is stdout. [default: -]",
    ),
)


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
@badge_options
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
