"""Rank a gallery for each query: the ranks of the relevant items.

A ranking is never stored in full. Per query, only the *hits* (see curves.py) of its relevant items
are computed, or the first k items are selected. Memory is the results plus a few rows.

Axes: Q queries, N items of the gallery, W integers of 64 bits.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from detap.core import _ranking
from detap.core._ranking import Relevance
from detap.core.threads import run_chunks, thread_count

Integers = NDArray[np.int32]
BitArray = NDArray[np.uint64]
Scores = NDArray[np.float32] | NDArray[np.float64]

QUERIES_PER_CALL = 16
"""Queries per call of the compiled loop."""

PANEL = 24
"""Items with interleaved components."""

PANELS_PER_CALL = 42
"""Panels a thread takes at a time."""

QUERIES = 8
"""The number of queries is padded to a multiple of this."""

PAIRS_PER_BOX = 10
"""Query-item pairs that cost as much as one box (see thread_count)."""


class Hits(NamedTuple):
    """Relevant items by rank; those of query q are ``start[q] : start[q + 1]``."""

    start: NDArray[np.int64]  # (Q + 1,) first hit of each query
    hits: Integers  # (H,) number of irrelevant items above, with ties in gallery order
    above: Integers  # (H,) number of irrelevant items that are strictly better
    level: Integers  # (H,) number of irrelevant items that are tied


def pack_bits(bits: NDArray[np.bool_], *, by_item: bool = False) -> BitArray:
    """Pack rows of bits into 64-bit integers, padded with 0."""
    rows, n_bits = bits.shape
    n_integers = max(1, -(-n_bits // 64))
    packed = np.zeros((rows, n_integers * 8), np.uint8)
    packed[:, : -(-n_bits // 8)] = np.packbits(bits, axis=1, bitorder="little")
    result = packed.view("<u8").astype(np.uint64, copy=False)
    return np.ascontiguousarray(result.T if by_item else result)


def make_relevance(
    query_labels: NDArray[np.generic],  # (Q,) and (N,)
    gallery_labels: NDArray[np.generic],  # (Q,) and (N,)
    itself: Integers | None = None,  # (Q,) gallery item that is the query itself, which is left out
) -> Relevance:
    """Return the relevance of items: those that share a label with a query."""
    queries = len(query_labels)
    self_items = np.full(queries, -1, np.int32) if itself is None else np.ascontiguousarray(itself)
    no_class, no_label = np.zeros(0, np.int32), np.zeros((0, 0), np.uint64)
    if query_labels.ndim == 1:
        query_classes = np.ascontiguousarray(query_labels, np.int32)
        gallery_classes = np.ascontiguousarray(gallery_labels, np.int32)
        return Relevance(query_classes, gallery_classes, no_label, no_label, self_items)
    flags = query_labels.astype(np.bool_, copy=False), gallery_labels.astype(np.bool_, copy=False)
    bits, gallery_bits = pack_bits(flags[0]), pack_bits(flags[1], by_item=True)
    return Relevance(no_class, no_class, bits, gallery_bits, self_items)


def count_relevant(relevance: Relevance, threads: int | None = None) -> NDArray[np.int64]:
    """Return the number of relevant items of each query, (Q,) int64."""
    out = np.zeros(relevance.queries, np.int64)

    def work(low: int, high: int) -> None:
        _ranking.count_relevant(relevance, low, high, out)

    _run_rows(relevance.queries, QUERIES_PER_CALL, relevance.items, threads, work)
    return out


def rank_codes(
    queries: BitArray,  # (Q, W) packed bits
    gallery: BitArray,  # (W, N) packed bits
    relevance: Relevance,
    counts: NDArray[np.int64],  # (Q,)
    threads: int | None = None,
) -> Hits:
    """Return the hits of queries, ranked by ascending Hamming distance."""
    result = _allocate_hits(counts)

    def work(low: int, high: int) -> None:
        _ranking.rank_codes(queries, gallery, relevance, low, high, *result)

    if relevance.items:
        # Limit the memory of the relevant items.
        max_count = int(counts.max(initial=0))
        step = max(1, min(QUERIES_PER_CALL, (1 << 22) // max(1, max_count)))
        _run_rows(len(queries), step, relevance.items, threads, work)
    return result


def rank_scores(
    scores: Scores,  # (B, N) of the queries ``first : first + B`` of `relevance`
    relevance: Relevance,  # of all queries and items
    first: int,  # query of the first row
    counts: NDArray[np.int64],  # (B,) number of relevant items of these queries
    threads: int | None = None,
) -> Hits:
    """Return the hits of queries, ranked by descending score."""
    result = _allocate_hits(counts)

    def work(low: int, high: int) -> None:
        for row in range(low, high):
            row_slice = slice(result.start[row], result.start[row + 1])
            columns = (column[row_slice] for column in result[1:])
            _ranking.rank_scores(scores, relevance, row, first + row, *columns)

    if relevance.items:
        _run_rows(len(scores), 1, relevance.items, threads, work)
    return result


def nearest_codes(
    queries: BitArray,
    gallery: BitArray,
    k: int,
    itself: Integers | None = None,
    threads: int | None = None,
) -> Integers:
    """Return the `k` nearest items of each query by Hamming distance, (Q, k) int32."""
    out = np.zeros((len(queries), k), np.int32)
    self_items = np.full(len(queries), -1, np.int32) if itself is None else itself

    def work(low: int, high: int) -> None:
        _ranking.nearest_codes(queries, gallery, self_items, low, high, out)

    if k:
        _run_rows(len(queries), QUERIES_PER_CALL, gallery.shape[1], threads, work)
    return out


def nearest_scores(
    scores: Scores, k: int, itself: Integers | None = None, threads: int | None = None
) -> Integers:
    """Return the `k` best-scored items of each row, (B, k) int32; ties in gallery order."""
    out = np.zeros((len(scores), k), np.int32)
    self_items = np.full(len(scores), -1, np.int32) if itself is None else itself

    def work(low: int, high: int) -> None:
        for row in range(low, high):
            _ranking.nearest_scores(scores, self_items, row, out[row])

    if k:
        _run_rows(len(scores), 1, scores.shape[1], threads, work)
    return out


class Panels(NamedTuple):
    """Item vectors in blocks of 24 with interleaved components."""

    values: Scores  # (P, D, 24) component d of item 24 p + i is at [p, d, i]; 0 for padding
    items: int  # number of items


def make_panels(columns: Iterable[Scores], width: int, items: int, dtype: DTypeLike) -> Panels:
    """Build panels from blocks of columns."""
    values = np.zeros((-(-items // PANEL), width, PANEL), dtype)
    first = 0
    for block in columns:
        n_panels = block.shape[1] // PANEL
        end, n_remaining = first + n_panels, block.shape[1] - n_panels * PANEL
        full_panels = block[:, : n_panels * PANEL].reshape(width, n_panels, PANEL)
        values[first:end] = full_panels.transpose(1, 0, 2)
        if n_remaining:
            values[end, :, :n_remaining] = block[:, n_panels * PANEL :]
        first = end
    return Panels(values, items)


def negative_distances(
    queries: Scores, gallery: Panels, out: NDArray[np.float64], threads: int | None = None
) -> None:
    """Write negative squared Euclidean distances."""
    # Components are subtracted first, so vectors far from the origin lose no precision. Sums are in
    # float64, in the order of the components.
    _fill_sums(queries, gallery, out, threads, products=False)


def products(queries: Scores, gallery: Panels, out: Scores, threads: int | None = None) -> None:
    """Write dot products, rounded to the precision of `out`."""
    # Sums are in float64, in the order of the components. BLAS results depend on the machine and
    # the position of a row, so equal items would get different scores.
    _fill_sums(queries, gallery, out, threads, products=True)


def _fill_sums(
    queries: Scores, gallery: Panels, out: Scores, threads: int | None, *, products: bool
) -> None:
    padded = np.zeros((-(-len(queries) // QUERIES) * QUERIES, queries.shape[1]))
    padded[: len(queries)] = queries
    single = queries.dtype == gallery.values.dtype == np.float32

    def work(low: int, high: int) -> None:
        _ranking.fill_sums(padded, gallery.values, low, high, out, products, single)

    size = padded.size * PANEL
    _run_rows(len(gallery.values), PANELS_PER_CALL, size, threads, work)


def rank_lists(
    start: NDArray[np.int64],  # (Q + 1,) the rows of query q are ``start[q] : start[q + 1]``
    score: NDArray[np.float64],  # (n,) higher is better
    tie: NDArray[np.integer] | None = None,  # (n,) ascending order of ties; row order by default
) -> NDArray[np.int64]:
    """Return the rows of lists of any length in rank order."""
    query = np.repeat(np.arange(len(start) - 1), np.diff(start))
    keys = (-score, query) if tie is None else (tie, -score, query)
    return np.lexsort(keys)


def _allocate_hits(counts: NDArray[np.int64]) -> Hits:
    start = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=start[1:])
    columns = (np.zeros(int(start[-1]), np.int32) for _ in range(3))
    return Hits(start, *columns)


def _run_rows(
    rows: int, step: int, items: int, threads: int | None, work: Callable[[int, int], None]
) -> None:
    """Process `step` rows at a time in threads."""
    run_chunks(work, rows, step, threads or thread_count(rows * items // PAIRS_PER_BOX))
