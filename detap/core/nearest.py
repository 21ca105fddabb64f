"""Nearest ground truths of detections in their images, for error analysis.

Matching compares a detection with ground truths of its class. Error types and confusions also need
those of other classes.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core import _nearest
from detap.core.arrays import Boxes, Pairs
from detap.core.threads import run_chunks, thread_count

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Flags = NDArray[np.bool_]

CLASSIFICATION, LOCALIZATION, BOTH, DUPLICATE, BACKGROUND = range(5)
"""Error types of false positives; see :meth:`GroundTruthIndex.error_types`."""

_CHUNK_SIZE = 8192
_BATCH_SIZE = 1 << 16


class Nearest(NamedTuple):
    """Ground truths most similar to each of n detections; -1 and 0 if nothing overlaps."""

    same_class: Integers  # (n,)
    matched: Integers  # (n,) of the same class, matched by a detection
    other_class: Integers  # (n,)
    same_class_similarity: Floats  # (n,)
    matched_similarity: Floats  # (n,) of the same class, matched by a detection
    other_class_similarity: Floats  # (n,)


class GroundTruthIndex:
    """Ground truths indexed by image."""

    def __init__(
        self,
        ground_truths: Boxes,
        images: int,
        counted: Flags,
        *,
        matched: Flags | None = None,
        crowd: bool = False,
        inclusive_pixels: bool = False,
    ) -> None:
        rows = np.flatnonzero(counted)
        rows = rows[np.argsort(ground_truths.image[rows], kind="stable")]
        self.order = rows.astype(np.int32)
        start = np.searchsorted(ground_truths.image[rows], np.arange(images + 1))
        flags = np.zeros(len(rows), np.bool_) if matched is None else matched[rows]
        self._kernel = _nearest.ImageGroundTruths(
            start=start.astype(np.int32),
            order=self.order,
            label=ground_truths.label[rows],
            corners=np.ascontiguousarray(ground_truths.corners[rows]),
            area=ground_truths.overlap_area[rows],
            crowd=np.full(len(rows), crowd, np.uint8),
            matched=flags.view(np.uint8),
            pixel_offset=1.0 if inclusive_pixels else 0.0,
        )

    def nearest(self, detections: Boxes, rows: Integers, *, threads: int | None = None) -> Nearest:
        """Return the nearest ground truths of some detections."""
        truth, value = np.empty((3, len(rows)), np.int32), np.empty((3, len(rows)))
        columns = _columns(detections)

        def fill(begin: int, end: int) -> None:
            self._kernel.fill(rows, *columns, begin, end, truth, value)

        run_chunks(fill, len(rows), _CHUNK_SIZE, threads or thread_count(len(rows)))
        return Nearest(*truth, *value)

    def error_types(
        self,
        detections: Boxes,
        rows: Integers,  # (n,) false positives
        *,
        background_iou: float,
        threshold: float,
        strict: bool = False,  # the threshold must be exceeded
        threads: int | None = None,
    ) -> tuple[NDArray[np.int8], Integers, Floats]:
        """Return error type, target and similarity of N detections; -1, -1 and 0 if not typed."""
        # Localization: the largest IoU with a ground truth of the class is between `background_iou`
        # and `threshold`. Classification: the IoU with one of another class reaches `threshold`.
        # Duplicate: the IoU with a matched one does. Background: no IoU exceeds `background_iou`.
        # Both: all others.

        def reaches(values: Floats) -> Flags:
            return np.asarray(values > threshold if strict else values >= threshold)

        count = len(detections.image)
        kind, target = np.full(count, -1, np.int8), np.full(count, -1, np.int32)
        similarity = np.zeros(count)
        for begin in range(0, len(rows), _BATCH_SIZE):
            batch = rows[begin : begin + _BATCH_SIZE]
            same, matched, other, same_iou, matched_iou, other_iou = self.nearest(
                detections, batch, threads=threads
            )
            is_background = np.maximum(same_iou, other_iou) <= background_iou
            kind[batch] = np.where(is_background, BACKGROUND, BOTH)
            is_near = (same_iou >= background_iou) & (same_iou <= threshold)
            # Later types overwrite earlier ones.
            for error_type, mask, truth, iou in (
                (DUPLICATE, reaches(matched_iou), matched, matched_iou),
                (CLASSIFICATION, reaches(other_iou), other, other_iou),
                (LOCALIZATION, is_near, same, same_iou),
            ):
                index = np.flatnonzero(mask)
                typed = batch[index]
                kind[typed], target[typed], similarity[typed] = error_type, truth[index], iou[index]
        return kind, target, similarity

    def match(
        self,
        detections: Boxes,
        rows: Integers,  # (n,) rows of detections, in matching order
        unmatched: Flags,  # (G,) ground truths that may be matched
        threshold: float,  # minimum IoU
        *,
        strict: bool,  # the threshold must be exceeded
        last_of_equal: bool,  # ties go to the last in file order, not the first
        other_classes_only: bool,  # ground truths of the detection's class cannot be matched
    ) -> Integers:
        """Match detections one by one to the nearest unmatched ground truth."""
        truth = np.full(len(rows), -1, np.int32)
        flags = unmatched[self.order].view(np.uint8)
        self._kernel.match(
            rows,
            *_columns(detections),
            threshold,
            strict,
            last_of_equal,
            other_classes_only,
            flags,
            truth,
        )
        return truth

    def other_class_candidates(
        self,
        detections: Boxes,
        rows: Integers,  # (n,) rows of detections
        threshold: float,
        *,
        strict: bool,
        last_of_equal: bool,
    ) -> tuple[Integers, Integers]:
        """Return pairs of index in `rows` and ground truth of another class that could match."""
        # By index, then falling similarity.
        index, ground_truth, similarity = self._other_class(detections, rows, threshold, strict)
        ties = np.arange(len(index))
        order = np.lexsort((-ties if last_of_equal else ties, -similarity, index))
        return index[order], ground_truth[order]

    def _other_class(
        self, detections: Boxes, rows: Integers, threshold: float, strict: bool
    ) -> tuple[Integers, Integers, Floats]:
        """Return row index, ground truth and similarity of the candidates, in file order."""
        columns, count = _columns(detections), 0
        for _ in range(2):  # count them, then write them
            pairs = np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count)
            count = self._kernel.find_other_class(rows, *columns, threshold, strict, *pairs)
        return pairs


class PairedGroundTruthIndex(GroundTruthIndex):
    """Ground truths indexed by precomputed similarities."""

    def __init__(
        self,
        pairs: Pairs,
        detections: Boxes,
        ground_truths: Boxes,
        counted: Flags,
        *,
        matched: Flags,
    ) -> None:
        dt = np.repeat(np.arange(len(detections.label)), np.diff(pairs.start))
        mask = counted[pairs.truth]
        self._dt, self._gt = dt[mask], pairs.truth[mask]
        self._similarity = pairs.similarity[mask]
        self._is_same_class = detections.label[self._dt] == ground_truths.label[self._gt]
        self._is_matched = matched[self._gt] & self._is_same_class
        self._start = np.searchsorted(self._dt, np.arange(len(detections.label) + 1))

    def nearest(self, detections: Boxes, rows: Integers, *, threads: int | None = None) -> Nearest:
        """Return the nearest ground truths; see :meth:`GroundTruthIndex.nearest`."""
        del threads
        ground_truths, similarities = zip(*self._nearest_of_all, strict=True)
        return Nearest(*(column[rows] for column in (*ground_truths, *similarities)))

    @cached_property
    def _nearest_of_all(self) -> tuple[tuple[Integers, Floats], ...]:
        """Nearest of all detections: same class, matched, other class."""
        masks = self._is_same_class, self._is_matched, ~self._is_same_class
        return tuple(self._nearest(mask) for mask in masks)

    def _nearest(self, mask: Flags) -> tuple[Integers, Floats]:
        """Return each detection's ground truth of largest similarity, and the latter."""
        count = len(self._start) - 1
        truth, value = np.full(count, -1, np.int32), np.zeros(count)
        dt, similarity = self._dt[mask], self._similarity[mask]
        order = np.lexsort((-similarity, dt))  # stable: ties stay in file order
        first = order[np.flatnonzero(np.diff(dt[order], prepend=-1))]
        truth[dt[first]], value[dt[first]] = self._gt[mask][first], similarity[first]
        return truth, value

    def match(
        self,
        detections: Boxes,
        rows: Integers,
        unmatched: Flags,
        threshold: float,
        *,
        strict: bool,
        last_of_equal: bool,
        other_classes_only: bool,
    ) -> Integers:
        """Match detections; see :meth:`GroundTruthIndex.match`."""
        del detections
        reached = self._similarity > threshold if strict else self._similarity >= threshold
        if other_classes_only:
            reached = reached & ~self._is_same_class
        available, result = unmatched.copy(), np.full(len(rows), -1, np.int32)
        for index, row in enumerate(rows.tolist()):
            pairs = slice(self._start[row], self._start[row + 1])
            ground_truths = self._gt[pairs][reached[pairs]]
            similarity = np.where(
                available[ground_truths], self._similarity[pairs][reached[pairs]], 0.0
            )
            if similarity.any():
                best = np.flatnonzero(similarity == similarity.max())
                result[index] = ground_truths[best[-1 if last_of_equal else 0]]
                available[result[index]] = False
        return result

    def _other_class(
        self, detections: Boxes, rows: Integers, threshold: float, strict: bool
    ) -> tuple[Integers, Integers, Floats]:
        """Return row index, ground truth and similarity of the candidates, in file order."""
        reached = self._similarity > threshold if strict else self._similarity >= threshold
        index_of = np.full(len(detections.label), -1, np.int32)
        index_of[rows] = np.arange(len(rows))
        index = index_of[self._dt]
        keep = np.flatnonzero(
            reached & ~self._is_same_class & (self._similarity > 0) & (index >= 0)
        )
        return index[keep], self._gt[keep], self._similarity[keep]


def _columns(boxes: Boxes) -> tuple[Integers, Integers, Floats, Floats]:
    return boxes.image, boxes.label, boxes.corners, boxes.overlap_area
