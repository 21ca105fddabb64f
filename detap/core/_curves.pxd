from libc.stdint cimport int32_t

cdef double pairwise_sum(const double* values, Py_ssize_t count) noexcept nogil
cdef void precision_at_hits(
    const int32_t* false_positives, Py_ssize_t hits, double guard, double* precision
) noexcept nogil
cdef void make_envelope(double* precision, Py_ssize_t hits) noexcept nogil
cdef void read_levels(
    const double* envelope, Py_ssize_t hits, double positives,
    const double* levels, Py_ssize_t level_count, double* out,
) noexcept nogil
cdef double mean_of_levels(const double* values, Py_ssize_t count, bint one_by_one) noexcept nogil
cdef double area_under(
    const double* precision, Py_ssize_t hits, double positives, double* terms
) noexcept nogil
