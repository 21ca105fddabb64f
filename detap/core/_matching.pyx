"""Match detections to ground truths and accumulate counts and curves, without the GIL.

One pass over a class's ranked detections computes IoUs, matches and counts. Threads take classes
one by one; the result does not depend on their number. See matching.py.
"""

# The T thresholds are bits of one integer: a detection is matched at all of them at once. The order
# of its candidate ground truths is the same at each threshold; at each it matches the first one that
# it reaches and that is still unmatched.
#
# A curve needs the number of false positives above each true positive (see _curves.pyx): the number
# of detections so far minus those that are not false positives. Only the latter, which are few, are
# counted per threshold.

from cython cimport final
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

import numpy as np

from detap.core._curves cimport (
    Summing, area_under, average_of_levels, make_envelope, precision_at_hits, read_levels
)
from detap.core._ordering cimport Keyed, descending_key, group_rows, sort_if_needed, sort_by_key
from detap.core._overlap cimport overlap
from detap.tables._words cimport trailing_zeros

from detap.core.arrays import Boxes, Pairs, Scores
from detap.core.match_table import MatchTable
from detap.core.params import SUMMINGS, MatchParams, recall_targets


cdef extern from *:
    """
    #if defined(_MSC_VER)
    #define detap_prefetch(address)
    #else
    #define detap_prefetch(address) __builtin_prefetch(address)
    #endif
    """
    void detap_prefetch(const void* address) noexcept nogil


cdef enum:
    PREFETCH_DISTANCE = 12  # ranked rows are scattered in memory


# --- thresholds as bits


cdef struct Bits:
    # (A, N) unsigned integers of `width` bytes: the thresholds as bits.
    uint8_t* bytes
    Py_ssize_t rows
    Py_ssize_t width


cdef inline void put_bits(
    const Bits* bits, Py_ssize_t a, Py_ssize_t row, uint64_t value
) noexcept nogil:
    cdef Py_ssize_t index = a * bits.rows + row
    if bits.width == 1:
        bits.bytes[index] = <uint8_t>value
    elif bits.width == 2:
        (<uint16_t*>bits.bytes)[index] = <uint16_t>value
    elif bits.width == 4:
        (<uint32_t*>bits.bytes)[index] = <uint32_t>value
    else:
        (<uint64_t*>bits.bytes)[index] = value


cdef inline uint64_t get_bits(const Bits* bits, Py_ssize_t a, Py_ssize_t row) noexcept nogil:
    cdef Py_ssize_t index = a * bits.rows + row
    if bits.width == 1:
        return bits.bytes[index]
    if bits.width == 2:
        return (<uint16_t*>bits.bytes)[index]
    if bits.width == 4:
        return (<uint32_t*>bits.bytes)[index]
    return (<uint64_t*>bits.bytes)[index]


cdef Bits bits_of(const uint8_t[:, ::1] table, Py_ssize_t rows):
    """View a byte table as A rows of N unsigned integers."""
    cdef Bits bits
    bits.bytes = <uint8_t*>&table[0, 0] if rows and table.shape[0] else NULL
    bits.rows = rows
    bits.width = table.shape[1] // rows if rows else 1
    return bits


# --- accumulation


cdef struct Truth:
    double corners[4]
    double overlap_area
    int32_t row
    bint crowd                # matches any number of detections
    bint unmatchable          # its matches are not true positives


cdef struct Candidate:
    double similarity
    uint64_t reached          # thresholds, as bits
    int32_t truth             # index into Scratch.truths


cdef struct Scratch:
    int32_t* dt_counts        # (M, A) detections so far
    int32_t* tp_counts        # (M, A, T) true positives so far
    int32_t* not_fp_counts    # (M, A, T) detections that are not false positives
    int32_t* hits             # (M', A, T, max_hits) for max dets with precision; see _curves.pyx
    double* envelope
    double* terms             # also the interpolated values at the levels
    # Of matching:
    Keyed* ranked
    Keyed* spare
    int32_t* image_rank       # per image: detections of the class so far
    int32_t* truth_begin      # per image: first of its ground truths in `truths`
    int32_t* truth_count      # per image
    Truth* truths             # of the class, image by image
    uint64_t* matched         # per ground truth and area range: thresholds as bits
    uint8_t* ignored          # per ground truth and area range
    Candidate* candidates     # ground truths that the detection reaches, best first


cdef void* allocate(list arrays, Py_ssize_t size) except NULL:
    """Return memory of 0 that lives as long as the arrays."""
    array = np.zeros(size + 1, np.uint8)
    cdef uint8_t[::1] memory = array
    arrays.append(array)
    return &memory[0]


def largest_first(sizes: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the classes by descending size, which balances threads."""
    return np.argsort(-sizes, kind="stable").astype(np.int32)


cdef class Accumulator:
    """Counts and curves, class by class; subclasses scan the ranking of a class."""

    cdef readonly Py_ssize_t T, R, K, A, M
    cdef Py_ssize_t first_max_dets  # index of the first max dets with precision
    cdef uint64_t all_thresholds    # as bits
    cdef const double[::1] levels, targets
    cdef Summing summing
    cdef double precision_eps
    cdef const int32_t[::1] queue   # classes, the largest first, to balance the threads
    cdef Py_ssize_t next_job
    cdef const int64_t[::1] max_hits        # of each class
    cdef Py_ssize_t images, max_rows, max_truths    # 0 without matching
    # Outputs, as in accumulate.Scores.
    cdef double[:, :, :, ::1] precision
    cdef const int64_t[::1] start_slot
    cdef const int32_t[:, ::1] slots
    cdef double[:, :, ::1] average
    cdef double[:, :, :, ::1] recall
    cdef int64_t[:, ::1] positives, counts

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

    def work(self) -> None:
        """Process classes until none is left; may run in several threads."""
        cdef Scratch s
        cdef Py_ssize_t job, hits = np.max(self.max_hits, initial=0), g = self.max_truths
        cdef Py_ssize_t size = self.M * self.A * self.T * sizeof(int32_t)
        cdef Py_ssize_t curve = max(hits, self.R) + 1
        arrays = []
        s.dt_counts = <int32_t*>allocate(arrays, size)
        s.tp_counts = <int32_t*>allocate(arrays, size)
        s.not_fp_counts = <int32_t*>allocate(arrays, size)
        s.hits = <int32_t*>allocate(arrays, size // self.M * (self.M - self.first_max_dets) * hits)
        s.envelope = <double*>allocate(arrays, curve * sizeof(double))
        s.terms = <double*>allocate(arrays, curve * sizeof(double))
        s.ranked = <Keyed*>allocate(arrays, self.max_rows * sizeof(Keyed))
        s.spare = <Keyed*>allocate(arrays, self.max_rows * sizeof(Keyed))
        s.image_rank = <int32_t*>allocate(arrays, self.images * sizeof(int32_t))
        s.truth_begin = <int32_t*>allocate(arrays, self.images * sizeof(int32_t))
        s.truth_count = <int32_t*>allocate(arrays, self.images * sizeof(int32_t))
        s.truths = <Truth*>allocate(arrays, g * sizeof(Truth))
        s.matched = <uint64_t*>allocate(arrays, g * self.A * sizeof(uint64_t))
        s.ignored = <uint8_t*>allocate(arrays, g * self.A)
        s.candidates = <Candidate*>allocate(arrays, g * sizeof(Candidate))
        while self.next_job < self.queue.shape[0]:
            job = self.next_job  # with the GIL: each class is taken once
            self.next_job += 1
            with nogil:
                memset(s.dt_counts, 0, size)
                memset(s.tp_counts, 0, size)
                memset(s.not_fp_counts, 0, size)
                self.run(self.queue[job], self.max_hits[self.queue[job]], &s)

    cdef void run(self, Py_ssize_t k, Py_ssize_t max_hits, Scratch* s) noexcept nogil:
        """Scan a class's ranking and write its scores."""

    cdef void record_hits(
        self, Py_ssize_t a, uint64_t tp, Py_ssize_t first_m, Py_ssize_t max_hits, Scratch* s
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
        self, Py_ssize_t a, uint64_t not_fp, Py_ssize_t first_m, Scratch* s
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
        self, Py_ssize_t k, int64_t within, int64_t duplicates, const Scratch* s
    ) noexcept nogil:
        cdef Py_ssize_t last = (self.M - 1) * self.A
        cdef Py_ssize_t m_a_t = last * self.T
        self.counts[0, k] = self.positives[0, k]
        self.counts[3, k] = s.tp_counts[m_a_t]
        self.counts[4, k] = s.dt_counts[last] - s.not_fp_counts[m_a_t]
        self.counts[5, k] = duplicates
        self.counts[6, k] = within

    cdef void write_curves(self, Py_ssize_t k, Py_ssize_t max_hits, Scratch* s) noexcept nogil:
        cdef Py_ssize_t a, t
        for a in range(self.A):
            for t in range(self.T):
                self._write_curve(k, a, t, max_hits, s)

    cdef void _write_curve(
        self, Py_ssize_t k, Py_ssize_t a, Py_ssize_t t, Py_ssize_t max_hits, Scratch* s
    ) noexcept nogil:
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
            precision_at_hits(s.hits + m_a_t * max_hits, hits, self.precision_eps, s.envelope)
            make_envelope(s.envelope, hits)
            if levels == 0:
                if m == limits - 1:
                    self.average[t, k, a] = area_under(s.envelope, hits, positives, s.terms)
                continue
            read_levels(s.envelope, hits, positives, &self.targets[0], levels, s.terms)
            for r in range(levels):
                slot = start + self.slots[row, r]
                self.precision[m - first_max_dets, a, t, slot] = s.terms[r]
            if m == limits - 1:
                self.average[t, k, a] = average_of_levels(
                    s.terms, &self.levels[0], levels, self.summing
                )


@final
cdef class TableAccumulator(Accumulator):
    """Counts and curves from a match table."""

    cdef const int32_t[::1] start, ranked
    cdef const uint8_t[::1] max_dets_index, duplicate
    cdef const uint8_t[:, ::1] true_positive_bytes, ignored_bytes
    cdef Bits true_positive, ignored

    def __init__(
        self, params: MatchParams, scores: Scores, all_max_dets: bool, match_table: MatchTable
    ):
        Accumulator.__init__(self, params, scores, all_max_dets)
        self.start, self.ranked = match_table.ranking
        self.max_dets_index = match_table.max_dets_index
        self.duplicate = match_table.duplicate.view(np.uint8)
        self.true_positive_bytes = match_table.true_positive.view(np.uint8)
        self.ignored_bytes = match_table.ignored.view(np.uint8)
        self.true_positive = bits_of(self.true_positive_bytes, len(match_table))
        self.ignored = bits_of(self.ignored_bytes, len(match_table))
        hits = np.flatnonzero(np.bitwise_or.reduce(match_table.true_positive, axis=0))
        self.max_hits = np.bincount(match_table.label[hits], minlength=self.K)
        self.queue = largest_first(np.diff(self.start))

    cdef void run(self, Py_ssize_t k, Py_ssize_t max_hits, Scratch* s) noexcept nogil:
        cdef Py_ssize_t i, a, m, row
        cdef uint64_t tp, not_fp
        cdef int64_t duplicates = 0
        for i in range(self.start[k], self.start[k + 1]):
            row = self.ranked[i]
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
        self.write_counts(k, self.start[k + 1] - self.start[k], duplicates, s)
        self.write_curves(k, max_hits, s)


# --- matching


cdef inline Py_ssize_t insert_candidate(
    Candidate* candidates, Py_ssize_t count, double similarity, uint64_t reached, int32_t truth,
    bint last_of_equal,
) noexcept nogil:
    cdef Py_ssize_t j = count
    while j > 0 and (
        similarity > candidates[j - 1].similarity
        or (last_of_equal and similarity == candidates[j - 1].similarity)
    ):
        candidates[j] = candidates[j - 1]
        j -= 1
    candidates[j].similarity = similarity
    candidates[j].reached = reached
    candidates[j].truth = truth
    return count + 1


@final
cdef class Matcher(Accumulator):
    """Inputs and outputs of matching; `work` may run in several threads."""

    # Detections (N) and ground truths (G).
    cdef const int32_t[::1] dt_image, dt_label, dt_rank, gt_image, gt_label
    cdef const double[::1] dt_score, dt_overlap_area, dt_area, gt_overlap_area, gt_area
    cdef const double[:, ::1] dt_corners, gt_corners
    cdef const uint8_t[::1] gt_ignored, gt_crowd, gt_unmatchable
    # Precomputed pairs (P); boxes are compared if there are none.
    cdef bint paired
    cdef const int64_t[::1] pair_start
    cdef const int32_t[::1] pair_truth
    cdef const double[::1] pair_similarity
    cdef int32_t[::1] truth_index   # (G) index into `truths` of its class
    # MatchParams.
    cdef const double[::1] thresholds, area_low, area_high
    cdef const int64_t[::1] max_dets
    cdef bint strict, best_unmatched, last_of_equal, ties_by_image
    cdef double pixel_offset
    # Rows by class.
    cdef int32_t[::1] dt_start, gt_start, dt_order, gt_order
    # Columns of MatchTable, if kept.
    cdef bint keep
    cdef Bits true_positive, ignored
    cdef uint8_t[::1] max_dets_index, duplicate
    cdef double[::1] max_iou
    cdef int32_t[:, ::1] matched_gt
    cdef int32_t[::1] ranked          # rows by class and descending score
    cdef const int32_t[:, ::1] pair_index   # (A, T) row of `matched_gt`, or -1

    def __init__(
        self, detections: Boxes, truths: Boxes, flags: tuple[NDArray[np.uint8], ...],
        pairs: Pairs | None, rank: NDArray[np.int32], params: MatchParams,
        max_dets: NDArray[np.int64], images: int, scores: Scores, all_max_dets: bool,
    ):
        Accumulator.__init__(self, params, scores, all_max_dets)
        self.dt_image, self.dt_label, self.dt_rank = detections.image, detections.label, rank
        self.dt_score = detections.score
        self.dt_corners, self.dt_overlap_area = detections.corners, detections.overlap_area
        self.dt_area = detections.area
        self.gt_image, self.gt_label, self.gt_corners = truths.image, truths.label, truths.corners
        self.gt_overlap_area, self.gt_area = truths.overlap_area, truths.area
        self.gt_ignored, self.gt_crowd, self.gt_unmatchable = flags
        self.images = images
        self.paired = pairs is not None
        if self.paired:
            self.pair_start, self.pair_truth, self.pair_similarity = pairs
        self.thresholds = np.array(params.thresholds, np.float64)
        self.area_low = np.array([low for low, _ in params.area_ranges], np.float64)
        self.area_high = np.array([high for _, high in params.area_ranges], np.float64)
        self.max_dets = max_dets
        self.strict, self.best_unmatched = params.strict, params.best_unmatched
        self.last_of_equal, self.ties_by_image = params.last_of_equal, params.ties_by_image
        self.pixel_offset = 1.0 if params.inclusive_pixels else 0.0
        self._group()

    def keep_matches(self, match_table: MatchTable, ranked: NDArray[np.int32]) -> None:
        """Store match results, and the rows by class and descending score."""
        self.keep, self.ranked = True, ranked
        self.true_positive = bits_of(match_table.true_positive.view(np.uint8), len(match_table))
        self.ignored = bits_of(match_table.ignored.view(np.uint8), len(match_table))
        self.max_dets_index = match_table.max_dets_index
        self.duplicate = match_table.duplicate.view(np.uint8)
        self.max_iou, self.matched_gt = match_table.max_iou, match_table.matched_gt
        pair_index = np.full((self.A, self.T), -1, np.int32)
        for index, (area, threshold) in enumerate(match_table.area_iou_pairs):
            pair_index[area, threshold] = index
        self.pair_index = pair_index

    cdef _group(self):
        cdef Py_ssize_t n = self.dt_label.shape[0], g = self.gt_label.shape[0]
        self.dt_start = np.zeros(self.K + 1, np.int32)
        self.gt_start = np.zeros(self.K + 1, np.int32)
        self.dt_order, self.gt_order = np.empty(n + 1, np.int32), np.empty(g + 1, np.int32)
        self.truth_index = np.empty(g if self.paired else 0, np.int32)
        with nogil:
            group_rows(
                &self.dt_label[0] if n else NULL, n, self.K, &self.dt_start[0], &self.dt_order[0]
            )
            group_rows(
                &self.gt_label[0] if g else NULL, g, self.K, &self.gt_start[0], &self.gt_order[0]
            )
        dt_counts, gt_counts = np.diff(self.dt_start), np.diff(self.gt_start)
        self.queue = largest_first(dt_counts + gt_counts)
        self.max_hits = gt_counts.astype(np.int64)  # each ground truth is matched at most once
        self.max_truths = gt_counts.max(initial=0)
        self.max_rows = max(dt_counts.max(initial=0), self.max_truths)

    cdef void run(self, Py_ssize_t k, Py_ssize_t g, Scratch* s) noexcept nogil:
        self._load_truths(k, g, s)
        self._match_class(k, g, s)
        self.write_curves(k, g, s)

    cdef Keyed* _by_image(
        self, const int32_t* rows, Py_ssize_t count, const int32_t* image, Keyed* items,
        Keyed* spare,
    ) noexcept nogil:
        """Order rows by image, then by file order."""
        cdef Py_ssize_t i
        for i in range(count):
            items[i].row = rows[i]
            items[i].key = image[rows[i]]
        return sort_if_needed(items, spare, count)

    cdef void _load_truths(self, Py_ssize_t k, Py_ssize_t g, Scratch* s) noexcept nogil:
        """Load the ground truths of a class and set their ignore flags."""
        cdef Py_ssize_t areas = self.A
        cdef Py_ssize_t i, a
        cdef int32_t row
        cdef double area
        cdef const Keyed* ordered
        if g == 0:
            return
        ordered = self._by_image(
            &self.gt_order[self.gt_start[k]], g, &self.gt_image[0], s.ranked, s.spare
        )
        for i in range(g):
            row = ordered[i].row
            if self.paired:
                self.truth_index[row] = <int32_t>i
            else:
                memcpy(s.truths[i].corners, &self.gt_corners[row, 0], 4 * sizeof(double))
                s.truths[i].overlap_area = self.gt_overlap_area[row]
            s.truths[i].crowd = self.gt_crowd[row]
            s.truths[i].unmatchable = self.gt_unmatchable[row]
            s.truths[i].row = row
            if s.truth_count[self.gt_image[row]] == 0:
                s.truth_begin[self.gt_image[row]] = <int32_t>i
            s.truth_count[self.gt_image[row]] += 1
            area = self.gt_area[row]
            for a in range(areas):
                s.matched[i * areas + a] = 0
                s.ignored[i * areas + a] = (
                    self.gt_ignored[row] or area < self.area_low[a] or area > self.area_high[a]
                )
                if not s.ignored[i * areas + a]:
                    self.positives[a, k] += 1

    cdef Keyed* _rank(
        self, const int32_t* rows, Py_ssize_t n, Keyed* ranked, Keyed* spare
    ) noexcept nogil:
        """Rank a class's detections by descending score; break ties by protocol."""
        cdef Keyed* items = ranked
        cdef Py_ssize_t i
        if self.ties_by_image:
            ranked = self._by_image(rows, n, &self.dt_image[0], ranked, spare)
            spare = spare if ranked == items else items
        else:
            for i in range(n):
                ranked[i].row = rows[i]
        for i in range(n):
            ranked[i].key = descending_key(self.dt_score[ranked[i].row])
        return sort_by_key(ranked, spare, n)

    cdef inline uint64_t _thresholds_reached(self, double similarity) noexcept nogil:
        """Return the ascending thresholds that a similarity reaches, as bits."""
        cdef Py_ssize_t thresholds = self.T
        cdef Py_ssize_t t = 0
        if self.strict:
            while t < thresholds and similarity > self.thresholds[t]:
                t += 1
        else:
            while t < thresholds and similarity >= self.thresholds[t]:
                t += 1
        return (~<uint64_t>0) >> (64 - t) if t else 0

    cdef Py_ssize_t _find_candidates(self, int32_t row, Scratch* s, double* best) noexcept nogil:
        """List the ground truths that a detection reaches at any threshold, best first."""
        # Equal ones are in file order, or reversed, by protocol. If only the best may be matched,
        # only it is listed. Pairs are in file order.
        cdef int32_t truth, image = self.dt_image[row]
        cdef int64_t begin = s.truth_begin[image], end = begin + s.truth_count[image], i
        cdef Py_ssize_t count = 0
        cdef double similarity
        cdef uint64_t reached
        if self.paired:
            begin, end = self.pair_start[row], self.pair_start[row + 1]
        best[0] = 0.0
        for i in range(begin, end):
            if self.paired:
                truth, similarity = self.truth_index[self.pair_truth[i]], self.pair_similarity[i]
            else:
                truth = <int32_t>i
                similarity = overlap(
                    &self.dt_corners[row, 0], self.dt_overlap_area[row], s.truths[i].corners,
                    s.truths[i].overlap_area, s.truths[i].crowd, self.pixel_offset,
                )
            if similarity > best[0]:
                best[0] = similarity
            reached = self._thresholds_reached(similarity)
            if reached:
                count = insert_candidate(
                    s.candidates, count, similarity, reached, truth, self.last_of_equal
                )
        return count if self.best_unmatched or count == 0 else 1

    cdef void _match_class(self, Py_ssize_t k, Py_ssize_t g, Scratch* s) noexcept nogil:
        """Match the detections of a class in descending score order."""
        cdef Py_ssize_t areas = self.A, max_dets_count = self.M
        cdef Py_ssize_t n = self.dt_start[k + 1] - self.dt_start[k]
        cdef Py_ssize_t i, a, m, first_m, n_near
        cdef int32_t row, rank
        cdef int64_t within = 0
        cdef int64_t duplicates = 0
        cdef bint inside
        cdef double best, area
        cdef uint64_t unmatched
        cdef const int32_t* rows = &self.dt_order[self.dt_start[k]]
        cdef const Keyed* ranked = self._rank(rows, n, s.ranked, s.spare) if n else NULL
        for i in range(n):
            if i + PREFETCH_DISTANCE < n and not self.paired:
                row = ranked[i + PREFETCH_DISTANCE].row
                detap_prefetch(&self.dt_corners[row, 0])
                detap_prefetch(&self.dt_overlap_area[row])
                detap_prefetch(&self.dt_image[row])
            row = ranked[i].row
            rank = s.image_rank[self.dt_image[row]]
            s.image_rank[self.dt_image[row]] += 1
            if self.dt_rank.shape[0]:
                rank = self.dt_rank[row]
            if rank >= self.max_dets[max_dets_count - 1]:
                continue
            within += 1
            first_m = max_dets_count - 1
            while first_m > 0 and rank < self.max_dets[first_m - 1]:
                first_m -= 1
            n_near = self._find_candidates(row, s, &best)
            if self.keep:
                self.max_dets_index[row] = <uint8_t>first_m
                self.max_iou[row] = best
            area = self.dt_area[row]
            for a in range(areas):
                inside = self.area_low[a] <= area <= self.area_high[a]
                if n_near:
                    unmatched = self._match(row, a, n_near, first_m, g, inside, s)
                    if a == 0 and inside and (unmatched & 1) and self._is_duplicate(n_near, s):
                        duplicates += 1
                        if self.keep:
                            self.duplicate[row] = 1
                if inside:
                    for m in range(first_m, max_dets_count):
                        s.dt_counts[m * areas + a] += 1
                elif self.keep and n_near == 0:
                    put_bits(&self.ignored, a, row, self.all_thresholds)
        for i in range(n):
            s.image_rank[self.dt_image[ranked[i].row]] = 0
            if self.keep:
                self.ranked[self.dt_start[k] + i] = ranked[i].row
        for i in range(g):
            s.truth_count[self.gt_image[s.truths[i].row]] = 0
        self.write_counts(k, within, duplicates, s)
        self.counts[1, k] = g - self.positives[0, k]
        self.counts[2, k] = n

    cdef uint64_t _match(
        self, int32_t row, Py_ssize_t a, Py_ssize_t n_candidates, Py_ssize_t first_m, Py_ssize_t g,
        bint inside, Scratch* s,
    ) noexcept nogil:
        """Match a detection in one area range; return the thresholds without a match."""
        cdef Py_ssize_t areas = self.A
        cdef uint64_t unmatched = ~<uint64_t>0
        cdef uint64_t bits
        cdef uint64_t tp = 0
        cdef uint64_t ignored_bits = 0
        cdef Py_ssize_t i, index
        cdef const Truth* truth
        cdef int ignored
        for ignored in range(2):  # those that are not ignored are matched first
            for i in range(n_candidates):
                index = s.candidates[i].truth * areas + a
                if s.ignored[index] != ignored:
                    continue
                bits = s.candidates[i].reached & unmatched
                # If only the best is a candidate, ignored ones match any number of detections.
                truth = &s.truths[s.candidates[i].truth]
                if not (truth.crowd or (ignored and not self.best_unmatched)):
                    bits &= ~s.matched[index]
                if bits == 0:
                    continue
                s.matched[index] |= bits
                unmatched &= ~bits
                if ignored:
                    ignored_bits |= bits
                elif not truth.unmatchable:
                    tp |= bits
                if self.keep and self.matched_gt.shape[0] and not truth.unmatchable:
                    self._store_match(row, a, bits, truth.row)
        if tp:
            self.record_hits(a, tp, first_m, g, s)
        if inside:
            self.count_not_fp(a, tp | ignored_bits, first_m, s)
        if self.keep:
            put_bits(&self.true_positive, a, row, tp)
            put_bits(&self.ignored, a, row, ignored_bits if inside else self.all_thresholds & ~tp)
        return unmatched

    cdef bint _is_duplicate(self, Py_ssize_t n_candidates, Scratch* s) noexcept nogil:
        """Return True if a false positive reaches a counted ground truth."""
        cdef Py_ssize_t i
        for i in range(n_candidates):
            if (s.candidates[i].reached & 1) and not s.ignored[s.candidates[i].truth * self.A]:
                return True
        return False

    cdef void _store_match(
        self, int32_t row, Py_ssize_t a, uint64_t bits, int32_t truth
    ) noexcept nogil:
        cdef int32_t pair_index
        while bits:
            pair_index = self.pair_index[a, trailing_zeros(bits)]
            if pair_index >= 0:
                self.matched_gt[pair_index, row] = truth
            bits &= bits - 1
