"""Precision, recall and F1 over the score threshold.

A threshold s keeps detections with a score of at least s. Candidates are the scores that occur.
Ignored detections and those over max dets are left out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from detap.analysis.match_results import Counts, MatchResults, threshold_of
from detap.core.match_table import MatchTable
from detap.display import Brief, Displayed
from detap.errors import UsageError
from detap.evaluation.results import Result
from detap.metrics.at_threshold import AT_THRESHOLD
from detap.tables.detection import Floats

_ROUNDING = 1e-12

Value = TypeVar("Value", float, Floats)


class _AtThreshold(Generic[Value]):
    """Metrics at one or several score thresholds; undefined ones are NaN."""

    def _metric(self, name: str) -> Value:
        raise NotImplementedError

    @property
    def precision(self) -> Value:
        """Fraction of true positives among kept detections."""
        return self._metric("precision")

    @property
    def recall(self) -> Value:
        """Fraction of true positives among ground truths."""
        return self._metric("recall")

    @property
    def f1(self) -> Value:
        """The harmonic mean of precision and recall."""
        return self._metric("F1")

    @property
    def false_positives_per_image(self) -> Value:
        """False positives per image."""
        return self._metric("false-positives-per-image")


@dataclass(frozen=True, slots=True)
class Point(_AtThreshold[float]):
    """Counts of a detector or class at one score threshold; undefined metrics are NaN."""

    score: float  # the threshold; NaN without candidates
    true_positives: int
    false_positives: int
    false_negatives: int
    images: int  # including images without ground truth

    def metrics(self) -> dict[str, float]:
        """Return the metrics at a score threshold by name."""
        return {name: self._metric(name) for name in AT_THRESHOLD}

    def _metric(self, name: str) -> float:
        counts = self.true_positives, self.false_positives, self.false_negatives, self.images
        return float(AT_THRESHOLD[name].of_counts(*map(np.asarray, counts)))


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class Sweep(_AtThreshold[Floats], Brief):
    """Counts at each of n candidate thresholds, from the highest down."""

    score: Floats  # (n,) falling; no two are equal
    true_positives: Counts  # (n,)
    false_positives: Counts  # (n,)
    positives: int  # number of ground truths, without ignored
    images: int

    def _metric(self, name: str) -> Floats:
        right, wrong = self.true_positives, self.false_positives
        counts = right, wrong, self.positives - right, np.array(self.images)
        return AT_THRESHOLD[name].of_counts(*counts)

    def at(self, score: float) -> Point:
        """Return the point at any threshold; NaN keeps no detection."""
        index = int(np.count_nonzero(self.score >= score)) - 1
        right = int(self.true_positives[index]) if index >= 0 else 0
        wrong = int(self.false_positives[index]) if index >= 0 else 0
        return Point(score, right, wrong, self.positives - right, self.images)

    @property
    def best(self) -> Point:
        """The point with the largest F1; of equal ones that with the highest score."""
        # F1 is compared as integer fractions, without rounding.
        if not len(self.score):
            return self.at(float("nan"))
        f1 = self.f1
        close = np.flatnonzero(f1 >= f1.max() * (1 - _ROUNDING))
        denominators = self.positives + self.true_positives + self.false_positives
        numerators, denominators = self.true_positives[close].tolist(), denominators[close].tolist()
        first = 0
        for index in range(1, len(close)):
            if numerators[index] * denominators[first] > numerators[first] * denominators[index]:
                first = index
        return self.at(float(self.score[close[first]]))


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class Sweeps(Brief):
    """Sweeps of a detector, over all K classes and for each."""

    iou: float
    classes: tuple[str, ...]
    overall: Sweep  # of the counts of all classes together
    by_class: tuple[Sweep, ...]

    @cached_property
    def best(self) -> "OperatingPoint":
        """Operating point with the largest F1, overall and for each class."""
        return self._points(lambda sweep: sweep.best)

    def at(self, score: float) -> "OperatingPoint":
        """Return the operating point at a threshold, overall and for each class."""
        return self._points(lambda sweep: sweep.at(score))

    def _points(self, point: Callable[[Sweep], Point]) -> "OperatingPoint":
        return OperatingPoint(
            iou=self.iou,
            classes=self.classes,
            overall=point(self.overall),
            by_class=tuple(map(point, self.by_class)),
        )


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class OperatingPoint(Displayed):
    """Counts of a detector at one threshold, or at the best of each class."""

    iou: float
    classes: tuple[str, ...]
    overall: Point  # of the counts of all classes together
    by_class: tuple[Point, ...]

    @property
    def macro_f1(self) -> float:
        """Mean F1 over the classes with ground truths; NaN without any."""
        values = [
            point.f1 for point in self.by_class if point.true_positives + point.false_negatives
        ]
        return float(np.mean(values)) if values else float("nan")


Threshold = float | Literal["best"]
"""A score threshold for all classes, or the one with the largest F1 for each."""


def threshold(given: object) -> Threshold:
    """Validate a score threshold."""
    if isinstance(given, str) and given == "best":
        return "best"
    if isinstance(given, int | float | np.number) and not isinstance(given, bool):
        value = float(given)
        if isfinite(value):
            return value
    raise UsageError(f"score threshold {given!r} is neither a number nor 'best'")


def operating_point(
    result: Result | MatchResults, score: Threshold = "best", *, iou: float | None = None
) -> OperatingPoint:
    """Compute precision, recall and F1 at a score threshold, or at the largest F1."""
    score, all_sweeps = threshold(score), sweeps(result, iou=iou)
    return all_sweeps.best if isinstance(score, str) else all_sweeps.at(score)


def sweeps(result: Result | MatchResults, *, iou: float | None = None) -> Sweeps:
    """Compute precision, recall and F1 over the score."""
    if isinstance(result, MatchResults):
        threshold, iou = result.threshold, result.iou
    else:
        threshold = threshold_of(result.protocol, iou)
        iou = result.protocol.iou_thresholds[threshold]
    match_table = result.match_table
    positives = match_table.ground_truth_counts[0].tolist()
    return Sweeps(
        iou=iou,
        classes=result.classes,
        overall=sweep(match_table, threshold, match_table.by_score, sum(positives)),
        by_class=tuple(
            sweep(match_table, threshold, match_table.ranking.of_class(label), count)
            for label, count in enumerate(positives)
        ),
    )


def sweep(
    match_table: MatchTable, threshold: int, ranked: NDArray[np.int32], positives: int
) -> Sweep:
    """Return the counts of ranked detections at each of their scores."""
    ranked = ranked[~match_table.is_ignored(0, threshold, ranked)]
    score = match_table.score[ranked]
    last = np.flatnonzero(np.append(score[1:] != score[:-1], True)[: len(score)])
    right = np.cumsum(match_table.is_true_positive(0, threshold, ranked), dtype=np.int64)[last]
    return Sweep(
        score=score[last],
        true_positives=right,
        false_positives=last + 1 - right,
        positives=positives,
        images=match_table.images,
    )
