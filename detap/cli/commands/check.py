"""``detap check``: check ground truth, detections or both."""

from dataclasses import replace
from itertools import chain
from typing import Any

import click

from detap.checks.boxes import check_boxes
from detap.checks.statistics import examine
from detap.cli.command import Command
from detap.cli.inputs import Inputs
from detap.cli.options import message_options, optional_inputs, output_options, preset_options
from detap.cli.output import Outputs
from detap.cli.session import Session
from detap.errors import InputError, Problem, UsageError
from detap.escaping import escape
from detap.evaluation.overlaps.keypoints import check_skeleton, sigmas_of
from detap.formats.class_map import map_tables
from detap.protocols import Protocol
from detap.report.inputs import describe
from detap.report.sections.data_checks import data_check_report
from detap.tables.detection import Detections, GroundTruth


@click.command(
    cls=Command,
    first="--gt --dt --format --iou-type --strict --output --output-format --quiet",
    examples={
        "Ground truth and detections": "detap check instances.json results.json",
        "Masks too": "detap check gt.json dt.json --iou-type segm",
        "Pre-commit hook: warnings are errors": "detap check VOC2007/ --strict",
    },
)
@optional_inputs
@preset_options
@output_options
@message_options
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Check ground truth, detections or both.

    Read the input as eval does. Report errors, suspicious data and statistics.
    """
    session = context.ensure_object(Session)
    inputs = Inputs.from_options(options)
    protocol = inputs.protocol(options)
    outputs = Outputs.from_options(
        options, inputs.paths(), subject="a check", formats=("table", "json")
    )
    inputs = inputs.for_protocols(protocol, digests=outputs.needs_digests)
    truth, detections, errors = _read(inputs, protocol)
    problems = [problem for error in errors for problem in error.problems]
    omitted = sum(error.omitted for error in errors)
    tables = {"ground_truth": truth, "detections": detections}
    sources = [(role, table.files) for role, table in tables.items() if table is not None]
    described = (describe(role, files, digests=outputs.needs_digests) for role, files in sources)
    report = data_check_report(
        examine(truth, detections),
        problems=problems,
        omitted=omitted,
        inputs=[*chain.from_iterable(described)],
    )
    session.print_notes(report.notes)
    quiet = session.quiet and not (problems or session.strict_failed)
    outputs.write(report, [*chain.from_iterable(files for _, files in sources)], quiet=quiet)
    if problems:
        raise InputError(problems, omitted)
    session.check_warnings()


def _read(
    inputs: Inputs, protocol: Protocol
) -> tuple[GroundTruth | None, Detections | None, list[InputError]]:
    """Read both inputs, the detections even if the ground truth is invalid; return the errors."""
    truth = detections = None
    errors: list[InputError] = []
    try:
        truth = inputs.read_ground_truth(inputs.gt) if inputs.gt else None
    except InputError as error:
        errors.append(error)
    try:
        detections = inputs.read_detections(inputs.dt, truth) if inputs.dt else None
    except InputError as error:
        errors.append(error)
    except UsageError as error:
        if not errors:
            raise
        errors.append(InputError(Problem(escape(inputs.dt[0]), "", f"not checked: {error}")))
    if errors:
        return truth, detections, errors
    try:
        [truth], [detections] = map_tables(inputs.class_map, [truth], [detections])
        for table in (truth, detections):
            if table is not None and protocol.iou_type == "keypoints":
                sigmas = protocol.sigmas if truth is None else sigmas_of(protocol, truth)
                check_skeleton(table, sigmas)
        notes = check_boxes(truth, detections, boxes=protocol.iou_type == "bbox")
    except InputError as error:
        return truth, detections, [error]
    if detections is not None:
        detections = replace(detections, notes=(*detections.notes, *notes))
    elif truth is not None:
        truth = replace(truth, notes=(*truth.notes, *notes))
    return truth, detections, []
