"""Tensors as networks return them: with a graph, in half precision, by DLPack only."""

from typing import Any

import numpy as np
import pytest

from detap.evaluation.loop.evaluator import Evaluator
from detap.tables.detection import GroundTruth
from tests.torch.references import torch as found_torch

torch = found_torch()

BOX = [1.0, 2.0, 34.5, 40.0]


class ByDlpack:
    """A tensor of a library with no other protocol."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def __len__(self) -> int:
        return len(self._tensor)

    def __dlpack__(self, **given: Any) -> Any:
        return self._tensor.__dlpack__(**given)

    def __dlpack_device__(self) -> Any:
        return self._tensor.__dlpack_device__()


@pytest.mark.parametrize(
    "make",
    [
        lambda values: values,
        lambda values: values.clone().requires_grad_() * 1,
        lambda values: values.to(torch.bfloat16),
        lambda values: values.to(torch.float16).requires_grad_(),
        lambda values: torch.stack([values, values], -1)[..., 0],
        ByDlpack,
    ],
    ids=["plain", "with-a-graph", "bfloat16", "float16", "strided", "dlpack"],
)
def test_tensors_are_accepted_unchanged(make: Any) -> None:
    """Each of the values is exact in bfloat16."""
    truth = GroundTruth.from_arrays(image=[7], label=[3], boxes=[BOX])
    evaluator = Evaluator(truth, boxes="xyxy")
    evaluator.update(
        torch.tensor([7]),
        [make(torch.tensor([BOX, BOX]))],
        [make(torch.tensor([0.75, 0.5]))],
        [torch.tensor([3, 3], dtype=torch.int32)],
    )
    result = evaluator.compute()
    assert result.detections.corners.tolist() == [BOX, BOX]
    assert result.detections.score.tolist() == [0.75, 0.5]


def test_a_batch_may_be_one_tensor() -> None:
    """The hundred best of each image, as in DETR."""
    truth = GroundTruth.from_arrays(image=[0, 1], label=[3, 3], boxes=[BOX] * 2)
    evaluator = Evaluator(truth, boxes="cxcywh")
    boxes = torch.rand(2, 100, 4, generator=torch.Generator().manual_seed(0)) * 0.5
    evaluator.update(
        [0, 1],
        boxes,
        torch.rand(2, 100),
        torch.full((2, 100), 3),
        sizes=torch.tensor([[640, 480], [320, 200]]),
    )
    detections = evaluator.compute().detections
    scale = np.array([[640, 480]] * 100 + [[320, 200]] * 100)
    center, size = (boxes.double().numpy().reshape(-1, 4)[:, at] for at in (slice(2), slice(2, 4)))
    assert np.array_equal(detections.corners[:, :2], center * scale - size * scale / 2)
    assert np.allclose(detections.corners[:, 2:], (center + size / 2) * scale)
