"""From what became of each detection to counts and curves, without the GIL. See accumulate.py.

Precision improves only at a hit, so a curve needs only how many false positives stand above each
(see _curves.pyx). Those are not counted detection by detection and threshold by threshold: they are
the detections seen so far, less those that were something else (`excused`), which are few.

Classes are independent: threads take them one by one, and no result depends on how many there are.
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
    """Return the words that stand in a table of bytes, A rows of N bits."""
    cdef Bits bits
    bits.bytes = <uint8_t*>&table[0, 0] if rows and table.shape[0] else NULL
    bits.rows = rows
    bits.width = table.shape[1] // rows if rows else 1
    return bits


cdef class Accumulator:
    """Counts and curves of one class after another; `work` may be called from any threads.

    What runs down the ranking of a class is a subclass.
    """

    jobs: int

    def __init__(self, rules: MatchParams, scores: Scores, all_limits: bool):
        self.T, self.A = len(rules.thresholds), len(rules.area_ranges)
        self.M, self.R = len(rules.limits), len(rules.levels)
        self.first = 0 if all_limits else self.M - 1
        self.every = (~<uint64_t>0) >> (64 - self.T)
        self.levels = np.array(rules.levels, np.float64)
        self.due = recall_targets(np.asarray(self.levels), rules.summing)
        self.summing, self.guard = SUMMINGS.index(rules.summing), rules.guard
        self.precision, self.slots = scores.interpolated.values, scores.interpolated.slots
        self.start_slot = scores.interpolated.start
        self.average, self.recall = scores.average, scores.recall
        self.positives, self.counts = scores.positives, scores.counts
        self.K = self.counts.shape[1]
        self.next_job = 0
        self.failed = False

    def __dealloc__(self):
        free(self.queue)

    cdef line_up(self, jobs, sizes):
        """Queue the largest jobs first, so that no thread is left with one at the end."""
        cdef Py_ssize_t place
        self.jobs = len(jobs)
        self.queue = <int32_t*>malloc((self.jobs + 1) * sizeof(int32_t))
        if self.queue == NULL:
            raise MemoryError()
        for place, job in enumerate(sorted(jobs, key=lambda j: -sizes[j])):
            self.queue[place] = job

    def work(self) -> None:
        """Take classes until none is left."""
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
        """Return what a thread needs, lanes here, or NULL where memory ran out."""
        cdef Lanes* s = <Lanes*>calloc(1, sizeof(Lanes))
        if s != NULL and not self.prepare_lanes(s):
            self.release(s)
            return NULL
        return s

    cdef void release(self, void* scratch) noexcept nogil:
        if scratch != NULL:
            self.release_lanes(<Lanes*>scratch)
            free(scratch)

    cdef bint run(self, Py_ssize_t k, void* scratch) noexcept nogil:
        """Run down a class's ranking and write what comes of it; False where memory ran out."""
        return False

    cdef bint prepare_lanes(self, Lanes* s) noexcept nogil:
        cdef Py_ssize_t lanes = self.M * self.A * self.T
        memset(s, 0, sizeof(Lanes))
        s.seen = <int32_t*>malloc(lanes * sizeof(int32_t))
        s.found = <int32_t*>malloc(lanes * sizeof(int32_t))
        s.excused = <int32_t*>malloc(lanes * sizeof(int32_t))
        return s.seen != NULL and s.found != NULL and s.excused != NULL

    cdef void release_lanes(self, Lanes* s) noexcept nogil:
        free(s.seen)
        free(s.found)
        free(s.excused)
        free(s.hits)
        free(s.envelope)
        free(s.terms)

    cdef bint begin(self, Py_ssize_t most_hits, Lanes* s) noexcept nogil:
        """Clear the counts and make room for so many hits at each threshold."""
        cdef Py_ssize_t lanes = self.M * self.A * self.T
        cdef Py_ssize_t room = (self.M - self.first) * self.A * self.T * most_hits + 1
        memset(s.seen, 0, lanes * sizeof(int32_t))
        memset(s.found, 0, lanes * sizeof(int32_t))
        memset(s.excused, 0, lanes * sizeof(int32_t))
        if room > s.hits_room:
            free(s.hits)
            s.hits = <int32_t*>malloc(room * sizeof(int32_t))
            s.hits_room = room if s.hits != NULL else 0
        return s.hits_room > 0 and self.make_terms(most_hits, s)

    cdef bint make_terms(self, Py_ssize_t most_hits, Lanes* s) noexcept nogil:
        """Make room for one curve."""
        # Room for the levels too: a curve's interpolated values pass through `terms`.
        cdef Py_ssize_t terms = (most_hits if most_hits > self.R else self.R) + 1
        if terms > s.terms_room:
            free(s.envelope)
            free(s.terms)
            s.envelope = <double*>malloc(terms * sizeof(double))
            s.terms = <double*>malloc(terms * sizeof(double))
            s.terms_room = terms if s.envelope != NULL and s.terms != NULL else 0
        return s.terms_room > 0

    cdef void record(
        self, Py_ssize_t a, uint64_t good, Py_ssize_t m_from, Py_ssize_t most_hits, Lanes* s
    ) noexcept nogil:
        """Record a hit at each of the thresholds `good`: the false positives above it."""
        cdef Py_ssize_t m, t, cell
        cdef int32_t seen
        cdef int32_t* found
        cdef int32_t* hits
        cdef const int32_t* excused
        cdef uint64_t bits
        for m in range(m_from, self.M):
            cell = m * self.A + a
            found = s.found + cell * self.T
            bits = good
            if m < self.first:
                while bits:
                    found[trailing_zeros(bits)] += 1
                    bits &= bits - 1
                continue
            seen, excused = s.seen[cell], s.excused + cell * self.T
            hits = s.hits + (cell - self.first * self.A) * self.T * most_hits
            while bits:
                t = trailing_zeros(bits)
                hits[t * most_hits + found[t]] = seen - excused[t]
                found[t] += 1
                bits &= bits - 1

    cdef void excuse(
        self, Py_ssize_t a, uint64_t excused, Py_ssize_t m_from, Lanes* s
    ) noexcept nogil:
        """Note at which thresholds a detection that is seen is no false positive."""
        cdef Py_ssize_t m
        cdef int32_t* counts
        cdef uint64_t bits
        for m in range(m_from, self.M):
            counts = s.excused + (m * self.A + a) * self.T
            bits = excused
            while bits:
                counts[trailing_zeros(bits)] += 1
                bits &= bits - 1

    cdef void write_counts(
        self, Py_ssize_t k, int64_t within, int64_t duplicates, const Lanes* s
    ) noexcept nogil:
        cdef Py_ssize_t last = (self.M - 1) * self.A
        cdef Py_ssize_t lane = last * self.T
        self.counts[0, k] = self.positives[0, k]
        self.counts[3, k] = s.found[lane]
        self.counts[4, k] = s.seen[last] - s.excused[lane]
        self.counts[5, k] = duplicates
        self.counts[6, k] = within

    cdef void write_curves(self, Py_ssize_t k, Py_ssize_t most_hits, Lanes* s) noexcept nogil:
        cdef Py_ssize_t a, t
        for a in range(self.A):
            for t in range(self.T):
                self.write_curve(k, a, t, most_hits, s, s)

    cdef void write_curve(
        self, Py_ssize_t k, Py_ssize_t a, Py_ssize_t t, Py_ssize_t most_hits, const Lanes* s,
        Lanes* own
    ) noexcept nogil:
        """Write what comes of a threshold and area range; `own` has room for a curve."""
        cdef Py_ssize_t areas = self.A, thresholds = self.T, limits = self.M, levels = self.R
        cdef Py_ssize_t first = self.first
        cdef Py_ssize_t m, r, hits, lane, row, start = self.start_slot[k]
        cdef double positives = <double>self.positives[a, k]
        if positives == 0.0:
            return  # undefined: the outputs were filled with NaN
        row = min(self.positives[a, k], self.start_slot[k + 1] - start - 1)
        for m in range(limits):
            lane = (m * areas + a) * thresholds + t
            hits = s.found[lane]
            self.recall[t, k, a, m] = <double>hits / positives
            if m < first:
                continue
            lane -= first * areas * thresholds
            precision_at_hits(s.hits + lane * most_hits, hits, self.guard, own.envelope)
            make_envelope(own.envelope, hits)
            if levels == 0:
                if m == limits - 1:
                    self.average[t, k, a] = area_under(own.envelope, hits, positives, own.terms)
                continue
            read_levels(own.envelope, hits, positives, &self.due[0], levels, own.terms)
            for r in range(levels):
                self.precision[m - first, a, t, start + self.slots[row, r]] = own.terms[r]
            if m == limits - 1:
                self.average[t, k, a] = average_of_levels(
                    own.terms, &self.levels[0], levels, self.summing
                )


cdef class Replay(Accumulator):
    """Counts and curves from what became of each detection.

    Parameters
    ----------
    rules, scores, all_limits
        As for accumulate.
    ranking : Ranking
    match_flags : MatchFlags
        Their columns are those of the detections, or those that `code` names.
    code : (N,) uint32
        The column of each detection; (0,) where each has its own.
    labels : sequence of int
        The classes that are wanted.
    """

    cdef const int32_t[::1] start, ranked
    cdef const uint32_t[::1] code
    cdef const uint8_t[::1] max_dets_index, duplicate
    cdef const uint8_t[:, ::1] true_positive_bytes, ignored_bytes
    cdef Bits true_positive, ignored
    cdef bint coded

    def __init__(
        self, rules: MatchParams, scores: Scores, all_limits: bool, ranking: Ranking,
        match_flags: MatchFlags, code: NDArray[np.uint32], labels: Sequence[int],
    ):
        Accumulator.__init__(self, rules, scores, all_limits)
        self.start, self.ranked = ranking.start, ranking.rows
        self.code, self.coded = code, len(code) > 0
        self.max_dets_index = match_flags.max_dets_index
        self.duplicate = match_flags.duplicate.view(np.uint8)
        self.true_positive_bytes = match_flags.true_positive.view(np.uint8)
        self.ignored_bytes = match_flags.ignored.view(np.uint8)
        self.true_positive = bits_of(self.true_positive_bytes, len(match_flags.max_dets_index))
        self.ignored = bits_of(self.ignored_bytes, len(match_flags.max_dets_index))
        self.line_up(labels, np.diff(ranking.start).tolist())

    cdef bint run(self, Py_ssize_t k, void* scratch) noexcept nogil:
        cdef Lanes* s = <Lanes*>scratch
        cdef Py_ssize_t most_hits = self._most_hits(k)
        cdef int64_t duplicates
        if not self.begin(most_hits, s):
            return False
        duplicates = self.run_down(k, most_hits, s)
        self.write_counts(k, self.start[k + 1] - self.start[k], duplicates, s)
        self.write_curves(k, most_hits, s)
        return True

    cdef int64_t run_down(self, Py_ssize_t k, Py_ssize_t most_hits, Lanes* s) noexcept nogil:
        """Go down a class's ranking; return how many are duplicates."""
        cdef Py_ssize_t i, a, m, row
        cdef uint64_t found, right
        cdef int64_t duplicates = 0
        for i in range(self.start[k], self.start[k + 1]):
            if i + AHEAD < self.start[k + 1]:
                self._fetch(self.ranked[i + AHEAD])
            row = self._column(i)
            duplicates += self.duplicate[row]
            for a in range(self.A):
                found = get_bits(&self.true_positive, a, row)
                right = found | get_bits(&self.ignored, a, row)
                if found:
                    self.record(a, found, self.max_dets_index[row], most_hits, s)
                if right == self.every:
                    continue
                if right:
                    self.excuse(a, right, self.max_dets_index[row], s)
                for m in range(self.max_dets_index[row], self.M):
                    s.seen[m * self.A + a] += 1
        return duplicates

    cdef inline void _fetch(self, Py_ssize_t row) noexcept nogil:
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

    cdef inline Py_ssize_t _column(self, Py_ssize_t place) noexcept nogil:
        return self.code[self.ranked[place]] if self.coded else self.ranked[place]

    cdef Py_ssize_t _most_hits(self, Py_ssize_t k) noexcept nogil:
        """Return how many detections of a class are a hit anywhere."""
        cdef Py_ssize_t i, a, row
        cdef Py_ssize_t most = 0
        for i in range(self.start[k], self.start[k + 1]):
            row = self._column(i)
            for a in range(self.A):
                if get_bits(&self.true_positive, a, row):
                    most += 1
                    break
        return most


@final
cdef class Chunk(Replay):
    """A chunk of the ranking of one class, gone down as if nothing stood above it.

    Parameters
    ----------
    as for Replay, of which there is one class
    """

    cdef Lanes* lanes
    cdef Py_ssize_t most
    cdef int64_t within, duplicates

    def __init__(
        self, rules: MatchParams, scores: Scores, all_limits: bool, ranking: Ranking,
        match_flags: MatchFlags, code: NDArray[np.uint32],
    ):
        cdef bint ready
        Replay.__init__(self, rules, scores, all_limits, ranking, match_flags, code, [0])
        with nogil:
            self.most = self._most_hits(0)
            self.lanes = <Lanes*>self.prepare()
            ready = self.lanes != NULL and self.begin(self.most, self.lanes)
            if ready:
                self.duplicates = self.run_down(0, self.most, self.lanes)
        if not ready:
            raise MemoryError()
        self.within = self.start[1]
        self.start = self.ranked = None  # it may wait for those above it
        self.code = None

    def __dealloc__(self):
        self.release(self.lanes)


@final
cdef class Chunks(Accumulator):
    """One class, of which a chunk after another was gone down; `work` writes its curves.

    False positives above a hit are those above it in its own chunk, and those of all chunks
    before.

    Parameters
    ----------
    rules, scores, all_limits
        As for accumulate.
    most_hits : int
        How many detections of all chunks are a hit anywhere.
    """

    cdef Lanes lanes
    cdef Py_ssize_t most
    cdef int64_t within, duplicates

    def __init__(self, rules: MatchParams, scores: Scores, all_limits: bool, most_hits: int):
        Accumulator.__init__(self, rules, scores, all_limits)
        self.most = most_hits
        if not (self.prepare_lanes(&self.lanes) and self.begin(self.most, &self.lanes)):
            raise MemoryError()
        self.line_up(range(self.A * self.T), [0] * (self.A * self.T))

    def __dealloc__(self):
        self.release_lanes(&self.lanes)

    def append(self, Chunk chunk) -> None:
        """Put a chunk below those before."""
        self.within += chunk.within
        self.duplicates += chunk.duplicates
        with nogil:
            self.put_below(chunk.lanes, chunk.most)

    cdef void put_below(self, const Lanes* below, Py_ssize_t most) noexcept nogil:
        cdef Lanes* s = &self.lanes
        cdef Py_ssize_t cell, lane, hit, skipped = self.first * self.A * self.T
        cdef int32_t above
        cdef int32_t* hits
        cdef const int32_t* added
        for cell in range(self.M * self.A):
            for lane in range(cell * self.T, (cell + 1) * self.T):
                if lane >= skipped:
                    above = s.seen[cell] - s.excused[lane]
                    hits = s.hits + (lane - skipped) * self.most + s.found[lane]
                    added = below.hits + (lane - skipped) * most
                    for hit in range(below.found[lane]):
                        hits[hit] = above + added[hit]
                s.found[lane] += below.found[lane]
                s.excused[lane] += below.excused[lane]
            s.seen[cell] += below.seen[cell]

    def count(self) -> None:
        """Write the counts."""
        self.write_counts(0, self.within, self.duplicates, &self.lanes)

    cdef void* prepare(self) noexcept nogil:
        cdef Lanes* own = <Lanes*>calloc(1, sizeof(Lanes))
        if own != NULL and not self.make_terms(self.most, own):
            self.release(own)
            return NULL
        return own

    cdef bint run(self, Py_ssize_t k, void* scratch) noexcept nogil:
        self.write_curve(
            0, k // self.T, k % self.T, self.most, &self.lanes, <Lanes*>scratch)
        return True
