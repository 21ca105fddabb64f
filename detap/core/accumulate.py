"""Accumulate match results to counts, precision and recall.

Axes: T thresholds, R recall levels, K classes, A area ranges, M max dets. Undefined is NaN.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core import _matching
from detap.core.match_table import MatchTable
from detap.core.params import MatchParams
from detap.core.threads import run_threads, thread_count

Floats = NDArray[np.float64]


class Scores(NamedTuple):
    """Accumulated counts, precision and recall."""

    precision: Floats  # (M, A, T, R, K) at each level, in the order of pycocotools' sums
    average: Floats  # (T, K, A) average precision at the largest max dets
    recall: Floats  # (T, K, A, M) final recall
    positives: NDArray[np.int64]  # (A, K) counted ground truths
    counts: NDArray[np.int64]
    """(7, K), at the first threshold and area range and the largest max dets: counted ground
    truths, ignored ground truths, all detections, true positives, false positives, duplicates
    among those, and detections within max dets."""

    match_table: MatchTable | None = None  # if requested

    @classmethod
    def undefined(cls, params: MatchParams, classes: int, *, all_max_dets: bool) -> "Scores":
        """Allocate scores with all counts 0 and everything else undefined."""
        t, a, m = len(params.thresholds), len(params.area_ranges), len(params.max_dets)
        of_precision = m if all_max_dets else 1, a, t, len(params.levels), classes
        return cls(
            precision=np.full(of_precision, np.nan),
            average=np.full((t, classes, a), np.nan),
            recall=np.full((t, classes, a, m), np.nan),
            positives=np.zeros((a, classes), np.int64),
            counts=np.zeros((7, classes), np.int64),
        )

    @classmethod
    def concatenate(cls, parts: "Sequence[Scores]", order: Sequence[int]) -> "Scores":
        """Concatenate the classes of several parts and put them in order; no match tables."""
        return cls(
            np.concatenate([part.precision for part in parts], axis=4),
            np.concatenate([part.average for part in parts], axis=1),
            np.concatenate([part.recall for part in parts], axis=1),
            np.concatenate([part.positives for part in parts], axis=1),
            np.concatenate([part.counts for part in parts], axis=1),
        ).select_classes(order)

    def select_classes(self, classes: Sequence[int]) -> "Scores":
        """Select classes, in the order listed."""
        labels = list(classes)
        table = self.match_table
        return Scores(
            self.precision.take(labels, axis=4),
            self.average.take(labels, axis=1),
            self.recall.take(labels, axis=1),
            self.positives.take(labels, axis=1),
            self.counts.take(labels, axis=1),
            None if table is None else table.select_classes(labels),
        )

    def select_thresholds(self, thresholds: Sequence[int]) -> "Scores":
        """Select thresholds; the counts and the match table stay the same."""
        indices = list(thresholds)
        return self._replace(
            precision=self.precision.take(indices, axis=2),
            average=self.average[indices],
            recall=self.recall[indices],
        )


def accumulate(
    match_table: MatchTable,
    *,
    params: MatchParams | None = None,  # others with the same matches
    threads: int | None = None,
    all_max_dets: bool = False,  # precision at every max dets, not only the largest
) -> Scores:
    """Accumulate a match table, with the same bits as matching and accumulating at once."""
    truth_counts = np.bincount(match_table.truth_label, minlength=match_table.classes)
    scores = Scores.undefined(
        params or match_table.params, match_table.classes, all_max_dets=all_max_dets
    )
    scores.positives[:] = match_table.ground_truth_counts
    accumulator = _matching.TableAccumulator(
        params or match_table.params, scores, all_max_dets, match_table
    )
    n_threads = threads or thread_count(len(match_table))
    run_threads(accumulator.work, min(n_threads, max(match_table.classes, 1)))
    scores.counts[1] = truth_counts - scores.positives[0]
    scores.counts[2] = np.bincount(match_table.label, minlength=match_table.classes)
    return scores._replace(match_table=match_table if params is None else None)
