"""How to match and what to compute, as plain values."""

from typing import NamedTuple


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
    one_by_one: bool
    guard: float
    pixel_edge: bool
