"""How to match and what to compute, as plain values."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Summing = Literal["pairwise", "one-by-one", "trapezoid"]
"""How precision at recall levels becomes their average."""

SUMMINGS: tuple[Summing, ...] = ("pairwise", "one-by-one", "trapezoid")
"""The same, as core numbers them."""


class MatchParams(NamedTuple):
    """How to match and what to compute; :class:`detap.protocols.Protocol` explains each."""

    thresholds: tuple[float, ...]
    strict: bool
    best_unmatched: bool
    last_of_equal: bool
    area_ranges: tuple[tuple[float, float], ...]
    max_dets: tuple[int | None, ...]
    ties_by_image: bool
    levels: tuple[float, ...]
    summing: Summing
    precision_eps: float
    inclusive_pixels: bool


def recall_targets(levels: NDArray[np.float64], summing: Summing) -> NDArray[np.float64]:
    """Return the least recall at which each level is reached, (R,) float64.

    For the trapezoid that is the next number beyond the level. The line that joins the points of a
    curve's envelope is level from each hit to the recall of the next, for between them precision
    only falls; it falls at a recall itself, where numpy.interp takes the later point. So at a level
    it has what the first hit *beyond* that has, and 0 from the last recall on.
    """
    return np.nextafter(levels, np.inf) if summing == "trapezoid" else levels
