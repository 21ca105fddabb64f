"""How to match and what to compute, as plain values."""

from typing import Literal, NamedTuple

Summing = Literal["pairwise", "one-by-one", "trapezoid"]
"""How precision at recall levels becomes their average."""

SUMMINGS: tuple[Summing, ...] = ("pairwise", "one-by-one", "trapezoid")
"""The same, as core numbers them."""


class Rules(NamedTuple):
    """How to match and what to compute; :class:`detap.protocols.Protocol` explains each."""

    thresholds: tuple[float, ...]
    strict: bool
    best_free: bool
    last_of_equal: bool
    area_ranges: tuple[tuple[float, float], ...]
    limits: tuple[int | None, ...]
    ties_by_image: bool
    levels: tuple[float, ...]
    summing: Summing
    guard: float
    pixel_edge: bool
