"""Accumulate match results to counts and curves. See accumulate.py.

A curve needs the number of false positives above each true positive (see _curves.pyx). That is the
number of detections so far minus those that are not false positives. Only the latter, which are
few, are counted per threshold.

Classes are independent. Threads take them one by one; the result does not depend on their number.
"""

from cython cimport final
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from typing import TYPE_CHECKING

import numpy as np

from detap.core._curves cimport (
    area_under,
    average_of_levels,
    make_envelope,
    precision_at_hits,
    read_levels,
)
from detap.core._prefetch cimport detap_prefetch
from detap.tables._words cimport trailing_zeros

from detap.core.params import SUMMINGS, recall_targets

if TYPE_CHECKING:
    from detap.core.match_table import MatchFlags, Ranking
    from detap.core.accumulate import Scores
    from detap.core.params import MatchParams


cdef Bits bits_of(const uint8_t[:, ::1] table, Py_ssize_t rows):
    """View a byte table as A rows of N unsigned integers."""
    cdef Bits bits
    bits.bytes = <uint8_t*>&table[0, 0] if rows and table.shape[0] else NULL
    bits.rows = rows
    bits.width = table.shape[1] // rows if rows else 1
    return bits


cdef class Accumulator:
    """Counts and curves, class by class; `work` may run in several threads.

    Subclasses scan the ranking of a class.
    """

    jobs: int

    def __init__(self, params: MatchParams, scores: Scores, all_max_dets: bool):
        self.T, self.A = len(params.thresholds), len(params.area_ranges)
        self.M, self.R = len(params.max_dets), len(params.levels)
        self.first_max_dets = 0 if all_max_dets else self.M - 1
        self.all_thresholds = (~<uint64_t>0) >> (64 - self.T)
        self.levels = np.array(params.levels, np.float64)
        self.targets = recall_targets(np.asarray(self.levels), params.summing)
        self.summing, self.precision_eps = SUMMINGS.index(params.summing), params.precision_eps
        self.precision, self.slots = scores.interpolated.values, scores.interpolated.slots
        self.start_slot = scores.interpolated.start
        self.average, self.recall = scores.average, scores.recall
        self.positives, self.counts = scores.positives, scores.counts
        self.K = self.counts.shape[1]
        self.next_job = 0
        self.failed = False

    def __dealloc__(self):
        free(self.queue)

    cdef queue_jobs(self, jobs, sizes):
        """Queue the largest jobs first, to balance the threads."""
        cdef Py_ssize_t index
        self.jobs = len(jobs)
        self.queue = <int32_t*>malloc((self.jobs + 1) * sizeof(int32_t))
        if self.queue == NULL:
            raise MemoryError()
        for index, job in enumerate(sorted(jobs, key=lambda j: -sizes[j])):
            self.queue[index] = job

    def work(self) -> None:
        """Process queued classes until none is left."""
        cdef void* scratch
        cdef bint ready
        cdef long job
        with nogil:
            scratch = self.prepare()
            ready = scratch != NULL
            while ready and not self.failed:
                job = detap_next(&self.next_job)
                if job >= self.jobs:
                    break
                ready = self.run(self.queue[job], scratch)
            self.release(scratch)
            if not ready:
                self.failed = True
        if self.failed:
            raise MemoryError()

    cdef void* prepare(self) noexcept nogil:
        """Allocate the buffers of a thread; NULL if out of memory."""
        cdef Counters* s = <Counters*>calloc(1, sizeof(Counters))
        if s != NULL and not self.allocate_counters(s):
            self.release(s)
            return NULL
        return s

    cdef void release(self, void* scratch) noexcept nogil:
        if scratch != NULL:
            self.free_counters(<Counters*>scratch)
            free(scratch)

    cdef bint run(self, Py_ssize_t k, void* scratch) noexcept nogil:
        """Scan a class's ranking and write its scores; False if out of memory."""
        return False

    cdef bint allocate_counters(self, Counters* s) noexcept nogil:
        cdef Py_ssize_t size = self.M * self.A * self.T
        memset(s, 0, sizeof(Counters))
        s.dt_counts = <int32_t*>malloc(size * sizeof(int32_t))
        s.tp_counts = <int32_t*>malloc(size * sizeof(int32_t))
        s.not_fp_counts = <int32_t*>malloc(size * sizeof(int32_t))
        return s.dt_counts != NULL and s.tp_counts != NULL and s.not_fp_counts != NULL

    cdef void free_counters(self, Counters* s) noexcept nogil:
        free(s.dt_counts)
        free(s.tp_counts)
        free(s.not_fp_counts)
        free(s.hits)
        free(s.envelope)
        free(s.terms)

    cdef bint reset(self, Py_ssize_t max_hits, Counters* s) noexcept nogil:
        """Clear the counters and reserve `max_hits` hits per threshold."""
        cdef Py_ssize_t size = self.M * self.A * self.T
        cdef Py_ssize_t capacity = (self.M - self.first_max_dets) * self.A * self.T * max_hits + 1
        memset(s.dt_counts, 0, size * sizeof(int32_t))
        memset(s.tp_counts, 0, size * sizeof(int32_t))
        memset(s.not_fp_counts, 0, size * sizeof(int32_t))
        if capacity > s.hits_capacity:
            free(s.hits)
            s.hits = <int32_t*>malloc(capacity * sizeof(int32_t))
            s.hits_capacity = capacity if s.hits != NULL else 0
        return s.hits_capacity > 0 and self.reserve_curve(max_hits, s)

    cdef bint reserve_curve(self, Py_ssize_t max_hits, Counters* s) noexcept nogil:
        """Reserve buffers for one curve."""
        # `terms` also holds the interpolated values at the levels.
        cdef Py_ssize_t terms = (max_hits if max_hits > self.R else self.R) + 1
        if terms > s.terms_capacity:
            free(s.envelope)
            free(s.terms)
            s.envelope = <double*>malloc(terms * sizeof(double))
            s.terms = <double*>malloc(terms * sizeof(double))
            s.terms_capacity = terms if s.envelope != NULL and s.terms != NULL else 0
        return s.terms_capacity > 0

    cdef void record_hits(
        self, Py_ssize_t a, uint64_t tp, Py_ssize_t first_m, Py_ssize_t max_hits, Counters* s
    ) noexcept nogil:
        """Record a hit at the thresholds `tp`: the false positives above it."""
        cdef Py_ssize_t m, t, m_a
        cdef int32_t dt_count
        cdef int32_t* tp_counts
        cdef int32_t* hits
        cdef const int32_t* not_fp_counts
        cdef uint64_t bits
        for m in range(first_m, self.M):
            m_a = m * self.A + a
            tp_counts = s.tp_counts + m_a * self.T
            bits = tp
            if m < self.first_max_dets:
                while bits:
                    tp_counts[trailing_zeros(bits)] += 1
                    bits &= bits - 1
                continue
            dt_count, not_fp_counts = s.dt_counts[m_a], s.not_fp_counts + m_a * self.T
            hits = s.hits + (m_a - self.first_max_dets * self.A) * self.T * max_hits
            while bits:
                t = trailing_zeros(bits)
                hits[t * max_hits + tp_counts[t]] = dt_count - not_fp_counts[t]
                tp_counts[t] += 1
                bits &= bits - 1

    cdef void count_not_fp(
        self, Py_ssize_t a, uint64_t not_fp, Py_ssize_t first_m, Counters* s
    ) noexcept nogil:
        """Count a detection at thresholds where it is not a false positive."""
        cdef Py_ssize_t m
        cdef int32_t* counts
        cdef uint64_t bits
        for m in range(first_m, self.M):
            counts = s.not_fp_counts + (m * self.A + a) * self.T
            bits = not_fp
            while bits:
                counts[trailing_zeros(bits)] += 1
                bits &= bits - 1

    cdef void write_counts(
        self, Py_ssize_t k, int64_t within, int64_t duplicates, const Counters* s
    ) noexcept nogil:
        cdef Py_ssize_t last = (self.M - 1) * self.A
        cdef Py_ssize_t m_a_t = last * self.T
        self.counts[0, k] = self.positives[0, k]
        self.counts[3, k] = s.tp_counts[m_a_t]
        self.counts[4, k] = s.dt_counts[last] - s.not_fp_counts[m_a_t]
        self.counts[5, k] = duplicates
        self.counts[6, k] = within

    cdef void write_curves(self, Py_ssize_t k, Py_ssize_t max_hits, Counters* s) noexcept nogil:
        cdef Py_ssize_t a, t
        for a in range(self.A):
            for t in range(self.T):
                self.write_curve(k, a, t, max_hits, s, s)

    cdef void write_curve(
        self, Py_ssize_t k, Py_ssize_t a, Py_ssize_t t, Py_ssize_t max_hits, const Counters* s,
        Counters* buffers
    ) noexcept nogil:
        """Write one curve; `buffers` holds its intermediate values."""
        cdef Py_ssize_t areas = self.A, thresholds = self.T, limits = self.M, levels = self.R
        cdef Py_ssize_t first_max_dets = self.first_max_dets
        cdef Py_ssize_t m, r, hits, m_a_t, row, slot, start = self.start_slot[k]
        cdef double positives = <double>self.positives[a, k]
        if positives == 0.0:
            return  # undefined: the outputs are NaN already
        row = min(self.positives[a, k], self.start_slot[k + 1] - start - 1)
        for m in range(limits):
            m_a_t = (m * areas + a) * thresholds + t
            hits = s.tp_counts[m_a_t]
            self.recall[t, k, a, m] = <double>hits / positives
            if m < first_max_dets:
                continue
            m_a_t -= first_max_dets * areas * thresholds
            precision_at_hits(s.hits + m_a_t * max_hits, hits, self.precision_eps, buffers.envelope)
            make_envelope(buffers.envelope, hits)
            if levels == 0:
                if m == limits - 1:
                    self.average[t, k, a] = area_under(
                        buffers.envelope, hits, positives, buffers.terms
                    )
                continue
            read_levels(buffers.envelope, hits, positives, &self.targets[0], levels, buffers.terms)
            for r in range(levels):
                slot = start + self.slots[row, r]
                self.precision[m - first_max_dets, a, t, slot] = buffers.terms[r]
            if m == limits - 1:
                self.average[t, k, a] = average_of_levels(
                    buffers.terms, &self.levels[0], levels, self.summing
                )


cdef class TableAccumulator(Accumulator):
    """Counts and curves from a match table.

    Parameters
    ----------
    params, scores, all_max_dets
        As in :func:`detap.core.accumulate.accumulate`.
    ranking : Ranking
    match_flags : MatchFlags
        One column per detection, or per value of `code`.
    code : (N,) uint32
        Column of each detection; (0,) if the columns are the detections.
    labels : sequence of int
        Classes to process.
    """

    cdef const int32_t[::1] start, ranked
    cdef const uint32_t[::1] code
    cdef const uint8_t[::1] max_dets_index, duplicate
    cdef const uint8_t[:, ::1] true_positive_bytes, ignored_bytes
    cdef Bits true_positive, ignored
    cdef bint coded

    def __init__(
        self, params: MatchParams, scores: Scores, all_max_dets: bool, ranking: Ranking,
        match_flags: MatchFlags, code: NDArray[np.uint32], labels: Sequence[int],
    ):
        Accumulator.__init__(self, params, scores, all_max_dets)
        self.start, self.ranked = ranking.start, ranking.rows
        self.code, self.coded = code, len(code) > 0
        self.max_dets_index = match_flags.max_dets_index
        self.duplicate = match_flags.duplicate.view(np.uint8)
        self.true_positive_bytes = match_flags.true_positive.view(np.uint8)
        self.ignored_bytes = match_flags.ignored.view(np.uint8)
        self.true_positive = bits_of(self.true_positive_bytes, len(match_flags.max_dets_index))
        self.ignored = bits_of(self.ignored_bytes, len(match_flags.max_dets_index))
        self.queue_jobs(labels, np.diff(ranking.start).tolist())

    cdef bint run(self, Py_ssize_t k, void* scratch) noexcept nogil:
        cdef Counters* s = <Counters*>scratch
        cdef Py_ssize_t max_hits = self._count_hits(k)
        cdef int64_t duplicates
        if not self.reset(max_hits, s):
            return False
        duplicates = self.scan_ranking(k, max_hits, s)
        self.write_counts(k, self.start[k + 1] - self.start[k], duplicates, s)
        self.write_curves(k, max_hits, s)
        return True

    cdef int64_t scan_ranking(self, Py_ssize_t k, Py_ssize_t max_hits, Counters* s) noexcept nogil:
        """Count along a class's ranking; return the number of duplicates."""
        cdef Py_ssize_t i, a, m, row
        cdef uint64_t tp, not_fp
        cdef int64_t duplicates = 0
        for i in range(self.start[k], self.start[k + 1]):
            if i + PREFETCH_DISTANCE < self.start[k + 1]:
                self._prefetch(self.ranked[i + PREFETCH_DISTANCE])
            row = self._column(i)
            duplicates += self.duplicate[row]
            for a in range(self.A):
                tp = get_bits(&self.true_positive, a, row)
                not_fp = tp | get_bits(&self.ignored, a, row)
                if tp:
                    self.record_hits(a, tp, self.max_dets_index[row], max_hits, s)
                if not_fp == self.all_thresholds:
                    continue
                if not_fp:
                    self.count_not_fp(a, not_fp, self.max_dets_index[row], s)
                for m in range(self.max_dets_index[row], self.M):
                    s.dt_counts[m * self.A + a] += 1
        return duplicates

    cdef inline void _prefetch(self, Py_ssize_t row) noexcept nogil:
        cdef Py_ssize_t a
        if self.coded:
            detap_prefetch(&self.code[row])
            return
        for a in range(self.A):
            detap_prefetch(
                self.true_positive.bytes
                + (a * self.true_positive.rows + row) * self.true_positive.width
            )
            detap_prefetch(self.ignored.bytes + (a * self.ignored.rows + row) * self.ignored.width)
        detap_prefetch(&self.max_dets_index[row])
        detap_prefetch(&self.duplicate[row])

    cdef inline Py_ssize_t _column(self, Py_ssize_t index) noexcept nogil:
        return self.code[self.ranked[index]] if self.coded else self.ranked[index]

    cdef Py_ssize_t _count_hits(self, Py_ssize_t k) noexcept nogil:
        """Count the detections that are a true positive anywhere."""
        cdef Py_ssize_t i, a, row
        cdef Py_ssize_t count = 0
        for i in range(self.start[k], self.start[k + 1]):
            row = self._column(i)
            for a in range(self.A):
                if get_bits(&self.true_positive, a, row):
                    count += 1
                    break
        return count


@final
cdef class Chunk(TableAccumulator):
    """A chunk of the ranking of one class, counted from zero.

    Parameters
    ----------
    See TableAccumulator, with one class.
    """

    cdef Counters* counters
    cdef Py_ssize_t max_hits
    cdef int64_t within, duplicates

    def __init__(
        self, params: MatchParams, scores: Scores, all_max_dets: bool, ranking: Ranking,
        match_flags: MatchFlags, code: NDArray[np.uint32],
    ):
        cdef bint ready
        TableAccumulator.__init__(
            self, params, scores, all_max_dets, ranking, match_flags, code, [0]
        )
        with nogil:
            self.max_hits = self._count_hits(0)
            self.counters = <Counters*>self.prepare()
            ready = self.counters != NULL and self.reset(self.max_hits, self.counters)
            if ready:
                self.duplicates = self.scan_ranking(0, self.max_hits, self.counters)
        if not ready:
            raise MemoryError()
        self.within = self.start[1]
        self.start = self.ranked = None  # free memory while waiting for earlier chunks
        self.code = None

    def __dealloc__(self):
        self.release(self.counters)


@final
cdef class Chunks(Accumulator):
    """One class, merged from chunks of its ranking; `work` writes its curves.

    The false positives above a hit are those above it in its chunk plus those of earlier chunks.

    Parameters
    ----------
    params, scores, all_max_dets
        As in :func:`detap.core.accumulate.accumulate`.
    max_hits : int
        Detections of all chunks that are a true positive anywhere.
    """

    cdef Counters counters
    cdef Py_ssize_t max_hits
    cdef int64_t within, duplicates

    def __init__(self, params: MatchParams, scores: Scores, all_max_dets: bool, max_hits: int):
        Accumulator.__init__(self, params, scores, all_max_dets)
        self.max_hits = max_hits
        if not (
            self.allocate_counters(&self.counters) and self.reset(self.max_hits, &self.counters)
        ):
            raise MemoryError()
        self.queue_jobs(range(self.A * self.T), [0] * (self.A * self.T))

    def __dealloc__(self):
        self.free_counters(&self.counters)

    def append(self, Chunk chunk) -> None:
        """Append the next chunk of the ranking."""
        self.within += chunk.within
        self.duplicates += chunk.duplicates
        with nogil:
            self.append_counters(chunk.counters, chunk.max_hits)

    cdef void append_counters(
        self, const Counters* other, Py_ssize_t other_max_hits
    ) noexcept nogil:
        cdef Counters* s = &self.counters
        cdef Py_ssize_t m_a, m_a_t, hit, skipped = self.first_max_dets * self.A * self.T
        cdef int32_t above
        cdef int32_t* hits
        cdef const int32_t* other_hits
        for m_a in range(self.M * self.A):
            for m_a_t in range(m_a * self.T, (m_a + 1) * self.T):
                if m_a_t >= skipped:
                    above = s.dt_counts[m_a] - s.not_fp_counts[m_a_t]
                    hits = s.hits + (m_a_t - skipped) * self.max_hits + s.tp_counts[m_a_t]
                    other_hits = other.hits + (m_a_t - skipped) * other_max_hits
                    for hit in range(other.tp_counts[m_a_t]):
                        hits[hit] = above + other_hits[hit]
                s.tp_counts[m_a_t] += other.tp_counts[m_a_t]
                s.not_fp_counts[m_a_t] += other.not_fp_counts[m_a_t]
            s.dt_counts[m_a] += other.dt_counts[m_a]

    def count(self) -> None:
        """Write the counts."""
        self.write_counts(0, self.within, self.duplicates, &self.counters)

    cdef void* prepare(self) noexcept nogil:
        cdef Counters* buffers = <Counters*>calloc(1, sizeof(Counters))
        if buffers != NULL and not self.reserve_curve(self.max_hits, buffers):
            self.release(buffers)
            return NULL
        return buffers

    cdef bint run(self, Py_ssize_t k, void* scratch) noexcept nogil:
        self.write_curve(
            0, k // self.T, k % self.T, self.max_hits, &self.counters, <Counters*>scratch)
        return True
