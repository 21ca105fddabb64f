"""Counters and bit tables shared by matching and accumulation."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from detap.core._curves cimport Summing


cdef extern from *:
    """
    #if defined(_MSC_VER)
    #include <intrin.h>
    static long detap_next(long *counter) { return _InterlockedExchangeAdd(counter, 1); }
    #else
    #define detap_next(counter) __atomic_fetch_add(counter, 1L, __ATOMIC_RELAXED)
    #endif
    """
    long detap_next(long* counter) noexcept nogil


cdef enum:
    PREFETCH_DISTANCE = 12  # ranked rows are scattered in memory


cdef struct Bits:
    # (A, N) unsigned integers of `width` bytes: the thresholds as bits.
    uint8_t* bytes
    Py_ssize_t rows
    Py_ssize_t width


cdef inline void put_bits(
    const Bits* bits, Py_ssize_t a, Py_ssize_t row, uint64_t value
) noexcept nogil:
    cdef Py_ssize_t index = a * bits.rows + row
    if bits.width == 1:
        bits.bytes[index] = <uint8_t>value
    elif bits.width == 2:
        (<uint16_t*>bits.bytes)[index] = <uint16_t>value
    elif bits.width == 4:
        (<uint32_t*>bits.bytes)[index] = <uint32_t>value
    else:
        (<uint64_t*>bits.bytes)[index] = value


cdef inline uint64_t get_bits(const Bits* bits, Py_ssize_t a, Py_ssize_t row) noexcept nogil:
    cdef Py_ssize_t index = a * bits.rows + row
    if bits.width == 1:
        return bits.bytes[index]
    if bits.width == 2:
        return (<uint16_t*>bits.bytes)[index]
    if bits.width == 4:
        return (<uint32_t*>bits.bytes)[index]
    return (<uint64_t*>bits.bytes)[index]


cdef Bits bits_of(const uint8_t[:, ::1] table, Py_ssize_t rows)


cdef struct Counters:
    int32_t* dt_counts        # (M, A) detections so far
    int32_t* tp_counts        # (M, A, T) true positives so far
    int32_t* not_fp_counts    # (M, A, T) detections that are not false positives
    int32_t* hits             # (M', A, T, max_hits) for max dets with precision; see _curves.pyx
    Py_ssize_t hits_capacity
    double* envelope
    double* terms
    Py_ssize_t terms_capacity


cdef class Accumulator:
    cdef readonly Py_ssize_t T, R, K, A, M
    cdef Py_ssize_t first_max_dets  # index of the first max dets with precision
    cdef uint64_t all_thresholds    # as bits
    cdef const double[::1] levels, targets
    cdef Summing summing
    cdef double precision_eps
    cdef int32_t* queue
    cdef readonly Py_ssize_t jobs
    cdef long next_job
    cdef bint failed
    # Outputs, as in accumulate.Scores.
    cdef double[:, :, :, ::1] precision
    cdef const int64_t[::1] start_slot
    cdef const int32_t[:, ::1] slots
    cdef double[:, :, ::1] average
    cdef double[:, :, :, ::1] recall
    cdef int64_t[:, ::1] positives, counts

    cdef queue_jobs(self, jobs, sizes)
    cdef void* prepare(self) noexcept nogil
    cdef void release(self, void* scratch) noexcept nogil
    cdef bint run(self, Py_ssize_t k, void* scratch) noexcept nogil
    cdef bint allocate_counters(self, Counters* s) noexcept nogil
    cdef void free_counters(self, Counters* s) noexcept nogil
    cdef bint reset(self, Py_ssize_t max_hits, Counters* s) noexcept nogil
    cdef bint reserve_curve(self, Py_ssize_t max_hits, Counters* s) noexcept nogil
    cdef void record_hits(
        self, Py_ssize_t a, uint64_t tp, Py_ssize_t first_m, Py_ssize_t max_hits, Counters* s
    ) noexcept nogil
    cdef void count_not_fp(
        self, Py_ssize_t a, uint64_t not_fp, Py_ssize_t first_m, Counters* s
    ) noexcept nogil
    cdef void write_counts(
        self, Py_ssize_t k, int64_t within, int64_t duplicates, const Counters* s
    ) noexcept nogil
    cdef void write_curves(self, Py_ssize_t k, Py_ssize_t max_hits, Counters* s) noexcept nogil
    cdef void write_curve(
        self, Py_ssize_t k, Py_ssize_t a, Py_ssize_t t, Py_ssize_t max_hits, const Counters* s,
        Counters* buffers
    ) noexcept nogil
