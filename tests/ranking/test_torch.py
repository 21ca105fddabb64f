"""The losses in PyTorch equal NumPy's and autograd of a direct implementation."""

from typing import Any

import numpy as np
import pytest

from detap.errors import UsageError
from detap.ranking import losses
from tests.ranking.test_losses import SMOOTH, random_case

torch = pytest.importorskip("torch", reason="PyTorch is absent: it is the extra detap[torch]")


def ours(loss: Any) -> Any:
    from detap.ranking import torch as module

    return getattr(module, loss.__name__)


def transcribed(scores: Any, relevant: Any, up: Any, down: Any) -> Any:
    """Return the pairwise loss of one query by its definition."""
    places = torch.arange(len(scores))
    terms = []
    for k in places[relevant]:
        t = scores - scores[k]
        above = 1 + up(t[relevant & (places != k)]).sum()
        terms.append(above / (above + down(t[~relevant]).sum()))
    return 1 - torch.stack(terms).mean()


def sup_step(tau: float, offset: float) -> Any:
    def step(t: Any) -> Any:
        near = torch.where(t > 0, 0.5 + torch.sigmoid(t / tau), torch.sigmoid(t / tau))
        return torch.where(t > 0.05, 100 * (t - 0.05) + offset, near)

    return step


def binned(scores: Any, relevant: Any, form: str, bins: int = 20) -> Any:
    """Return the histogram loss of one query by its definition."""
    centres = torch.linspace(1, -1, bins, dtype=torch.float64)
    weight = (1 - (scores[:, None] - centres).abs() / (2 / (bins - 1))).clamp(min=0)
    every, relevant_weight = weight.sum(0), weight[relevant].sum(0)
    total, hits = every.cumsum(0), relevant_weight.cumsum(0)
    if form == "plain":
        return 1 - (hits / (total + 1e-16) * relevant_weight).sum() / relevant.sum()
    if form == "tie-aware-simple":
        part = relevant_weight * (2 * hits - relevant_weight + 1) / (2 * total - every + 1)
        return 1 - part.sum() / relevant.sum()
    before, hits_before = total - every, hits - relevant_weight
    ratio = (relevant_weight - 1).clamp(min=0) / ((every - 1).clamp(min=0) + 1e-8)
    log = torch.log((total + 1) / (before + 1))
    inner = every * ratio + (hits_before + 1 - ratio * (before + 1)) * log
    return 1 - (relevant_weight * inner / (every + 1e-8)).sum() / relevant.sum()


def heaviside(t: Any) -> Any:
    return (t >= 0).double()


CASES: list[tuple[Any, dict[str, Any], Any]] = [
    (
        losses.smooth_ap_loss,
        {"tau": 0.1},
        lambda s, r: transcribed(
            s, r, lambda t: torch.sigmoid(t / 0.1), lambda t: torch.sigmoid(t / 0.1)
        ),
    ),
    (
        losses.sup_ap_loss,
        {},
        lambda s, r: transcribed(s, r, heaviside, sup_step(0.01, 1.44)),
    ),
    (losses.quantized_ap_loss, {}, lambda s, r: binned(s, r, "plain")),
    (losses.quantized_ap_loss, {"form": "tie-aware"}, lambda s, r: binned(s, r, "tie-aware")),
    (
        losses.quantized_ap_loss,
        {"form": "tie-aware-simple"},
        lambda s, r: binned(s, r, "tie-aware-simple"),
    ),
    (losses.fast_ap_loss, {}, lambda s, r: binned(s, r, "plain", 11)),
    (
        losses.calibration_loss,
        {},
        lambda s, r: (0.9 - s[r]).clamp(min=0).mean() + (s[~r] - 0.6).clamp(min=0).mean(),
    ),
]


@pytest.mark.parametrize(("loss", "parameters", "definition"), CASES)
@pytest.mark.parametrize("seed", range(3))
def test_value_and_gradient_equal_autograd(
    loss: Any, parameters: dict[str, Any], definition: Any, seed: int
) -> None:
    scores, relevant = random_case(seed)
    result = loss(scores, relevant, **parameters)
    for query in range(len(scores)):
        tensor = torch.tensor(scores[query], requires_grad=True)
        value = definition(tensor, torch.tensor(relevant[query]))
        value.backward()
        assert result.value[query] == pytest.approx(value.item(), abs=1e-12)
        assert result.gradient[query] == pytest.approx(tensor.grad.numpy(), abs=1e-9, rel=1e-9)


@pytest.mark.parametrize(("loss", "parameters"), [row[1:] for row in SMOOTH])
def test_torch_and_numpy_agree(loss: Any, parameters: dict[str, Any]) -> None:
    scores, relevant = random_case(1)
    relevant[2] = False
    expected = loss(scores, relevant, **parameters)
    tensor = torch.tensor(scores, requires_grad=True)
    result = ours(loss)(tensor, torch.tensor(relevant), reduction="none", **parameters)
    assert result.detach().numpy() == pytest.approx(expected.value, abs=1e-12, nan_ok=True)
    mean = ours(loss)(tensor, torch.tensor(relevant), **parameters)
    defined = ~np.isnan(expected.value)
    assert mean.item() == pytest.approx(expected.value[defined].mean())
    mean.backward()
    assert tensor.grad.numpy() == pytest.approx(expected.gradient / defined.sum(), abs=1e-12)


def test_gradcheck() -> None:
    scores, relevant = random_case(2, queries=2, items=6)
    tensor = torch.tensor(scores, requires_grad=True)
    for _, loss, parameters in SMOOTH:
        function = ours(loss)

        def value(s: Any, function: Any = function, parameters: Any = parameters) -> Any:
            return function(s, torch.tensor(relevant), reduction="none", **parameters)

        assert torch.autograd.gradcheck(value, (tensor,), eps=1e-7, atol=1e-5)


def test_a_training_loop_lowers_the_loss() -> None:
    """A linear map of random vectors learns to rank the items of its class first."""
    torch.manual_seed(0)
    vectors, labels = torch.randn(60, 8), torch.arange(60) % 4
    layer = torch.nn.Linear(8, 8)
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.02)
    relevant = labels[:, None] == labels
    history = []
    for _ in range(40):
        unit = torch.nn.functional.normalize(layer(vectors), dim=1)
        loss = ours(losses.smooth_ap_loss)(unit @ unit.T, relevant, tau=0.1)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        history.append(loss.item())
    assert history[-1] < history[0] - 0.05


def test_half_precision_and_a_batch_without_relevant_items() -> None:
    scores = torch.tensor([[0.9, 0.1], [0.2, 0.3]], dtype=torch.bfloat16, requires_grad=True)
    loss = ours(losses.smooth_ap_loss)(scores, torch.tensor([[1, 0], [0, 1]]))
    assert loss.dtype == torch.bfloat16
    none = ours(losses.smooth_ap_loss)(scores, torch.zeros(2, 2))
    none.backward()
    assert none.item() == 0
    assert scores.grad.tolist() == [[0, 0], [0, 0]]


def test_the_ap_loss_has_no_gradient() -> None:
    scores, relevant = random_case(4)
    tensor = torch.tensor(scores, requires_grad=True)
    loss = ours(losses.ap_loss)(tensor, torch.tensor(relevant))
    loss.backward()
    assert loss.item() == pytest.approx(losses.ap_loss(scores, relevant).value.mean())
    assert (tensor.grad == 0).all()


def test_invalid_arguments_are_rejected() -> None:
    scores = torch.zeros(2, 3)
    with pytest.raises(UsageError, match=r"scores have shape \(2, 3\), relevant"):
        ours(losses.ap_loss)(scores, torch.zeros(3))
    with pytest.raises(UsageError, match="reduction 'sum' is unknown"):
        ours(losses.ap_loss)(scores, scores, reduction="sum")
    with pytest.raises(UsageError, match="form 'x' is unknown"):
        ours(losses.quantized_ap_loss)(scores, scores, form="x")
