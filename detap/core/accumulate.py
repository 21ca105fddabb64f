"""Accumulate match results to counts, precision and recall.

Axes: T thresholds, R recall levels, K classes, A area ranges, M max dets. Undefined is NaN.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core import _matching
from detap.core.interpolated import Interpolated
from detap.core.match_table import MatchTable
from detap.core.params import MatchParams
from detap.core.threads import run_threads, thread_count

Floats = NDArray[np.float64]


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

    def set_classes(self, classes: slice, scores: "Scores") -> None:
        """Write the scores of some classes."""
        self.interpolated.set_classes(classes, scores.interpolated)
        self.average[:, classes] = scores.average
        self.recall[:, classes] = scores.recall
        self.positives[:, classes] = scores.positives
        self.counts[:, classes] = scores.counts


def accumulate(
    match_table: MatchTable,
    *,
    params: MatchParams | None = None,  # others with the same matches
    threads: int | None = None,
    all_max_dets: bool = False,  # precision at every max dets, not only the largest
) -> Scores:
    """Accumulate a match table, with the same bits as matching and accumulating at once."""
    truth_counts = np.bincount(match_table.truth_label, minlength=match_table.classes)
    scores = Scores.undefined(params or match_table.params, truth_counts, all_max_dets=all_max_dets)
    scores.positives[:] = match_table.ground_truth_counts
    accumulator = _matching.TableAccumulator(
        params or match_table.params, scores, all_max_dets, match_table
    )
    n_threads = threads or thread_count(len(match_table))
    run_threads(accumulator.work, min(n_threads, max(match_table.classes, 1)))
    scores.counts[1] = truth_counts - scores.positives[0]
    scores.counts[2] = np.bincount(match_table.label, minlength=match_table.classes)
    return scores._replace(match_table=match_table if params is None else None)
