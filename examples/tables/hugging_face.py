"""Ground truth and detections of a ``datasets.Dataset`` with an objects column."""

from typing import Any

import numpy as np

import detap


def ground_truth(dataset: Any) -> detap.GroundTruth:
    """Return the ground truth; ``objects`` has ``bbox`` (xywh, in pixels) and ``category``."""
    objects = dataset["objects"]
    feature = dataset.features["objects"]
    category = feature.feature["category"] if hasattr(feature, "feature") else feature["category"]
    return detap.GroundTruth.from_arrays(
        image=np.repeat(dataset["image_id"], [len(item["bbox"]) for item in objects]),
        label=[label for item in objects for label in item["category"]],
        boxes=np.array([box for item in objects for box in item["bbox"]]).reshape(-1, 4),
        box_format="xywh",
        images=list(dataset["image_id"]),
        classes=dict(enumerate(category.feature.names)),
    )
