"""What is asked about a detector besides its numbers: each section a block or several."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from detap.analysis.errors import Errors, errors
from detap.analysis.outcome import Outcome
from detap.evaluation.results import Result
from detap.report.model import Block, Cell
from detap.report.sections import SECTIONS


class Subject:
    """A detector that is asked about.

    Attributes
    ----------
    result : Result
    score : float or None
        The threshold below which detections are left out, once one was asked for.
    """

    def __init__(self, result: Result) -> None:
        self.result = result
        self.score: float | None = None

    @property
    def names(self) -> list[dict[str, Cell]]:
        """What each class is called, its name and id, as the rows of the class table do."""
        result = self.result
        ids = [None] * len(result.classes) if result.protocol.class_agnostic else result.class_ids
        return [{"name": name, "id": key} for name, key in zip(result.classes, ids, strict=True)]

    @cached_property
    def outcome(self) -> Outcome:
        """What became of each box: of a result that has boxes."""
        return Outcome.of(self.result)

    @cached_property
    def errors(self) -> Errors:
        """The types of errors, in the convention of the protocol."""
        return errors(self.outcome)


def analysis_blocks(
    result: Result, asked: Mapping[str, Any], *, everything: bool = False
) -> Iterator[Block]:
    """Yield the blocks of the sections that were asked for, all from one matching.

    Parameters
    ----------
    result : Result
    asked : mapping
        The values of options by the names of their sections.
    everything : bool
        Whether the other sections are asked for too.

    Raises
    ------
    UsageError
        Where the protocol ranks no detections, or scores that should be calibrated are no shares.
    """
    subject = Subject(result)
    for section in SECTIONS:
        if everything or section.name in asked:
            yield from section.load().blocks(subject, asked.get(section.name))
