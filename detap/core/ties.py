"""Expected metric values over all orders of tied items.

A ranking with ties is stored as *tie groups*, best first; only groups with a relevant item are
listed. Within a group of n items with r relevant ones every order is equally likely.

References
----------
McSherry and Najork, Computing Information Retrieval Performance Measures Efficiently in the
Presence of Tied Scores, ECIR 2008.
"""

from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]


class TieGroups(NamedTuple):
    """Tie groups of one ranking that contain a relevant item, best first; T of them."""

    above: Counts  # (T,) number of items above the group
    size: Counts  # (T,) number of items in it
    relevant: Counts  # (T,) number of relevant items in it, at least 1


def tie_groups(above: NDArray[np.int32], level: NDArray[np.int32]) -> TieGroups:
    """Return the tie groups of one query's relevant items."""
    if not len(above):
        empty = np.zeros(0, np.int64)
        return TieGroups(empty, empty, empty)
    changes = np.diff(above, prepend=-1) | np.diff(level, prepend=-1)
    new = np.flatnonzero(changes).astype(np.int64)
    relevant: Counts = np.diff(new, append=len(above)).astype(np.int64)
    return TieGroups(new + above[new], relevant + level[new], relevant)


def expected_hits(groups: TieGroups, k: int) -> float:
    """Return the expected number of relevant items among the first k."""
    inside = np.clip(k - groups.above, 0, groups.size)
    return float((groups.relevant * (inside / groups.size)).sum())


def average_precision(groups: TieGroups, k: int, divisor: float) -> float:
    """Return the expected sum of precision at relevant items within k, over a divisor."""
    if divisor <= 0:
        return float("nan")
    hits_before, total = 0, 0.0
    for above, size, relevant in zip(*(column.tolist() for column in groups), strict=True):
        if above >= k:
            break
        total += _precisions(above, size, relevant, hits_before, min(size, k - above))
        hits_before += relevant
    return total / divisor


def average_precision_by_hits(groups: TieGroups, k: int) -> float:
    """Return the expected AP@k divided by the hits within k."""
    hits_before, total = 0, 0.0
    for above, size, relevant in zip(*(column.tolist() for column in groups), strict=True):
        if above >= k:
            break
        inside = min(size, k - above)
        if inside == size:
            total += _precisions(above, size, relevant, hits_before, size)
            hits_before += relevant
            continue
        # The cut at k splits this group: its number of hits is random.
        orders = comb(size, inside)
        expected = 0.0
        for hits in range(max(0, inside - (size - relevant)), min(relevant, inside) + 1):
            if hits_before + hits == 0:
                continue
            probability = comb(relevant, hits) * comb(size - relevant, inside - hits) / orders
            precision_sum = _precisions(above, inside, hits, hits_before, inside) if hits else 0.0
            expected += probability * (total + precision_sum) / (hits_before + hits)
        return expected
    return total / hits_before if hits_before else float("nan")


def _precisions(above: int, size: int, relevant: int, hits_before: int, inside: int) -> float:
    """Return the expected sum of precision at relevant items among a tie group's first ranks."""
    # The i-th item of the group (from 0) is relevant with probability relevant / size. Then i
    # (relevant - 1) / (size - 1) relevant items are expected above it within the group.
    i = np.arange(inside)
    within = i * ((relevant - 1) / (size - 1)) if size > 1 else np.zeros(inside)
    return float((relevant / size) * ((hits_before + 1 + within) / (above + 1 + i)).sum())


def reciprocal_rank(groups: TieGroups, k: int) -> float:
    """Return the expected reciprocal rank of the first relevant item, 0 beyond k."""
    if not len(groups.above) or groups.above[0] >= k:
        return 0.0
    above, size, relevant = (int(column[0]) for column in groups)
    inside = min(size - relevant + 1, k - above)
    # The i-th item of the group (from 0) is the first relevant one if the i before it are not.
    i = np.arange(inside)
    left = (size - relevant - i[:-1]) / (size - i[:-1])
    none_before = np.concatenate([[1.0], np.cumprod(left)])
    return float((none_before * (relevant / (size - i)) / (above + 1 + i)).sum())


def hit_probability(groups: TieGroups, k: int) -> float:
    """Return the probability of a relevant item among the first k."""
    if not len(groups.above) or groups.above[0] >= k:
        return 0.0
    above, size, relevant = (int(column[0]) for column in groups)
    inside = min(size, k - above)
    if inside > size - relevant:
        return 1.0
    i = np.arange(inside)
    return float(1.0 - np.prod((size - relevant - i) / (size - i)))
