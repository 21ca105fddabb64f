"""Quadrilaterals, such as rotated boxes."""

from functools import cached_property

from detap.core.arrays import Boxes, Pairs
from detap.core.polygons import box_polygons, polygon_areas, polygon_pairs
from detap.errors import UsageError
from detap.evaluation.overlaps.boxes import Shapes
from detap.tables.detection import Flags, Floats
from detap.tables.notes import ORIENTED_BOXES, POLYGONS_BOUNDED


class PolygonShapes(Shapes):
    """Quadrilaterals, including plain boxes."""

    def _polygons(self) -> tuple[Floats, Floats]:
        """Return the polygons of detections (N, 8) and ground truths (G, 8)."""
        tables = self.detections, self.ground_truth
        if self.ground_truth.format == "coco" and self.ground_truth.polygons is None:
            raise UsageError(
                "--iou-type polygon requires quadrilaterals, but COCO files are read as boxes or "
                "masks; use --iou-type bbox, or --protocol coco-segm for masks"
            )
        for table in tables:
            for note in table.notes:
                if note.code == ORIENTED_BOXES and self.detections.polygons is None:
                    raise UsageError(
                        "labels of four corners may be oriented boxes or polygons, and the "
                        "detections are boxes; use --iou-type bbox --shapes bbox to compare "
                        "bounding boxes, or detections of four corners"
                    )
                if note.code == POLYGONS_BOUNDED:
                    raise UsageError(
                        f"{note.count} {note.message}, but --iou-type polygon requires "
                        "quadrilaterals; use four corners per object (YOLO, DOTA) or "
                        "--iou-type bbox"
                    )
        detections, ground_truths = (
            box_polygons(table.corners) if table.polygons is None else table.polygons
            for table in tables
        )
        return detections, ground_truths

    @cached_property
    def areas(self) -> tuple[Floats, Floats]:
        """The polygon areas, see :attr:`Shapes.areas`."""
        detections, ground_truths = map(polygon_areas, self._polygons())
        return detections, ground_truths

    def pairs(self, boxes: tuple[Boxes, Boxes], crowd: Flags, lowest: float) -> Pairs:
        """Return the IoUs of all overlapping pairs, see :meth:`Shapes.pairs`."""
        del lowest
        return polygon_pairs(*boxes, polygons=self._polygons(), crowd=crowd)
