"""Quadrilaterals, such as rotated boxes."""

from collections.abc import Iterator

from detap.core.matching import Boxes, Pairs
from detap.core.polygons import box_polygons, polygon_areas, polygon_pairs
from detap.errors import Note, UsageError
from detap.evaluation.overlaps.boxes import Shapes
from detap.tables.detection import Flags, Floats
from detap.tables.notes import POLYGONS_BOUNDED


class PolygonShapes(Shapes):
    """Quadrilaterals, including plain boxes."""

    def _polygons(self) -> tuple[Floats, Floats]:
        """Return the polygons of detections (N, 8) and ground truths (G, 8).

        Raises
        ------
        UsageError
            If a table has boxes in place of polygons, or may have.
        """
        tables = self.detections, self.ground_truth
        if self.ground_truth.format == "coco" and self.ground_truth.polygons is None:
            raise UsageError(
                "polygon overlap compares quadrilaterals, and COCO files are read as boxes or masks"
                ": compare boxes (--iou-type bbox) or segmentations (--protocol coco-segm)"
            )
        for table in tables:
            for note in table.notes:
                if note.code == POLYGONS_BOUNDED:
                    raise UsageError(
                        f"{note.count} {note.message}, and polygon overlap compares quadrilaterals:"
                        " give four corners of each, as YOLO or DOTA files, or compare boxes "
                        "(--iou-type bbox)"
                    )
        detection_areas, truth = (
            box_polygons(table.corners) if table.polygons is None else table.polygons
            for table in tables
        )
        return detection_areas, truth

    def areas(self) -> tuple[Floats, Floats]:
        """Return the polygon areas, see :meth:`Shapes.areas`."""
        detection_areas, truth = map(polygon_areas, self._polygons())
        return detection_areas, truth

    def pairs(self, boxes: tuple[Boxes, Boxes], crowd: Flags, lowest: float) -> Pairs:
        """Return the IoUs of all overlapping pairs, see :meth:`Shapes.pairs`."""
        del lowest
        return polygon_pairs(*boxes, polygons=self._polygons(), crowd=crowd)

    def notes(self) -> Iterator[Note]:
        """Yield nothing: quadrilaterals need no note."""
        yield from ()
