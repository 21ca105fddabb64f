"""Columns that compiled readers fill row by row, and hand over without copying."""

from cpython.buffer cimport PyBUF_FORMAT, PyBUF_ND, PyBUF_STRIDES

from libc.stdlib cimport free, realloc


cdef class Column:
    """A column of numbers, which numpy views without copying.

    Shape (N,) or (N, width); formats ``d``, ``i``, ``I``, ``q`` and ``?`` of the struct module.
    """

    def __dealloc__(self):
        free(self.data)

    def __len__(self) -> int:
        return self.shape[0]

    def __getbuffer__(self, Py_buffer *view, int flags):
        view.obj = self
        view.buf = self.data
        view.itemsize = self.item
        view.len = self.item * self.shape[0] * (self.shape[1] if self.dimensions == 2 else 1)
        view.readonly = 0
        view.ndim = self.dimensions
        view.format = <char *>self.format if flags & PyBUF_FORMAT else NULL
        view.shape = self.shape if flags & PyBUF_ND else NULL
        view.strides = self.strides if flags & PyBUF_STRIDES == PyBUF_STRIDES else NULL
        view.suboffsets = NULL
        view.internal = NULL


cdef Column take(void **data, Py_ssize_t count, Py_ssize_t width, Py_ssize_t item, bytes format):
    """Take over a buffer, and give back what is behind the last row."""
    cdef Column column = Column.__new__(Column)
    cdef void *smaller = realloc(data[0], max(count * width * item, 1))
    column.data = smaller if smaller != NULL else data[0]
    data[0] = NULL
    column.shape[0], column.shape[1] = count, width
    column.strides[0], column.strides[1] = width * item, item
    column.item = item
    column.dimensions = 2 if width > 1 else 1
    column.format = format
    return column
