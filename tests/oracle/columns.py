"""Columns of boxes and scores, processed row by row."""

from collections.abc import Sequence

Corners = Sequence[float]
"""x1, y1, x2, y2"""


def beyond_image(
    boxes: Sequence[Corners], sizes: Sequence[tuple[float, float]], margin: float
) -> tuple[int, int]:
    """Return the number of boxes that extend beyond their image, and of those that look like xyxy.

    The latter would lie inside the image if x, y, width and height were two corners.
    """
    beyond = swapped = 0
    for (x1, y1, x2, y2), (width, height) in zip(boxes, sizes, strict=True):
        if x1 <= -margin or y1 <= -margin or x2 >= width + margin or y2 >= height + margin:
            beyond += 1
            w, h = x2 - x1, y2 - y1
            swapped += w >= x1 and h >= y1 and w < width + margin and h < height + margin
    return beyond, swapped


def detected_classes(
    truths: Sequence[tuple[int, int, Corners]],
    detections: Sequence[tuple[int, int, Corners]],
    threshold: float,
) -> list[tuple[int, int]]:
    """Return the classes of each detected ground truth and of its detection.

    The detection is the first with the largest IoU, or any of the same class. Rows are image, class
    and box.
    """
    pairs = []
    for image, label, box in truths:
        near = [
            (overlap, other)
            for on, other, corners in detections
            if on == image and (overlap := box_iou(corners, box)) >= threshold
        ]
        if any(other == label for _, other in near):
            pairs.append((label, label))
        elif near:
            pairs.append((label, max(near, key=lambda pair: pair[0])[1]))
    return pairs


def box_iou(one: Corners, other: Corners) -> float:
    """Return the intersection over union of two boxes."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    if width <= 0 or height <= 0:
        return 0.0
    areas = [(x2 - x1) * (y2 - y1) for x1, y1, x2, y2 in (one, other)]
    return width * height / (sum(areas) - width * height)


def corners_and_area(box: Sequence[float], *, corners: bool) -> tuple[list[float], float]:
    """Return x1, y1, x2, y2 and the area of a box given as xyxy or xywh."""
    x, y, c, d = box
    if corners:
        return [x, y, c, d], (c - x) * (d - y)
    return [x, y, x + c, y + d], c * d
