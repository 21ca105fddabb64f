"""Entry point of retrieval evaluation.

Queries are ranked in blocks, so memory does not grow with their number.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import NDArray

from detap.core import ranking
from detap.core.curves import hits_of, mean_of_defined
from detap.display import Displayed, summary_line
from detap.errors import Note, UsageError
from detap.io.stream import refuse
from detap.protocols import ranking as protocols
from detap.protocols.ranking import Retrieval
from detap.ranking.lists import Expected, Gains, Ordered, RankedList, TieGroups, tie_groups
from detap.ranking.metrics import RankingMetric, select_metrics
from detap.ranking.similarity import Similarities
from detap.tables.columns import check_threads
from detap.tables.ranking import Gallery, Run

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]

CURVE_RANKS = 1000
"""Maximum length of the curves over ranks."""

_HITS = 1 << 23
"""Maximum number of hits in memory, unless one query has more."""

_MAX_BLOCK = 512
"""Maximum number of queries of codes per block, so that progress is reported."""

_SCORES = 1 << 28
"""Maximum bytes of scores in memory, unless two queries have more."""


@dataclass(frozen=True, repr=False, slots=True, eq=False, kw_only=True)
class RetrievalResult(Displayed):
    """Result of a retrieval with Q queries."""

    protocol: Retrieval
    metrics: tuple[RankingMetric, ...]  # metrics of the summary, the primary metric first
    queries: tuple[str, ...]  # name of each query
    relevant: NDArray[np.int64]  # (Q,)
    ranked: NDArray[np.int64]  # (Q,)
    missing: NDArray[np.bool_]  # (Q,) a query does not have a ranking
    values: dict[str, Floats]  # value of each query by the metric's key; NaN if undefined
    summary: dict[str, float]  # mean over queries by the metric's name
    levels: Floats  # (11,)
    precision_at_levels: Floats  # (11,)
    precision_at_ranks: Floats  # (r,)
    recall_at_ranks: Floats  # (r,)
    notes: tuple[Note, ...]  # notes of the reader and of the evaluation

    def __repr__(self) -> str:
        return summary_line(self, f"{len(self.queries)} queries")

    def contributions(self, name: str) -> Floats:
        """Return each query's value in a mean of the summary, (Q,); NaN if it is excluded."""
        key = {metric.name: metric.key for metric in self.metrics}[name]
        return _contributions(self.values[key], self)


def evaluate(
    table: Run | Gallery,  # the ranked items
    protocol: Retrieval | str = "retrieval",  # a protocol or the name of a preset
    *,
    names: Iterable[str] | None = None,  # compute only these metrics
    threads: int | None = None,  # number of threads
    progress: Callable[[float], None] | None = None,
) -> RetrievalResult:
    """Evaluate a retrieval."""
    resolved = protocols.retrieval(protocol) if isinstance(protocol, str) else protocol
    requested = select_metrics(resolved, names)
    if isinstance(table, Run) and resolved.exclude_self:
        raise UsageError(
            "exclude_self requires a gallery, as a run does not say which item is the query; "
            "choose another protocol"
        )
    check_threads(threads)
    source: _RunLists | _GalleryLists
    if isinstance(table, Run):
        source = _RunLists(table, resolved)
    else:
        source = _GalleryLists(table, resolved, threads)
    depths = [metric.depth for metric in requested]
    depth = None if None in depths else max(metric_depth or 0 for metric_depth in depths)
    values = {metric.key: np.full(len(source.queries), nan) for metric in requested}
    longest = int(source.ranked.max(initial=0))
    ranks = min(longest, CURVE_RANKS, longest if depth is None else depth)
    levels, precision, recall = np.zeros(11), np.zeros(ranks), np.zeros(ranks)
    k = np.arange(1, ranks + 1)
    for query, ranking_of_query in source.lists(depth):
        if progress is not None:
            progress(query / len(source.queries))
        if not ranking_of_query.relevant:
            continue
        for metric in requested:
            values[metric.key][query] = metric.compute(ranking_of_query)
        relevant_counts = ranking_of_query.relevant_at_ranks(ranks)
        precision += relevant_counts / k
        recall += relevant_counts / ranking_of_query.relevant
        if depth is None:
            levels += ranking_of_query.precision_at_levels()
    # Queries without relevant items or without a ranking add 0 to the curves.
    count = int((~_excluded(source)).sum())
    weight = 1.0 / count if count else nan
    return RetrievalResult(
        protocol=resolved,
        metrics=requested,
        queries=source.queries,
        relevant=source.relevant,
        ranked=source.ranked,
        missing=source.missing,
        values=values,
        summary={
            metric.name: mean_of_defined(_contributions(values[metric.key], source))
            for metric in requested
        },
        levels=np.array(protocols.ELEVEN) if depth is None else np.zeros(0),
        precision_at_levels=levels * weight if depth is None else np.zeros(0),
        precision_at_ranks=precision * weight,
        recall_at_ranks=recall * weight,
        notes=(*source.notes, *_notes(source)),
    )


def _excluded(counts: "RetrievalResult | _RunLists | _GalleryLists") -> NDArray[np.bool_]:
    """Return a mask of the queries that the protocol excludes from every mean, (Q,)."""
    without_relevant = (counts.relevant == 0) & (counts.protocol.no_relevant == "exclude")
    missing = counts.missing & (counts.protocol.missing_queries == "exclude")
    return np.asarray(without_relevant | missing)


def _contributions(values: Floats, counts: "RetrievalResult | _RunLists | _GalleryLists") -> Floats:
    """Return values of a metric, undefined ones as 0 or NaN by the protocol, (Q,)."""
    zero = np.full(len(values), counts.protocol.no_relevant == "zero") | counts.missing
    filled = np.where(np.isnan(values) & zero, 0.0, values)
    return np.where(_excluded(counts), nan, filled)


def _notes(source: "_RunLists | _GalleryLists") -> Iterator[Note]:
    treatments = {"zero": "count as 0", "exclude": "are excluded"}
    without_relevant = int((source.relevant == 0).sum())
    if without_relevant:
        treatment = treatments[source.protocol.no_relevant]
        message = f"queries without relevant items {treatment}"
        yield Note("no-relevant", message, without_relevant)
    missing = int(source.missing.sum())
    if missing:
        treatment = treatments[source.protocol.missing_queries]
        yield Note("missing-query", f"judged queries without a ranking {treatment}", missing)


# --- a run: lists of any lengths


class _RunLists:
    """The ranked lists of a run."""

    def __init__(self, run: Run, protocol: Retrieval) -> None:
        self.protocol = protocol
        self.run = run
        relevant = run.judged >= protocol.relevant_from
        sums = np.concatenate([[0], np.cumsum(relevant)])
        self.queries, self.notes = run.queries, run.notes
        self.relevant = sums[run.judged_start[1:]] - sums[run.judged_start[:-1]]
        self.ranked, self.missing = np.diff(run.start), ~run.present

    def lists(self, depth: int | None) -> Iterator[tuple[int, RankedList]]:
        """Yield the index and the whole list of each query that has a ranking."""
        run, protocol = self.run, self.protocol
        trec = protocol.tie_break == "trec"
        score = run.score.astype(np.float32).astype(np.float64) if trec else run.score
        order = ranking.rank_lists(run.start, score, run.name_order if trec else None)
        score, grade = score[order], run.grade[order]
        binary = bool((run.judged == 1).all()) and protocol.relevant_from <= 1
        make = self._expected if protocol.tie_break == "expected" else self._ordered
        for query in range(len(run.queries)):
            rows = slice(run.start[query], run.start[query + 1])
            judged = run.judged[run.judged_start[query] : run.judged_start[query + 1]]
            if run.present[query]:
                yield query, make(query, score[rows], grade[rows], None if binary else judged)

    def _ordered(
        self, query: int, score: Floats, grade: Floats, judged: Floats | None
    ) -> RankedList:
        hits = hits_of(grade >= self.protocol.relevant_from)
        gains = None
        if judged is not None:
            graded = np.flatnonzero(grade > 0)
            ones = np.ones(len(graded), np.int64)
            gains = Gains(graded, ones, self._gain(grade[graded]), self._gain(judged))
        return Ordered(hits, int(self.relevant[query]), len(score), gains)

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
            has_gain = gain > 0
            gains = Gains(first[has_gain], size[has_gain], gain[has_gain], self._gain(judged))
        return Expected(groups, int(self.relevant[query]), len(score), gains)

    def _gain(self, grade: Floats) -> Floats:
        return grade if self.protocol.gain == "linear" else np.exp2(grade) - 1.0


def _sums(values: NDArray[np.generic], first: NDArray[np.int64]) -> Floats:
    """Return the sum of each group of adjacent values, by the index of its first value."""
    if not len(first):
        return np.zeros(0)
    return np.asarray(np.add.reduceat(values.astype(np.float64), first))


# --- a gallery: every query ranks every item


class _GalleryLists:
    """The ranked lists of a gallery, ranked in blocks of queries."""

    def __init__(self, table: Gallery, protocol: Retrieval, threads: int | None) -> None:
        self.protocol = protocol
        self.threads = threads
        queries, items = len(table.query_labels), len(table.gallery_labels)
        if protocol.exclude_self and queries != items:
            path = table.files[0].path if table.files else "gallery"
            hint = "--exclude-self requires a gallery equal to the queries"
            refuse(path, f"has {queries} queries and {items} items", hint)
        order = _tie_order(table, protocol)
        self.itself: Integers | None = None
        if protocol.exclude_self:
            indices = np.arange(items) if order is None else np.argsort(order)
            self.itself = indices.astype(np.int32)
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
        self.queries = table.queries
        self.relevant = ranking.count_relevant(self.relevance, threads)
        self.ranked = np.full(queries, max(0, items - protocol.exclude_self), np.int64)
        self.missing = np.zeros(queries, np.bool_)
        self.notes = table.notes
        if not protocol.exclude_self and np.array_equal(table.query, table.gallery):
            message = (
                "queries and gallery are equal, so each query retrieves itself; exclude it with "
                "--exclude-self"
            )
            self.notes = (*table.notes, Note("queries-in-gallery", message))

    def lists(self, depth: int | None) -> Iterator[tuple[int, RankedList]]:
        """Yield the index and the list of each query, to a depth or in full."""
        shallow = depth is not None and self.protocol.tie_break != "expected"
        for low, high in self._blocks(shallow):
            if shallow:
                yield from self._first(low, high, depth or 0)
            else:
                yield from self._all(low, high)

    def _blocks(self, shallow: bool) -> Iterator[tuple[int, int]]:
        """Yield ranges of queries whose scores and hits fit into memory."""
        counts = self.relevant
        max_queries = _MAX_BLOCK if self.codes else self.similarities.rows(_SCORES)
        low = 0
        while low < len(counts):
            high = min(low + max_queries, len(counts))
            if not shallow:
                sums = np.cumsum(counts[low:high])
                # The compiled loop takes 16 queries at a time.
                fit = int(np.searchsorted(sums, _HITS, side="right"))
                fit = fit // 16 * 16 or fit
                high = low + max(1, min(fit, high - low))
            yield low, high
            low = high

    def _all(self, low: int, high: int) -> Iterator[tuple[int, RankedList]]:
        """Yield the index and the full list of the queries of a block."""
        counts = self.relevant[low:high]
        if self.codes:
            is_full = high - low == len(self.relevant)
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
        length = int(self.ranked[0])
        for row in range(high - low):
            rows = slice(ranked.start[row], ranked.start[row + 1])
            if self.protocol.tie_break == "expected":
                groups = tie_groups(ranked.above[rows], ranked.level[rows])
                yield low + row, Expected(groups, int(counts[row]), length)
            else:
                yield low + row, Ordered(ranked.hits[rows], int(counts[row]), length)

    def _first(self, low: int, high: int, depth: int) -> Iterator[tuple[int, RankedList]]:
        """Yield the index and the first `depth` items of the queries of a block."""
        length = int(self.ranked[0])
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
            labels, of_query = self.gallery_labels[best[row]], self.query_labels[query]
            shared = labels == of_query if labels.ndim == 1 else (labels & of_query).any(axis=1)
            yield query, Ordered(hits_of(shared), int(self.relevant[query]), length)


def _tie_order(table: Gallery, protocol: Retrieval) -> NDArray[np.int64] | None:
    """Return the order that breaks ties, (N,); None for that of the gallery."""
    # trec_eval ranks tied items by name in descending byte order.
    if protocol.tie_break != "trec":
        return None
    names = table.items or tuple(map(str, range(len(table.gallery_labels))))
    encoded = [name.encode("utf-8", "surrogateescape") for name in names]
    return np.array(sorted(range(len(names)), key=lambda i: encoded[i], reverse=True), np.int64)
