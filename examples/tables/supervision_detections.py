"""Evaluate lists of ``supervision.Detections``, one per image."""

from collections.abc import Sequence
from typing import Any

import detap


def evaluate(
    predictions: Sequence[Any],
    targets: Sequence[Any],
    classes: Sequence[str],
    protocol: str = "coco",
) -> detap.Result:
    """Return the result; ``class_id`` is an index into `classes`."""
    evaluator = detap.Evaluator(protocol=protocol, boxes="xyxy", classes=dict(enumerate(classes)))
    evaluator.update(
        range(len(targets)),
        [item.xyxy for item in predictions],
        [item.confidence if len(item) else [] for item in predictions],
        [item.class_id if len(item) else [] for item in predictions],
        ground_truth={
            "boxes": [item.xyxy for item in targets],
            "labels": [item.class_id if len(item) else [] for item in targets],
        },
    )
    return evaluator.compute()
