# cython: auto_pickle=False
"""Nearest ground truths of detections in all classes, compiled. See nearest.py."""

from libc.stdint cimport int32_t, uint8_t

import numpy as np

from detap.core._overlap cimport larger, overlap, divide_overlap, smaller

cdef enum:
    SAME_CLASS = 0
    MATCHED = 1
    OTHER_CLASS = 2


cdef class ImageGroundTruths:
    """Ground truths by image; those of image i are start[i] to start[i + 1]."""

    cdef const int32_t[::1] start, row, label
    cdef const double[:, ::1] corners, columns
    cdef const double[::1] area
    cdef const uint8_t[::1] crowd, matched
    cdef double pixel_offset

    def __init__(
        self, *, start: NDArray[np.int32], order: NDArray[np.int32], label: NDArray[np.int32],
        corners: NDArray[np.float64], area: NDArray[np.float64], crowd: NDArray[np.uint8],
        matched: NDArray[np.uint8], double pixel_offset,
    ):
        self.start, self.row, self.label = start, order, label
        self.corners, self.area = corners, area
        self.columns = corners.T.copy()
        self.crowd, self.matched = crowd, matched
        cdef Py_ssize_t count = self.row.shape[0]
        if (
            self.start[self.start.shape[0] - 1] != count or self.label.shape[0] != count
            or self.corners.shape[0] != count or self.corners.shape[1] != 4
            or self.area.shape[0] != count or self.crowd.shape[0] != count
            or self.matched.shape[0] != count
        ):
            raise ValueError("array shapes do not match")
        self.pixel_offset = pixel_offset

    def fill(
        self, const int32_t[::1] rows, const int32_t[::1] image, const int32_t[::1] label,
        const double[:, ::1] corners, const double[::1] area,
        Py_ssize_t begin, Py_ssize_t end, int32_t[:, ::1] truth, double[:, ::1] value,
    ) -> None:
        """Write the nearest ground truths (same class, matched, other class) of some rows."""
        cdef Py_ssize_t n, g, kind, first, last
        cdef int32_t row
        cdef int32_t[3] nearest
        cdef double[3] largest
        cdef double similarity
        cdef double[::1] intersection = np.empty(self.row.shape[0] + 1)
        with nogil:
            for n in range(begin, end):
                row = rows[n]
                first, last = self.start[image[row]], self.start[image[row] + 1]
                self._intersect(&corners[row, 0], first, last, &intersection[0])
                nearest = [-1, -1, -1]
                largest = [0.0, 0.0, 0.0]
                for g in range(first, last):
                    if intersection[g - first] == 0.0:
                        continue
                    similarity = divide_overlap(
                        intersection[g - first], area[row], self.area[g], self.crowd[g]
                    )
                    kind = SAME_CLASS if self.label[g] == label[row] else OTHER_CLASS
                    if similarity > largest[kind]:
                        largest[kind], nearest[kind] = similarity, self.row[g]
                    if kind == SAME_CLASS and self.matched[g] and similarity > largest[MATCHED]:
                        largest[MATCHED], nearest[MATCHED] = similarity, self.row[g]
                for kind in range(3):
                    truth[kind, n], value[kind, n] = nearest[kind], largest[kind]

    cdef void _intersect(
        self, const double* box, Py_ssize_t first, Py_ssize_t last, double* intersection
    ) noexcept nogil:
        """Write the intersection areas of a box and each ground truth."""
        cdef Py_ssize_t g, count = last - first
        cdef double width, height, pixel_offset = self.pixel_offset
        cdef double left = box[0], top = box[1], right = box[2], bottom = box[3]
        if count == 0:
            return
        # Separate columns let the compiler vectorize the loop.
        cdef const double* lefts = &self.columns[0, first]
        cdef const double* tops = &self.columns[1, first]
        cdef const double* rights = &self.columns[2, first]
        cdef const double* bottoms = &self.columns[3, first]
        for g in range(count):
            width = smaller(right, rights[g]) - larger(left, lefts[g]) + pixel_offset
            height = smaller(bottom, bottoms[g]) - larger(top, tops[g]) + pixel_offset
            intersection[g] = larger(width, 0.0) * larger(height, 0.0)

    cdef inline double _reached(
        self, const double* box, double area, Py_ssize_t g, double threshold, bint strict
    ) noexcept nogil:
        """Return the IoU with a ground truth, or -1 below the threshold."""
        cdef double similarity = overlap(
            box, area, &self.corners[g, 0], self.area[g], self.crowd[g], self.pixel_offset
        )
        if similarity < threshold or (strict and similarity == threshold):
            return -1.0
        return similarity

    def match(
        self, const int32_t[::1] rows, const int32_t[::1] image, const int32_t[::1] label,
        const double[:, ::1] corners, const double[::1] area, double threshold, bint strict,
        bint last_of_equal, bint other_classes_only, uint8_t[::1] unmatched, int32_t[::1] truth,
    ) -> None:
        """Match detections, in the order of `rows`, to the nearest unmatched ground truth."""
        cdef Py_ssize_t n, g, best_truth
        cdef int32_t row
        cdef double similarity, best
        with nogil:
            for n in range(rows.shape[0]):
                row = rows[n]
                best = 0.0
                best_truth = -1
                for g in range(self.start[image[row]], self.start[image[row] + 1]):
                    if not unmatched[g] or (other_classes_only and self.label[g] == label[row]):
                        continue
                    similarity = self._reached(&corners[row, 0], area[row], g, threshold, strict)
                    if similarity > best or (last_of_equal and similarity == best):
                        best = similarity
                        best_truth = g
                if best_truth >= 0:
                    unmatched[best_truth] = 0
                    truth[n] = self.row[best_truth]

    def find_other_class(
        self, const int32_t[::1] rows, const int32_t[::1] image, const int32_t[::1] label,
        const double[:, ::1] corners, const double[::1] area, double threshold, bint strict,
        int32_t[::1] index, int32_t[::1] truth, double[::1] value,
    ) -> int:
        """Write the pairs of two classes that reach the threshold, as many as the arrays hold."""
        cdef Py_ssize_t n, g, count = 0
        cdef int32_t row
        cdef double similarity
        if truth.shape[0] != index.shape[0] or value.shape[0] != index.shape[0]:
            raise ValueError("array shapes do not match")
        with nogil:
            for n in range(rows.shape[0]):
                row = rows[n]
                for g in range(self.start[image[row]], self.start[image[row] + 1]):
                    if self.label[g] == label[row]:
                        continue
                    similarity = self._reached(&corners[row, 0], area[row], g, threshold, strict)
                    if similarity > 0.0:
                        if count < index.shape[0]:
                            index[count], truth[count], value[count] = n, self.row[g], similarity
                        count += 1
        return count
