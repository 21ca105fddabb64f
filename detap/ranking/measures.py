"""The measures of one ranked list, and their names.

A list answers five questions: how many relevant items are among the first k, its average precision
at k, how surely the first k hold one, the reciprocal rank of the first, and its discounted gain.
It answers for one order (:class:`Ordered`) or in expectation over all orders of equal scores
(:class:`Expected`). Every measure is a ratio of these answers.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core import curves, ties
from detap.core.ties import TieGroups
from detap.errors import UsageError
from detap.protocols.ranking import ELEVEN, Retrieval
from detap.text_input import suggest

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


class Gains(NamedTuple):
    """Gains of the items of one list for nDCG, if they are graded.

    Attributes
    ----------
    above, size : (T,) int64
        Ranks above, and items in, each group of equal items that is worth something; in one order
        every group is a single item.
    gain : (T,) float64
        The sum over the group.
    ideal : (J,) float64
        The gains of all items that exist, falling.
    """

    above: Counts
    size: Counts
    gain: Floats
    ideal: Floats


@dataclass(frozen=True, slots=True)
class Ordered:
    """A list in one order.

    Attributes
    ----------
    hits : (H,) int32
        Of the relevant items that are ranked, as in :mod:`detap.core.curves`.
    relevant : int
        How many relevant items exist, ranked or not.
    length : int
        How many items are ranked.
    gains : Gains or None
        What items are worth; None where each relevant one is worth 1.
    """

    hits: NDArray[np.int32]
    relevant: int
    length: int
    gains: Gains | None = None

    def _ranks(self) -> Counts:
        return self.hits + np.arange(len(self.hits))

    def relevant_within(self, k: int) -> int:
        """Return the number of relevant items among the first k."""
        return int(np.searchsorted(self._ranks(), k))

    def relevant_at_ranks(self, ranks: int) -> Floats:
        """Return the number of relevant items among the first 1, 2 ... `ranks`, (ranks,)."""
        counts = np.searchsorted(self._ranks(), np.arange(1, ranks + 1))
        return np.asarray(counts, np.float64)

    def hit(self, k: int) -> float:
        """Return the probability that a relevant item is among the first k."""
        return float(len(self.hits) > 0 and self.hits[0] < k)

    def average_precision(self, k: int, divisor: str) -> float:
        """Return AP@k by a divisor of :data:`detap.protocols.ranking.Divisor`; NaN undefined."""
        inside = self.relevant_within(k)
        divisor_value = {"all": self.relevant, "hits": inside, "min": min(k, self.relevant)}[
            divisor
        ]
        return curves.average_precision(self.hits[:inside], divisor_value, interpolated=False)

    def reciprocal_rank(self, k: int) -> float:
        """Return 1 over the rank of the first relevant item, 0 where it is beyond k."""
        return 1.0 / (int(self.hits[0]) + 1) if self.hit(k) else 0.0

    def binary_gains(self) -> tuple[Counts, Counts, Floats]:
        """Return above, size and gain as :class:`Gains` has them, a relevant item worth 1."""
        ones = np.ones(len(self.hits))
        return self._ranks(), ones.astype(np.int64), ones

    def precision_at_levels(self) -> Floats:
        """Return the interpolated precision at the 11 levels of recall, (11,)."""
        levels = np.array(ELEVEN)
        return curves.interpolated_precision(self.hits, self.relevant, levels)


@dataclass(frozen=True, slots=True)
class Expected:
    """A list in all orders of its equal scores.

    Attributes
    ----------
    groups : TieGroups
        As in :mod:`detap.core.ties`.
    relevant, length, gains :
        As in :class:`Ordered`.
    """

    groups: TieGroups
    relevant: int
    length: int
    gains: Gains | None = None

    def relevant_within(self, k: int) -> float:
        """Return the number of relevant items among the first k."""
        return ties.expected_hits(self.groups, k)

    def relevant_at_ranks(self, ranks: int) -> Floats:
        """Return the number of relevant items among the first 1, 2 ... `ranks`, (ranks,)."""
        k = np.arange(1, ranks + 1)[:, None]
        inside = np.clip(k - self.groups.above, 0, self.groups.size)
        share: Floats = self.groups.relevant / self.groups.size
        return np.asarray((inside * share).sum(axis=1))

    def hit(self, k: int) -> float:
        """Return the probability that a relevant item is among the first k."""
        return ties.hit_probability(self.groups, k)

    def average_precision(self, k: int, divisor: str) -> float:
        """Return AP@k by a divisor of :data:`detap.protocols.ranking.Divisor`; NaN undefined."""
        if divisor == "hits":
            return ties.average_precision_by_hits(self.groups, k)
        divisor_value = self.relevant if divisor == "all" else min(k, self.relevant)
        return ties.average_precision(self.groups, k, divisor_value)

    def reciprocal_rank(self, k: int) -> float:
        """Return 1 over the rank of the first relevant item, 0 where it is beyond k."""
        return ties.reciprocal_rank(self.groups, k)

    def binary_gains(self) -> tuple[Counts, Counts, Floats]:
        """Return above, size and gain as :class:`Gains` has them, a relevant item worth 1."""
        return self.groups.above, self.groups.size, self.groups.relevant.astype(np.float64)

    def precision_at_levels(self) -> Floats:
        """Return it for the curve of expected counts of relevant items, rank by rank."""
        out = np.zeros(len(ELEVEN))
        before = 0
        for above, size, inside in zip(*(c.tolist() for c in self.groups), strict=True):
            for number, level in enumerate(ELEVEN):
                # Along a group precision rises or falls throughout: look at both of its ends.
                first = max(1, ceil((level * self.relevant - before) * size / inside - 1e-9))
                if first <= size:
                    here = max((before + inside * x / size) / (above + x) for x in (first, size))
                    out[number] = max(out[number], here)
            before += inside
        return out


RankedList = Ordered | Expected
"""One query's ranking."""


@lru_cache(maxsize=4)
def _discounts(ranks: int) -> Floats:
    """Return the sum of 1 / log2(rank + 1) over the first 0, 1, 2 ... ranks."""
    return np.concatenate([[0.0], np.cumsum(1.0 / np.log2(np.arange(2, ranks + 2)))])


def _ndcg(ranking: RankedList, k: int) -> float:
    if ranking.gains is None:
        above, size, gain = ranking.binary_gains()
        ideal_dcg = float(_discounts(_power(ranking.relevant))[min(ranking.relevant, k)])
    else:
        above, size, gain, ideal = ranking.gains
        ideal = ideal[:k]
        ideal_dcg = float((ideal / np.log2(np.arange(2, len(ideal) + 2))).sum())
    if ideal_dcg <= 0:
        return nan
    inside = above < k
    above, size, gain = above[inside], size[inside], gain[inside]
    if not len(above):
        return 0.0
    if int(size.max()) == 1:
        return float((gain / np.log2(above + 2)).sum()) / ideal_dcg
    sums = _discounts(_power(int((above + size).max())))
    within = sums[np.minimum(above + size, k)] - sums[above]
    return float((gain / size * within).sum()) / ideal_dcg


def _power(ranks: int) -> int:
    # The table of discounts is made for a power of 2, so that few different ones are needed.
    return 1 << max(0, ranks - 1).bit_length()


class Measure(NamedTuple):
    """One metric of a ranking.

    Attributes
    ----------
    name : str
        In the summary: ``"mAP@5"``, ``"P@5"``, ``"MRR"`` ...
    key : str
        Of one query: ``"AP@5"``, ``"P@5"``, ``"RR"`` ...
    title : str
        Written out, for people.
    depth : int or None
        How many ranks it needs; None for all.
    compute : function
        From a list with relevant items to the number; NaN is undefined.
    """

    name: str
    key: str
    title: str
    depth: int | None
    compute: Callable[[RankedList], float]


def _at_cutoff(k: int, protocol: Retrieval) -> list[Measure]:
    divisors = {"all": "all relevant", "hits": f"hits within {k}", "min": f"min({k}, relevant)"}
    first = f"first {k}"

    def measure(
        name: str, title: str, compute: Callable[[RankedList], float], key: str = ""
    ) -> Measure:
        return Measure(f"{name}@{k}", f"{key or name}@{k}", title, k, compute)

    return [
        measure(
            "mAP",
            f"mean average precision, {first}, by {divisors[protocol.divisor]}",
            lambda x: x.average_precision(k, protocol.divisor),
            "AP",
        ),
        measure("P", f"precision, {first}", lambda x: x.relevant_within(k) / k),
        measure("R", f"recall, {first}", lambda x: x.relevant_within(k) / x.relevant),
        measure("hit-rate", f"any relevant, {first}", lambda x: x.hit(k)),
        measure("nDCG", f"normalized discounted cumulative gain, {first}", lambda x: _ndcg(x, k)),
        measure(
            "top-accuracy",
            f"share of relevant among those there are, {first}",
            lambda x: x.relevant_within(k) / min(k, x.length) if x.length else 0.0,
        ),
    ]


def _whole(protocol: Retrieval) -> list[Measure]:
    return [
        Measure(
            "R-precision",
            "R-precision",
            "precision, first R, R being all relevant",
            None,
            lambda x: x.relevant_within(x.relevant) / x.relevant,
        ),
        Measure(
            "mAP@R",
            "AP@R",
            "mean average precision, first R, by R",
            None,
            lambda x: x.average_precision(x.relevant, "all"),
        ),
        Measure(
            "MRR",
            "RR",
            "mean reciprocal rank of the first relevant",
            None,
            lambda x: x.reciprocal_rank(x.length),
        ),
        Measure(
            "nDCG",
            "nDCG",
            f"normalized discounted cumulative gain, {protocol.gain}",
            None,
            lambda x: _ndcg(x, max(x.length, x.relevant)),
        ),
    ]


def measures(protocol: Retrieval, names: Iterable[str] | None = None) -> tuple[Measure, ...]:
    """Return the metrics of the summary, the primary metric first.

    Parameters
    ----------
    protocol : Retrieval
        Its cutoffs give the measures at k.
    names : iterable of str, optional
        Only these, in this order; measures at a k that is no cutoff too.

    Raises
    ------
    UsageError
        If a name is no measure, with near ones.
    """
    whole = Measure(
        "mAP",
        "AP",
        "mean average precision, all ranks, by all relevant",
        None,
        lambda x: x.average_precision(max(x.length, 1), "all"),
    )
    at = [measure for k in protocol.cutoffs for measure in _at_cutoff(k, protocol)]
    known = {measure.name: measure for measure in (whole, *at, *_whole(protocol))}
    if names is None:
        return tuple(known.values())
    return tuple(_named(name, known, protocol) for name in dict.fromkeys(names))


def _named(name: str, known: dict[str, Measure], protocol: Retrieval) -> Measure:
    if name in known:
        return known[name]
    at = re.fullmatch(r"(.+)@([1-9][0-9]{0,8})", name)
    if at:
        for measure in _at_cutoff(int(at[2]), protocol):
            if measure.name == name:
                return measure
    choices = [*known, *(m.name.replace("@1", "@k") for m in _at_cutoff(1, protocol))]
    hint = suggest(name, choices) or f"choose from {', '.join(choices)}"
    raise UsageError(f"measure {name!r} is unknown; {hint}")
