"""Reports and gates of an evaluated detector."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import click

from detap.cli.gates import Gates, finish
from detap.cli.inputs import Evaluated
from detap.cli.options import Decorator, option, stack
from detap.cli.output import Outputs
from detap.cli.session import Session
from detap.cli.values import Integer, Text
from detap.errors import Note, UsageError
from detap.escaping import escape
from detap.evaluation.results import Result
from detap.evaluation.sanity_notes import comparison_notes
from detap.io.writing import make_folder
from detap.protocols import Protocol
from detap.report.model import Block, PageSource
from detap.report.sections import SECTIONS, Section
from detap.report.sections.detection import class_columns, detection_report

_analysis = partial(option, group="Analysis (at IoU 0.5)")


def _option_of(section: Section) -> Decorator[Any]:
    values, attributes = section.values, dict[str, Any]()
    if values is None:
        attributes = {"is_flag": True}
    elif isinstance(values, tuple):
        attributes["type"] = click.Choice(values)
    elif isinstance(values, range):
        attributes["type"] = Integer(values[0], values[-1])
    else:
        attributes["type"] = Text(values)
    if section.flag_value is not None:
        attributes |= {"is_flag": False, "flag_value": section.flag_value}
    return _analysis(section.flag, metavar=section.metavar, help=section.help, **attributes)


analysis_options = stack(
    *map(_option_of, SECTIONS),
    _analysis(
        "--analysis",
        "all_analyses",
        envvar="DETAP_ANALYSIS",
        is_flag=True,
        help="All of these.",
    ),
)


def extra_files(options: Mapping[str, Any]) -> list[str]:
    """Return the files written in addition to reports; make the folder of plots."""
    files = [options[name] for name in ("curves", "matches") if options[name] is not None]
    if options["plots"] is None:
        return files
    from detap.report.writers import plots

    plots.check_installed()
    make_folder(options["plots"])
    return [*files, *plots.paths(options["plots"])]


def check_report_options(options: Mapping[str, Any], protocol: Protocol) -> None:
    """Raise UsageError for invalid options, before anything is read."""
    # Only the detections say whether they have scores.
    without = [protocol.without_scores()] if protocol.matching == "by-score" else []
    _check_sort(options["sort"], protocol, *without)
    if options["curves"] is not None:
        from detap.report.writers.curves import check_extension

        check_extension(options["curves"])
    if options["matches"] is not None:
        from detap.report.writers.matches import check

        check(options["matches"], protocol)


def _check_sort(sort: str | None, *protocols: Protocol) -> None:
    """Raise UsageError for a column that the class tables do not have."""
    tables = ([column.key for column in class_columns(protocol)] for protocol in protocols)
    if sort is not None and not any(sort in keys for keys in tables):
        keys = ", ".join(column.key for column in class_columns(protocols[0]))
        raise UsageError(f"--sort {escape(sort)}: no such column; choose from {keys}")


def requested_sections(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the option values of requested sections, by section name."""
    requested = {
        section.name: value
        for section in SECTIONS
        # A score threshold of 0 equals False.
        if (value := options[section.key]) is not None and value is not False
    }
    if options["all_analyses"]:
        return {section.name: section.flag_value for section in SECTIONS} | requested
    return requested


def requested_blocks(result: Result, options: Mapping[str, Any]) -> list[Block]:
    """Return the requested report blocks, of ``--analysis`` those that the result can have."""
    blocks = []
    if options["tie_range"]:
        from detap.report.sections.tie_range import tie_block

        blocks.append(tie_block(result))
    requested = requested_sections(options)
    if not result.protocol.has_scores:
        without = {section.name for section in SECTIONS if not section.needs_scores}
        requested = {name: value for name, value in requested.items() if name in without}
    if requested:
        from detap.report.sections.analysis import analysis_blocks

        blocks += analysis_blocks(result, requested)
    return blocks


def write_reports(
    evaluated: Evaluated,
    gates: Gates,
    outputs: Outputs,
    options: Mapping[str, Any],
    session: Session,
) -> int:
    """Write all reports of a detector and print failed gates."""
    _check_sort(options["sort"], evaluated.result.protocol)
    session.start_progress("Reporting")
    differing: Sequence[Note] = ()
    if evaluated.baseline is not None:
        differing = comparison_notes(evaluated.result, evaluated.baseline)
    report = detection_report(
        evaluated.result,
        inputs=evaluated.tables.describe(
            digests=outputs.needs_digests or gates.baseline is not None
        ),
        notes=(*evaluated.notes, *differing),
        blocks=evaluated.blocks,
        sort=options["sort"],
        reverse=options["reverse"],
    )
    problems: list[str | Note] = []
    source = PageSource(
        evaluated.result, data_folder=options.get("page_data"), file_names=evaluated.file_names
    )
    if gates.any:
        from detap.cli.gate_results import with_gate_results

        problems, report = with_gate_results(evaluated, gates, report, options)
        session.print_time("gating")
        source = replace(
            source,
            before=evaluated.baseline,
            record=gates.baseline and gates.baseline.record,
            earlier=gates.baseline_detections or (gates.baseline.path if gates.baseline else ""),
        )
    report = replace(report, page_source=source)
    status = finish(report, problems, session)
    _write_extra_files(evaluated, outputs, options)
    outputs.write(report, evaluated.tables.files, quiet=session.quiet)
    session.print_time("reporting")
    return status


def _write_extra_files(evaluated: Evaluated, outputs: Outputs, options: Mapping[str, Any]) -> None:
    """Write curves, matches and plots."""
    result, read = evaluated.result, evaluated.tables.files
    if (path := options["curves"]) is not None:
        from detap.report.writers.curves import detection_curves

        outputs.write_file(path, detection_curves(result, path), read)
    if (path := options["matches"]) is not None:
        from detap.report.writers import matches

        outputs.write_file(path, matches.render(path, result, evaluated.baseline), read)
    if (folder := options["plots"]) is not None:
        from detap.report.writers.plots import render_all

        for name, data in render_all(result):
            outputs.write_file(os.path.join(folder, name), data, read)
