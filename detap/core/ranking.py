"""From queries and a gallery to hits: which places the relevant items take.

A ranking is never laid out. For each query only its relevant items are placed, as *hits* (see
curves.py): how many irrelevant items stand above each; or only the first k items are selected.
Memory is what the results need, plus a few rows.

Axes: Q queries, N items of the gallery, W words of 64 bits.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from detap.core import _ranking
from detap.core._ranking import Relevance
from detap.core.threads import run_threads, thread_count

__all__ = [
    "Hits",
    "Panels",
    "Relevance",
    "count_relevant",
    "make_relevance",
    "nearest_codes",
    "nearest_scores",
    "nearness",
    "pack_bits",
    "panels_of",
    "products",
    "rank_codes",
    "rank_lists",
    "rank_scores",
]

Integers = NDArray[np.int32]
Words = NDArray[np.uint64]
Scores = NDArray[np.float32] | NDArray[np.float64]

TOGETHER = 16
"""Queries that the compiled loop takes at a time."""

PANEL = 24
"""Items whose components the compiled loop has side by side."""

PANELS_TOGETHER = 42
"""Panels whose sums a thread works out at a time."""

QUERIES = 8
"""Queries of whose number the compiled loop takes a multiple, rows of zeros included."""

PAIRS_PER_BOX = 10
"""A pair of query and item is so much less work than a box that thread_count weighs."""


class Hits(NamedTuple):
    """The relevant items of some queries by rank; those of query q are ``start[q] : start[q + 1]``.

    Attributes
    ----------
    start : (Q + 1,) int64
        Where each query's begin.
    hits : (H,) int32
        How many irrelevant items stand above, ties in the order of the gallery.
    above : (H,) int32
        How many irrelevant items are strictly better.
    level : (H,) int32
        How many irrelevant items are equally good, wherever they stand.
    """

    start: NDArray[np.int64]
    hits: Integers
    above: Integers
    level: Integers


def pack_bits(bits: NDArray[np.bool_], *, by_item: bool = False) -> Words:
    """Return rows of bits as words of 64, the last one filled up with 0.

    Parameters
    ----------
    bits : (n, B) bool
        One row per query or item.
    by_item : bool
        Whether the words of all rows stand side by side, (W, n), as galleries are wanted; else
        (n, W).
    """
    rows, width = bits.shape
    words = max(1, -(-width // 64))
    packed = np.zeros((rows, words * 8), np.uint8)
    packed[:, : -(-width // 8)] = np.packbits(bits, axis=1, bitorder="little")
    found = packed.view("<u8").astype(np.uint64, copy=False)
    return np.ascontiguousarray(found.T if by_item else found)


def make_relevance(
    query_labels: NDArray[np.generic],
    gallery_labels: NDArray[np.generic],
    itself: Integers | None = None,
) -> Relevance:
    """Return which items share a label with each query.

    Parameters
    ----------
    query_labels, gallery_labels : (Q,) and (N,) int32, or (Q, L) and (N, L) bool
        One class each, or a flag for each label.
    itself : (Q,) int32, optional
        The item that is the query itself and takes no part, or -1.
    """
    queries = len(query_labels)
    own = np.full(queries, -1, np.int32) if itself is None else np.ascontiguousarray(itself)
    no_class, no_label = np.zeros(0, np.int32), np.zeros((0, 0), np.uint64)
    if query_labels.ndim == 1:
        one = np.ascontiguousarray(query_labels, np.int32)
        ones = np.ascontiguousarray(gallery_labels, np.int32)
        return Relevance(one, ones, no_label, no_label, own)
    flags = query_labels.astype(np.bool_, copy=False), gallery_labels.astype(np.bool_, copy=False)
    bits, others = pack_bits(flags[0]), pack_bits(flags[1], by_item=True)
    return Relevance(no_class, no_class, bits, others, own)


def count_relevant(relevance: Relevance, threads: int | None = None) -> NDArray[np.int64]:
    """Return how many items are relevant to each query, (Q,) int64."""
    out = np.zeros(relevance.queries, np.int64)

    def work(low: int, high: int) -> None:
        _ranking.count_relevant(relevance, low, high, out)

    _run_threads(relevance.queries, TOGETHER, relevance.items, threads, work)
    return out


def rank_codes(
    queries: Words,
    gallery: Words,
    relevance: Relevance,
    counts: NDArray[np.int64],
    threads: int | None = None,
) -> Hits:
    """Return the hits of queries whose items rank by rising Hamming distance.

    Parameters
    ----------
    queries : (Q, W) uint64
        Packed bits.
    gallery : (W, N) uint64
        Packed bits, word by word.
    relevance : Relevance
        Of these queries and items.
    counts : (Q,) int64
        As from :func:`count_relevant`.
    threads : int, optional
        As many as the machine has, by default. The result does not depend on it.
    """
    found = _empty(counts)

    def work(low: int, high: int) -> None:
        _ranking.rank_codes(queries, gallery, relevance, low, high, *found)

    if relevance.items:
        # So many queries at a time that their relevant items fit beside the gallery.
        most = int(counts.max(initial=0))
        step = max(1, min(TOGETHER, (1 << 22) // max(1, most)))
        _run_threads(len(queries), step, relevance.items, threads, work)
    return found


def rank_scores(
    scores: Scores,
    relevance: Relevance,
    first: int,
    counts: NDArray[np.int64],
    threads: int | None = None,
) -> Hits:
    """Return the hits of queries whose items rank by falling score.

    Parameters
    ----------
    scores : (B, N) float32 or float64
        Of the queries ``first : first + B`` of `relevance`.
    relevance : Relevance
        Of all queries and items.
    first : int
        The query of the first row.
    counts : (B,) int64
        How many relevant items these queries have.
    threads : int, optional
        As many as the machine has, by default. The result does not depend on it.
    """
    found = _empty(counts)

    def work(low: int, high: int) -> None:
        for row in range(low, high):
            own = slice(found.start[row], found.start[row + 1])
            columns = (column[own] for column in found[1:])
            _ranking.rank_scores(scores, relevance, row, first + row, *columns)

    if relevance.items:
        _run_threads(len(scores), 1, relevance.items, threads, work)
    return found


def nearest_codes(
    queries: Words,
    gallery: Words,
    most: int,
    itself: Integers | None = None,
    threads: int | None = None,
) -> Integers:
    """Return the `most` nearest items of each query by Hamming distance, (Q, most) int32.

    Equally near items stand in the order of the gallery. `most` is not above the number of items
    that take part. The arrays are those of :func:`rank_codes`.
    """
    out = np.zeros((len(queries), most), np.int32)
    own = np.full(len(queries), -1, np.int32) if itself is None else itself

    def work(low: int, high: int) -> None:
        _ranking.nearest_codes(queries, gallery, own, low, high, out)

    if most:
        _run_threads(len(queries), TOGETHER, gallery.shape[1], threads, work)
    return out


def nearest_scores(
    scores: Scores, most: int, itself: Integers | None = None, threads: int | None = None
) -> Integers:
    """Return the `most` best-scored items of each row, (B, most) int32, ties by the gallery."""
    out = np.zeros((len(scores), most), np.int32)
    own = np.full(len(scores), -1, np.int32) if itself is None else itself

    def work(low: int, high: int) -> None:
        for row in range(low, high):
            _ranking.nearest_scores(scores, own, row, out[row])

    if most:
        _run_threads(len(scores), 1, scores.shape[1], threads, work)
    return out


class Panels(NamedTuple):
    """Vectors of items as they are compared with queries: the components of 24 side by side.

    Attributes
    ----------
    values : (P, D, 24) float32 or float64
        Component d of item 24 p + i is at [p, d, i]; 0 where there is no such item.
    items : int
        How many items there are.
    """

    values: Scores
    items: int


def panels_of(columns: Iterable[Scores], width: int, items: int, kind: DTypeLike) -> Panels:
    """Return panels of vectors, which come as blocks of columns.

    Parameters
    ----------
    columns : iterable of (D, b) float arrays
        The components of b items, block after block; b is a multiple of 24 but in the last one.
    width, items : int
        How many components (D) and items there are.
    kind : dtype
        float32 or float64.
    """
    values = np.zeros((-(-items // PANEL), width, PANEL), kind)
    first = 0
    for block in columns:
        whole = block.shape[1] // PANEL
        end, rest = first + whole, block.shape[1] - whole * PANEL
        inner = block[:, : whole * PANEL].reshape(width, whole, PANEL)
        values[first:end] = inner.transpose(1, 0, 2)
        if rest:
            values[end, :, :rest] = block[:, whole * PANEL :]
        first = end
    return Panels(values, items)


def nearness(
    queries: Scores, gallery: Panels, out: NDArray[np.float64], threads: int | None = None
) -> None:
    """Write minus the squared Euclidean distances.

    Of the differences of components, so that vectors far from the origin lose nothing. Each sum is
    added up in float64, in the order of the components.

    Parameters
    ----------
    queries : (B, D) float32 or float64
    gallery : Panels
        Of N items.
    out : (B, N) float64
    threads : int, optional
        As many as the machine has, by default. The result does not depend on it.
    """
    _fill_sums(queries, gallery, out, threads, products=False)


def products(queries: Scores, gallery: Panels, out: Scores, threads: int | None = None) -> None:
    """Write the products of vectors, rounded to the precision of `out`.

    Each is added up in float64, in the order of the components. That of a library of linear algebra
    depends on the machine, and on where a row stands: equal items would get other scores than each
    other.

    Parameters
    ----------
    queries, gallery, threads
        As for :func:`nearness`.
    out : (B, N) float32 or float64
    """
    _fill_sums(queries, gallery, out, threads, products=True)


def _fill_sums(
    queries: Scores, gallery: Panels, out: Scores, threads: int | None, *, products: bool
) -> None:
    own = np.zeros((-(-len(queries) // QUERIES) * QUERIES, queries.shape[1]))
    own[: len(queries)] = queries
    single = queries.dtype == gallery.values.dtype == np.float32

    def work(low: int, high: int) -> None:
        _ranking.fill_sums(own, gallery.values, low, high, out, products, single)

    size = own.size * PANEL
    _run_threads(len(gallery.values), PANELS_TOGETHER, size, threads, work)


def rank_lists(
    start: NDArray[np.int64],
    score: NDArray[np.float64],
    tie: NDArray[np.integer] | None = None,
) -> NDArray[np.int64]:
    """Return the rows of lists of any lengths in the order of their ranks.

    Parameters
    ----------
    start : (Q + 1,) int64
        The rows of query q are ``start[q] : start[q + 1]``.
    score : (n,) float
        Higher is better.
    tie : (n,) integer array, optional
        What orders equal scores, rising; by default the order of the rows.
    """
    query = np.repeat(np.arange(len(start) - 1), np.diff(start))
    keys = (-score, query) if tie is None else (tie, -score, query)
    return np.lexsort(keys)


def _empty(counts: NDArray[np.int64]) -> Hits:
    start = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=start[1:])
    columns = (np.zeros(int(start[-1]), np.int32) for _ in range(3))
    return Hits(start, *columns)


def _run_threads(
    rows: int, step: int, items: int, threads: int | None, work: Callable[[int, int], None]
) -> None:
    """Have `step` rows at a time worked on by whichever thread is free."""
    pieces = [(low, min(low + step, rows)) for low in range(0, rows, step)]
    wanted = threads or thread_count(rows * items // PAIRS_PER_BOX)
    waiting = iter(pieces)  # next() on it is atomic under the GIL

    def run() -> None:
        for low, high in waiting:
            work(low, high)

    run_threads(run, min(wanted, len(pieces)))
