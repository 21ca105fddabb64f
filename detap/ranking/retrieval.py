"""Entry point of retrieval evaluation.

Queries are processed in blocks, so memory does not grow with their number.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core import ranking, ties
from detap.core.curves import mean_of_defined
from detap.core.ties import TieGroups
from detap.errors import InputError, Note, Problem, UsageError
from detap.protocols import ranking as protocols
from detap.protocols.ranking import Retrieval
from detap.ranking.measures import Expected, Gains, Measure, Ordered, RankedList, measures
from detap.ranking.similarity import Similarities
from detap.tables.columns import check_threads
from detap.tables.ranking import Gallery, Run

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]

CURVE_RANKS = 1000
"""Maximal number of ranks of the curve over ranks."""

_HITS = 1 << 23
"""Ranks of relevant items held at once; those of one query always are."""

_MAX_BLOCK = 512
"""Queries of codes in a block at most, so that it is seen how far the work is."""

_SCORES = 1 << 28
"""Bytes of scores held at once; those of two queries always are."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RetrievalResult:
    """Result of a retrieval with Q queries.

    Attributes
    ----------
    protocol : Retrieval
        The rules.
    measures : tuple of Measure
        Metrics of the summary, the primary metric first.
    queries : tuple of str
        Name of each query.
    relevant, ranked : (Q,) int64
        Number of relevant items, and of ranked items.
    missing : (Q,) bool
        True if a query does not have a ranking.
    values : dict of str to (Q,) float64
        For each measure's key the number of each query; NaN where it is undefined.
    summary : dict of str to float
        For each measure's name the mean over queries, by the rules.
    levels, precision_at_levels : (11,) float64
        Recall levels, and the mean of interpolated precision there; empty where not all ranks
        were looked at.
    precision_at_ranks, recall_at_ranks : (r,) float64
        Their means after 1, 2 ... r items.
    notes : tuple of Note
        What the reader and the scoring noticed.
    """

    protocol: Retrieval
    measures: tuple[Measure, ...]
    queries: tuple[str, ...]
    relevant: NDArray[np.int64]
    ranked: NDArray[np.int64]
    missing: NDArray[np.bool_]
    values: dict[str, Floats]
    summary: dict[str, float]
    levels: Floats
    precision_at_levels: Floats
    precision_at_ranks: Floats
    recall_at_ranks: Floats
    notes: tuple[Note, ...]

    def contributions(self, name: str) -> Floats:
        """Return each query's value in a mean of the summary, (Q,); NaN if it is left out.

        Raises
        ------
        KeyError
            If the summary has no such number.
        """
        measure = {measure.name: measure for measure in self.measures}[name]
        return _contributions(self.values[measure.key], self.protocol, self)


def evaluate(
    table: Run | Gallery,
    protocol: Retrieval | str = "retrieval",
    *,
    names: Iterable[str] | None = None,
    threads: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> RetrievalResult:
    """Score a retrieval.

    Parameters
    ----------
    table : Run or Gallery
        The ranked items.
    protocol : Retrieval or str
        How; a preset's name will do.
    names : iterable of str, optional
        Only these measures. Where all of them are at a k, only the first k items are looked for,
        which is much faster for a large gallery.
    threads : int, optional
        As many as the machine has, by default. The result does not depend on it.
    progress : callable, optional
        Function called with the fraction of queries done.

    Raises
    ------
    UsageError
        If the protocol or a measure is unknown, `threads` is no number of any, or the queries of
        a run are to be left out of their own rankings.
    InputError
        If the embeddings have no similarity of the kind asked for.
    """
    resolved = protocols.retrieval(protocol) if isinstance(protocol, str) else protocol
    requested = measures(resolved, names)
    if isinstance(table, Run) and resolved.exclude_self:
        raise UsageError(
            "queries can be left out of their own rankings in a gallery alone: of a run it is not "
            "known which item a query is"
        )
    check_threads(threads)
    source: _RunLists | _GalleryLists
    if isinstance(table, Run):
        source = _RunLists(table, resolved)
    else:
        source = _GalleryLists(table, resolved, threads)
    return _accumulate(source, resolved, requested, progress or (lambda _: None))


def _left_out(protocol: Retrieval, of: "RetrievalResult | _Source") -> NDArray[np.bool_]:
    """Flag the queries that the protocol leaves out of every mean, (Q,)."""
    drop_none = (of.relevant == 0) & (protocol.no_relevant == "exclude")
    drop_missing = of.missing & (protocol.missing_queries == "exclude")
    return np.asarray(drop_none | drop_missing)


def _contributions(values: Floats, protocol: Retrieval, of: "RetrievalResult | _Source") -> Floats:
    """Return values of a measure with the rules for undefined ones applied, (Q,)."""
    zero = np.full(len(values), protocol.no_relevant == "zero") | of.missing
    filled = np.where(np.isnan(values) & zero, 0.0, values)
    return np.where(_left_out(protocol, of), nan, filled)


class _Source(NamedTuple):
    """Properties of the queries before ranking."""

    queries: tuple[str, ...]
    relevant: NDArray[np.int64]
    ranked: NDArray[np.int64]
    missing: NDArray[np.bool_]
    notes: tuple[Note, ...]


def _accumulate(
    source: "_RunLists | _GalleryLists",
    protocol: Retrieval,
    requested: tuple[Measure, ...],
    progress: Callable[[float], None],
) -> RetrievalResult:
    """Return the measures read off all lists, one after the other."""
    known, depths = source.known, [measure.depth for measure in requested]
    depth = None if None in depths else max(d or 0 for d in depths)
    values = {measure.key: np.full(len(known.queries), nan) for measure in requested}
    longest = int(known.ranked.max(initial=0))
    ranks = min(longest, CURVE_RANKS, longest if depth is None else depth)
    levels, precision, recall = np.zeros(11), np.zeros(ranks), np.zeros(ranks)
    at = np.arange(1, ranks + 1)
    for query, ranked in source.lists(depth):
        progress(query / len(known.queries))
        if not ranked.relevant:
            continue
        for measure in requested:
            values[measure.key][query] = measure.compute(ranked)
        relevant_counts = ranked.relevant_at_ranks(ranks)
        precision += relevant_counts / at
        recall += relevant_counts / ranked.relevant
        if depth is None:
            levels += ranked.precision_at_levels()
    # A query without relevant items, or without a ranking, has added 0 to the curves.
    count = int((~_left_out(protocol, known)).sum())
    share = 1.0 / count if count else nan
    return RetrievalResult(
        protocol=protocol,
        measures=requested,
        queries=known.queries,
        relevant=known.relevant,
        ranked=known.ranked,
        missing=known.missing,
        values=values,
        summary={
            measure.name: mean_of_defined(_contributions(values[measure.key], protocol, known))
            for measure in requested
        },
        levels=np.array(protocols.ELEVEN) if depth is None else np.zeros(0),
        precision_at_levels=levels * share if depth is None else np.zeros(0),
        precision_at_ranks=precision * share,
        recall_at_ranks=recall * share,
        notes=(*known.notes, *_notes(protocol, known)),
    )


def _notes(protocol: Retrieval, known: _Source) -> Iterator[Note]:
    ends = {"zero": "counted as 0", "exclude": "left out of the means"}
    none = int((known.relevant == 0).sum())
    if none:
        end = ends[protocol.no_relevant]
        yield Note("no-relevant", f"a query has no relevant item: {end}", none)
    missing = int(known.missing.sum())
    if missing:
        end = ends[protocol.missing_queries]
        yield Note("missing-query", f"a judged query has no ranking: {end}", missing)


# --- a run: lists of any lengths


class _RunLists:
    """The ranked lists of a run."""

    def __init__(self, run: Run, protocol: Retrieval) -> None:
        self.run = run
        self.protocol = protocol
        counts = np.diff(run.start)
        relevant = run.judged >= protocol.relevant_from
        sums = np.concatenate([[0], np.cumsum(relevant)])
        self.known = _Source(
            queries=run.queries,
            relevant=sums[run.judged_start[1:]] - sums[run.judged_start[:-1]],
            ranked=counts,
            missing=~run.present,
            notes=run.notes,
        )

    def lists(self, depth: int | None) -> Iterator[tuple[int, RankedList]]:
        """Give each query that has a ranking, with it; all of it, it being there anyway."""
        run, protocol = self.run, self.protocol
        trec = protocol.tie_break == "trec"
        score = run.score.astype(np.float32).astype(np.float64) if trec else run.score
        order = ranking.rank_lists(run.start, score, run.name_order if trec else None)
        score, grade = score[order], run.grade[order]
        binary = bool((run.judged == 1).all()) and protocol.relevant_from <= 1
        make = self._expected if protocol.tie_break == "expected" else self._ordered
        for query in range(len(run.queries)):
            own = slice(run.start[query], run.start[query + 1])
            judged = run.judged[run.judged_start[query] : run.judged_start[query + 1]]
            if run.present[query]:
                yield query, make(query, score[own], grade[own], None if binary else judged)

    def _ordered(
        self, query: int, score: Floats, grade: Floats, judged: Floats | None
    ) -> RankedList:
        ranks = np.flatnonzero(grade >= self.protocol.relevant_from)
        hits = (ranks - np.arange(len(ranks))).astype(np.int32)
        gains = None
        if judged is not None:
            worth = np.flatnonzero(grade > 0)
            one = np.ones(len(worth), np.int64)
            gains = Gains(worth, one, self._gain(grade[worth]), self._gain(judged))
        return Ordered(hits, int(self.known.relevant[query]), len(score), gains)

    def _expected(
        self, query: int, score: Floats, grade: Floats, judged: Floats | None
    ) -> RankedList:
        first = np.flatnonzero(np.diff(score, prepend=nan))
        size = np.diff(first, append=len(score))
        relevant = _sums(grade >= self.protocol.relevant_from, first).astype(np.int64)
        has_relevant = relevant > 0
        groups = TieGroups(first[has_relevant], size[has_relevant], relevant[has_relevant])
        gains = None
        if judged is not None:
            gain = _sums(self._gain(np.maximum(grade, 0.0)), first)
            worth = gain > 0
            gains = Gains(first[worth], size[worth], gain[worth], self._gain(judged))
        return Expected(groups, int(self.known.relevant[query]), len(score), gains)

    def _gain(self, grade: Floats) -> Floats:
        return grade if self.protocol.gain == "linear" else np.exp2(grade) - 1.0


def _sums(values: NDArray[np.generic], first: NDArray[np.int64]) -> Floats:
    if not len(first):
        return np.zeros(0)
    return np.asarray(np.add.reduceat(values.astype(np.float64), first))


# --- a gallery: every query ranks every item


class _GalleryLists:
    """The ranked lists of a gallery, made block by block."""

    def __init__(self, table: Gallery, protocol: Retrieval, threads: int | None) -> None:
        self.protocol = protocol
        self.threads = threads
        queries, items = len(table.query_labels), len(table.gallery_labels)
        if protocol.exclude_self and queries != items:
            raise InputError(
                Problem(
                    table.files[0].path if table.files else "gallery",
                    "",
                    f"has {queries} queries and {items} items",
                    "queries can be left out of their own rankings where both are the same",
                )
            )
        order = _tie_order(table, protocol)
        self.itself: Integers | None = None
        if protocol.exclude_self:
            places = np.arange(items) if order is None else np.argsort(order)
            self.itself = places.astype(np.int32)
        labels = table.gallery_labels if order is None else table.gallery_labels[order]
        self.query_labels, self.gallery_labels = table.query_labels, labels
        self.relevance = ranking.make_relevance(table.query_labels, labels, self.itself)
        self.codes = table.kind == "codes"
        if self.codes:
            gallery = table.gallery if order is None else table.gallery[order]
            self.packed = (
                ranking.pack_bits(table.query),
                ranking.pack_bits(gallery, by_item=True),
            )
        else:
            self.similarities = Similarities(table, protocol, order, threads)
        counts = ranking.count_relevant(self.relevance, threads)
        self.known = _Source(
            queries=table.queries,
            relevant=counts,
            ranked=np.full(queries, max(0, items - protocol.exclude_self), np.int64),
            missing=np.zeros(queries, np.bool_),
            notes=(*table.notes, *_self_match_notes(table, protocol)),
        )

    def lists(self, depth: int | None) -> Iterator[tuple[int, RankedList]]:
        """Give each query with its ranking, to a depth or to its end."""
        shallow = depth is not None and self.protocol.tie_break != "expected"
        for low, high in self._blocks(shallow):
            if shallow:
                yield from self._first(low, high, depth or 0)
            else:
                yield from self._all(low, high)

    def _blocks(self, shallow: bool) -> Iterator[tuple[int, int]]:
        """Give ranges of queries whose scores and places fit into memory together."""
        counts = self.known.relevant
        max_queries = _MAX_BLOCK if self.codes else self.similarities.rows(_SCORES)
        low = 0
        while low < len(counts):
            high = min(low + max_queries, len(counts))
            if not shallow:
                sums = np.cumsum(counts[low:high])
                # Whole groups of 16, which the compiled loop takes together, where possible.
                fit = int(np.searchsorted(sums, _HITS, side="right"))
                fit = fit // 16 * 16 or fit
                high = low + max(1, min(fit, high - low))
            yield low, high
            low = high

    def _all(self, low: int, high: int) -> Iterator[tuple[int, RankedList]]:
        counts = self.known.relevant[low:high]
        if self.codes:
            is_full = high - low == len(self.known.relevant)
            ranked = ranking.rank_codes(
                np.ascontiguousarray(self.packed[0][low:high]),
                self.packed[1],
                self.relevance if is_full else self.relevance.part(low, high),
                counts,
                self.threads,
            )
        else:
            scores = self.similarities.block(low, high)
            ranked = ranking.rank_scores(scores, self.relevance, low, counts, self.threads)
        length = int(self.known.ranked[0])
        for row in range(high - low):
            rows = slice(ranked.start[row], ranked.start[row + 1])
            if self.protocol.tie_break == "expected":
                groups = ties.tie_groups(ranked.above[rows], ranked.level[rows])
                yield low + row, Expected(groups, int(counts[row]), length)
            else:
                yield low + row, Ordered(ranked.hits[rows], int(counts[row]), length)

    def _first(self, low: int, high: int, depth: int) -> Iterator[tuple[int, RankedList]]:
        length = int(self.known.ranked[0])
        count = min(depth, length)
        excluded = None if self.itself is None else self.itself[low:high]
        if self.codes:
            queries = np.ascontiguousarray(self.packed[0][low:high])
            best = ranking.nearest_codes(queries, self.packed[1], count, excluded, self.threads)
        else:
            scores = self.similarities.block(low, high)
            best = ranking.nearest_scores(scores, count, excluded, self.threads)
        for row in range(high - low):
            query = low + row
            ranks = np.flatnonzero(self._shares(query, best[row]))
            hits = (ranks - np.arange(len(ranks))).astype(np.int32)
            yield query, Ordered(hits, int(self.known.relevant[query]), length)

    def _shares(self, query: int, items: Integers) -> NDArray[np.bool_]:
        own, theirs = self.query_labels[query], self.gallery_labels[items]
        shared = theirs == own if theirs.ndim == 1 else (theirs & own).any(axis=1)
        return np.asarray(shared)


def _self_match_notes(table: Gallery, protocol: Retrieval) -> Iterator[Note]:
    """Yield a note if the gallery has the queries themselves, which inflates metrics."""
    if not protocol.exclude_self and np.array_equal(table.query, table.gallery):
        yield Note(
            "queries-in-gallery",
            "the queries are the gallery, so that each finds itself; --exclude-self leaves queries "
            "out of their own rankings",
        )


def _tie_order(table: Gallery, protocol: Retrieval) -> NDArray[np.int64] | None:
    """Return the order in which equally scored items rank, where it is not that of the gallery."""
    if protocol.tie_break != "trec":
        return None
    names = table.items or tuple(map(str, range(len(table.gallery_labels))))
    encoded = [name.encode("utf-8", "surrogateescape") for name in names]
    return np.array(sorted(range(len(names)), key=lambda i: encoded[i], reverse=True), np.int64)
