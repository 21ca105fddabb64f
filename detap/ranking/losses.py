"""Losses that optimize average precision, with their gradients.

Each function takes the scores and the relevance of n items for B queries, (B, n). It returns the
loss of each query, (B,), and its gradient by the scores, (B, n). The arrays of one query may be
(n,). All computations are in float64. Losses of finite scores are finite, except for a query
without relevant items: its loss is NaN and its gradient 0.

Let s be the scores of a query, P its relevant items and N the others. The rank of item k is
``1 + sum over j != k of H(s_j - s_k)``, with H(t) = 1 if t >= 0, else 0. rank+ is 1 plus the sum
over P, rank- the sum over N.

:mod:`detap.ranking.torch` has the same losses for PyTorch, with the same formulas.
"""

from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detap.core import curves
from detap.errors import UsageError
from detap.ranking import _formulas
from detap.ranking._formulas import Bins, Formula, Value

__all__ = [
    "Gap",
    "Value",
    "ap_loss",
    "calibration_loss",
    "decomposability_gap",
    "fast_ap_loss",
    "quantized_ap_loss",
    "roadmap_loss",
    "smooth_ap_loss",
    "sup_ap_loss",
]

Floats = NDArray[np.float64]


def ap_loss(scores: ArrayLike, relevant: ArrayLike) -> Value:
    """Return 1 - AP; tied items rank above (H(0) = 1).

    Parameters
    ----------
    scores : (B, n) or (n,) array of float
        Finite scores; higher is better.
    relevant : array of bool of the same shape
        True for relevant items.

    Returns
    -------
    Value
        The gradient is 0, as the loss depends only on the order of the scores.

    Raises
    ------
    UsageError
        If shapes differ or a score is not finite.
    """
    return _apply(scores, relevant, _formulas.ap())


def smooth_ap_loss(scores: ArrayLike, relevant: ArrayLike, *, tau: float = 0.01) -> Value:
    """Return 1 - SmoothAP, where H(t) is sigmoid(t / tau).

    Parameters
    ----------
    scores, relevant : (B, n) or (n,) array
        As for :func:`ap_loss`.
    tau : float
        Temperature, above 0.

    References
    ----------
    Brown et al., Smooth-AP: Smoothing the Path Towards Large-Scale Image Retrieval, ECCV 2020.
    """
    return _apply(scores, relevant, _formulas.smooth_ap(tau))


def sup_ap_loss(
    scores: ArrayLike,
    relevant: ArrayLike,
    *,
    tau: float = 0.01,
    delta: float = 0.05,
    rho: float = 100.0,
    offset: float | None = 1.44,
    tie: float = 1.0,
) -> Value:
    """Return 1 - SupAP, an upper bound of :func:`ap_loss`.

    rank+ is exact. In rank-, H(t) is sigmoid(t / tau) for t < 0, 1/2 + sigmoid(t / tau) for
    0 < t <= delta, and rho (t - delta) + offset for t > delta.

    Parameters
    ----------
    scores, relevant : (B, n) or (n,) array
        As for :func:`ap_loss`.
    tau : float
        Temperature, above 0.
    delta, rho : float
        Start and slope of the linear part, at least 0.
    offset : float or None
        Value at the start of the linear part; 1.44 as published, None makes H continuous.
    tie : float
        H(0). The published code has 1/2, with which the loss of tied scores is not an upper bound.

    References
    ----------
    Ramzi et al., Robust and Decomposable Average Precision for Image Retrieval, NeurIPS 2021.
    """
    return _apply(scores, relevant, _formulas.sup_ap(tau, delta, rho, offset, tie))


def quantized_ap_loss(
    scores: ArrayLike,
    relevant: ArrayLike,
    *,
    bins: int = 20,
    low: float = -1.0,
    high: float = 1.0,
    form: str = "plain",
) -> Value:
    """Return 1 - AP of scores in soft bins.

    A score contributes to the two nearest bin centers, by linear interpolation. Scores beyond the
    outer centers are clipped. The gradient of a score at a center is 0.

    Parameters
    ----------
    scores, relevant : (B, n) or (n,) array
        As for :func:`ap_loss`.
    bins : int
        Number of equidistant bin centers, at least 2.
    low, high : float
        Lowest and highest bin center.
    form : {"plain", "tie-aware", "tie-aware-simple"}
        ``plain``: sum of precision times recall step. ``tie-aware``: expected AP over all orders in
        a bin. ``tie-aware-simple``: AP as if all items of a bin were at its middle.

    Raises
    ------
    UsageError
        If shapes differ, a score is not finite, or another argument is invalid.

    References
    ----------
    Revaud et al., Learning with Average Precision, ICCV 2019; He et al., Hashing as Tie-Aware
    Learning to Rank, CVPR 2018.
    """
    return _apply(scores, relevant, _formulas.quantized_ap(Bins(bins, low, high), form))


def fast_ap_loss(scores: ArrayLike, relevant: ArrayLike, *, bins: int = 10) -> Value:
    """Return 1 - FastAP of cosine similarities.

    FastAP has `bins` + 1 bin centers from 0 to 4 for squared distances of unit vectors, 2 - 2s.
    This is :func:`quantized_ap_loss` with as many centers from 1 to -1.

    Parameters
    ----------
    scores, relevant : (B, n) or (n,) array
        As for :func:`ap_loss`; scores are cosines.
    bins : int
        Number of intervals between bin centers, at least 1.

    References
    ----------
    Cakir et al., Deep Metric Learning to Rank, CVPR 2019.
    """
    return quantized_ap_loss(scores, relevant, bins=bins + 1, low=-1.0, high=1.0)


def calibration_loss(
    scores: ArrayLike, relevant: ArrayLike, *, alpha: float = 0.9, beta: float = 0.6
) -> Value:
    """Return mean over P of max(0, alpha - s) + mean over N of max(0, s - beta).

    The mean over an empty set is 0.

    Parameters
    ----------
    scores, relevant : (B, n) or (n,) array
        As for :func:`ap_loss`.
    alpha, beta : float
        Minimum score of relevant items, and maximum score of the others.

    References
    ----------
    Ramzi et al., Robust and Decomposable Average Precision for Image Retrieval, NeurIPS 2021.
    """
    return _apply(scores, relevant, _formulas.calibration(alpha, beta))


def roadmap_loss(
    scores: ArrayLike,
    relevant: ArrayLike,
    *,
    weight: float = 0.5,
    tau: float = 0.01,
    delta: float = 0.05,
    rho: float = 100.0,
    offset: float | None = 1.44,
    tie: float = 1.0,
    alpha: float = 0.9,
    beta: float = 0.6,
) -> Value:
    """Return (1 - weight) times :func:`sup_ap_loss` plus weight times :func:`calibration_loss`.

    Parameters
    ----------
    scores, relevant : (B, n) or (n,) array
        As for :func:`ap_loss`.
    weight : float
        Lambda in the paper, from 0 to 1.
    tau, delta, rho, offset, tie, alpha, beta : float
        As for the two losses.

    References
    ----------
    Ramzi et al., Robust and Decomposable Average Precision for Image Retrieval, NeurIPS 2021.
    """
    sup = _formulas.sup_ap(tau, delta, rho, offset, tie)
    return _apply(
        scores, relevant, _formulas.roadmap(weight, sup, _formulas.calibration(alpha, beta))
    )


def _checked(scores: ArrayLike, relevant: ArrayLike) -> tuple[Floats, Floats]:
    """Return scores and relevance as (B, n) float64."""
    values = np.asarray(scores, np.float64)
    flags = np.asarray(relevant)
    if values.ndim not in (1, 2) or values.shape != flags.shape:
        raise UsageError(
            f"scores have shape {values.shape}, relevant has shape {flags.shape}; both must be "
            "(queries, items) or (items,)"
        )
    finite = np.isfinite(values)
    if not finite.all():
        raise UsageError(f"score {values[~finite][0]} is not a finite number")
    return np.atleast_2d(values), np.atleast_2d(flags.astype(np.bool_).astype(np.float64))


def _apply(scores: ArrayLike, relevant: ArrayLike, formula: Formula) -> Value:
    """Return the loss; without the axis of queries if the scores of one were given as (n,)."""
    checked = _checked(scores, relevant)
    # Differences of very large scores overflow to infinity, which the step functions accept.
    with np.errstate(over="ignore", invalid="ignore"):
        result = formula(np, *checked)
    return result if np.ndim(scores) == 2 else Value(result.value[0], result.gradient[0])


class Gap(NamedTuple):
    """Decomposability gap of one query, and its bounds.

    All numbers are NaN for a query without relevant items.

    Attributes
    ----------
    gap : float
        Mean AP of the batches with a relevant item, minus the AP of all items.
    bound : float
        Upper bound of Ramzi et al., batches in the given order.
    calibrated_bound : float
        Upper bound of Ramzi et al. for calibrated scores.
    worst_bound : float
        Maximum of `bound` over all orders of the batches; NaN for more than 7 batches.
    applies : bool
        True if each batch ranks its relevant items first, as the bounds assume.
    """

    gap: float
    bound: float
    calibrated_bound: float
    worst_bound: float
    applies: bool


_MAX_PERMUTED = 7
"""Maximum number of batches whose orders are all tried."""


def decomposability_gap(
    scores: ArrayLike,
    relevant: ArrayLike,
    batch: ArrayLike,
    *,
    alpha: float = 0.9,
    beta: float = 0.6,
) -> Gap:
    """Return the decomposability gap of one query, and its bounds.

    The bounds assume that each batch ranks all its relevant items first. Otherwise the gap can be
    negative or exceed the bounds. If batches differ in their numbers of relevant and irrelevant
    items, the gap can exceed `bound` but not `worst_bound`. See docs/ranking.md.

    Parameters
    ----------
    scores : (n,) array of float
        Scores of one query; tied items stay in order.
    relevant : (n,) array of bool
        True for relevant items.
    batch : (n,) array of int
        The batch of each item.
    alpha, beta : float
        Scores are calibrated if relevant items are above alpha, the others below beta.

    Raises
    ------
    UsageError
        If shapes differ or a score is not finite.

    References
    ----------
    Ramzi et al., Robust and Decomposable Average Precision for Image Retrieval, NeurIPS 2021.
    """
    values, flags = (array[0] for array in _checked(np.ravel(scores), np.ravel(relevant)))
    batch_of_item = np.asarray(batch)
    if batch_of_item.shape != values.shape:
        raise UsageError(
            f"batch has shape {batch_of_item.shape}, scores have shape {values.shape}; they must "
            "be equal"
        )
    positive = flags > 0
    if not positive.any():
        return Gap(np.nan, np.nan, np.nan, np.nan, False)
    masks = [batch_of_item == number for number in np.unique(batch_of_item)]
    aps = [
        _average_precision(values[mask], positive[mask]) for mask in masks if positive[mask].any()
    ]
    counts = np.array([[positive[mask].sum(), (~positive[mask]).sum()] for mask in masks])
    counts_above = np.array(
        [
            [(positive & mask & (values > alpha)).sum(), (~positive & mask & (values > beta)).sum()]
            for mask in masks
        ]
    )
    worst = np.nan
    if len(masks) <= _MAX_PERMUTED:
        worst = max(_bound(counts[list(order)]) for order in permutations(range(len(masks))))
    return Gap(
        gap=float(np.mean(aps)) - _average_precision(values, positive),
        bound=_bound(counts),
        calibrated_bound=_bound(counts, counts_above),
        worst_bound=worst,
        applies=all(ap == 1.0 for ap in aps),
    )


def _average_precision(scores: Floats, relevant: NDArray[np.bool_]) -> float:
    order = np.argsort(-scores, kind="stable")
    hits = curves.hits_of(relevant[order])
    return curves.average_precision(hits, len(hits), interpolated=False)


def _bound(counts: NDArray[np.int64], counts_above: NDArray[np.int64] | None = None) -> float:
    """Return 1 - AP if all items of a batch rank below those of the batches before it."""
    # Calibrated: only irrelevant items above beta rank above relevant ones above alpha.
    counts_above = np.zeros_like(counts) if counts_above is None else counts_above
    before, before_above, total = np.zeros(2), np.zeros(2), 0.0
    for (positives, negatives), above in zip(counts, counts_above, strict=True):
        rank = np.arange(1, above[0] + 1) + before_above[0]
        total += float((rank / (rank + before_above[1])).sum())
        rank = np.arange(1, positives - above[0] + 1) + above[0] + before[0]
        total += float((rank / (rank + before[1])).sum())
        before += (positives, negatives)
        before_above += above
    return 1.0 - total / float(counts[:, 0].sum())
