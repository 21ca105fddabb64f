"""Rows of boxes in columns, for the scanners of XML and CSV.

Inline functions only.
"""

from libc.math cimport isfinite
from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport free

from detap.formats.reading._bytes cimport Bytes
from detap.formats.reading._numbers cimport read_decimal
from detap.tables._columns cimport grow


cdef inline bint scan_number(
    const char *at, const char *end, const char **stop, double *value
) noexcept nogil:
    """Read a finite decimal number at `at`; `stop` gets its end."""
    return (
        read_decimal(<Bytes>at, <Bytes>end, <Bytes *>stop, value, False) and isfinite(value[0])
    )


cdef struct Rows:
    # Columns of file, name and flag, and `width` numbers per row.
    int32_t *file
    int32_t *name
    uint8_t *flag
    double *values
    size_t count, capacity
    int width


cdef inline void rows_open(Rows *rows, int width) noexcept nogil:
    rows.file = NULL
    rows.name = NULL
    rows.flag = NULL
    rows.values = NULL
    rows.count = rows.capacity = 0
    rows.width = width


cdef inline void rows_close(Rows *rows) noexcept nogil:
    free(rows.file)
    free(rows.name)
    free(rows.flag)
    free(rows.values)


cdef inline bint rows_reserve(Rows *rows) noexcept nogil:
    """Make space for one more row; False if out of memory."""
    cdef size_t capacity
    if rows.count < rows.capacity:
        return True
    capacity = rows.capacity + rows.capacity // 2 + 1024
    if not (
        grow(<void **>&rows.file, capacity, sizeof(int32_t))
        and grow(<void **>&rows.name, capacity, sizeof(int32_t))
        and grow(<void **>&rows.flag, capacity, 1)
        and grow(<void **>&rows.values, capacity, rows.width * sizeof(double))
    ):
        return False
    rows.capacity = capacity
    return True
