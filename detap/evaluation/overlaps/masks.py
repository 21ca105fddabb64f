"""Masks and their boundaries, compared by pixels."""

from functools import cached_property

import numpy as np

from detap.core.arrays import Boxes, Pairs
from detap.core.masks import mask_pairs, pixel_counts
from detap.evaluation.overlaps.boxes import Shapes, missing_shapes
from detap.tables.detection import Detections, Flags, Floats, GroundTruth, Integers
from detap.tables.masks import Masks, check_sizes


class MaskShapes(Shapes):
    """Masks, compared without their boxes."""

    name, own_area = "mask", "pixels"

    @cached_property
    def own_areas(self) -> Floats:
        """The number of pixels of each detection's mask, (N,)."""
        masks, mask = _masks_of(self.detections)
        return pixel_counts(masks.arrays).astype(np.float64)[mask]

    def pairs(self, boxes: tuple[Boxes, Boxes], crowd: Flags, lowest: float) -> Pairs:
        """Return the IoUs of masks or boundaries, see :meth:`Shapes.pairs`."""
        truth, detections = self.ground_truth, self.detections
        (detection_masks, dt_mask), (truth_masks, gt_mask) = _masks_of(detections), _masks_of(truth)
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


def _masks_of(table: GroundTruth | Detections) -> tuple[Masks, Integers]:
    """Return the masks of a table, and the mask index of each row."""
    if not len(table):
        return Masks.none(), table.label
    if table.masks is None or table.mask is None:
        raise missing_shapes(table, "masks")
    return table.masks, table.mask
