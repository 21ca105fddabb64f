"""Match detections to ground truths, without the GIL. See matching.py.

One pass over a class's ranked detections computes IoUs, matches and counts. Threads take classes
one by one; the result does not depend on their number. A class that would keep other threads
waiting is split into chunks of its images, matched independently; its curves are accumulated from
the match results.

The T thresholds are bits of one integer: a detection is matched at all of them at once. The order
of its candidate ground truths is the same at each threshold; at each it matches the first one that
it reaches and that is still unmatched.

Match results are stored only on request: counts and curves are recorded during the pass (see
_accumulate.pyx).
"""

from cython cimport final
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from typing import TYPE_CHECKING

import numpy as np

from detap.core._accumulate cimport (
    PREFETCH_DISTANCE, Accumulator, Bits, Counters, bits_of, put_bits
)
from detap.core._ordering cimport Keyed, descending_key, group_rows, sort_if_needed, sort_by_key
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
    bint crowd                # matches any number of detections
    bint unmatchable          # its matches are not true positives


cdef struct Candidate:
    double similarity
    uint64_t reached          # thresholds, as bits
    int32_t truth             # index into Scratch.truths


cdef struct Scratch:
    Counters counters
    Keyed* ranked
    Keyed* spare
    int32_t* image_rank       # per image: detections of the class so far
    int32_t* truth_begin      # per image: first of its ground truths in `truths`
    int32_t* truth_count      # per image
    Truth* truths             # of the class, image by image
    uint64_t* matched         # per ground truth and area range: thresholds as bits
    uint8_t* ignored          # per ground truth and area range
    Candidate* candidates     # ground truths that the detection reaches, best first
    bint write_scores, keep_matches   # of the current chunk


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
    cdef Py_ssize_t images
    # Precomputed pairs (P); boxes are compared if there are none.
    cdef bint paired
    cdef const int64_t[::1] pair_start
    cdef const int32_t[::1] pair_truth
    cdef const double[::1] pair_similarity
    cdef int32_t* truth_index   # (G) index into `truths` of its class
    # MatchParams.
    cdef const double[::1] thresholds, area_low, area_high
    cdef const int64_t[::1] max_dets
    cdef bint strict, best_unmatched, last_of_equal, ties_by_image
    cdef double pixel_offset
    # A chunk is a class, or some images of a split class; only the former writes scores.
    cdef int32_t[::1] dt_start, gt_start, label
    cdef uint8_t[::1] unsplit
    cdef int32_t* dt_order
    cdef int32_t* gt_order
    cdef Py_ssize_t chunks
    cdef readonly int32_t[:, ::1] split  # (label, begin, end) in `ranked` of split classes
    split: memoryview
    # Columns of MatchTable.
    cdef bint keep_all
    cdef Bits true_positive, ignored
    cdef uint8_t[::1] max_dets_index, duplicate
    cdef double[::1] max_iou
    cdef int32_t[:, ::1] matched_gt
    cdef int32_t[::1] ranked          # rows by class and descending score, if kept
    cdef const int32_t[:, ::1] pair_index   # (A, T) row of `matched_gt`, or -1

    def __init__(
        self, detections: Boxes, truths: Boxes, flags: tuple[NDArray[np.uint8], ...],
        pairs: Pairs | None, rank: NDArray[np.int32], params: MatchParams,
        max_dets: NDArray[np.int64], images: int, scores: Scores, all_max_dets: bool,
        ranked: NDArray[np.int32], max_rows: int, chunk_size: int,
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
        self.ranked = ranked
        self._group(max_rows, chunk_size)

    def keep_matches(self, match_table: MatchTable, all_classes: bool) -> None:
        """Store match results of all classes, or of split ones, which need them."""
        self.keep_all = all_classes
        self.true_positive = bits_of(match_table.true_positive.view(np.uint8), len(match_table))
        self.ignored = bits_of(match_table.ignored.view(np.uint8), len(match_table))
        self.max_dets_index = match_table.max_dets_index
        self.duplicate = match_table.duplicate.view(np.uint8)
        self.max_iou, self.matched_gt = match_table.max_iou, match_table.matched_gt
        pair_index = np.full((self.A, self.T), -1, np.int32)
        for index, (area, threshold) in enumerate(match_table.area_iou_pairs):
            pair_index[area, threshold] = index
        self.pair_index = pair_index

    def __dealloc__(self):
        free(self.dt_order)
        free(self.gt_order)
        free(self.truth_index)

    cdef _group(self, max_rows, chunk_size):
        cdef Py_ssize_t n = self.dt_label.shape[0]
        cdef Py_ssize_t g = self.gt_label.shape[0]
        cdef Py_ssize_t k = self.K
        self.dt_start, self.gt_start = np.zeros(k + 1, np.int32), np.zeros(k + 1, np.int32)
        self.dt_order = <int32_t*>malloc((n + 1) * sizeof(int32_t))
        self.gt_order = <int32_t*>malloc((g + 1) * sizeof(int32_t))
        self.truth_index = <int32_t*>malloc((g + 1 if self.paired else 1) * sizeof(int32_t))
        if self.dt_order == NULL or self.gt_order == NULL or self.truth_index == NULL:
            raise MemoryError()
        cdef const int32_t* dt_label = &self.dt_label[0] if n else NULL
        cdef const int32_t* gt_label = &self.gt_label[0] if g else NULL
        with nogil:
            group_rows(dt_label, n, k, &self.dt_start[0], self.dt_order)
            group_rows(gt_label, g, k, &self.gt_start[0], self.gt_order)
        sizes = np.add(np.diff(self.dt_start), np.diff(self.gt_start), dtype=np.int64)
        self.label, self.unsplit = np.arange(k, dtype=np.int32), np.ones(k, np.uint8)
        large = np.flatnonzero(sizes > max_rows).tolist()
        begins = [(label, self.dt_start[label], self.dt_start[label + 1]) for label in large]
        self.split = np.array(begins, np.int32).reshape(-1, 3)
        for label in reversed(large):
            self._split_class(label, chunk_size)
        self.chunks = len(self.label)
        sizes = np.add(np.diff(self.dt_start), np.diff(self.gt_start), dtype=np.int64).tolist()
        sizes += [end - begin for _, begin, end in begins]  # a split class is ranked as a whole
        self.queue_jobs(range(len(sizes)), sizes)

    cdef _split_class(self, Py_ssize_t k, chunk_size):
        """Split a class into chunks of its images; earlier classes are not split yet."""
        dt_rows = np.asarray(<int32_t[: self.dt_image.shape[0] + 1]>self.dt_order)
        gt_rows = np.asarray(<int32_t[: self.gt_image.shape[0] + 1]>self.gt_order)
        dt_rows = dt_rows[self.dt_start[k] : self.dt_start[k + 1]]
        gt_rows = gt_rows[self.gt_start[k] : self.gt_start[k + 1]]
        np.asarray(self.ranked)[self.dt_start[k] : self.dt_start[k + 1]] = dt_rows
        dt_image, gt_image = np.asarray(self.dt_image)[dt_rows], np.asarray(self.gt_image)[gt_rows]
        row_counts = np.bincount(dt_image, minlength=self.images)
        row_counts += np.bincount(gt_image, minlength=self.images)
        chunk_of_image = ((np.cumsum(row_counts) - row_counts) // chunk_size).astype(np.int32)
        chunks = int(chunk_of_image[self.images - 1]) + 1
        self.dt_start = self._group_by_chunk(
            k, self.dt_start, dt_rows, chunk_of_image[dt_image], chunks)
        self.gt_start = self._group_by_chunk(
            k, self.gt_start, gt_rows, chunk_of_image[gt_image], chunks)
        self.label = np.insert(self.label, k, np.full(chunks - 1, k, np.int32))
        self.unsplit = np.insert(self.unsplit, k, np.zeros(chunks - 1, np.uint8))
        self.unsplit[k + chunks - 1] = False

    cdef _group_by_chunk(
        self, Py_ssize_t k, start, rows, const int32_t[::1] chunk_of_row, Py_ssize_t chunks
    ):
        """Order rows of a class by chunk; return the start of each chunk."""
        cdef Py_ssize_t n = chunk_of_row.shape[0]
        cdef int32_t[::1] chunk_start = np.zeros(chunks + 1, np.int32)
        cdef int32_t[::1] order = np.zeros(n + 1, np.int32)
        with nogil:
            group_rows(&chunk_of_row[0] if n else NULL, n, chunks, &chunk_start[0], &order[0])
        rows[:] = rows[np.asarray(order)[:n]]
        return np.insert(start, k + 1, np.asarray(chunk_start)[1:chunks] + start[k])

    cdef void* prepare(self) noexcept nogil:
        cdef Scratch* s = <Scratch*>calloc(1, sizeof(Scratch))
        if s != NULL and not self._prepare(s):
            self.release(s)
            return NULL
        return s

    cdef bint _prepare(self, Scratch* s) noexcept nogil:
        cdef Py_ssize_t k, n, max_detections = 1, max_truths = 1
        for k in range(self.chunks):
            n = self.dt_start[k + 1] - self.dt_start[k]
            max_detections = n if n > max_detections else max_detections
            n = self.gt_start[k + 1] - self.gt_start[k]
            max_truths = n if n > max_truths else max_truths
        n = max_detections if max_detections > max_truths else max_truths
        s.ranked = <Keyed*>malloc(n * sizeof(Keyed))
        s.spare = <Keyed*>malloc(n * sizeof(Keyed))
        s.image_rank = <int32_t*>calloc(self.images + 1, sizeof(int32_t))
        s.truth_begin = <int32_t*>calloc(self.images + 1, sizeof(int32_t))
        s.truth_count = <int32_t*>calloc(self.images + 1, sizeof(int32_t))
        s.truths = <Truth*>malloc(max_truths * sizeof(Truth))
        s.matched = <uint64_t*>malloc(max_truths * self.A * sizeof(uint64_t))
        s.ignored = <uint8_t*>malloc(max_truths * self.A)
        s.candidates = <Candidate*>malloc(max_truths * sizeof(Candidate))
        return (
            self.allocate_counters(&s.counters)
            and s.ranked != NULL and s.spare != NULL and s.image_rank != NULL
            and s.truth_begin != NULL and s.truth_count != NULL and s.truths != NULL
            and s.matched != NULL and s.ignored != NULL and s.candidates != NULL
        )

    cdef void release(self, void* scratch) noexcept nogil:
        cdef Scratch* s = <Scratch*>scratch
        if s == NULL:
            return
        self.free_counters(&s.counters)
        free(s.ranked)
        free(s.spare)
        free(s.image_rank)
        free(s.truth_begin)
        free(s.truth_count)
        free(s.truths)
        free(s.matched)
        free(s.ignored)
        free(s.candidates)
        free(s)

    cdef bint run(self, Py_ssize_t chunk, void* scratch) noexcept nogil:
        cdef Scratch* s = <Scratch*>scratch
        cdef Py_ssize_t g
        if chunk >= self.chunks:
            return self._rank_split(chunk - self.chunks)
        g = self.gt_start[chunk + 1] - self.gt_start[chunk]
        s.write_scores = self.unsplit[chunk]
        s.keep_matches = self.keep_all or not s.write_scores
        # Each ground truth is matched at most once.
        if not self.reset(g if s.write_scores else 0, &s.counters):
            return False
        self._load_truths(chunk, g, s)
        self._match_chunk(chunk, g, s)
        if s.write_scores:
            self.write_curves(self.label[chunk], g, &s.counters)
        return True

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

    cdef void _load_truths(self, Py_ssize_t chunk, Py_ssize_t g, Scratch* s) noexcept nogil:
        """Load the chunk's ground truths and set their ignore flags."""
        cdef Py_ssize_t areas = self.A
        cdef Py_ssize_t k = self.label[chunk]
        cdef Py_ssize_t i, a
        cdef int32_t row
        cdef double area
        cdef const Keyed* ordered
        if g == 0:
            return
        ordered = self._by_image(
            self.gt_order + self.gt_start[chunk], g, &self.gt_image[0], s.ranked, s.spare
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
                if s.write_scores and not s.ignored[i * areas + a]:
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

    cdef bint _rank_split(self, Py_ssize_t index) noexcept nogil:
        """Rank the rows of a split class while other threads match them."""
        cdef Py_ssize_t begin = self.split[index, 1]
        cdef Py_ssize_t i, n = self.split[index, 2] - begin
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
        """List the ground truths that a detection reaches at any threshold, best first.

        Equal ones are in file order, or reversed, by protocol. If only the best may be matched,
        only it is listed.
        """
        cdef int32_t image = self.dt_image[row]
        cdef Py_ssize_t begin = s.truth_begin[image]
        cdef const double* box = &self.dt_corners[row, 0]
        cdef double area = self.dt_overlap_area[row]
        cdef Py_ssize_t count = 0
        cdef Py_ssize_t i
        cdef double similarity
        cdef uint64_t reached
        best[0] = 0.0
        for i in range(begin, begin + s.truth_count[image]):
            similarity = overlap(
                box, area, s.truths[i].corners, s.truths[i].overlap_area,
                s.truths[i].crowd, self.pixel_offset,
            )
            if similarity > best[0]:
                best[0] = similarity
            reached = self._thresholds_reached(similarity)
            if reached:
                count = insert_candidate(
                    s.candidates, count, similarity, reached, <int32_t>i, self.last_of_equal
                )
        return count if self.best_unmatched or count == 0 else 1

    cdef Py_ssize_t _read_candidates(self, int32_t row, Scratch* s, double* best) noexcept nogil:
        """List the candidates from precomputed pairs, which are in file order."""
        cdef Py_ssize_t count = 0
        cdef int64_t p
        cdef double similarity
        cdef uint64_t reached
        best[0] = 0.0
        for p in range(self.pair_start[row], self.pair_start[row + 1]):
            similarity = self.pair_similarity[p]
            if similarity > best[0]:
                best[0] = similarity
            reached = self._thresholds_reached(similarity)
            if reached:
                count = insert_candidate(
                    s.candidates, count, similarity, reached, self.truth_index[self.pair_truth[p]],
                    self.last_of_equal,
                )
        return count if self.best_unmatched or count == 0 else 1

    cdef void _match_chunk(self, Py_ssize_t chunk, Py_ssize_t g, Scratch* s) noexcept nogil:
        """Match the chunk's detections in descending score order."""
        cdef Py_ssize_t areas = self.A, max_dets_count = self.M
        cdef Py_ssize_t k = self.label[chunk]
        cdef Py_ssize_t n = self.dt_start[chunk + 1] - self.dt_start[chunk]
        cdef Py_ssize_t i, a, m, first_m, n_near
        cdef int32_t row, rank
        cdef int64_t within = 0
        cdef int64_t duplicates = 0
        cdef bint inside
        cdef double best, area
        cdef uint64_t unmatched
        cdef const int32_t* rows = self.dt_order + self.dt_start[chunk]
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
            if self.paired:
                n_near = self._read_candidates(row, s, &best)
            else:
                n_near = self._find_candidates(row, s, &best)
            if s.keep_matches:
                self.max_dets_index[row] = <uint8_t>first_m
                self.max_iou[row] = best
            if not s.write_scores:
                first_m = max_dets_count  # count nothing
            area = self.dt_area[row]
            for a in range(areas):
                inside = self.area_low[a] <= area <= self.area_high[a]
                if n_near:
                    unmatched = self._match(row, a, n_near, first_m, g, inside, s)
                    if a == 0 and inside and (unmatched & 1) and self._is_duplicate(n_near, s):
                        duplicates += 1
                        if s.keep_matches:
                            self.duplicate[row] = 1
                if inside:
                    for m in range(first_m, max_dets_count):
                        s.counters.dt_counts[m * areas + a] += 1
                elif s.keep_matches and n_near == 0:
                    put_bits(&self.ignored, a, row, self.all_thresholds)
        for i in range(n):
            s.image_rank[self.dt_image[ranked[i].row]] = 0
            if s.keep_matches and s.write_scores:
                self.ranked[self.dt_start[chunk] + i] = ranked[i].row
        for i in range(g):
            s.truth_count[self.gt_image[s.truths[i].row]] = 0
        if not s.write_scores:
            return
        self.write_counts(k, within, duplicates, &s.counters)
        self.counts[1, k] = g - self.positives[0, k]
        self.counts[2, k] = n

    cdef uint64_t _match(
        self, int32_t row, Py_ssize_t a, Py_ssize_t n_candidates, Py_ssize_t first_m, Py_ssize_t g,
        bint inside, Scratch* s,
    ) noexcept nogil:
        """Match a detection in one area range; return the thresholds without a match.

        Ground truths that are not ignored are matched first.
        """
        cdef Py_ssize_t areas = self.A
        cdef uint64_t unmatched = ~<uint64_t>0
        cdef uint64_t bits
        cdef uint64_t tp = 0
        cdef uint64_t ignored_bits = 0
        cdef Py_ssize_t i, index
        cdef const Truth* truth
        cdef int ignored
        for ignored in range(2):
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
                if s.keep_matches and self.matched_gt.shape[0] and not truth.unmatchable:
                    self._store_match(row, a, bits, truth.row)
        if tp:
            self.record_hits(a, tp, first_m, g, &s.counters)
        if inside:
            self.count_not_fp(a, tp | ignored_bits, first_m, &s.counters)
        if s.keep_matches:
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
