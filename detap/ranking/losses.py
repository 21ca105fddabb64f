"""Average precision as an objective: losses of one query's scores, with their gradients.

Each function takes the scores of B queries over n items, (B, n), and which items are relevant, and
returns the loss of every query, (B,), with its gradient by the scores, (B, n). One query may be
given as (n,) arrays. All compute in float64 and are finite for any finite scores. A query without
relevant items has no average precision: its loss is NaN and its gradient 0.

With s the scores of a query, P its relevant items and N the others, the rank of k is
``1 + sum over j != k of H(s_j - s_k)``, split into rank+ over P and rank- over N, with H(0) = 1.

:mod:`detap.ranking.torch` has the same losses for PyTorch; the formulas are shared.
"""

from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detap.core import curves
from detap.errors import UsageError
from detap.ranking import _formulas
from detap.ranking._formulas import Bins, Step, Value

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

FORMS: dict[str, _formulas.Form] = {
    "plain": _formulas.plain,
    "tie-aware": _formulas.tie_aware,
    "tie-aware-simple": _formulas.tie_aware_simple,
}
"""Formulas of AP from a histogram, by name."""


def ap_loss(scores: ArrayLike, relevant: ArrayLike) -> Value:
    """Return 1 - AP, ties counted against the query (H(0) = 1).

    Parameters
    ----------
    scores : (B, n) or (n,) array of float
        Higher is better; finite.
    relevant : array of bool of the same shape
        Whether each item is relevant.

    Returns
    -------
    Value
        The gradient is 0: the loss is constant but where scores meet.

    Raises
    ------
    UsageError
        If shapes differ or a score is not finite.
    """
    return _of_pairs(scores, relevant, _formulas.heaviside, _formulas.heaviside)


def smooth_ap_loss(scores: ArrayLike, relevant: ArrayLike, *, tau: float = 0.01) -> Value:
    """Return 1 - SmoothAP: H replaced everywhere by the sigmoid of the difference over tau.

    Parameters
    ----------
    scores, relevant : (B, n) or (n,) array
        As for :func:`ap_loss`.
    tau : float
        The temperature, above 0.

    References
    ----------
    Brown et al., Smooth-AP: Smoothing the Path Towards Large-Scale Image Retrieval, ECCV 2020.
    """
    step = _formulas.sigmoid(positive("tau", tau))
    return _of_pairs(scores, relevant, step, step)


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
    """Return 1 - SupAP, which is never below :func:`ap_loss`.

    rank+ is exact. In rank-, H of t = s_j - s_k becomes sigmoid(t / tau) for t < 0,
    1/2 + sigmoid(t / tau) for 0 < t <= delta, and rho (t - delta) + offset beyond.

    Parameters
    ----------
    scores, relevant : (B, n) or (n,) array
        As for :func:`ap_loss`.
    tau, delta, rho : float
        Above 0, at least 0, at least 0.
    offset : float or None
        1.44 in the published setting; None makes the step continuous at delta.
    tie : float
        The step at t = 0. The published code has 1/2 there, below H(0) = 1: with equal scores it
        is no upper bound. At 1 it is.

    References
    ----------
    Ramzi et al., Robust and Decomposable Average Precision for Image Retrieval, NeurIPS 2021.
    """
    step = sup_step(tau, delta, rho, offset, tie)
    return _of_pairs(scores, relevant, _formulas.heaviside, step)


def quantized_ap_loss(
    scores: ArrayLike,
    relevant: ArrayLike,
    *,
    bins: int = 20,
    low: float = -1.0,
    high: float = 1.0,
    form: str = "plain",
) -> Value:
    """Return 1 - the AP of scores that are softly sorted into bins.

    Each score is weighted between its two nearest centers, `bins` of them from `high` to `low`.
    Scores outside are clipped. A gradient at the very center of a bin is 0.

    Parameters
    ----------
    scores, relevant : (B, n) or (n,) array
        As for :func:`ap_loss`.
    bins : int
        Centres, at least 2.
    low, high : float
        The lowest and the highest center.
    form : {"plain", "tie-aware", "tie-aware-simple"}
        Precision times recall step of each bin; or the expected AP over the orders of what is in
        it, the sum over ranks by a logarithm or by the bin's middle.

    References
    ----------
    Revaud et al., Learning with Average Precision, ICCV 2019; He et al., Hashing as Tie-Aware
    Learning to Rank, CVPR 2018.
    """
    if form not in FORMS:
        raise UsageError(f"form {form!r} is unknown; choose from {', '.join(FORMS)}")
    checked = _checked(scores, relevant)
    check_bins(bins, low, high)
    return _restore_shape(
        scores, _formulas.of_histogram(np, *checked, FORMS[form], Bins(bins, low, high))
    )


def fast_ap_loss(scores: ArrayLike, relevant: ArrayLike, *, bins: int = 10) -> Value:
    """Return 1 - FastAP of cosine similarities.

    Squared distances of unit vectors, 2 - 2s from 0 to 4, are softly sorted into bins + 1 nodes:
    the plain form of :func:`quantized_ap_loss` with that many centers from 1 to -1.

    Parameters
    ----------
    scores, relevant : (B, n) or (n,) array
        As for :func:`ap_loss`; scores are cosines.
    bins : int
        Intervals, at least 1.

    References
    ----------
    Cakir et al., Deep Metric Learning to Rank, CVPR 2019.
    """
    return quantized_ap_loss(scores, relevant, bins=bins + 1, low=-1.0, high=1.0)


def calibration_loss(
    scores: ArrayLike, relevant: ArrayLike, *, alpha: float = 0.9, beta: float = 0.6
) -> Value:
    """Return mean over P of max(0, alpha - s) + mean over N of max(0, s - beta).

    A mean over nothing is 0.

    Parameters
    ----------
    scores, relevant : (B, n) or (n,) array
        As for :func:`ap_loss`.
    alpha, beta : float
        Where scores of relevant items should lie above, and of the others below.

    References
    ----------
    Ramzi et al., NeurIPS 2021.
    """
    return _restore_shape(
        scores, _formulas.calibration(np, *_checked(scores, relevant), alpha, beta)
    )


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
        Lambda of the paper, from 0 to 1.
    tau, delta, rho, offset, tie, alpha, beta : float
        As for the two losses.

    References
    ----------
    Ramzi et al., NeurIPS 2021.
    """
    share = fraction("weight", weight)
    sup = sup_ap_loss(scores, relevant, tau=tau, delta=delta, rho=rho, offset=offset, tie=tie)
    calibration = calibration_loss(scores, relevant, alpha=alpha, beta=beta)
    return mixed(sup, calibration, share)


def mixed(first: Value, second: Value, weight: float) -> Value:
    """Return (1 - weight) of one loss and weight of another, undefined where the first is."""
    defined = 0.0 + (first.value == first.value)  # NaN is not itself, in NumPy as in PyTorch
    value = (1.0 - weight) * first.value + weight * second.value
    gradient = (1.0 - weight) * first.gradient + weight * second.gradient
    return Value(value, gradient * defined[..., None])


def sup_step(tau: float, delta: float, rho: float, offset: float | None, tie: float) -> Step:
    """Return the step of SupAP, its parameters checked."""
    positive("tau", tau)
    for name, value in (("delta", delta), ("rho", rho)):
        if not (value >= 0 and np.isfinite(value)):
            raise UsageError(f"{name} is {value}; it must be 0 or more")
    if offset is None:
        offset = 0.5 + 0.5 * (1.0 + float(np.tanh(0.5 * delta / tau)))
    return _formulas.upper_bound(tau, delta, rho, offset, tie)


def positive(name: str, value: float) -> float:
    """Return a parameter that must be above 0.

    Raises
    ------
    UsageError
        If it is not.
    """
    if not (value > 0 and np.isfinite(value)):
        raise UsageError(f"{name} is {value}; it must be above 0")
    return value


def fraction(name: str, value: float) -> float:
    """Return a parameter that must be from 0 to 1.

    Raises
    ------
    UsageError
        If it is not.
    """
    if not 0 <= value <= 1:
        raise UsageError(f"{name} is {value}; it must be from 0 to 1")
    return value


def check_bins(bins: int, low: float, high: float) -> None:
    """Raise UsageError for an invalid histogram.

    Raises
    ------
    UsageError
        If there are fewer than 2 bins, or they do not ascend.
    """
    if bins < 2:
        raise UsageError(f"bins is {bins}; at least 2 centers are required")
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise UsageError(f"bins from {low} to {high} do not ascend")


def _checked(scores: ArrayLike, relevant: ArrayLike) -> tuple[Floats, Floats]:
    values = np.asarray(scores, np.float64)
    flags = np.asarray(relevant)
    if values.ndim not in (1, 2) or values.shape != flags.shape:
        raise UsageError(
            f"scores of the shape {values.shape} and relevance of the shape {flags.shape}: both "
            "must be (queries, items), or (items,)"
        )
    if not np.isfinite(values).all():
        raise UsageError("a score is not finite")
    return np.atleast_2d(values), np.atleast_2d(flags.astype(np.bool_).astype(np.float64))


def _of_pairs(
    scores: ArrayLike, relevant: ArrayLike, step_relevant: Step, step_irrelevant: Step
) -> Value:
    checked = _checked(scores, relevant)
    # Differences of scores near the largest float overflow to infinity, which the steps take.
    with np.errstate(over="ignore", invalid="ignore"):
        result = _formulas.of_pairs(np, *checked, step_relevant, step_irrelevant)
    return _restore_shape(scores, result)


def _restore_shape(scores: ArrayLike, result: Value) -> Value:
    if np.ndim(scores) == 1:
        return Value(result.value[0], result.gradient[0])
    return result


class Gap(NamedTuple):
    """Difference of the mean per-batch AP and the overall AP of one query.

    Attributes
    ----------
    gap : float
        Mean over batches (those with a relevant item) of AP, less AP over all; NaN where there is
        no relevant item.
    bound : float
        The published upper bound, the batches in their order.
    calibrated_bound : float
        The published upper bound for calibrated scores.
    worst_bound : float
        The largest `bound` over all orders of the batches; NaN above 7 batches.
    applies : bool
        True if every batch ranks its relevant items first, as the bounds assume.
    """

    gap: float
    bound: float
    calibrated_bound: float
    worst_bound: float
    applies: bool


_MAX_PERMUTED = 7


def decomposability_gap(
    scores: ArrayLike,
    relevant: ArrayLike,
    batch: ArrayLike,
    *,
    alpha: float = 0.9,
    beta: float = 0.6,
) -> Gap:
    """Return the decomposability gap of one query, and its bounds.

    The bounds are those of Ramzi et al.; they suppose a perfect ranking within each batch, and
    batches in the order of the formula. Where a batch is not perfectly ranked the gap can be
    negative, and can exceed the bound; with batches of unequal make-up, `worst_bound` holds where
    `bound` may not. See docs/ranking.md.

    Parameters
    ----------
    scores : (n,) array of float
        Of one query; equal scores stay in their order.
    relevant : (n,) array of bool
        Whether each item is relevant.
    batch : (n,) array of int
        The batch of each item.
    alpha, beta : float
        Calibration: relevant items should score above alpha, the others below beta.

    Raises
    ------
    UsageError
        If shapes differ or a score is not finite.

    References
    ----------
    Ramzi et al., Robust and Decomposable Average Precision for Image Retrieval, NeurIPS 2021.
    """
    values, flags = (array[0] for array in _checked(np.ravel(scores), np.ravel(relevant)))
    member = np.asarray(batch)
    if member.shape != values.shape:
        raise UsageError(f"batches of the shape {member.shape} for {values.shape} scores")
    positive = flags > 0
    if not positive.any():
        return Gap(np.nan, np.nan, np.nan, np.nan, False)
    parts = [member == number for number in np.unique(member)]
    aps = [_precision(values[part], positive[part]) for part in parts if positive[part].any()]
    counts = np.array([[positive[part].sum(), (~positive[part]).sum()] for part in parts])
    calibrated_counts = np.array(
        [
            [(positive & part & (values > alpha)).sum(), (~positive & part & (values > beta)).sum()]
            for part in parts
        ]
    )
    worst = np.nan
    if len(parts) <= _MAX_PERMUTED:
        worst = max(_bound(counts[list(order)]) for order in permutations(range(len(parts))))
    return Gap(
        gap=float(np.mean(aps)) - _precision(values, positive),
        bound=_bound(counts),
        calibrated_bound=_calibrated_bound(counts, calibrated_counts),
        worst_bound=worst,
        applies=all(ap == 1.0 for ap in aps),
    )


def _precision(scores: Floats, relevant: NDArray[np.bool_]) -> float:
    order = np.argsort(-scores, kind="stable")
    hits = curves.hits_of(relevant[order])
    return curves.average_precision(hits, len(hits), interpolated=False)


def _bound(counts: NDArray[np.int64]) -> float:
    """Return 1 - AP if each batch ranks wholly below the one before it."""
    before, total = np.zeros(2), 0.0
    for positives, negatives in counts:
        rank = np.arange(1, positives + 1) + before[0]
        total += float((rank / (rank + before[1])).sum())
        before += (positives, negatives)
    return 1.0 - total / float(counts[:, 0].sum())


def _calibrated_bound(counts: NDArray[np.int64], calibrated_counts: NDArray[np.int64]) -> float:
    """Return the bound where relevant items above alpha meet only the others above beta."""
    before, before_sure, total = np.zeros(2), np.zeros(2), 0.0
    for (positives, negatives), (above, wrong) in zip(counts, calibrated_counts, strict=True):
        rank = np.arange(1, above + 1) + before_sure[0]
        total += float((rank / (rank + before_sure[1])).sum())
        rank = np.arange(1, positives - above + 1) + above + before[0]
        total += float((rank / (rank + before[1])).sum())
        before += (positives, negatives)
        before_sure += (above, wrong)
    return 1.0 - total / float(counts[:, 0].sum())
