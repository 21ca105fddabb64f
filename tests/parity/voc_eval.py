"""A standard VOC evaluator: one class at a time, argmax over the image's boxes.

Written for these tests in the usual style of the field, and vectorized differently from the core
and the oracle.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.tables.detection import Detections, GroundTruth

Floats = NDArray[np.float64]


def voc_eval(
    truth: GroundTruth,
    detections: Detections,
    label: int,
    *,
    iou: float = 0.5,
    eleven_points: bool = False,
    pixel: float = 1.0,
    strict: bool = True,
    use_difficult: bool = True,
) -> tuple[Floats, Floats, float]:
    """Return recall and precision along the ranking, and the AP, of one class."""
    objects: dict[int, dict[str, Any]] = {}
    positives = 0
    for image in range(len(truth.images)):
        rows = np.flatnonzero((truth.label == label) & (truth.image == image))
        difficult = truth.difficult[rows] & use_difficult
        objects[image] = {
            "boxes": truth.corners[rows],
            "difficult": difficult,
            "taken": np.zeros(len(rows), bool),
        }
        positives += int(np.sum(~difficult))
    mine = np.flatnonzero(detections.label == label)
    mine = mine[np.argsort(-detections.score[mine], kind="stable")]
    true, false = np.zeros(len(mine)), np.zeros(len(mine))
    for rank, row in enumerate(mine):
        here = objects[int(detections.image[row])]
        overlaps = _overlaps(detections.corners[row], here["boxes"], pixel)
        best = int(np.argmax(overlaps)) if len(overlaps) else -1
        enough = best >= 0 and (overlaps[best] > iou if strict else overlaps[best] >= iou)
        if not enough:
            false[rank] = 1
        elif not here["difficult"][best]:
            if here["taken"][best]:
                false[rank] = 1
            else:
                true[rank] = 1
                here["taken"][best] = True
    true_positives, wrong = np.cumsum(true), np.cumsum(false)
    if positives == 0:
        return true_positives, true_positives, float("nan")
    recall = true_positives / positives
    precision = true_positives / np.maximum(true_positives + wrong, np.finfo(np.float64).eps)
    return recall, precision, _average(recall, precision, eleven_points)


def _overlaps(box: Floats, others: Floats, pixel: float) -> Floats:
    low = np.maximum(others[:, :2], box[:2])
    high = np.minimum(others[:, 2:], box[2:])
    sides = np.maximum(high - low + pixel, 0.0)
    shared = sides[:, 0] * sides[:, 1]
    own = (box[2] - box[0] + pixel) * (box[3] - box[1] + pixel)
    theirs = (others[:, 2] - others[:, 0] + pixel) * (others[:, 3] - others[:, 1] + pixel)
    union = own + theirs - shared
    result: Floats = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
    return result


def _average(recall: Floats, precision: Floats, eleven_points: bool) -> float:
    if eleven_points:
        levels = np.arange(0.0, 1.1, 0.1)
        reached = [precision[recall >= level] for level in levels]
        return sum(float(part.max()) if part.size else 0.0 for part in reached) / 11
    steps = np.concatenate(([0.0], recall, [1.0]))
    best = np.concatenate(([0.0], precision, [0.0]))
    best = np.maximum.accumulate(best[::-1])[::-1]
    moved = np.flatnonzero(steps[1:] != steps[:-1])
    return float(np.sum((steps[moved + 1] - steps[moved]) * best[moved + 1]))
