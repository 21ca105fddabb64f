"""Columns that compiled readers fill row by row, and hand over without copying."""

from libc.stdlib cimport realloc


cdef class Column:
    cdef void *data
    cdef Py_ssize_t[2] shape
    cdef Py_ssize_t[2] strides
    cdef Py_ssize_t item
    cdef int dimensions
    cdef bytes format


cdef Column take(void **data, Py_ssize_t count, Py_ssize_t width, Py_ssize_t item, bytes format)


cdef inline bint grow(void **data, Py_ssize_t room, Py_ssize_t size) noexcept nogil:
    """Make a buffer as large as so many rows of `size` bytes; False when out of memory."""
    cdef void *grown = realloc(data[0], room * size)
    if grown == NULL:
        return False
    data[0] = grown
    return True
