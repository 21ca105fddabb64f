"""Intersection over union of two boxes."""

from typing import NamedTuple

from detap.protocols import Protocol
from detap.tables.detection import Detections, GroundTruth


class Box(NamedTuple):
    """A box by its corners, with the area computed from the file's box format."""

    x1: float
    y1: float
    x2: float
    y2: float
    area: float


def boxes(table: GroundTruth | Detections) -> list[Box]:
    """Return the boxes of a table."""
    return [
        Box(x1, y1, x2, y2, area)
        for (x1, y1, x2, y2), area in zip(
            table.corners.tolist(), table.box_area.tolist(), strict=True
        )
    ]


def overlap(detection: Box, truth: Box, protocol: Protocol, *, crowd: bool) -> float:
    """Return intersection over union, or over the detection's area for a crowd."""
    edge = 1.0 if protocol.inclusive_pixels else 0.0
    width = min(detection.x2, truth.x2) - max(detection.x1, truth.x1) + edge
    height = min(detection.y2, truth.y2) - max(detection.y1, truth.y1) + edge
    if width <= 0 or height <= 0:
        return 0.0
    intersection = width * height
    own = area(detection, protocol)
    if crowd:
        return intersection / own
    return intersection / (own + area(truth, protocol) - intersection)


def area(box: Box, protocol: Protocol) -> float:
    """Return the area of a box as the protocol measures it."""
    if protocol.inclusive_pixels:
        return (box.x2 - box.x1 + 1) * (box.y2 - box.y1 + 1)
    return box.area
