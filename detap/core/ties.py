"""Expected values over all orders of equally scored items.

A ranking with ties is held as its *groups*: sets of equal items, best first, of which only those
with a relevant item are listed. Within a group of n items with r relevant ones every order is
equally likely.

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


class Groups(NamedTuple):
    """The groups of one ranking that hold a relevant item, best first; T of them.

    Attributes
    ----------
    above : (T,) int64
        How many items stand above the group.
    size : (T,) int64
        How many items are in it.
    relevant : (T,) int64
        How many of these are relevant; at least 1.
    """

    above: Counts
    size: Counts
    relevant: Counts


def groups_of(above: NDArray[np.int32], level: NDArray[np.int32]) -> Groups:
    """Return the groups of one query's relevant items.

    Parameters
    ----------
    above, level : (H,) int32
        As in :class:`detap.core.ranking.Hits`. Neighbouring groups without irrelevant items
        between or in them come out as one, which changes no expected value.
    """
    if not len(above):
        none = np.zeros(0, np.int64)
        return Groups(none, none, none)
    changes = np.diff(above, prepend=-1) | np.diff(level, prepend=-1)
    new = np.flatnonzero(changes).astype(np.int64)
    relevant: Counts = np.diff(new, append=len(above)).astype(np.int64)
    return Groups(new + above[new], relevant + level[new], relevant)


def found_within(groups: Groups, k: int) -> float:
    """Return how many relevant items are expected among the first k."""
    inside = np.clip(k - groups.above, 0, groups.size)
    return float((groups.relevant * (inside / groups.size)).sum())


def average_precision(groups: Groups, k: int, divisor: float) -> float:
    """Return the expected sum of precision at the relevant items within k, over a divisor.

    Parameters
    ----------
    groups : Groups
        Of the whole ranking.
    k : int
        How many ranks count.
    divisor : float
        All relevant items, for instance; NaN is returned where it is 0.
    """
    if divisor <= 0:
        return float("nan")
    before, total = 0, 0.0
    for above, size, relevant in zip(*(column.tolist() for column in groups), strict=True):
        if above >= k:
            break
        total += _precisions(above, size, relevant, before, min(size, k - above))
        before += relevant
    return total / divisor


def average_precision_by_hits(groups: Groups, k: int) -> float:
    """Return the expected AP@k divided by the hits within k; an order without a hit counts 0.

    NaN is returned where no order has a hit.
    """
    before, total = 0, 0.0
    for above, size, relevant in zip(*(column.tolist() for column in groups), strict=True):
        if above >= k:
            break
        inside = min(size, k - above)
        if inside == size:
            total += _precisions(above, size, relevant, before, size)
            before += relevant
            continue
        # The cut goes through this group: how many hits it gives is a matter of chance.
        orders = comb(size, inside)
        expected = 0.0
        for hits in range(max(0, inside - (size - relevant)), min(relevant, inside) + 1):
            if before + hits == 0:
                continue
            chance = comb(relevant, hits) * comb(size - relevant, inside - hits) / orders
            part = _precisions(above, inside, hits, before, inside) if hits else 0.0
            expected += chance * (total + part) / (before + hits)
        return expected
    return total / before if before else float("nan")


def _precisions(above: int, size: int, relevant: int, before: int, inside: int) -> float:
    """Return the expected sum of precision at the relevant items of a group's first ranks.

    At its i-th rank (from 0) stands a relevant item with the chance relevant / size, and then
    i (relevant - 1) / (size - 1) of those above it in the group are expected to be relevant.
    """
    i = np.arange(inside)
    within = i * ((relevant - 1) / (size - 1)) if size > 1 else np.zeros(inside)
    return float((relevant / size) * ((before + 1 + within) / (above + 1 + i)).sum())


def reciprocal_rank(groups: Groups, k: int) -> float:
    """Return the expected reciprocal rank of the first relevant item, 0 where it is beyond k."""
    if not len(groups.above) or groups.above[0] >= k:
        return 0.0
    above, size, relevant = (int(column[0]) for column in groups)
    inside = min(size - relevant + 1, k - above)
    # The first relevant item is the i-th of the group (from 0) when the i before it are not.
    i = np.arange(inside)
    left = (size - relevant - i[:-1]) / (size - i[:-1])
    none_before = np.concatenate([[1.0], np.cumprod(left)])
    return float((none_before * (relevant / (size - i)) / (above + 1 + i)).sum())


def hit_chance(groups: Groups, k: int) -> float:
    """Return how likely a relevant item is among the first k."""
    if not len(groups.above) or groups.above[0] >= k:
        return 0.0
    above, size, relevant = (int(column[0]) for column in groups)
    inside = min(size, k - above)
    if inside > size - relevant:
        return 1.0
    i = np.arange(inside)
    return float(1.0 - np.prod((size - relevant - i) / (size - i)))
