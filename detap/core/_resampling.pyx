# cython: auto_pickle=False
"""Weighted counts and AP of many resamples at once. See resampling.py.

A resample is a weight per image: how often it was drawn. Matches do not change, only their weights.
One pass over a class's ranked detections serves LANES resamples, each a lane of the inner loops,
which the compiler vectorizes.

Most detections are false positives at every threshold. For these, a row of weights is added to one
count shared by all thresholds, in bytes.

The pass goes up from the lowest hit: the envelope is a running maximum, and no curve is stored.
Counts are summed down the ranking first, then subtracted row by row.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

import numpy as np

from detap.tables._words cimport ones, trailing_zeros


cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #if defined(_MSC_VER)
    #define DETAP_RESTRICT __restrict
    #define DETAP_WIDE
    #else
    #define DETAP_RESTRICT __restrict__
    /* Compiled for wider vectors too, selected at load time. Without fused arithmetic
       (-ffp-contract=off) every choice gives the same bits. */
    #if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) \
        && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    #define DETAP_WIDE __attribute__((target_clones("avx2", "default")))
    #else
    #define DETAP_WIDE
    #endif
    #endif

    #define DETAP_LANES 64

    DETAP_WIDE static void detap_add_bytes(
        uint8_t *DETAP_RESTRICT sum, const uint8_t *DETAP_RESTRICT w
    ) {
        for (int l = 0; l < DETAP_LANES; l++) sum[l] = (uint8_t)(sum[l] + w[l]);
    }
    DETAP_WIDE static void detap_flush_bytes(
        int32_t *DETAP_RESTRICT total, uint8_t *DETAP_RESTRICT sum, int32_t sign
    ) {
        for (int l = 0; l < DETAP_LANES; l++) total[l] += sign * (int32_t)sum[l];
        memset(sum, 0, DETAP_LANES);
    }
    DETAP_WIDE static void detap_add(
        int32_t *DETAP_RESTRICT total, const uint8_t *DETAP_RESTRICT w, int32_t factor
    ) {
        for (int l = 0; l < DETAP_LANES; l++) total[l] += factor * (int32_t)w[l];
    }
    /* Update the envelope with the precision at a true positive. */
    DETAP_WIDE static void detap_update_envelope(
        const int32_t *DETAP_RESTRICT tp_counts, const int32_t *DETAP_RESTRICT common_fp,
        const int32_t *DETAP_RESTRICT fp_counts, double *DETAP_RESTRICT envelope,
        double precision_eps
    ) {
        for (int l = 0; l < DETAP_LANES; l++) {
            double hits = (double)tp_counts[l];
            double fp = (double)(common_fp[l] + fp_counts[l]);
            double precision = hits / ((fp + hits) + precision_eps);
            envelope[l] = precision > envelope[l] ? precision : envelope[l];
        }
    }
    DETAP_WIDE static void detap_integrate(
        double *DETAP_RESTRICT area, const double *DETAP_RESTRICT envelope,
        const int32_t *DETAP_RESTRICT tp_counts, int32_t *DETAP_RESTRICT reached
    ) {
        for (int l = 0; l < DETAP_LANES; l++) {
            area[l] += envelope[l] * (double)(reached[l] - tp_counts[l]);
            reached[l] = tp_counts[l];
        }
    }
    static void detap_read_levels(
        double *DETAP_RESTRICT area, const double *DETAP_RESTRICT envelope,
        const int32_t *DETAP_RESTRICT tp_counts, int32_t *DETAP_RESTRICT reached,
        const uint8_t *const *levels
    ) {
        for (int l = 0; l < DETAP_LANES; l++) {
            int32_t level = levels[l][tp_counts[l]];
            area[l] += envelope[l] * (double)(reached[l] - level);
            reached[l] = level;
        }
    }
    """
    enum:
        LANES "DETAP_LANES"
    void detap_add_bytes(uint8_t* sums, const uint8_t* w) noexcept nogil
    void detap_flush_bytes(int32_t* total, uint8_t* sums, int32_t sign) noexcept nogil
    void detap_add(int32_t* total, const uint8_t* w, int32_t factor) noexcept nogil
    void detap_update_envelope(
        const int32_t* tp_counts, const int32_t* common_fp, const int32_t* fp_counts,
        double* envelope, double precision_eps,
    ) noexcept nogil
    void detap_integrate(
        double* area, const double* envelope, const int32_t* tp_counts, int32_t* reached
    ) noexcept nogil
    void detap_read_levels(
        double* area, const double* envelope, const int32_t* tp_counts, int32_t* reached,
        const uint8_t* const* levels,
    ) noexcept nogil


WIDTH: int = LANES
"""Resamples per pass."""


cdef enum:
    MAX_THRESHOLDS = 64


cdef struct Lanes:
    int32_t common_fp[LANES]                    # false positives at every threshold
    int32_t positives[LANES]
    int32_t tp_counts[MAX_THRESHOLDS * LANES]
    int32_t fp_counts[MAX_THRESHOLDS * LANES]   # without common_fp
    int32_t reached[MAX_THRESHOLDS * LANES]     # recall levels
    double envelope[MAX_THRESHOLDS * LANES]
    double area[MAX_THRESHOLDS * LANES]
    uint8_t bytes[LANES]                        # partial sum of common_fp
    int32_t* recall_tp                          # (recall metrics, LANES)
    uint8_t* table              # weight of the levels reached by each number of hits, lane by lane
    Py_ssize_t table_capacity
    const uint8_t* rows[LANES]                  # into `table`


cdef class Resampler:
    """One area range of one detector; `work` may run in several threads."""

    cdef const uint8_t[:, :, ::1] weights      # (blocks, images, LANES)
    cdef const double[::1] targets
    cdef bint trapezoid
    cdef double precision_eps
    cdef Py_ssize_t classes, precisions, recalls, thresholds, max_byte_rows
    cdef uint64_t all_thresholds
    cdef const uint64_t[::1] precision_bits, recall_bits
    cdef const uint8_t[::1] recall_max_dets
    cdef double[:, :, ::1] precision_out, recall_out
    # Counted detections: those of class k are ``event_start[k] : event_end[k]``, by rank.
    cdef const int64_t[::1] event_start, event_end
    cdef const int32_t[::1] image
    cdef const uint8_t[::1] max_dets_index
    cdef const uint64_t[::1] tp, fp
    cdef const int64_t[::1] truth_start
    cdef const int32_t[::1] truth_image        # by class
    cdef const int64_t[::1] queue              # classes, the largest first
    cdef Py_ssize_t next_job
    cdef bint failed

    def __init__(
        self, *, event_start: NDArray[np.int64], event_end: NDArray[np.int64],
        image: NDArray[np.int32], max_dets_index: NDArray[np.uint8], tp: NDArray[np.uint64],
        fp: NDArray[np.uint64], truth_start: NDArray[np.int64], truth_image: NDArray[np.int32],
        weights: NDArray[np.uint8], max_weight: int, thresholds: int,
        targets: NDArray[np.float64], trapezoid: bool, precision_eps: float,
        precision_bits: NDArray[np.uint64], recall_bits: NDArray[np.uint64],
        recall_max_dets: NDArray[np.uint8], precision_out: NDArray[np.float64],
        recall_out: NDArray[np.float64],
    ):
        self.event_start, self.event_end, self.image = event_start, event_end, image
        self.max_dets_index, self.tp, self.fp = max_dets_index, tp, fp
        self.truth_start, self.truth_image = truth_start, truth_image
        self.weights, self.targets = weights, targets
        self.trapezoid, self.precision_eps = trapezoid, precision_eps
        self.thresholds, self.classes = thresholds, len(event_start)
        self.all_thresholds = (~<uint64_t>0) >> (64 - self.thresholds)
        self.queue = np.argsort(event_start - event_end, kind="stable")
        self.precision_bits, self.recall_bits = precision_bits, recall_bits
        self.recall_max_dets = recall_max_dets
        self.precisions, self.recalls = len(precision_bits), len(recall_bits)
        self.precision_out, self.recall_out = precision_out, recall_out
        # Rows of weights that fit into a sum of bytes.
        self.max_byte_rows = 255 // max(max_weight, 1)

    def work(self) -> None:
        """Resample classes, LANES resamples at a time, until none is left."""
        cdef uint8_t[::1] memory = np.zeros(sizeof(Lanes), np.uint8)
        cdef int32_t[:, ::1] recall_tp = np.empty((self.recalls + 1, LANES), np.int32)
        cdef Lanes* s = <Lanes*>&memory[0]
        cdef Py_ssize_t job, blocks = self.weights.shape[0]
        s.recall_tp = &recall_tp[0, 0]
        while not self.failed and self.next_job < self.classes * blocks:
            job = self.next_job  # with the GIL: each is taken once
            self.next_job += 1
            with nogil:
                if not self._resample(self.queue[job // blocks], job % blocks, s):
                    self.failed = True
        free(s.table)
        if self.failed:
            raise MemoryError()

    cdef bint _resample(self, Py_ssize_t k, Py_ssize_t block, Lanes* s) noexcept nogil:
        cdef Py_ssize_t i
        cdef const uint8_t* weights = &self.weights[block, 0, 0]
        memset(s.positives, 0, LANES * sizeof(int32_t))
        for i in range(self.truth_start[k], self.truth_start[k + 1]):
            detap_add(s.positives, weights + <Py_ssize_t>self.truth_image[i] * LANES, 1)
        self._count_down(k, weights, s)
        if self.precisions:
            if self.targets.shape[0] and not self._tabulate_levels(s):
                return False
            self._integrate_up(k, weights, s)
        self._write(k, block, s)
        return True

    cdef void _count_down(self, Py_ssize_t k, const uint8_t* weights, Lanes* s) noexcept nogil:
        """Count true and false positives down to the last true positive."""
        cdef Py_ssize_t size = self.thresholds * LANES
        cdef Py_ssize_t i, r
        cdef Py_ssize_t rows = 0
        cdef const uint8_t* w
        cdef uint64_t bits
        memset(s.common_fp, 0, LANES * sizeof(int32_t))
        memset(s.recall_tp, 0, self.recalls * LANES * sizeof(int32_t))
        memset(s.tp_counts, 0, size * sizeof(int32_t))
        memset(s.fp_counts, 0, size * sizeof(int32_t))
        for i in range(self.event_start[k], self.event_end[k]):
            w = weights + <Py_ssize_t>self.image[i] * LANES
            if self.fp[i] == self.all_thresholds:
                detap_add_bytes(s.bytes, w)
                rows += 1
                if rows == self.max_byte_rows:
                    detap_flush_bytes(s.common_fp, s.bytes, 1)
                    rows = 0
                continue
            for r in range(self.recalls):
                bits = self.tp[i] & self.recall_bits[r]
                if bits and self.max_dets_index[i] <= self.recall_max_dets[r]:
                    detap_add(s.recall_tp + r * LANES, w, ones(bits))
            if self.precisions == 0:
                continue
            bits = self.tp[i]
            while bits:
                detap_add(s.tp_counts + trailing_zeros(bits) * LANES, w, 1)
                bits &= bits - 1
            bits = self.fp[i]
            while bits:
                detap_add(s.fp_counts + trailing_zeros(bits) * LANES, w, 1)
                bits &= bits - 1
        detap_flush_bytes(s.common_fp, s.bytes, 1)

    cdef bint _tabulate_levels(self, Lanes* s) noexcept nogil:
        """Write the weight of the recall levels that each number of hits reaches, per lane."""
        # Level 0 is reached by the first hit; another if hits / positives, divided as doubles, is
        # at least the target: the same comparison as in plain evaluation. Each level weighs 1; for
        # the trapezoid 2, but the first 1. Tables from other sources may have more hits than
        # positives.
        cdef Py_ssize_t l, t, size = 0
        cdef Py_ssize_t j
        cdef int32_t hits, positives, filled
        cdef int32_t[LANES] max_hits
        cdef uint8_t* row
        for l in range(LANES):
            max_hits[l] = s.positives[l]
            for t in range(self.thresholds):
                max_hits[l] = max(max_hits[l], s.tp_counts[t * LANES + l])
            size += max_hits[l] + 1
        if size > s.table_capacity:
            row = <uint8_t*>realloc(s.table, size)
            if row == NULL:
                return False
            s.table = row
            s.table_capacity = size
        row = s.table
        for l in range(LANES):
            positives = s.positives[l]
            s.rows[l] = row
            filled = 0
            for j in range(self.targets.shape[0]):
                # The product rounds to the right integer, or else is between two.
                hits = max(<int32_t>(self.targets[j] * positives), 1)
                if <double>hits / positives < self.targets[j]:
                    hits += 1
                if hits > positives:
                    break
                if hits > filled:
                    memset(row + filled, self._level_weight(j), hits - filled)
                    filled = hits
            else:
                j = self.targets.shape[0]
            memset(row + filled, self._level_weight(j), max_hits[l] + 1 - filled)
            row[0] = 0
            row += max_hits[l] + 1
        return True

    cdef inline int _level_weight(self, Py_ssize_t levels) noexcept nogil:
        """Return the total weight of the first levels."""
        return <int>(2 * levels - 1 if self.trapezoid and levels else levels)

    cdef void _integrate_up(self, Py_ssize_t k, const uint8_t* weights, Lanes* s) noexcept nogil:
        """Go up the ranking, subtracting the counts, and integrate precision over recall."""
        # Of true positives with no false positive between them the lowest has the largest
        # precision. So the envelope changes only at the first one above a false positive; the
        # recall since the last change is multiplied with it at once.
        cdef Py_ssize_t size = self.thresholds * LANES
        cdef Py_ssize_t i, l, t, lane
        cdef Py_ssize_t rows = 0
        cdef uint64_t changed = self.all_thresholds
        cdef const uint8_t* w
        cdef uint64_t bits
        memset(s.envelope, 0, size * sizeof(double))
        memset(s.area, 0, size * sizeof(double))
        for t in range(self.thresholds):
            for l in range(LANES):
                s.reached[t * LANES + l] = s.tp_counts[t * LANES + l]
                if self.targets.shape[0]:
                    s.reached[t * LANES + l] = s.rows[l][s.tp_counts[t * LANES + l]]
        for i in range(self.event_end[k] - 1, self.event_start[k] - 1, -1):
            w = weights + <Py_ssize_t>self.image[i] * LANES
            if self.fp[i] == self.all_thresholds:
                changed = self.all_thresholds
                detap_add_bytes(s.bytes, w)
                rows += 1
                if rows == self.max_byte_rows:
                    detap_flush_bytes(s.common_fp, s.bytes, -1)
                    rows = 0
                continue
            if rows:
                detap_flush_bytes(s.common_fp, s.bytes, -1)
                rows = 0
            bits = self.tp[i]
            while bits:
                t = trailing_zeros(bits)
                lane = t * LANES
                if (changed >> t) & 1:
                    self._add_area(lane, s)
                    detap_update_envelope(
                        s.tp_counts + lane, s.common_fp, s.fp_counts + lane, s.envelope + lane,
                        self.precision_eps,
                    )
                detap_add(s.tp_counts + lane, w, -1)
                bits &= bits - 1
            changed &= ~self.tp[i]
            changed |= self.fp[i]
            bits = self.fp[i]
            while bits:
                detap_add(s.fp_counts + trailing_zeros(bits) * LANES, w, -1)
                bits &= bits - 1
        for t in range(self.thresholds):
            self._add_area(t * LANES, s)
        memset(s.bytes, 0, LANES)

    cdef inline void _add_area(self, Py_ssize_t lane, Lanes* s) noexcept nogil:
        """Add the recall since the last change of the envelope, times the envelope."""
        if self.targets.shape[0]:
            detap_read_levels(
                s.area + lane, s.envelope + lane, s.tp_counts + lane, s.reached + lane, s.rows
            )
        else:
            detap_integrate(s.area + lane, s.envelope + lane, s.tp_counts + lane, s.reached + lane)

    cdef void _write(self, Py_ssize_t k, Py_ssize_t block, const Lanes* s) noexcept nogil:
        """Write each metric of the class, summed over thresholds; undefined is NaN."""
        cdef Py_ssize_t q, l, b
        cdef uint64_t bits
        cdef double total
        cdef double divisor = <double>self.targets.shape[0]
        if self.trapezoid:
            divisor = 2 * divisor - 2
        for l in range(LANES):
            b = block * LANES + l
            if s.positives[l] == 0:
                continue
            for q in range(self.recalls):
                if b < self.recall_out.shape[2]:
                    self.recall_out[q, k, b] = (
                        <double>s.recall_tp[q * LANES + l] / <double>s.positives[l]
                    )
            for q in range(self.precisions):
                if b >= self.precision_out.shape[2]:
                    break
                total = 0.0
                bits = self.precision_bits[q]
                while bits:
                    total += s.area[trailing_zeros(bits) * LANES + l]
                    bits &= bits - 1
                self.precision_out[q, k, b] = (
                    total / (divisor if divisor else <double>s.positives[l])
                )
