"""Columns that compiled readers fill row by row, and hand over without copying."""

from cython.view cimport array
from libc.stdlib cimport free, realloc

import numpy as np


cdef object take(void **data, Py_ssize_t count, Py_ssize_t width, Py_ssize_t item, bytes format):
    """Take over a buffer as an array, (N,) or (N, width), and give back what is behind the last row."""
    cdef array column
    cdef void *smaller
    cdef tuple shape = (count, width)[: 1 + (width > 1)]
    if count == 0:
        free(data[0])
        data[0] = NULL
        return np.zeros(shape, format.decode())
    column = array(shape, item, format, allocate_buffer=False)
    smaller = realloc(data[0], count * width * item)
    column.data = <char *>(smaller if smaller != NULL else data[0])
    column.callback_free_data = free
    data[0] = NULL
    return np.asarray(column)
