"""``detap compare``: compare two or more detectors on the same ground truth."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from operator import truediv
from typing import Any

import click
from click.core import ParameterSource

from detap.analysis.comparison import compare
from detap.analysis.detectors import (
    Settings,
    check_names,
    default_resamples,
    name_of,
    rank_detectors,
)
from detap.cli.command import files
from detap.cli.commands.eval import command as eval_command
from detap.cli.gates import limit_option
from detap.cli.inputs import Inputs, Tables
from detap.cli.options import (
    ground_truth_options,
    option,
    output_options,
    protocol_options,
    selection_options,
    threads_option,
)
from detap.cli.output import DATA_FORMATS, Outputs
from detap.cli.session import Session
from detap.cli.settings import ConfiguredCommand, run_options
from detap.cli.values import Integer, Text
from detap.errors import Note, UsageError
from detap.evaluation.results import Result
from detap.evaluation.sanity_notes import comparison_notes, cut_notes, score_cut_of
from detap.formats.class_map import map_detections, map_ground_truth
from detap.gates.config import DEFAULT_RESAMPLES, RESAMPLES, SEEDS
from detap.io.paths import SourceFile
from detap.protocols import Protocol
from detap.protocols.summary import DEFAULT_MIN_GROUND_TRUTHS
from detap.report.inputs import describe, describe_inputs
from detap.report.model import Report
from detap.report.sections.comparison import comparison_report, detectors_report
from detap.tables.detection import Detections
from detap.text_input import parse_fraction, quote

_comparison = partial(option, group="Comparison")


@click.command(
    cls=ConfiguredCommand,
    settings_command=eval_command,
    first="--gt --format --protocol --classes --confidence --resamples --output --output-format "
    "--quiet",
    examples={
        "Old and new detector": "detap compare old.json new.json --gt instances.json",
        "Table of several detectors, in LaTeX": (
            "detap compare runs/*.json --gt instances.json -o table.tex"
        ),
        "Two annotators": "detap compare --agreement first.json second.json",
    },
)
@click.argument("given", metavar="[NAME=]PATH...", nargs=-1, required=True, shell_complete=files)
@ground_truth_options
@protocol_options
@selection_options
@_comparison(
    "--confidence",
    type=Text(parse_fraction),
    default=0.95,
    metavar="LEVEL",
    help="Level of the confidence intervals. [default: 0.95]",
)
@_comparison(
    "--resamples",
    type=Integer(0, RESAMPLES[1]),
    default=DEFAULT_RESAMPLES,
    help=f"Number of resamples; 0: no intervals. [default: {DEFAULT_RESAMPLES}; more for five "
    "detectors and more]",
)
@_comparison(
    "--seed",
    type=Integer(*SEEDS),
    default=0,
    help="Seed of the resamples. [default: 0]",
)
@_comparison(
    "--min-ground-truths",
    type=Integer(0),
    default=DEFAULT_MIN_GROUND_TRUTHS,
    help="Omit intervals of metrics with fewer ground truths. "
    f"[default: {DEFAULT_MIN_GROUND_TRUTHS}]",
)
@_comparison(
    "--detectable-drop",
    type=Text(parse_fraction),
    metavar="X",
    help="Report how many images a drop of X needs.",
)
@_comparison(
    "--top",
    type=Integer(1),
    default=10,
    help="Maximum number of classes, images and pairs shown; all in JSON and with -v. "
    "[default: 10]",
)
@_comparison(
    "--reference",
    settable=False,
    metavar="NAME",
    help="Show differences to this detector; by default to the best.",
)
@_comparison(
    "--metric",
    settable=False,
    metavar="NAME",
    help="Rank detectors by this metric; by default by the primary metric.",
)
@_comparison(
    "--by-class",
    is_flag=True,
    settable=False,
    help="Show the metric of each class and detector.",
)
@threads_option
@_comparison(
    "--agreement",
    is_flag=True,
    is_eager=True,
    settable=False,
    help="Compare two annotators: the arguments are ground truths of the same images.",
)
@limit_option(
    "fail_under",
    "With --agreement: fail if a figure is below X: 0.8 for F1, kappa=0.7, 'class:cat.F1=0.6'. "
    "Repeatable.",
    "With --agreement: fail if a figure is below X: kappa=0.7.",
    settable=False,
)
@output_options
@run_options
@click.pass_obj
def command(session: Session, /, given: tuple[str, ...], **options: Any) -> int:
    """Compare two or more detectors on the same ground truth.

    Each PATH has the detections of one. Print of two each metric, the difference with its
    confidence interval, and the classes and images that changed most; of more, or with names,
    --reference, --metric or --by-class, a ranking.
    """
    if session.verbosity > 0 and not _is_given("top"):
        options["top"] = None  # all rows
    if options.pop("agreement"):
        if len(given) != 2:
            raise UsageError(f"--agreement compares two annotators, got {len(given)}")
        # Its modules take time to import, and comparisons of detectors do not need them.
        status: int = import_module("detap.cli.agreement").run(session, *given, options)
        return status
    if options.pop("fail_under") and _is_given("fail_under"):
        raise UsageError("--fail-under requires --agreement; to gate a detector, use detap eval")
    if "-" in given:
        raise UsageError("detections cannot come from stdin")
    if not options["resamples"]:
        for name in ("detectable_drop", "confidence", "seed", "min_ground_truths"):
            if _is_given(name):
                flag = f"--{name.replace('_', '-')}"
                raise UsageError(f"{flag} requires resamples; remove --resamples 0")
    named = [_name_and_path(text) for text in given]
    asked = options["by_class"] or options["reference"] or options["metric"]
    ranked = bool(asked or len(given) != 2 or any(name for name, _ in named))
    if ranked:
        if len(given) < 2:
            raise UsageError(
                f"expected two or more detections, got {len(given)}; a pattern or folder is one "
                "detector: give each file as an argument"
            )
        if _is_given("detectable_drop"):
            raise UsageError("--detectable-drop applies to two detectors without names; remove it")
        named = [(name or name_of(path), path) for name, path in named]
        check_names([name for name, _ in named], options["reference"])
    options["dt"] = (named[0][1],)
    inputs = Inputs.from_options(options)
    protocol = inputs.protocol(options)
    paths = inputs.paths(*(path for _, path in named[1:]))
    outputs = Outputs.from_options(
        options,
        paths,
        subject="a comparison",
        formats=(*DATA_FORMATS, "html") if ranked else DATA_FORMATS,
        hint="" if ranked else "; for a page: detap report --baseline-detections FIRST",
    )
    inputs = inputs.for_protocols(protocol, digests=outputs.needs_digests)
    make = _of_many if ranked else _of_two
    report, read = make(session, inputs, protocol, named, options)
    outputs.publish(report, session, read)
    return 0


_MANY = 3  # other detectors, from which on one note stands for all of a code

Named = Sequence[tuple[str, str]]  # name and path of each detector


def _of_two(
    session: Session, inputs: Inputs, protocol: Protocol, named: Named, options: dict[str, Any]
) -> tuple[Report, Sequence[SourceFile]]:
    """Compare two detectors; return the report, and the files read."""
    tables = inputs.read(session, named[1][1])
    first, second = tables.score(protocol, options, match_table=True)
    assert tables.other is not None
    assert second is not None
    settings = {name: options[name] for name in (*Settings._fields, "threads")}
    comparison = compare(first, second, **settings)
    session.print_time("comparing")
    digests = inputs.reading["limits"].digests
    roles = {"first": tables.detections, "second": tables.other}
    notes = dict.fromkeys((*first.notes, *second.notes, *comparison.notes))
    report = comparison_report(
        comparison,
        inputs=describe_inputs(tables.ground_truth, digests=digests, **roles),
        notes=(*notes, *comparison_notes(second, first)),
        max_rows=options["top"],
        drop=options["detectable_drop"],
    )
    return report, tables.files


def _of_many(
    session: Session, inputs: Inputs, protocol: Protocol, named: Named, options: dict[str, Any]
) -> tuple[Report, Sequence[SourceFile]]:
    """Rank several detectors; return the report, and the files read."""
    if _source("resamples") is ParameterSource.DEFAULT:
        options["resamples"] = default_resamples(len(named), options["confidence"])
    session.start_progress("Reading the ground truth")
    truths = [inputs.read_ground_truth(inputs.gt)]  # as read, and with mapped classes
    session.print_time("reading the ground truth")
    if inputs.class_map is not None:
        truths.append(map_ground_truth(inputs.class_map, truths[0]))
    read: dict[str, tuple[Sequence[Note], float | None, Sequence[SourceFile]]] = {}

    def score(name: str, table: Detections, protocol: Protocol) -> Result:
        keep = bool(options["resamples"])
        result, _ = Tables(truths[-1], table).score(protocol, options, match_table=keep)
        session.print_time(f"evaluating {quote(name)}")
        read[name] = result.notes, score_cut_of(result), table.files
        return result

    def results() -> Iterator[tuple[str, Result]]:
        """Yield the results, without keeping one; those without detections last."""
        classes: dict[str, None] = {}  # of all detectors, before the class map
        empty, of_empty = [], protocol
        for number, (name, path) in enumerate(named):
            step = f"Detector {number + 1} of {len(named)}"
            session.start_progress(step, partial(truediv, number, len(named)))
            table = inputs.read_detector(path, truths[0])
            classes |= dict.fromkeys(table.classes)
            if inputs.class_map is not None:
                table = map_detections(inputs.class_map, table, *truths)
            if not len(table):
                empty.append((name, table))
                continue
            result = score(name, table, protocol)
            of_empty = result.protocol  # without scores if the detections have none
            yield name, result
            del table, result  # before the next ones are read
        for name, table in empty:
            yield name, score(name, table, of_empty)
        if inputs.class_map is not None:
            inputs.class_map.check_names(truths[0].classes, classes)

    detectors = rank_detectors(
        results(),
        Settings(*(options[name] for name in Settings._fields)),
        reference=options["reference"],
        metric=options["metric"],
        threads=options["threads"],
    )
    digests, files = inputs.reading["limits"].digests, [*truths[0].files]
    described = describe_inputs(truths[-1], digests=digests)
    noted, cuts = [], {}
    for name, _ in named:
        notes, cuts[name], of_detector = read[name]
        noted += [(name, note) for note in notes]
        files += of_detector
        entries = describe("detections", of_detector, digests=digests)
        described += [{**entry, "detector": name} for entry in entries]
    report = detectors_report(
        detectors,
        inputs=described,
        notes=[*_joined(noted, len(named)), *cut_notes(cuts)],
        max_rows=options["top"],
        by_class=options["by_class"],
    )
    return report, files


def _joined(noted: Sequence[tuple[str, Note]], count: int) -> Iterator[Note]:
    """Yield the notes, those of some detectors with their names, of many with the first's text."""
    for code in dict.fromkeys(note.code for _, note in noted):
        (name, note), *others = named = [each for each in noted if each[1].code == code]
        if len(named) == count and all(other == note for _, other in others):
            yield note
        elif len(others) < _MANY:
            yield from (replace(note, message=f"{name}: {note.message}") for name, note in named)
        else:
            message = f"{name} and {len(others)} more detectors: {note.message}"
            yield replace(note, message=message)


def _name_and_path(text: str) -> tuple[str, str]:
    """Return the name, or an empty text, and the path of PATH or NAME=PATH."""
    # An existing file may have = in its name, as may a URL or a folder.
    match = None if os.path.lexists(text) else re.fullmatch(r"([^=/\\]+)=(.+)", text)
    return (match[1], match[2]) if match else ("", text)


def _is_given(name: str) -> bool:
    """Return True if an option is on the command line, not in a settings file for detap eval."""
    return _source(name) is ParameterSource.COMMANDLINE


def _source(name: str) -> ParameterSource | None:
    return click.get_current_context().get_parameter_source(name)
