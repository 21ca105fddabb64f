"""Tables of rankings, as read-only columns.

Three shapes of retrieval: lists of scored items with judgements (a run), a gallery of codes,
embeddings or scores with labels; and one of classification: a score per sample and class.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from detap.errors import Note
from detap.tables.detection import SourceFile

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Run:
    """Scored items of each query, and what is judged relevant; n rows, J judgements above 0.

    Attributes
    ----------
    queries : tuple of str
        What each judged query is called, by number; Q of them.
    start : (Q + 1,) int64
        The rows of query q are ``start[q] : start[q + 1]``, in the order of the file.
    score : (n,) float64
        Higher is better.
    grade : (n,) float64
        The judgement of the row's item; 0 where there is none.
    name_order : (n,) int64
        The place of the item's name among all names, falling: what trec_eval orders ties by.
    judged_start : (Q + 1,) int64
        The judgements of query q are ``judged_start[q] : judged_start[q + 1]``.
    judged : (J,) float64
        The grades above 0 of all judged items, ranked or not, falling for each query.
    present : (Q,) bool
        Whether the query has a ranking.
    files, notes : tuple
        As in :class:`detap.tables.detection.GroundTruth`.
    """

    queries: tuple[str, ...]
    start: NDArray[np.int64]
    score: Floats
    grade: Floats
    name_order: NDArray[np.int64]
    judged_start: NDArray[np.int64]
    judged: Floats
    present: NDArray[np.bool_]
    files: tuple[SourceFile, ...] = ()
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        _lock(self)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Gallery:
    """Queries, the N items that each of them ranks, and the labels that make items relevant.

    Attributes
    ----------
    kind : {"codes", "embeddings", "scores"}
        What `query` and `gallery` hold.
    query : array
        (Q, B) bool for codes, (Q, D) float32 or float64 for embeddings, and (Q, N) for scores.
    gallery : array
        (N, B) bool or (N, D); (0, 0) for scores.
    query_labels, gallery_labels : array
        (Q,) and (N,) int32, one class each; or (Q, L) and (N, L) bool.
    queries : tuple of str
        What each query is called.
    items : tuple of str
        What each item is called; empty where the file names none, and then their numbers do.
    files, notes : tuple
        As in :class:`detap.tables.detection.GroundTruth`.
    """

    kind: Literal["codes", "embeddings", "scores"]
    query: NDArray[Any]
    gallery: NDArray[Any]
    query_labels: NDArray[Any]
    gallery_labels: NDArray[Any]
    queries: tuple[str, ...]
    items: tuple[str, ...] = ()
    files: tuple[SourceFile, ...] = ()
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        _lock(self)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Samples:
    """A score for each of N samples and K classes, and the truth.

    Attributes
    ----------
    score : (N, K) float64
        Higher is better; 0 where `scored` is False.
    scored : (N, K) bool
        Whether there is a score. A sample without one ranks behind all that have one.
    truth : (N, K) int8
        1 positive, 0 negative; -1 difficult and -2 not of the set: both count neither way.
    classes : tuple of str
        Names, by number.
    samples : tuple of str
        Names, by number.
    files, notes : tuple
        As in :class:`detap.tables.detection.GroundTruth`.
    """

    score: Floats
    truth: NDArray[np.int8]
    scored: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((0, 0), np.bool_))
    classes: tuple[str, ...]
    samples: tuple[str, ...]
    files: tuple[SourceFile, ...] = ()
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        if self.scored.shape != self.score.shape:
            object.__setattr__(self, "scored", np.ones(self.score.shape, np.bool_))
        _lock(self)


def _lock(table: Any) -> None:
    for name in table.__slots__:
        column = getattr(table, name)
        if isinstance(column, np.ndarray):
            column.flags.writeable = False
