"""The sha256 of an open file, taken without the GIL, by the processor's own instructions for it.

hashlib takes as long, but wants the GIL for each block, and a program that imports and evaluates
meanwhile rarely gives it: a report then waits for the digests of what was read long ago.

Source: FIPS 180-4; the order of operations is the one that SHA-NI's instructions ask for.
"""

from libc.errno cimport EINTR, errno
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memmove, memset

import os


cdef extern from *:
    """
    #include <stdint.h>
    #if defined(__x86_64__) && defined(__GNUC__)
    #include <cpuid.h>
    #include <immintrin.h>
    #include <unistd.h>

    static const uint32_t detap_sha256_rounds[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
    };

    static int detap_sha256_here(void) {
        unsigned a, b, c, d;
        if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1)) return 0;
        return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1);
    }

    /* Each instruction waits for the one before: two files take little longer than one. */
    __attribute__((always_inline, target("sha,sse4.1,ssse3")))
    static inline void detap_sha256_side_by_side(
        uint32_t **states, const uint8_t **from, size_t blocks, const int lanes
    ) {
        const __m128i order = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
        /* The instructions keep a to h as two words: a, b, e, f and c, d, g, h. */
        __m128i abef[2], cdgh[2], abef_before[2], cdgh_before[2], w[2][4], low, high, sum;
        const uint8_t *data[2];
        int i, k;
        for (k = 0; k < lanes; k++) {
            low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)states[k]), 0xB1);
            high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(states[k] + 4)), 0x1B);
            abef[k] = _mm_alignr_epi8(low, high, 8);
            cdgh[k] = _mm_blend_epi16(high, low, 0xF0);
            data[k] = from[k];
        }
        for (; blocks; blocks--) {
    #pragma GCC unroll 2
            for (k = 0; k < lanes; k++) {
                abef_before[k] = abef[k];
                cdgh_before[k] = cdgh[k];
            }
    #pragma GCC unroll 16
            for (i = 0; i < 16; i++) {
    #pragma GCC unroll 2
                for (k = 0; k < lanes; k++) {
                    if (i < 4) {
                        sum = _mm_loadu_si128((const __m128i *)data[k] + i);
                        w[k][i] = _mm_shuffle_epi8(sum, order);
                    } else {
                        sum = _mm_alignr_epi8(w[k][(i + 3) & 3], w[k][(i + 2) & 3], 4);
                        sum = _mm_add_epi32(_mm_sha256msg1_epu32(w[k][i & 3], w[k][(i + 1) & 3]), sum);
                        w[k][i & 3] = _mm_sha256msg2_epu32(sum, w[k][(i + 3) & 3]);
                    }
                    sum = _mm_loadu_si128((const __m128i *)(detap_sha256_rounds + 4 * i));
                    sum = _mm_add_epi32(sum, w[k][i & 3]);
                    cdgh[k] = _mm_sha256rnds2_epu32(cdgh[k], abef[k], sum);
                    sum = _mm_shuffle_epi32(sum, 0x0E);
                    abef[k] = _mm_sha256rnds2_epu32(abef[k], cdgh[k], sum);
                }
            }
    #pragma GCC unroll 2
            for (k = 0; k < lanes; k++) {
                abef[k] = _mm_add_epi32(abef[k], abef_before[k]);
                cdgh[k] = _mm_add_epi32(cdgh[k], cdgh_before[k]);
                data[k] += 64;
            }
        }
        for (k = 0; k < lanes; k++) {
            low = _mm_shuffle_epi32(abef[k], 0x1B);
            high = _mm_shuffle_epi32(cdgh[k], 0xB1);
            _mm_storeu_si128((__m128i *)states[k], _mm_blend_epi16(low, high, 0xF0));
            _mm_storeu_si128((__m128i *)(states[k] + 4), _mm_alignr_epi8(high, low, 8));
        }
    }

    __attribute__((target("sha,sse4.1,ssse3")))
    static void detap_sha256_blocks(uint32_t *state, const uint8_t *data, size_t blocks) {
        detap_sha256_side_by_side(&state, &data, blocks, 1);
    }

    __attribute__((target("sha,sse4.1,ssse3")))
    static void detap_sha256_two(uint32_t **states, const uint8_t **data, size_t blocks) {
        detap_sha256_side_by_side(states, data, blocks, 2);
    }
    #define detap_sha256_read(fd, to, count) read(fd, to, count)
    #else
    static int detap_sha256_here(void) { return 0; }
    static void detap_sha256_blocks(uint32_t *s, const uint8_t *d, size_t n) { (void)s; (void)d; (void)n; }
    static void detap_sha256_two(uint32_t **s, const uint8_t **d, size_t n) { (void)s; (void)d; (void)n; }
    #define detap_sha256_read(fd, to, count) (-1)
    #endif
    """
    bint _here "detap_sha256_here"() noexcept nogil
    void _take "detap_sha256_blocks"(uint32_t *, const uint8_t *, size_t) noexcept nogil
    void _take_two "detap_sha256_two"(uint32_t **, const uint8_t **, size_t) noexcept nogil
    int64_t _read "detap_sha256_read"(int, void *, size_t) noexcept nogil


cdef enum:
    BLOCK = 1 << 16    # no more than stays in a core's own cache between reading and taking it

AVAILABLE = bool(_here())
"""Whether this processor has instructions for sha256, and the compiler could be told of them."""


cdef struct Lane:
    int descriptor
    uint32_t[8] state
    uint64_t total          # bytes read
    size_t have             # bytes of these in `held` that are no part of `state` yet
    bint ended
    int error               # of the system, where it could not be read to its end
    uint8_t[BLOCK + 128] held


cdef void _begin(Lane *lane, int descriptor) noexcept nogil:
    lane.descriptor = descriptor
    lane.state = [
        0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19
    ]
    lane.total = lane.have = 0
    lane.ended = False
    lane.error = 0


cdef void _fill(Lane *lane) noexcept nogil:
    """Read on until there is a block, or no more."""
    cdef int64_t got
    while not lane.ended and lane.have < 64:
        got = _read(lane.descriptor, lane.held + lane.have, BLOCK - lane.have)
        if got > 0:
            lane.total += <uint64_t>got
            lane.have += <size_t>got
        elif got == 0 or errno != EINTR:
            lane.ended = True
            lane.error = errno if got else 0


cdef void _drop(Lane *lane, size_t blocks) noexcept nogil:
    """Forget blocks that have been taken."""
    lane.have -= blocks * 64
    memmove(lane.held, lane.held + blocks * 64, lane.have)


cdef void _run(Lane *lanes, int count) noexcept nogil:
    """Take all that can be read of one file or of two."""
    cdef uint32_t *states[2]
    cdef const uint8_t *data[2]
    cdef size_t both
    cdef int k
    cdef bint more = True
    while more:
        more = False
        for k in range(count):
            _fill(&lanes[k])
            states[k] = lanes[k].state
            data[k] = lanes[k].held
        if count == 2:
            both = min(lanes[0].have // 64, lanes[1].have // 64)
            _take_two(states, data, both)
            for k in range(count):
                _drop(&lanes[k], both)
        for k in range(count):
            both = lanes[k].have // 64
            _take(lanes[k].state, lanes[k].held, both)
            _drop(&lanes[k], both)
            more |= not lanes[k].ended


cdef object _finish(Lane *lane):
    """Return the digest of what was read, in hexadecimal, or the error."""
    cdef size_t blocks = (lane.have + 8) // 64 + 1
    cdef int i
    if lane.error:
        return OSError(lane.error, os.strerror(lane.error))
    # One bit, zeros, and the length in bits, to the end of a block.
    memset(lane.held + lane.have, 0, blocks * 64 - lane.have)
    lane.held[lane.have] = 0x80
    for i in range(8):
        lane.held[blocks * 64 - 1 - i] = (8 * lane.total) >> (8 * i) & 0xFF
    _take(lane.state, lane.held, blocks)
    return "".join([f"{word:08x}" for word in lane.state])


def sha256_of_descriptors(*descriptors):
    """Return the sha256 of what can still be read from one descriptor or two, in hexadecimal.

    Two take little longer than one. In place of a digest there is the OSError of one that could not
    be read.
    """
    cdef int count = len(descriptors)
    cdef int k
    cdef Lane *lanes
    if not AVAILABLE or not 1 <= count <= 2:
        raise ValueError("one descriptor or two, on a processor that has instructions for sha256")
    lanes = <Lane *>malloc(count * sizeof(Lane))
    if lanes == NULL:
        raise MemoryError
    try:
        for k in range(count):
            _begin(&lanes[k], descriptors[k])
        with nogil:
            _run(lanes, count)
        return [_finish(&lanes[k]) for k in range(count)]
    finally:
        free(lanes)
