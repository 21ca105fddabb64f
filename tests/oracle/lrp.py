"""Localization recall precision of one class as plain loops.

IoUs are exact fractions, so that no sum is rounded.

Source: Oksuz et al., One Metric to Measure Them All, PAMI 44 (2022), sections 3 and 4.
"""

from fractions import Fraction
from math import nan
from typing import NamedTuple

from detap.protocols import Protocol
from detap.tables.detection import Detections, GroundTruth
from tests.oracle.matching import Target
from tests.oracle.score import _OneClass, counted_detections, with_area

NEAR = Fraction(1, 10**12)
"""Values this close to the minimum count as equal to it."""


class Detected(NamedTuple):
    """A detection that counts; its IoU is None for a false positive."""

    score: float
    iou: Fraction | None


def ranking(
    truth: GroundTruth,
    detections: Detections,
    protocol: Protocol,
    label: int,
    *,
    threshold: int = 0,
    area: int = 0,
) -> tuple[list[Detected], int]:
    """Return the detections of a class that count, by rank, and its number of ground truths."""
    detections = counted_detections(detections, protocol)
    truth = with_area(truth, protocol)
    one = _OneClass(truth, detections, protocol, label, protocol.area_ranges[area])
    crowd = {t.row: t.crowd for targets in one.targets().values() for t in targets}
    ranked = []
    for row, match in one.matches(protocol.search_thresholds[threshold]).items():
        if match.ignored:
            continue
        iou = None
        if match.truth != -1:
            target = Target(match.truth, ignored=False, crowd=crowd[match.truth], unmatchable=False)
            iou = min(Fraction(one.overlap(row, target)), Fraction(1))
        ranked.append(Detected(float(detections.score[row]), iou))
    return ranked, one.positives


def lrp(ranked: list[Detected], positives: int, tau: float) -> Fraction:
    """Return LRP of some detections, all of which are kept."""
    hits = [one.iou for one in ranked if one.iou is not None]
    width = 1 - Fraction(tau)
    error = sum((1 - iou) / width for iou in hits) if width else Fraction(0)
    wrong, missed = len(ranked) - len(hits), positives - len(hits)
    return Fraction(error + wrong + missed, len(hits) + wrong + missed)


def at_score(ranked: list[Detected], positives: int, tau: float, score: float) -> float:
    """Return LRP of the detections with at least a score."""
    if not positives:
        return nan
    return float(lrp([one for one in ranked if one.score >= score], positives, tau))


def optimum(ranked: list[Detected], positives: int, tau: float) -> dict[str, float]:
    """Return oLRP, its components and its threshold."""
    names = ("oLRP", "oLRP-loc", "oLRP-fp", "oLRP-fn", "oLRP-threshold")
    if not positives:
        return dict.fromkeys(names, nan)
    if all(one.iou is None for one in ranked):
        return dict(zip(names, (1.0, nan, nan, 1.0, nan), strict=True))
    values = [lrp(ranked[: k + 1], positives, tau) for k in range(len(ranked))]
    k = next(k for k, value in enumerate(values) if value <= min(values) + NEAR)
    hits = [one.iou for one in ranked[: k + 1] if one.iou is not None]
    loss = float(sum(1 - iou for iou in hits) / len(hits)) if hits else nan
    numbers = (
        float(values[k]),
        loss,
        (k + 1 - len(hits)) / (k + 1),
        (positives - len(hits)) / positives,
        ranked[k].score,
    )
    return dict(zip(names, numbers, strict=True))
