"""Columns that compiled readers fill row by row, and hand over without copying."""

from libc.stdint cimport int64_t
from libc.stdlib cimport realloc


cdef object take(void **data, Py_ssize_t count, Py_ssize_t width, Py_ssize_t item, bytes format)


cdef inline bint grow(void **data, Py_ssize_t room, Py_ssize_t size) noexcept nogil:
    """Make a buffer as large as so many rows of `size` bytes; False when out of memory."""
    cdef void *grown = realloc(data[0], room * size)
    if grown == NULL:
        return False
    data[0] = grown
    return True


cdef struct Buffer:
    # Values of one size, one after the other.
    char *at
    Py_ssize_t count, room


cdef inline void *put(Buffer *buffer, Py_ssize_t size) noexcept nogil:
    """Return the slot of one more value of `size` bytes; NULL when out of memory."""
    if buffer.count == buffer.room:
        if not grow(<void **>&buffer.at, max(2 * buffer.room, <Py_ssize_t>1024), size):
            return NULL
        buffer.room = max(2 * buffer.room, <Py_ssize_t>1024)
    buffer.count += 1
    return buffer.at + (buffer.count - 1) * size


cdef inline bint put_number(Buffer *buffer, double value) noexcept nogil:
    cdef double *slot = <double *>put(buffer, sizeof(double))
    if slot == NULL:
        return False
    slot[0] = value
    return True


cdef inline bint put_integer(Buffer *buffer, int64_t value) noexcept nogil:
    cdef int64_t *slot = <int64_t *>put(buffer, sizeof(int64_t))
    if slot == NULL:
        return False
    slot[0] = value
    return True
