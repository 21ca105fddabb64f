"""The nearest ground truths of detections in their images, of their own class and of others.

Matching looks at a detection's own class alone. What is asked after it (what a false positive
stands on, which class a confused detection took for another) needs all of an image's ground truths.
"""

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core import _nearest
from detap.core.matching import Boxes, Pairs
from detap.core.threads import run_threads, thread_count

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Flags = NDArray[np.bool_]

CLASSIFICATION, LOCALISATION, BOTH, DUPLICATE, BACKGROUND = range(5)
"""What a false positive is wrong by; see :meth:`GroundTruthIndex.error_types`."""

_PIECE = 8192
_AT_ONCE = 1 << 16


class ErrorTypes(NamedTuple):
    """What some of N detections are wrong by.

    Attributes
    ----------
    kind : (N,) int8
        -1 of those that were not asked for.
    target : (N,) int32
        The ground truth that a localization or classification error aims at, or the one that a
        duplicate stands on; -1 of others.
    similarity : (N,) float64
        With the target, 0 where there is none.
    """

    kind: NDArray[np.int8]
    target: Integers
    similarity: Floats

    @classmethod
    def nothing(cls, count: int) -> "ErrorTypes":
        """Return what stands before any of so many detections is asked for."""
        return cls(np.full(count, -1, np.int8), np.full(count, -1, np.int32), np.zeros(count))


class Nearest(NamedTuple):
    """The ground truths of largest overlap with each of n detections; -1 and 0 where none overlaps.

    Of several with equal overlap it is the first in file order.

    Attributes
    ----------
    own, own_similarity : (n,) int32 and (n,) float64
        Of the detection's class.
    taken, taken_similarity : (n,) int32 and (n,) float64
        Of its class, among those that a detection has taken.
    other, other_similarity : (n,) int32 and (n,) float64
        Of another class.
    """

    own: Integers
    taken: Integers
    other: Integers
    own_similarity: Floats
    taken_similarity: Floats
    other_similarity: Floats


class GroundTruthIndex:
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
    inclusive_pixels : bool
        As for :func:`detap.core.overlap.overlaps`.
    """

    def __init__(
        self,
        truths: Boxes,
        images: int,
        among: Flags,
        *,
        taken: Flags | None = None,
        crowd: bool = False,
        inclusive_pixels: bool = False,
    ) -> None:
        rows = np.flatnonzero(among)
        rows = rows[np.argsort(truths.image[rows], kind="stable")]
        self.order = rows.astype(np.int32)
        start = np.searchsorted(truths.image[rows], np.arange(images + 1))
        flags = np.zeros(len(rows), np.bool_) if taken is None else taken[rows]
        self._ground = _nearest.ImageGroundTruths(
            start=start.astype(np.int32),
            order=self.order,
            label=truths.label[rows],
            corners=np.ascontiguousarray(truths.corners[rows]),
            area=truths.overlap_area[rows],
            crowd=np.full(len(rows), crowd, np.uint8),
            matched=flags.view(np.uint8),
            pixel_offset=1.0 if inclusive_pixels else 0.0,
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
        truth = np.empty((3, len(rows)), np.int32)
        value = np.empty((3, len(rows)))
        columns = _columns(detections)

        def fill(begin: int, end: int) -> None:
            self._ground.fill(rows, *columns, begin, end, truth, value)

        _by_pieces(fill, len(rows), threads)
        return Nearest(*truth, *value)

    def error_types(
        self,
        detections: Boxes,
        rows: Integers,
        *,
        near: float,
        threshold: float,
        strict: bool = False,
        threads: int | None = None,
    ) -> ErrorTypes:
        """Tell what false positives are wrong by: the first of these that holds.

        Localisation: the largest overlap with a ground truth of the class is from `near` to the
        threshold. Classification: that with one of another class reaches the threshold.
        Duplicate: that with one that is taken does. Background: none exceeds `near`. Both: else.

        Parameters
        ----------
        detections : Boxes
            N rows.
        rows : (n,) int32
            The false positives among these.
        near, threshold : float
        strict : bool
            Whether the threshold must be exceeded.
        threads : int, optional
            The result does not depend on it.
        """

        def reaches(values: Floats) -> Flags:
            return np.asarray(values > threshold if strict else values >= threshold)

        found = ErrorTypes.nothing(len(detections.image))
        for begin in range(0, len(rows), _AT_ONCE):
            some = rows[begin : begin + _AT_ONCE]
            here = self.nearest(detections, some, threads=threads)
            close = (here.own_similarity >= near) & (here.own_similarity <= threshold)
            nowhere = np.maximum(here.own_similarity, here.other_similarity) <= near
            found.kind[some] = np.where(nowhere, BACKGROUND, BOTH)
            for kind, holds, truths, overlaps in (  # the first rule comes last, and stands
                (DUPLICATE, reaches(here.taken_similarity), here.taken, here.taken_similarity),
                (CLASSIFICATION, reaches(here.other_similarity), here.other, here.other_similarity),
                (LOCALISATION, close, here.own, here.own_similarity),
            ):
                at = some[holds]
                found.kind[at], found.target[at] = kind, truths[holds]
                found.similarity[at] = overlaps[holds]
        return found

    def match(
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
        self._ground.match(
            rows, *_columns(detections), threshold, strict, last_of_equal, others_only, left, truth
        )
        return truth


class PairedGroundTruthIndex(GroundTruthIndex):
    """The same where a kernel found what overlaps.

    Parameters
    ----------
    pairs : Pairs
        Of detections and ground truths of an image, whatever their classes; nothing absorbs.
    detections, truths : Boxes
        N and G rows.
    among, taken : (G,) bool
        As for :class:`GroundTruthIndex`.
    """

    def __init__(
        self, pairs: Pairs, detections: Boxes, truths: Boxes, among: Flags, *, taken: Flags
    ) -> None:
        claims = np.repeat(np.arange(len(detections.label)), np.diff(pairs.start))
        kept = among[pairs.truth]
        self._dt, self._gt = claims[kept], pairs.truth[kept]
        self._overlap = pairs.similarity[kept]
        self._own = detections.label[self._dt] == truths.label[self._gt]
        self._taken = taken[self._gt] & self._own
        self._start = np.searchsorted(self._dt, np.arange(len(detections.label) + 1))

    def nearest(self, detections: Boxes, rows: Integers, *, threads: int | None = None) -> Nearest:
        """As :meth:`GroundTruthIndex.nearest`."""
        del threads
        (own, own_overlap), (taken, taken_overlap), (other, other_overlap) = self._bests
        overlaps = own_overlap[rows], taken_overlap[rows], other_overlap[rows]
        return Nearest(own[rows], taken[rows], other[rows], *overlaps)

    @cached_property
    def _bests(self) -> tuple[tuple[Integers, Floats], ...]:
        """Of the class of each detection, of it and taken, and of others."""
        return tuple(self._best(kind) for kind in (self._own, self._taken, ~self._own))

    def _best(self, entries: Flags) -> tuple[Integers, Floats]:
        """Return the ground truth of largest overlap of each detection, and that overlap."""
        count = len(self._start) - 1
        truth, value = np.full(count, -1, np.int32), np.zeros(count)
        claim, overlap = self._dt[entries], self._overlap[entries]
        order = np.lexsort((-overlap, claim))  # stable: of equal ones the first stays first
        first = order[np.flatnonzero(np.diff(claim[order], prepend=-1))]
        truth[claim[first]], value[claim[first]] = self._gt[entries][first], overlap[first]
        return truth, value

    def match(
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
        """As :meth:`GroundTruthIndex.match`."""
        del detections
        fits = self._overlap > threshold if strict else self._overlap >= threshold
        if others_only:
            fits = fits & ~self._own
        left, found = free.copy(), np.full(len(rows), -1, np.int32)
        for place, row in enumerate(rows.tolist()):
            span = slice(self._start[row], self._start[row + 1])
            truths = self._gt[span][fits[span]]
            overlap = np.where(left[truths], self._overlap[span][fits[span]], 0.0)
            if overlap.any():
                best = np.flatnonzero(overlap == overlap.max())
                found[place] = truths[best[-1 if last_of_equal else 0]]
                left[found[place]] = False
        return found


def _by_pieces(work: Callable[[int, int], None], count: int, threads: int | None) -> None:
    # Threads share the iterator: each piece is handed out once.
    pieces = iter(range(0, count, _PIECE))

    def take() -> None:
        for begin in pieces:
            work(begin, min(begin + _PIECE, count))

    run_threads(take, threads or thread_count(count))


def _columns(boxes: Boxes) -> tuple[Integers, Integers, Floats, Floats]:
    return boxes.image, boxes.label, boxes.corners, boxes.overlap_area
