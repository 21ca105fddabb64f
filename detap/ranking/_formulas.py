"""The losses as formulas, over whichever library holds the arrays.

NumPy and PyTorch share each loss and its gradient. Scores and relevance (0 or 1) are (B, n) arrays
of one floating type. Results are the value (B,) and its gradient (B, n). A query without relevant
items has the value NaN and the gradient 0.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Array = Any
"""A numpy.ndarray or a torch.Tensor; the formulas use what both have."""

Library = Any
"""numpy or torch itself; the formulas use functions that both have, arguments by their place."""

_PAIRS = 1 << 22
"""Maximal number of item pairs whose differences are in memory."""

TIE_GUARD = 1e-8
"""Added to denominators that may be 0 with ties, as in the code of Revaud et al."""


class Bins(NamedTuple):
    """Centres of a histogram: `centers` of them from `high` down to `low`."""

    centers: int
    low: float
    high: float


class Value(NamedTuple):
    """A loss per query and its gradient.

    Attributes
    ----------
    value : (B,)
        NaN where a query has no relevant item.
    gradient : (B, n)
        Of each query's value by its own scores; 0 where the value is NaN.
    """

    value: Array
    gradient: Array


Step = Callable[[Library, Array], tuple[Array, Array]]
"""From differences of scores to what each adds to a rank, and the derivative."""


# --- losses of pairs: H of every difference s_j - s_k of an item j to a relevant item k


def sigmoid_of(xp: Library, x: Array) -> Array:
    """Return 1 / (1 + exp(-x)); by tanh, which no x overflows."""
    return 0.5 * (1.0 + xp.tanh(0.5 * x))


def heaviside(xp: Library, t: Array) -> tuple[Array, Array]:
    """Return 1 where t >= 0 and 0 elsewhere; the derivative is 0 almost everywhere."""
    flat = xp.zeros_like(t)
    return xp.where(t >= 0, flat + 1.0, flat), flat


def sigmoid(tau: float) -> Step:
    """Return the step of SmoothAP."""

    def step(xp: Library, t: Array) -> tuple[Array, Array]:
        rise = sigmoid_of(xp, t / tau)
        return rise, rise * (1.0 - rise) / tau

    return step


def upper_bound(tau: float, delta: float, rho: float, offset: float, tie: float) -> Step:
    """Return the step of SupAP over irrelevant items."""

    def step(xp: Library, t: Array) -> tuple[Array, Array]:
        rise = sigmoid_of(xp, t / tau)
        slope = rise * (1.0 - rise) / tau
        near = xp.where(t > 0, 0.5 + rise, xp.where(t == 0, xp.zeros_like(t) + tie, rise))
        far = t > delta
        flat = xp.zeros_like(t)
        return xp.where(far, rho * (t - delta) + offset, near), xp.where(far, flat + rho, slope)

    return step


def of_pairs(
    xp: Library, scores: Array, relevant: Array, step_relevant: Step, step_irrelevant: Step
) -> Value:
    """Return 1 - mean over relevant k of rank+ / (rank+ + rank-), and its gradient."""
    count = relevant.sum(-1)
    total, gradient = xp.zeros_like(count), xp.zeros_like(scores)
    query, item = xp.where(relevant > 0)
    block = max(1, _PAIRS // max(1, scores.shape[1]))
    for start in range(0, len(query), block):
        q, k = query[start : start + block], item[start : start + block]
        steps, sums = (step_relevant, step_irrelevant), (total, gradient)
        _add_pairs(xp, scores, relevant, _Pairs(q, k, steps, sums))
    share = 1.0 / xp.where(count > 0, count, xp.zeros_like(count) + 1.0)
    undefined = xp.zeros_like(count) + float("nan")
    value = xp.where(count > 0, 1.0 - total * share, undefined)
    return Value(value, -gradient * share[:, None])


class _Pairs(NamedTuple):
    """Relevant items (query and item of each), their steps, and where the sums go."""

    query: Array
    item: Array
    steps: tuple[Step, Step]
    sums: tuple[Array, Array]


def _add_pairs(xp: Library, scores: Array, relevant: Array, work: _Pairs) -> None:
    """Add the precision at some relevant items, and its gradient, to the sums of their queries."""
    query, item, steps, sums = work
    pair = ((query * 0 + 1).cumsum(0) - 1, item)  # 0, 1, 2 ... as an array like `query`
    difference = scores[query] - scores[query, item][:, None]
    others = relevant[query]
    irrelevant = 1.0 - others
    others[pair] = 0.0
    up, slope_up = steps[0](xp, difference)
    down, slope_down = steps[1](xp, difference)
    rank_relevant = 1.0 + (others * up).sum(-1)
    rank = rank_relevant + xp.where(irrelevant > 0, down, xp.zeros_like(down)).sum(-1)
    precision = rank_relevant / rank
    pull = others * slope_up * ((1.0 - precision) / rank)[:, None]
    pull = pull - irrelevant * slope_down * (precision / rank)[:, None]
    pull[pair] = -pull.sum(-1)
    _add_rows(sums[0], query, precision)
    _add_rows(sums[1], query, pull)


def _add_rows(target: Array, rows: Array, values: Array) -> None:
    """Add ``values[i]`` to ``target[rows[i]]``, of rows that ascend, repeated ones included."""
    if not isinstance(target, np.ndarray):
        target.index_add_(0, rows, values)
    elif len(rows):
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        target[rows[starts]] += np.add.reduceat(values, starts, axis=0)


# --- losses of histograms: scores softly binned, the highest bin first


def histogram(xp: Library, scores: Array, relevant: Array, bins: Bins) -> tuple[Array, Array]:
    """Return the weight of all items and of relevant items in each bin, two (B, bins)."""
    weights = [_triangle(xp, scores, number, bins)[0] for number in range(bins.centers)]
    return (
        xp.stack([weight.sum(-1) for weight in weights], -1),
        xp.stack([(weight * relevant).sum(-1) for weight in weights], -1),
    )


def _triangle(xp: Library, scores: Array, number: int, bins: Bins) -> tuple[Array, Array]:
    """Return every item's share of one bin, and its derivative by the score."""
    centers, low, high = bins
    width = (high - low) / (centers - 1)
    # Centres are counted in widths from the highest, so that a score on one is on it exactly.
    away = number - (high - xp.clip(scores, low, high)) / width
    flat = xp.zeros_like(scores)
    weight = xp.clip(1.0 - abs(away), 0.0, None)
    inside = (abs(away) < 1.0) & (scores > low) & (scores < high)
    slope = xp.where(away > 0, flat - 1.0 / width, xp.where(away < 0, flat + 1.0 / width, flat))
    return weight, xp.where(inside, slope, flat)


Form = Callable[[Library, Array, Array], tuple[Array, Array, Array, Array, Array]]
"""From the contents of bins (all, relevant) to each bin's part of AP times the number of relevant
items, and its derivatives by the bin's all and relevant and by the two sums before it."""


def plain(xp: Library, every: Array, relevant: Array) -> tuple[Array, ...]:
    """Return the product of precision and recall step of each bin."""
    total, hits = every.cumsum(-1), relevant.cumsum(-1)
    total = xp.where(total > 0, total, xp.zeros_like(total) + 1.0)
    falls = -hits * relevant / total**2
    return hits * relevant / total, falls, (hits + relevant) / total, falls, relevant / total


def tie_aware(xp: Library, every: Array, relevant: Array) -> tuple[Array, ...]:
    """Return each bin's part of the expected AP over its orders, the sum over ranks by a log."""
    before, hits = every.cumsum(-1) - every, relevant.cumsum(-1) - relevant
    rest = xp.clip(every - 1.0, 0.0, None) + TIE_GUARD
    ratio = xp.clip(relevant - 1.0, 0.0, None) / rest
    after = before + every + 1.0
    log = xp.log(after / (before + 1.0))
    level = hits + 1.0 - ratio * (before + 1.0)
    inner = every * ratio + level * log
    by_ratio = every - (before + 1.0) * log
    flat = xp.zeros_like(every)
    ratio_every = xp.where(every > 1.0, -ratio / rest, flat)
    ratio_relevant = xp.where(relevant > 1.0, 1.0 / rest, flat)
    size = every + TIE_GUARD
    fraction = relevant / size
    part = fraction * inner
    d_every = fraction * (ratio + by_ratio * ratio_every + level / after) - part / size
    d_relevant = inner / size + fraction * by_ratio * ratio_relevant
    d_before = fraction * (level * (1.0 / after - 1.0 / (before + 1.0)) - ratio * log)
    return part, d_every, d_relevant, d_before, fraction * log


def tie_aware_simple(xp: Library, every: Array, relevant: Array) -> tuple[Array, ...]:
    """Return each bin's part as if all its items were at the bin's middle."""
    total = 2.0 * every.cumsum(-1) - every + 1.0
    hits = 2.0 * relevant.cumsum(-1) - relevant + 1.0
    part = relevant * hits / total
    return (
        part,
        -part / total,
        (hits + relevant) / total,
        -2.0 * part / total,
        2.0 * relevant / total,
    )


def of_histogram(xp: Library, scores: Array, relevant: Array, form: Form, bins: Bins) -> Value:
    """Return 1 - AP of softly binned scores, and its gradient."""
    every, binned_relevant = histogram(xp, scores, relevant, bins)
    count = relevant.sum(-1)
    share = 1.0 / xp.where(count > 0, count, xp.zeros_like(count) + 1.0)
    part, by_every, by_relevant, by_before, by_hits = form(xp, every, binned_relevant)
    by_every = by_every + _later(xp, by_before)
    by_relevant = by_relevant + _later(xp, by_hits)
    gradient = xp.zeros_like(scores)
    for number in range(bins.centers):
        slope = _triangle(xp, scores, number, bins)[1]
        pull = by_every[:, number : number + 1] + relevant * by_relevant[:, number : number + 1]
        gradient = gradient - slope * pull
    undefined = xp.zeros_like(count) + float("nan")
    value = xp.where(count > 0, 1.0 - part.sum(-1) * share, undefined)
    defined = xp.where(count > 0, share, xp.zeros_like(share))
    return Value(value, gradient * defined[:, None])


def _later(xp: Library, array: Array) -> Array:
    """Return for each bin the sum over all later ones."""
    return xp.flip(xp.flip(array, (-1,)).cumsum(-1), (-1,)) - array


# --- calibration: absolute scores rather than ranks


def calibration(xp: Library, scores: Array, relevant: Array, alpha: float, beta: float) -> Value:
    """Return the mean shortfall of relevant items from alpha plus that of others above beta."""
    low = relevant * xp.where(scores < alpha, alpha - scores, xp.zeros_like(scores))
    others = 1.0 - relevant
    high = others * xp.where(scores > beta, scores - beta, xp.zeros_like(scores))
    share = 1.0 / xp.clip(relevant.sum(-1), 1.0, None)
    share_others = 1.0 / xp.clip(others.sum(-1), 1.0, None)
    value = low.sum(-1) * share + high.sum(-1) * share_others
    flat = xp.zeros_like(scores)
    gradient = xp.where(scores > beta, others, flat) * share_others[:, None]
    gradient = gradient - xp.where(scores < alpha, relevant, flat) * share[:, None]
    return Value(value, gradient)
