"""Score a torchvision detector after each epoch.

The model gives a dict of boxes (two corners, in pixels), scores and labels for each image, and a
target names its image, as ``wrap_dataset_for_transforms_v2(dataset, ("image_id",))`` has it. The
labels of torchvision's COCO weights are COCO's category ids; those of a model of one's own are
whatever it was trained with, and have to become the ground truth's ids or names.
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
