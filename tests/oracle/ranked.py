"""Metrics of the ranking of one class as plain loops over its points.

Counts are integers and references are fractions, so no comparison is rounded.

Sources: Dollár et al., Pedestrian Detection, PAMI 34 (2012), for the miss rate; the evaluation
script of LUNA16 for FROC; scikit-learn's precision_recall_curve, whose thresholds are whole.
"""

from collections.abc import Callable
from fractions import Fraction
from math import exp, log, nan
from typing import NamedTuple

from detap.protocols import Protocol
from detap.tables.detection import Detections, GroundTruth
from tests.oracle.score import _OneClass, counted_detections, with_area


class Point(NamedTuple):
    """Counts after a detection."""

    tp: int
    fp: int
    score: float


class Ranking(NamedTuple):
    """The detections of a class that count, by descending score."""

    hits: list[bool]
    scores: list[float]
    positives: int
    images: int
    duplicates: list[bool]

    def thresholds(self) -> list[Point]:
        """Return the counts at each distinct score."""
        return [
            Point(
                sum(hit for hit, score in zip(self.hits, self.scores, strict=True) if score >= at),
                sum(not hit for hit, s in zip(self.hits, self.scores, strict=True) if s >= at),
                at,
            )
            for at in sorted(set(self.scores), reverse=True)
        ]

    def without_duplicates(self) -> "Ranking":
        """Return the ranking without duplicates."""
        kept = [k for k, duplicate in enumerate(self.duplicates) if not duplicate]
        return self._replace(
            hits=[self.hits[k] for k in kept],
            scores=[self.scores[k] for k in kept],
            duplicates=[False] * len(kept),
        )

    def points(self) -> list[Point]:
        """Return the counts after each detection."""
        return [
            Point(sum(self.hits[: k + 1]), k + 1 - sum(self.hits[: k + 1]), self.scores[k])
            for k in range(len(self.hits))
        ]


def ranking(
    truth: GroundTruth,
    detections: Detections,
    protocol: Protocol,
    label: int,
    *,
    threshold: int = 0,
    area: int = 0,
) -> Ranking:
    """Return the ranking of a class at an IoU threshold and area range."""
    detections = counted_detections(detections, protocol)
    truth = with_area(truth, protocol)
    band = protocol.area_ranges[area]
    one = _OneClass(truth, detections, protocol, label, band)
    matches = one.matches(protocol.search_thresholds[threshold])
    counted = [(row, match) for row, match in matches.items() if not match.ignored]
    return Ranking(
        [match.truth != -1 for _, match in counted],
        [float(detections.score[row]) for row, _ in counted],
        one.positives,
        len(truth.images),
        [match.truth == -1 and match.duplicate for _, match in counted],
    )


def pooled(truth: GroundTruth, detections: Detections, protocol: Protocol, classes: int) -> Ranking:
    """Return the rankings of all classes as one; scores are distinct, so their order is clear."""
    parts = [ranking(truth, detections, protocol, label) for label in range(classes)]
    rows = sorted(
        (
            row
            for part in parts
            for row in zip(part.scores, part.hits, part.duplicates, strict=True)
        ),
        reverse=True,
    )
    return Ranking(
        [row[1] for row in rows],
        [row[0] for row in rows],
        sum(part.positives for part in parts),
        len(truth.images),
        [row[2] for row in rows],
    )


def miss_rate(ranking: Ranking, references: list[Fraction], rule: str, floor: float) -> float:
    """Return the log-average miss rate; the references are fourth powers of FPPI."""
    if not ranking.positives:
        return nan
    points = ranking.points()
    product = 0.0
    for reference in references:
        fppi = {p: Fraction(p.fp, ranking.images) ** 4 for p in points}
        chosen = [p for p in points if fppi[p] <= reference][-1:]
        if rule == "at-least":
            chosen = [p for p in points if fppi[p] >= reference][:1]
            if reference == 0:  # reached before any detection; no script has it
                chosen = [Point(0, 0, nan)]
        if rule != "at-most":
            chosen = chosen or points[-1:]
        miss = 1 - chosen[0].tp / ranking.positives if chosen else 1.0
        miss = max(miss, floor)
        if miss == 0:
            return 0.0
        product += log(miss)
    return exp(product / len(references))


ROUNDED = {
    "MR-2": ".01 .0178 .0316 .0562 .1 .1778 .3162 .5623 1",
    "MR-4": ".0001 .0003 .001 .0032 .01 .0316 .1 .3162 1",
}


def references(name: str, points: str) -> list[Fraction]:
    """Return the fourth powers of the nine reference FPPI of a metric."""
    if points == "rounded":
        return [Fraction(text) ** 4 for text in ROUNDED[name].split()]
    exponents = range(-8, 1) if name == "MR-2" else range(-16, 1, 2)
    return [Fraction(10) ** e for e in exponents]  # fourth powers of 10 ** (e / 4)


def recall_at(ranking: Ranking, fppi: Fraction, rule: str) -> float:
    """Return the recall at an FPPI, of the last point within it or interpolated."""
    if not ranking.positives:
        return nan
    points = [Point(0, 0, nan), *ranking.thresholds()]
    limit = fppi * ranking.images
    k = max(index for index, point in enumerate(points) if point.fp <= limit)
    recall = Fraction(points[k].tp, ranking.positives)
    if rule == "linear" and k + 1 < len(points):
        rise = Fraction(points[k + 1].tp, ranking.positives) - recall
        width = points[k + 1].fp - points[k].fp
        recall += rise * (limit - points[k].fp) / width
    return float(recall)


def mean_recall(ranking: Ranking, fppi: list[Fraction], rule: str) -> float:
    """Return the mean recall at some FPPI."""
    return sum(recall_at(ranking, one, rule) for one in fppi) / len(fppi)


def best(ranking: Ranking, value: Callable[[Point, int], Fraction | None]) -> tuple[float, float]:
    """Return the largest value over thresholds, and the highest threshold that has it.

    `value` takes a point and the number of ground truths; it returns None for no candidate.
    """
    if not ranking.positives:
        return nan, nan
    values = [
        (one, point.score)
        for point in ranking.thresholds()
        if (one := value(point, ranking.positives)) is not None
    ]
    largest = max((one for one, _ in values), default=Fraction(0))
    return float(largest), next((score for one, score in values if one == largest), nan)


def area_at_thresholds(ranking: Ranking, scores: list[float], count: int) -> float:
    """Return the area under the envelope of the points at equidistant score thresholds.

    `scores` are those of all detections, also of ignored ones.
    """
    if not ranking.positives:
        return nan
    low, high = min(scores, default=nan), max(scores, default=nan)
    points = []
    for k in range(1, count + 1):
        kept = [
            hit
            for hit, score in zip(ranking.hits, ranking.scores, strict=True)
            if low == high or (score - low) / (high - low) >= 1 - k / count
        ]
        if kept:
            points.append((sum(kept) / ranking.positives, sum(kept) / len(kept)))
    area, before = 0.0, 0.0
    for k, (recall, _) in enumerate(points):
        area += (recall - before) * max(precision for _, precision in points[k:])
        before = recall
    return area


def f_beta(beta: Fraction) -> Callable[[Point, int], Fraction | None]:
    """Return F-beta of a point."""
    square = beta**2
    return lambda p, n: (1 + square) * p.tp / (p.tp + p.fp + square * n)


def precision_at(recall: Fraction) -> Callable[[Point, int], Fraction | None]:
    """Return the precision of a point that reaches a recall."""
    return lambda p, n: Fraction(p.tp, p.tp + p.fp) if p.tp >= recall * n else None


def recall_where(precision: Fraction) -> Callable[[Point, int], Fraction | None]:
    """Return the recall of a point that reaches a precision."""
    return lambda p, n: Fraction(p.tp, n) if p.tp >= precision * (p.tp + p.fp) else None
