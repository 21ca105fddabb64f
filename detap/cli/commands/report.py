"""``detap report``: an HTML page with metrics and errors."""

import os
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import click

from detap.cli.commands.eval import command as eval_command
from detap.cli.gates import Gates, slice_options
from detap.cli.inputs import Inputs, Tables
from detap.cli.options import (
    classes_option,
    input_options,
    option,
    page_data_option,
    protocol_options,
    threads_option,
)
from detap.cli.session import Session
from detap.cli.settings import ConfiguredCommand, run_options
from detap.errors import Note, UsageError
from detap.escaping import escape
from detap.evaluation.results import Result
from detap.evaluation.sanity_notes import add_sanity_notes, comparison_notes
from detap.formats.base import Format
from detap.formats.image_folders import ImageFolder
from detap.gates.baseline import differences, read_baseline
from detap.gates.detection import Scored
from detap.gates.history import history, read_runs
from detap.io.writing import STDOUT, check_target, write
from detap.report.model import PageSource, Report
from detap.report.page import check_installed, data_folder
from detap.report.page.pictures import Pictures, find_folder
from detap.report.sections.detection import detection_report
from detap.report.sections.history import history_block, history_notes
from detap.report.sections.slices import slices_block
from detap.report.writers.json import as_dict
from detap.report.writers.registry import WRITERS, Style
from detap.text_input import join_names

NO_PICTURES = "none"  # value of `--images` for a page without images
_MAX_SEARCHED = 5  # number of folders in a note
_page = partial(option, group="Page")


@click.command(
    cls=ConfiguredCommand,
    settings_command=eval_command,
    first="--gt --dt --format --protocol --images --baseline-detections --history --classes "
    "--quiet",
    examples={
        "With images": (
            "detap report instances.json results.json --images val2017/ \\\n    -o page.html"
        ),
    },
)
@input_options
@protocol_options
@_page(
    "--images",
    "pictures",
    settable=False,
    envvar="DETAP_REPORT_IMAGES",
    metavar="DIR",
    help="Folder of the images to show, or none. By default the first of ., images, .., "
    "../images (from the annotations; VOC, YOLO and others: as usual there) and folders in "
    "these named as a part of the file (val2017) that has half of the images. Tried for each: "
    "its name, without folders, with each image suffix.",
)
@_page(
    "-o",
    "--output",
    "page",
    settable=False,
    envvar="DETAP_REPORT_OUTPUT",
    default="report.html",
    metavar="PATH",
    help="Write the page here; - is stdout. [default: report.html]",
)
@_page(
    "--baseline",
    metavar="FILE",
    help="Show changes from an earlier JSON report.",
)
@_page(
    "--baseline-detections",
    metavar="PATH",
    help="Show changes from earlier detections, also of errors and images.",
)
@_page(
    "--history",
    settable=False,
    multiple=True,
    metavar="PATH",
    help="Show the trend over earlier JSON reports, or a folder of them. Repeatable.",
)
@page_data_option
@classes_option
@threads_option
@slice_options
@run_options
@click.pass_obj
def command(session: Session, /, **options: Any) -> None:
    """Write an HTML page of the error analysis.

    One self-contained file: metrics, TIDE errors, operating point, classes, curves, confusion,
    calibration and all images.
    """
    page, pictures, page_data = (options.pop(name) for name in ("page", "pictures", "page_data"))
    baseline, before = options.pop("baseline"), options.pop("baseline_detections")
    history_paths = options.pop("history")
    runs = read_runs(history_paths) if history_paths else []
    inputs = Inputs.from_options(options)
    slicing = Gates.from_options(options)
    protocol = inputs.protocol(options)
    if before == "-":
        raise UsageError("--baseline-detections cannot come from stdin")
    if pictures not in (None, NO_PICTURES) and not os.path.isdir(pictures):
        raise UsageError(f"--images {escape(pictures)}: no such folder")
    check_installed()
    sources = [*inputs.paths(before), *slicing.paths()]
    sources += [*([baseline] if baseline else []), *(path for path, _ in runs)]
    _check_page(page, sources)
    folder = page_data and data_folder(page_data, page)
    tables = inputs.for_protocols(protocol, digests=True).read(session, before)
    session.start_progress("Evaluating")
    scored, earlier = tables.score(protocol, {**options, "images": ()}, match_table=True)
    result = add_sanity_notes(scored)
    session.print_time("evaluating")
    session.start_progress("Reporting")
    report = _report(inputs, tables, (result, earlier), slicing)
    source = PageSource(
        result, before=earlier, earlier=before or baseline or "", data_folder=folder
    )
    notes = []
    if baseline is not None:
        record = read_baseline(baseline)
        source = replace(source, record=record)
        if reasons := differences(as_dict(report), record):
            message = f"{escape(baseline)} is not comparable: {'; '.join(reasons)}"
            notes.append(Note("baseline-differs", message))
    if runs:
        cases = history([*runs, ("this report", as_dict(report))])
        blocks = [history_block(cases[0])] if len(cases[0].runs) > 1 else []
        report = replace(report, blocks=(*report.blocks, *blocks))
        notes += history_notes(cases)
    if pictures != NO_PICTURES:
        source, searched = _with_pictures(source, pictures, inputs.format)
        notes += searched
    report = replace(report, notes=(*report.notes, *notes), page_source=source)
    session.stop_progress()
    session.print_notes(report.notes)
    session.check_warnings()
    data = WRITERS["html"].render(report, Style()).encode()
    write(page, data, sources, tables.files)
    if page != STDOUT and not session.quiet:
        session.print_line(f"{escape(page)}: {len(data) / 1000:,.0f} kB")
    session.print_time("reporting")


def _check_page(page: str, sources: Iterable[str]) -> None:
    """Raise UsageError or OutputError if the page cannot be written to a path."""
    if os.path.splitext(page)[1].lower() not in ("", ".html", ".htm"):
        raise UsageError(f"-o {escape(page)}: the page is HTML; use -o report.html")
    check_target(page, sources)


def _report(
    inputs: Inputs, tables: Tables, results: tuple[Result, Result | None], slicing: Gates
) -> Report:
    """Return the report of a detector, with slices."""
    result, earlier = results
    slices, notes = slicing.read_slices(result, inputs.format)
    if earlier is not None:
        notes += comparison_notes(result, earlier)
    blocks = []
    if slices:
        blocks = [slices_block(result, Scored.of(result, slices).slices)]
    described = tables.describe(digests=True)
    return detection_report(result, inputs=described, notes=notes, blocks=blocks)


def _with_pictures(
    source: PageSource, given: str | None, file_format: Format
) -> tuple[PageSource, list[Note]]:
    """Add the given image folder, or one near the ground truth, with a note."""
    images = [*map(str, source.result.images)]
    folders, names = file_format.image_files(source.result.ground_truth)
    folder, notes = None if given is None else ImageFolder(given), list[Note]()
    if given is None:
        folder, searched, links = find_folder(folders, names, images)
        parts = ["no images on the page"]
        if searched:
            more = ", ..." if len(searched) > _MAX_SEARCHED else ""
            shown = ", ".join(map(escape, searched[:_MAX_SEARCHED]))
            parts[0] += f": fewer than half have a file in {shown}{more}"
        if links:
            outside = ", ".join(map(escape, links))
            parts.append(f"{outside} not searched, because outside the data set")
        notes = [Note("no-images-found", "; ".join((*parts, "use --images DIR")), severity="info")]
        if folder is not None:
            notes = [Note("images-found", f"images from {escape(folder.path)}", severity="info")]
    files = folder and Pictures(folder, names)
    if given is not None and files is not None and not any(map(files.exists, images)):
        message = f"{escape(given)} has no image file of the data set; the page has no images"
        notes = [Note("no-images-found", message)]
    elif files is not None and (absent := files.missing(images)):
        message = f"images without a file in {escape(files.folder.path)}: {join_names(absent)}"
        notes.append(Note("images-missing", message, len(absent), "info"))
    return replace(source, pictures=folder, file_names=names), notes
