"""Words of 64 bits: their bits counted and found, their bytes loaded.

Only functions to be inlined: nothing of this module exists when the program runs.
"""

from libc.stdint cimport uint8_t, uint64_t


cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #if defined(_MSC_VER) && !defined(__clang__)
    #include <intrin.h>
    static __inline int detap_ctz(uint64_t x) { unsigned long i; _BitScanForward64(&i, x); return (int)i; }
    static __inline int detap_clz(uint64_t x) { unsigned long i; _BitScanReverse64(&i, x); return 63 - (int)i; }
    #define detap_ones(x) (int)__popcnt64(x)
    #define detap_swap(x) _byteswap_uint64(x)
    #else
    #define detap_ctz(x) __builtin_ctzll(x)
    #define detap_clz(x) __builtin_clzll(x)
    #define detap_ones(x) __builtin_popcountll(x)
    #define detap_swap(x) __builtin_bswap64(x)
    #endif

    static CYTHON_INLINE uint64_t detap_load(const uint8_t *p) {
        uint64_t x;
        memcpy(&x, p, 8);
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        x = detap_swap(x);
    #endif
        return x;
    }

    #define DETAP_LOW_BITS 0x0101010101010101ULL
    #define DETAP_HIGH_BITS 0x8080808080808080ULL
    """
    # The place of the lowest bit that is set, from 0, and how many zeros stand above the highest;
    # neither of 0.
    int trailing_zeros "detap_ctz"(uint64_t) noexcept nogil
    int leading_zeros "detap_clz"(uint64_t) noexcept nogil
    int ones "detap_ones"(uint64_t) noexcept nogil
    # The next eight bytes, the first in the lowest bits.
    uint64_t load "detap_load"(const uint8_t *) noexcept nogil
    uint64_t LOW_BITS "DETAP_LOW_BITS"      # the lowest bit of each byte
    uint64_t HIGH_BITS "DETAP_HIGH_BITS"    # the highest
