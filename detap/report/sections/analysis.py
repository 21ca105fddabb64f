"""What is asked about a detector besides its numbers: each section a block or several."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from detap.analysis.errors import Errors, errors
from detap.analysis.operating import Sweeps, sweeps
from detap.analysis.outcome import Outcome
from detap.evaluation.results import Result
from detap.report.model import Block, Cell
from detap.report.sections import SECTIONS
from detap.tables.detection import Floats

_BY_SCORE, _BY_RANK = 160, 80


class Subject:
    """A detector that is asked about.

    Attributes
    ----------
    result : Result
    before : Subject or None
        An earlier detector, on the same ground truth.
    score : float or None
        The threshold below which detections are left out, once one was asked for.
    """

    def __init__(self, result: Result, before: "Subject | None" = None) -> None:
        self.result, self.before = result, before
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

    @cached_property
    def sweeps(self) -> Sweeps:
        """Precision, recall and F1 over the score."""
        return sweeps(self.outcome)

    @property
    def best(self) -> float:
        """The score of the best F1 of all classes together; NaN without detections."""
        return self.sweeps.best.overall.score

    @cached_property
    def steps(self) -> Floats:
        """The score thresholds that a page steps over, (n,) float64, from the highest down.

        All that occur, or where they are many some, spread over the scores and over the detections;
        the best of every class and the best of all are among them.
        """
        swept, scores = self.sweeps.best, self.sweeps.overall.score
        if len(scores) <= _BY_SCORE + _BY_RANK:
            return scores
        even = np.linspace(scores[0], scores[-1], _BY_SCORE)
        places = np.concatenate(
            [
                np.searchsorted(-scores, -even),
                np.linspace(0, len(scores) - 1, _BY_RANK).astype(np.int64),
            ]
        )
        chosen = scores[np.clip(places, 0, len(scores) - 1)]
        best = np.array([point.score for point in (swept.overall, *swept.by_class)])
        return np.unique(np.concatenate([chosen, best[~np.isnan(best)]]))[::-1]

    def step_of(self, score: float) -> int | None:
        """Return the index of a threshold among the steps; None if it is undefined."""
        return None if np.isnan(score) else int(np.searchsorted(-self.steps, -score))


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
            yield from section.load().blocks(subject, asked.get(section.name, section.alone))
