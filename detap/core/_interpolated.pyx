"""Reads and sums of interpolated precision, compiled. See interpolated.py for its layout."""

from libc.math cimport NAN
from libc.stdint cimport int32_t, int64_t

import numpy as np

from detap.core._curves cimport pairwise_sum, read_levels


def fill_slots(const double[::1] due, int32_t[:, ::1] out) -> None:
    """Write the slot of each level, (R + 1, R), for each number of ground truths up to R."""
    cdef Py_ssize_t positives, level
    # Hit h + 1 in the place of its precision; 0 is a level that is not reached.
    cdef double[::1] hit = np.arange(1.0, due.shape[0] + 1)
    cdef double[::1] found = np.zeros(due.shape[0])
    with nogil:
        for positives in range(out.shape[0]):
            if positives == due.shape[0]:
                for level in range(due.shape[0]):
                    out[positives, level] = <int32_t>(level + 1)
                continue
            read_levels(&hit[0], positives, positives, &due[0], due.shape[0], &found[0])
            for level in range(due.shape[0]):
                out[positives, level] = <int32_t>found[level]


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
    # The next value of those at thresholds, levels and classes, in this order.
    Py_ssize_t t, r, c


cdef class Levels:
    """Precision in one area range, at some thresholds.

    Parameters
    ----------
    values : (T, S) float64
    start : (K + 1,) int64
    positives : (K,) int64
    slots : (R + 1, R) int32
    """

    cdef const double[:, ::1] values
    cdef const int32_t[:, ::1] slots
    cdef const int64_t[::1] start, row    # of all classes: the first slot, and the row of `slots`
    cdef const int64_t[::1] starts, rows  # likewise, of those that are added up

    def __init__(
        self, values: NDArray[np.float64], start: NDArray[np.int64], positives: NDArray[np.int64],
        slots: NDArray[np.int32],
    ):
        self.values, self.slots, self.start = values, slots, start
        self.row = np.minimum(positives, np.diff(start) - 1)

    def mean(self, labels: NDArray[np.int64]) -> float:
        """Return numpy's mean over thresholds, levels and classes (C,) int64, all of them defined."""
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
        """Return the sum of the next values, added in the order of numpy.add.reduce."""
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
