"""``detap compare``: compare two detectors on the same ground truth."""

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
        help=f"Number of resamples; 0: no intervals. [default: {DEFAULT_RESAMPLES}]",
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
        help="Maximum number of classes and images shown; JSON has all. [default: 10]",
    ),
    threads_option,
    _comparison(
        "--agreement",
        is_flag=True,
        is_eager=True,
        settable=False,
        help="Compare two annotators: FIRST and SECOND are ground truths of the same images.",
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
        "Two annotators": "detap compare --agreement first.json second.json",
    },
)
@click.argument("first", metavar="FIRST", shell_complete=files)
@click.argument("second", metavar="SECOND", shell_complete=files)
@ground_truth_options
@protocol_options
@selection_options
@compare_options
@output_options
@run_options
@click.pass_obj
def command(session: Session, /, first: str, second: str, **options: Any) -> int:
    """Compare two detectors on the same ground truth.

    FIRST and SECOND are detections. Print each metric of both, the difference with its
    confidence interval, and the classes and images that changed most.
    """
    if options.pop("agreement"):
        # Its modules take time to import, and comparisons of detectors do not need them.
        status: int = import_module("detap.cli.agreement").run(session, first, second, options)
        return status
    if options.pop("fail_under") and _is_given("fail_under"):
        raise UsageError("--fail-under requires --agreement; to gate a detector, use detap eval")
    if "-" in (first, second):
        raise UsageError("detections cannot come from stdin")
    options["dt"] = (first,)
    inputs = Inputs.from_options(options)
    protocol = inputs.protocol(options)
    if not options["resamples"]:
        _require_resamples(options["detectable_drop"])
    outputs = Outputs.from_options(options, inputs.paths(second), subject="a comparison")
    digests = outputs.needs_digests
    tables = inputs.for_protocols(protocol, digests=digests).read(session, second)
    first_result, second_result = tables.score(protocol, options)
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
