"""The losses of :mod:`detap.ranking.losses` for PyTorch: ``pip install detap[torch]``.

>>> from detap.ranking.torch import smooth_ap_loss
>>> loss = smooth_ap_loss(scores, relevant)   # scores (B, n), relevant (B, n)
>>> loss.backward()

Gradients are computed by formula, not by autograd, on the device of the scores and in their
floating-point type; half precision is computed in float32. A query without relevant items is
excluded from the mean and has the gradient 0; if there are only such queries, the mean is 0.
"""

from typing import Any

from detap.errors import UsageError
from detap.ranking import _formulas
from detap.ranking._formulas import Bins, Formula

try:
    import torch
    from torch import Tensor
except ImportError as error:  # pragma: no cover - tested where torch is absent
    raise ImportError(
        "detap.ranking.torch needs PyTorch: pip install 'detap[torch]', or torch by itself"
    ) from error

__all__ = [
    "ap_loss",
    "calibration_loss",
    "fast_ap_loss",
    "quantized_ap_loss",
    "roadmap_loss",
    "smooth_ap_loss",
    "sup_ap_loss",
]


class _Loss(torch.autograd.Function):
    """A loss per query, whose gradient is computed in the forward pass."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, relevant: Tensor, formula: Formula) -> Tensor:
        half = scores.dtype in (torch.float16, torch.bfloat16)
        working = scores.float() if half else scores
        with torch.no_grad():
            result = formula(torch, working, relevant.to(working.dtype))
        ctx.save_for_backward(result.gradient.to(scores.dtype))
        value: Tensor = result.value.to(scores.dtype)
        return value

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return grad[:, None] * gradient, None, None


def _apply(scores: Tensor, relevant: Tensor, formula: Formula, reduction: str) -> Tensor:
    """Return the loss of each query, or their mean."""
    if scores.ndim != 2 or scores.shape != relevant.shape:
        raise UsageError(
            f"scores have shape {tuple(scores.shape)}, relevant has shape "
            f"{tuple(relevant.shape)}; both must be (queries, items)"
        )
    if reduction not in ("mean", "none"):
        raise UsageError(f"reduction {reduction!r} is unknown; choose from mean, none")
    value: Tensor = _Loss.apply(scores, relevant.bool(), formula)
    if reduction == "none":
        return value
    defined = ~torch.isnan(value)
    # torch.where, as a product with 0 would turn the gradient of an undefined value into NaN.
    return torch.where(defined, value, torch.zeros_like(value)).sum() / defined.sum().clamp(min=1)


def ap_loss(scores: Tensor, relevant: Tensor, *, reduction: str = "mean") -> Tensor:
    """Return 1 - AP; its gradient is 0. See :func:`detap.ranking.losses.ap_loss`.

    The other losses have the same `scores`, `relevant` and `reduction`.

    Parameters
    ----------
    scores : (B, n) tensor
        Higher is better.
    relevant : (B, n) tensor
        True for relevant items.
    reduction : {"mean", "none"}
        ``mean``: the mean over queries with relevant items. ``none``: the loss of each query, (B,),
        NaN without relevant items.

    Raises
    ------
    UsageError
        If an argument is invalid.
    """
    return _apply(scores, relevant, _formulas.ap(), reduction)


def smooth_ap_loss(
    scores: Tensor, relevant: Tensor, *, tau: float = 0.01, reduction: str = "mean"
) -> Tensor:
    """Return 1 - SmoothAP. See :func:`detap.ranking.losses.smooth_ap_loss`."""
    return _apply(scores, relevant, _formulas.smooth_ap(tau), reduction)


def sup_ap_loss(
    scores: Tensor,
    relevant: Tensor,
    *,
    tau: float = 0.01,
    delta: float = 0.05,
    rho: float = 100.0,
    offset: float | None = 1.44,
    tie: float = 1.0,
    reduction: str = "mean",
) -> Tensor:
    """Return 1 - SupAP. See :func:`detap.ranking.losses.sup_ap_loss`."""
    return _apply(scores, relevant, _formulas.sup_ap(tau, delta, rho, offset, tie), reduction)


def quantized_ap_loss(
    scores: Tensor,
    relevant: Tensor,
    *,
    bins: int = 20,
    low: float = -1.0,
    high: float = 1.0,
    form: str = "plain",
    reduction: str = "mean",
) -> Tensor:
    """Return 1 - quantized AP. See :func:`detap.ranking.losses.quantized_ap_loss`."""
    formula = _formulas.quantized_ap(Bins(bins, low, high), form)
    return _apply(scores, relevant, formula, reduction)


def fast_ap_loss(
    scores: Tensor, relevant: Tensor, *, bins: int = 10, reduction: str = "mean"
) -> Tensor:
    """Return 1 - FastAP. See :func:`detap.ranking.losses.fast_ap_loss`."""
    return quantized_ap_loss(scores, relevant, bins=bins + 1, reduction=reduction)


def calibration_loss(
    scores: Tensor,
    relevant: Tensor,
    *,
    alpha: float = 0.9,
    beta: float = 0.6,
    reduction: str = "mean",
) -> Tensor:
    """Return the calibration loss. See :func:`detap.ranking.losses.calibration_loss`."""
    return _apply(scores, relevant, _formulas.calibration(alpha, beta), reduction)


def roadmap_loss(
    scores: Tensor,
    relevant: Tensor,
    *,
    weight: float = 0.5,
    tau: float = 0.01,
    delta: float = 0.05,
    rho: float = 100.0,
    offset: float | None = 1.44,
    tie: float = 1.0,
    alpha: float = 0.9,
    beta: float = 0.6,
    reduction: str = "mean",
) -> Tensor:
    """Return the ROADMAP loss. See :func:`detap.ranking.losses.roadmap_loss`."""
    sup = _formulas.sup_ap(tau, delta, rho, offset, tie)
    formula = _formulas.roadmap(weight, sup, _formulas.calibration(alpha, beta))
    return _apply(scores, relevant, formula, reduction)
