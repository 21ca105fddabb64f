"""The losses in PyTorch equal NumPy's."""

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
