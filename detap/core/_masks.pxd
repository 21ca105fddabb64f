"""What a mask's runs are made of: run-length strings decoded, polygons rasterised, masks merged."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t


cdef struct Runs:
    # Pixels column by column: so many without, so many within, and so on.
    uint32_t *at
    Py_ssize_t count
    Py_ssize_t room


cdef enum Fault:
    SOUND, NO_MEMORY, NO_DIGIT, CUT_OFF, NEGATIVE, TOO_LONG


cdef bint put_run(Runs *runs, uint32_t length) noexcept nogil
cdef Fault decode(
    const uint8_t *text, Py_ssize_t length, bint escaped, int64_t pixels, Runs *to
) noexcept nogil
cdef int64_t area_of(const uint32_t *runs, Py_ssize_t count) noexcept nogil
cdef bint merge(const Runs *a, const Runs *b, bint intersect, Runs *to) noexcept nogil
cdef bint rasterise(
    const double *points, Py_ssize_t count, int64_t height, int64_t width, Runs *crossings, Runs *to
) noexcept nogil
