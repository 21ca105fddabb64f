"""``detap eval``: evaluate detections against ground truth."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import click

from detap import metrics
from detap.cli.gates import Gates, gate_options
from detap.cli.inputs import Evaluated, Inputs
from detap.cli.options import (
    input_options,
    option,
    output_options,
    page_data_option,
    protocol_options,
    selection_options,
    threads_option,
)
from detap.cli.output import Outputs
from detap.cli.run_reports import (
    analysis_options,
    check_report_options,
    extra_files,
    requested_blocks,
    requested_sections,
    write_reports,
)
from detap.cli.session import Session
from detap.cli.settings import ConfiguredCommand, run_options
from detap.errors import DifferenceError, UsageError
from detap.evaluation.run import unscored
from detap.evaluation.sanity_notes import add_sanity_notes
from detap.gates.config import RULES, endings
from detap.io.paths import STDIN
from detap.protocols import Protocol
from detap.report.sections import SECTIONS
from detap.tables.detection import Detections

_OF_SCORES = ("curves", "plots", "tie_range", "cross_check", "baseline_score_threshold")
"""Options other than sections that need scores."""

_output = partial(option, group="Output")


@click.command(
    cls=ConfiguredCommand,
    first="--gt --dt --format --protocol --iou --classes --errors --fail-under "
    "--baseline-detections --max-drop --confidence --output --output-format --quiet",
    examples={
        "COCO": "detap eval instances.json results.json",
        "PASCAL VOC 2007, with a JSON report": (
            "detap eval VOC2007/ results/ --image-set test \\\n"
            "    --protocol voc2007 -o report.json"
        ),
        "CI gate: exit status 1 if AP drops by more than 0.005": (
            "detap eval gt.json new.json --baseline-detections old.json \\\n    --max-drop 0.005"
        ),
    },
)
@input_options
@option(
    "--data-sets",
    group="Data sets",
    value_kind="path",
    multiple=True,
    is_eager=True,
    metavar="FILE",
    help="Report the metrics of several data sets and their means: a TOML file with a table "
    "of gt and dt, or report, per data set; or JSON reports.",
)
@option(
    "--allow-missing",
    group="Data sets",
    is_flag=True,
    help="Leave out data sets without files.",
)
@protocol_options
@selection_options
@gate_options
@analysis_options
@output_options
@threads_option
@_output("--sort", metavar="COLUMN", help="Sort classes by this column.")
@_output("--reverse", is_flag=True, help="Reverse the order of classes.")
@_output(
    "--tie-range",
    is_flag=True,
    help="Report bounds of each metric over all orders of tied scores.",
)
@_output(
    "--curves",
    value_kind="path",
    metavar="FILE",
    help="Write all curves (precision, recall, FPPI) as .json or .csv.",
)
@_output(
    "--plots",
    value_kind="path",
    metavar="DIR",
    help="Draw precision-recall, miss-rate and FROC curves, errors, operating point, confusion "
    "and calibration as SVG and PNG. Needs detap[plots].",
)
@page_data_option
@_output(
    "--matches",
    value_kind="path",
    metavar="FILE",
    help="Write a row per detection and per missed ground truth, also of --baseline-detections, as "
    ".csv, .jsonl or .parquet. Parquet needs detap[arrow].",
)
@_output(
    "--cross-check",
    is_flag=True,
    help="Run pycocotools on the same boxes; exit with 1 on any difference.",
)
@option(
    "--engine",
    group="Engine (for several inputs)",
    type=click.Choice(["dask"]),
    help="Evaluate inputs on workers, started here, one per core.",
)
@option(
    "--scheduler",
    group="Engine (for several inputs)",
    metavar="ADDRESS",
    help="Use a running scheduler: tcp://10.0.0.1:8786.",
)
@run_options
@click.pass_obj
def command(session: Session, /, **options: Any) -> int:
    """Score detections against ground truth.

    Print AP per class, the summary and the protocol's signature. Notes go to stderr.
    """
    if options["data_sets"]:
        from detap.cli.data_sets import evaluate_data_sets

        return evaluate_data_sets(options, session)
    if options["allow_missing"]:
        raise UsageError("--allow-missing requires --data-sets")
    if options["scheduler"] is not None and options["engine"] is None:
        raise UsageError("--scheduler requires --engine dask")
    inputs = Inputs.from_options(options)
    gates = Gates.from_options(options)
    protocol = inputs.protocol(options)
    check_report_options(options, protocol)
    if options["cross_check"]:
        from detap.analysis.crosscheck import check_supported

        check_supported(protocol)
    sources = [*inputs.paths(gates.baseline_detections), *gates.paths()]
    outputs = Outputs.from_options(options, sources, extra_files(options))
    if options["page_data"] is not None:
        from detap.report.page import data_folder

        pages = [path for writer, path in outputs.files if writer.name == "html"]
        if len(pages) != 1:
            raise UsageError("--page-data needs one HTML page; use -o page.html")
        options["page_data"] = data_folder(options["page_data"], pages[0])
    digests, page = outputs.needs_digests or gates.baseline is not None, outputs.needs_page_source
    inputs = inputs.for_protocols(protocol, digests=digests)
    if options["engine"] is None:
        evaluated = _evaluate(inputs, protocol, gates, options, session, page=page)
    else:
        _check_engine_options(inputs, protocol, gates, options, page=page)
        from detap.cli.engine import evaluate_on_workers  # asyncio

        evaluated = evaluate_on_workers(inputs, protocol, options, session)
    status = write_reports(evaluated, gates, outputs, options, session)
    if evaluated.check and not evaluated.check.equal:
        raise DifferenceError(evaluated.check.conclusion)
    return status


def _evaluate(
    inputs: Inputs,
    protocol: Protocol,
    gates: Gates,
    options: Mapping[str, Any],
    session: Session,
    *,
    page: bool,
) -> Evaluated:
    """Read the tables, and score them; for a page also find the names of image files."""
    session.print_time("starting")
    tables = inputs.read(session, gates.baseline_detections)
    if not tables.detections.has_scores:
        _check_scores(tables.detections, protocol, gates, options)
    session.start_progress("Evaluating")
    needs_rows = (
        any(options[name] for name in ("curves", "matches", "tie_range", "cross_check"))
        or bool(requested_sections(options))
        or gates.needs_match_table
        or page
    )
    scored, baseline = tables.score(protocol, options, match_table=needs_rows)
    result = add_sanity_notes(scored)
    session.print_time("evaluating")
    check, checked = None, []
    if options["cross_check"]:
        from detap.analysis.crosscheck import cross_check
        from detap.report.sections.crosscheck import cross_check_block

        session.start_progress("Running pycocotools")
        check = cross_check(result)
        checked = [cross_check_block(check)]
    slices, slice_notes = gates.read_slices(result, inputs.format)
    return Evaluated(
        result,
        tables,
        baseline=baseline,
        slices=slices,
        notes=(*(check.notes if check else ()), *slice_notes),
        blocks=[*checked, *requested_blocks(result, options)],
        file_names=inputs.format.image_files(result.ground_truth)[1] if page else {},
        check=check,
    )


# --- options that do not fit the run


def _check_engine_options(
    inputs: Inputs, protocol: Protocol, gates: Gates, options: Mapping[str, Any], *, page: bool
) -> None:
    """Raise UsageError for the first option that needs all boxes in one process."""
    names = ("all_analyses", "plots", "matches", "cross_check", "curves", "tie_range")
    keys = [*(section.key for section in SECTIONS), *names]
    flags = {"all_analyses": "--analysis"}
    given: dict[str, Any] = {
        flags.get(key, f"--{key.replace('_', '-')}"): options.get(key) not in (None, False)
        for key in keys
    }
    given |= {
        "--baseline-detections": gates.baseline_detections,
        "--confidence": gates.config.confidence,
        "--detectable-drop": gates.config.detectable_drop,
        "--slices": gates.slices,
        "--slice-by": gates.slice_by,
        "a gate of a score threshold": gates.needs_match_table,
        "--classes with --class-agnostic": options["classes"] and protocol.class_agnostic,
        "--merge-images": inputs.merge_images,
        "--class-map": inputs.class_map is not None,
        "the report page": page,
    }
    specs = (*metrics.summary(protocol), *metrics.columns(protocol))
    given |= {f"the metric {spec.name}": spec.metric.accumulated is None for spec in specs}
    for name, is_given in given.items():
        if is_given:
            raise UsageError(f"{name} needs all boxes in one process; remove --engine")
    if STDIN in inputs.dt:
        raise UsageError("--engine cannot read from stdin, because inputs may be read again")


def _check_scores(
    detections: Detections, protocol: Protocol, gates: Gates, options: Mapping[str, Any]
) -> None:
    """Raise UsageError for the first option that needs scores of detections without."""
    if detections.missing_scores == "area":
        return
    keys = [section.key for section in SECTIONS if section.needs_scores]
    for key in (*keys, *_OF_SCORES):
        if options.get(key) not in (None, False):
            raise unscored().needs_scores(f"--{key.replace('_', '-')}", detections, "leave it out")
    without = protocol.without_scores()
    for limit in gates.config.limits:
        names = [*endings(limit.name or "")]
        ranked, unranked = (
            any(metrics.metric_named(each, name) is not None for name in names)
            for each in (protocol, without)
        )
        if ranked and not unranked:
            option = f"--{RULES[limit.kind].option.replace('_', '-')} {limit.name}"
            raise unscored().needs_scores(option, detections, "gate on F1")
