"""Score a detector of Hugging Face's transformers: DETR, YOLOS, RT-DETR and their like.

``post_process_object_detection`` turns what the model gives into boxes in pixels, given the sizes
of the images, height first. Labels count the model's classes from 0: ``ids`` says what each is
called in the ground truth.
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

    The evaluator has boxes="xyxy". The threshold is 0: AP is made of all detections, and to cut off
    those of low score, as for showing boxes, lowers it.
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
