"""Precision-recall curves from hits, compiled. See curves.py.

A ranked list is stored as *hits*: for each relevant item, in order, the number of irrelevant items
above it. Precision rises only at hits, so nothing else is needed: half a million detections with
forty true positives are forty numbers.
"""

from libc.math cimport NAN
from libc.stdint cimport int8_t, int32_t, int64_t

import numpy as np


cdef double pairwise_sum(const double* values, Py_ssize_t count) noexcept nogil:
    # The order of operations of numpy.add.reduce, for the same bits.
    cdef double[8] part
    cdef double total = 0.0
    cdef Py_ssize_t i = 0, j, half
    if count > 128:
        half = count // 2
        half -= half % 8
        return pairwise_sum(values, half) + pairwise_sum(values + half, count - half)
    if count >= 8:
        for j in range(8):
            part[j] = values[j]
        for i in range(8, count - count % 8, 8):
            for j in range(8):
                part[j] += values[i + j]
        total = ((part[0] + part[1]) + (part[2] + part[3])) + (
            (part[4] + part[5]) + (part[6] + part[7]))
        i = count - count % 8
    while i < count:
        total += values[i]
        i += 1
    return total


cdef void precision_at_hits(
    const int32_t* false_positives, Py_ssize_t hits, double precision_eps, double* precision
) noexcept nogil:
    cdef Py_ssize_t h
    cdef double tp
    for h in range(hits):
        tp = <double>(h + 1)
        precision[h] = tp / ((<double>false_positives[h] + tp) + precision_eps)


cdef void make_envelope(double* precision, Py_ssize_t hits) noexcept nogil:
    cdef Py_ssize_t h
    for h in range(hits - 2, -1, -1):
        if precision[h + 1] > precision[h]:
            precision[h] = precision[h + 1]


cdef void read_levels(
    const double* envelope, Py_ssize_t hits, double positives,
    const double* targets, Py_ssize_t n_levels, double* out,
) noexcept nogil:
    # The envelope at the first hit whose recall reaches the target; 0 if there is none.
    cdef Py_ssize_t h = 0
    cdef Py_ssize_t level
    for level in range(n_levels):
        while h < hits and <double>(h + 1) / positives < targets[level]:
            h += 1
        out[level] = envelope[h] if h < hits else 0.0


cdef double average_of_levels(
    double* values, const double* levels, Py_ssize_t count, Summing summing
) noexcept nogil:
    # voc_eval adds p / 11 level by level; numpy.mean adds in pairs and divides once;
    # numpy.trapezoid adds areas in pairs (they overwrite `values`).
    cdef Py_ssize_t i
    cdef double total = 0.0
    if summing == PAIRWISE:
        return pairwise_sum(values, count) / <double>count
    if summing == TRAPEZOID:
        for i in range(count - 1):
            values[i] = (levels[i + 1] - levels[i]) * (values[i + 1] + values[i]) / 2.0
        return pairwise_sum(values, count - 1)
    for i in range(count):
        total += values[i] / <double>count
    # Eleven elevenths add up to one ulp above 1, as in voc_eval; AP is capped at 1.
    return total if total < 1.0 else 1.0


cdef double area_under(
    const double* precision, Py_ssize_t hits, double positives, double* terms
) noexcept nogil:
    # Recall step times precision at each hit. The last term, the step from the final recall to 1,
    # is 0 but changes numpy's order of summation.
    cdef Py_ssize_t h
    cdef double previous = 0.0
    cdef double recall
    for h in range(hits):
        recall = <double>(h + 1) / positives
        terms[h] = (recall - previous) * precision[h]
        previous = recall
    if previous != 1.0:
        terms[hits] = 0.0
        hits += 1
    return pairwise_sum(terms, hits)


def count_above(
    const int8_t[::1] kind, const int32_t[::1] start, const int32_t[::1] begin,
    const int32_t[::1] index, int32_t[:, ::1] out,
) -> None:
    """Count the items of each kind above given positions of their lists."""
    cdef int32_t counts[8]
    cdef Py_ssize_t k, e, i, value
    if out.shape[0] > 8:
        raise ValueError("more than 8 kinds")
    with nogil:
        for k in range(start.shape[0] - 1):
            for i in range(8):
                counts[i] = 0
            i = start[k]
            for e in range(begin[k], begin[k + 1]):
                while i < index[e]:
                    if kind[i] >= 0:
                        counts[kind[i]] += 1
                    i += 1
                for value in range(out.shape[0]):
                    out[value, e] = counts[value]


def fill_averages(
    const int32_t[::1] false_positives, const int32_t[::1] begin, const int64_t[::1] positives,
    const double[::1] levels, const double[::1] targets, double precision_eps, Summing summing: int,
    double[::1] out,
) -> None:
    """Write the interpolated average precision of several lists to `out`."""
    # Those of list k are ``begin[k]`` to ``begin[k + 1]``; without levels, precision is integrated.
    cdef Py_ssize_t k, hits, max_hits = 0
    for k in range(out.shape[0]):
        max_hits = max(max_hits, begin[k + 1] - begin[k])
    # Arrays are released on any exit.
    cdef double[::1] precision = np.empty(max_hits + 1)
    cdef double[::1] terms = np.empty(max(max_hits + 1, levels.shape[0]))
    with nogil:
        for k in range(out.shape[0]):
            if positives[k] <= 0:
                out[k] = NAN
                continue
            hits = begin[k + 1] - begin[k]
            if hits:
                precision_at_hits(&false_positives[begin[k]], hits, precision_eps, &precision[0])
                make_envelope(&precision[0], hits)
            if levels.shape[0]:
                read_levels(
                    &precision[0], hits, positives[k], &targets[0], levels.shape[0], &terms[0]
                )
                out[k] = average_of_levels(&terms[0], &levels[0], levels.shape[0], summing)
            else:
                out[k] = area_under(&precision[0], hits, positives[k], &terms[0])


# --- interpolated precision, stored without repetitions; see interpolated.py


def fill_slots(const double[::1] targets, int32_t[:, ::1] out) -> None:
    """Write the slot of each level for each number of ground truths, (R + 1, R)."""
    cdef Py_ssize_t positives, level
    # Hit numbers in place of precisions; 0 is a level that is not reached.
    cdef double[::1] hit = np.arange(1.0, targets.shape[0] + 1)
    cdef double[::1] slot = np.zeros(targets.shape[0])
    with nogil:
        for positives in range(out.shape[0]):
            if positives == targets.shape[0]:
                for level in range(targets.shape[0]):
                    out[positives, level] = <int32_t>(level + 1)
                continue
            read_levels(&hit[0], positives, positives, &targets[0], targets.shape[0], &slot[0])
            for level in range(targets.shape[0]):
                out[positives, level] = <int32_t>slot[level]


def fill_dense(
    const double[:, :, :, ::1] values, const int64_t[::1] start, const int64_t[:, ::1] positives,
    const int32_t[:, ::1] slots, double[:, :, :, :, ::1] out,
) -> None:
    """Write the precision at every level, (T, R, K, A, M)."""
    cdef Py_ssize_t t, r, k, a, m, row
    with nogil:
        for t in range(out.shape[0]):
            for r in range(out.shape[1]):
                for k in range(out.shape[2]):
                    for a in range(out.shape[3]):
                        row = min(positives[a, k], start[k + 1] - start[k] - 1)
                        for m in range(out.shape[4]):
                            out[t, r, k, a, m] = values[m, a, t, start[k] + slots[row, r]]


cdef struct Cursor:
    # Next value to read: by threshold, level, class.
    Py_ssize_t t, r, c


cdef class Levels:
    """Precision in one area range at some thresholds."""

    cdef const double[:, ::1] values
    cdef const int32_t[:, ::1] slots
    cdef const int64_t[::1] start, row    # all classes: first slot, row of `slots`
    cdef const int64_t[::1] starts, rows  # selected classes: the same

    def __init__(
        self, values: NDArray[np.float64], start: NDArray[np.int64], positives: NDArray[np.int64],
        slots: NDArray[np.int32],
    ):
        self.values, self.slots, self.start = values, slots, start
        self.row = np.minimum(positives, np.diff(start) - 1)

    def mean(self, labels: NDArray[np.int64]) -> float:
        """Compute numpy's mean over thresholds, levels and defined classes (C,) int64."""
        cdef Cursor cursor = Cursor(0, 0, 0)
        cdef Py_ssize_t count
        cdef double total
        self.starts, self.rows = np.asarray(self.start)[labels], np.asarray(self.row)[labels]
        count = self.values.shape[0] * self.slots.shape[1] * self.starts.shape[0]
        if count == 0:
            return NAN
        with nogil:
            total = self._sum(count, &cursor)
        return total / <double>count

    def fill_means(self, double[::1] out) -> None:
        """Write the mean of each class over thresholds and levels."""
        cdef Cursor cursor
        cdef Py_ssize_t k, count = self.values.shape[0] * self.slots.shape[1]
        for k in range(out.shape[0]):
            self.starts, self.rows = self.start[k : k + 1], self.row[k : k + 1]
            cursor = Cursor(0, 0, 0)
            out[k] = self._sum(count, &cursor) / <double>count

    cdef double _sum(self, Py_ssize_t count, Cursor* cursor) noexcept nogil:
        """Sum the next values in the order of numpy.add.reduce."""
        cdef double block[128]
        cdef Py_ssize_t half
        cdef double total
        if count <= 128:
            self._read(block, count, cursor)
            return pairwise_sum(block, count)
        half = count // 2
        half -= half % 8
        total = self._sum(half, cursor)
        return total + self._sum(count - half, cursor)

    cdef void _read(self, double* out, Py_ssize_t count, Cursor* cursor) noexcept nogil:
        cdef const double* values = &self.values[cursor.t, 0]
        cdef const int32_t* slots = &self.slots[0, 0]
        cdef const int64_t* starts = &self.starts[0]
        cdef const int64_t* rows = &self.rows[0]
        cdef Py_ssize_t levels = self.slots.shape[1], classes = self.starts.shape[0]
        cdef Py_ssize_t i, c = cursor.c, r = cursor.r
        for i in range(count):
            out[i] = values[starts[c] + slots[rows[c] * levels + r]]
            c += 1
            if c < classes:
                continue
            c, r = 0, r + 1
            if r == levels:
                r = 0
                cursor.t += 1
                values += self.values.shape[1]
        cursor.c, cursor.r = c, r
