"""What is asked about a detector besides its numbers: each question a block or several.

A question's module is loaded when it is asked: each takes 0.001 s or more.
"""

from collections.abc import Iterator
from functools import cached_property
from math import isnan
from typing import TYPE_CHECKING, NamedTuple

from detap.analysis.outcome import Outcome
from detap.errors import UsageError
from detap.evaluation.results import Result
from detap.report.model import Block, Cell

if TYPE_CHECKING:
    from detap.analysis.confusion import Rule
    from detap.analysis.errors import Convention
    from detap.analysis.operating import Threshold


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

    errors: "Convention | None" = None
    score_threshold: "Threshold | None" = None
    confusion: "Rule | None" = None
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
        Where the protocol ranks no detections, or scores that should be calibrated are no shares.
    """
    if asked == Questions():
        return
    whole, subject = asked.all, _Subject(result)
    if asked.errors or whole:
        yield from subject.errors(asked.errors or "protocol")
    if asked.score_threshold is not None or whole:
        yield subject.operating_point(asked.score_threshold)
    if asked.confusion or whole:
        yield subject.confusion(asked.confusion or "protocol")
    if asked.calibration:
        yield subject.calibration()
    elif whole:
        yield subject.calibration_or_why_not()
    if asked.breakdowns or whole:
        yield subject.breakdowns()
    if asked.examples or whole:
        yield from subject.examples(asked.examples or MOST_EXAMPLES)


class _Subject:
    """A detector that is asked about."""

    def __init__(self, result: Result) -> None:
        self.result = result
        self.names = class_names(result)
        self.score: float | None = None
        """The threshold below which detections are left out, once one was asked for."""

    @cached_property
    def outcome(self) -> Outcome:
        """What became of each box: of a result that has boxes."""
        return Outcome.of(self.result)

    def errors(self, convention: "Convention") -> Iterator[Block]:
        from detap.analysis.errors import errors
        from detap.report.sections.errors import errors_blocks

        subject = self.outcome if convention == "protocol" else self.result
        return errors_blocks(errors(subject, convention), self.names)

    def operating_point(self, score: "Threshold | None") -> Block:
        from detap.analysis.operating import operating_point
        from detap.report.sections.operating import operating_block

        # Boxes are not needed for it, which partials have not.
        subject = self.outcome if self.result.has_boxes else self.result
        point = operating_point(subject, "best" if score is None else score)
        if score is not None and not isnan(point.overall.score):
            self.score = point.overall.score
        return operating_block(point, None if isinstance(score, str) else score, self.names)

    def confusion(self, rule: "Rule") -> Block:
        from detap.analysis.confusion import confusion
        from detap.report.sections.confusion import confusion_block

        return confusion_block(confusion(self.outcome, rule, score=self.score))

    def calibration(self) -> Block:
        from detap.analysis.calibration import calibration
        from detap.report.sections.calibration import calibration_block

        return calibration_block(calibration(self.outcome), self.names)

    def calibration_or_why_not(self) -> Block:
        try:
            return self.calibration()
        except UsageError as error:
            return Block("", "Calibration of the scores", {}, (str(error),))

    def breakdowns(self) -> Block:
        from detap.analysis.breakdowns import breakdowns, iou_histogram, score_histogram
        from detap.report.sections.breakdowns import breakdowns_block

        parts = breakdowns(self.outcome, score=self.score)
        return breakdowns_block(parts, score_histogram(self.outcome), iou_histogram(self.outcome))

    def examples(self, most: int) -> Iterator[Block]:
        from detap.analysis.errors import errors
        from detap.report.sections.examples import examples_blocks

        types = errors(self.outcome)
        return examples_blocks(self.outcome, types, score=self.score, most=most)


def class_names(result: Result) -> list[dict[str, Cell]]:
    """Return what each class is called, its name and id, as the rows of the class table do."""
    rules = result.protocol
    ids = [None] * len(result.classes) if rules.class_agnostic else result.class_ids
    return [{"name": name, "id": number} for name, number in zip(result.classes, ids, strict=True)]
