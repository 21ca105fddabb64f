"""Analyses of a result, and the blocks of their sections."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from detap.analysis.errors import Errors, errors
from detap.analysis.match_results import Counts, MatchResults
from detap.analysis.operating import Sweeps, Threshold, sweeps
from detap.evaluation.results import Result
from detap.report.model import Block, Cell
from detap.report.numbers import names_of_classes
from detap.report.sections import SECTIONS
from detap.tables.detection import Floats

_BY_SCORE, _BY_RANK = 160, 80


class Analysis:
    """A result and its analyses, each computed once."""

    def __init__(
        self, result: Result, before: "Analysis | None" = None, threshold: Threshold | None = None
    ) -> None:
        self.result, self.before, self.threshold = result, before, threshold

    @cached_property
    def score(self) -> float | None:
        """The requested score threshold; None if all detections count."""
        if self.threshold != "best":
            return self.threshold
        return None if np.isnan(self.best) else self.best

    @cached_property
    def above(self) -> "Analysis":
        """The analysis of the detections at or above the score threshold."""
        if self.score is None:
            return self
        above = Analysis(self.result)
        above.match_results = self.match_results.above(self.score)
        return above

    @property
    def has_scores(self) -> bool:
        """True if detections are ranked by their scores."""
        return self.result.protocol.has_scores

    @property
    def names(self) -> list[dict[str, Cell]]:
        """The name and id of each class, as in the class table."""
        return names_of_classes(self.result)

    @cached_property
    def match_results(self) -> MatchResults:
        """The match results of each box."""
        return MatchResults.of(self.result)

    @cached_property
    def errors(self) -> Errors:
        """The types of errors, in the convention of the protocol."""
        return errors(self.match_results)

    @cached_property
    def sweeps(self) -> Sweeps:
        """Precision, recall and F1 over the score."""
        return sweeps(self.match_results)

    @property
    def best(self) -> float:
        """The score of the best F1 of all classes together; NaN without detections or scores."""
        return self.sweeps.best.overall.score if self.has_scores else np.nan

    @cached_property
    def steps(self) -> Floats:
        """The score thresholds of the page, in descending order; NaN for all without scores."""
        if not self.has_scores:
            return np.array([np.nan])
        # All scores, or a selection if there are many: spread over scores and detections, with the
        # best-F1 scores of each class and overall. The last is the lowest of both detectors.
        swept, scores = self.sweeps.best, self.sweeps.overall.score
        both = [self] if self.before is None else [self, self.before]
        lowest_scores = (analysis.match_results.run.lowest_score for analysis in both)
        lowest = min((score for score in lowest_scores if score is not None), default=None)
        if lowest is not None and (not len(scores) or lowest < scores[-1]):
            scores = np.append(scores, lowest)  # of a detection that is not counted, or earlier
        requested = [] if self.score is None else [self.score]
        if len(scores) <= _BY_SCORE + _BY_RANK:
            return np.unique(np.append(scores, requested))[::-1]
        even = np.linspace(scores[0], scores[-1], _BY_SCORE)
        ranks = np.linspace(0, len(scores) - 1, _BY_RANK).astype(np.int64)
        indices = np.concatenate([np.searchsorted(-scores, -even), ranks])
        chosen = scores[np.clip(indices, 0, len(scores) - 1)]
        best = np.array([*(point.score for point in (swept.overall, *swept.by_class)), *requested])
        return np.unique(np.concatenate([chosen, best[~np.isnan(best)]]))[::-1]

    def step_of(self, score: float) -> int | None:
        """Return the index of a threshold among the steps; None if it is undefined."""
        return None if np.isnan(score) else int(np.searchsorted(-self.steps, -score))


def added_at_steps(counts: Counts) -> list[str]:
    """Return rows of cumulative counts, (n, steps) int64, as texts for the page."""
    return [joined(row) for row in np.diff(counts, axis=1, prepend=0)]


def joined(added: Counts) -> str:
    """Join the changes at the steps by commas, with 0 left empty and none after the last."""
    return ",".join(str(count or "") for count in added.tolist()).rstrip(",")


def analysis_blocks(result: Result, requested: Mapping[str, Any]) -> Iterator[Block]:
    """Yield the blocks of the requested sections, all from one matching."""
    analysis = Analysis(result, threshold=requested.get("operating_point"))
    for section in SECTIONS:
        if section.name in requested:
            yield from section.load().blocks(analysis, requested[section.name])
