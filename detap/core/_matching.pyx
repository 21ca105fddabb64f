"""Matching and scoring of detections, one class at a time, without the GIL. See matching.py.

For each class its detections are ranked by score; one pass over them finds overlaps, claims
ground truths at every area range and threshold at once, and counts. A pass keeps no match unless
asked: the curve needs only the false positives above each hit (see _curves.pyx). Classes are
independent, so that threads take them one by one, and no result depends on how many threads.

Most detections reach no ground truth at any threshold. They are counted once per area range and
limit, not once per threshold: that is `missed` below, against `wrong`, which is per threshold.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

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
    #else
    static long detap_next(long *place) { return __atomic_fetch_add(place, 1, __ATOMIC_RELAXED); }
    #endif
    """
    long detap_next(long* place) noexcept nogil


cdef struct Scratch:
    Keyed* ranked
    Keyed* spare
    int32_t* image_rank       # per image: detections of this class seen so far
    int32_t* truth_begin      # per image: where its ground truths of this class begin in `order`
    int32_t* truth_count
    uint8_t* claimed          # per ground truth of this class, area range and threshold
    uint8_t* neutral          # per ground truth of this class and area range
    int32_t* near             # ground truths that the detection at hand reaches at all
    double* near_overlap
    int32_t* hits             # per recorded limit, area range and threshold: false positives above
    Py_ssize_t hits_room
    double* envelope
    double* terms


cdef class Scorer:
    """Inputs, outputs and their shapes; `work` may be called from any number of threads."""

    # Detections (N) and ground truths (G).
    cdef const int32_t[::1] dt_image, dt_label, gt_image, gt_label
    cdef const double[::1] dt_score, dt_overlap_area, dt_area, gt_overlap_area, gt_area
    cdef const double[:, ::1] dt_corners, gt_corners
    cdef const uint8_t[::1] gt_neutral, gt_absorbing
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
        self, *, dt_image, dt_label, dt_score, dt_corners, dt_overlap_area, dt_area,
        gt_image, gt_label, gt_corners, gt_overlap_area, gt_area, gt_neutral, gt_absorbing,
        images, classes, thresholds, strict, best_free, last_of_equal, area_low, area_high,
        limits, ties_by_image, levels, integrate, one_by_one, guard, edge, all_limits,
        precision, average, recall, positives, counts, matches,
    ):
        self.dt_image, self.dt_label, self.dt_score = dt_image, dt_label, dt_score
        self.dt_corners, self.dt_overlap_area = dt_corners, dt_overlap_area
        self.dt_area = dt_area
        self.gt_image, self.gt_label, self.gt_corners = gt_image, gt_label, gt_corners
        self.gt_overlap_area, self.gt_area = gt_overlap_area, gt_area
        self.gt_neutral, self.gt_absorbing = gt_neutral, gt_absorbing
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
        cdef Py_ssize_t lanes = self.thresholds.shape[0] * self.area_low.shape[0]
        memset(s, 0, sizeof(Scratch))
        for k in range(self.classes):
            n = self.dt_start[k + 1] - self.dt_start[k]
            most_detections = n if n > most_detections else most_detections
            n = self.gt_start[k + 1] - self.gt_start[k]
            most_truths = n if n > most_truths else most_truths
        s.ranked = <Keyed*>malloc(most_detections * sizeof(Keyed))
        s.spare = <Keyed*>malloc(most_detections * sizeof(Keyed))
        s.image_rank = <int32_t*>calloc(self.images + 1, sizeof(int32_t))
        s.truth_begin = <int32_t*>calloc(self.images + 1, sizeof(int32_t))
        s.truth_count = <int32_t*>calloc(self.images + 1, sizeof(int32_t))
        s.claimed = <uint8_t*>malloc(most_truths * lanes)
        s.neutral = <uint8_t*>malloc(most_truths * self.area_low.shape[0])
        s.near = <int32_t*>malloc(most_truths * sizeof(int32_t))
        s.near_overlap = <double*>malloc(most_truths * sizeof(double))
        s.envelope = <double*>malloc((most_truths + 1) * sizeof(double))
        # Room for the levels too: a curve's interpolated values pass through here.
        n = self.levels.shape[0]
        n = most_truths if most_truths > n else n
        s.terms = <double*>malloc((n + 1) * sizeof(double))
        return (
            s.ranked != NULL and s.spare != NULL and s.image_rank != NULL
            and s.truth_begin != NULL and s.truth_count != NULL and s.claimed != NULL
            and s.neutral != NULL and s.near != NULL and s.near_overlap != NULL
            and s.envelope != NULL and s.terms != NULL
        )

    cdef void _release(self, Scratch* s) noexcept nogil:
        free(s.ranked)
        free(s.spare)
        free(s.image_rank)
        free(s.truth_begin)
        free(s.truth_count)
        free(s.claimed)
        free(s.neutral)
        free(s.near)
        free(s.near_overlap)
        free(s.hits)
        free(s.envelope)
        free(s.terms)

    cdef Keyed* _rank(self, Py_ssize_t k, Scratch* s) noexcept nogil:
        """Return this class's detections by falling score, equal ones in the protocol's order."""
        cdef const int32_t* rows = self.dt_order + self.dt_start[k]
        cdef Py_ssize_t n = self.dt_start[k + 1] - self.dt_start[k]
        cdef Py_ssize_t i
        cdef bint by_image = True
        cdef Keyed* ranked = s.ranked
        cdef Keyed* spare = s.spare
        for i in range(n):
            ranked[i].row = rows[i]
            ranked[i].key = self.dt_image[rows[i]]
            if i and ranked[i].key < ranked[i - 1].key:
                by_image = False
        if self.ties_by_image and not by_image:
            ranked = sort_by_key(ranked, spare, n)
            spare = s.spare if ranked == s.ranked else s.ranked
        for i in range(n):
            ranked[i].key = falling(self.dt_score[ranked[i].row])
        return sort_by_key(ranked, spare, n)

    cdef void _lay_out_truths(self, Py_ssize_t k, Scratch* s) noexcept nogil:
        """Find each image's ground truths of this class, and which count in which area range."""
        cdef int32_t* rows = self.gt_order + self.gt_start[k]
        cdef Py_ssize_t g = self.gt_start[k + 1] - self.gt_start[k]
        cdef Py_ssize_t areas = self.area_low.shape[0]
        cdef Py_ssize_t i, a
        cdef bint by_image = True
        cdef double area
        cdef Keyed* sorted_rows
        for i in range(1, g):
            if self.gt_image[rows[i]] < self.gt_image[rows[i - 1]]:
                by_image = False
                break
        if not by_image:
            # Each class's part of `gt_order` is sorted in place by its one owner.
            sorted_rows = <Keyed*>malloc(2 * g * sizeof(Keyed))
            if sorted_rows == NULL:
                self.failed = True
                return
            for i in range(g):
                sorted_rows[i].row = rows[i]
                sorted_rows[i].key = self.gt_image[rows[i]]
            self._copy_rows(sort_by_key(sorted_rows, sorted_rows + g, g), rows, g)
            free(sorted_rows)
        for i in range(g):
            if s.truth_count[self.gt_image[rows[i]]] == 0:
                s.truth_begin[self.gt_image[rows[i]]] = <int32_t>i
            s.truth_count[self.gt_image[rows[i]]] += 1
            area = self.gt_area[rows[i]]
            for a in range(areas):
                s.neutral[i * areas + a] = (
                    self.gt_neutral[rows[i]]
                    or area < self.area_low[a]
                    or area > self.area_high[a]
                )
                if s.neutral[i * areas + a]:
                    continue
                self.positives[a, k] += 1
        memset(s.claimed, 0, g * areas * self.thresholds.shape[0])

    cdef void _copy_rows(self, Keyed* source, int32_t* rows, Py_ssize_t count) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(count):
            rows[i] = source[i].row

    cdef inline bint _reaches(self, double value, double threshold) noexcept nogil:
        return value > threshold if self.strict else value >= threshold

    cdef Py_ssize_t _find_near(
        self, Py_ssize_t k, int32_t row, Scratch* s, double* best
    ) noexcept nogil:
        """List the ground truths that a detection reaches at the lowest threshold.

        Where only the best may be matched, it alone is listed.
        """
        cdef const int32_t* truths = self.gt_order + self.gt_start[k]
        cdef int32_t image = self.dt_image[row]
        cdef Py_ssize_t begin = s.truth_begin[image]
        cdef Py_ssize_t found = 0
        cdef Py_ssize_t i
        cdef int32_t truth
        cdef double value
        cdef const double* box = &self.dt_corners[row, 0]
        best[0] = 0.0
        for i in range(begin, begin + s.truth_count[image]):
            truth = truths[i]
            value = overlap(
                box, self.dt_overlap_area[row], &self.gt_corners[truth, 0],
                self.gt_overlap_area[truth], self.gt_absorbing[truth], self.edge,
            )
            if value > best[0]:
                best[0] = value
            if not self._reaches(value, self.thresholds[0]):
                continue
            if self.best_free or found == 0:
                s.near[found] = <int32_t>i
                s.near_overlap[found] = value
                found += 1
            elif value > s.near_overlap[0] or (
                self.last_of_equal and value == s.near_overlap[0]
            ):
                s.near[0] = <int32_t>i
                s.near_overlap[0] = value
        return found

    cdef Py_ssize_t _choose(
        self, Py_ssize_t k, Py_ssize_t found, Py_ssize_t a, Py_ssize_t t, Scratch* s
    ) noexcept nogil:
        """Return which of the near ground truths is matched, or -1.

        Among those still free the best; a neutral one only where no other will do.
        """
        cdef Py_ssize_t areas = self.area_low.shape[0]
        cdef Py_ssize_t lanes = areas * self.thresholds.shape[0]
        cdef Py_ssize_t lane = a * self.thresholds.shape[0] + t
        cdef Py_ssize_t chosen = -1
        cdef Py_ssize_t i
        cdef int32_t truth
        cdef int neutral
        cdef double best
        for neutral in range(2):
            best = -1.0
            for i in range(found):
                truth = s.near[i]
                if s.neutral[truth * areas + a] != neutral:
                    continue
                if s.claimed[truth * lanes + lane] and not self._absorbs(k, truth):
                    continue
                if not self._reaches(s.near_overlap[i], self.thresholds[t]):
                    continue
                if s.near_overlap[i] > best or (
                    self.last_of_equal and s.near_overlap[i] == best
                ):
                    best = s.near_overlap[i]
                    chosen = i
            if chosen >= 0:
                return chosen
        return -1

    cdef inline bint _absorbs(self, Py_ssize_t k, Py_ssize_t truth) noexcept nogil:
        return self.gt_absorbing[self.gt_order[self.gt_start[k] + truth]]

    cdef bint _score_class(self, Py_ssize_t k, Scratch* s) noexcept nogil:
        cdef Py_ssize_t thresholds = self.thresholds.shape[0]
        cdef Py_ssize_t areas = self.area_low.shape[0]
        cdef Py_ssize_t limits = self.limits.shape[0]
        cdef Py_ssize_t lanes = areas * thresholds
        cdef Py_ssize_t n = self.dt_start[k + 1] - self.dt_start[k]
        cdef const int32_t* truths = self.gt_order + self.gt_start[k]
        cdef Py_ssize_t g = self.gt_start[k + 1] - self.gt_start[k]
        cdef Py_ssize_t first = 0 if self.all_limits else limits - 1
        cdef Py_ssize_t room, i, a, t, m, m_from, lane, found, chosen, truth
        cdef int32_t row, rank
        cdef int64_t duplicates = 0
        cdef int64_t within = 0
        cdef bint inside, neutral, good
        cdef double best
        cdef Keyed* ranked = self._rank(k, s)
        self._lay_out_truths(k, s)
        if self.failed:
            return False
        # hits[(m - first), a, t, :]; each list has at most g entries.
        room = (limits - first) * lanes * g + 1
        if room > s.hits_room:
            free(s.hits)
            s.hits = <int32_t*>malloc(room * sizeof(int32_t))
            s.hits_room = room if s.hits != NULL else 0
        cdef int32_t* missed = <int32_t*>calloc(limits * areas + 1, sizeof(int32_t))
        cdef int32_t* wrong = <int32_t*>calloc(limits * lanes + 1, sizeof(int32_t))
        cdef int32_t* found_so_far = <int32_t*>calloc(limits * lanes + 1, sizeof(int32_t))
        if s.hits == NULL or missed == NULL or wrong == NULL or found_so_far == NULL:
            free(missed)
            free(wrong)
            free(found_so_far)
            return False

        for i in range(n):
            row = ranked[i].row
            rank = s.image_rank[self.dt_image[row]]
            s.image_rank[self.dt_image[row]] += 1
            if rank >= self.limits[limits - 1]:
                continue
            within += 1
            m_from = limits - 1
            while m_from > 0 and rank < self.limits[m_from - 1]:
                m_from -= 1
            found = self._find_near(k, row, s, &best)
            if self.keep:
                self.match_counted[row] = 1
                self.match_overlap[row] = best
            for a in range(areas):
                inside = (
                    self.dt_area[row] >= self.area_low[a]
                    and self.dt_area[row] <= self.area_high[a]
                )
                if found == 0:
                    if inside:
                        for m in range(m_from, limits):
                            missed[m * areas + a] += 1
                    elif self.keep:
                        for t in range(thresholds):
                            self.match_neutral[a, t, row] = 1
                    continue
                for t in range(thresholds):
                    lane = a * thresholds + t
                    if self.best_free:
                        chosen = self._choose(k, found, a, t, s)
                    elif self._reaches(s.near_overlap[0], self.thresholds[t]):
                        chosen = 0
                    else:
                        chosen = -1
                    neutral = False
                    good = False
                    if chosen >= 0:
                        truth = s.near[chosen]
                        if s.neutral[truth * areas + a]:
                            neutral = True
                        elif s.claimed[truth * lanes + lane]:
                            chosen = -1  # the best one is taken: a duplicate
                        else:
                            good = True
                    if chosen >= 0:
                        s.claimed[truth * lanes + lane] = 1
                        if self.keep:
                            self.match_truth[a, t, row] = truths[truth]
                    elif not inside:
                        neutral = True
                    if neutral:
                        if self.keep:
                            self.match_neutral[a, t, row] = 1
                    elif good:
                        for m in range(m_from, limits):
                            if m >= first:
                                s.hits[((m - first) * lanes + lane) * g
                                       + found_so_far[m * lanes + lane]] = (
                                    missed[m * areas + a] + wrong[m * lanes + lane]
                                )
                            found_so_far[m * lanes + lane] += 1
                    else:
                        for m in range(m_from, limits):
                            wrong[m * lanes + lane] += 1
                        if lane == 0 and self._reaches_counted(found, s, areas):
                            duplicates += 1

        self._write_counts(k, n, g, within, duplicates, found_so_far, missed, wrong, s)
        self._write_curves(k, g, first, found_so_far, s)
        for i in range(n):
            s.image_rank[self.dt_image[ranked[i].row]] = 0
        for i in range(g):
            s.truth_count[self.gt_image[truths[i]]] = 0
        free(missed)
        free(wrong)
        free(found_so_far)
        return True

    cdef bint _reaches_counted(
        self, Py_ssize_t found, Scratch* s, Py_ssize_t areas
    ) noexcept nogil:
        """Tell whether a false positive reached a ground truth that counts: a duplicate."""
        cdef Py_ssize_t i
        for i in range(found):
            if not s.neutral[s.near[i] * areas]:
                return True
        return False

    cdef void _write_counts(
        self, Py_ssize_t k, Py_ssize_t n, Py_ssize_t g, int64_t within, int64_t duplicates,
        const int32_t* found_so_far, const int32_t* missed, const int32_t* wrong, Scratch* s,
    ) noexcept nogil:
        cdef Py_ssize_t lanes = self.area_low.shape[0] * self.thresholds.shape[0]
        cdef Py_ssize_t last = self.limits.shape[0] - 1
        self.counts[0, k] = self.positives[0, k]
        self.counts[1, k] = g - self.positives[0, k]
        self.counts[2, k] = n
        self.counts[3, k] = found_so_far[last * lanes]
        self.counts[4, k] = missed[last * self.area_low.shape[0]] + wrong[last * lanes]
        self.counts[5, k] = duplicates
        self.counts[6, k] = within

    cdef void _write_curves(
        self, Py_ssize_t k, Py_ssize_t g, Py_ssize_t first, const int32_t* found_so_far, Scratch* s
    ) noexcept nogil:
        cdef Py_ssize_t thresholds = self.thresholds.shape[0]
        cdef Py_ssize_t areas = self.area_low.shape[0]
        cdef Py_ssize_t limits = self.limits.shape[0]
        cdef Py_ssize_t levels = self.levels.shape[0]
        cdef Py_ssize_t lanes = areas * thresholds
        cdef Py_ssize_t a, t, m, r, hits
        cdef const int32_t* above
        cdef double positives
        for a in range(areas):
            positives = <double>self.positives[a, k]
            if positives == 0.0:
                continue  # undefined: the outputs were filled with NaN
            for t in range(thresholds):
                for m in range(limits):
                    hits = found_so_far[m * lanes + a * thresholds + t]
                    self.recall[t, k, a, m] = <double>hits / positives
                    if m < first:
                        continue
                    above = s.hits + ((m - first) * lanes + a * thresholds + t) * g
                    precision_at_hits(above, hits, self.guard, s.envelope)
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
