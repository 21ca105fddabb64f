"""From an ordered list of hits and misses to one number."""

import math

from detap.protocols import Protocol


def curve(hits: list[bool], positives: int, guard: float) -> tuple[list[float], list[float]]:
    """Return the precision and the recall after each item of a ranked list."""
    precision, recall, found = [], [], 0
    for place, hit in enumerate(hits, start=1):
        found += hit
        precision.append(found / (place + guard))
        recall.append(found / positives)
    return precision, recall


def envelope(precision: list[float]) -> list[float]:
    """Return, at each place, the largest precision from there on."""
    return [max(precision[place:]) for place in range(len(precision))]


def interpolate(
    precision: list[float], recall: list[float], levels: tuple[float, ...]
) -> list[float]:
    """Return the largest precision at which each recall level is reached; 0 where it is not."""
    return [
        max((p for p, r in zip(precision, recall, strict=True) if r >= level), default=0.0)
        for level in levels
    ]


def area_under(precision: list[float], recall: list[float], protocol: Protocol) -> float:
    """Return the average precision by the protocol's interpolation."""
    if protocol.interpolation != "all-point":
        at_levels = interpolate(precision, recall, protocol.recall_levels)
        return math.fsum(at_levels) / len(at_levels)
    steps = [after - before for before, after in zip([0.0, *recall], recall, strict=False)]
    return math.fsum(s * p for s, p in zip(steps, envelope(precision), strict=True))


def non_interpolated(hits: list[bool], positives: int) -> float:
    """Return the sum of P(k) rel(k) over the positives, as information retrieval has it."""
    precision, _ = curve(hits, positives, 0.0)
    return math.fsum(p for p, hit in zip(precision, hits, strict=True) if hit) / positives
