"""Assign detections without scores to ground truths, one to one.

Of all assignments the one with the most pairs is chosen, of these the one of greatest total IoU,
and of these the one with the fewest false positives, so that the order of the detections has no
effect on the counts. Axes: N detections, G ground truths, P pairs, T thresholds.

References
----------
Jonker and Volgenant, A Shortest Augmenting Path Algorithm for Dense and Sparse Linear Assignment
Problems, Computing 38 (1987).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core import _assignment
from detap.core.matching import Boxes, Pairs
from detap.core.overlap import paired_overlaps

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Integers = NDArray[np.int32]

_SAME_TOTAL = 1e-9
"""Total IoUs closer than this are equal."""

_CHUNK = 1 << 20
"""Pairs whose IoU is computed at once."""


class Candidates(NamedTuple):
    """Pairs of detections and ground truths of one image and class, with their IoU."""

    detection: Integers  # (P,)
    truth: Integers  # (P,)
    iou: Floats  # (P,) above 0

    def select(self, rows: NDArray[Any]) -> "Candidates":
        """Return some of the pairs."""
        return Candidates(*(column[rows] for column in self))

    def largest(self, count: int) -> Floats:
        """Return the largest IoU of each detection, (N,) float64."""
        largest = np.zeros(count)
        np.maximum.at(largest, self.detection, self.iou)
        return largest

    def reaching(self, threshold: float, *, strict: bool) -> Flags:
        """Return the pairs that reach a threshold, (P,) bool."""
        reached: Flags = self.iou > threshold if strict else self.iou >= threshold
        return reached


def candidates(
    boxes: tuple[Boxes, Boxes], crowd: Flags, pairs: Pairs | None, *, inclusive_pixels: bool
) -> Candidates:
    """Return all pairs of an image and class that overlap; by detection, then ground truth."""
    if pairs is not None:
        count = len(pairs.start) - 1
        detection = np.repeat(np.arange(count, dtype=np.int32), np.diff(pairs.start))
        overlapping = Candidates(detection, pairs.truth, pairs.similarity)
        return overlapping.select(overlapping.iou > 0)
    detections, ground_truths = boxes
    images = np.int64(max(detections.image.max(initial=0), ground_truths.image.max(initial=0)) + 1)
    key, truth_key = (one.label * images + one.image for one in boxes)
    order = np.argsort(truth_key, kind="stable").astype(np.int32)
    first, end = (np.searchsorted(truth_key[order], key, side) for side in ("left", "right"))
    parts = [Candidates(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0))]
    total = np.cumsum(end - first)
    begin = 0
    while begin < len(key):
        done = total[begin - 1] if begin else 0
        last = max(int(np.searchsorted(total, done + _CHUNK, "right")), begin + 1)
        counts = (end - first)[begin:last]
        detection = np.repeat(np.arange(begin, last, dtype=np.int32), counts)
        offset = np.arange(len(detection)) - np.repeat(np.cumsum(counts) - counts, counts)
        truth = order[np.repeat(first[begin:last], counts) + offset]
        iou = paired_overlaps(
            detections.corners[detection],
            ground_truths.corners[truth],
            detection_areas=detections.overlap_area[detection],
            truth_areas=ground_truths.overlap_area[truth],
            crowd=crowd[truth],
            inclusive_pixels=inclusive_pixels,
        )
        parts.append(Candidates(detection, truth, iou).select(iou > 0))
        begin = last
    return Candidates(*map(np.concatenate, zip(*parts, strict=True)))


class Assignment:
    """The pairs of N detections and G ground truths at any threshold.

    Parameters
    ----------
    pairs : Candidates
    counted : (G,) bool
        Ground truths that detections can match as true positives.
    repeatable : (G,) bool
        Ignored ground truths that any number of detections can match. The other ignored ones match
        one detection each.
    never_false : (N,) bool
        Detections that are no false positives, matched or not.
    largest : int
        The most pairs that an image can have.
    strict : bool
        True if the IoU must be above the threshold.
    """

    def __init__(
        self,
        pairs: Candidates,
        *,
        counted: Flags,
        repeatable: Flags,
        never_false: Flags,
        largest: int,
        strict: bool,
    ) -> None:
        self.strict, self.never_false = strict, never_false
        self._bonus = _SAME_TOTAL / (largest + 1)
        of_repeatable = repeatable[pairs.truth]
        self._repeatable, others = pairs.select(of_repeatable), pairs.select(~of_repeatable)
        self._pairs = others.select(np.argsort(others.truth, kind="stable"))
        self._counted = counted
        self._start = np.searchsorted(self._pairs.truth, np.arange(len(counted) + 1))

    def at(self, threshold: float) -> tuple[Integers, Flags]:
        """Return the counted ground truth of each detection, or -1, and the ignored detections."""
        reached = self._repeatable.reaching(threshold, strict=self.strict)
        never_false = self.never_false.copy()
        never_false[self._repeatable.detection[reached]] = True
        count, rows = len(never_false), len(self._counted)
        bonus = np.where(never_false, 0.0, self._bonus)
        truth = np.full(count + rows, -1, np.int32)
        _assignment.assign(
            self._start,
            self._pairs.detection,
            self._pairs.iou,
            self._counted.view(np.uint8),
            self._pairs.reaching(threshold, strict=self.strict).view(np.uint8),
            bonus,
            truth,
        )
        truth = truth[:count]
        ignored = never_false | (truth >= 0)
        assigned = np.flatnonzero(truth >= 0)
        is_true = self._counted[truth[assigned]]
        ignored[assigned[is_true]] = False
        truth[assigned[~is_true]] = -1
        return truth, ignored
