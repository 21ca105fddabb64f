"""Boxes, and the base class of other shapes."""

from collections.abc import Iterator

import numpy as np

from detap.core.matching import Boxes, Pairs
from detap.core.overlap import pixel_areas
from detap.errors import Note, UsageError
from detap.protocols import Protocol
from detap.tables.detection import Detections, Flags, Floats, GroundTruth


class Shapes:
    """Shapes of two tables, their areas and IoUs; this class compares boxes.

    Parameters
    ----------
    ground_truth, detections : GroundTruth and Detections
        G and N rows.
    protocol : Protocol
    threads : int or None
        The result does not depend on it.
    """

    def __init__(
        self,
        ground_truth: GroundTruth,
        detections: Detections,
        protocol: Protocol,
        threads: int | None,
    ) -> None:
        self.ground_truth, self.detections = ground_truth, detections
        self.protocol, self.threads = protocol, threads

    def areas(self) -> tuple[Floats, Floats]:
        """Return the areas of the N detections and G ground truths, in square pixels."""
        tables = self.detections, self.ground_truth
        detections, ground_truths = (
            pixel_areas(table.corners) if self.protocol.inclusive_pixels else table.box_area
            for table in tables
        )
        return detections, ground_truths

    def range_areas(self, areas: Floats) -> Floats:
        """Return the areas (N,) that decide the area ranges of unmatched detections.

        Parameters
        ----------
        areas : (N,) float64
            The areas of :meth:`areas`, used unless the detections have an `area`.
        """
        area = self.detections.area
        return areas if area is None or self.protocol.inclusive_pixels else area

    def pairs(self, boxes: tuple[Boxes, Boxes], crowd: Flags, lowest: float) -> Pairs | None:
        """Return the IoUs of pairs of one image and class; None for boxes, left to the core.

        Parameters
        ----------
        boxes : pair of Boxes
            The columns of the detections and of the ground truths.
        crowd : (G,) bool
        lowest : float
            Smaller IoUs, and IoUs of 0, may be omitted.
        """
        del boxes, crowd, lowest
        return None

    def box_area_notes(self, shapes: Floats, shape_name: str, value: str) -> Iterator[Note]:
        """Note detections with a box in another area range than their shape.

        Parameters
        ----------
        shapes : (N,) float64
            The areas of the shapes.
        shape_name, value : str
            The shape's name, and the value of `detection_area` that uses it.
        """
        areas, ranges = self.range_areas(self.areas()[0]), self.protocol.area_ranges
        moved = np.zeros(len(areas), np.bool_)
        for area_range in ranges:
            within = [
                (column >= area_range.low) & (column <= area_range.high)
                for column in (areas, shapes)
            ]
            moved |= within[0] != within[1]
        count = int(np.count_nonzero(moved))
        if count and len(ranges) > 1:
            yield Note(
                "detection-area-of-box",
                f"detections have a bbox in another area range than their {shape_name}; the bbox "
                "decides the range of unmatched detections, as in pycocotools; use "
                f"--detection-area {value} for the area of the {shape_name}",
                count,
                severity="info",
            )

    def notes(self) -> Iterator[Note]:
        """Yield notes on the shapes."""
        tables = self.ground_truth, self.detections
        count = sum(len(table) for table in tables if table.polygons is not None)
        if count:
            hint = (
                "--iou-type polygon" if self.protocol.matching == "by-score" else "--protocol dota"
            )
            message = (
                f"quadrilaterals are compared by their bounding boxes; use {hint} for their IoU"
            )
            yield Note("polygons-as-boxes", message, count)


def missing_shapes(table: GroundTruth | Detections, name: str) -> UsageError:
    """Return the error of a table without the masks or keypoints that a protocol compares."""
    is_truth = isinstance(table, GroundTruth)
    read = "read_ground_truth" if is_truth else "read_detections"
    build = f"{type(table).__name__}.from_arrays"
    return UsageError(
        f"no {name} in the {table._title}; pass {name}=True to {read} or {name}= to {build}"
    )
