"""``detap demo``: run three commands on a generated example."""

import os
import shlex
import subprocess
import sys
from importlib.util import find_spec

import click

from detap.cli.command import Command, files
from detap.cli.example import write
from detap.errors import UsageError
from detap.escaping import escape

_TOUR = (
    (
        "The table: how good is yesterday's detector?",
        ("eval", "instances.json", "yesterday.json"),
    ),
    (
        "The gate: is today's worse? Status 1 stops a pipeline.",
        (
            *("eval", "instances.json", "today.json"),
            *("--baseline-detections", "yesterday.json", "--max-drop", "0.02"),
        ),
    ),
    (
        "The page: where does it err?",
        (
            *("report", "instances.json", "today.json"),
            *("--baseline-detections", "yesterday.json", "--images", "pictures", "-o", "page.html"),
        ),
    ),
)


@click.command(
    cls=Command,
    examples={
        "In a new folder detap-demo": "detap demo",
        "In another folder": "detap demo /tmp/tour",
    },
)
@click.argument("folder", metavar="[FOLDER]", default="detap-demo", shell_complete=files)
def command(folder: str) -> None:
    """Run detap on a small example.

    Write twelve images, their ground truth and the detections of two detectors to FOLDER, a new
    folder (detap-demo by default). Then print and run three commands.
    """
    try:
        os.makedirs(folder)
    except OSError as error:
        message = f"{escape(folder)} cannot be made ({error.strerror}); use a new folder"
        raise UsageError(message) from None
    write(folder)
    environment = {name: text for name, text in os.environ.items() if "DETAP_" not in name}
    for title, line in _TOUR:
        if line[0] == "report" and find_spec("jinja2") is None:
            click.echo(f"\n# {title} That needs pip install 'detap[report]'.")
            continue
        click.echo(f"\n# {title}\n$ {shlex.join(('detap', *line))}\n")
        sys.stdout.flush()
        call = [sys.executable, "-m", "detap", *line[:1], "--isolated", *line[1:]]
        status = subprocess.run(call, cwd=folder, env=environment, check=False).returncode
        if status:
            click.echo(f"(status {status})")
        if status > 1:
            raise UsageError(f"the command ended with status {status}; see its message")
    click.echo(f"\nIt is all in {escape(folder)}: look around, and try other commands there.")
