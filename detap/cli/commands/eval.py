"""``detap eval``: score detections against ground truth and report the numbers."""

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from detap.cli.analyses import analysis_options, answers, asks
from detap.cli.gates import Gates, gate_options
from detap.cli.inputs import Inputs, chosen_images, chosen_names
from detap.cli.options import (
    general_options,
    input_options,
    option,
    output_options,
    protocol_options,
    rules_from,
    selection_options,
    stack,
    strict_option,
)
from detap.cli.output import Outputs
from detap.cli.reporting import (
    Evaluated,
    check_report_options,
    other_files,
    report_options,
    tell,
)
from detap.cli.session import Session
from detap.cli.settings.command import ConfiguredCommand, config_options
from detap.errors import DifferenceError
from detap.protocols import Protocol
from detap.report.inputs import describe_inputs

if TYPE_CHECKING:
    from detap.analysis.crosscheck import CrossCheck
    from detap.evaluation.detection import Result
    from detap.report.model import Block
    from detap.tables.detection import Detections, GroundTruth

eval_options = stack(
    option(
        "--tie-range",
        group="Output",
        is_flag=True,
        help="Report bounds that no order of equally scored detections goes beyond.",
    ),
    option(
        "--cross-check",
        group="Output",
        is_flag=True,
        help="Run pycocotools on the same boxes and compare; any difference fails.",
    ),
)


@click.command(cls=ConfiguredCommand)
@input_options
@protocol_options
@selection_options
@gate_options
@analysis_options
@output_options
@report_options
@eval_options
@config_options
@strict_option
@general_options
@click.pass_obj
def command(session: Session, /, **options: Any) -> int:
    """Score detections against ground truth.

    Prints a table per class, the means and the signature of the protocol. Notes go to stderr.
    """
    # numpy would start a thread of its linear algebra for each core, which evaluation never uses.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    inputs = Inputs.from_options(options)
    gates = Gates.from_options(options)
    rules = rules_from(options, Protocol, inputs.format.protocol)
    sources = [*inputs.paths(), *inputs.meant(gates.before), *gates.paths()]
    outputs = Outputs.from_options(options, sources, other_files(options))
    check_report_options(options, rules)
    if options["cross_check"]:
        from detap.analysis.crosscheck import check_supported  # rarely wanted

        check_supported(rules)
    outputs.check()
    return _evaluate(inputs, (rules, gates), outputs, options, session)


def _evaluate(
    inputs: Inputs,
    how: tuple[Protocol, Gates],
    outputs: Outputs,
    options: Mapping[str, Any],
    session: Session,
) -> int:
    rules, gates = how
    digests = outputs.want_digests or gates.want_digests
    inputs = inputs.hashed(digests)
    sources = inputs.begin()
    baseline = gates.read_baseline()
    # numpy is imported here, while threads read the files.
    from detap.evaluation.detection import score_tables, with_advice

    session.timed("starting")
    session.doing("Reading", inputs.fraction(sources))
    truth, detections = inputs.read(sources)
    session.timed("reading")
    session.doing("Evaluating")
    chosen = selected(truth, detections, options)
    earlier = None if gates.before is None else inputs.read_others(gates.before, truth)
    if earlier is not None:
        chosen, earlier = _alike(chosen, selected(truth, earlier, options)[1])
    asked = any(options[name] for name in ("curves", "plots", "tie_range", "cross_check"))
    asked = asked or asks(options) or gates.want_evidence or outputs.want_material
    threads = options["threads"]
    result = with_advice(score_tables(*chosen, rules, threads=threads, evidence=asked))
    before = None
    if earlier is not None:
        before = score_tables(chosen[0], earlier, rules, threads=threads, evidence=True)
    session.timed("evaluating")
    if options["cross_check"]:
        session.doing("Running pycocotools")
    check = _cross_check(result, options)
    slices, slice_notes = gates.read_slices(
        chosen[0].images, lambda name: inputs.format.image_attribute(chosen[0], name)
    )
    found = Evaluated(
        result,
        describe_inputs(truth, detections, digests=digests),
        (*truth.files, *detections.files),
        before=before,
        slices=slices,
        notes=(*(check.notes if check else ()), *slice_notes),
        blocks=[
            *_sections(result, check, options),
            *answers(result, options),
            *selection(result, truth, detections, options),
        ],
    )
    status = tell(found, (gates, baseline), outputs, options, session)
    if check and not check.equal:
        raise DifferenceError(check.verdict)
    return status


def _alike(
    chosen: "tuple[GroundTruth, Detections]", before: "Detections"
) -> "tuple[tuple[GroundTruth, Detections], Detections]":
    from detap.analysis.comparison import numbered_alike  # only with a detector before

    truth, detections = chosen
    detections, before = numbered_alike(detections, before)
    return (truth, detections), before


def _sections(
    result: "Result", check: "CrossCheck | None", options: Mapping[str, Any]
) -> "Iterator[Block]":
    """Yield the sections that were asked for."""
    if check is not None:
        from detap.report.sections.crosscheck import cross_check_block  # seldom

        yield cross_check_block(check)
    if options["tie_range"]:
        from detap.evaluation.tie_range import tie_range
        from detap.report.sections.tie_range import tie_block  # rarely wanted

        yield tie_block(tie_range(result))


def _cross_check(result: "Result", options: Mapping[str, Any]) -> "CrossCheck | None":
    if not options["cross_check"]:
        return None
    from detap.analysis.crosscheck import cross_check  # rarely wanted

    return cross_check(result)


def selected(
    truth: "GroundTruth", detections: "Detections", options: Mapping[str, Any]
) -> tuple["GroundTruth", "Detections"]:
    """Return the tables with only the classes and images that were asked for."""
    classes, images = options["classes"], options["images"]
    if not classes and not images:
        return truth, detections
    from detap.evaluation.detection import select  # imported already

    return select(
        truth,
        detections,
        classes=chosen_names(classes, detections.classes) if classes else None,
        images=chosen_images(images, truth.images) if images else None,
    )


def selection(
    result: "Result", truth: "GroundTruth", detections: "Detections", options: Mapping[str, Any]
) -> "list[Block]":
    """Return what the report says of the choice; nothing where all was scored."""
    classes, images = bool(options["classes"]), bool(options["images"])
    if not classes and not images:
        return []
    from detap.report.sections.selection import selection_block  # seldom wanted

    return [selection_block(result, truth, detections, classes=classes, images=images)]
