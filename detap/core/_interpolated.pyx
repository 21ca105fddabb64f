"""Interpolated precision: reads and sums, compiled. See interpolated.py."""

from libc.math cimport NAN
from libc.stdint cimport int32_t, int64_t

import numpy as np

from detap.core._curves cimport pairwise_sum, read_levels


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
    """Precision in one area range at some thresholds.

    Parameters
    ----------
    values : (T, S) float64
    start : (K + 1,) int64
    positives : (K,) int64
    slots : (R + 1, R) int32
    """

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
