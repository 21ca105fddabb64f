"""Metrics of one ranked list, and their names.

A list gives five quantities: the number of relevant items among the first k, AP@k, the probability
of a relevant item among the first k, the reciprocal rank of the first relevant item, and the
discounted gain. :class:`Ordered` computes them for one order, :class:`Expected` their expected
values over all orders of tied items. Each metric is one of them or a ratio.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
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


@dataclass(frozen=True, slots=True)
class Expected:
    """A ranked list in all orders of its tied items, each equally likely."""

    groups: TieGroups  # the tie groups with relevant items, as in `ties`
    relevant: int
    length: int
    gains: Gains | None = None

    def relevant_within(self, k: int) -> float:
        """Return the expected number of relevant items among the first `k`."""
        return ties.expected_hits(self.groups, k)

    def relevant_at_ranks(self, ranks: int) -> Floats:
        """Return the expected numbers of relevant items among the first 1, 2 ... `ranks`."""
        k = np.arange(1, ranks + 1)[:, None]
        inside = np.clip(k - self.groups.above, 0, self.groups.size)
        fraction: Floats = self.groups.relevant / self.groups.size
        return np.asarray((inside * fraction).sum(axis=1))

    def hit(self, k: int) -> float:
        """Return the probability of a relevant item among the first `k`."""
        return ties.hit_probability(self.groups, k)

    def average_precision(self, k: int, divisor: str) -> float:
        """Return the expected AP@k, as :meth:`Ordered.average_precision`."""
        if divisor == "hits":
            return ties.average_precision_by_hits(self.groups, k)
        divisor_value = self.relevant if divisor == "all" else min(k, self.relevant)
        return ties.average_precision(self.groups, k, divisor_value)

    def reciprocal_rank(self, k: int) -> float:
        """Return the expected 1 / rank of the first relevant item, 0 beyond rank `k`."""
        return ties.reciprocal_rank(self.groups, k)

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


RankedList = Ordered | Expected
"""The ranked list of one query."""


@lru_cache(maxsize=4)
def _discounts(ranks: int) -> Floats:
    """Return the sums of 1 / log2(rank + 1) over the first 0, 1 ... `ranks` ranks."""
    return np.concatenate([[0.0], np.cumsum(1.0 / np.log2(np.arange(2, ranks + 2)))])


def _ndcg(ranking: RankedList, k: int) -> float:
    """Return nDCG@k; NaN if no item has a gain."""
    if ranking.gains is None:
        above, size, gain = ranking.binary_gains()
        ideal_dcg = float(_discounts(_power_of_2(ranking.relevant))[min(ranking.relevant, k)])
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
    sums = _discounts(_power_of_2(int((above + size).max())))
    within = sums[np.minimum(above + size, k)] - sums[above]
    return float((gain / size * within).sum()) / ideal_dcg


def _power_of_2(ranks: int) -> int:
    """Return the next power of 2, so that few tables of discounts are cached."""
    return 1 << max(0, ranks - 1).bit_length()


class RankingMetric(NamedTuple):
    """A metric of a ranked list."""

    name: str  # name of the mean over queries, such as ``"mAP@5"``, ``"P@5"`` or ``"MRR"``
    key: str  # name of the value of one query, such as ``"AP@5"``, ``"P@5"`` or ``"RR"``
    title: str  # name in full
    depth: int | None  # number of ranks that the metric depends on; None for all
    compute: Callable[[RankedList], float]  # returns the value of a list with relevant items


def _metric(
    name: str,
    title: str,
    compute: Callable[[RankedList], float],
    key: str = "",
    k: int | None = None,
) -> RankingMetric:
    at = "" if k is None else f"@{k}"
    return RankingMetric(f"{name}{at}", f"{key or name}{at}", title, k, compute)


def _at_cutoff(k: int, protocol: Retrieval) -> list[RankingMetric]:
    """Return the metrics at `k`."""
    divisors = {"all": "all relevant", "hits": f"hits within {k}", "min": f"min({k}, relevant)"}
    first = f"first {k}"
    metric = partial(_metric, k=k)
    return [
        metric(
            "mAP",
            f"mean average precision, {first}, by {divisors[protocol.divisor]}",
            lambda x: x.average_precision(k, protocol.divisor),
            "AP",
        ),
        metric("P", f"precision, {first}", lambda x: x.relevant_within(k) / k),
        metric("R", f"recall, {first}", lambda x: x.relevant_within(k) / x.relevant),
        metric("hit-rate", f"any relevant item, {first}", lambda x: x.hit(k)),
        metric("nDCG", f"normalized discounted cumulative gain, {first}", lambda x: _ndcg(x, k)),
        metric(
            "top-accuracy",
            f"precision, first min({k}, ranked)",
            lambda x: x.relevant_within(k) / min(k, x.length) if x.length else 0.0,
        ),
    ]


def select_metrics(
    protocol: Retrieval, names: Iterable[str] | None = None
) -> tuple[RankingMetric, ...]:
    """Return the metrics of the summary, the primary metric first."""
    metrics = [
        _metric(
            "mAP",
            "mean average precision, all ranks, by all relevant",
            lambda x: x.average_precision(max(x.length, 1), "all"),
            "AP",
        ),
        *(metric for k in protocol.cutoffs for metric in _at_cutoff(k, protocol)),
        _metric(
            "R-precision",
            "precision, first R = all relevant",
            lambda x: x.relevant_within(x.relevant) / x.relevant,
        ),
        _metric(
            "mAP@R",
            "mean average precision, first R, by R",
            lambda x: x.average_precision(x.relevant, "all"),
            "AP@R",
        ),
        _metric(
            "MRR",
            "mean reciprocal rank of the first relevant item",
            lambda x: x.reciprocal_rank(x.length),
            "RR",
        ),
        _metric(
            "nDCG",
            f"normalized discounted cumulative gain, {protocol.gain}",
            lambda x: _ndcg(x, max(x.length, x.relevant)),
        ),
    ]
    known = {metric.name: metric for metric in metrics}
    if names is None:
        return tuple(known.values())
    return tuple(_metric_named(name, known, protocol) for name in dict.fromkeys(names))


def _metric_named(name: str, known: dict[str, RankingMetric], protocol: Retrieval) -> RankingMetric:
    if name in known:
        return known[name]
    at_cutoff = re.fullmatch(r"(.+)@([1-9][0-9]{0,8})", name)
    if at_cutoff:
        for metric in _at_cutoff(int(at_cutoff[2]), protocol):
            if metric.name == name:
                return metric
    choices = [*known, *(m.name.replace("@1", "@k") for m in _at_cutoff(1, protocol))]
    hint = suggest(name, choices) or f"choose from {', '.join(choices)}"
    raise UsageError(f"unknown metric {name!r}; {hint}")
