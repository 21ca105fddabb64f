"""``compute_metrics`` for Hugging Face's Trainer and an object detection model.

    Trainer(
        args=TrainingArguments(eval_do_concat_batches=False, ...),
        compute_metrics=partial(compute_metrics, processor=processor, id2label=id2label),
        ...,
    )

Without concatenation the Trainer passes a list of batches. Labels have the boxes as fractions of
the image, center and size, and ``orig_size``, height and width, as the image processors make them.

``per_device_eval_batch_size`` times the number of processes must divide the number of images: of a
smaller last batch of m images, Accelerate keeps only the first m boxes of each.
"""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

import detap


def to_pixels(boxes: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Convert fractions (center and size) to corners in pixels."""
    center, half = boxes[:, :2], boxes[:, 2:] / 2
    return np.concatenate([center - half, center + half], 1) * np.tile(size[::-1], 2)


def compute_metrics(
    evaluation: Any, processor: Any, id2label: Mapping[int, str], protocol: str = "coco"
) -> dict[str, float]:
    """Return the metrics by name; the Trainer adds ``eval_``."""
    if len({len(targets) for targets in evaluation.label_ids}) > 1:
        raise ValueError("the last batch is smaller; choose a batch size that divides the images")
    evaluator = detap.Evaluator(protocol=protocol, boxes="xyxy", classes=id2label)
    for outputs, targets in zip(evaluation.predictions, evaluation.label_ids, strict=True):
        logits, boxes = map(torch.as_tensor, outputs[1:3])  # behind the losses
        sizes = np.array([target["orig_size"] for target in targets])
        predictions = processor.post_process_object_detection(
            SimpleNamespace(logits=logits, pred_boxes=boxes), 0.0, torch.as_tensor(sizes)
        )
        first = len(evaluator.seen)
        evaluator.update(
            range(first, first + len(targets)),
            [item["boxes"] for item in predictions],
            [item["scores"] for item in predictions],
            [item["labels"] for item in predictions],
            ground_truth={
                "boxes": [to_pixels(t["boxes"], t["orig_size"]) for t in targets],
                "labels": [target["class_labels"] for target in targets],
            },
        )
    return evaluator.compute().metrics()
