"""The nearest ground truths of detections, whatever their class, compiled. See nearest.py."""

from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport free, malloc

from detap.core._overlap cimport larger, overlap, share_of, smaller

cdef enum:
    OWN = 0
    TAKEN = 1
    OTHER = 2

cdef struct Seen:  # the nearest of its class, of those taken and of other classes; -1 and 0: none
    int32_t truth[3]
    double value[3]


cdef class Ground:
    """Ground truths side by side, image by image; those of image i are start[i] to start[i + 1]."""

    cdef const int32_t[::1] start, row, label
    cdef const double[:, ::1] corners, sides
    cdef const double[::1] area
    cdef const uint8_t[::1] crowd, taken
    cdef double edge

    def __init__(
        self, *, start: NDArray[np.int32], order: NDArray[np.int32], label: NDArray[np.int32],
        corners: NDArray[np.float64], area: NDArray[np.float64], crowd: NDArray[np.uint8],
        taken: NDArray[np.uint8], double edge,
    ):
        self.start, self.row, self.label = start, order, label
        self.corners, self.area = corners, area
        self.sides = corners.T.copy()
        self.crowd, self.taken = crowd, taken
        cdef Py_ssize_t count = self.row.shape[0]
        if (
            self.start[self.start.shape[0] - 1] != count or self.label.shape[0] != count
            or self.corners.shape[0] != count or self.corners.shape[1] != 4
            or self.area.shape[0] != count or self.crowd.shape[0] != count
            or self.taken.shape[0] != count
        ):
            raise ValueError("the shapes do not go together")
        self.edge = edge

    def fill(
        self, const int32_t[::1] rows, const int32_t[::1] image, const int32_t[::1] label,
        const double[:, ::1] corners, const double[::1] area,
        Py_ssize_t begin, Py_ssize_t end, int32_t[:, ::1] truth, double[:, ::1] value,
    ) -> None:
        """Write the nearest of its class, of those taken and of other classes, for some rows."""
        cdef Py_ssize_t n, kind
        cdef int32_t row
        cdef Seen seen
        cdef double* common = self._room()
        with nogil:
            for n in range(begin, end):
                row = rows[n]
                self._look(&corners[row, 0], area[row], image[row], label[row], common, &seen)
                for kind in range(3):
                    truth[kind, n] = seen.truth[kind]
                    value[kind, n] = seen.value[kind]
        free(common)

    cdef double* _room(self) except NULL:
        cdef double* common = <double*>malloc((self.row.shape[0] + 1) * sizeof(double))
        if common == NULL:
            raise MemoryError()
        return common

    cdef void _look(
        self, const double* box, double area, int32_t image, int32_t label, double* common,
        Seen* seen,
    ) noexcept nogil:
        cdef Py_ssize_t g, kind, first = self.start[image], last = self.start[image + 1]
        cdef double here
        for kind in range(3):
            seen.truth[kind] = -1
            seen.value[kind] = 0.0
        self._meet(box, first, last, common)
        for g in range(first, last):
            if common[g - first] == 0.0:  # most: few of an image's boxes meet
                continue
            here = share_of(common[g - first], area, self.area[g], self.crowd[g])
            kind = OWN if self.label[g] == label else OTHER
            if here > seen.value[kind]:
                seen.value[kind] = here
                seen.truth[kind] = self.row[g]
            if kind == OWN and self.taken[g] and here > seen.value[TAKEN]:
                seen.value[TAKEN] = here
                seen.truth[TAKEN] = self.row[g]

    cdef void _meet(
        self, const double* box, Py_ssize_t first, Py_ssize_t last, double* common
    ) noexcept nogil:
        """Write what a box has in common with each ground truth, without branch and division."""
        cdef Py_ssize_t g, count = last - first
        cdef double width, height, edge = self.edge
        cdef double left = box[0], top = box[1], right = box[2], bottom = box[3]
        if count == 0:
            return
        # Column by column, so that several ground truths are worked on at once.
        cdef const double* lefts = &self.sides[0, first]
        cdef const double* tops = &self.sides[1, first]
        cdef const double* rights = &self.sides[2, first]
        cdef const double* bottoms = &self.sides[3, first]
        for g in range(count):
            width = smaller(right, rights[g]) - larger(left, lefts[g]) + edge
            height = smaller(bottom, bottoms[g]) - larger(top, tops[g]) + edge
            common[g] = larger(width, 0.0) * larger(height, 0.0)

    def match(
        self, const int32_t[::1] rows, const int32_t[::1] image, const int32_t[::1] label,
        const double[:, ::1] corners, const double[::1] area, double threshold, bint strict,
        bint last_of_equal, bint others_only, uint8_t[::1] free, int32_t[::1] truth,
    ) -> None:
        """Let detections, in the order of `rows`, take the nearest ground truth that is free."""
        cdef Py_ssize_t n, g, taken
        cdef int32_t row
        cdef double here, best
        with nogil:
            for n in range(rows.shape[0]):
                row = rows[n]
                best = 0.0
                taken = -1
                for g in range(self.start[image[row]], self.start[image[row] + 1]):
                    if not free[g] or (others_only and self.label[g] == label[row]):
                        continue
                    here = overlap(
                        &corners[row, 0], area[row], &self.corners[g, 0], self.area[g],
                        self.crowd[g], self.edge,
                    )
                    if here < threshold or (strict and here == threshold):
                        continue
                    if here > best or (last_of_equal and here == best):
                        best = here
                        taken = g
                if taken >= 0:
                    free[taken] = 0
                    truth[n] = self.row[taken]
