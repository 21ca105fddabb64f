"""Runs of masks: decode run-length strings, encode bitmaps, measure runs."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport realloc


cdef struct Runs:
    # Pixels column by column: so many without, so many within, and so on.
    uint32_t *at
    Py_ssize_t count
    Py_ssize_t room


cdef enum Fault:
    SOUND, NO_MEMORY, NO_DIGIT, CUT_OFF, NEGATIVE, TOO_LONG


cdef struct Bounds:
    # The first and the last column and row; none where the first is beyond the last.
    int64_t left, top, right, bottom


cdef inline bint make_room(Runs *runs, Py_ssize_t more) noexcept nogil:
    """Make room for so many more runs; False when out of memory."""
    cdef Py_ssize_t room = max(2 * runs.room, runs.count + more)
    cdef uint32_t *grown
    if runs.count + more <= runs.room:
        return True
    grown = <uint32_t *>realloc(runs.at, room * sizeof(uint32_t))
    if grown == NULL:
        return False
    runs.at = grown
    runs.room = room
    return True


cdef inline bint put_run(Runs *runs, uint32_t length) noexcept nogil:
    """Append a run; False when out of memory."""
    if runs.count == runs.room and not make_room(runs, 256):
        return False
    runs.at[runs.count] = length
    runs.count += 1
    return True


cdef Fault decode(
    const uint8_t *text, Py_ssize_t length, bint escaped, int64_t pixels, Runs *to
) noexcept nogil
cdef int64_t area_of(const uint32_t *runs, Py_ssize_t count) noexcept nogil
cdef Bounds bounds_of(const uint32_t *runs, Py_ssize_t count, uint32_t height) noexcept nogil
cdef int64_t box_of(
    const uint32_t *runs, Py_ssize_t count, uint32_t height, double *box
) noexcept nogil
cdef bint ascend(Runs *crossings, int64_t height) noexcept nogil
cdef bint turn(const Runs *crossings, int64_t pixels, Runs *to) noexcept nogil
