"""The nearest ground truths of detections in their images, of their own class and of others.

Matching looks at a detection's own class alone. What is asked after it (what a false positive
stands on, which class a confused detection took for another) needs all of an image's ground truths.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core import _nearest
from detap.core.matching import Boxes
from detap.core.threads import share, thread_count

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Flags = NDArray[np.bool_]

_PIECE = 8192


class Nearest(NamedTuple):
    """The ground truths of largest overlap with each of n detections; -1 and 0 where none overlaps.

    Of several with equal overlap it is the first in file order.

    Attributes
    ----------
    own, own_overlap : (n,) int32 and (n,) float64
        Of the detection's class.
    taken, taken_overlap : (n,) int32 and (n,) float64
        Of its class, among those that a detection has taken.
    other, other_overlap : (n,) int32 and (n,) float64
        Of another class.
    """

    own: Integers
    taken: Integers
    other: Integers
    own_overlap: Floats
    taken_overlap: Floats
    other_overlap: Floats


class Surroundings:
    """Ground truths laid out image by image, to be asked which is nearest.

    Parameters
    ----------
    truths : Boxes
        G rows, in file order.
    images : int
        How many there are.
    among : (G,) bool
        Which ground truths there are to be found.
    taken : (G,) bool, optional
        Which of these a detection has taken.
    absorbing : bool
        Whether overlap is the intersection over the detection's own area.
    pixel_edge : bool
        As for :func:`detap.core.overlap.overlaps`.
    """

    def __init__(
        self,
        truths: Boxes,
        images: int,
        among: Flags,
        *,
        taken: Flags | None = None,
        absorbing: bool = False,
        pixel_edge: bool = False,
    ) -> None:
        rows = np.flatnonzero(among)
        rows = rows[np.argsort(truths.image[rows], kind="stable")]
        self.order = rows.astype(np.int32)
        start = np.searchsorted(truths.image[rows], np.arange(images + 1))
        flags = np.zeros(len(rows), np.bool_) if taken is None else taken[rows]
        self._ground = _nearest.Ground(
            start=start.astype(np.int32),
            order=self.order,
            label=truths.label[rows],
            corners=np.ascontiguousarray(truths.corners[rows]),
            area=truths.overlap_area[rows],
            absorbing=np.full(len(rows), absorbing, np.uint8),
            taken=flags.view(np.uint8),
            edge=1.0 if pixel_edge else 0.0,
        )

    def nearest(self, detections: Boxes, rows: Integers, *, threads: int | None = None) -> Nearest:
        """Return the nearest ground truths of some detections.

        Parameters
        ----------
        detections : Boxes
            N rows.
        rows : (n,) int32
            Which of these.
        threads : int, optional
            The result does not depend on it.
        """
        truth = np.full((3, len(rows)), -1, np.int32)
        value = np.zeros((3, len(rows)))
        # Threads share the iterator: each piece is handed out once.
        pieces = iter(range(0, len(rows), _PIECE))

        def work() -> None:
            for begin in pieces:
                end = min(begin + _PIECE, len(rows))
                self._ground.fill(rows, *_columns(detections), begin, end, truth, value)

        share(work, threads or thread_count(len(rows)))
        return Nearest(*truth, *value)

    def claims(
        self,
        detections: Boxes,
        rows: Integers,
        free: Flags,
        threshold: float,
        *,
        strict: bool = False,
        last_of_equal: bool = False,
        others_only: bool = False,
    ) -> Integers:
        """Let detections take, one after the other, the nearest ground truth that is still free.

        Parameters
        ----------
        detections : Boxes
            N rows.
        rows : (n,) int32
            Which of these, in the order in which they choose.
        free : (G,) bool
            Which ground truths may be taken at first.
        threshold : float
            The overlap that is needed.
        strict : bool
            Whether it must be exceeded.
        last_of_equal : bool
            Whether of several with equal overlap the last in file order is taken, not the first.
        others_only : bool
            Whether a ground truth of the detection's own class cannot be taken.

        Returns
        -------
        (n,) int32
            The ground truth taken, or -1.
        """
        truth = np.full(len(rows), -1, np.int32)
        left = free[self.order].view(np.uint8)
        self._ground.claim(
            rows, *_columns(detections), threshold, strict, last_of_equal, others_only, left, truth
        )
        return truth


def _columns(boxes: Boxes) -> tuple[Integers, Integers, Floats, Floats]:
    return boxes.image, boxes.label, boxes.corners, boxes.overlap_area
