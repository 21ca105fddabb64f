"""Metrics of one ranked list, and their names.

Each metric is one of the quantities of a list, or a ratio.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from math import nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.errors import UsageError
from detap.protocols.ranking import Retrieval
from detap.ranking.lists import RankedList
from detap.text_input import suggest

Floats = NDArray[np.float64]


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
