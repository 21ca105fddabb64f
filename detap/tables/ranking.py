"""Tables of rankings, as read-only columns.

Retrieval: a run of scored items with judgments, or a gallery of codes, embeddings or scores with
labels. Classification: a score per sample and class.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from detap.display import Brief
from detap.errors import Note
from detap.tables.detection import SourceFile

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False, slots=True, eq=False, kw_only=True)
class Run(Brief):
    """Scored items and judgments of each query; n rows, J judgments above 0.

    Attributes
    ----------
    queries : tuple of str
        Names of the Q judged queries.
    start : (Q + 1,) int64
        The rows of query q are ``start[q] : start[q + 1]``, in file order.
    score : (n,) float64
        Higher is better.
    grade : (n,) float64
        Judgment of the item; 0 without one.
    name_order : (n,) int64
        Index of the item's name among all names, descending; trec_eval's tie order.
    judged_start : (Q + 1,) int64
        The judgments of query q are ``judged_start[q] : judged_start[q + 1]``.
    judged : (J,) float64
        Grades above 0 of all judged items, ranked or not, descending per query.
    present : (Q,) bool
        True if the query has a ranking.
    files, notes : tuple
        As for :class:`detap.tables.detection.GroundTruth`.
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


@dataclass(frozen=True, repr=False, slots=True, eq=False, kw_only=True)
class Gallery(Brief):
    """Q queries, N ranked items, and the labels that decide relevance.

    Attributes
    ----------
    kind : {"codes", "embeddings", "scores"}
        Content of `query` and `gallery`.
    query : array
        (Q, B) bool for codes, (Q, D) float32 or float64 for embeddings, and (Q, N) for scores.
    gallery : array
        (N, B) bool or (N, D); (0, 0) for scores.
    query_labels, gallery_labels : array
        (Q,) and (N,) int32, one class each; or (Q, L) and (N, L) bool.
    queries : tuple of str
        Names of the queries.
    items : tuple of str
        Names of the items; empty if the file has none, then their indices are used.
    files, notes : tuple
        As for :class:`detap.tables.detection.GroundTruth`.
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


@dataclass(frozen=True, repr=False, slots=True, eq=False, kw_only=True)
class Samples(Brief):
    """Scores and labels of N samples and K classes.

    Attributes
    ----------
    score : (N, K) float64
        Higher is better; 0 where `scored` is False.
    scored : (N, K) bool
        True if there is a score. Samples without one rank last.
    truth : (N, K) int8
        1 positive, 0 negative, -1 difficult, -2 not in the set; -1 and -2 are ignored.
    classes : tuple of str
        Names, by index.
    samples : tuple of str
        Names, by index.
    files, notes : tuple
        As for :class:`detap.tables.detection.GroundTruth`.
    """

    score: Floats
    truth: NDArray[np.int8]
    scored: NDArray[np.bool_]
    classes: tuple[str, ...]
    samples: tuple[str, ...]
    files: tuple[SourceFile, ...] = ()
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        _lock(self)


def _lock(table: Any) -> None:
    for name in table.__slots__:
        column = getattr(table, name)
        if isinstance(column, np.ndarray):
            column.setflags(write=False)
