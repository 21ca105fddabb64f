"""Options that ask where a detector errs."""

from collections.abc import Mapping
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from detap.cli.options import option, stack
from detap.cli.values import Parsed, Whole
from detap.spelling import number

if TYPE_CHECKING:
    from detap.evaluation.results import Result
    from detap.report.model import Block

_ASKED = (
    "errors",
    "score_threshold",
    "confusion",
    "calibration",
    "breakdowns",
    "examples",
)
_BEST = "best"


class _ScoreThreshold(Parsed):
    """A score, or ``best``."""

    name = "score"

    def parse(self, text: str) -> float | str:
        """Return the number, or the word."""
        if text == _BEST:
            return _BEST
        try:
            found = number(text)
        except ValueError as error:
            raise ValueError(f"{error}; give a score, or best") from None
        if not isfinite(found):
            raise ValueError(f"{text!r} is no score")
        return found


_analysis = partial(option, group="Analysis (where the detector errs, at IoU .5)")
_choice = partial(_analysis, is_flag=False, flag_value="protocol")

analysis_options = stack(
    _choice(
        "--errors",
        type=click.Choice(("protocol", "tidecv")),
        help="The types of errors and the AP that each costs: by the protocol, or as tidecv.",
    ),
    _analysis(
        "--score-threshold",
        type=_ScoreThreshold(),
        metavar="X|best",
        help="Precision, recall, F1 and false positives per image at this score, or where F1 is "
        "best.",
    ),
    _choice(
        "--confusion",
        type=click.Choice(("protocol", "class-agnostic")),
        help="Which classes are taken for which: the protocol's matches first, or by score alone.",
    ),
    _analysis("--calibration", is_flag=True, help="Whether scores are what they claim."),
    _analysis(
        "--breakdowns",
        is_flag=True,
        help="Recall and precision by size, aspect ratio, crowding and position.",
    ),
    _analysis(
        "--examples",
        is_flag=False,
        flag_value=10,
        type=Whole(1, 100_000),
        metavar="[N]",
        help="The worst images, most confident mistakes and doubtful annotations. [default: 10]",
    ),
    _analysis("--analysis", "all_analyses", is_flag=True, help="All of these."),
)


def asks(options: Mapping[str, Any]) -> bool:
    """Tell whether any of it is asked for."""
    return options["all_analyses"] or any(options[name] not in (None, False) for name in _ASKED)


def answers(result: "Result", options: Mapping[str, Any]) -> "list[Block]":
    """Return what the report says of it."""
    if not asks(options):
        return []
    from detap.report.sections.analysis import Questions, analysis_blocks  # rare

    asked = {name: options[name] for name in _ASKED}
    return list(analysis_blocks(result, Questions(**asked, all=options["all_analyses"])))
