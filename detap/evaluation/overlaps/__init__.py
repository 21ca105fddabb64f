"""Registry of the shapes by `iou_type`."""

from importlib import import_module
from typing import TYPE_CHECKING

from detap.evaluation.overlaps.boxes import Shapes, refuse_polygons
from detap.protocols import Protocol
from detap.tables.detection import Detections, GroundTruth

if TYPE_CHECKING:
    from collections.abc import Callable

_SHAPES = {
    "segm": ("masks", "MaskShapes"),
    "boundary": ("masks", "MaskShapes"),
    "keypoints": ("keypoints", "KeypointShapes"),
    "polygon": ("polygons", "PolygonShapes"),
}
"""Module and class of each `iou_type` but bbox."""


def shapes_of(
    ground_truth: GroundTruth, detections: Detections, protocol: Protocol, threads: int | None
) -> Shapes:
    """Return the shapes of two tables that a protocol compares."""
    refuse_polygons(protocol, ground_truth, detections)
    shapes_class: Callable[..., Shapes] = Shapes
    if protocol.iou_type in _SHAPES:
        file, name = _SHAPES[protocol.iou_type]
        shapes_class = getattr(import_module(f"{__name__}.{file}"), name)
    return shapes_class(ground_truth, detections, protocol, threads)
