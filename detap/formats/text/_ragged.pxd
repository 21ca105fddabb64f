"""Rows of a word and numbers, filled by the scanners of text, XML and CSV."""

from libc.math cimport isfinite
from libc.stdint cimport int32_t

from detap.formats.reading._bytes cimport Bytes
from detap.formats.reading._names cimport Names
from detap.formats.reading._numbers cimport read_decimal
from detap.tables._columns cimport Buffer


cdef inline bint scan_number(
    const char *at, const char *end, const char **stop, double *value
) noexcept nogil:
    """Read a finite decimal number at `at`; `stop` gets its end."""
    return (
        read_decimal(<Bytes>at, <Bytes>end, <Bytes *>stop, value, False) and isfinite(value[0])
    )


cdef struct Row:
    int32_t file, line, word, flag


cdef class RowColumns:
    cdef Names words
    cdef Buffer rows, ends, numbers     # `Row`; the end of the numbers of each; float64

    cdef bint end_row(self, int32_t file, int32_t line, int32_t word, int32_t flag) noexcept nogil
    cdef void cut(self, Py_ssize_t rows) noexcept nogil
