"""Evaluate two fields of FiftyOne samples, which have boxes as fractions of the image."""

from typing import Any

import detap


def evaluate(samples: Any, pred_field: str, gt_field: str, protocol: str = "coco") -> detap.Result:
    """Return the result; ``samples.compute_metadata()`` must have read the sizes."""
    evaluator = detap.Evaluator(protocol=protocol, boxes="xywh")
    for sample in samples:
        size = sample.metadata.width, sample.metadata.height
        truth, detected = sample[gt_field].detections, sample[pred_field].detections
        evaluator.update(
            [sample.filepath],
            [[item.bounding_box for item in detected]],
            [[item.confidence for item in detected]],
            [[item.label for item in detected]],
            ground_truth={
                "boxes": [[item.bounding_box for item in truth]],
                "labels": [[item.label for item in truth]],
                "crowd": [[bool(item.get_attribute_value("iscrowd", False)) for item in truth]],
            },
            sizes=[size],
        )
    return evaluator.compute()
