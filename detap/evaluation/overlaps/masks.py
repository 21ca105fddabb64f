"""Masks and their boundaries, compared by pixels."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from detap.core.arrays import Boxes, Pairs
from detap.core.masks import mask_pairs, pixel_counts
from detap.errors import Note
from detap.evaluation.overlaps.boxes import Shapes, missing_shapes
from detap.tables.detection import Detections, Flags, Floats, GroundTruth, Integers
from detap.tables.masks import Masks, check_sizes


class MaskShapes(Shapes):
    """Masks, compared without their boxes."""

    @cached_property
    def _pixels(self) -> Floats:
        """The number of pixels of each detection's mask, (N,) float64."""
        masks, mask = _masks_of(self.detections)
        return pixel_counts(masks.arrays).astype(np.float64)[mask]

    def range_areas(self, areas: Floats) -> Floats:
        """Return the areas of :meth:`Shapes.range_areas`, or the pixel counts."""
        return (
            self._pixels if self.protocol.detection_area == "pixels" else super().range_areas(areas)
        )

    def pairs(self, boxes: tuple[Boxes, Boxes], crowd: Flags, lowest: float) -> Pairs:
        """Return the IoUs of masks or boundaries, see :meth:`Shapes.pairs`."""
        detection_masks, dt_mask = _masks_of(self.detections)
        truth_masks, gt_mask = _masks_of(self.ground_truth)
        truth, detections = self.ground_truth, self.detections
        check_sizes(
            truth.images,
            (truth.title, truth.image, truth_masks.sizes[gt_mask]),
            (detections.title, detections.image, detection_masks.sizes[dt_mask]),
        )
        of_boundaries = self.protocol.iou_type == "boundary"
        return mask_pairs(
            *boxes,
            masks=(detection_masks.arrays, truth_masks.arrays),
            numbers=(dt_mask, gt_mask),
            crowd=crowd,
            min_similarity=lowest,
            dilation_ratio=self.protocol.dilation_ratio if of_boundaries else 0.0,
            threads=self.threads,
        )

    def notes(self) -> Iterator[Note]:
        """Note detections with a box in another range than their mask."""
        if self.protocol.detection_area == "box":
            yield from self.box_area_notes(self._pixels, "mask", "pixels")


def _masks_of(table: GroundTruth | Detections) -> tuple[Masks, Integers]:
    """Return the masks of a table, and the mask index of each row."""
    if not len(table):
        return Masks.none(), table.label
    if table.masks is None or table.mask is None:
        raise missing_shapes(table, "masks")
    return table.masks, table.mask
