"""What is compared where it is no box: masks and keypoints, as the core takes them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

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
"""Up to here float64 holds the square of every whole number, which pycocotools takes as such."""


@dataclass(frozen=True, eq=False)
class Masks:
    """Masks, and which is whose.

    Attributes
    ----------
    arrays : MaskArrays
    number : (n,) int32
        The mask of each row.
    """

    arrays: MaskArrays
    number: Integers

    @classmethod
    def of(cls, records: Sequence[Record], aside: Sequence[Record], images: Any) -> Self | None:
        """Return the masks of records, which then hold them as run-length strings.

        None where pycocotools has to be followed step by step: where runs do not make up the mask,
        or a segmentation is of no usual form.

        Parameters
        ----------
        aside : sequence of dict
            Records that are changed likewise, and are no rows.
        images : dict
            Records of height and width by id.
        """
        lists = _runs.of_annotations([*records, *aside], images)
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


@dataclass(frozen=True, eq=False)
class MaskShapes:
    """The masks of detections and of ground truths."""

    claims: Masks
    truths: Masks

    @classmethod
    def of(cls, claims: Masks, truths: Masks, image: tuple[Integers, Integers]) -> Self | None:
        """Return both; None where those of an image are not of one size.

        Parameters
        ----------
        image : pair of (N,) and (G,) int32
            The image of each row.
        """
        images, sizes = np.concatenate(image), np.concatenate([claims.sizes, truths.sizes])
        _, first, place = np.unique(images, return_index=True, return_inverse=True)
        return cls(claims, truths) if (sizes == sizes[first][place]).all() else None

    def pairs(self, claims: Boxes, truths: Boxes, crowd: Flags, lowest: float = 0.0) -> Pairs:
        """Return the overlaps of masks of the same image and class."""
        return mask_pairs(
            claims,
            truths,
            masks=(self.claims.arrays, self.truths.arrays),
            numbers=(self.claims.number, self.truths.number),
            crowd=crowd,
            min_similarity=lowest,
        )


@dataclass(frozen=True, eq=False)
class Keypoints:
    """Keypoints, and of ground truths the boxes, which stand for them where none is labelled.

    Attributes
    ----------
    places : (n, K, 3) float64
        x, y, v.
    boxes : (n, 4) float64
        x, y, width, height; zeros of detections.
    """

    places: Floats
    boxes: Floats

    @classmethod
    def of(cls, records: Sequence[Record], count: int, *, boxed: bool) -> Self | None:
        """Return the keypoints of records; None where they are unusual, or not so many in each."""
        places = _numbers([record["keypoints"] for record in records], 3 * count)
        boxes: Floats | None = np.zeros((len(records), 4))
        if boxed:
            boxes = _numbers([record["bbox"] for record in records], 4)
        if places is None or boxes is None:
            return None
        return cls(places.reshape(-1, count, 3), boxes)

    def at(self, rows: Rows) -> "Keypoints":
        """Return the keypoints of these rows."""
        return Keypoints(self.places[rows], self.boxes[rows])


def _numbers(rows: list[Any], count: int) -> Floats | None:
    """Return rows of so many numbers; None where one is none, or so large that it is no pixel."""
    if not all(type(row) is list and len(row) == count for row in rows):
        return None
    numbers = np.array(rows).reshape(len(rows), count)
    if numbers.dtype.kind not in "fi" or not (np.abs(numbers) < _LARGEST).all():
        return None
    return numbers.astype(np.float64)


@dataclass(frozen=True, eq=False)
class KeypointShapes:
    """The keypoints of detections and of ground truths.

    Attributes
    ----------
    sigmas : tuple of float
        One of each keypoint.
    """

    claims: Keypoints
    truths: Keypoints
    sigmas: tuple[float, ...]

    def pairs(self, claims: Boxes, truths: Boxes, crowd: Flags, lowest: float = 0.0) -> Pairs:
        """Return how alike those of the same image and class lie; none absorbs another way."""
        del crowd
        return keypoint_pairs(
            claims,
            truths,
            dt_keypoints=self.claims.places[:, :, :2],
            gt_keypoints=GroundTruthKeypoints(self.truths.places, self.truths.boxes),
            sigmas=self.sigmas,
            min_similarity=lowest,
        )


Shapes = MaskShapes | KeypointShapes
"""The shapes of N detections and G ground truths."""
