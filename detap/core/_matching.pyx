"""Matching and scoring of detections, one class at a time, without the GIL. See matching.py.

For each class its detections are ranked by score; one pass over them finds overlaps, claims
ground truths, and counts. Classes are independent, so that threads take them one by one, and no
result depends on how many threads there are.

What happens at the T thresholds is held as the bits of one word, so that a detection is matched at
all of them at once: the order in which it prefers ground truths is the same at each, and it takes,
at each, the first that it reaches there and that is still free there.

A pass keeps no match unless asked, because precision improves only at a hit: the curve needs only
how many false positives stand above each (see _curves.pyx). Those are not counted detection by
detection and threshold by threshold: they are the detections so far inside the area range, less
those that were something else (`excused` below), which are few.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from detap.core._curves cimport (
    area_under,
    make_envelope,
    mean_of_levels,
    precision_at_hits,
    read_levels,
)
from detap.core._overlap cimport overlap
from detap.core._ordering cimport Keyed, falling, group_rows, sort_by_key


cdef extern from *:
    """
    #if defined(_MSC_VER)
    #include <intrin.h>
    static long detap_next(long *place) { return _InterlockedExchangeAdd(place, 1); }
    static int detap_lowest_bit(unsigned __int64 word) {
        unsigned long place;
        _BitScanForward64(&place, word);
        return (int)place;
    }
    #define detap_prefetch(place)
    #else
    static long detap_next(long *place) { return __atomic_fetch_add(place, 1, __ATOMIC_RELAXED); }
    #define detap_lowest_bit(word) __builtin_ctzll(word)
    #define detap_prefetch(place) __builtin_prefetch(place)
    #endif
    """
    long detap_next(long* place) noexcept nogil
    int detap_lowest_bit(uint64_t word) noexcept nogil
    void detap_prefetch(const void* place) noexcept nogil


cdef enum:
    AHEAD = 12  # detections whose columns are fetched early: ranked by score, they lie anywhere


cdef struct Truth:
    double corners[4]
    double overlap_area
    int32_t row
    bint absorbing            # takes any number of detections
    bint void                 # can be taken but not found


cdef struct Near:
    double overlap
    uint64_t reached          # thresholds, as bits
    int32_t truth             # an index into Scratch.truths


cdef struct Scratch:
    Keyed* ranked
    Keyed* spare
    int32_t* image_rank       # per image: detections of this class seen so far
    int32_t* truth_begin      # per image: where its ground truths of this class begin in `truths`
    int32_t* truth_count
    Truth* truths             # of this class, side by side, image by image
    uint64_t* claimed         # per ground truth and area range: the thresholds, as bits
    uint8_t* neutral          # per ground truth and area range
    Near* near                # ground truths that the detection at hand reaches, best first
    int32_t* seen             # per limit and area range: detections inside it
    int32_t* found            # per limit, area range and threshold: true positives
    int32_t* excused          # likewise: inside the range, but no false positive
    int32_t* hits             # per recorded limit, area range and threshold: see _curves.pyx
    Py_ssize_t hits_room
    double* envelope
    double* terms


cdef class Scorer:
    """Inputs, outputs and their shapes; `work` may be called from any number of threads."""

    # Detections (N) and ground truths (G).
    cdef const int32_t[::1] dt_image, dt_label, dt_rank, gt_image, gt_label
    cdef const double[::1] dt_score, dt_overlap_area, dt_area, gt_overlap_area, gt_area
    cdef const double[:, ::1] dt_corners, gt_corners
    cdef const uint8_t[::1] gt_neutral, gt_absorbing, gt_void
    cdef Py_ssize_t images, classes
    # Rules.
    cdef const double[::1] thresholds, area_low, area_high, levels
    cdef const int64_t[::1] limits
    cdef bint strict, best_free, last_of_equal, ties_by_image, all_limits, integrate, one_by_one
    cdef double edge, guard
    # Groups by class.
    cdef int32_t* dt_start
    cdef int32_t* dt_order
    cdef int32_t* gt_start
    cdef int32_t* gt_order
    cdef int32_t* queue
    cdef long next_job
    cdef bint failed
    # Outputs; see matching.py for their shapes.
    cdef double[:, :, :, :, ::1] precision
    cdef double[:, :, ::1] average
    cdef double[:, :, :, ::1] recall
    cdef int64_t[:, ::1] positives, counts
    cdef bint keep
    cdef int32_t[:, :, ::1] match_truth
    cdef uint8_t[:, :, ::1] match_neutral
    cdef uint8_t[::1] match_counted
    cdef double[::1] match_overlap

    def __init__(
        self, *, dt_image, dt_label, dt_rank, dt_score, dt_corners, dt_overlap_area, dt_area,
        gt_image, gt_label, gt_corners, gt_overlap_area, gt_area, gt_neutral, gt_absorbing, gt_void,
        images, classes, thresholds, strict, best_free, last_of_equal, area_low, area_high,
        limits, ties_by_image, levels, integrate, one_by_one, guard, edge, all_limits,
        precision, average, recall, positives, counts, matches,
    ):
        self.dt_image, self.dt_label, self.dt_rank = dt_image, dt_label, dt_rank
        self.dt_score = dt_score
        self.dt_corners, self.dt_overlap_area = dt_corners, dt_overlap_area
        self.dt_area = dt_area
        self.gt_image, self.gt_label, self.gt_corners = gt_image, gt_label, gt_corners
        self.gt_overlap_area, self.gt_area = gt_overlap_area, gt_area
        self.gt_neutral, self.gt_absorbing, self.gt_void = gt_neutral, gt_absorbing, gt_void
        self.images, self.classes = images, classes
        self.thresholds, self.levels = thresholds, levels
        self.area_low, self.area_high, self.limits = area_low, area_high, limits
        self.strict, self.best_free, self.last_of_equal = strict, best_free, last_of_equal
        self.ties_by_image, self.all_limits = ties_by_image, all_limits
        self.integrate, self.one_by_one = integrate, one_by_one
        self.edge, self.guard = edge, guard
        self.precision, self.average, self.recall = precision, average, recall
        self.positives, self.counts = positives, counts
        self.keep = matches is not None
        if self.keep:
            self.match_truth, self.match_neutral = matches[0], matches[1]
            self.match_counted, self.match_overlap = matches[2], matches[3]
        self.failed = False
        self.next_job = 0
        self._group()

    def __dealloc__(self):
        free(self.dt_start)
        free(self.dt_order)
        free(self.gt_start)
        free(self.gt_order)
        free(self.queue)

    cdef _group(self):
        cdef Py_ssize_t n = self.dt_label.shape[0]
        cdef Py_ssize_t g = self.gt_label.shape[0]
        cdef Py_ssize_t k = self.classes
        self.dt_start = <int32_t*>malloc((k + 1) * sizeof(int32_t))
        self.gt_start = <int32_t*>malloc((k + 1) * sizeof(int32_t))
        self.queue = <int32_t*>malloc((k + 1) * sizeof(int32_t))
        self.dt_order = <int32_t*>malloc((n + 1) * sizeof(int32_t))
        self.gt_order = <int32_t*>malloc((g + 1) * sizeof(int32_t))
        if (
            self.dt_start == NULL or self.gt_start == NULL or self.queue == NULL
            or self.dt_order == NULL or self.gt_order == NULL
        ):
            raise MemoryError()
        cdef const int32_t* dt_label = &self.dt_label[0] if n else NULL
        cdef const int32_t* gt_label = &self.gt_label[0] if g else NULL
        with nogil:
            group_rows(dt_label, n, k, self.dt_start, self.dt_order)
            group_rows(gt_label, g, k, self.gt_start, self.gt_order)
        # The largest classes first, so that no thread is left with one of them at the end.
        cdef Py_ssize_t place
        work = sorted(
            range(k),
            key=lambda c: (
                self.dt_start[c] - self.dt_start[c + 1] + self.gt_start[c] - self.gt_start[c + 1]
            ),
        )
        for place in range(k):
            self.queue[place] = work[place]

    def work(self):
        """Score classes until none is left."""
        cdef Scratch scratch
        cdef bint ready
        cdef long job
        with nogil:
            ready = self._prepare(&scratch)
            while ready and not self.failed:
                job = detap_next(&self.next_job)
                if job >= self.classes:
                    break
                ready = self._score_class(self.queue[job], &scratch)
            self._release(&scratch)
            if not ready:
                self.failed = True
        if self.failed:
            raise MemoryError()

    cdef bint _prepare(self, Scratch* s) noexcept nogil:
        cdef Py_ssize_t k, n, most_detections = 1, most_truths = 1
        cdef Py_ssize_t areas = self.area_low.shape[0]
        cdef Py_ssize_t lanes = self.limits.shape[0] * areas * self.thresholds.shape[0]
        memset(s, 0, sizeof(Scratch))
        for k in range(self.classes):
            n = self.dt_start[k + 1] - self.dt_start[k]
            most_detections = n if n > most_detections else most_detections
            n = self.gt_start[k + 1] - self.gt_start[k]
            most_truths = n if n > most_truths else most_truths
        n = most_detections if most_detections > most_truths else most_truths
        s.ranked = <Keyed*>malloc(n * sizeof(Keyed))
        s.spare = <Keyed*>malloc(n * sizeof(Keyed))
        s.image_rank = <int32_t*>calloc(self.images + 1, sizeof(int32_t))
        s.truth_begin = <int32_t*>calloc(self.images + 1, sizeof(int32_t))
        s.truth_count = <int32_t*>calloc(self.images + 1, sizeof(int32_t))
        s.truths = <Truth*>malloc(most_truths * sizeof(Truth))
        s.claimed = <uint64_t*>malloc(most_truths * areas * sizeof(uint64_t))
        s.neutral = <uint8_t*>malloc(most_truths * areas)
        s.near = <Near*>malloc(most_truths * sizeof(Near))
        s.seen = <int32_t*>malloc(lanes * sizeof(int32_t))
        s.found = <int32_t*>malloc(lanes * sizeof(int32_t))
        s.excused = <int32_t*>malloc(lanes * sizeof(int32_t))
        s.envelope = <double*>malloc((most_truths + 1) * sizeof(double))
        # Room for the levels too: a curve's interpolated values pass through here.
        n = self.levels.shape[0]
        n = most_truths if most_truths > n else n
        s.terms = <double*>malloc((n + 1) * sizeof(double))
        return (
            s.ranked != NULL and s.spare != NULL and s.image_rank != NULL
            and s.truth_begin != NULL and s.truth_count != NULL and s.truths != NULL
            and s.claimed != NULL and s.neutral != NULL and s.near != NULL and s.seen != NULL
            and s.found != NULL and s.excused != NULL and s.envelope != NULL and s.terms != NULL
        )

    cdef void _release(self, Scratch* s) noexcept nogil:
        free(s.ranked)
        free(s.spare)
        free(s.image_rank)
        free(s.truth_begin)
        free(s.truth_count)
        free(s.truths)
        free(s.claimed)
        free(s.neutral)
        free(s.near)
        free(s.seen)
        free(s.found)
        free(s.excused)
        free(s.hits)
        free(s.envelope)
        free(s.terms)

    cdef bint _score_class(self, Py_ssize_t k, Scratch* s) noexcept nogil:
        cdef Py_ssize_t thresholds = self.thresholds.shape[0]
        cdef Py_ssize_t areas = self.area_low.shape[0]
        cdef Py_ssize_t limits = self.limits.shape[0]
        cdef Py_ssize_t lanes = limits * areas * thresholds
        cdef Py_ssize_t g = self.gt_start[k + 1] - self.gt_start[k]
        cdef Py_ssize_t first = 0 if self.all_limits else limits - 1
        # Each list of hits has at most g entries.
        cdef Py_ssize_t room = (limits - first) * areas * thresholds * g + 1
        if room > s.hits_room:
            free(s.hits)
            s.hits = <int32_t*>malloc(room * sizeof(int32_t))
            s.hits_room = room if s.hits != NULL else 0
            if s.hits == NULL:
                return False
        memset(s.seen, 0, lanes * sizeof(int32_t))
        memset(s.found, 0, lanes * sizeof(int32_t))
        memset(s.excused, 0, lanes * sizeof(int32_t))
        self._lay_out_truths(k, g, s)
        self._walk(k, g, first, s)
        self._write_curves(k, g, first, s)
        return True

    cdef Keyed* _order(
        self, const int32_t* rows, Py_ssize_t count, const int32_t* image, Keyed* items,
        Keyed* spare,
    ) noexcept nogil:
        """Return the rows by image, each image's in file order; no work where they are so."""
        cdef Py_ssize_t i
        cdef bint ordered = True
        for i in range(count):
            items[i].row = rows[i]
            items[i].key = image[rows[i]]
            if i and items[i].key < items[i - 1].key:
                ordered = False
        return items if ordered else sort_by_key(items, spare, count)

    cdef void _lay_out_truths(self, Py_ssize_t k, Py_ssize_t g, Scratch* s) noexcept nogil:
        """Put the class's ground truths side by side, and say which count in which area range."""
        cdef Py_ssize_t areas = self.area_low.shape[0]
        cdef Py_ssize_t i, a
        cdef int32_t row
        cdef double area
        cdef const Keyed* ordered
        if g == 0:
            return
        ordered = self._order(
            self.gt_order + self.gt_start[k], g, &self.gt_image[0], s.ranked, s.spare
        )
        for i in range(g):
            row = ordered[i].row
            memcpy(s.truths[i].corners, &self.gt_corners[row, 0], 4 * sizeof(double))
            s.truths[i].overlap_area = self.gt_overlap_area[row]
            s.truths[i].absorbing = self.gt_absorbing[row]
            s.truths[i].void = self.gt_void[row]
            s.truths[i].row = row
            if s.truth_count[self.gt_image[row]] == 0:
                s.truth_begin[self.gt_image[row]] = <int32_t>i
            s.truth_count[self.gt_image[row]] += 1
            area = self.gt_area[row]
            for a in range(areas):
                s.claimed[i * areas + a] = 0
                s.neutral[i * areas + a] = (
                    self.gt_neutral[row] or area < self.area_low[a] or area > self.area_high[a]
                )
                if not s.neutral[i * areas + a]:
                    self.positives[a, k] += 1

    cdef Keyed* _rank(self, Py_ssize_t k, Py_ssize_t n, Scratch* s) noexcept nogil:
        """Return the class's detections by falling score, equal ones in the protocol's order."""
        cdef const int32_t* rows = self.dt_order + self.dt_start[k]
        cdef Keyed* ranked = s.ranked
        cdef Keyed* spare
        cdef Py_ssize_t i
        if self.ties_by_image:
            ranked = self._order(rows, n, &self.dt_image[0], s.ranked, s.spare)
        else:
            for i in range(n):
                ranked[i].row = rows[i]
        spare = s.spare if ranked == s.ranked else s.ranked
        for i in range(n):
            ranked[i].key = falling(self.dt_score[ranked[i].row])
        return sort_by_key(ranked, spare, n)

    cdef inline uint64_t _reach(self, double value) noexcept nogil:
        """Return the thresholds that an overlap reaches, as bits; they ascend."""
        cdef Py_ssize_t t = 0
        if self.strict:
            while t < self.thresholds.shape[0] and value > self.thresholds[t]:
                t += 1
        else:
            while t < self.thresholds.shape[0] and value >= self.thresholds[t]:
                t += 1
        return (~<uint64_t>0) >> (64 - t) if t else 0

    cdef Py_ssize_t _find_near(self, int32_t row, Scratch* s, double* best) noexcept nogil:
        """List the ground truths that a detection reaches at any threshold, best first.

        Of equal ones the first in the file comes first, or the last, as the protocol says. Where
        only the best of all may be matched, it alone is listed.
        """
        cdef int32_t image = self.dt_image[row]
        cdef Py_ssize_t begin = s.truth_begin[image]
        cdef const double* box = &self.dt_corners[row, 0]
        cdef double area = self.dt_overlap_area[row]
        cdef Py_ssize_t found = 0
        cdef Py_ssize_t i, j
        cdef double value
        cdef uint64_t reached
        best[0] = 0.0
        for i in range(begin, begin + s.truth_count[image]):
            value = overlap(
                box, area, s.truths[i].corners, s.truths[i].overlap_area,
                s.truths[i].absorbing, self.edge,
            )
            if value > best[0]:
                best[0] = value
            reached = self._reach(value)
            if reached == 0:
                continue
            j = found
            while j > 0 and (
                value > s.near[j - 1].overlap
                or (self.last_of_equal and value == s.near[j - 1].overlap)
            ):
                s.near[j] = s.near[j - 1]
                j -= 1
            s.near[j].overlap = value
            s.near[j].reached = reached
            s.near[j].truth = <int32_t>i
            found += 1
        return found if self.best_free or found == 0 else 1

    cdef void _walk(self, Py_ssize_t k, Py_ssize_t g, Py_ssize_t first, Scratch* s) noexcept nogil:
        """Let the class's detections claim ground truths by falling score."""
        cdef Py_ssize_t areas = self.area_low.shape[0]
        cdef Py_ssize_t limits = self.limits.shape[0]
        cdef Py_ssize_t n = self.dt_start[k + 1] - self.dt_start[k]
        cdef Py_ssize_t i, a, m, m_from, near
        cdef int32_t row, rank
        cdef int64_t within = 0
        cdef int64_t duplicates = 0
        cdef bint inside
        cdef double best, area
        cdef uint64_t missed
        cdef Keyed* ranked = self._rank(k, n, s) if n else NULL
        for i in range(n):
            if i + AHEAD < n:
                row = ranked[i + AHEAD].row
                detap_prefetch(&self.dt_corners[row, 0])
                detap_prefetch(&self.dt_overlap_area[row])
                detap_prefetch(&self.dt_image[row])
            row = ranked[i].row
            rank = s.image_rank[self.dt_image[row]]
            s.image_rank[self.dt_image[row]] += 1
            if self.dt_rank.shape[0]:
                rank = self.dt_rank[row]
            if rank >= self.limits[limits - 1]:
                continue
            within += 1
            m_from = limits - 1
            while m_from > 0 and rank < self.limits[m_from - 1]:
                m_from -= 1
            near = self._find_near(row, s, &best)
            if self.keep:
                self.match_counted[row] = 1
                self.match_overlap[row] = best
            area = self.dt_area[row]
            for a in range(areas):
                inside = self.area_low[a] <= area <= self.area_high[a]
                if near:
                    missed = self._claim(row, a, near, m_from, first, g, inside, s)
                    if a == 0 and inside and (missed & 1) and self._is_duplicate(near, s):
                        duplicates += 1
                if inside:
                    for m in range(m_from, limits):
                        s.seen[m * areas + a] += 1
                elif self.keep and near == 0:
                    self._mark_neutral(row, a, ~<uint64_t>0)
        for i in range(n):
            s.image_rank[self.dt_image[ranked[i].row]] = 0
        for i in range(g):
            s.truth_count[self.gt_image[s.truths[i].row]] = 0
        self._write_counts(k, n, g, within, duplicates, s)

    cdef uint64_t _claim(
        self, int32_t row, Py_ssize_t a, Py_ssize_t near, Py_ssize_t m_from, Py_ssize_t first,
        Py_ssize_t g, bint inside, Scratch* s,
    ) noexcept nogil:
        """Match one detection in one area range; return the thresholds at which it has no match.

        A neutral ground truth is taken only where no other will do.
        """
        cdef Py_ssize_t areas = self.area_low.shape[0]
        cdef uint64_t open_bits = ~<uint64_t>0
        cdef uint64_t taken
        cdef uint64_t good = 0
        cdef uint64_t excused = 0
        cdef uint64_t void_bits = 0
        cdef Py_ssize_t i, place
        cdef int neutral
        for neutral in range(2):
            for i in range(near):
                place = s.near[i].truth * areas + a
                if s.neutral[place] != neutral:
                    continue
                taken = s.near[i].reached & open_bits
                # Where only the best may be matched, a neutral one is never used up.
                if not (s.truths[s.near[i].truth].absorbing or (neutral and not self.best_free)):
                    taken &= ~s.claimed[place]
                if taken == 0:
                    continue
                s.claimed[place] |= taken
                open_bits &= ~taken
                if neutral:
                    excused |= taken
                elif s.truths[s.near[i].truth].void:
                    void_bits |= taken
                else:
                    good |= taken
                if self.keep and not s.truths[s.near[i].truth].void:
                    self._mark_match(row, a, taken, s.truths[s.near[i].truth].row)
        if good:
            self._record(a, good, m_from, first, g, s)
        if inside:
            self._excuse(a, good | excused, m_from, s)
        elif self.keep:
            excused |= open_bits | void_bits
        if self.keep:
            self._mark_neutral(row, a, excused)
        return open_bits

    cdef void _record(
        self, Py_ssize_t a, uint64_t good, Py_ssize_t m_from, Py_ssize_t first, Py_ssize_t g,
        Scratch* s,
    ) noexcept nogil:
        """Record a hit at each of the thresholds `good`: the false positives above it."""
        cdef Py_ssize_t areas = self.area_low.shape[0]
        cdef Py_ssize_t thresholds = self.thresholds.shape[0]
        cdef Py_ssize_t m, lane
        while good:
            for m in range(m_from, self.limits.shape[0]):
                lane = (m * areas + a) * thresholds + detap_lowest_bit(good)
                if m >= first:
                    s.hits[(lane - first * areas * thresholds) * g + s.found[lane]] = (
                        s.seen[m * areas + a] - s.excused[lane]
                    )
                s.found[lane] += 1
            good &= good - 1

    cdef void _excuse(
        self, Py_ssize_t a, uint64_t excused, Py_ssize_t m_from, Scratch* s
    ) noexcept nogil:
        cdef Py_ssize_t areas = self.area_low.shape[0]
        cdef Py_ssize_t thresholds = self.thresholds.shape[0]
        cdef Py_ssize_t m
        while excused:
            for m in range(m_from, self.limits.shape[0]):
                s.excused[(m * areas + a) * thresholds + detap_lowest_bit(excused)] += 1
            excused &= excused - 1

    cdef bint _is_duplicate(self, Py_ssize_t near, Scratch* s) noexcept nogil:
        """Tell whether a false positive reaches a ground truth that counts."""
        cdef Py_ssize_t areas = self.area_low.shape[0]
        cdef Py_ssize_t i
        for i in range(near):
            if (s.near[i].reached & 1) and not s.neutral[s.near[i].truth * areas]:
                return True
        return False

    cdef void _mark_match(
        self, int32_t row, Py_ssize_t a, uint64_t taken, int32_t truth
    ) noexcept nogil:
        while taken:
            self.match_truth[a, detap_lowest_bit(taken), row] = truth
            taken &= taken - 1

    cdef void _mark_neutral(self, int32_t row, Py_ssize_t a, uint64_t excused) noexcept nogil:
        cdef Py_ssize_t t
        for t in range(self.thresholds.shape[0]):
            if (excused >> t) & 1:
                self.match_neutral[a, t, row] = 1

    cdef void _write_counts(
        self, Py_ssize_t k, Py_ssize_t n, Py_ssize_t g, int64_t within, int64_t duplicates,
        const Scratch* s,
    ) noexcept nogil:
        cdef Py_ssize_t areas = self.area_low.shape[0]
        cdef Py_ssize_t last = (self.limits.shape[0] - 1) * areas
        cdef Py_ssize_t lane = last * self.thresholds.shape[0]
        self.counts[0, k] = self.positives[0, k]
        self.counts[1, k] = g - self.positives[0, k]
        self.counts[2, k] = n
        self.counts[3, k] = s.found[lane]
        self.counts[4, k] = s.seen[last] - s.excused[lane]
        self.counts[5, k] = duplicates
        self.counts[6, k] = within

    cdef void _write_curves(
        self, Py_ssize_t k, Py_ssize_t g, Py_ssize_t first, Scratch* s
    ) noexcept nogil:
        cdef Py_ssize_t thresholds = self.thresholds.shape[0]
        cdef Py_ssize_t areas = self.area_low.shape[0]
        cdef Py_ssize_t limits = self.limits.shape[0]
        cdef Py_ssize_t levels = self.levels.shape[0]
        cdef Py_ssize_t a, t, m, r, hits, lane
        cdef double positives
        for a in range(areas):
            positives = <double>self.positives[a, k]
            if positives == 0.0:
                continue  # undefined: the outputs were filled with NaN
            for t in range(thresholds):
                for m in range(limits):
                    lane = (m * areas + a) * thresholds + t
                    hits = s.found[lane]
                    self.recall[t, k, a, m] = <double>hits / positives
                    if m < first:
                        continue
                    lane -= first * areas * thresholds
                    precision_at_hits(s.hits + lane * g, hits, self.guard, s.envelope)
                    make_envelope(s.envelope, hits)
                    if self.integrate:
                        if m == limits - 1:
                            self.average[t, k, a] = area_under(
                                s.envelope, hits, positives, s.terms
                            )
                        continue
                    read_levels(
                        s.envelope, hits, positives, &self.levels[0], levels, s.terms
                    )
                    for r in range(levels):
                        self.precision[m - first, a, t, r, k] = s.terms[r]
                    if m == limits - 1:
                        self.average[t, k, a] = mean_of_levels(s.terms, levels, self.one_by_one)
