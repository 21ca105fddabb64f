"""Rasterized polygons and merged masks, as runs."""

from libc.stdint cimport int64_t

from detap.tables._runs cimport Runs


cdef bint merge(const Runs *a, const Runs *b, bint intersect, Runs *to) noexcept nogil
cdef int64_t max_runs(
    const double *points, Py_ssize_t count, int64_t height, int64_t width
) noexcept nogil
cdef bint rasterize(
    const double *points, Py_ssize_t count, int64_t height, int64_t width, Runs *crossings, Runs *to
) noexcept nogil
