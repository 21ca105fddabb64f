"""Evaluate a detector of Hugging Face's transformers, such as DETR, YOLOS or RT-DETR.

``post_process_object_detection`` converts the model's output into boxes in pixels, given the image
sizes, height first. Labels are indices of the model's classes; ``ids`` maps them to the ids or
names of the ground truth.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

import detap


@torch.inference_mode()
def validate(
    model: Any,
    processor: Any,
    batches: Iterable[dict[str, Any]],
    evaluator: detap.Evaluator,
    ids: np.ndarray,
) -> detap.Result:
    """Return the result on batches of ``image_ids``, ``pixel_values``, ``sizes`` (height, width).

    The evaluator has boxes="xyxy". The threshold is 0, as AP uses all detections; dropping those of
    low score, as for display, lowers it.
    """
    model.eval()
    evaluator.reset()
    for batch in batches:
        outputs = model(pixel_values=batch["pixel_values"].to(model.device))
        predictions = processor.post_process_object_detection(
            outputs, threshold=0.0, target_sizes=batch["sizes"]
        )
        evaluator.update(
            batch["image_ids"],
            [item["boxes"] for item in predictions],
            [item["scores"] for item in predictions],
            [ids[item["labels"].cpu().numpy()] for item in predictions],
        )
    return evaluator.compute()
