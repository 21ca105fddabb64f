from libc.stdint cimport int32_t, uint64_t

cdef struct Keyed:
    uint64_t key
    int32_t row

cdef uint64_t descending_key(double score) noexcept nogil
cdef Keyed* sort_by_key(Keyed* items, Keyed* spare, Py_ssize_t count) noexcept nogil
cdef Keyed* sort_if_needed(Keyed* items, Keyed* spare, Py_ssize_t count) noexcept nogil
cdef void group_rows(
    const int32_t* group, Py_ssize_t rows, Py_ssize_t groups, int32_t* start, int32_t* order
) noexcept nogil
