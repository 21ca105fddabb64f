"""``detap baseline``: maintain the report that later ones are compared with."""

import json
import math
import os
from typing import Any

import click

from detap.cli.command import Command, Group, files
from detap.cli.options import general_options, option
from detap.cli.session import Session
from detap.errors import UsageError
from detap.escaping import escape
from detap.gates.baseline import (
    differences,
    raise_baseline,
    read_baseline,
    require_comparable,
    slice_differences,
)
from detap.io.writing import check_target, locked, write, write_stdout
from detap.report.numbers import change
from detap.report.writers.json import dump

_SHOWN = 20


@click.group(cls=Group)
def command() -> None:
    """Maintain the report that later ones are compared with."""


@command.command(
    "update",
    cls=Command,
    examples={
        "Raise the baseline after a better run": (
            "detap baseline update baseline.json report.json"
        ),
    },
)
@click.argument("baseline", metavar="BASELINE", shell_complete=files)
@click.argument("report", metavar="REPORT", shell_complete=files)
@option(
    "--allow-drop",
    group="Baseline",
    is_flag=True,
    help="Also take lower metrics.",
)
@option(
    "--allow-mismatch",
    group="Baseline",
    is_flag=True,
    help="Accept another ground truth or protocol; all metrics are then taken.",
)
@option(
    "--dry-run",
    group="Baseline",
    is_flag=True,
    help="Print the changes only.",
)
@general_options
@click.pass_obj
def update(session: Session, /, baseline: str, report: str, **options: Any) -> None:
    """Raise the metrics of a baseline to those of a new report.

    BASELINE is the JSON report to raise; if it does not exist, REPORT becomes it. REPORT is the
    new JSON report. Print each changed metric.
    """
    if "-" in (baseline, report):
        raise UsageError("a baseline and its new report must be files, not stdin")
    new = read_baseline(report)
    check_target(baseline, [report])
    with locked(baseline):
        record, text = new, f"{escape(baseline)} is new\n"
        if os.path.lexists(baseline):
            old = read_baseline(baseline)
            reasons = differences(new, old)
            tags = new.get("slices", {}).keys() & old.get("slices", {})
            reasons += slice_differences(new, old, tags)
            if reasons and not options["allow_mismatch"]:
                require_comparable(escape(baseline), reasons, "--allow-mismatch")
            text = "replaced: the new report is of another ground truth or protocol\n"
            if not reasons:
                record, changes = raise_baseline(old, new, allow_drop=options["allow_drop"])
                text = _format_changes(changes, len(record.get("retained_metrics", ())))
        if not options["dry_run"]:
            write(baseline, dump(record).encode(), [report])
    write_stdout(text.encode("utf-8", "backslashreplace"))
    session.print_time("updating")


def _format_changes(changes: list[tuple[str, float, float]], retained: int) -> str:
    lines = [
        f"{escape(name)}: {_number(baseline)} -> {_number(current)}"
        + ("" if math.isnan(current - baseline) else f" ({change(current - baseline, 4)})")
        for name, baseline, current in changes[:_SHOWN]
    ]
    if len(changes) > _SHOWN:
        lines.append(f"and {len(changes) - _SHOWN} more")
    if not changes:
        lines.append("no number rose" if retained else "nothing changed")
    if retained:
        lines.append(f"{retained} numbers are lower in the new report; the baseline keeps its own")
    return "".join(f"{line}\n" for line in lines)


def _number(value: float) -> str:
    return "undefined" if math.isnan(value) else json.dumps(value)
