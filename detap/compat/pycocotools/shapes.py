"""Masks and keypoints of annotations, converted for the core."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from detap.compat.pycocotools import _runs
from detap.core.keypoints import GroundTruthKeypoints, keypoint_pairs
from detap.core.masks import MaskArrays, mask_pairs
from detap.core.matching import Boxes, Pairs

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Flags = NDArray[np.bool_]
Rows = NDArray[np.intp]
Record = dict[str, Any]

_LARGEST = 2.0**25
"""Bound of coordinates whose integer squares are exact in float64."""


class Masks(NamedTuple):
    """Masks, with a mask index per row.

    Attributes
    ----------
    arrays : MaskArrays
    number : (n,) int32
        Mask index of each row.
    """

    arrays: MaskArrays
    number: Integers

    @classmethod
    def of(cls, records: Sequence[Record], changed: Sequence[Record], images: Any) -> Self | None:
        """Return the masks of records, whose segmentations are replaced by RLE strings.

        None if irregular: runs do not fill the mask, or the form is unknown.

        Parameters
        ----------
        changed : sequence of dict
            Records that are also changed, but not returned.
        images : dict
            Image records by id, with height and width.
        """
        lists = _runs.of_annotations([*records, *changed], images)
        arrays = None if lists is None else lists.arrays()
        if arrays is None:
            return None
        return cls(arrays, np.arange(len(records), dtype=np.int32))

    def at(self, rows: Rows) -> "Masks":
        """Return the masks of these rows."""
        return Masks(self.arrays, self.number[rows])

    @property
    def sizes(self) -> Integers:
        """Height and width of each row's mask, (n, 2)."""
        sizes: Integers = self.arrays[0][self.number]
        return sizes


class MaskShapes(NamedTuple):
    """The masks of detections and of ground truths."""

    detections: Masks
    ground_truths: Masks

    @classmethod
    def of(
        cls, detections: Masks, ground_truths: Masks, image: tuple[Integers, Integers]
    ) -> Self | None:
        """Combine both; None if an image has masks of different sizes.

        Parameters
        ----------
        image : pair of (N,) and (G,) int32
            The image of each row.
        """
        images, sizes = (
            np.concatenate(image),
            np.concatenate([detections.sizes, ground_truths.sizes]),
        )
        _, first, inverse = np.unique(images, return_index=True, return_inverse=True)
        return cls(detections, ground_truths) if (sizes == sizes[first][inverse]).all() else None

    def pairs(
        self, detections: Boxes, ground_truths: Boxes, crowd: Flags, lowest: float = 0.0
    ) -> Pairs:
        """Compute the IoU of masks of the same image and class."""
        return mask_pairs(
            detections,
            ground_truths,
            masks=(self.detections.arrays, self.ground_truths.arrays),
            numbers=(self.detections.number, self.ground_truths.number),
            crowd=crowd,
            min_similarity=lowest,
        )


class Keypoints(NamedTuple):
    """Keypoints, and boxes of ground truths, used if no keypoint is labeled.

    Attributes
    ----------
    points : (n, K, 3) float64
        x, y, v.
    boxes : (n, 4) float64
        x, y, width, height; zeros of detections.
    """

    points: Floats
    boxes: Floats

    @classmethod
    def of(cls, records: Sequence[Record], count: int, *, boxed: bool) -> Self | None:
        """Return the keypoints of records; None if irregular or not `count` each."""
        points = _numbers([record["keypoints"] for record in records], 3 * count)
        boxes: Floats | None = np.zeros((len(records), 4))
        if boxed:
            boxes = _numbers([record["bbox"] for record in records], 4)
        if points is None or boxes is None:
            return None
        return cls(points.reshape(-1, count, 3), boxes)

    def at(self, rows: Rows) -> "Keypoints":
        """Return the keypoints of these rows."""
        return Keypoints(self.points[rows], self.boxes[rows])


def _numbers(rows: list[Any], count: int) -> Floats | None:
    """Return rows as float64; None for other lengths, types or very large values."""
    if not all(type(row) is list and len(row) == count for row in rows):
        return None
    numbers = np.array(rows).reshape(len(rows), count)
    if numbers.dtype.kind not in "fi" or not (np.abs(numbers) < _LARGEST).all():
        return None
    return numbers.astype(np.float64)


class KeypointShapes(NamedTuple):
    """The keypoints of detections and of ground truths.

    Attributes
    ----------
    sigmas : tuple of float
        One per keypoint.
    """

    detections: Keypoints
    ground_truths: Keypoints
    sigmas: tuple[float, ...]

    def pairs(
        self, detections: Boxes, ground_truths: Boxes, crowd: Flags, lowest: float = 0.0
    ) -> Pairs:
        """Compute the OKS of keypoints of the same image and class; crowds are as others."""
        del crowd
        return keypoint_pairs(
            detections,
            ground_truths,
            dt_keypoints=self.detections.points[:, :, :2],
            gt_keypoints=GroundTruthKeypoints(self.ground_truths.points, self.ground_truths.boxes),
            sigmas=self.sigmas,
            min_similarity=lowest,
        )


Shapes = MaskShapes | KeypointShapes
"""The shapes of N detections and G ground truths."""
