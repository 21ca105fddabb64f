"""The shapes that a protocol compares, by `iou_type`."""

from detap.evaluation.overlaps.boxes import Shapes, refuse_polygons
from detap.evaluation.overlaps.keypoints import KeypointShapes
from detap.evaluation.overlaps.masks import MaskShapes
from detap.evaluation.overlaps.polygons import PolygonShapes
from detap.protocols import Protocol
from detap.tables.detection import Detections, GroundTruth

_SHAPES: dict[str, type[Shapes]] = {
    "bbox": Shapes,
    "segm": MaskShapes,
    "boundary": MaskShapes,
    "keypoints": KeypointShapes,
    "polygon": PolygonShapes,
}


def shapes_of(
    ground_truth: GroundTruth, detections: Detections, protocol: Protocol, threads: int | None
) -> Shapes:
    """Return the shapes of two tables that a protocol compares."""
    refuse_polygons(protocol, ground_truth, detections)
    return _SHAPES[protocol.iou_type](ground_truth, detections, protocol, threads)
