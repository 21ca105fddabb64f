"""What is made of the runs of masks: polygons rasterised, masks merged."""

from libc.stdint cimport int64_t

from detap.tables._runs cimport Runs


cdef bint merge(const Runs *a, const Runs *b, bint intersect, Runs *to) noexcept nogil
cdef int64_t most_runs(
    const double *points, Py_ssize_t count, int64_t height, int64_t width
) noexcept nogil
cdef bint rasterise(
    const double *points, Py_ssize_t count, int64_t height, int64_t width, Runs *crossings, Runs *to
) noexcept nogil
