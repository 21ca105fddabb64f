"""What is compared where it is no box: the masks of annotations, as the core takes them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from detap.compat.pycocotools import _runs
from detap.core.masks import MaskArrays, mask_pairs
from detap.core.matching import Boxes, Pairs

Integers = NDArray[np.int32]
Flags = NDArray[np.bool_]
Rows = NDArray[np.intp]
Record = dict[str, Any]


class Shapes(Protocol):
    """The shapes of N detections and G ground truths."""

    def pairs(self, claims: Boxes, truths: Boxes, absorbing: Flags, lowest: float = 0.0) -> Pairs:
        """Return the overlaps of those of the same image and class, from one on."""


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

    def pairs(self, claims: Boxes, truths: Boxes, absorbing: Flags, lowest: float = 0.0) -> Pairs:
        """Return the overlaps of masks of the same image and class."""
        return mask_pairs(
            claims,
            truths,
            masks=(self.claims.arrays, self.truths.arrays),
            numbers=(self.claims.number, self.truths.number),
            absorbing=absorbing,
            lowest=lowest,
        )
