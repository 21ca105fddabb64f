"""Parameters of matching and accumulation, as pycocotools' Params."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Summing = Literal["pairwise", "one-by-one", "trapezoid"]
"""Method of averaging precision over recall levels."""

SUMMINGS: tuple[Summing, ...] = ("pairwise", "one-by-one", "trapezoid")
"""All methods, in the order of the compiled enum."""


class MatchParams(NamedTuple):
    """Parameters of matching; see :class:`detap.protocols.Protocol`."""

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


def inside_ranges(
    areas: NDArray[np.float64], ranges: tuple[tuple[float, float], ...]
) -> NDArray[np.bool_]:
    """Return masks of the areas (n,) inside each area range, (A, n) bool."""
    return np.array([(areas >= low) & (areas <= high) for low, high in ranges])


def recall_targets(levels: NDArray[np.float64], summing: Summing) -> NDArray[np.float64]:
    """Return the minimum recall at which each level is reached, (R,) float64."""
    # For the trapezoid it is the next number above the level: the envelope falls at a recall, where
    # numpy.interp takes the later point. At a level it has the value of the first hit *beyond* it,
    # and 0 from the last recall on.
    return np.nextafter(levels, np.inf) if summing == "trapezoid" else levels
