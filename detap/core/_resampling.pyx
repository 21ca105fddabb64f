"""Weighted counts and average precision for many resamples at once. See resampling.py.

A resample is a weight per image: how often it was drawn. Matches do not change with it, only how
much each counts. So one pass over a class's ranked detections serves LANES resamples side by side,
each a lane of the inner loops, which the compiler turns into vector instructions.

Most detections are false positives at every threshold. For these a pass adds a row of weights to
one count that all thresholds share, in bytes, LANES at a time.

A pass goes up from the lowest hit, so that the envelope is a running maximum and no curve is ever
stored: the counts at the bottom are summed first, then taken away again row by row.
"""

from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memset

from detap.core._accumulate cimport detap_next
from detap.core._ordering cimport group_rows
from detap.tables._words cimport ones, trailing_zeros


cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #if defined(_MSC_VER)
    #define DETAP_ONLY __restrict
    #define DETAP_WIDE
    #else
    #define DETAP_ONLY __restrict__
    /* The same source for wider vectors, chosen when the module is loaded. No fused arithmetic
       comes with it (-ffp-contract=off), so that every choice gives the same bits. */
    #if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) \
        && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    #define DETAP_WIDE __attribute__((target_clones("avx2", "default")))
    #else
    #define DETAP_WIDE
    #endif
    #endif

    #define DETAP_LANES 64

    DETAP_WIDE static void detap_add_bytes(uint8_t *DETAP_ONLY sum, const uint8_t *DETAP_ONLY w) {
        for (int l = 0; l < DETAP_LANES; l++) sum[l] = (uint8_t)(sum[l] + w[l]);
    }
    DETAP_WIDE static void detap_move(
        int32_t *DETAP_ONLY total, uint8_t *DETAP_ONLY sum, int32_t sign
    ) {
        for (int l = 0; l < DETAP_LANES; l++) total[l] += sign * (int32_t)sum[l];
        memset(sum, 0, DETAP_LANES);
    }
    DETAP_WIDE static void detap_add(
        int32_t *DETAP_ONLY total, const uint8_t *DETAP_ONLY w, int32_t factor
    ) {
        for (int l = 0; l < DETAP_LANES; l++) total[l] += factor * (int32_t)w[l];
    }
    /* A true positive, seen from below: its precision enters the envelope. */
    DETAP_WIDE static void detap_rise(
        const int32_t *DETAP_ONLY found, const int32_t *DETAP_ONLY common,
        const int32_t *DETAP_ONLY own, double *DETAP_ONLY envelope, double guard
    ) {
        for (int l = 0; l < DETAP_LANES; l++) {
            double hits = (double)found[l];
            double precision = hits / (((double)(common[l] + own[l]) + hits) + guard);
            envelope[l] = precision > envelope[l] ? precision : envelope[l];
        }
    }
    DETAP_WIDE static void detap_integrate(
        double *DETAP_ONLY area, const double *DETAP_ONLY envelope,
        const int32_t *DETAP_ONLY found, int32_t *DETAP_ONLY reached
    ) {
        for (int l = 0; l < DETAP_LANES; l++) {
            area[l] += envelope[l] * (double)(reached[l] - found[l]);
            reached[l] = found[l];
        }
    }
    static void detap_read_levels(
        double *DETAP_ONLY area, const double *DETAP_ONLY envelope,
        const int32_t *DETAP_ONLY found, int32_t *DETAP_ONLY reached,
        const uint8_t *const *levels
    ) {
        for (int l = 0; l < DETAP_LANES; l++) {
            int32_t now = levels[l][found[l]];
            area[l] += envelope[l] * (double)(reached[l] - now);
            reached[l] = now;
        }
    }
    """
    enum:
        LANES "DETAP_LANES"
    void detap_add_bytes(uint8_t* sums, const uint8_t* w) noexcept nogil
    void detap_move(int32_t* total, uint8_t* sums, int32_t sign) noexcept nogil
    void detap_add(int32_t* total, const uint8_t* w, int32_t factor) noexcept nogil
    void detap_rise(
        const int32_t* found, const int32_t* common, const int32_t* own, double* envelope,
        double guard,
    ) noexcept nogil
    void detap_integrate(
        double* area, const double* envelope, const int32_t* found, int32_t* reached
    ) noexcept nogil
    void detap_read_levels(
        double* area, const double* envelope, const int32_t* found, int32_t* reached,
        const uint8_t* const* levels,
    ) noexcept nogil


WIDTH: int = LANES
"""How many resamples one pass serves."""


def count_draws(const uint64_t[::1] raw, uint8_t[:, ::1] weights, Py_ssize_t lane) -> bool:
    """Draw images by random words and count them: one resample, one column of `weights`.

    Parameters
    ----------
    raw : (I,) uint64
        Random bits; their upper half, times I, over 2**32 is the image drawn.
    weights : (I, LANES) uint8
        Zero in the column.
    lane : int
        The column.

    Returns
    -------
    bool
        False where a weight is too large to be held.
    """
    cdef uint64_t images = weights.shape[0]
    cdef Py_ssize_t i
    cdef uint64_t image
    with nogil:
        for i in range(raw.shape[0]):
            image = ((raw[i] >> 32) * images) >> 32
            if weights[image, lane] == 255:
                with gil:
                    return False
            weights[image, lane] += 1
    return True


cdef struct Event:
    int32_t image
    uint8_t bucket
    uint64_t good
    uint64_t wrong


cdef struct Lanes:
    int32_t* common           # (LANES,) false positives at every threshold, so far
    int32_t* positives        # (LANES,)
    int32_t* recalled         # (recall measures, LANES)
    int32_t* found            # (thresholds, LANES)
    int32_t* own              # likewise: false positives at that threshold but not at all
    int32_t* reached          # recall levels reached
    double* envelope
    double* area
    uint8_t* bytes            # (LANES,) a short sum
    uint8_t* table            # levels passed by each number of hits, a row per number of positives
    Py_ssize_t table_room
    const uint8_t** rows      # (LANES,) into `table`


cdef class Resampler:
    """One area range of one detector; `work` may be called from any number of threads."""

    cdef const uint8_t[:, :, ::1] weights      # (blocks, images, LANES)
    cdef const double[::1] due
    cdef bint trapezoid
    cdef double guard
    cdef Py_ssize_t classes, thresholds, precisions, recalls, most_rows
    cdef const uint64_t[::1] precision_bits, recall_bits
    cdef const uint8_t[::1] recall_bucket
    cdef double[:, :, ::1] precision_out, recall_out
    cdef Event* events
    cdef int32_t* event_start
    cdef int32_t* truth_start
    cdef int32_t* truth_image
    cdef int32_t* queue
    cdef long next_job
    cdef bint failed

    def __init__(
        self, *, image: NDArray[np.int32], start: NDArray[np.int32], bucket: NDArray[np.uint8],
        good: NDArray[np.uint64], ignored: NDArray[np.uint64], truth_image: NDArray[np.int32],
        truth_label: NDArray[np.int32], weights: NDArray[np.uint8], heaviest: int, thresholds: int,
        due: NDArray[np.float64], trapezoid: bool, guard: float, precision_bits: NDArray[np.uint64],
        recall_bits: NDArray[np.uint64], recall_bucket: NDArray[np.uint8],
        precision_out: NDArray[np.float64], recall_out: NDArray[np.float64],
    ):
        self.weights, self.due, self.trapezoid, self.guard = weights, due, trapezoid, guard
        self.thresholds = thresholds
        self.classes = len(start) - 1
        self.precision_bits, self.recall_bits = precision_bits, recall_bits
        self.recall_bucket = recall_bucket
        self.precisions, self.recalls = len(precision_bits), len(recall_bits)
        self.precision_out, self.recall_out = precision_out, recall_out
        # So many rows of weights fit into a sum of bytes.
        self.most_rows = 255 // max(heaviest, 1)
        self.next_job = 0
        self.failed = False
        self._lay_out(image, start, bucket, good, ignored)
        self._group_truths(truth_image, truth_label)

    def __dealloc__(self):
        free(self.events)
        free(self.event_start)
        free(self.truth_start)
        free(self.truth_image)
        free(self.queue)

    cdef _lay_out(
        self, const int32_t[::1] image, const int32_t[::1] start, const uint8_t[::1] bucket,
        const uint64_t[::1] good, const uint64_t[::1] ignored,
    ):
        """Keep of each class's ranking what counts, down to its last true positive."""
        cdef Py_ssize_t k, i, last
        cdef Py_ssize_t place = 0
        cdef uint64_t wrong
        cdef uint64_t every = (~<uint64_t>0) >> (64 - self.thresholds)
        self.events = <Event*>malloc((start[self.classes] + 1) * sizeof(Event))
        self.event_start = <int32_t*>malloc((self.classes + 1) * sizeof(int32_t))
        if self.events == NULL or self.event_start == NULL:
            raise MemoryError()
        with nogil:
            for k in range(self.classes):
                self.event_start[k] = <int32_t>place
                last = place
                for i in range(start[k], start[k + 1]):
                    wrong = every & ~(good[i] | ignored[i])
                    if good[i] == 0 and wrong == 0:
                        continue
                    self.events[place].image = image[i]
                    self.events[place].bucket = bucket[i]
                    self.events[place].good = good[i]
                    self.events[place].wrong = wrong
                    place += 1
                    if good[i]:
                        last = place
                place = last
            self.event_start[self.classes] = <int32_t>place
        work = sorted(
            range(self.classes),
            key=lambda c: self.event_start[c] - self.event_start[c + 1],
        )
        self.queue = <int32_t*>malloc((self.classes + 1) * sizeof(int32_t))
        if self.queue == NULL:
            raise MemoryError()
        for k in range(self.classes):
            self.queue[k] = work[k]

    cdef _group_truths(self, const int32_t[::1] image, const int32_t[::1] label):
        cdef Py_ssize_t g = label.shape[0]
        cdef Py_ssize_t i
        self.truth_start = <int32_t*>malloc((self.classes + 1) * sizeof(int32_t))
        self.truth_image = <int32_t*>malloc((g + 1) * sizeof(int32_t))
        if self.truth_start == NULL or self.truth_image == NULL:
            raise MemoryError()
        with nogil:
            group_rows(
                &label[0] if g else NULL, g, self.classes, self.truth_start, self.truth_image
            )
            for i in range(g):
                self.truth_image[i] = image[self.truth_image[i]]

    def work(self) -> None:
        """Resample classes, LANES resamples at a time, until none is left."""
        cdef Lanes lanes
        cdef bint ready
        cdef long job
        cdef Py_ssize_t blocks = self.weights.shape[0]
        with nogil:
            ready = self._prepare(&lanes)
            while ready and not self.failed:
                job = detap_next(&self.next_job)
                if job >= self.classes * blocks:
                    break
                ready = self._resample(self.queue[job // blocks], job % blocks, &lanes)
            self._release(&lanes)
            if not ready:
                self.failed = True
        if self.failed:
            raise MemoryError()

    cdef bint _prepare(self, Lanes* s) noexcept nogil:
        cdef Py_ssize_t cells = (self.thresholds + 1) * LANES
        memset(s, 0, sizeof(Lanes))
        s.common = <int32_t*>malloc(LANES * sizeof(int32_t))
        s.positives = <int32_t*>malloc(LANES * sizeof(int32_t))
        s.recalled = <int32_t*>malloc((self.recalls + 1) * LANES * sizeof(int32_t))
        s.found = <int32_t*>malloc(cells * sizeof(int32_t))
        s.own = <int32_t*>malloc(cells * sizeof(int32_t))
        s.reached = <int32_t*>malloc(cells * sizeof(int32_t))
        s.envelope = <double*>malloc(cells * sizeof(double))
        s.area = <double*>malloc(cells * sizeof(double))
        s.bytes = <uint8_t*>calloc(LANES, 1)
        s.rows = <const uint8_t**>malloc(LANES * sizeof(uint8_t*))
        return (
            s.common != NULL and s.positives != NULL and s.recalled != NULL and s.found != NULL
            and s.own != NULL and s.reached != NULL and s.envelope != NULL and s.area != NULL
            and s.bytes != NULL and s.rows != NULL
        )

    cdef void _release(self, Lanes* s) noexcept nogil:
        free(s.common)
        free(s.positives)
        free(s.recalled)
        free(s.found)
        free(s.own)
        free(s.reached)
        free(s.envelope)
        free(s.area)
        free(s.bytes)
        free(s.table)
        free(s.rows)

    cdef bint _resample(self, Py_ssize_t k, Py_ssize_t block, Lanes* s) noexcept nogil:
        cdef Py_ssize_t i
        cdef const uint8_t* weights = &self.weights[block, 0, 0]
        memset(s.positives, 0, LANES * sizeof(int32_t))
        for i in range(self.truth_start[k], self.truth_start[k + 1]):
            detap_add(s.positives, weights + <Py_ssize_t>self.truth_image[i] * LANES, 1)
        self._sum_up(k, weights, s)
        if self.precisions:
            if self.due.shape[0] and not self._tabulate_levels(s):
                return False
            self._climb(k, weights, s)
        self._write(k, block, s)
        return True

    cdef void _sum_up(self, Py_ssize_t k, const uint8_t* weights, Lanes* s) noexcept nogil:
        """Count true and false positives down to the last true positive."""
        cdef Py_ssize_t cells = self.thresholds * LANES
        cdef Py_ssize_t i, r
        cdef Py_ssize_t rows = 0
        cdef const Event* event
        cdef const uint8_t* w
        cdef uint64_t bits
        memset(s.common, 0, LANES * sizeof(int32_t))
        memset(s.recalled, 0, self.recalls * LANES * sizeof(int32_t))
        memset(s.found, 0, cells * sizeof(int32_t))
        memset(s.own, 0, cells * sizeof(int32_t))
        for i in range(self.event_start[k], self.event_start[k + 1]):
            event = &self.events[i]
            w = weights + <Py_ssize_t>event.image * LANES
            if self._is_common(event):
                detap_add_bytes(s.bytes, w)
                rows += 1
                if rows == self.most_rows:
                    detap_move(s.common, s.bytes, 1)
                    rows = 0
                continue
            for r in range(self.recalls):
                bits = event.good & self.recall_bits[r]
                if bits and event.bucket <= self.recall_bucket[r]:
                    detap_add(s.recalled + r * LANES, w, ones(bits))
            if self.precisions == 0:
                continue
            bits = event.good
            while bits:
                detap_add(s.found + trailing_zeros(bits) * LANES, w, 1)
                bits &= bits - 1
            bits = event.wrong
            while bits:
                detap_add(s.own + trailing_zeros(bits) * LANES, w, 1)
                bits &= bits - 1
        detap_move(s.common, s.bytes, 1)

    cdef inline bint _is_common(self, const Event* event) noexcept nogil:
        return event.wrong == (~<uint64_t>0) >> (64 - self.thresholds)

    cdef bint _tabulate_levels(self, Lanes* s) noexcept nogil:
        """Write the weight of the recall levels that each number of hits passes, for each lane.

        Level 0 is passed by the first hit. A level is passed where hits / positives, as a quotient
        of doubles, is not below the recall that is due: the very comparison that plain evaluation
        makes. Each weighs 1; for the trapezoid 2, but the first 1.
        Of evidence from strangers there may be more hits than positives: there is room for them.
        """
        cdef Py_ssize_t l, t, room = 0
        cdef Py_ssize_t j
        cdef int32_t hits, positives, before
        cdef int32_t[LANES] most
        cdef uint8_t* row
        for l in range(LANES):
            most[l] = s.positives[l]
            for t in range(self.thresholds):
                most[l] = max(most[l], s.found[t * LANES + l])
            room += most[l] + 1
        if room > s.table_room:
            row = <uint8_t*>realloc(s.table, room)
            if row == NULL:
                return False
            s.table = row
            s.table_room = room
        row = s.table
        for l in range(LANES):
            positives = s.positives[l]
            s.rows[l] = row
            before = 0
            for j in range(self.due.shape[0]):
                hits = <int32_t>(self.due[j] * positives)
                hits = hits - 1 if hits > 1 else 1
                while hits <= positives and <double>hits / positives < self.due[j]:
                    hits += 1
                if hits > positives:
                    break
                if hits > before:
                    memset(row + before, self._weight(j), hits - before)
                    before = hits
            else:
                j = self.due.shape[0]
            memset(row + before, self._weight(j), most[l] + 1 - before)
            row[0] = 0
            row += most[l] + 1
        return True

    cdef inline int _weight(self, Py_ssize_t levels) noexcept nogil:
        """Return what the first levels weigh together."""
        return <int>(2 * levels - 1 if self.trapezoid and levels else levels)

    cdef void _climb(self, Py_ssize_t k, const uint8_t* weights, Lanes* s) noexcept nogil:
        """Go up the ranking, taking away what was summed up, and sum the area on the way.

        Of true positives with no false one between them the lowest has the largest precision. So
        the envelope changes only at the first above a false positive, and the recall passed since
        the last change is multiplied with it at once.
        """
        cdef Py_ssize_t cells = self.thresholds * LANES
        cdef Py_ssize_t i, l, t, lane
        cdef Py_ssize_t rows = 0
        cdef uint64_t every = (~<uint64_t>0) >> (64 - self.thresholds)
        cdef uint64_t changed = every
        cdef const Event* event
        cdef const uint8_t* w
        cdef uint64_t bits
        memset(s.envelope, 0, cells * sizeof(double))
        memset(s.area, 0, cells * sizeof(double))
        for t in range(self.thresholds):
            for l in range(LANES):
                s.reached[t * LANES + l] = s.found[t * LANES + l]
                if self.due.shape[0]:
                    s.reached[t * LANES + l] = s.rows[l][s.found[t * LANES + l]]
        for i in range(self.event_start[k + 1] - 1, self.event_start[k] - 1, -1):
            event = &self.events[i]
            w = weights + <Py_ssize_t>event.image * LANES
            if self._is_common(event):
                changed = every
                detap_add_bytes(s.bytes, w)
                rows += 1
                if rows == self.most_rows:
                    detap_move(s.common, s.bytes, -1)
                    rows = 0
                continue
            if rows:
                detap_move(s.common, s.bytes, -1)
                rows = 0
            bits = event.good
            while bits:
                t = trailing_zeros(bits)
                lane = t * LANES
                if (changed >> t) & 1:
                    self._add_area(lane, s)
                    detap_rise(s.found + lane, s.common, s.own + lane, s.envelope + lane, self.guard)
                detap_add(s.found + lane, w, -1)
                bits &= bits - 1
            changed &= ~event.good
            changed |= event.wrong
            bits = event.wrong
            while bits:
                detap_add(s.own + trailing_zeros(bits) * LANES, w, -1)
                bits &= bits - 1
        for t in range(self.thresholds):
            self._add_area(t * LANES, s)
        memset(s.bytes, 0, LANES)

    cdef inline void _add_area(self, Py_ssize_t lane, Lanes* s) noexcept nogil:
        """Multiply the recall passed since the last change of the envelope with it."""
        if self.due.shape[0]:
            detap_read_levels(
                s.area + lane, s.envelope + lane, s.found + lane, s.reached + lane, s.rows
            )
        else:
            detap_integrate(s.area + lane, s.envelope + lane, s.found + lane, s.reached + lane)

    cdef void _write(self, Py_ssize_t k, Py_ssize_t block, const Lanes* s) noexcept nogil:
        """Write each measure of the class: its sum over thresholds; undefined ones stay NaN."""
        cdef Py_ssize_t q, l, b
        cdef uint64_t bits
        cdef double total
        cdef double whole = <double>self.due.shape[0]
        if self.trapezoid:
            whole = 2 * whole - 2
        for l in range(LANES):
            b = block * LANES + l
            if s.positives[l] == 0:
                continue
            for q in range(self.recalls):
                if b < self.recall_out.shape[2]:
                    self.recall_out[q, k, b] = (
                        <double>s.recalled[q * LANES + l] / <double>s.positives[l]
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
                    total / (whole if whole else <double>s.positives[l])
                )
