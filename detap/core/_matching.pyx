"""Matching and scoring of detections, one class at a time, without the GIL. See matching.py.

For each class its detections are ranked by score; one pass over them finds overlaps, matches
ground truths, and counts. Classes are independent, so that threads take them one by one, and no
result depends on how many threads there are. So are images: a class that would keep the other
threads waiting is split into chunks of its images, which the threads match one by one; its curves
are accumulated from their match results.

What happens at the T thresholds is held as the bits of one word, so that a detection is matched at
all of them at once: the order in which it prefers ground truths is the same at each, and it takes,
at each, the first that it reaches there and that is still free there.

A pass keeps nothing of a detection unless match results are asked for: counts and curves come of
what it records on the way (see _accumulate.pyx).
"""

from cython cimport final
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from typing import TYPE_CHECKING

import numpy as np

from detap.core._accumulate cimport AHEAD, Accumulator, Lanes, Bits, put_bits, bits_of
from detap.core._ordering cimport Keyed, falling, group_rows, put_in_order, sort_by_key
from detap.core._overlap cimport overlap
from detap.core._prefetch cimport detap_prefetch
from detap.tables._words cimport trailing_zeros

if TYPE_CHECKING:
    from detap.core.match_table import MatchTable
    from detap.core.accumulate import Scores
    from detap.core.matching import Boxes, Pairs
    from detap.core.params import MatchParams


cdef struct Truth:
    double corners[4]
    double overlap_area
    int32_t row
    bint crowd                # takes any number of detections
    bint unmatchable                # can be matched, but not as a true positive


cdef struct Near:
    double overlap
    uint64_t reached          # thresholds, as bits
    int32_t truth             # an index into Scratch.truths


cdef struct Scratch:
    Lanes lanes
    Keyed* ranked
    Keyed* spare
    int32_t* image_rank       # per image: detections of this class seen so far
    int32_t* truth_begin      # per image: where its ground truths of this class begin in `truths`
    int32_t* truth_count
    Truth* truths             # of this class, side by side, image by image
    uint64_t* matched         # per ground truth and area range: the thresholds, as bits
    uint8_t* ignored          # per ground truth and area range
    Near* near                # ground truths that the detection at hand reaches, best first
    bint count, keep          # of the piece at hand: its numbers, and its match results


cdef inline Py_ssize_t insert_near(
    Near* near, Py_ssize_t found, double value, uint64_t reached, int32_t truth, bint last_of_equal
) noexcept nogil:
    cdef Py_ssize_t j = found
    while j > 0 and (
        value > near[j - 1].overlap or (last_of_equal and value == near[j - 1].overlap)
    ):
        near[j] = near[j - 1]
        j -= 1
    near[j].overlap = value
    near[j].reached = reached
    near[j].truth = truth
    return found + 1


@final
cdef class Scorer(Accumulator):
    """Inputs, outputs and their shapes; `work` may be called from any number of threads."""

    # Detections (N) and ground truths (G).
    cdef const int32_t[::1] dt_image, dt_label, dt_rank, gt_image, gt_label
    cdef const double[::1] dt_score, dt_overlap_area, dt_area, gt_overlap_area, gt_area
    cdef const double[:, ::1] dt_corners, gt_corners
    cdef const uint8_t[::1] gt_ignored, gt_crowd, gt_unmatchable
    cdef Py_ssize_t images
    # Candidate pairs (P), where a kernel found them; otherwise boxes overlap.
    cdef bint paired
    cdef const int64_t[::1] pair_start
    cdef const int32_t[::1] pair_truth
    cdef const double[::1] pair_overlap
    cdef int32_t* truth_place   # (G) where each ground truth lies in `truths` of its class
    # MatchParams.
    cdef const double[::1] thresholds, area_low, area_high
    cdef const int64_t[::1] limits
    cdef bint strict, best_free, last_of_equal, ties_by_image
    cdef double edge
    # Groups by piece: a class, or a chunk of the images of one that is split. Of such a one
    # no numbers are written.
    cdef int32_t[::1] dt_start, gt_start, label
    cdef uint8_t[::1] whole
    cdef int32_t* dt_order
    cdef int32_t* gt_order
    cdef Py_ssize_t pieces
    cdef readonly int32_t[:, ::1] split  # classes that are; where each stands in `ranked`
    split: memoryview
    # MatchTable; see match_table.py.
    cdef bint keep_all
    cdef Bits true_positive, ignored
    cdef uint8_t[::1] max_dets_index, duplicate
    cdef double[::1] max_iou
    cdef int32_t[:, ::1] matched_gt
    cdef int32_t[::1] ranked          # rows of each class by falling score, class by class, if kept
    cdef const int32_t[:, ::1] cell   # per area range and threshold: a row of `matched_gt`, or -1

    def __init__(
        self, detections: Boxes, truths: Boxes, flags: tuple[NDArray[np.uint8], ...],
        pairs: Pairs | None, rank: NDArray[np.int32], rules: MatchParams, limits: NDArray[np.int64],
        images: int, scores: Scores, all_limits: bool, ranked: NDArray[np.int32], most: int,
        chunk: int,
    ):
        Accumulator.__init__(self, rules, scores, all_limits)
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
            self.pair_start, self.pair_truth, self.pair_overlap = pairs
        self.thresholds = np.array(rules.thresholds, np.float64)
        self.area_low = np.array([low for low, _ in rules.area_ranges], np.float64)
        self.area_high = np.array([high for _, high in rules.area_ranges], np.float64)
        self.limits = limits
        self.strict, self.best_free = rules.strict, rules.best_free
        self.last_of_equal, self.ties_by_image = rules.last_of_equal, rules.ties_by_image
        self.edge = 1.0 if rules.inclusive_pixels else 0.0
        self.ranked = ranked
        self._group(most, chunk)

    def keep(self, match_table: MatchTable, every: bool) -> None:
        """Keep match results of `every` class, or of those that are split; these need it."""
        self.keep_all = every
        self.true_positive = bits_of(match_table.true_positive.view(np.uint8), len(match_table))
        self.ignored = bits_of(match_table.ignored.view(np.uint8), len(match_table))
        self.max_dets_index = match_table.max_dets_index
        self.duplicate = match_table.duplicate.view(np.uint8)
        self.max_iou, self.matched_gt = match_table.max_iou, match_table.matched_gt
        cell = np.full((self.A, self.T), -1, np.int32)
        for place, (area, threshold) in enumerate(match_table.area_iou_pairs):
            cell[area, threshold] = place
        self.cell = cell

    def __dealloc__(self):
        free(self.dt_order)
        free(self.gt_order)
        free(self.truth_place)

    cdef _group(self, most, chunk):
        cdef Py_ssize_t n = self.dt_label.shape[0]
        cdef Py_ssize_t g = self.gt_label.shape[0]
        cdef Py_ssize_t k = self.K
        self.dt_start, self.gt_start = np.zeros(k + 1, np.int32), np.zeros(k + 1, np.int32)
        self.dt_order = <int32_t*>malloc((n + 1) * sizeof(int32_t))
        self.gt_order = <int32_t*>malloc((g + 1) * sizeof(int32_t))
        self.truth_place = <int32_t*>malloc((g + 1 if self.paired else 1) * sizeof(int32_t))
        if self.dt_order == NULL or self.gt_order == NULL or self.truth_place == NULL:
            raise MemoryError()
        cdef const int32_t* dt_label = &self.dt_label[0] if n else NULL
        cdef const int32_t* gt_label = &self.gt_label[0] if g else NULL
        with nogil:
            group_rows(dt_label, n, k, &self.dt_start[0], self.dt_order)
            group_rows(gt_label, g, k, &self.gt_start[0], self.gt_order)
        sizes = np.add(np.diff(self.dt_start), np.diff(self.gt_start), dtype=np.int64)
        self.label, self.whole = np.arange(k, dtype=np.int32), np.ones(k, np.uint8)
        large = np.flatnonzero(sizes > most).tolist()
        begins = [(label, self.dt_start[label], self.dt_start[label + 1]) for label in large]
        self.split = np.array(begins, np.int32).reshape(-1, 3)
        for label in reversed(large):
            self._split_class(label, chunk)
        self.pieces = len(self.label)
        sizes = np.add(np.diff(self.dt_start), np.diff(self.gt_start), dtype=np.int64).tolist()
        sizes += [end - begin for _, begin, end in begins]  # to be ranked as a whole
        self.line_up(range(len(sizes)), sizes)

    cdef _split_class(self, Py_ssize_t k, chunk):
        """Split a class into chunks of its images. Classes before it are whole yet."""
        dt_rows = np.asarray(<int32_t[: self.dt_image.shape[0] + 1]>self.dt_order)
        gt_rows = np.asarray(<int32_t[: self.gt_image.shape[0] + 1]>self.gt_order)
        dt_rows = dt_rows[self.dt_start[k] : self.dt_start[k + 1]]
        gt_rows = gt_rows[self.gt_start[k] : self.gt_start[k + 1]]
        np.asarray(self.ranked)[self.dt_start[k] : self.dt_start[k + 1]] = dt_rows
        dt_image, gt_image = np.asarray(self.dt_image)[dt_rows], np.asarray(self.gt_image)[gt_rows]
        held = np.bincount(dt_image, minlength=self.images)
        held += np.bincount(gt_image, minlength=self.images)
        number = ((np.cumsum(held) - held) // chunk).astype(np.int32)
        pieces = int(number[-1]) + 1
        self.dt_start = self._cut(k, self.dt_start, dt_rows, number[dt_image], pieces)
        self.gt_start = self._cut(k, self.gt_start, gt_rows, number[gt_image], pieces)
        self.label = np.insert(self.label, k, np.full(pieces - 1, k, np.int32))
        self.whole = np.insert(self.whole, k, np.zeros(pieces - 1, np.uint8))
        self.whole[k + pieces - 1] = False

    cdef _cut(self, Py_ssize_t k, start, rows, const int32_t[::1] number, Py_ssize_t pieces):
        """Put rows of a class piece by piece; return where each piece begins."""
        cdef Py_ssize_t n = number.shape[0]
        cdef int32_t[::1] found = np.zeros(pieces + 1, np.int32)
        cdef int32_t[::1] order = np.zeros(n + 1, np.int32)
        with nogil:
            group_rows(&number[0] if n else NULL, n, pieces, &found[0], &order[0])
        rows[:] = rows[np.asarray(order)[:n]]
        return np.insert(start, k + 1, np.asarray(found)[1:-1] + start[k])

    cdef void* prepare(self) noexcept nogil:
        cdef Scratch* s = <Scratch*>calloc(1, sizeof(Scratch))
        if s != NULL and not self._prepare(s):
            self.release(s)
            return NULL
        return s

    cdef bint _prepare(self, Scratch* s) noexcept nogil:
        cdef Py_ssize_t k, n, most_detections = 1, most_truths = 1
        for k in range(self.pieces):
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
        s.matched = <uint64_t*>malloc(most_truths * self.A * sizeof(uint64_t))
        s.ignored = <uint8_t*>malloc(most_truths * self.A)
        s.near = <Near*>malloc(most_truths * sizeof(Near))
        return (
            self.prepare_lanes(&s.lanes)
            and s.ranked != NULL and s.spare != NULL and s.image_rank != NULL
            and s.truth_begin != NULL and s.truth_count != NULL and s.truths != NULL
            and s.matched != NULL and s.ignored != NULL and s.near != NULL
        )

    cdef void release(self, void* scratch) noexcept nogil:
        cdef Scratch* s = <Scratch*>scratch
        if s == NULL:
            return
        self.release_lanes(&s.lanes)
        free(s.ranked)
        free(s.spare)
        free(s.image_rank)
        free(s.truth_begin)
        free(s.truth_count)
        free(s.truths)
        free(s.matched)
        free(s.ignored)
        free(s.near)
        free(s)

    cdef bint run(self, Py_ssize_t piece, void* scratch) noexcept nogil:
        cdef Scratch* s = <Scratch*>scratch
        cdef Py_ssize_t g
        if piece >= self.pieces:
            return self._rank_split(piece - self.pieces)
        g = self.gt_start[piece + 1] - self.gt_start[piece]
        s.count = self.whole[piece]
        s.keep = self.keep_all or not s.count
        # Each ground truth is found once at most.
        if not self.begin(g if s.count else 0, &s.lanes):
            return False
        self._lay_out_truths(piece, g, s)
        self._walk(piece, g, s)
        if s.count:
            self.write_curves(self.label[piece], g, &s.lanes)
        return True

    cdef Keyed* _by_image(
        self, const int32_t* rows, Py_ssize_t count, const int32_t* image, Keyed* items,
        Keyed* spare,
    ) noexcept nogil:
        """Return the rows by image, each image's in file order."""
        cdef Py_ssize_t i
        for i in range(count):
            items[i].row = rows[i]
            items[i].key = image[rows[i]]
        return put_in_order(items, spare, count)

    cdef void _lay_out_truths(self, Py_ssize_t piece, Py_ssize_t g, Scratch* s) noexcept nogil:
        """Put the piece's ground truths side by side, and say which count in which area range."""
        cdef Py_ssize_t areas = self.A
        cdef Py_ssize_t k = self.label[piece]
        cdef Py_ssize_t i, a
        cdef int32_t row
        cdef double area
        cdef const Keyed* ordered
        if g == 0:
            return
        ordered = self._by_image(
            self.gt_order + self.gt_start[piece], g, &self.gt_image[0], s.ranked, s.spare
        )
        for i in range(g):
            row = ordered[i].row
            if self.paired:
                self.truth_place[row] = <int32_t>i
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
                if s.count and not s.ignored[i * areas + a]:
                    self.positives[a, k] += 1

    cdef Keyed* _rank(
        self, const int32_t* rows, Py_ssize_t n, Keyed* ranked, Keyed* spare
    ) noexcept nogil:
        """Return a class's detections by falling score, equal ones in the protocol's order."""
        cdef Keyed* items = ranked
        cdef Py_ssize_t i
        if self.ties_by_image:
            ranked = self._by_image(rows, n, &self.dt_image[0], ranked, spare)
            spare = spare if ranked == items else items
        else:
            for i in range(n):
                ranked[i].row = rows[i]
        for i in range(n):
            ranked[i].key = falling(self.dt_score[ranked[i].row])
        return sort_by_key(ranked, spare, n)

    cdef bint _rank_split(self, Py_ssize_t place) noexcept nogil:
        """Rank the rows of a class that is split, while others match them."""
        cdef Py_ssize_t begin = self.split[place, 1]
        cdef Py_ssize_t i, n = self.split[place, 2] - begin
        cdef Keyed* items = <Keyed*>malloc((n + 1) * sizeof(Keyed))
        cdef Keyed* spare = <Keyed*>malloc((n + 1) * sizeof(Keyed))
        cdef const Keyed* ranked
        cdef bint ready = items != NULL and spare != NULL
        if ready and n:
            ranked = self._rank(&self.ranked[begin], n, items, spare)
            for i in range(n):
                self.ranked[begin + i] = ranked[i].row
        free(items)
        free(spare)
        return ready

    cdef inline uint64_t _reach(self, double value) noexcept nogil:
        """Return the thresholds that an overlap reaches, as bits; they ascend."""
        cdef Py_ssize_t thresholds = self.T
        cdef Py_ssize_t t = 0
        if self.strict:
            while t < thresholds and value > self.thresholds[t]:
                t += 1
        else:
            while t < thresholds and value >= self.thresholds[t]:
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
        cdef Py_ssize_t i
        cdef double value
        cdef uint64_t reached
        best[0] = 0.0
        for i in range(begin, begin + s.truth_count[image]):
            value = overlap(
                box, area, s.truths[i].corners, s.truths[i].overlap_area,
                s.truths[i].crowd, self.edge,
            )
            if value > best[0]:
                best[0] = value
            reached = self._reach(value)
            if reached:
                found = insert_near(s.near, found, value, reached, <int32_t>i, self.last_of_equal)
        return found if self.best_free or found == 0 else 1

    cdef Py_ssize_t _read_near(self, int32_t row, Scratch* s, double* best) noexcept nogil:
        """List the same from pairs, which are in the order of the file."""
        cdef Py_ssize_t found = 0
        cdef int64_t p
        cdef double value
        cdef uint64_t reached
        best[0] = 0.0
        for p in range(self.pair_start[row], self.pair_start[row + 1]):
            value = self.pair_overlap[p]
            if value > best[0]:
                best[0] = value
            reached = self._reach(value)
            if reached:
                found = insert_near(
                    s.near, found, value, reached, self.truth_place[self.pair_truth[p]],
                    self.last_of_equal,
                )
        return found if self.best_free or found == 0 else 1

    cdef void _walk(self, Py_ssize_t piece, Py_ssize_t g, Scratch* s) noexcept nogil:
        """Let the piece's detections match ground truths by falling score."""
        cdef Py_ssize_t areas = self.A, limits = self.M
        cdef Py_ssize_t k = self.label[piece]
        cdef Py_ssize_t n = self.dt_start[piece + 1] - self.dt_start[piece]
        cdef Py_ssize_t i, a, m, m_from, near
        cdef int32_t row, rank
        cdef int64_t within = 0
        cdef int64_t duplicates = 0
        cdef bint inside
        cdef double best, area
        cdef uint64_t missed
        cdef const int32_t* rows = self.dt_order + self.dt_start[piece]
        cdef const Keyed* ranked = self._rank(rows, n, s.ranked, s.spare) if n else NULL
        for i in range(n):
            if i + AHEAD < n and not self.paired:
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
            near = self._read_near(row, s, &best) if self.paired else self._find_near(row, s, &best)
            if s.keep:
                self.max_dets_index[row] = <uint8_t>m_from
                self.max_iou[row] = best
            if not s.count:
                m_from = limits  # at no limit is anything counted
            area = self.dt_area[row]
            for a in range(areas):
                inside = self.area_low[a] <= area <= self.area_high[a]
                if near:
                    missed = self._match(row, a, near, m_from, g, inside, s)
                    if a == 0 and inside and (missed & 1) and self._is_duplicate(near, s):
                        duplicates += 1
                        if s.keep:
                            self.duplicate[row] = 1
                if inside:
                    for m in range(m_from, limits):
                        s.lanes.seen[m * areas + a] += 1
                elif s.keep and near == 0:
                    put_bits(&self.ignored, a, row, self.every)
        for i in range(n):
            s.image_rank[self.dt_image[ranked[i].row]] = 0
            if s.keep and s.count:
                self.ranked[self.dt_start[piece] + i] = ranked[i].row
        for i in range(g):
            s.truth_count[self.gt_image[s.truths[i].row]] = 0
        if not s.count:
            return
        self.write_counts(k, within, duplicates, &s.lanes)
        self.counts[1, k] = g - self.positives[0, k]
        self.counts[2, k] = n

    cdef uint64_t _match(
        self, int32_t row, Py_ssize_t a, Py_ssize_t near, Py_ssize_t m_from, Py_ssize_t g,
        bint inside, Scratch* s,
    ) noexcept nogil:
        """Match one detection in one area range; return the thresholds at which it has no match.

        An ignored ground truth is taken only where no other will do.
        """
        cdef Py_ssize_t areas = self.A
        cdef uint64_t open_bits = ~<uint64_t>0
        cdef uint64_t taken
        cdef uint64_t good = 0
        cdef uint64_t excused = 0
        cdef Py_ssize_t i, place
        cdef const Truth* truth
        cdef int ignored
        for ignored in range(2):
            for i in range(near):
                place = s.near[i].truth * areas + a
                if s.ignored[place] != ignored:
                    continue
                taken = s.near[i].reached & open_bits
                # Where only the best may be matched, an ignored one is never used up.
                if not (s.truths[s.near[i].truth].crowd or (ignored and not self.best_free)):
                    taken &= ~s.matched[place]
                if taken == 0:
                    continue
                s.matched[place] |= taken
                open_bits &= ~taken
                if ignored:
                    excused |= taken
                elif not s.truths[s.near[i].truth].unmatchable:
                    good |= taken
                truth = &s.truths[s.near[i].truth]
                if s.keep and self.matched_gt.shape[0] and not truth.unmatchable:
                    self._keep_truth(row, a, taken, truth.row)
        if good:
            self.record(a, good, m_from, g, &s.lanes)
        if inside:
            self.excuse(a, good | excused, m_from, &s.lanes)
        if s.keep:
            put_bits(&self.true_positive, a, row, good)
            put_bits(&self.ignored, a, row, excused if inside else self.every & ~good)
        return open_bits

    cdef bint _is_duplicate(self, Py_ssize_t near, Scratch* s) noexcept nogil:
        """Tell whether a false positive reaches a ground truth that counts."""
        cdef Py_ssize_t i
        for i in range(near):
            if (s.near[i].reached & 1) and not s.ignored[s.near[i].truth * self.A]:
                return True
        return False

    cdef void _keep_truth(
        self, int32_t row, Py_ssize_t a, uint64_t taken, int32_t truth
    ) noexcept nogil:
        cdef int32_t cell
        while taken:
            cell = self.cell[a, trailing_zeros(taken)]
            if cell >= 0:
                self.matched_gt[cell, row] = truth
            taken &= taken - 1
