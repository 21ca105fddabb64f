"""``detap explain``: why a number is what it is."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from detap.analysis.explanation.searched import searched_presets
from detap.analysis.explanation.target_value import TargetValue
from detap.cli.command import files
from detap.cli.commands.eval import command as evaluating
from detap.cli.commands.eval import selected
from detap.cli.inputs import Inputs
from detap.cli.options import (
    change_options,
    changes_from,
    envvar_of,
    general_options,
    option,
    output_options,
    perhaps_input_options,
    selection_options,
    stack,
    strict_option,
    threads_option,
)
from detap.cli.output import Outputs
from detap.cli.session import Session
from detap.cli.settings import ConfiguredCommand, config_options
from detap.cli.values import Whole
from detap.errors import UsageError
from detap.protocols import Protocol
from detap.report.inputs import describe_inputs

if TYPE_CHECKING:
    from detap.analysis.explanation.report_diff import ReportInputs
    from detap.report.model import Report
    from detap.tables.detection import Detections, GroundTruth

_asked = partial(option, group="Explanation", settable=False)

_explanation = stack(
    _asked(
        "--from",
        "first",
        envvar=envvar_of("--from"),
        metavar="PROTOCOL",
        help="Protocol to start from: a preset, a signature (coco|ignore-flags:none) or a JSON "
        "report.",
    ),
    _asked(
        "--to",
        "second",
        envvar=envvar_of("--to"),
        metavar="PROTOCOL",
        help="Protocol to compare with.",
    ),
    _asked(
        "--metric",
        metavar="NAME",
        help="Metric to explain, such as AP50; by default the primary metric of each protocol.",
    ),
    _asked(
        "--value",
        metavar="X",
        help="Search for the protocols that give this value.",
    ),
    option(
        "--top",
        group="Explanation",
        type=Whole(1),
        default=10,
        metavar="N",
        help="Maximum number of protocols shown for a value. [default: 10]",
    ),
)


@click.command(
    cls=ConfiguredCommand,
    known=evaluating,
    first=(
        "--from",
        "--to",
        "--metric",
        "--value",
        "--gt",
        "--dt",
        "--format",
        "--top",
        "--classes",
        "--output",
        "--output-format",
        "--quiet",
    ),
    examples={
        "Why two reports differ": "detap explain old.json new.json",
        "Why COCO and VOC differ": "detap explain --gt VOC2007/ --dt results/ "
        "--from voc2012 --to coco",
        "Which protocol gives 67.63": "detap explain --gt VOC2007/ --dt results/ --value 67.63",
    },
)
@click.argument("reports", metavar="[REPORT REPORT]", nargs=-1, shell_complete=files)
@_explanation
@perhaps_input_options
@change_options(Protocol)
@selection_options
@output_options
@config_options
@strict_option
@threads_option
@general_options
@click.pass_obj
def command(session: Session, /, reports: tuple[str, ...], **options: Any) -> None:
    """Explain a metric: by protocol, by value, or between reports.

    Two JSON reports: the causes of their difference. --from and --to: the effect of each field on
    the difference of two protocols. --value: the protocols that give it.
    """
    ends = [options.pop(side) for side in ("first", "second")]
    number = options.pop("value")
    asked = (bool(reports), ends != [None, None], number is not None)
    if sum(asked) != 1:
        asking = "explain one thing at a time" if any(asked) else "say what to explain"
        raise UsageError(f"{asking}: two reports, or --from and --to, or a --value")
    if reports and len(reports) != 2:
        raise UsageError(f"two reports are explained, not {len(reports)}")
    if asked[1] and None in ends:
        missing = ("--from", "--to")[ends.index(None)]
        raise UsageError(f"{missing} is left out; a difference is that of two protocols")
    changes = changes_from(options, Protocol)
    if reports and _on_the_line(changes):
        raise UsageError("reports have their protocols: leave the options of axes out")
    inputs = _inputs(options, needed=not reports)
    sources = [*reports, *(() if inputs is None else inputs.paths())]
    outputs = Outputs.from_options(options, sources)
    outputs.refuse_others("an explanation")
    outputs.check()
    if reports:
        records = [_report(path) for path in reports]
        scored = [Protocol.from_report(record["protocol"]) for record in records]
        question = partial(_account, records)
    elif number is None:
        scored = [_protocol(text, changes) for text in ends]
        question = partial(_difference, scored)
    else:
        scored = searched_presets(changes)[0]
        question = partial(_origin, TargetValue.of(number), changes)
    if inputs is not None:
        inputs = inputs.scored_by(*scored, digests=True)
    _explain((inputs, outputs), question, options, session)


def _inputs(options: dict[str, Any], *, needed: bool) -> Inputs | None:
    left_out = [side for side in ("gt", "dt") if not options[side]]
    if left_out and (needed or len(left_out) == 1):
        raise UsageError(f"--{left_out[0]} is left out; numbers are explained on some data")
    return None if left_out else Inputs.from_options(options)


def _on_the_line(names: Iterable[str]) -> bool:
    """Return whether any option stands on the command line; settings of a file are for others."""
    source = click.get_current_context().get_parameter_source
    return any(source(name) is ParameterSource.COMMANDLINE for name in names)


def _report(path: str) -> dict[str, Any]:
    from detap.gates.baseline import read_baseline  # not for --help

    record = read_baseline(path)
    if record["kind"] != "detection":
        raise UsageError(f"{path} is a report of a {record['kind']}; explained are detectors'")
    try:
        Protocol.from_report(record["protocol"])
    except UsageError as error:
        raise UsageError(f"{path}: {error}; make it anew with detap eval") from None
    return record


def _protocol(text: str, changes: Mapping[str, Any]) -> Protocol:
    """Return the protocol of a signature, or of a report, with what holds for both."""
    if text.endswith(".json"):
        return Protocol.from_report(_report(text)["protocol"]).with_changes(**changes)
    return Protocol.parse(text).with_changes(**changes)


def _account(
    records: "Sequence[Mapping[str, Any]]", options: Mapping[str, Any], made: "ReportInputs | None"
) -> "Report":
    from detap.analysis.explanation.report_diff import report_diff  # numpy
    from detap.report.sections.explanation import account_report

    first, second = records
    found = report_diff(first, second, options["metric"], source=made, threads=options["threads"])
    return account_report(found)


def _difference(
    protocols: Sequence[Protocol], options: Mapping[str, Any], made: "ReportInputs | None"
) -> "Report":
    from detap.analysis.explanation.protocol_diff import protocol_diff  # numpy
    from detap.report.sections.explanation import difference_report

    assert made is not None
    first, second = protocols
    how = {"classes": made.classes, "threads": options["threads"]}
    return difference_report(protocol_diff(made.tables, first, second, options["metric"], **how))


def _origin(
    wanted: TargetValue,
    changes: Mapping[str, Any],
    options: Mapping[str, Any],
    made: "ReportInputs | None",
) -> "Report":
    from detap.analysis.explanation.protocol_search import protocol_search  # numpy
    from detap.report.sections.explanation import origin_report

    assert made is not None
    how = {"classes": made.classes, "threads": options["threads"]}
    found = protocol_search(made.tables, wanted, options["metric"], changes=changes, **how)
    return origin_report(found, most=options["top"])


def _explain(
    how: tuple[Inputs | None, Outputs],
    question: "Callable[[Mapping[str, Any], ReportInputs | None], Report]",
    options: Mapping[str, Any],
    session: Session,
) -> None:
    inputs, outputs = how
    if inputs is None:
        outputs.write(question(options, None), quiet=session.quiet)
        return
    sources = inputs.begin()
    from detap.analysis.explanation.report_diff import ReportInputs  # numpy, while reading
    from detap.evaluation.detection import select
    from detap.evaluation.selection import Selection
    from detap.report.sections.selection import selection_blocks

    session.doing("Reading", lambda: inputs.fraction(sources))
    truth, detections = inputs.read(sources)
    session.timed("reading")
    session.doing("Explaining")
    choice = selected(truth, detections, options)
    selection = None
    if any(names is not None for names in choice.values()):
        selection = Selection.of(truth, detections, **choice)

    def chosen(truth: "GroundTruth", detections: "Detections") -> Any:
        images = choice["images"]
        return (truth, detections) if images is None else select(truth, detections, images=images)

    def read_again(reading: Mapping[str, str]) -> Any:
        other = inputs.read_with(reading)
        return chosen(*other.read(other.begin()))

    described = tuple(describe_inputs(truth, detections, digests=True))
    made = ReportInputs(chosen(truth, detections), described, choice["classes"], read_again)
    report = question(options, made)
    session.timed("explaining")
    report = replace(
        report,
        inputs=described,
        notes=tuple(dict.fromkeys((*truth.notes, *detections.notes))),
        blocks=(*report.blocks, *selection_blocks(selection)),
    )
    session.tell(report.notes)
    session.check_warnings()
    outputs.write(report, (*truth.files, *detections.files), quiet=session.quiet)
