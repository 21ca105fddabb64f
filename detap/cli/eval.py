"""``detap eval``: score detections against ground truth and report the numbers."""

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from detap.cli.inputs import Digests, Inputs, chosen_images, chosen_names
from detap.cli.options import (
    Command,
    general_options,
    input_options,
    option,
    output_options,
    protocol_from,
    protocol_options,
    selection_options,
    stack,
)
from detap.cli.output import Outputs
from detap.cli.session import Session
from detap.errors import DifferenceError, UsageError
from detap.protocols import Protocol
from detap.report.names import printable
from detap.report.rows import describe_inputs, detection_report, sort_keys

if TYPE_CHECKING:
    from detap.crosscheck import CrossCheck
    from detap.detection import Result
    from detap.tables import Detections, GroundTruth

DEFAULT_PROTOCOLS = {"coco": "coco", "voc": "voc2012"}

eval_options = stack(
    option(
        "--threads",
        group="General",
        type=click.IntRange(1, 1024),
        metavar="N",
        help="Threads; as many as the machine has by default. The numbers do not depend on it.",
    ),
    option("--sort", group="Output", metavar="COLUMN", help="Order the classes by this column."),
    option("--reverse", group="Output", is_flag=True, help="Turn their order round."),
    option(
        "--curves",
        group="Output",
        metavar="FILE",
        help="Write every precision-recall curve here, as .json or .csv.",
    ),
    option(
        "--cross-check",
        group="Output",
        is_flag=True,
        help="Run pycocotools on the same boxes and compare; any difference fails.",
    ),
)


@click.command(cls=Command)
@input_options
@protocol_options
@selection_options
@output_options
@eval_options
@general_options
@click.pass_obj
def command(session: Session, /, **options: Any) -> None:
    """Score detections against ground truth.

    Prints a table per class, the means and the signature of the protocol. Notes go to stderr.
    """
    inputs = Inputs.from_options(options)
    rules = protocol_from(options, DEFAULT_PROTOCOLS[inputs.file_format])
    curves = [] if options["curves"] is None else [options["curves"]]
    outputs = Outputs.from_options(options, inputs.paths(), curves)
    _check(options, rules)
    outputs.check()
    _evaluate(inputs, rules, outputs, options, session)


def _check(options: Mapping[str, Any], rules: Protocol) -> None:
    """Refuse what can be refused before anything is read."""
    keys = sort_keys(rules)
    sort = options["sort"]
    if sort is not None and sort not in keys:
        raise UsageError(f"--sort {printable(sort)}: no such column; choose from {', '.join(keys)}")
    if options["curves"] is not None:
        from detap.report.curves import check_extension  # noqa: PLC0415 - rarely wanted

        check_extension(options["curves"])
    if options["cross_check"]:
        from detap.crosscheck import check_supported  # noqa: PLC0415 - rarely wanted

        check_supported(rules)


def _evaluate(
    inputs: Inputs, rules: Protocol, outputs: Outputs, options: Mapping[str, Any], session: Session
) -> None:
    sources = inputs.begin()
    # numpy is imported here, while threads read the files.
    from detap.detection import evaluate  # noqa: PLC0415

    session.timed("starting")
    truth, detections = inputs.read(sources)
    session.timed("reading")
    piped = getattr(sources[1], "sha256", None)
    digests = Digests(truth, detections, piped) if outputs.want_digests else None
    chosen = _selected(truth, detections, options)
    result = evaluate(*chosen, rules, threads=options["threads"])
    session.timed("evaluating")
    check = _cross_check(result, options)
    report = detection_report(
        result,
        inputs=describe_inputs(truth, detections, digests.wait() if digests else {}),
        notes=check.notes if check else (),
        blocks=(check.block(),) if check else (),
        sort=options["sort"],
        reverse=options["reverse"],
    )
    for note in report.notes:
        session.note(note)
    members = [*_members(truth), *_members(detections)]
    if options["curves"] is not None:
        from detap.report.curves import render_curves  # noqa: PLC0415 - rarely wanted

        outputs.write_file(options["curves"], render_curves(result, options["curves"]), members)
    outputs.write(report, members)
    session.timed("reporting")
    if check and not check.equal:
        raise DifferenceError(check.verdict)


def _cross_check(result: "Result", options: Mapping[str, Any]) -> "CrossCheck | None":
    if not options["cross_check"]:
        return None
    from detap.crosscheck import cross_check  # noqa: PLC0415 - rarely wanted

    return cross_check(result)


def _members(table: "GroundTruth | Detections") -> Iterator[str]:
    for source in table.files:
        for member in source.members:
            yield os.path.join(source.path, member)


def _selected(
    truth: "GroundTruth", detections: "Detections", options: Mapping[str, Any]
) -> tuple["GroundTruth", "Detections"]:
    """Return the tables with only the classes and images that were asked for."""
    classes, images = options["classes"], options["images"]
    if not classes and not images:
        return truth, detections
    from detap.detection import select  # noqa: PLC0415 - imported already

    return select(
        truth,
        detections,
        classes=chosen_names(classes, detections.classes) if classes else None,
        images=chosen_images(images, truth.images) if images else None,
    )
