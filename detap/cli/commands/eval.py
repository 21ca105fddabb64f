"""``detap eval``: score detections against ground truth and report the numbers."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from detap.cli.analyses import analysis_options, answers, asks
from detap.cli.gates import Gates, gate_options, say
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
from detap.cli.session import Session
from detap.cli.settings.command import ConfiguredCommand, config_options
from detap.cli.values import Whole
from detap.errors import DifferenceError, OutputError, UsageError
from detap.gates.judging import Judged, Kept, judge
from detap.names import printable
from detap.protocols import Protocol
from detap.report.inputs import describe_inputs
from detap.report.sections.detection import detection_report, sort_keys

if TYPE_CHECKING:
    from detap.analysis.crosscheck import CrossCheck
    from detap.evaluation.detection import Result
    from detap.report.model import Block, Report
    from detap.tables.detection import Detections, GroundTruth, Name

eval_options = stack(
    option(
        "--threads",
        group="General",
        type=Whole(1, 1024),
        metavar="N",
        help="Threads; as many as the machine has by default. The numbers do not depend on it.",
    ),
    option("--sort", group="Output", metavar="COLUMN", help="Order the classes by this column."),
    option("--reverse", group="Output", is_flag=True, help="Turn their order round."),
    option(
        "--curves",
        group="Output",
        holds="path",
        metavar="FILE",
        help="Write every precision-recall curve here, as .json or .csv.",
    ),
    option(
        "--plots",
        group="Output",
        holds="path",
        metavar="DIR",
        help="Draw precision-recall curves, errors, operating point, confusion and calibration "
        "here, as SVG and PNG. Needs detap[plots].",
    ),
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
    curves = [] if options["curves"] is None else [options["curves"]]
    others = [*curves, *_plot_paths(options)]
    sources = [*inputs.paths(), *inputs.meant(gates.before), *gates.paths()]
    outputs = Outputs.from_options(options, sources, others)
    _check(options, rules)
    outputs.check()
    return _evaluate(inputs, (rules, gates), outputs, options, session)


def _plot_paths(options: Mapping[str, Any]) -> list[str]:
    """Return the files of the figures; make their folder, so that it is known to be one."""
    if options["plots"] is None:
        return []
    from detap.report.sinks.plots import check_installed, paths  # rarely wanted

    check_installed()
    try:
        os.makedirs(options["plots"], exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"{printable(options['plots'])}: is no folder: {error.strerror}"
        ) from error
    return paths(options["plots"])


def _check(options: Mapping[str, Any], rules: Protocol) -> None:
    """Refuse what can be refused before anything is read."""
    keys = sort_keys(rules)
    sort = options["sort"]
    if sort is not None and sort not in keys:
        raise UsageError(f"--sort {printable(sort)}: no such column; choose from {', '.join(keys)}")
    if options["curves"] is not None:
        from detap.report.sinks.curves import check_extension  # rarely wanted

        check_extension(options["curves"])
    if options["cross_check"]:
        from detap.analysis.crosscheck import check_supported  # rarely wanted

        check_supported(rules)


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
    before = None if gates.before is None else inputs.read_others(gates.before, truth)
    if before is not None:
        chosen, before = _alike(chosen, selected(truth, before, options)[1])
    asked = any(options[name] for name in ("curves", "plots", "tie_range", "cross_check"))
    asked = asked or asks(options) or gates.want_evidence or outputs.want_material
    result = with_advice(score_tables(*chosen, rules, threads=options["threads"], evidence=asked))
    session.timed("evaluating")
    if options["cross_check"]:
        session.doing("Running pycocotools")
    check = _cross_check(result, options)
    blocks = [
        *_sections(result, check, options),
        *answers(result, options),
        *selection(result, truth, detections, options),
    ]
    session.doing("Reporting")
    report = detection_report(
        result,
        inputs=describe_inputs(truth, detections, digests=digests),
        notes=check.notes if check else (),
        blocks=blocks,
        sort=options["sort"],
        reverse=options["reverse"],
    )
    slices, slice_notes = gates.read_slices(chosen[0], inputs.format)
    judged = Judged()
    if gates.any:
        then = None if before is None else (chosen[0], before)
        report = report._replace(notes=(*report.notes, *slice_notes))
        judged, report = _judge(gates, baseline, (result, then, slices), report, options)
        session.timed("judging")
    session.done()
    for note in report.notes:
        session.note(note)
    status = say(judged, session)
    session.check_warnings()
    read = (*truth.files, *detections.files)
    if options["curves"] is not None:
        from detap.report.sections.curves import detection_curves  # rarely wanted
        from detap.report.sinks.curves import render

        path = options["curves"]
        outputs.write_file(path, render(detection_curves(result), path), read)
    if options["plots"] is not None:
        from detap.report.sinks.plots import render_all  # rarely wanted

        for name, data in render_all(result):
            outputs.write_file(os.path.join(options["plots"], name), data, read)
    outputs.write(report, read)
    session.timed("reporting")
    if check and not check.equal:
        raise DifferenceError(check.verdict)
    return status


def _judge(
    gates: Gates,
    baseline: Kept | None,
    what: "tuple[Result, tuple[GroundTruth, Detections] | None, Mapping[str, Sequence[Name]]]",
    report: "Report",
    options: Mapping[str, Any],
) -> "tuple[Judged, Report]":
    """Return what came of the gates, and the report with it."""
    from detap.evaluation.detection import score_tables  # imported already
    from detap.gates.scored import Scored  # only with gates
    from detap.report.model import Material
    from detap.report.sections.gates import judged_blocks
    from detap.report.sinks.json import as_dict

    result, before, slices = what
    threads = options["threads"]
    earlier = None
    if before is not None:
        earlier = Scored.of(
            score_tables(*before, result.protocol, threads=threads, evidence=True),
            slices,
            threads=threads,
            score=options["score_threshold"],
        )
    now = Scored.of(result, slices, threads=threads, score=options["score_threshold"])
    if now.slices:
        from detap.report.sections.slices import slices_block  # only with slices

        report = report._replace(blocks=(slices_block(now.slice_numbers()), *report.blocks))
    judged = judge(gates.demands, now, lambda: as_dict(report), kept=baseline, before=earlier)
    material = Material(
        result,
        before=None if earlier is None else earlier.whole,
        record=None if baseline is None else baseline.record,
        earlier=gates.before or gates.baseline or "",
    )
    return judged, report._replace(
        blocks=(*judged_blocks(judged), *report.blocks),
        notes=(*report.notes, *judged.notes),
        material=material,
    )


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
