"""``detap eval``: score detections against ground truth and report the numbers."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from detap.cli.gates import Gates, gate_options
from detap.cli.inputs import Inputs, chosen_images, chosen_names
from detap.cli.options import (
    general_options,
    input_options,
    option,
    output_options,
    protocol_from,
    protocol_options,
    selection_options,
    stack,
    strict_option,
)
from detap.cli.output import Outputs
from detap.cli.run_reports import (
    Evaluated,
    analysis_options,
    asked_blocks,
    check_report_options,
    other_files,
    report_options,
    requested_sections,
    tell,
)
from detap.cli.session import Session
from detap.cli.settings import ConfiguredCommand, config_options
from detap.engines import ENGINES
from detap.errors import DifferenceError, Note, UsageError
from detap.formats.multi_file import Sources
from detap.io.paths import STDIN
from detap.protocols import Protocol
from detap.report.inputs import describe_inputs
from detap.report.sections import SECTIONS

if TYPE_CHECKING:
    from detap.analysis.crosscheck import CrossCheck
    from detap.tables.detection import Detections, GroundTruth

_cross_check_option = option(
    "--cross-check",
    group="Output",
    is_flag=True,
    help="Run pycocotools on the same boxes; exit with 1 on any difference.",
)

engine_options = stack(
    option(
        "--partial",
        group="Output",
        holds="path",
        metavar="FILE",
        help="Write the match results, for detap merge.",
    ),
    option(
        "--engine",
        group="Engine (for several inputs)",
        type=click.Choice(list(ENGINES)),
        help="Evaluate inputs on workers, started here, one per core.",
    ),
    option(
        "--scheduler",
        group="Engine (for several inputs)",
        metavar="ADDRESS",
        help="Use a running scheduler: tcp://10.0.0.1:8786.",
    ),
    option(
        "--resume",
        group="Engine (for several inputs)",
        holds="path",
        metavar="DIR",
        help="Store the partial of each input here and reuse it if nothing changed.",
    ),
)

_BOXES = (
    *(section.key for section in SECTIONS if section.needs_boxes),
    *("all_analyses", "plots", "cross_check"),
)
"""What is answered from boxes, all of which are then held."""


@click.command(
    cls=ConfiguredCommand,
    first=(
        "--gt",
        "--dt",
        "--format",
        "--protocol",
        "--iou",
        "--classes",
        "--errors",
        "--fail-under",
        "--baseline-detections",
        "--max-drop",
        "--confidence",
        "--output",
        "--output-format",
        "--quiet",
    ),
    examples={
        "COCO": "detap eval --gt instances.json --dt results.json",
        "PASCAL VOC 2007, with a JSON report": (
            "detap eval --gt VOC2007/ --image-set test --dt results/ \\\n"
            "    --protocol voc2007 -o report.json"
        ),
        "CI gate: exit status 1 if AP drops by more than 0.005": (
            "detap eval --gt gt.json --dt new.json --baseline-detections old.json \\\n"
            "    --max-drop 0.005"
        ),
    },
)
@input_options
@protocol_options
@selection_options
@gate_options
@analysis_options
@output_options
@report_options
@_cross_check_option
@engine_options
@config_options
@strict_option
@general_options
@click.pass_obj
def command(session: Session, /, **options: Any) -> int:
    """Score detections against ground truth.

    Print AP per class, the summary and the protocol's signature. Notes go to stderr.
    """
    # numpy would start a thread of its linear algebra for each core, which evaluation never uses.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    inputs = Inputs.from_options(options)
    gates = Gates.from_options(options)
    protocol = protocol_from(options, Protocol, inputs.format.protocol)
    sources = [*inputs.paths(gates.baseline_detections), *gates.paths()]
    outputs = Outputs.from_options(options, sources, other_files(options))
    check_report_options(options, protocol)
    if options["cross_check"]:
        from detap.analysis.crosscheck import check_supported  # rarely wanted

        check_supported(protocol)
    outputs.check()
    return _evaluate(inputs, (protocol, gates), outputs, options, session)


def _evaluate(
    inputs: Inputs,
    how: tuple[Protocol, Gates],
    outputs: Outputs,
    options: Mapping[str, Any],
    session: Session,
) -> int:
    gates = how[1]
    digests = outputs.want_digests or gates.baseline is not None or options["partial"] is not None
    inputs = inputs.scored_by(how[0], digests=digests)
    if _in_shards(inputs, how[0], outputs, options):
        from detap.cli.multi_input import evaluate_shards  # only of several inputs

        baseline = gates.read_baseline()
        found = evaluate_shards(inputs, how, options, session)
        return tell(found, (gates, baseline), outputs, options, session)
    sources = inputs.begin()
    baseline = gates.read_baseline()
    rows = any(options[name] for name in ("curves", "tie_range", "cross_check", "partial"))
    rows = (
        rows
        or bool(requested_sections(options))
        or gates.needs_match_table
        or outputs.want_page_source
    )
    found, check = _in_one_run((inputs, sources), how, {**options, "match_table": rows}, session)
    status = tell(found, (gates, baseline), outputs, options, session)
    if check and not check.equal:
        raise DifferenceError(check.conclusion)
    return status


def _in_shards(
    inputs: Inputs, protocol: Protocol, outputs: Outputs, options: Mapping[str, Any]
) -> bool:
    """Return whether inputs are evaluated one by one: where partials can answer what is asked.

    Raises
    ------
    UsageError
        Where an engine is to do what needs all boxes at once.
    """
    if options["scheduler"] is not None and options["engine"] is None:
        raise UsageError("--scheduler is for --engine dask: give that as well")
    by_boxes = _by_boxes(inputs, protocol, outputs, options)
    engine = next((name for name in ("engine", "resume") if options[name] is not None), None)
    if engine is None:
        return not by_boxes and len(inputs.dt) > 1
    if by_boxes:
        raise UsageError(f"{by_boxes} needs all boxes in one process: leave --{engine} out")
    if STDIN in inputs.dt:
        raise UsageError(f"--{engine} takes inputs that can be read again, which stdin cannot")
    return True


def _by_boxes(
    inputs: Inputs, protocol: Protocol, outputs: Outputs, options: Mapping[str, Any]
) -> str:
    """Return the first thing asked that needs all boxes at once; empty where nothing does."""
    asked = {
        **{f"--{name.replace('_', '-')}": options[name] for name in _BOXES},
        "--classes with --class-agnostic": options["classes"] and protocol.class_agnostic,
        "--merge-images": inputs.merge_images,
        "the report page": outputs.want_page_source,
    }
    first = next((name for name, given in asked.items() if given), "")
    return "--analysis" if first == "--all-analyses" else first


def _in_one_run(
    files: tuple[Inputs, tuple[Sources, Sources]],
    how: tuple[Protocol, Gates],
    options: Mapping[str, Any],
    session: Session,
) -> "tuple[Evaluated, CrossCheck | None]":
    """Evaluate all inputs as one table, and compare with pycocotools where that is asked for."""
    (inputs, sources), (protocol, gates) = files, how
    # numpy is imported here, while threads read the files.
    from detap.evaluation.detection import add_sanity_notes, score_tables

    session.timed("starting")
    session.doing("Reading", lambda: inputs.fraction(sources))
    truth, detections = inputs.read(sources)
    session.timed("reading")
    session.doing("Evaluating")
    earlier = (
        None
        if gates.baseline_detections is None
        else inputs.read_others(gates.baseline_detections, truth)
    )
    if earlier is not None:
        from detap.analysis.comparison import align_classes  # only with a detector before

        detections, earlier = align_classes(detections, earlier)
    threads, choice = options["threads"], selected(truth, detections, options)
    scored = score_tables(
        truth,
        detections,
        protocol,
        **choice,
        threads=threads,
        match_table=options["match_table"],
        check_formats=not inputs.part,
    )
    result, before = add_sanity_notes(scored), None
    if earlier is not None:
        before = score_tables(truth, earlier, protocol, **choice, threads=threads, match_table=True)
    session.timed("evaluating")
    check, checked = None, []
    if options["cross_check"]:
        from detap.analysis.crosscheck import cross_check  # rarely wanted
        from detap.report.sections.crosscheck import cross_check_block

        session.doing("Running pycocotools")
        check = cross_check(result)
        checked = [cross_check_block(check)]
    slices, slice_notes = gates.read_slices(
        result.images, lambda name: inputs.format.image_attribute(result.ground_truth, name)
    )
    partial, warnings = None, tuple[Note, ...]()
    if options["partial"] is not None:
        from detap.evaluation.partial import Partial

        partial = Partial.of(scored, ground_truth=truth, tie_range=options["tie_range"])
        warnings = partial.warnings()
    found = Evaluated(
        result,
        describe_inputs(truth, detections, digests=inputs.reading["limits"].digests),
        (*truth.files, *detections.files),
        before=before,
        slices=slices,
        notes=(*(check.notes if check else ()), *slice_notes, *warnings),
        blocks=[*checked, *asked_blocks(result, options)],
        partial=partial,
    )
    return found, check


def selected(
    ground_truth: "GroundTruth", detections: "Detections", options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return which classes and images to evaluate, as keywords of score_tables."""
    classes, images = options["classes"], options["images"]
    return {
        "classes": chosen_names(classes, detections.classes) if classes else None,
        "images": chosen_images(images, ground_truth.images, detections) if images else None,
    }
