"""``detap explain``: explain a metric or a difference between metrics."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import click
from click.core import ParameterSource

from detap.analysis.explanation.protocol_diff import protocol_diff
from detap.analysis.explanation.protocol_search import (
    TargetValue,
    protocol_search,
    searched_presets,
)
from detap.analysis.explanation.report_diff import ReportInputs, report_diff
from detap.cli.command import files
from detap.cli.commands.eval import command as eval_command
from detap.cli.inputs import Inputs, selected
from detap.cli.options import (
    change_options,
    changes_from,
    envvar_of,
    general_options,
    option,
    optional_input_options,
    output_options,
    selection_options,
    strict_option,
    threads_option,
)
from detap.cli.output import Outputs
from detap.cli.session import Session
from detap.cli.settings import ConfiguredCommand, config_options
from detap.cli.values import Integer
from detap.errors import UsageError
from detap.evaluation.selection import Selection, select
from detap.gates.baseline import read_baseline
from detap.protocols import Protocol
from detap.report.model import Report
from detap.report.sections.explanation import (
    protocol_diff_report,
    protocol_search_report,
    report_diff_report,
)
from detap.report.sections.selection import selection_blocks
from detap.tables.detection import Detections, GroundTruth

_explained = partial(option, group="Explanation", settable=False)


@click.command(
    cls=ConfiguredCommand,
    settings_command=eval_command,
    first="--from --to --metric --value --gt --dt --format --top --classes --output "
    "--output-format --quiet",
    examples={
        "Why two reports differ": "detap explain old.json new.json",
        "Why COCO and VOC differ": "detap explain --gt VOC2007/ --dt results/ "
        "--from voc2012 --to coco",
        "Which protocol gives 67.63": "detap explain --gt VOC2007/ --dt results/ --value 67.63",
    },
)
@click.argument("reports", metavar="[REPORT REPORT]", nargs=-1, shell_complete=files)
@_explained(
    "--from",
    "first",
    envvar=envvar_of("--from"),
    metavar="PROTOCOL",
    help="Protocol to start from: a preset, a signature (coco|ignore-flags:none) or a JSON report.",
)
@_explained(
    "--to",
    "second",
    envvar=envvar_of("--to"),
    metavar="PROTOCOL",
    help="Protocol to compare with.",
)
@_explained(
    "--metric",
    metavar="NAME",
    help="Metric to explain, such as AP50; by default the primary metric of each protocol.",
)
@_explained(
    "--value",
    metavar="X",
    help="Search for the protocols that give this value.",
)
@option(
    "--top",
    group="Explanation",
    type=Integer(1),
    default=10,
    help="Maximum number of protocols shown for a value. [default: 10]",
)
@optional_input_options
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
    requested = (bool(reports), ends != [None, None], number is not None)
    if sum(requested) != 1:
        raise UsageError("use exactly one of: two reports, --from and --to, or --value")
    if reports and len(reports) != 2:
        raise UsageError(f"expected two reports, got {len(reports)}")
    if requested[1] and None in ends:
        lacking = ("--from", "--to")[ends.index(None)]
        raise UsageError(f"{lacking} is missing; --from and --to are used together")
    changes = changes_from(options, Protocol)
    source_of = click.get_current_context().get_parameter_source
    if reports and ParameterSource.COMMANDLINE in map(source_of, changes):
        raise UsageError("reports contain their protocols; remove the protocol options")
    missing = [side for side in ("gt", "dt") if not options[side]]
    if missing and (not reports or len(missing) == 1):
        raise UsageError(f"--{missing[0]} is missing; explain needs ground truth and detections")
    inputs = None if missing else Inputs.from_options(options)
    sources = [*reports, *(() if inputs is None else inputs.paths())]
    outputs = Outputs.from_options(options, sources, subject="an explanation")
    if reports:
        first, second = [_report(path) for path in reports]
        scored = [Protocol.from_report(record["protocol"]) for record in (first, second)]
    elif number is None:
        scored = [
            Protocol.from_report(_report(text)["protocol"])
            if text.endswith(".json")
            else Protocol.parse(text)
            for text in ends
        ]
        scored = [protocol.with_changes(**changes) for protocol in scored]
    else:
        target, scored = TargetValue.of(number), searched_presets(changes)[0]

    def explain(source: ReportInputs | None) -> Report:
        metric = options["metric"]
        if reports:
            return report_diff_report(report_diff(first, second, metric, source=source))
        assert source is not None
        if number is None:
            start, end = scored
            diff = protocol_diff(source.tables, start, end, metric, **source.options)
            return protocol_diff_report(diff)
        search = protocol_search(source.tables, target, metric, changes=changes, **source.options)
        return protocol_search_report(search, max_rows=options["top"])

    if inputs is None:
        outputs.write(explain(None), quiet=session.quiet)
    else:
        inputs = inputs.for_protocols(*scored, digests=True)
        _explain((inputs, outputs), explain, options, session)


def _report(path: str) -> dict[str, Any]:
    """Read a detection report."""
    record = read_baseline(path)
    if record["kind"] != "detection":
        raise UsageError(f"{path} is a {record['kind']} report, expected a detection report")
    try:
        Protocol.from_report(record["protocol"])
    except UsageError as error:
        raise UsageError(f"{path}: {error}; regenerate it with detap eval") from None
    return record


def _explain(
    files: tuple[Inputs, Outputs],
    explain: Callable[[ReportInputs], Report],
    options: Mapping[str, Any],
    session: Session,
) -> None:
    """Read the tables, explain and write the report."""
    inputs, outputs = files
    tables = inputs.read(session)
    truth, detections, _ = tables
    session.start_progress("Explaining")
    choice = selected(truth, detections, options)
    selection = None
    if any(names is not None for names in choice.values()):
        selection = Selection.of(truth, detections, **choice)

    def chosen(truth: GroundTruth, detections: Detections) -> Any:
        images = choice["images"]
        return (truth, detections) if images is None else select(truth, detections, images=images)

    def read_again(reading: Mapping[str, str]) -> Any:
        return chosen(*inputs.read_with(reading).read()[:2])

    described = tuple(tables.describe(digests=True))
    keywords = {"classes": choice["classes"], "threads": options["threads"]}
    made = ReportInputs(chosen(truth, detections), described, keywords, read_again)
    report = explain(made)
    session.print_time("explaining")
    report = replace(
        report,
        inputs=described,
        notes=tuple(dict.fromkeys((*truth.notes, *detections.notes))),
        blocks=(*report.blocks, *selection_blocks(selection)),
    )
    outputs.publish(report, session, tables.files)
