"""Tables of boxes, most of them of one class on one image."""

from typing import Any

from detap.tables.detection import Detections, GroundTruth


def gt_table(boxes: Any, image: Any = "i", label: Any = "c", **columns: Any) -> GroundTruth:
    """Return ground truths; an image or a label that is no list is that of all boxes."""
    return GroundTruth.from_arrays(boxes=boxes, **_names(boxes, image, label), **columns)


def dt_table(
    boxes: Any, score: Any, image: Any = "i", label: Any = "c", **columns: Any
) -> Detections:
    """Return detections; an image or a label that is no list is that of all boxes."""
    names = _names(boxes, image, label)
    return Detections.from_arrays(boxes=boxes, score=score, **names, **columns)


def _names(boxes: Any, image: Any, label: Any) -> dict[str, Any]:
    many = {"image": image, "label": label}
    return {k: [v] * len(boxes) if isinstance(v, int | str) else v for k, v in many.items()}
