"""What matching and accumulation share: counts over a class's ranking, and bits of a match table."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from detap.core._curves cimport Summing


cdef extern from *:
    """
    #if defined(_MSC_VER)
    #include <intrin.h>
    static long detap_next(long *place) { return _InterlockedExchangeAdd(place, 1); }
    #else
    #define detap_next(place) __atomic_fetch_add(place, 1L, __ATOMIC_RELAXED)
    #endif
    """
    long detap_next(long* place) noexcept nogil


cdef enum:
    AHEAD = 12  # detections whose columns are fetched early: ranked by score, they lie anywhere


cdef struct Bits:
    # (A, N): a word of so many bytes for each area range and detection.
    uint8_t* bytes
    Py_ssize_t rows
    Py_ssize_t width


cdef inline void put_bits(
    const Bits* bits, Py_ssize_t a, Py_ssize_t row, uint64_t word
) noexcept nogil:
    cdef Py_ssize_t place = a * bits.rows + row
    if bits.width == 1:
        bits.bytes[place] = <uint8_t>word
    elif bits.width == 2:
        (<uint16_t*>bits.bytes)[place] = <uint16_t>word
    elif bits.width == 4:
        (<uint32_t*>bits.bytes)[place] = <uint32_t>word
    else:
        (<uint64_t*>bits.bytes)[place] = word


cdef inline uint64_t get_bits(const Bits* bits, Py_ssize_t a, Py_ssize_t row) noexcept nogil:
    cdef Py_ssize_t place = a * bits.rows + row
    if bits.width == 1:
        return bits.bytes[place]
    if bits.width == 2:
        return (<uint16_t*>bits.bytes)[place]
    if bits.width == 4:
        return (<uint32_t*>bits.bytes)[place]
    return (<uint64_t*>bits.bytes)[place]


cdef Bits bits_of(const uint8_t[:, ::1] table, Py_ssize_t rows)


cdef struct Lanes:
    int32_t* seen             # per limit and area range: detections inside it
    int32_t* found            # per limit, area range and threshold: true positives
    int32_t* excused          # likewise: among those seen, but no false positive
    int32_t* hits             # per recorded limit, area range and threshold: see _curves.pyx
    Py_ssize_t hits_room
    double* envelope
    double* terms
    Py_ssize_t terms_room


cdef class Accumulator:
    cdef readonly Py_ssize_t T, R, K, A, M
    cdef Py_ssize_t first     # the first limit at which precision is wanted
    cdef uint64_t every       # all thresholds, as bits
    cdef const double[::1] levels, due
    cdef Summing summing
    cdef double guard
    cdef int32_t* queue
    cdef readonly Py_ssize_t jobs
    cdef long next_job
    cdef bint failed
    # Outputs; see accumulate.py for their shapes.
    cdef double[:, :, :, ::1] precision
    cdef const int64_t[::1] start_slot
    cdef const int32_t[:, ::1] slots
    cdef double[:, :, ::1] average
    cdef double[:, :, :, ::1] recall
    cdef int64_t[:, ::1] positives, counts

    cdef line_up(self, jobs, sizes)
    cdef void* prepare(self) noexcept nogil
    cdef void release(self, void* scratch) noexcept nogil
    cdef bint run(self, Py_ssize_t k, void* scratch) noexcept nogil
    cdef bint prepare_lanes(self, Lanes* s) noexcept nogil
    cdef void release_lanes(self, Lanes* s) noexcept nogil
    cdef bint begin(self, Py_ssize_t most_hits, Lanes* s) noexcept nogil
    cdef bint make_terms(self, Py_ssize_t most_hits, Lanes* s) noexcept nogil
    cdef void record(
        self, Py_ssize_t a, uint64_t good, Py_ssize_t m_from, Py_ssize_t most_hits, Lanes* s
    ) noexcept nogil
    cdef void excuse(
        self, Py_ssize_t a, uint64_t excused, Py_ssize_t m_from, Lanes* s
    ) noexcept nogil
    cdef void write_counts(
        self, Py_ssize_t k, int64_t within, int64_t duplicates, const Lanes* s
    ) noexcept nogil
    cdef void write_curves(self, Py_ssize_t k, Py_ssize_t most_hits, Lanes* s) noexcept nogil
    cdef void write_curve(
        self, Py_ssize_t k, Py_ssize_t a, Py_ssize_t t, Py_ssize_t most_hits, const Lanes* s,
        Lanes* own
    ) noexcept nogil
