"""Formulas of the losses and their gradients, for arrays of NumPy or PyTorch.

Scores and relevance (0 or 1) are (B, n) arrays of one floating-point type. A formula returns the
value, (B,), and its gradient by the scores, (B, n). A query without relevant items has the value
NaN and the gradient 0. The parameter `xp` is the module numpy or torch.
"""

from collections.abc import Callable
from math import nan
from typing import Any, NamedTuple

import numpy as np

from detap.errors import UsageError

Array = Any
"""A numpy.ndarray or a torch.Tensor; formulas use only methods that both have."""

Library = Any
"""The module numpy or torch; formulas use only functions that both have, with positional
arguments."""

_PAIRS = 1 << 22
"""Maximum number of item pairs whose differences are in memory."""

TIE_GUARD = 1e-8
"""Added to denominators that may be 0 with ties, as in the code of Revaud et al."""


class Bins(NamedTuple):
    """Bins of a histogram: `centers` equidistant bin centers from `high` down to `low`."""

    centers: int
    low: float
    high: float


class Value(NamedTuple):
    """A loss per query and its gradient.

    Attributes
    ----------
    value : (B,)
        NaN for a query without relevant items.
    gradient : (B, n)
        Gradient of each value by the scores of its query; 0 if the value is NaN.
    """

    value: Array
    gradient: Array


Formula = Callable[[Library, Array, Array], Value]
"""A loss of scores and relevance, (B, n) each."""

Step = Callable[[Library, Array], tuple[Array, Array]]
"""A step function H: from differences of scores to the terms of a rank, and their derivative."""


# --- pairwise losses: H of the difference s_j - s_k of each item j and each relevant item k


def sigmoid_of(xp: Library, x: Array) -> Array:
    """Return 1 / (1 + exp(-x)), by tanh, which does not overflow."""
    return 0.5 * (1.0 + xp.tanh(0.5 * x))


def heaviside(xp: Library, t: Array) -> tuple[Array, Array]:
    """Return 1 if t >= 0, else 0, and the derivative 0."""
    zeros = xp.zeros_like(t)
    return xp.where(t >= 0, 1.0, zeros), zeros


def of_pairs(
    xp: Library, scores: Array, relevant: Array, step_relevant: Step, step_irrelevant: Step
) -> Value:
    """Return 1 - mean over relevant k of rank+ / (rank+ + rank-), and its gradient."""
    # Ranks are sums of `step_relevant` over the other relevant items, and of `step_irrelevant` over
    # the irrelevant ones.
    count = relevant.sum(-1)
    total, gradient = xp.zeros_like(count), xp.zeros_like(scores)
    queries, items = xp.where(relevant > 0)
    size = max(1, _PAIRS // max(1, scores.shape[1]))
    for start in range(0, len(queries), size):
        query, item = queries[start : start + size], items[start : start + size]
        itself = ((query * 0 + 1).cumsum(0) - 1, item)  # the first index is 0, 1, 2 ..., as `query`
        difference = scores[query] - scores[query, item][:, None]
        others = relevant[query]
        irrelevant = 1.0 - others
        others[itself] = 0.0
        term, slope = step_relevant(xp, difference)
        irrelevant_term, irrelevant_slope = step_irrelevant(xp, difference)
        rank_relevant = 1.0 + (others * term).sum(-1)
        rank = rank_relevant + xp.where(irrelevant > 0, irrelevant_term, 0.0).sum(-1)
        precision = rank_relevant / rank
        slopes = others * slope * ((1.0 - precision) / rank)[:, None]
        slopes = slopes - irrelevant * irrelevant_slope * (precision / rank)[:, None]
        slopes[itself] = -slopes.sum(-1)
        _add_rows(total, query, precision)
        _add_rows(gradient, query, slopes)
    weight = 1.0 / xp.where(count > 0, count, nan)
    return Value(1.0 - total * weight, -gradient * xp.nan_to_num(weight)[:, None])


def _add_rows(target: Array, rows: Array, values: Array) -> None:
    """Add ``values[i]`` to ``target[rows[i]]``; `rows` ascend and may repeat."""
    if not isinstance(target, np.ndarray):
        target.index_add_(0, rows, values)
    elif len(rows):
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        target[rows[starts]] += np.add.reduceat(values, starts, axis=0)


# --- histogram losses: scores in soft bins, the highest bin first


def _triangle(xp: Library, scores: Array, number: int, bins: Bins) -> tuple[Array, Array]:
    """Return each item's weight in one bin, and its derivative by the score."""
    centers, low, high = bins
    width = (high - low) / (centers - 1)
    # Measured in widths from the highest center, so that a score at a center has distance 0.
    distance = number - (high - xp.clip(scores, low, high)) / width
    weight = xp.clip(1.0 - abs(distance), 0.0, None)
    inside = (abs(distance) < 1.0) & (scores > low) & (scores < high)
    return weight, xp.where(inside, -xp.sign(distance) / width, 0.0)


Form = Callable[[Library, Array, Array], tuple[Array, Array, Array, Array, Array]]
"""A formula of AP from binned weights.

Its arguments are the weights of all items and of relevant items per bin, (B, centers) each. It
returns the term of each bin, whose sum is AP times the number of relevant items. The other four
arrays are the derivatives of a term by the bin's weight of all and of relevant items, and by the
sums of both weights over the bins before it."""


def plain(xp: Library, every: Array, relevant: Array) -> tuple[Array, ...]:
    """Return the terms precision times recall step, and their derivatives."""
    total, hits = every.cumsum(-1), relevant.cumsum(-1)
    total = xp.where(total > 0, total, 1.0)
    by_total = -hits * relevant / total**2
    return hits * relevant / total, by_total, (hits + relevant) / total, by_total, relevant / total


def tie_aware(xp: Library, every: Array, relevant: Array) -> tuple[Array, ...]:
    """Return the terms of the expected AP over all orders in a bin, and their derivatives."""
    # A logarithm replaces the sum over the ranks of a bin.
    before, hits = every.cumsum(-1) - every, relevant.cumsum(-1) - relevant
    others = xp.clip(every - 1.0, 0.0, None) + TIE_GUARD
    ratio = xp.clip(relevant - 1.0, 0.0, None) / others
    after = before + every + 1.0
    log = xp.log(after / (before + 1.0))
    level = hits + 1.0 - ratio * (before + 1.0)
    inner = every * ratio + level * log
    by_ratio = every - (before + 1.0) * log
    ratio_by_every = xp.where(every > 1.0, -ratio / others, 0.0)
    ratio_by_relevant = xp.where(relevant > 1.0, 1.0 / others, 0.0)
    size = every + TIE_GUARD
    fraction = relevant / size
    term = fraction * inner
    by_every = fraction * (ratio + by_ratio * ratio_by_every + level / after) - term / size
    by_relevant = inner / size + fraction * by_ratio * ratio_by_relevant
    by_before = fraction * (level * (1.0 / after - 1.0 / (before + 1.0)) - ratio * log)
    return term, by_every, by_relevant, by_before, fraction * log


def tie_aware_simple(xp: Library, every: Array, relevant: Array) -> tuple[Array, ...]:
    """Return the terms as if all items of a bin were at its middle, and their derivatives."""
    total = 2.0 * every.cumsum(-1) - every + 1.0
    hits = 2.0 * relevant.cumsum(-1) - relevant + 1.0
    term = relevant * hits / total
    return (
        term,
        -term / total,
        (hits + relevant) / total,
        -2.0 * term / total,
        2.0 * relevant / total,
    )


FORMS: dict[str, Form] = {
    "plain": plain,
    "tie-aware": tie_aware,
    "tie-aware-simple": tie_aware_simple,
}
"""Formulas of AP from a histogram, by name."""


def of_histogram(xp: Library, scores: Array, relevant: Array, form: Form, bins: Bins) -> Value:
    """Return 1 - AP of scores in soft bins, and its gradient."""
    binned = [_triangle(xp, scores, number, bins) for number in range(bins.centers)]
    every = xp.stack([weight.sum(-1) for weight, _ in binned], -1)
    binned_relevant = xp.stack([(weight * relevant).sum(-1) for weight, _ in binned], -1)
    count = relevant.sum(-1)
    weight = 1.0 / xp.where(count > 0, count, nan)
    terms, by_every, by_relevant, by_before, by_hits = form(xp, every, binned_relevant)
    by_every = by_every + _sums_after(xp, by_before)
    by_relevant = by_relevant + _sums_after(xp, by_hits)
    gradient = xp.zeros_like(scores)
    for number, (_, slope) in enumerate(binned):
        by_weight = by_every[:, number : number + 1]
        by_weight = by_weight + relevant * by_relevant[:, number : number + 1]
        gradient = gradient - slope * by_weight
    value = 1.0 - terms.sum(-1) * weight
    return Value(value, gradient * xp.nan_to_num(weight)[:, None])


def _sums_after(xp: Library, array: Array) -> Array:
    """Return for each bin the sum over the bins after it."""
    return xp.flip(xp.flip(array, (-1,)).cumsum(-1), (-1,)) - array


# --- calibration: scores themselves, not ranks


def calibration(alpha: float, beta: float) -> Formula:
    """Return the calibration loss: mean max(0, alpha - s) of P plus mean max(0, s - beta) of N."""

    def formula(xp: Library, scores: Array, relevant: Array) -> Value:
        below = relevant * xp.where(scores < alpha, alpha - scores, 0.0)
        irrelevant = 1.0 - relevant
        above = irrelevant * xp.where(scores > beta, scores - beta, 0.0)
        weight = 1.0 / xp.clip(relevant.sum(-1), 1.0, None)
        irrelevant_weight = 1.0 / xp.clip(irrelevant.sum(-1), 1.0, None)
        value = below.sum(-1) * weight + above.sum(-1) * irrelevant_weight
        gradient = xp.where(scores > beta, irrelevant, 0.0) * irrelevant_weight[:, None]
        gradient = gradient - xp.where(scores < alpha, relevant, 0.0) * weight[:, None]
        return Value(value, gradient)

    return formula


# --- the losses; their parameters are those of detap.ranking.losses


def ap() -> Formula:
    """Return 1 - AP."""
    return lambda xp, scores, relevant: of_pairs(xp, scores, relevant, heaviside, heaviside)


def smooth_ap(tau: float) -> Formula:
    """Return 1 - SmoothAP."""
    _check_positive("tau", tau)

    def step(xp: Library, t: Array) -> tuple[Array, Array]:
        value = sigmoid_of(xp, t / tau)
        return value, value * (1.0 - value) / tau

    return lambda xp, scores, relevant: of_pairs(xp, scores, relevant, step, step)


def sup_ap(tau: float, delta: float, rho: float, offset: float | None, tie: float) -> Formula:
    """Return 1 - SupAP."""
    _check_positive("tau", tau)
    for name, value in (("delta", delta), ("rho", rho)):
        if not (value >= 0 and np.isfinite(value)):
            raise UsageError(f"{name} {value} is not a finite number of at least 0")
    if offset is None:
        offset = 0.5 + 0.5 * (1.0 + float(np.tanh(0.5 * delta / tau)))

    def step(xp: Library, t: Array) -> tuple[Array, Array]:
        value = sigmoid_of(xp, t / tau)
        slope = value * (1.0 - value) / tau
        near = xp.where(t > 0, 0.5 + value, xp.where(t == 0, tie, value))
        far = t > delta
        return xp.where(far, rho * (t - delta) + offset, near), xp.where(far, rho, slope)

    return lambda xp, scores, relevant: of_pairs(xp, scores, relevant, heaviside, step)


def quantized_ap(bins: Bins, form: str) -> Formula:
    """Return 1 - quantized AP."""
    if form not in FORMS:
        raise UsageError(f"form {form!r} is unknown; choose from {', '.join(FORMS)}")
    if bins.centers < 2:
        raise UsageError(f"at least 2 bin centers are required, not {bins.centers}")
    if not (np.isfinite(bins.low) and np.isfinite(bins.high) and bins.low < bins.high):
        raise UsageError(f"low {bins.low} and high {bins.high} are not finite and ascending")
    return lambda xp, scores, relevant: of_histogram(xp, scores, relevant, FORMS[form], bins)


def roadmap(weight: float, first: Formula, second: Formula) -> Formula:
    """Return the mean of two losses, weighted 1 - weight and weight; undefined if the first is."""
    if not 0 <= weight <= 1:
        raise UsageError(f"weight {weight} is outside [0, 1]")

    def formula(xp: Library, scores: Array, relevant: Array) -> Value:
        (value, gradient), (other, other_gradient) = (
            loss(xp, scores, relevant) for loss in (first, second)
        )
        defined = 0.0 + ~xp.isnan(value)
        mixed = (1.0 - weight) * gradient + weight * other_gradient
        return Value((1.0 - weight) * value + weight * other, mixed * defined[:, None])

    return formula


def _check_positive(name: str, value: float) -> None:
    if not (value > 0 and np.isfinite(value)):
        raise UsageError(f"{name} {value} is not a finite number above 0")
