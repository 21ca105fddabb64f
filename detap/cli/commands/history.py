"""``detap history``: metrics over the reports of many runs."""

from typing import Any

import click

from detap.cli.command import Command, files
from detap.cli.options import message_options, option, output_options
from detap.cli.output import Outputs
from detap.cli.session import Session
from detap.gates.history import history, read_runs
from detap.report.sections.history import history_report


@click.command(
    cls=Command,
    first="--metric --strict --output --output-format",
    examples={
        "Every report of a folder": "detap history reports/",
        "One class, as JSON": (
            "detap history reports/*.json --metric class:person.AP --output-format json"
        ),
    },
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", shell_complete=files)
@option(
    "--metric",
    group="History",
    multiple=True,
    metavar="NAME",
    help="Show this metric: AP50, class:person.AP. Repeatable; by default the summary.",
)
@output_options
@message_options
@click.pass_obj
def command(session: Session, /, paths: tuple[str, ...], **options: Any) -> None:
    """Show metrics over the reports of many runs.

    PATH is a JSON report or a folder of them, in order of name. Reports with another ground truth
    or protocol than the last one are in separate tables.
    """
    outputs = Outputs.from_options(options, paths, subject="a history")
    outputs.publish(history_report(history(read_runs(paths), options["metric"])), session)
