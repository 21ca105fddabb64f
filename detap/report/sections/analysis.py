"""What is asked about a detector besides its numbers: each question a block or several."""

from collections.abc import Iterator
from math import isnan
from typing import NamedTuple

from detap.analysis.breakdowns import breakdowns, iou_histogram, score_histogram
from detap.analysis.calibration import calibration
from detap.analysis.confusion import Rule, confusion
from detap.analysis.errors import Convention, Errors, errors
from detap.analysis.operating import Threshold, operating_point
from detap.analysis.outcome import Outcome
from detap.errors import UsageError
from detap.report.model import Block, Cell
from detap.report.sections.breakdowns import breakdowns_block
from detap.report.sections.calibration import calibration_block
from detap.report.sections.confusion import confusion_block
from detap.report.sections.errors import errors_blocks
from detap.report.sections.examples import examples_blocks
from detap.report.sections.operating import operating_block
from detap.results import Result


class Questions(NamedTuple):
    """What is asked; None and False are not.

    Attributes
    ----------
    errors : {"protocol", "tidecv"} or None
        Types of errors, in which convention.
    score_threshold : float or "best" or None
        The operating point: a threshold for all, or that of the best F1 of each. Confusion,
        breakdowns and worst images leave out detections below it.
    confusion : {"protocol", "class-agnostic"} or None
    calibration : bool
    breakdowns : bool
    examples : int or None
        How many of each at most.
    all : bool
        All of these; what cannot be answered says why.
    """

    errors: Convention | None = None
    score_threshold: Threshold | None = None
    confusion: Rule | None = None
    calibration: bool = False
    breakdowns: bool = False
    examples: int | None = None
    all: bool = False


MOST_EXAMPLES = 10


def analysis_blocks(result: Result, asked: Questions) -> Iterator[Block]:
    """Yield the answers, all from one matching.

    Raises
    ------
    UsageError
        Where the protocol pairs by coverage, or scores that should be calibrated are no shares.
    """
    if asked == Questions():
        return
    whole = asked.all
    outcome = Outcome.of(result)
    names = class_names(result)
    if asked.errors or whole:
        yield from errors_blocks(_errors(result, outcome, asked.errors or "protocol"), names)
    score = None
    if asked.score_threshold is not None or whole:
        point = operating_point(outcome, asked.score_threshold or "best")
        if asked.score_threshold is not None and not isnan(point.overall.score):
            score = point.overall.score
        given = None if isinstance(asked.score_threshold, str) else asked.score_threshold
        yield operating_block(point, given, names)
    if asked.confusion or whole:
        yield confusion_block(confusion(outcome, asked.confusion or "protocol", score=score))
    if asked.calibration or whole:
        try:
            yield calibration_block(calibration(outcome), names)
        except UsageError as error:
            if asked.calibration:
                raise
            yield Block("", "Calibration of the scores", {}, (str(error),))
    if asked.breakdowns or whole:
        parts = breakdowns(outcome, score=score)
        yield breakdowns_block(parts, score_histogram(outcome), iou_histogram(outcome))
    if asked.examples or whole:
        most = asked.examples or MOST_EXAMPLES
        yield from examples_blocks(outcome, errors(outcome), score=score, most=most)


def class_names(result: Result) -> list[dict[str, Cell]]:
    """Return what each class is called, its name and id, as the rows of the class table do."""
    rules = result.protocol
    ids = [None] * len(result.classes) if rules.class_agnostic else result.detections.class_ids
    return [{"name": name, "id": number} for name, number in zip(result.classes, ids, strict=True)]


def _errors(result: Result, outcome: Outcome, convention: Convention) -> Errors:
    return errors(outcome if convention == "protocol" else result, convention)
