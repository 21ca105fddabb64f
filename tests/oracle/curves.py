"""Precision, recall and average precision of a ranked list."""

import math

import numpy as np

from detap.protocols import Protocol


def curve(hits: list[bool], positives: int, guard: float) -> tuple[list[float], list[float]]:
    """Return the precision and the recall after each item of a ranked list."""
    precision, recall, true_positives = [], [], 0
    for rank, hit in enumerate(hits, start=1):
        true_positives += hit
        precision.append(true_positives / (rank + guard))
        recall.append(true_positives / positives)
    return precision, recall


def envelope(precision: list[float]) -> list[float]:
    """Return, at each rank, the largest precision at that rank or below."""
    return [max(precision[rank:]) for rank in range(len(precision))]


def interpolate(
    precision: list[float], recall: list[float], levels: tuple[float, ...]
) -> list[float]:
    """Return the maximum precision at each recall level, 0 if the recall is not reached."""
    return [
        max((p for p, r in zip(precision, recall, strict=True) if r >= level), default=0.0)
        for level in levels
    ]


def line(precision: list[float], recall: list[float], levels: tuple[float, ...]) -> list[float]:
    """Return, at each level, the line through the points of the envelope, which ends at 0.

    As numpy.interp does if several points have one recall: the last of them counts.
    """
    at = [0.0, *recall, max(recall, default=0.0), 1.0]
    values = envelope([0.0, *precision, 0.0, 0.0])
    return np.interp(levels, at, values).tolist()


def at_levels(precision: list[float], recall: list[float], protocol: Protocol) -> list[float]:
    """Return the interpolated precision at the protocol's recall levels."""
    read = line if protocol.interpolation == "trapezoid-101" else interpolate
    return read(precision, recall, protocol.recall_levels)


def area_under(precision: list[float], recall: list[float], protocol: Protocol) -> float:
    """Return the average precision with the protocol's interpolation."""
    if protocol.interpolation == "trapezoid-101":
        values = at_levels(precision, recall, protocol)
        return float(np.trapezoid(values, protocol.recall_levels))
    if protocol.interpolation != "all-point":
        values = at_levels(precision, recall, protocol)
        return math.fsum(values) / len(values)
    steps = [after - before for before, after in zip([0.0, *recall], recall, strict=False)]
    return math.fsum(s * p for s, p in zip(steps, envelope(precision), strict=True))


def non_interpolated(hits: list[bool], positives: int) -> float:
    """Return the sum of P(k) rel(k) over the positives, as in information retrieval."""
    precision, _ = curve(hits, positives, 0.0)
    return math.fsum(p for p, hit in zip(precision, hits, strict=True) if hit) / positives
