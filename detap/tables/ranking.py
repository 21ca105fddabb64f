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
from detap.io.paths import SourceFile

Floats = NDArray[np.float64]


class _Locked(Brief):
    __slots__ = ()

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            column = getattr(self, name)
            if isinstance(column, np.ndarray):
                column.setflags(write=False)


@dataclass(frozen=True, repr=False, slots=True, eq=False, kw_only=True)
class Run(_Locked):
    """Scored items and judgments of each query; n rows, J judgments above 0."""

    queries: tuple[str, ...]  # names of the Q judged queries
    # (Q + 1,): the rows of query q are `start[q] : start[q + 1]`, in file order
    start: NDArray[np.int64]
    score: Floats  # (n,): higher is better
    grade: Floats  # (n,): judgment of the item; 0 without one
    # (n,): index of the item's name among all names, descending; trec_eval's tie order
    name_order: NDArray[np.int64]
    # (Q + 1,): the judgments of query q are `judged_start[q] : judged_start[q + 1]`
    judged_start: NDArray[np.int64]
    # (J,): grades above 0 of all judged items, ranked or not, descending per query
    judged: Floats
    present: NDArray[np.bool_]  # (Q,): True if the query has a ranking
    files: tuple[SourceFile, ...] = ()
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, repr=False, slots=True, eq=False, kw_only=True)
class Gallery(_Locked):
    """Q queries, N ranked items, and the labels that decide relevance."""

    kind: Literal["codes", "embeddings", "scores"]  # content of `query` and `gallery`
    # (Q, B) bool for codes, (Q, D) float32 or float64 for embeddings, and (Q, N) for scores
    query: NDArray[Any]
    gallery: NDArray[Any]  # (N, B) bool or (N, D); (0, 0) for scores
    # (Q,) and (N,) int32, one class each; or (Q, L) and (N, L) bool
    query_labels: NDArray[Any]
    gallery_labels: NDArray[Any]
    queries: tuple[str, ...]  # names of the queries
    # names of the items; empty if the file has none, then their indices are used
    items: tuple[str, ...] = ()
    files: tuple[SourceFile, ...] = ()
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, repr=False, slots=True, eq=False, kw_only=True)
class Samples(_Locked):
    """Scores and labels of N samples and K classes."""

    score: Floats  # (N, K): higher is better; 0 where `scored` is False
    # (N, K): 1 positive, 0 negative, -1 difficult, -2 not in the set; -1 and -2 are ignored
    truth: NDArray[np.int8]
    # (N, K): True if there is a score. Samples without one rank last.
    scored: NDArray[np.bool_]
    classes: tuple[str, ...]  # names, by index
    samples: tuple[str, ...]  # names, by index
    files: tuple[SourceFile, ...] = ()
    notes: tuple[Note, ...] = ()
