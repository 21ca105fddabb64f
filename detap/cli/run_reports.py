"""From a scored detector to its reports and the verdict: what commands that score one share."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from detap.cli.gates import Gates, print_gates
from detap.cli.options import Decorator, option, stack, threads_option
from detap.cli.output import Outputs
from detap.cli.session import Session
from detap.cli.values import Text, Whole
from detap.errors import Note, OutputError, UsageError
from detap.escaping import escape
from detap.gates.config import BaselineReport, GateResults
from detap.protocols import Protocol
from detap.records import Record
from detap.report.model import PageSource
from detap.report.sections import SECTIONS, Section
from detap.report.sections.detection import class_columns, detection_report

if TYPE_CHECKING:
    from detap.evaluation.partial import Partial
    from detap.evaluation.results import Result
    from detap.report.model import Block, Report
    from detap.tables.detection import Name, SourceFile

_output = partial(option, group="Output")

report_options = stack(
    threads_option,
    _output("--sort", metavar="COLUMN", help="Sort classes by this column."),
    _output("--reverse", is_flag=True, help="Reverse the order of classes."),
    _output(
        "--tie-range",
        is_flag=True,
        help="Report bounds of each metric over all orders of tied scores.",
    ),
    _output(
        "--curves",
        holds="path",
        metavar="FILE",
        help="Write all precision-recall curves as .json or .csv.",
    ),
    _output(
        "--plots",
        holds="path",
        metavar="DIR",
        help="Draw precision-recall curves, errors, operating point, confusion and calibration "
        "as SVG and PNG. Needs detap[plots].",
    ),
)


_analysis = partial(option, group="Analysis (at IoU 0.5)")


def _option_of(section: Section) -> Decorator[Any]:
    values, attributes = section.values, dict[str, Any]()
    if values is None:
        attributes = {"is_flag": True}
    elif isinstance(values, tuple):
        attributes["type"] = click.Choice(values)
    elif isinstance(values, range):
        attributes["type"] = Whole(values[0], values[-1])
    else:
        attributes["type"] = Text(values)
    if section.flag_value is not None:
        attributes |= {"is_flag": False, "flag_value": section.flag_value}
    return _analysis(section.spelling, metavar=section.metavar, help=section.help, **attributes)


analysis_options = stack(
    *map(_option_of, SECTIONS),
    _analysis("--analysis", "all_analyses", is_flag=True, help="All of these."),
)


class Evaluated(Record):
    """A detector that has been scored, and what its report says besides.

    Attributes
    ----------
    result : Result
    inputs : sequence of mapping
        As :mod:`detap.report.inputs` describes them.
    read : sequence of SourceFile
        What was read, and must not be written.
    before : Result or None
        An earlier detector's.
    slices : mapping of str to sequence
        From tag to images.
    notes : sequence of Note
        What is to be said besides the result's own.
    blocks : sequence of Block
        Further parts of the report.
    partial : Partial or None
        What remains of it, where that is to be written.
    """

    result: "Result"
    inputs: Sequence[Mapping[str, Any]]
    read: "Sequence[SourceFile]"
    before: "Result | None" = None
    slices: "Mapping[str, Sequence[Name]]" = field(default_factory=dict)
    notes: Sequence[Note] = ()
    blocks: "Sequence[Block]" = ()
    partial: "Partial | None" = None


def other_files(options: Mapping[str, Any]) -> list[str]:
    """Return the files that are written besides reports; make the folder of the figures.

    Raises
    ------
    OutputError
        Where that is no folder.
    """
    others = [options[name] for name in ("curves", "partial") if options.get(name) is not None]
    if options["plots"] is None:
        return others
    from detap.report.writers.plots import check_installed, paths  # rarely wanted

    check_installed()
    make_folder(options["plots"])
    return [*others, *paths(options["plots"])]


def make_folder(path: str) -> None:
    """Make a folder where there is none, so that it is known to be one.

    Raises
    ------
    OutputError
        Where it cannot be.
    """
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{escape(path)}: is no folder: {error.strerror}") from error


def check_report_options(options: Mapping[str, Any], protocol: Protocol) -> None:
    """Refuse what can be refused before anything is read."""
    sort = options["sort"]
    if sort is not None:
        keys = [column.key for column in class_columns(protocol)]
        if sort not in keys:
            raise UsageError(
                f"--sort {escape(sort)}: no such column; choose from {', '.join(keys)}"
            )
    if options["curves"] is not None:
        from detap.report.writers.curves import check_extension  # rarely wanted

        check_extension(options["curves"])


def requested_sections(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the options that request sections, by the names of the sections."""
    requested = {
        section.name: value
        for section in SECTIONS
        # A score threshold of 0 equals False.
        if (value := options[section.key]) is not None and value is not False
    }
    if options["all_analyses"]:
        return {section.name: section.flag_value for section in SECTIONS} | requested
    return requested


def asked_blocks(result: "Result", options: Mapping[str, Any]) -> "list[Block]":
    """Return the parts of the report that were asked for."""
    blocks = []
    if options["tie_range"]:
        from detap.evaluation.tie_range import tie_range
        from detap.report.sections.tie_range import tie_block  # rarely wanted

        blocks.append(tie_block(tie_range(result)))
    if requested := requested_sections(options):
        from detap.report.sections.analysis import analysis_blocks  # rarely wanted

        blocks += analysis_blocks(result, requested)
    return blocks


def tell(
    found: Evaluated,
    gate_inputs: tuple[Gates, BaselineReport | None],
    outputs: Outputs,
    options: Mapping[str, Any],
    session: Session,
) -> int:
    """Write every report of a detector, and say what came of the gates.

    Parameters
    ----------
    found : Evaluated
    gate_inputs : (Gates, BaselineReport or None)
        The gates, and the earlier report that they need.
    outputs : Outputs
    options : mapping
        The values of :data:`report_options`, and ``score_threshold``.
    session : Session

    Returns
    -------
    int
        The exit status.
    """
    session.doing("Reporting")
    differing: tuple[Note, ...] = ()
    if found.before is not None:
        from detap.checks.sanity_notes import comparison_notes  # numpy is there by now

        differing = comparison_notes(found.result, found.before)
    report = detection_report(
        found.result,
        inputs=found.inputs,
        notes=(*found.notes, *differing),
        blocks=found.blocks,
        sort=options["sort"],
        reverse=options["reverse"],
    )
    results = None
    if gate_inputs[0].any:
        results, report = _evaluate_gates(gate_inputs, found, report, options)
        session.timed("gates")
    session.done()
    session.tell(report.notes)
    status = 0 if results is None else print_gates(results, session)
    session.check_warnings()
    _write_others(found, outputs, options)
    outputs.write(report, found.read, quiet=session.quiet and not status)
    session.timed("reporting")
    return status


def _evaluate_gates(
    gate_inputs: tuple[Gates, BaselineReport | None],
    found: Evaluated,
    report: "Report",
    options: Mapping[str, Any],
) -> "tuple[GateResults, Report]":
    """Return what came of the gates, and the report with it."""
    from detap.gates.detection import Scored
    from detap.gates.evaluate import evaluate_gates  # only with gates
    from detap.report.sections.gates import gate_blocks
    from detap.report.writers.json import as_dict

    gates, baseline = gate_inputs
    now, *then = (
        Scored.of(
            result,
            found.slices,
            threads=options["threads"],
            score_threshold=options["score_threshold"],
        )
        for result in (found.result, found.before)
        if result is not None
    )
    if now.slices:
        from detap.report.sections.slices import slices_block  # only with slices

        report = replace(
            report, blocks=(slices_block(now.slice_metrics(), report.columns), *report.blocks)
        )
    before = then[0] if then else None
    results = evaluate_gates(
        gates.config, now, lambda: as_dict(report), baseline_report=baseline, baseline=before
    )
    page_source = PageSource(
        found.result,
        before=found.before,
        record=None if baseline is None else baseline.record,
        earlier=gates.baseline_detections or gates.baseline or "",
    )
    return results, replace(
        report,
        blocks=(*gate_blocks(results), *report.blocks),
        notes=(*report.notes, *results.notes),
        page_source=page_source,
    )


def _write_others(found: Evaluated, outputs: Outputs, options: Mapping[str, Any]) -> None:
    """Write what is no report."""
    if options["curves"] is not None:
        from detap.report.sections.curves import detection_curves  # rarely wanted
        from detap.report.writers.curves import render

        path = options["curves"]
        outputs.write_file(path, render(detection_curves(found.result), path), found.read)
    if found.partial is not None and options.get("partial") is not None:
        pieces, path = found.partial.buffers(), options["partial"]
        if path.endswith(".gz"):
            pieces = _gzipped(pieces)
        outputs.write_file(path, pieces, found.read)
    if options["plots"] is not None:
        from detap.report.writers.plots import render_all  # rarely wanted

        for name, data in render_all(found.result):
            outputs.write_file(os.path.join(options["plots"], name), data, found.read)


def _gzipped(pieces: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    """Yield what they are as a gzip file, of no name and no time."""
    from zlib import compressobj  # seldom wanted

    packer = compressobj(wbits=31)
    for piece in pieces:
        yield packer.compress(piece)
    yield packer.flush()
