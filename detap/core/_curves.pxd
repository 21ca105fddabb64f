from libc.stdint cimport int32_t

cdef enum Summing:
    # In the order of detap.core.params.SUMMINGS.
    PAIRWISE
    ONE_BY_ONE
    TRAPEZOID

cdef double pairwise_sum(const double* values, Py_ssize_t count) noexcept nogil
cdef void precision_at_hits(
    const int32_t* false_positives, Py_ssize_t hits, double precision_eps, double* precision
) noexcept nogil
cdef void make_envelope(double* precision, Py_ssize_t hits) noexcept nogil
cdef void read_levels(
    const double* envelope, Py_ssize_t hits, double positives,
    const double* targets, Py_ssize_t n_levels, double* out,
) noexcept nogil
cdef double average_of_levels(
    double* values, const double* levels, Py_ssize_t count, Summing summing
) noexcept nogil
cdef double area_under(
    const double* precision, Py_ssize_t hits, double positives, double* terms
) noexcept nogil
