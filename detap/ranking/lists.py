"""The ranked list of a query, in one order or in all orders of its tied items.

A list gives five quantities: the number of relevant items among the first k, AP@k, the probability
of a relevant item among the first k, the reciprocal rank of the first relevant item, and the
discounted gain. :class:`Ordered` computes them for one order, :class:`Expected` their expected
values over all orders of tied items.

References
----------
McSherry and Najork, Computing Information Retrieval Performance Measures Efficiently in the
Presence of Tied Scores, ECIR 2008.
"""

from dataclasses import dataclass
from math import ceil, comb, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core import curves
from detap.protocols.ranking import ELEVEN

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


class Gains(NamedTuple):
    """Gains of the graded items of one list, for nDCG."""

    above: Counts  # (T,)
    size: Counts  # (T,)
    gain: Floats  # (T,) sum of the gains in the group
    ideal: Floats  # (J,)


@dataclass(frozen=True, slots=True)
class Ordered:
    """A ranked list in one order."""

    hits: NDArray[np.int32]  # (H,) hits of the ranked relevant items, as in `curves`
    relevant: int  # number of relevant items, ranked or not
    length: int  # number of ranked items
    gains: Gains | None = None  # gains of graded items; None if each relevant item has the gain 1

    def _ranks(self) -> Counts:
        return self.hits + np.arange(len(self.hits))

    def relevant_within(self, k: int) -> int:
        """Return the number of relevant items among the first `k`."""
        return int(np.searchsorted(self._ranks(), k))

    def relevant_at_ranks(self, ranks: int) -> Floats:
        """Return the numbers of relevant items among the first 1, 2 ... `ranks`, (ranks,)."""
        counts = np.searchsorted(self._ranks(), np.arange(1, ranks + 1))
        return np.asarray(counts, np.float64)

    def hit(self, k: int) -> float:
        """Return 1 if a relevant item is among the first `k`, else 0."""
        return float(len(self.hits) > 0 and self.hits[0] < k)

    def average_precision(self, k: int, divisor: str) -> float:
        """Return AP@k; NaN if the divisor is 0."""
        inside = self.relevant_within(k)
        divisor_value = {"all": self.relevant, "hits": inside, "min": min(k, self.relevant)}[
            divisor
        ]
        return curves.average_precision(self.hits[:inside], divisor_value, interpolated=False)

    def reciprocal_rank(self, k: int) -> float:
        """Return 1 / rank of the first relevant item, 0 if it is beyond rank `k`."""
        return 1.0 / (int(self.hits[0]) + 1) if self.hit(k) else 0.0

    def binary_gains(self) -> tuple[Counts, Counts, Floats]:
        """Return `above`, `size` and `gain` of :class:`Gains` with the gain 1 per relevant item."""
        ones = np.ones(len(self.hits))
        return self._ranks(), ones.astype(np.int64), ones

    def precision_at_levels(self) -> Floats:
        """Return the interpolated precision at the 11 recall levels, (11,)."""
        levels = np.array(ELEVEN)
        return curves.interpolated_precision(self.hits, self.relevant, levels)


class TieGroups(NamedTuple):
    """Tie groups of a ranking that contain a relevant item, best first; T of them."""

    # Within a group of n items with r relevant ones every order is equally likely.
    above: Counts  # (T,) number of items above the group
    size: Counts  # (T,) number of items in it
    relevant: Counts  # (T,) number of relevant items in it, at least 1


def tie_groups(above: NDArray[np.int32], level: NDArray[np.int32]) -> TieGroups:
    """Return the tie groups of one query's relevant items."""
    changes = np.diff(above, prepend=-1) | np.diff(level, prepend=-1)
    new = np.flatnonzero(changes).astype(np.int64)
    relevant: Counts = np.diff(new, append=len(above)).astype(np.int64)
    return TieGroups(new + above[new], relevant + level[new], relevant)


@dataclass(frozen=True, slots=True)
class Expected:
    """A ranked list in all orders of its tied items, each equally likely."""

    groups: TieGroups  # the tie groups with relevant items
    relevant: int
    length: int
    gains: Gains | None = None

    def relevant_within(self, k: int) -> float:
        """Return the expected number of relevant items among the first `k`."""
        inside = np.clip(k - self.groups.above, 0, self.groups.size)
        return float((self.groups.relevant * (inside / self.groups.size)).sum())

    def relevant_at_ranks(self, ranks: int) -> Floats:
        """Return the expected numbers of relevant items among the first 1, 2 ... `ranks`."""
        k = np.arange(1, ranks + 1)[:, None]
        inside = np.clip(k - self.groups.above, 0, self.groups.size)
        fraction: Floats = self.groups.relevant / self.groups.size
        return np.asarray((inside * fraction).sum(axis=1))

    def hit(self, k: int) -> float:
        """Return the probability of a relevant item among the first `k`."""
        if not len(self.groups.above) or self.groups.above[0] >= k:
            return 0.0
        above, size, relevant = (int(column[0]) for column in self.groups)
        inside = min(size, k - above)
        if inside > size - relevant:
            return 1.0
        i = np.arange(inside)
        return float(1.0 - np.prod((size - relevant - i) / (size - i)))

    def average_precision(self, k: int, divisor: str) -> float:
        """Return the expected AP@k, as :meth:`Ordered.average_precision`."""
        hits_before, total = 0, 0.0
        for above, size, relevant in zip(*(c.tolist() for c in self.groups), strict=True):
            if above >= k:
                break
            inside = min(size, k - above)
            if divisor == "hits" and inside < size:
                return _average_of_cut((above, size, relevant), inside, hits_before, total)
            total += _precisions(above, size, relevant, inside, hits_before)
            hits_before += relevant
        number = {"all": self.relevant, "hits": hits_before, "min": min(k, self.relevant)}[divisor]
        return total / number if number > 0 else nan

    def reciprocal_rank(self, k: int) -> float:
        """Return the expected 1 / rank of the first relevant item, 0 beyond rank `k`."""
        if not len(self.groups.above) or self.groups.above[0] >= k:
            return 0.0
        above, size, relevant = (int(column[0]) for column in self.groups)
        inside = min(size - relevant + 1, k - above)
        # The i-th item of the group (from 0) is the first relevant one if the i before it are not.
        i = np.arange(inside)
        left = (size - relevant - i[:-1]) / (size - i[:-1])
        none_before = np.concatenate([[1.0], np.cumprod(left)])
        return float((none_before * (relevant / (size - i)) / (above + 1 + i)).sum())

    def binary_gains(self) -> tuple[Counts, Counts, Floats]:
        """Return `above`, `size` and `gain` of :class:`Gains` with the gain 1 per relevant item."""
        return self.groups.above, self.groups.size, self.groups.relevant.astype(np.float64)

    def precision_at_levels(self) -> Floats:
        """Return the interpolated precision at the 11 recall levels, (11,)."""
        out = np.zeros(len(ELEVEN))
        hits_before = 0
        for above, size, relevant in zip(*(c.tolist() for c in self.groups), strict=True):
            for index, level in enumerate(ELEVEN):
                # Precision is monotonic within a group, so its maximum is at an end: the first
                # rank with this recall, or the last rank.
                first = max(1, ceil((level * self.relevant - hits_before) * size / relevant - 1e-9))
                if first <= size:
                    precision = max(
                        (hits_before + relevant * rank / size) / (above + rank)
                        for rank in (first, size)
                    )
                    out[index] = max(out[index], precision)
            hits_before += relevant
        return out


def _average_of_cut(
    group: tuple[int, int, int], inside: int, hits_before: int, total: float
) -> float:
    """Return the expected AP by hits if the cut splits a tie group: its hits are random."""
    above, size, relevant = group
    orders = comb(size, inside)
    expected = 0.0
    for hits in range(max(0, inside - (size - relevant)), min(relevant, inside) + 1):
        if hits_before + hits == 0:
            continue
        probability = comb(relevant, hits) * comb(size - relevant, inside - hits) / orders
        precision_sum = _precisions(above, inside, hits, inside, hits_before) if hits else 0.0
        expected += probability * (total + precision_sum) / (hits_before + hits)
    return expected


def _precisions(above: int, size: int, relevant: int, inside: int, hits_before: int) -> float:
    """Return the expected sum of precision at relevant items among a tie group's first ranks."""
    # The i-th item of the group (from 0) is relevant with probability relevant / size. Then i
    # (relevant - 1) / (size - 1) relevant items are expected above it within the group.
    i = np.arange(inside)
    within = i * ((relevant - 1) / (size - 1)) if size > 1 else np.zeros(inside)
    return float((relevant / size) * ((hits_before + 1 + within) / (above + 1 + i)).sum())


RankedList = Ordered | Expected
"""The ranked list of one query."""
