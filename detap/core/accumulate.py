"""Accumulate match results to counts, precision and recall.

Axes: T thresholds, R recall levels, K classes, A area ranges, M max dets. Undefined is NaN.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core import _accumulate
from detap.core.interpolated import Interpolated
from detap.core.params import MatchParams
from detap.core.threads import max_rows_per_thread, run_threads, thread_count

if TYPE_CHECKING:
    from detap.core.match_table import MatchFlags, MatchTable, Ranking

Floats = NDArray[np.float64]

_CHUNKS_PER_THREAD = 4
"""Chunks of a ranking per thread, to balance the threads."""


class Scores(NamedTuple):
    """Accumulated counts, precision and recall.

    Attributes
    ----------
    interpolated : Interpolated
        Precision at recall levels, at the largest max dets or at all of them.
    average : (T, K, A) float64
        Average precision at the largest max dets.
    recall : (T, K, A, M) float64
        Final recall.
    positives : (A, K) int64
        Counted ground truths.
    counts : (7, K) int64
        At the first threshold and area range and the largest max dets: counted ground truths,
        ignored ground truths, all detections, true positives, false positives, duplicates among
        those, and detections within max dets.
    match_table : MatchTable or None
        If requested.
    """

    interpolated: Interpolated
    average: Floats
    recall: Floats
    positives: NDArray[np.int64]
    counts: NDArray[np.int64]
    match_table: "MatchTable | None" = None

    @property
    def precision(self) -> Floats:
        """Precision at each level, (M, A, T, R, K) float64; a new array each time.

        Its memory order is (T, R, K, A, M), as in pycocotools.
        """
        return self.interpolated.dense().transpose(4, 3, 0, 1, 2)

    @classmethod
    def undefined(
        cls, params: MatchParams, truth_counts: NDArray[np.int64], *, all_max_dets: bool
    ) -> "Scores":
        """Allocate scores with all counts 0 and everything else undefined.

        Parameters
        ----------
        params : MatchParams
        truth_counts : (K,) int64
            Ground truths of each class.
        all_max_dets : bool
            As for :func:`accumulate`.
        """
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


class Coded(NamedTuple):
    """Detections of K classes, each with a code: the index of its match results.

    Attributes
    ----------
    label : (N,) int32
        Ascending; ties rank in row order.
    score : (N,) float64
    code : (N,) uint32
        Columns of `match_flags`.
    match_flags : MatchFlags
    positives : (A, K) int64
        Counted ground truths.
    truth_counts : (K,) int64
        All ground truths.
    """

    label: NDArray[np.int32]
    score: Floats
    code: NDArray[np.uint32]
    match_flags: "MatchFlags"
    positives: NDArray[np.int64]
    truth_counts: NDArray[np.int64]


def accumulate(
    match_table: "MatchTable",
    *,
    params: MatchParams | None = None,
    threads: int | None = None,
    all_max_dets: bool = False,
) -> Scores:
    """Accumulate a match table, with the same bits as matching and accumulating at once.

    Parameters
    ----------
    match_table : MatchTable
    params : MatchParams, optional
        Other parameters with the same matches.
    threads : int, optional
        Does not change the result.
    all_max_dets : bool
        Compute precision at every max dets, not only the largest.
    """
    coded = _coded_table(match_table)
    scores = _accumulate_coded(
        coded, match_table.ranking, params or match_table.params, threads, all_max_dets
    )
    return scores._replace(match_table=match_table if params is None else None)


def _coded_table(match_table: "MatchTable") -> Coded:
    return Coded(
        match_table.label,
        match_table.score,
        np.zeros(0, np.uint32),
        match_table.match_flags,
        match_table.ground_truth_counts,
        np.bincount(match_table.truth_label, minlength=match_table.classes),
    )


def accumulate_class(
    match_table: "MatchTable",
    label: int,
    ranked: NDArray[np.int32],
    *,
    scores: Scores,
    params: MatchParams,
    threads: int,
    all_max_dets: bool,
) -> None:
    """Write the scores of one class, with its ranking split among the threads.

    Parameters
    ----------
    match_table : MatchTable
        Other classes may be missing.
    label : int
    ranked : (n,) int32
        All rows of the class by descending score.
    scores : Scores
        Of all classes.
    params, threads, all_max_dets
        As for :func:`accumulate`.
    """
    rows = ranked[match_table.within_max_dets[ranked]]
    class_scores = _accumulate_split(
        _coded_table(match_table),
        label,
        rows,
        params=params,
        threads=threads,
        all_max_dets=all_max_dets,
    )
    scores.set_classes(slice(label, label + 1), class_scores)


def _accumulate_split(
    coded: Coded,
    label: int,
    rows: NDArray[np.int32],
    *,
    params: MatchParams,
    threads: int,
    all_max_dets: bool,
) -> Scores:
    """Accumulate one class from its rows in descending score order."""
    from detap.core.match_table import Ranking  # noqa: PLC0415 - lazy import

    classes = slice(label, label + 1)
    scores = Scores.undefined(params, coded.truth_counts[classes], all_max_dets=all_max_dets)
    scores.positives[:] = coded.positives[:, classes]

    no_code = np.zeros(0, np.uint32)

    def count_chunk(rows_slice: slice) -> _accumulate.Chunk:
        chunk_rows = rows[rows_slice]
        # Ranked rows are scattered in memory: gather them column by column.
        match_flags = coded.match_flags.select(
            coded.code[chunk_rows] if len(coded.code) else chunk_rows
        )
        ranking = Ranking(
            np.array([0, len(chunk_rows)], np.int32), np.arange(len(chunk_rows), dtype=np.int32)
        )
        return _accumulate.Chunk(params, scores, all_max_dets, ranking, match_flags, no_code)

    ends = np.linspace(0, len(rows), _CHUNKS_PER_THREAD * threads + 1, dtype=np.int64).tolist()
    # Each ground truth is matched at most once.
    merged = _accumulate.Chunks(params, scores, all_max_dets, int(coded.truth_counts[label]))
    _merge_chunks(
        (partial(count_chunk, slice(*rows_slice)) for rows_slice in pairwise(ends)), merged, threads
    )
    scores.counts[1] = coded.truth_counts[classes] - scores.positives[0]
    scores.counts[2] = np.count_nonzero(coded.label == label)
    return scores


def _merge_chunks(
    chunks: Iterable[Callable[[], _accumulate.Chunk]],
    merged: _accumulate.Chunks,
    threads: int,
) -> None:
    """Count chunks of a ranking in threads, merge them in order and write the curves."""
    remaining, lock = enumerate(chunks), Lock()
    waiting: dict[int, _accumulate.Chunk] = {}
    next_index = 0

    def work() -> None:
        nonlocal next_index
        while True:
            with lock:
                index, load_chunk = next(remaining, (0, None))
            if load_chunk is None:
                return
            chunk = load_chunk()
            with lock:
                waiting[index] = chunk
                while next_index in waiting:
                    merged.append(waiting.pop(next_index))
                    next_index += 1

    run_threads(work, threads)
    merged.count()
    run_threads(merged.work, threads)


def _accumulate_coded(
    coded: Coded, ranking: "Ranking", params: MatchParams, threads: int | None, all_max_dets: bool
) -> Scores:
    classes = len(coded.truth_counts)
    scores = Scores.undefined(params, coded.truth_counts, all_max_dets=all_max_dets)
    scores.positives[:] = coded.positives
    n_threads = threads or thread_count(len(coded.label))
    large = np.diff(ranking.start) > max_rows_per_thread(len(ranking.rows), n_threads)
    labels = np.flatnonzero(~large).tolist()
    accumulator = _accumulate.TableAccumulator(
        params, scores, all_max_dets, ranking, coded.match_flags, coded.code, labels
    )
    run_threads(accumulator.work, min(n_threads, max(len(labels), 1)))
    scores.counts[1] = coded.truth_counts - scores.positives[0]
    scores.counts[2] = np.bincount(coded.label, minlength=classes)
    for label in np.flatnonzero(large).tolist():
        rows = ranking.of_class(label)
        class_scores = _accumulate_split(
            coded, label, rows, params=params, threads=n_threads, all_max_dets=all_max_dets
        )
        scores.set_classes(slice(label, label + 1), class_scores)
    return scores
