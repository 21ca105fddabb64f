"""``detap compare --agreement``: the agreement of two annotators."""

from dataclasses import replace
from typing import Any

import click
from click.core import ParameterSource

from detap.analysis.agreement import agreement
from detap.cli.gates import finish
from detap.cli.inputs import Inputs
from detap.cli.output import Outputs
from detap.cli.session import Session
from detap.errors import UsageError
from detap.formats.class_map import map_tables
from detap.gates.checks import check
from detap.gates.evaluate import GateResults
from detap.gates.metric_names import Metrics
from detap.report.inputs import describe
from detap.report.sections.agreement import agreement_report
from detap.report.sections.gates import gate_blocks

_GROUPS = ("Input", "Limits of input", "Output", "General", "Settings")
"""Help groups of options that apply."""

_APPLY = frozenset({"agreement", "fail_under", "iou_thresholds", "top"})
_OF_DETECTIONS = frozenset({"gt", "gt_format", "dt_format", "missing_scores"})


def run(session: Session, first: str, second: str, options: dict[str, Any]) -> int:
    """Compare two annotators; return the exit status."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = str(parameter.name)
        is_given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        group = getattr(parameter, "group", "General")  # arguments have none
        if is_given and name not in _APPLY and (group not in _GROUPS or name in _OF_DETECTIONS):
            raise UsageError(f"{parameter.opts[0]} does not apply to --agreement; leave it out")
    iou = 0.5  # which a settings file for detections does not set
    if context.get_parameter_source("iou_thresholds") is ParameterSource.COMMANDLINE:
        values = [value for given in options["iou_thresholds"] for value in given.value]
        if len(values) != 1:
            raise UsageError("--agreement has one IoU threshold: --iou 0.5")
        iou = float(values[0])
    both = [Inputs.from_options({**options, "gt": (path,), "dt": ()}) for path in (first, second)]
    paths = [path for inputs in both for path in inputs.paths()]
    outputs = Outputs.from_options(options, paths, subject="an agreement")
    digests = outputs.needs_digests
    tables = []
    for inputs in both:
        limits = replace(inputs.reading["limits"], digests=digests, empty=True)
        reading = {**inputs.reading, "limits": limits}
        tables.append(replace(inputs, reading=reading).read_ground_truth(inputs.gt))
    tables, _ = map_tables(both[0].class_map, tables, [])
    session.print_time("reading")
    result = agreement(tables[0], tables[1], iou)
    session.print_time("comparing")
    described = []
    for role, table in zip(("first", "second"), tables, strict=True):
        described += describe(role, table.files, digests=digests, images=len(table.images))
    report = agreement_report(result, inputs=described, max_rows=options["top"])
    # Gates write kappa-of-matched.
    dashed = {name.replace(" ", "-"): value for name, value in report.summary.items()}
    metrics = Metrics("F1", report.summary, report.rows, compute_overall=dashed.__getitem__)
    gates = GateResults(gates=tuple(check(options["fail_under"], metrics)))
    report = report.with_blocks(gate_blocks(gates), ())
    status = finish(report, gates.problems, session)
    outputs.write(report, [file for table in tables for file in table.files], quiet=session.quiet)
    return status
