"""``detap compare``: compare two or more detectors on the same ground truth."""

import os
import re
from functools import partial
from importlib import import_module
from typing import Any

import click
from click.core import ParameterSource

from detap.analysis.comparison import compare
from detap.cli.command import files
from detap.cli.commands.eval import command as eval_command
from detap.cli.gates import limit_option
from detap.cli.inputs import Inputs
from detap.cli.options import (
    ground_truth_options,
    option,
    output_options,
    protocol_options,
    selection_options,
    stack,
    threads_option,
)
from detap.cli.output import Outputs
from detap.cli.session import Session
from detap.cli.settings import ConfiguredCommand, run_options
from detap.cli.values import Integer, Text
from detap.errors import UsageError
from detap.evaluation.sanity_notes import comparison_notes
from detap.gates.config import DEFAULT_RESAMPLES, RESAMPLES, SEEDS
from detap.protocols.summary import DEFAULT_MIN_GROUND_TRUTHS
from detap.report.inputs import describe
from detap.report.sections.comparison import comparison_report
from detap.text_input import parse_fraction

_comparison = partial(option, group="Comparison")

compare_options = stack(
    _comparison(
        "--confidence",
        type=Text(parse_fraction),
        default=0.95,
        metavar="LEVEL",
        help="Level of the confidence intervals. [default: 0.95]",
    ),
    _comparison(
        "--resamples",
        type=Integer(0, RESAMPLES[1]),
        default=DEFAULT_RESAMPLES,
        help=f"Number of resamples; 0: no intervals. [default: {DEFAULT_RESAMPLES}; more for five "
        "detectors and more]",
    ),
    _comparison(
        "--seed",
        type=Integer(*SEEDS),
        default=0,
        help="Seed of the resamples. [default: 0]",
    ),
    _comparison(
        "--min-ground-truths",
        type=Integer(0),
        default=DEFAULT_MIN_GROUND_TRUTHS,
        help="Omit intervals of metrics with fewer ground truths. "
        f"[default: {DEFAULT_MIN_GROUND_TRUTHS}]",
    ),
    _comparison(
        "--detectable-drop",
        type=Text(parse_fraction),
        metavar="X",
        help="Report how many images a drop of X needs.",
    ),
    _comparison(
        "--top",
        type=Integer(1),
        default=10,
        help="Maximum number of classes, images and pairs shown; all in JSON and with -v. "
        "[default: 10]",
    ),
    _comparison(
        "--reference",
        settable=False,
        metavar="NAME",
        help="Show differences to this detector; by default to the best.",
    ),
    _comparison(
        "--metric",
        settable=False,
        metavar="NAME",
        help="Rank detectors by this metric; by default by the primary metric.",
    ),
    _comparison(
        "--by-class",
        is_flag=True,
        settable=False,
        help="Show the metric of each class and detector.",
    ),
    threads_option,
    _comparison(
        "--agreement",
        is_flag=True,
        is_eager=True,
        settable=False,
        help="Compare two annotators: the arguments are ground truths of the same images.",
    ),
    limit_option(
        "fail_under",
        "With --agreement: fail if a figure is below X: 0.8 for F1, kappa=0.7, 'class:cat.F1=0.6'. "
        "Repeatable.",
        "With --agreement: fail if a figure is below X: kappa=0.7.",
        settable=False,
    ),
)


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
@compare_options
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
        _require_resamples(options["detectable_drop"])
    named = [_name_and_path(text) for text in given]
    ranking = options["by_class"] or options["reference"] or options["metric"]
    if ranking or len(given) != 2 or any(name for name, _ in named):
        if len(given) < 2:
            raise UsageError(
                f"expected two or more detections, got {len(given)}; a pattern or folder is one "
                "detector: give each file as an argument"
            )
        if _is_given("detectable_drop"):
            raise UsageError("--detectable-drop applies to two detectors without names; remove it")
        ranked: int = import_module("detap.cli.detectors").run(session, named, options)
        return ranked
    first, second = given
    options["dt"] = (first,)
    inputs = Inputs.from_options(options)
    protocol = inputs.protocol(options)
    hint = "; for a page: detap report --baseline-detections FIRST"
    paths = inputs.paths(second)
    outputs = Outputs.from_options(options, paths, subject="a comparison", hint=hint)
    digests = outputs.needs_digests
    tables = inputs.for_protocols(protocol, digests=digests).read(session, second)
    first_result, second_result = tables.score(protocol, options, match_table=True)
    assert tables.other is not None
    assert second_result is not None
    names = ("confidence", "resamples", "seed", "min_ground_truths", "threads")
    comparison = compare(first_result, second_result, **{name: options[name] for name in names})
    session.print_time("comparing")
    truth = tables.ground_truth
    described = describe("ground_truth", truth.files, digests=digests, images=len(truth.images))
    described += describe("first", tables.detections.files, digests=digests)
    described += describe("second", tables.other.files, digests=digests)
    report = comparison_report(
        comparison,
        inputs=described,
        notes=(
            *dict.fromkeys((*comparison.first.notes, *comparison.second.notes, *comparison.notes)),
            *comparison_notes(comparison.second, comparison.first),
        ),
        max_rows=options["top"],
        drop=options["detectable_drop"],
    )
    outputs.publish(report, session, tables.files)
    return 0


def _name_and_path(text: str) -> tuple[str, str]:
    """Return the name, or an empty text, and the path of PATH or NAME=PATH."""
    # An existing file may have = in its name, as may a URL or a folder.
    match = None if os.path.lexists(text) else re.fullmatch(r"([^=/\\]+)=(.+)", text)
    return (match[1], match[2]) if match else ("", text)


def _is_given(name: str) -> bool:
    """Return True if an option is on the command line, not in a settings file for detap eval."""
    source = click.get_current_context().get_parameter_source(name)
    return source is ParameterSource.COMMANDLINE


def _require_resamples(drop: float | None) -> None:
    """Raise UsageError for options that require resamples."""
    names = ("confidence", "seed", "min_ground_truths")
    unused = ["detectable_drop"] if drop is not None else []
    unused += [name for name in names if _is_given(name)]
    if unused:
        option = f"--{unused[0].replace('_', '-')}"
        raise UsageError(f"{option} requires resamples; remove --resamples 0")
