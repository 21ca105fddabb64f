"""Masks, compared pixel by pixel, and their boundaries, whichever have less in common."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from detap.core.masks import mask_pairs, pixel_counts
from detap.core.matching import Boxes, Pairs
from detap.errors import Note, UsageError
from detap.evaluation.overlaps.boxes import Shapes
from detap.tables.detection import Detections, Flags, Floats, GroundTruth, Integers
from detap.tables.masks import Masks, refuse_sizes, sizes_by_image


class MaskShapes(Shapes):
    """Masks; their boxes decide no overlap."""

    @cached_property
    def _pixels(self) -> Floats:
        """How many pixels the mask of each detection has, (N,) float64."""
        masks, number = _masks_of(self.detections)
        return pixel_counts(masks.arrays).astype(np.float64)[number]

    def range_areas(self, areas: Floats) -> Floats:
        """As :meth:`Shapes.range_areas`: of a mask's own row, or its pixels."""
        return (
            self._pixels if self.protocol.detection_area == "pixels" else super().range_areas(areas)
        )

    def pairs(self, boxes: tuple[Boxes, Boxes], crowd: Flags, lowest: float) -> Pairs:
        """As :meth:`Shapes.pairs`.

        Raises
        ------
        InputError
            Where masks of an image are of different sizes: those of files are not, others may be.
        """
        detection_masks, detection_areas = _masks_of(self.detections)
        truth_masks, truth = _masks_of(self.ground_truth)
        self._check_sizes((truth_masks.sizes[truth], detection_masks.sizes[detection_areas]))
        of_boundaries = self.protocol.iou_type == "boundary"
        return mask_pairs(
            *boxes,
            masks=(detection_masks.arrays, truth_masks.arrays),
            numbers=(detection_areas, truth),
            crowd=crowd,
            min_similarity=lowest,
            dilation_ratio=self.protocol.dilation_ratio if of_boundaries else 0.0,
            threads=self.threads,
        )

    def _check_sizes(self, sizes: tuple[Integers, Integers]) -> None:
        """Refuse masks of the G ground truths and N detections of another size than their image."""
        tables = self.ground_truth, self.detections
        image = np.concatenate([table.image for table in tables])
        all_sizes = np.concatenate(sizes)
        expected, mismatched = sizes_by_image(image, all_sizes, len(self.ground_truth.images))
        if mismatched.any():
            row = int(np.argmax(mismatched))
            table = tables[row >= len(self.ground_truth)]
            name = self.ground_truth.images[image[row]]
            refuse_sizes(table._title, name, all_sizes[row], expected[image[row]])

    def notes(self) -> Iterator[Note]:
        """Say where the area of a box, and not of its mask, decides the range of a detection."""
        if self.protocol.detection_area == "box":
            yield from self.box_area_notes(self._pixels, "mask's", "pixels")


def _masks_of(table: GroundTruth | Detections) -> tuple[Masks, Integers]:
    """Return the masks of a table, and which is whose."""
    if not len(table):
        return Masks.none(), table.label
    if table.masks is None or table.mask is None:
        raise UsageError(
            f"the {table._title} have no masks: read COCO files with masks=True, give masks= to "
            "from_arrays, or score boxes"
        )
    return table.masks, table.mask
