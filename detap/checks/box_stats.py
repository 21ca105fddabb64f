"""Classes of detected objects."""

import numpy as np

from detap.tables.detection import Floats, Integers


def found_classes(
    truths: Floats, truth_label: Integers, corners: Floats, label: Integers, min_iou: float
) -> list[tuple[int, int]]:
    """Return the classes of each detected ground truth of an image, and of its detection.

    That is the one with the largest IoU, or any of its own class.
    """
    if not len(truths) or not len(corners):
        return []
    low = np.maximum(truths[:, None, :2], corners[:, :2])
    width, height = np.moveaxis(np.minimum(truths[:, None, 2:], corners[:, 2:]) - low, 2, 0)
    common = width * height
    sizes = [boxes[:, 2:] - boxes[:, :2] for boxes in (truths, corners)]
    truth_area, area = (size[:, 0] * size[:, 1] for size in sizes)
    with np.errstate(divide="ignore", invalid="ignore"):
        iou = common / (truth_area[:, None] + area - common)
    iou[(width <= 0) | (height <= 0)] = 0
    iou[(iou >= min_iou) & (truth_label[:, None] == label)] = 2
    best = iou.argmax(axis=1)
    rows = np.flatnonzero(iou.max(axis=1) >= min_iou)
    return list(zip(truth_label[rows].tolist(), label[best[rows]].tolist(), strict=True))
