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
from detap.core.arrays import Boxes, Pairs
from detap.core.matching import group_pairs
from detap.core.overlap import overlaps_of

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Integers = NDArray[np.int32]

_BONUS = 1e-12
"""Weight of a detection that is no false positive: of a thousand, below 1e-9, within which totals
of IoU are equal."""

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

    def reaching(self, threshold: float, *, strict: bool) -> "Candidates":
        """Return the pairs that reach a threshold."""
        return self.select(self.iou > threshold if strict else self.iou >= threshold)


def candidates(
    boxes: tuple[Boxes, Boxes], crowd: Flags | bool, pairs: Pairs | None, *, inclusive_pixels: bool
) -> Candidates:
    """Return all pairs of an image and class that overlap; by ground truth, then detection."""
    start, truth = group_pairs(*boxes) if pairs is None else pairs[:2]
    detection = np.repeat(np.arange(len(start) - 1, dtype=np.int32), np.diff(start))
    if pairs is not None:
        parts = [Candidates(detection, truth, pairs.similarity)]
    else:
        parts = []
        for begin in range(0, max(len(truth), 1), _CHUNK):
            rows = slice(begin, begin + _CHUNK)
            dt, gt = detection[rows], truth[rows]
            iou = overlaps_of(boxes, dt, gt, inclusive_pixels, crowd=crowd, paired=True)
            parts.append(Candidates(dt, gt, iou))
    parts = [part.select(part.iou > 0) for part in parts]
    overlapping = Candidates(*map(np.concatenate, zip(*parts, strict=True)))
    return overlapping.select(np.argsort(overlapping.truth, kind="stable"))


def assign(
    pairs: Candidates,
    *,
    counted: Flags,  # (G,) a detection can match it as a true positive
    repeatable: Flags,  # (G,) any number of detections can match it; one each of the other ignored
    never_false: Flags,  # (N,) a detection is no false positive, matched or not
    threshold: float,
    strict: bool,  # the IoU must be above the threshold
) -> tuple[Integers, Flags]:
    """Return the counted ground truth of each detection, or -1, and the ignored detections."""
    pairs = pairs.reaching(threshold, strict=strict)
    of_repeatable = repeatable[pairs.truth]
    never_false = never_false.copy()
    never_false[pairs.detection[of_repeatable]] = True
    pairs = pairs.select(~of_repeatable)
    truth = np.empty(len(never_false) + len(counted), np.int32)
    start = np.searchsorted(pairs.truth, np.arange(len(counted) + 1))
    bonus = np.where(never_false, 0.0, _BONUS)
    _assignment.assign(start, pairs.detection, pairs.iou, counted.view(np.uint8), bonus, truth)
    truth = truth[: len(never_false)]
    is_true = np.append(counted, False)[truth]  # the last for -1
    ignored: Flags = (never_false | (truth >= 0)) & ~is_true
    return np.where(is_true, truth, np.int32(-1)), ignored
