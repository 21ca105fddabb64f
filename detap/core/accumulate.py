"""From evidence to counts, precision and recall.

Axes: T thresholds, R recall levels, K classes, A area ranges, M max dets. Undefined is NaN.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core import _accumulate
from detap.core.interpolated import Interpolated
from detap.core.params import MatchParams
from detap.core.threads import fair_share, share, thread_count

if TYPE_CHECKING:  # a plain run keeps none
    from detap.core.match_table import MatchFlags, MatchTable, Ranking

Floats = NDArray[np.float64]

_PIECES = 4
"""Pieces of a ranking for each thread, so that none waits long for another."""


class Scores(NamedTuple):
    """What scoring gives.

    Attributes
    ----------
    interpolated : Interpolated
        Precision at recall levels; at the largest limit, unless all limits were asked for.
    average : (T, K, A) float64
        Average precision at the largest limit.
    recall : (T, K, A, M) float64
        Final recall.
    positives : (A, K) int64
        Ground truths that count.
    counts : (7, K) int64
        At the first threshold and area range and the largest limit: ground truths that count,
        neutral ones, all detections, true positives, false positives, duplicates among those,
        and detections within the limit.
    match_table : MatchTable or None
        What these come from, where it was asked for.
    """

    interpolated: Interpolated
    average: Floats
    recall: Floats
    positives: NDArray[np.int64]
    counts: NDArray[np.int64]
    match_table: "MatchTable | None" = None

    @property
    def precision(self) -> Floats:
        """The same at each level, (M, A, T, R, K) float64; made anew each time.

        It lies in memory as (T, R, K, A, M), the order in which it is handed over.
        """
        return self.interpolated.dense().transpose(4, 3, 0, 1, 2)

    @classmethod
    def undefined(
        cls, params: MatchParams, truths: NDArray[np.int64], *, all_max_dets: bool
    ) -> "Scores":
        """Return room for scores, where nothing is defined and all counts are 0.

        Parameters
        ----------
        params : Rules
        truths : (K,) int64
            How many ground truths each class has.
        all_max_dets : bool
            As for :func:`accumulate`.
        """
        t, a, m = len(params.thresholds), len(params.area_ranges), len(params.max_dets)
        classes = len(truths)
        positives = np.zeros((a, classes), np.int64)
        return cls(
            interpolated=Interpolated.undefined(
                params, truths, positives, m if all_max_dets else 1
            ),
            average=np.full((t, classes, a), np.nan),
            recall=np.full((t, classes, a, m), np.nan),
            positives=positives,
            counts=np.zeros((7, classes), np.int64),
        )

    def select_classes(self, classes: Sequence[int]) -> "Scores":
        """Return the scores of some classes, in the order listed."""
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

    def put(self, classes: slice, scores: "Scores") -> None:
        """Write the scores of some classes in their place."""
        self.interpolated.put(classes, scores.interpolated)
        self.average[:, classes] = scores.average
        self.recall[:, classes] = scores.recall
        self.positives[:, classes] = scores.positives
        self.counts[:, classes] = scores.counts


class Coded(NamedTuple):
    """Detections of K classes, each as a number into a table of what became of them.

    Attributes
    ----------
    label : (N,) int32
        Ascending; rows of a class stand as equal scores rank.
    score : (N,) float64
    code : (N,) uint32
        Columns of `match_flags`.
    match_flags : MatchFlags
    positives : (A, K) int64
        Ground truths that count.
    truths : (K,) int64
        All of them.
    """

    label: NDArray[np.int32]
    score: Floats
    code: NDArray[np.uint32]
    match_flags: "MatchFlags"
    positives: NDArray[np.int64]
    truths: NDArray[np.int64]


def accumulate(
    match_table: "MatchTable",
    *,
    params: MatchParams | None = None,
    threads: int | None = None,
    all_max_dets: bool = False,
) -> Scores:
    """Return the scores that evidence comes to, the very bits that matching and scoring give.

    Parameters
    ----------
    match_table : MatchTable
        Of one table, or concatenated.
    params : Rules, optional
        Others than it was made by, which match alike and make another number of a curve.
    threads : int, optional
        The result does not depend on it.
    all_max_dets : bool
        Whether precision is wanted at every detection limit, not only the largest.
    """
    coded = _coded(match_table)
    scores = _replayed(
        coded, match_table.ranking, params or match_table.params, threads, all_max_dets
    )
    return scores._replace(match_table=match_table if params is None else None)


def _coded(match_table: "MatchTable") -> Coded:
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
    """Write the scores of one class, which all threads go down, some of its ranking each.

    Parameters
    ----------
    match_table : MatchTable
        No other class need be there.
    label : int
    ranked : (n,) int32
        All rows of the class by falling score.
    scores : Scores
        Of all classes.
    params, threads, all_max_dets
        As for :func:`accumulate`.
    """
    rows = ranked[match_table.counted[ranked]]
    part = _by_ranks(
        _coded(match_table), label, rows, params=params, threads=threads, every=all_max_dets
    )
    scores.put(slice(label, label + 1), part)


def accumulate_coded(coded: Coded, params: MatchParams, *, threads: int | None = None) -> Scores:
    """Return the scores of detections whose outcomes are numbers; as :func:`accumulate`.

    Parameters
    ----------
    coded : Coded
    params : Rules
    threads : int, optional
        The result does not depend on it.
    """
    return _replayed(coded, _ranked(coded, params), params, threads, all_max_dets=False)


def accumulate_chunks(
    chunks: Iterable[Callable[[], Coded]],
    params: MatchParams,
    *,
    truths: NDArray[np.int64],
    most_hits: int,
    threads: int,
) -> Scores:
    """Return the scores of one class whose detections come by falling score, some at a time.

    Each stretch is made, ranked and gone down by one thread: false positives above those of one are
    those of the ones before.

    Parameters
    ----------
    chunks : iterable of callables
        At least one; each returns a :class:`Coded`. Outcomes and ground truths are those of the
        whole class in each.
    params : Rules
    truths : (1,) int64
        How many ground truths the class has.
    most_hits : int
        How many detections of all are a true positive anywhere.
    threads : int
        The result does not depend on it.
    """
    scores = Scores.undefined(params, truths, all_max_dets=False)
    sizes: list[int] = []

    def gone_down(make: Callable[[], Coded]) -> _accumulate.Chunk:
        coded = make()
        sizes.append(len(coded.label))
        scores.positives[:] = coded.positives
        scores.counts[1] = coded.truths - coded.positives[0]
        ranking = _ranked(coded, params)
        return _accumulate.Chunk(params, scores, False, ranking, coded.match_flags, coded.code)

    whole = _accumulate.Chunks(params, scores, False, most_hits)
    _join((partial(gone_down, make) for make in chunks), whole, threads)
    scores.counts[2] = sum(sizes)
    return scores


def _by_ranks(
    coded: Coded,
    label: int,
    rows: NDArray[np.int32],
    *,
    params: MatchParams,
    threads: int,
    every: bool,
) -> Scores:
    """Return the scores of one class, of which these are the rows by falling score."""
    from detap.core.match_table import Ranking  # noqa: PLC0415 - likewise

    here = slice(label, label + 1)
    scores = Scores.undefined(params, coded.truths[here], all_max_dets=every)
    scores.positives[:] = coded.positives[:, here]

    none = np.zeros(0, np.uint32)

    def gone_down(few: slice) -> _accumulate.Chunk:
        there = rows[few]
        # Ranked rows lie anywhere: gathered column by column, each is found in a cache.
        match_flags = coded.match_flags.of(coded.code[there] if len(coded.code) else there)
        ranking = Ranking(
            np.array([0, len(there)], np.int32), np.arange(len(there), dtype=np.int32)
        )
        return _accumulate.Chunk(params, scores, every, ranking, match_flags, none)

    ends = np.linspace(0, len(rows), _PIECES * threads + 1, dtype=np.int64).tolist()
    # Each ground truth is found once at most.
    whole = _accumulate.Chunks(params, scores, every, int(coded.truths[label]))
    _join((partial(gone_down, slice(*few)) for few in pairwise(ends)), whole, threads)
    scores.counts[1] = coded.truths[here] - scores.positives[0]
    scores.counts[2] = np.count_nonzero(coded.label == label)
    return scores


def _join(
    chunks: Iterable[Callable[[], _accumulate.Chunk]],
    whole: _accumulate.Chunks,
    threads: int,
) -> None:
    """Let threads go down stretches of a ranking, and write what comes of them together."""
    rest, lock = enumerate(chunks), Lock()
    waiting: dict[int, _accumulate.Chunk] = {}
    below = 0

    def go_down() -> None:
        nonlocal below
        while True:
            with lock:
                place, make = next(rest, (0, None))
            if make is None:
                return
            chunk = make()
            with lock:
                waiting[place] = chunk
                while below in waiting:
                    whole.append(waiting.pop(below))
                    below += 1

    share(go_down, threads)
    whole.count()
    share(whole.work, threads)


def _ranked(coded: Coded, params: MatchParams) -> "Ranking":
    from detap.core.match_table import rank_rows  # noqa: PLC0415 - likewise

    left_out = (coded.match_flags.max_dets_index == len(params.max_dets)).view(np.uint8)[coded.code]
    return rank_rows(coded.label, coded.score, left_out, len(coded.truths))


def _replayed(
    coded: Coded, ranking: "Ranking", params: MatchParams, threads: int | None, all_max_dets: bool
) -> Scores:
    classes = len(coded.truths)
    scores = Scores.undefined(params, coded.truths, all_max_dets=all_max_dets)
    scores.positives[:] = coded.positives
    wanted = threads or thread_count(len(coded.label))
    large = np.diff(ranking.start) > fair_share(len(ranking.rows), wanted)
    labels = np.flatnonzero(~large).tolist()
    replay = _accumulate.TableAccumulator(
        params, scores, all_max_dets, ranking, coded.match_flags, coded.code, labels
    )
    share(replay.work, min(wanted, max(len(labels), 1)))
    scores.counts[1] = coded.truths - scores.positives[0]
    scores.counts[2] = np.bincount(coded.label, minlength=classes)
    for label in np.flatnonzero(large).tolist():
        rows = ranking.of_class(label)
        part = _by_ranks(coded, label, rows, params=params, threads=wanted, every=all_max_dets)
        scores.put(slice(label, label + 1), part)
    return scores
