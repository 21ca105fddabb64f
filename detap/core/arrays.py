"""The arrays that matching takes and returns.

Axes: T thresholds, R recall levels, K classes, A area ranges, M max dets, N detections,
P precomputed pairs. Undefined is NaN.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core.interpolated import Interpolated
from detap.core.match_table import MatchTable
from detap.core.params import MatchParams

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]


class Boxes(NamedTuple):
    """Columns of boxes, all of one length."""

    image: Integers
    label: Integers
    corners: Floats  # (n, 4) x1, y1, x2, y2. Not used if pairs are given
    overlap_area: Floats  # area in the denominator of the IoU. Not used if pairs are given
    area: Floats  # area that selects the area range
    score: Floats  # empty for ground truths

    def select(self, rows: NDArray[Any]) -> "Boxes":
        """Return some rows."""
        return Boxes._make(column[rows] if len(column) else column for column in self)


class Pairs(NamedTuple):
    """Precomputed similarities of detections and ground truths, such as OKS or mask IoU."""

    start: NDArray[np.int64]  # (N + 1,)
    truth: Integers  # (P,)
    similarity: Floats  # (P,) for crowds, the value that the protocol defines

    def between(self, rows: NDArray[Any], gt: NDArray[Any]) -> Floats:
        """Return the similarity of given pairs; 0 if not listed."""
        if not len(self.truth):
            return np.zeros(len(rows))
        low, end = self.start[rows], self.start[rows + 1]
        last, high = np.maximum(end - 1, 0), end
        # Vectorized binary search in the pairs of each detection.
        while (low < high).any():
            middle = (low + high) // 2
            less = (low < high) & (self.truth[np.minimum(middle, last)] < gt)
            high = np.where(less, high, np.minimum(middle, high))
            low = np.where(less, middle + 1, low)
        listed = (low < end) & (self.truth[np.minimum(low, last)] == gt)
        return np.where(listed, self.similarity[np.minimum(low, last)], 0.0)


class Scores(NamedTuple):
    """Accumulated counts, precision and recall."""

    interpolated: Interpolated
    average: Floats  # (T, K, A) average precision at the largest max dets
    recall: Floats  # (T, K, A, M) final recall
    positives: NDArray[np.int64]  # (A, K) counted ground truths
    counts: NDArray[np.int64]
    """(7, K), at the first threshold and area range and the largest max dets: counted ground
    truths, ignored ground truths, all detections, true positives, false positives, duplicates
    among those, and detections within max dets."""

    match_table: MatchTable | None = None  # if requested

    @property
    def precision(self) -> Floats:
        """Precision at each level, (M, A, T, R, K) float64, in pycocotools' memory order."""
        return self.interpolated.dense().transpose(4, 3, 0, 1, 2)

    @classmethod
    def undefined(
        cls, params: MatchParams, truth_counts: NDArray[np.int64], *, all_max_dets: bool
    ) -> "Scores":
        """Allocate scores with all counts 0 and everything else undefined."""
        t, a, m = len(params.thresholds), len(params.area_ranges), len(params.max_dets)
        classes = len(truth_counts)
        positives = np.zeros((a, classes), np.int64)
        return cls(
            interpolated=Interpolated.undefined(
                params, truth_counts, positives, m if all_max_dets else 1
            ),
            average=np.full((t, classes, a), np.nan),
            recall=np.full((t, classes, a, m), np.nan),
            positives=positives,
            counts=np.zeros((7, classes), np.int64),
        )

    @classmethod
    def concatenate(cls, parts: "Sequence[Scores]", order: Sequence[int]) -> "Scores":
        """Concatenate the classes of several parts and put them in order; no match tables."""

        # The order in memory is that of one part: means depend on it.
        def joined(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
            return np.take(np.concatenate(columns, axis=1), order, axis=1)

        interpolated = Interpolated.concatenate([part.interpolated for part in parts])
        return cls(
            interpolated=interpolated.select_classes(order),
            average=joined([part.average for part in parts]),
            recall=joined([part.recall for part in parts]),
            positives=joined([part.positives for part in parts]),
            counts=joined([part.counts for part in parts]),
        )

    def select_classes(self, classes: Sequence[int]) -> "Scores":
        """Select classes, in the order listed."""
        labels = list(classes)
        return Scores(
            interpolated=self.interpolated.select_classes(labels),
            average=self.average[:, labels],
            recall=self.recall[:, labels],
            positives=self.positives[:, labels],
            counts=self.counts[:, labels],
            match_table=None
            if self.match_table is None
            else self.match_table.select_classes(labels),
        )

    def select_thresholds(self, thresholds: Sequence[int]) -> "Scores":
        """Select thresholds; the counts and the match table stay the same."""
        indices = list(thresholds)
        values = self.interpolated.values.take(indices, axis=2)
        return self._replace(
            interpolated=self.interpolated._replace(values=values),
            average=self.average[indices],
            recall=self.recall[indices],
        )
