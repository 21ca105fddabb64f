"""``detap check``: check ground truth, detections or both."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import click

from detap.checks.boxes import check_boxes
from detap.checks.statistics import examine
from detap.cli.command import Command
from detap.cli.inputs import Inputs
from detap.cli.options import (
    general_options,
    optional_inputs,
    output_options,
    preset_options,
    strict_option,
)
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

_FORMATS = ("table", "json")


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
@strict_option
@general_options
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Check ground truth, detections or both.

    Read the input as eval does. Report errors, suspicious data and statistics.
    """
    session = context.ensure_object(Session)
    inputs = Inputs.from_options(options)
    protocol = inputs.protocol(options)
    outputs = Outputs.from_options(options, inputs.paths())
    for writer in outputs.writers:
        if writer.name not in _FORMATS:
            raise UsageError(f"check writes {' or '.join(_FORMATS)}, not {writer.name}")
    read = _read(inputs.for_protocols(protocol, digests=outputs.needs_digests), protocol)
    _write(read, outputs, session)
    if read.problems:
        raise InputError(read.problems, read.omitted)
    session.check_warnings()


class _Read(NamedTuple):
    """The tables that could be read, and the problems of the others."""

    ground_truth: GroundTruth | None
    detections: Detections | None
    problems: Sequence[Problem]
    omitted: int


def _read(inputs: Inputs, protocol: Protocol) -> _Read:
    """Read both inputs, the detections even if the ground truth is invalid."""
    truth = detections = None
    problems: list[Problem] = []
    omitted = 0
    try:
        truth = inputs.read_ground_truth(inputs.gt) if inputs.gt else None
    except InputError as error:
        problems, omitted = [*error.problems], error.omitted
    try:
        detections = inputs.read_detections(inputs.dt, truth) if inputs.dt else None
    except InputError as error:
        problems, omitted = [*problems, *error.problems], omitted + error.omitted
    except UsageError as error:
        if not problems:
            raise
        problems.append(Problem(escape(inputs.dt[0]), "", f"not checked: {error}"))
    if not problems:
        try:
            [truth], [detections] = map_tables(inputs.class_map, [truth], [detections])
        except InputError as error:
            problems, omitted = [*error.problems], error.omitted
    read = _Read(truth, detections, problems, omitted)
    return read if problems else _checked(read, protocol)


def _checked(read: _Read, protocol: Protocol) -> _Read:
    """Check the boxes as eval does; add its notes or problems."""
    truth, detections = read.ground_truth, read.detections
    for table in (truth, detections):
        if table is not None and protocol.iou_type == "keypoints":
            sigmas = protocol.sigmas if truth is None else sigmas_of(protocol, truth)
            check_skeleton(table, sigmas)
    try:
        notes = check_boxes(truth, detections, boxes=protocol.iou_type == "bbox")
    except InputError as error:
        return read._replace(problems=error.problems)
    if detections is not None:
        return read._replace(detections=replace(detections, notes=(*detections.notes, *notes)))
    assert truth is not None  # one of the two was read
    return read._replace(ground_truth=replace(truth, notes=(*truth.notes, *notes)))


def _write(read: _Read, outputs: Outputs, session: Session) -> None:
    """Compute the statistics and write the report."""
    tables = {"ground_truth": read.ground_truth, "detections": read.detections}
    sources = [(role, table.files) for role, table in tables.items() if table is not None]
    described = (describe(role, files, digests=outputs.needs_digests) for role, files in sources)
    report = data_check_report(
        examine(read.ground_truth, read.detections),
        problems=read.problems,
        omitted=read.omitted,
        inputs=[*chain.from_iterable(described)],
    )
    session.print_notes(report.notes)
    quiet = session.quiet and not (read.problems or session.strict_failed)
    outputs.write(report, [*chain.from_iterable(files for _, files in sources)], quiet=quiet)
