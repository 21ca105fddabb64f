"""Evaluate a torchvision detector after each epoch.

The model returns a dict of boxes (xyxy, in pixels), scores and labels per image, and targets have
an ``image_id``, as from ``wrap_dataset_for_transforms_v2(dataset, ("image_id",))``. The labels of
torchvision's COCO weights are COCO's category ids; labels of other models must be mapped to the ids
or names of the ground truth.
"""

from collections.abc import Iterable
from typing import Any

import torch

import detap


@torch.inference_mode()
def validate(
    model: torch.nn.Module,
    loader: Iterable[tuple[list[torch.Tensor], list[dict[str, Any]]]],
    evaluator: detap.Evaluator,
    device: str = "cpu",
) -> detap.Result:
    """Return the result on a loader's images; the evaluator has boxes="xyxy"."""
    model.eval()
    evaluator.reset()
    for images, targets in loader:
        predictions = model([image.to(device) for image in images])
        evaluator.update(
            [int(target["image_id"]) for target in targets],
            [item["boxes"] for item in predictions],
            [item["scores"] for item in predictions],
            [item["labels"] for item in predictions],
        )
    return evaluator.compute()
