"""Regular COCO JSON straight from bytes to columns, without a Python object per record.

The scanners read a file block by block, one record at a time, without the GIL and without numpy.
Of what is not wanted (polygons above all) only the syntax is checked. They decline whatever is
not of the regular shape, valid or not, and leave it to the careful reader: they must never accept
what that one refuses, nor give other values.

Numbers are converted exactly, as `float` converts them: D. Lemire, "Number parsing at a gigabyte
per second", Software: Practice and Experience 51 (8), 2021.
"""

from cpython.buffer cimport PyBUF_FORMAT, PyBUF_ND, PyBUF_STRIDES
from cpython.bytes cimport PyBytes_FromStringAndSize
from os import urandom

from libc.math cimport NAN, isfinite
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, qsort, realloc
from libc.string cimport memcmp, memcpy, memmove, memset

cdef extern from *:
    """
    #include <float.h>
    #include <stdint.h>
    #include <string.h>
    #ifdef _WIN32
    #include <io.h>
    #define jc_read(fd, to, count, at) _read(fd, to, (unsigned)(count))
    #define JC_AT_ONCE 0
    #else
    #include <unistd.h>
    #define jc_read(fd, to, count, at) pread(fd, to, count, (off_t)(at))
    #define JC_AT_ONCE 1
    #endif
    #if defined(_MSC_VER) && !defined(__clang__)
    #include <intrin.h>
    static __inline int jc_ctz(uint64_t x) { unsigned long i; _BitScanForward64(&i, x); return (int)i; }
    static __inline int jc_clz(uint64_t x) { unsigned long i; _BitScanReverse64(&i, x); return 63 - (int)i; }
    #define jc_swap(x) _byteswap_uint64(x)
    #else
    #define jc_ctz(x) __builtin_ctzll(x)
    #define jc_clz(x) __builtin_clzll(x)
    #define jc_swap(x) __builtin_bswap64(x)
    #endif

    /* The next eight bytes, the first in the lowest bits. */
    static CYTHON_INLINE uint64_t jc_load(const uint8_t *p) {
        uint64_t x;
        memcpy(&x, p, 8);
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        x = jc_swap(x);
    #endif
        return x;
    }

    static CYTHON_INLINE uint64_t jc_multiply(uint64_t a, uint64_t b, uint64_t *high) {
    #ifdef __SIZEOF_INT128__
        unsigned __int128 product = (unsigned __int128)a * b;
        *high = (uint64_t)(product >> 64);
        return (uint64_t)product;
    #else
        uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
        uint64_t low = al * bl, one = ah * bl + (low >> 32), two = al * bh + (uint32_t)one;
        *high = ah * bh + (one >> 32) + (two >> 32);
        return (two << 32) | (uint32_t)low;
    #endif
    }

    /* Constants with a value in each byte. */
    #define JC_ZEROS 0x3030303030303030ULL
    #define JC_NO_DIGIT 0x7676767676767676ULL
    #define JC_HIGH 0x8080808080808080ULL
    #define JC_ONES 0x0101010101010101ULL
    #define JC_SPACES 0x2020202020202020ULL
    #define JC_QUOTES 0x2222222222222222ULL
    #define JC_SLASHES 0x5C5C5C5C5C5C5C5CULL
    #define JC_ALL 0xFFFFFFFFFFFFFFFFULL
    #define JC_PAIRS 0x000000FF000000FFULL
    #define JC_UPPER 0x000F424000000064ULL
    #define JC_LOWER 0x0000271000000001ULL
    #define JC_MIX 0x9E3779B97F4A7C15ULL

    static CYTHON_INLINE double jc_double(uint64_t bits) {
        double x;
        memcpy(&x, &bits, 8);
        return x;
    }

    /* Where doubles are computed in wider registers, the quick conversion would round twice. */
    #if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
    #define JC_EXACT 0
    #else
    #define JC_EXACT 1
    #endif

    #if defined(__SSE2__) || defined(_M_X64)
    #include <emmintrin.h>
    static CYTHON_INLINE uint64_t jc_mask(__m128i a, __m128i b, __m128i c, __m128i d) {
        return (uint64_t)(uint32_t)_mm_movemask_epi8(a)
            | (uint64_t)(uint32_t)_mm_movemask_epi8(b) << 16
            | (uint64_t)(uint32_t)_mm_movemask_epi8(c) << 32
            | (uint64_t)(uint32_t)_mm_movemask_epi8(d) << 48;
    }
    #define JC_IS(c) jc_mask( \\
        _mm_cmpeq_epi8(x0, _mm_set1_epi8(c)), _mm_cmpeq_epi8(x1, _mm_set1_epi8(c)), \\
        _mm_cmpeq_epi8(x2, _mm_set1_epi8(c)), _mm_cmpeq_epi8(x3, _mm_set1_epi8(c)))
    #define JC_DIGITS(x) _mm_cmpeq_epi8( \\
        _mm_min_epu8(_mm_sub_epi8(x, _mm_set1_epi8('0')), _mm_set1_epi8(9)), \\
        _mm_sub_epi8(x, _mm_set1_epi8('0')))

    /* Skip an array of plain numbers, 64 bytes at a time. p is at its first number. Returns the
       closing bracket and sets *done, or else the place behind the last comma up to which all is
       well. Each mask has a bit per byte; the carries hand the last bit to the next 64 bytes.
       Where no bit differs from the grammar, the bytes are numbers without exponents, separated
       by a comma and at most one space. At least 64 bytes behind the end must be readable, and
       hold a byte that is none of these. */
    static const uint8_t *jc_numbers(const uint8_t *p, int *done) {
        const uint8_t *resume = p;
        uint64_t was_break = 1, was_comma = 0, was_minus = 0, was_point = 0;
        uint64_t was_digit = 0, was_zero = 0, fraction = 0;
        *done = 0;
        for (;; p += 64) {
            const __m128i x0 = _mm_loadu_si128((const __m128i *)p);
            const __m128i x1 = _mm_loadu_si128((const __m128i *)(p + 16));
            const __m128i x2 = _mm_loadu_si128((const __m128i *)(p + 32));
            const __m128i x3 = _mm_loadu_si128((const __m128i *)(p + 48));
            const uint64_t digit = jc_mask(JC_DIGITS(x0), JC_DIGITS(x1), JC_DIGITS(x2), JC_DIGITS(x3));
            const uint64_t point = JC_IS('.'), comma = JC_IS(','), space = JC_IS(' ');
            const uint64_t minus = JC_IS('-'), zero = JC_IS('0');
            const uint64_t between = comma | space;
            const uint64_t other = ~(digit | point | between | minus);
            const int length = other ? jc_ctz(other) : 64;
            const uint64_t valid = length == 64 ? ~(uint64_t)0 : ((uint64_t)1 << length) - 1;
            const uint64_t after_break = between << 1 | was_break;
            const uint64_t after_comma = comma << 1 | was_comma;
            const uint64_t after_minus = minus << 1 | was_minus;
            const uint64_t after_point = point << 1 | was_point;
            const uint64_t after_digit = digit << 1 | was_digit;
            const uint64_t addend = after_point | fraction;
            const uint64_t sum = digit + addend;
            const uint64_t leading_zero = zero & (after_break | after_minus);
            uint64_t wrong = after_break & ~(digit | minus | space);
            wrong |= space & ~after_comma;
            wrong |= (after_minus | after_point) & ~digit;
            wrong |= minus & ~after_break;
            wrong |= (point | comma) & ~after_digit;
            wrong |= sum & ~digit & point;                       /* a second point */
            wrong |= (leading_zero << 1 | was_zero) & digit;
            if (wrong & valid)
                return resume;
            if (between & valid)
                resume = p + 64 - jc_clz(between & valid);
            if (length < 64) {
                *done = p[length] == ']' && (after_digit >> length & 1);
                return *done ? p + length : resume;
            }
            was_break = between >> 63;
            was_comma = comma >> 63;
            was_minus = minus >> 63;
            was_point = point >> 63;
            was_digit = digit >> 63;
            was_zero = leading_zero >> 63;
            fraction = sum < digit;
        }
    }
    #else
    static const uint8_t *jc_numbers(const uint8_t *p, int *done) {
        *done = 0;
        return p;
    }
    #endif
    """
    Py_ssize_t jc_read(int, void *, size_t, uint64_t) noexcept nogil
    int JC_AT_ONCE
    int jc_ctz(uint64_t) noexcept nogil
    int jc_clz(uint64_t) noexcept nogil
    uint64_t jc_load(const uint8_t *) noexcept nogil
    uint64_t jc_multiply(uint64_t, uint64_t, uint64_t *) noexcept nogil
    double jc_double(uint64_t) noexcept nogil
    const uint8_t *jc_numbers(const uint8_t *, int *) noexcept nogil
    int JC_EXACT
    uint64_t JC_ZEROS, JC_NO_DIGIT, JC_HIGH, JC_ONES, JC_SPACES, JC_QUOTES, JC_SLASHES, JC_ALL
    uint64_t JC_PAIRS, JC_UPPER, JC_LOWER, JC_MIX

ctypedef const uint8_t *Bytes

# ---------------------------------------------------------------------------------------------
# Numbers

cdef enum:
    LOWEST_POWER = -342
    HIGHEST_POWER = 308
    POWERS = 651

cdef uint64_t[POWERS][2] FIVES
"""The leading 128 bits of 5**q, high half first, for q from -342 to 308."""

cdef double[23] TENS
cdef uint64_t[9] WHOLE_TENS


cdef void _make_powers():
    """Compute the powers of five from Python's integers; takes about a millisecond.

    Positive powers are truncated. Negative ones are reciprocals, rounded up where the product
    with a 64 bit mantissa can be exact (q >= -27), and truncated beyond, as the paper has it.
    """
    cdef int q
    cdef object power = 1, bits
    for q in range(HIGHEST_POWER + 1):
        _keep(q, power << 128 >> power.bit_length())
        power *= 5
    power = 1
    for q in range(-1, LOWEST_POWER - 1, -1):
        power *= 5
        bits = power.bit_length()
        if q >= -27:
            _keep(q, (1 << (bits + 127)) // power + 1)
        else:
            _keep(q, (1 << (bits + 127)) // power)
    power = 1
    for q in range(23):
        TENS[q] = power
        if q < 9:
            WHOLE_TENS[q] = power
        power *= 10


cdef void _keep(int q, object value):
    FIVES[q - LOWEST_POWER][0] = <uint64_t>(value >> 64)
    FIVES[q - LOWEST_POWER][1] = <uint64_t>(value & 0xFFFFFFFFFFFFFFFF)


_make_powers()

cdef double UNSURE = -1.0
"""No mantissa converts to it: the sign is put on afterwards."""


cdef double _scaled(uint64_t mantissa, int64_t power) noexcept nogil:
    """Return mantissa * 10**power, rounded to nearest, ties to even; infinite on overflow."""
    cdef uint64_t high, low, second_high, significand
    cdef int shift, upper
    cdef int64_t exponent
    if mantissa == 0 or power < LOWEST_POWER:
        return 0.0
    if power > HIGHEST_POWER:
        return jc_double(<uint64_t>0x7FF << 52)
    shift = jc_clz(mantissa)
    mantissa <<= shift
    low = jc_multiply(mantissa, FIVES[power - LOWEST_POWER][0], &high)
    if (high & 0x1FF) == 0x1FF:
        jc_multiply(mantissa, FIVES[power - LOWEST_POWER][1], &second_high)
        low += second_high
        if second_high > low:
            high += 1
        if low == JC_ALL and (power < -27 or power > 55):
            return UNSURE
    upper = <int>(high >> 63)
    significand = high >> (upper + 9)
    # floor(power * log2(10)), by a multiplication that is exact over this range.
    exponent = ((217706 * power) >> 16) + 63 + upper - shift + 1023
    if exponent <= 0:
        if exponent <= -63:
            return 0.0
        significand >>= 1 - exponent
        significand = (significand + (significand & 1)) >> 1
        return jc_double(significand)
    if low <= 1 and -4 <= power <= 23 and (significand & 3) == 1:
        if significand << (upper + 9) == high:
            significand &= ~(<uint64_t>1)
    significand = (significand + (significand & 1)) >> 1
    if significand >= (<uint64_t>2 << 52):
        significand = <uint64_t>1 << 52
        exponent += 1
    if exponent >= 0x7FF:
        return jc_double(<uint64_t>0x7FF << 52)
    return jc_double((significand & ~(<uint64_t>1 << 52)) | <uint64_t>exponent << 52)


cdef double _by_python(Bytes text, Py_ssize_t length) noexcept with gil:
    """Return what Python makes of it: the rare number that lies at the edge of two floats."""
    try:
        return abs(float(PyBytes_FromStringAndSize(<const char *>text, length)))
    except BaseException:
        return jc_double(<uint64_t>0x7FF << 52)


cdef double _converted(uint64_t mantissa, int64_t power) noexcept nogil:
    if JC_EXACT and mantissa <= <uint64_t>1 << 53 and -22 <= power <= 22:
        if power < 0:
            return <double>mantissa / TENS[-power]
        return <double>mantissa * TENS[power]
    return _scaled(mantissa, power)


cdef struct Cursor:
    Bytes end           # behind the last byte at hand; zeros follow it
    Bytes failed        # where a function that returned NULL stopped
    int deepest         # levels of nesting allowed
    int keys            # how many of `hashes` are in use
    uint64_t[512] hashes


cdef inline Bytes _fail(Cursor *cursor, Bytes p) noexcept nogil:
    cursor.failed = p
    return NULL


cdef inline uint64_t _stops(uint64_t chunk) noexcept nogil:
    """Mark the bytes that are no digit; exact up to the first. `chunk` is XORed with zeros."""
    return ((chunk + JC_NO_DIGIT) | chunk) & JC_HIGH


cdef inline uint64_t _eight(uint64_t chunk) noexcept nogil:
    """Return the number of which the eight bytes are the digits, the first lowest."""
    chunk = chunk * 10 + (chunk >> 8)
    return (
        (chunk & JC_PAIRS) * JC_UPPER
        + ((chunk >> 16) & JC_PAIRS) * JC_LOWER
    ) >> 32


cdef inline bint _is_digit(uint8_t c) noexcept nogil:
    return <uint8_t>(c - 48) <= 9


cdef Bytes _read_any_number(Cursor *cursor, Bytes start, double *value) noexcept nogil:
    """Read a number of any length, with or without exponent; an infinite one fails."""
    cdef Bytes p = start
    cdef uint64_t mantissa = 0
    cdef int64_t power = 0, written = 0
    cdef int significant = 0
    cdef bint negative = p[0] == 45, down, whole = True, cut = False
    cdef double result
    p += negative
    if not _is_digit(p[0]) or (p[0] == 48 and _is_digit(p[1])):
        return _fail(cursor, p)
    while _is_digit(p[0]):
        if significant < 19:
            mantissa = mantissa * 10 + (p[0] - 48)
            significant += mantissa != 0
        else:
            power += 1
            cut |= p[0] != 48
        p += 1
    if p[0] == 46:
        whole = False
        p += 1
        if not _is_digit(p[0]):
            return _fail(cursor, p)
        while _is_digit(p[0]):
            if significant < 19:
                mantissa = mantissa * 10 + (p[0] - 48)
                significant += mantissa != 0
                power -= 1
            else:
                cut |= p[0] != 48
            p += 1
    if p[0] | 32 == 101:
        whole = False
        p += 1
        down = p[0] == 45
        p += p[0] == 45 or p[0] == 43
        if not _is_digit(p[0]):
            return _fail(cursor, p)
        while _is_digit(p[0]):
            if written < 1000000000:
                written = written * 10 + (p[0] - 48)
            p += 1
        power += -written if down else written
    if p >= cursor.end:
        return _fail(cursor, p)
    result = _converted(mantissa, power)
    if result == UNSURE or (cut and result != _scaled(mantissa + 1, power)):
        result = _by_python(start, p - start)
    if not isfinite(result):
        return _fail(cursor, start)
    # An integer -0 is Python's 0; only the float -0.0 has a sign.
    value[0] = -result if negative and not (whole and result == 0) else result
    return p


cdef inline Bytes _read_number(Cursor *cursor, Bytes start, double *value) noexcept nogil:
    """Read a number; quick for up to seven digits before and eighteen behind the point."""
    cdef Bytes p = start
    cdef bint negative = p[0] == 45
    cdef uint64_t chunk, stops, mantissa
    cdef int bits, digits, places = 0
    cdef double result
    p += negative
    chunk = jc_load(p) ^ JC_ZEROS
    stops = _stops(chunk)
    if stops == 0 or stops & 0x80:
        return _read_any_number(cursor, start, value)
    bits = jc_ctz(stops) - 7
    digits = bits >> 3
    if digits > 1 and p[0] == 48:
        return _fail(cursor, p)
    mantissa = _eight(chunk << (64 - bits))
    p += digits
    if p[0] != 46:
        if p[0] | 32 == 101:
            return _read_any_number(cursor, start, value)
        result = <double>mantissa
        value[0] = -result if negative and mantissa else result
        return p
    p += 1
    chunk = jc_load(p) ^ JC_ZEROS
    stops = _stops(chunk)
    if stops & 0x80:
        return _fail(cursor, p)
    while stops == 0:
        mantissa = mantissa * 100000000 + _eight(chunk)
        places += 8
        p += 8
        if places > 16:
            return _read_any_number(cursor, start, value)
        chunk = jc_load(p) ^ JC_ZEROS
        stops = _stops(chunk)
    bits = jc_ctz(stops) - 7
    if bits:
        mantissa = mantissa * WHOLE_TENS[bits >> 3] + _eight(chunk << (64 - bits))
        places += bits >> 3
        p += bits >> 3
    if digits + places > 19 or p[0] | 32 == 101:
        return _read_any_number(cursor, start, value)
    if JC_EXACT and mantissa <= <uint64_t>1 << 53:
        result = <double>mantissa / TENS[places]
    else:
        result = _scaled(mantissa, -places)
        if result == UNSURE:
            return _read_any_number(cursor, start, value)
    value[0] = -result if negative else result
    return p


cdef inline Bytes _read_integer(Cursor *cursor, Bytes p, int64_t *value) noexcept nogil:
    """Read an integer of at most 18 digits."""
    cdef Bytes first
    cdef bint negative = p[0] == 45
    cdef uint64_t chunk, stops, result = 0
    cdef int bits
    p += negative
    first = p
    if not _is_digit(p[0]) or (p[0] == 48 and _is_digit(p[1])):
        return _fail(cursor, p)
    chunk = jc_load(p) ^ JC_ZEROS
    stops = _stops(chunk)
    while stops == 0:
        result = result * 100000000 + _eight(chunk)
        p += 8
        if p - first > 16:
            return _fail(cursor, first)
        chunk = jc_load(p) ^ JC_ZEROS
        stops = _stops(chunk)
    bits = jc_ctz(stops) - 7
    if bits:
        result = result * WHOLE_TENS[bits >> 3] + _eight(chunk << (64 - bits))
        p += bits >> 3
    if p - first > 18 or p[0] == 46 or p[0] | 32 == 101:
        return _fail(cursor, p)
    value[0] = -<int64_t>result if negative else <int64_t>result
    return p


def parse_number(text: bytes) -> float | None:
    """Return the number that `text` spells in JSON, or None where it is none or infinite."""
    cdef Cursor cursor
    cdef double value = 0
    cdef Bytes p
    padded = text + b"," + bytes(128)
    cdef Bytes start = padded
    cursor.end = start + len(text) + 1
    p = _read_number(&cursor, start, &value)
    return value if p != NULL and p == start + len(text) else None

# ---------------------------------------------------------------------------------------------
# What is only checked and skipped


cdef inline Bytes _space(Bytes p) noexcept nogil:
    while p[0] == 32 or p[0] == 10 or p[0] == 13 or p[0] == 9:
        p += 1
    return p


cdef Bytes _skip_character(Cursor *cursor, Bytes p) noexcept nogil:
    """Skip one character of more than one byte, as strict UTF-8 has it."""
    cdef uint8_t a = p[0], b = p[1]
    if 0xC2 <= a <= 0xDF:
        if b & 0xC0 != 0x80:
            return _fail(cursor, p)
        return p + 2
    if p[2] & 0xC0 != 0x80:
        return _fail(cursor, p)
    if 0xE0 <= a <= 0xEF:
        # No overlong form, no surrogate.
        if b & 0xC0 != 0x80 or (a == 0xE0 and b < 0xA0) or (a == 0xED and b > 0x9F):
            return _fail(cursor, p)
        return p + 3
    if 0xF0 <= a <= 0xF4 and b & 0xC0 == 0x80 and p[3] & 0xC0 == 0x80:
        if (a == 0xF0 and b < 0x90) or (a == 0xF4 and b > 0x8F):
            return _fail(cursor, p)
        return p + 4
    return _fail(cursor, p)


cdef inline bint _is_hex(uint8_t c) noexcept nogil:
    return _is_digit(c) or 97 <= c | 32 <= 102


cdef Bytes _skip_escape(Cursor *cursor, Bytes p) noexcept nogil:
    cdef uint8_t c = p[1]
    if c == 117:
        if _is_hex(p[2]) and _is_hex(p[3]) and _is_hex(p[4]) and _is_hex(p[5]):
            return p + 6
        return _fail(cursor, p)
    # " \ / b f n r t
    if c == 34 or c == 92 or c == 47 or c == 98 or c == 102 or c == 110 or c == 114 or c == 116:
        return p + 2
    return _fail(cursor, p)


cdef Bytes _skip_string(Cursor *cursor, Bytes p, bint *escapes) noexcept nogil:
    """Skip a string; `p` is at its quote. Sets `escapes` where it has any."""
    cdef uint64_t x, quote, slash, found
    escapes[0] = False
    p += 1
    while True:
        x = jc_load(p)
        quote = x ^ JC_QUOTES
        slash = x ^ JC_SLASHES
        # Zero bytes of `quote` and `slash`, bytes below a space, bytes beyond ASCII.
        found = ((quote - JC_ONES) & ~quote) | ((slash - JC_ONES) & ~slash)
        found |= ((x - JC_SPACES) & ~x) | x
        found &= JC_HIGH
        if found == 0:
            p += 8
            continue
        p += jc_ctz(found) >> 3
        if p[0] == 34:
            return p + 1
        if p[0] == 92:
            escapes[0] = True
            p = _skip_escape(cursor, p)
        elif p[0] >= 0x80:
            p = _skip_character(cursor, p)
        else:
            return _fail(cursor, p)
        if p == NULL:
            return NULL


cdef uint64_t _hash(Bytes p, Py_ssize_t length) noexcept nogil:
    """Return a hash of some bytes; eight bytes behind them must be readable."""
    cdef uint64_t result = <uint64_t>length, high
    cdef Py_ssize_t i = 0
    while i + 8 <= length:
        result = jc_multiply(result ^ jc_load(p + i), JC_MIX, &high) ^ high
        i += 8
    if i < length:
        result ^= jc_load(p + i) << (64 - 8 * (length - i))
    result = jc_multiply(result, JC_MIX, &high)
    return result ^ high


cdef Bytes _skip_number(Cursor *cursor, Bytes p) noexcept nogil:
    p += p[0] == 45
    if not _is_digit(p[0]) or (p[0] == 48 and _is_digit(p[1])):
        return _fail(cursor, p)
    while _is_digit(p[0]):
        p += 1
    if p[0] == 46:
        p += 1
        if not _is_digit(p[0]):
            return _fail(cursor, p)
        while _is_digit(p[0]):
            p += 1
    if p[0] | 32 == 101:
        p += 1
        p += p[0] == 45 or p[0] == 43
        if not _is_digit(p[0]):
            return _fail(cursor, p)
        while _is_digit(p[0]):
            p += 1
    return p


cdef Bytes _skip_word(Cursor *cursor, Bytes p, const char *word, int length) noexcept nogil:
    if memcmp(p, word, length) != 0:
        return _fail(cursor, p)
    return p + length


cdef Bytes _skip_value(Cursor *cursor, Bytes p, int depth) noexcept nogil:
    """Skip a value at nesting level `depth`, checking all of its syntax."""
    cdef bint escapes
    cdef uint8_t c = p[0]
    if c == 34:
        return _skip_string(cursor, p, &escapes)
    if c == 91:
        return _skip_array(cursor, p, depth)
    if c == 123:
        return _skip_object(cursor, p, depth)
    if c == 116:
        return _skip_word(cursor, p, b"true", 4)
    if c == 102:
        return _skip_word(cursor, p, b"false", 5)
    if c == 110:
        return _skip_word(cursor, p, b"null", 4)
    return _skip_number(cursor, p)


cdef Bytes _skip_array(Cursor *cursor, Bytes p, int depth) noexcept nogil:
    cdef int done
    if depth > cursor.deepest:
        return _fail(cursor, p)
    p = _space(p + 1)
    if p[0] == 93:
        return p + 1
    while True:
        if _is_digit(p[0]) or p[0] == 45:
            p = jc_numbers(p, &done)
            if done:
                return p + 1
            p = _space(p)
        p = _skip_value(cursor, p, depth + 1)
        if p == NULL:
            return NULL
        p = _space(p)
        if p[0] == 93:
            return p + 1
        if p[0] != 44:
            return _fail(cursor, p)
        p = _space(p + 1)


cdef Bytes _skip_object(Cursor *cursor, Bytes p, int depth) noexcept nogil:
    cdef int first = cursor.keys, i
    cdef Bytes key
    cdef bint escapes
    cdef uint64_t hashed
    if depth > cursor.deepest:
        return _fail(cursor, p)
    p = _space(p + 1)
    if p[0] == 125:
        return p + 1
    while True:
        key = p
        if p[0] != 34:
            return _fail(cursor, p)
        p = _skip_string(cursor, p, &escapes)
        if p == NULL:
            return NULL
        hashed = _hash(key, p - key)
        for i in range(first, cursor.keys):
            if cursor.hashes[i] == hashed:
                return _fail(cursor, key)
        # A key spelt with escapes may equal another that is not.
        if escapes or cursor.keys == 512:
            return _fail(cursor, key)
        cursor.hashes[cursor.keys] = hashed
        cursor.keys += 1
        p = _space(p)
        if p[0] != 58:
            return _fail(cursor, p)
        p = _skip_value(cursor, _space(p + 1), depth + 1)
        if p == NULL:
            return NULL
        p = _space(p)
        if p[0] == 125:
            cursor.keys = first
            return p + 1
        if p[0] != 44:
            return _fail(cursor, p)
        p = _space(p + 1)

# ---------------------------------------------------------------------------------------------
# Keys

cdef enum:
    SLOTS = 48
    WORDS = 6

cdef enum Field:
    OTHER, ID, IMAGE_ID, CATEGORY_ID, BBOX, AREA, ISCROWD, IGNORE, ISGROUPOF, SCORE, WIDTH, HEIGHT

cdef enum Kind:
    RESULT, ANNOTATION, IMAGE, SKIPPED

cdef struct Slot:
    int length                  # of the literal, from the value before to the value; -1: too long
    Field field
    uint64_t hashed             # of the key
    uint64_t[WORDS] words
    uint64_t[WORDS] masks

cdef struct Shape:
    int count
    Slot[SLOTS] slots


cdef bint _is(Bytes key, Py_ssize_t length, const char *name, Py_ssize_t due) noexcept nogil:
    return length == due and memcmp(key, name, due) == 0


cdef Field _field(Kind kind, Bytes key, Py_ssize_t length) noexcept nogil:
    """Tell which value a key announces; the key is without its quotes."""
    if kind == IMAGE:
        if _is(key, length, b"id", 2):
            return ID
        if _is(key, length, b"width", 5):
            return WIDTH
        return HEIGHT if _is(key, length, b"height", 6) else OTHER
    if _is(key, length, b"image_id", 8):
        return IMAGE_ID
    if _is(key, length, b"category_id", 11):
        return CATEGORY_ID
    if _is(key, length, b"bbox", 4):
        return BBOX
    if kind == RESULT:
        return SCORE if _is(key, length, b"score", 5) else OTHER
    if _is(key, length, b"id", 2):
        return ID
    if _is(key, length, b"area", 4):
        return AREA
    if _is(key, length, b"iscrowd", 7):
        return ISCROWD
    if _is(key, length, b"ignore", 6):
        return IGNORE
    return ISGROUPOF if _is(key, length, b"isgroupof", 9) else OTHER


cdef inline bint _matches(Bytes p, const Slot *slot) noexcept nogil:
    """Tell whether the text from here to the next value is the same as in the last record.

    Space that begins where the value is due belongs to the text, which then is not the same.
    """
    cdef uint64_t difference = (jc_load(p) ^ slot.words[0]) & slot.masks[0]
    cdef int i
    if slot.length < 0 or p[slot.length] <= 32:
        return False
    for i in range(1, (slot.length + 7) >> 3):
        difference |= (jc_load(p + 8 * i) ^ slot.words[i]) & slot.masks[i]
    return difference == 0


cdef Bytes _learn(Cursor *cursor, Shape *shape, int place, Kind kind, Bytes start) noexcept nogil:
    """Read the next key, and keep it as what the next record has in this place.

    The keys before it in this record are those of the slots before: so a repeated one is found.
    """
    cdef Slot *slot = &shape.slots[place]
    cdef Bytes p = _space(start), key
    cdef bint escapes
    cdef int i, left
    if place == SLOTS:
        return _fail(cursor, p)
    if place:
        if p[0] != 44:
            return _fail(cursor, p)
        p = _space(p + 1)
    key = p
    if p[0] != 34:
        return _fail(cursor, p)
    p = _skip_string(cursor, p, &escapes)
    if p == NULL:
        return NULL
    slot.hashed = _hash(key, p - key)
    for i in range(place):
        if shape.slots[i].hashed == slot.hashed:
            return _fail(cursor, key)
    if escapes:
        return _fail(cursor, key)
    slot.field = _field(kind, key + 1, p - key - 2)
    p = _space(p)
    if p[0] != 58:
        return _fail(cursor, p)
    p = _space(p + 1)
    if p >= cursor.end:
        return _fail(cursor, p)
    slot.length = <int>(p - start) if p - start <= 8 * WORDS else -1
    for i in range((slot.length + 7) >> 3):
        left = slot.length - 8 * i
        slot.masks[i] = JC_ALL if left >= 8 else (<uint64_t>1 << (8 * left)) - 1
        slot.words[i] = jc_load(start + 8 * i) & slot.masks[i]
    shape.count = place + 1
    return p


cdef inline Bytes _read_box(Cursor *cursor, Bytes p, double *box) noexcept nogil:
    """Read [x, y, width, height]: finite, of finite corners and area, of no negative side."""
    cdef int i
    if p[0] != 91:
        return _fail(cursor, p)
    p += 1
    for i in range(4):
        p = _space(p)
        p = _read_number(cursor, p, &box[i])
        if p == NULL:
            return NULL
        p = _space(p)
        if p[0] != (93 if i == 3 else 44):
            return _fail(cursor, p)
        p += 1
    # Negated, so that a sum or product that is infinite fails too.
    if not (box[2] >= 0 and box[3] >= 0 and isfinite(box[2] * box[3])
            and isfinite(box[0] + box[2]) and isfinite(box[1] + box[3])):
        return _fail(cursor, p)
    return p


cdef Bytes _read_flag(Cursor *cursor, Bytes p, uint8_t *flag) noexcept nogil:
    """Read 0, 1, true or false."""
    if p[0] == 48 or p[0] == 49:
        flag[0] = p[0] - 48
        if _is_digit(p[1]) or p[1] == 46 or p[1] | 32 == 101:
            return _fail(cursor, p)
        return p + 1
    flag[0] = p[0] == 116
    if flag[0]:
        return _skip_word(cursor, p, b"true", 4)
    return _skip_word(cursor, p, b"false", 5)

cdef struct Row:
    int64_t id, image, category
    double[4] box
    double area, score, width, height
    uint8_t crowd, ignore, group_of
    uint32_t seen


cdef Bytes _read_record(
    Cursor *cursor, Shape *shape, Row *row, Kind kind, Bytes p, int depth
) noexcept nogil:
    """Read one record, an object at level `depth`."""
    cdef int place = 0
    cdef Bytes q
    if p[0] != 123:
        return _fail(cursor, p)
    p += 1
    row.seen = 0
    while True:
        if place < shape.count and _matches(p, &shape.slots[place]):
            p += shape.slots[place].length
        else:
            q = _space(p)
            if q[0] == 125:
                return q + 1
            p = _learn(cursor, shape, place, kind, p)
            if p == NULL:
                return NULL
        p = _read_value(cursor, row, shape.slots[place].field, p, depth + 1)
        if p == NULL:
            return NULL
        place += 1
        if p[0] == 125:
            return p + 1


cdef inline Bytes _read_value(
    Cursor *cursor, Row *row, Field field, Bytes p, int depth
) noexcept nogil:
    row.seen |= <uint32_t>1 << <int>field
    if field == BBOX:
        return _read_box(cursor, p, row.box)
    if field == IMAGE_ID:
        return _read_integer(cursor, p, &row.image)
    if field == CATEGORY_ID:
        return _read_integer(cursor, p, &row.category)
    if field == SCORE:
        return _read_number(cursor, p, &row.score)
    if field == OTHER:
        return _skip_value(cursor, p, depth)
    if field == ID:
        return _read_integer(cursor, p, &row.id)
    if field == AREA:
        return _read_number(cursor, p, &row.area)
    if field == ISCROWD:
        return _read_flag(cursor, p, &row.crowd)
    if field == IGNORE:
        return _read_flag(cursor, p, &row.ignore)
    if field == ISGROUPOF:
        return _read_flag(cursor, p, &row.group_of)
    if field == WIDTH:
        return _read_number(cursor, p, &row.width)
    return _read_number(cursor, p, &row.height)

# ---------------------------------------------------------------------------------------------
# Columns


cdef class Column:
    """A column of numbers, which numpy views without copying.

    Shape (N,) or (N, width); formats ``d``, ``i``, ``q`` and ``?`` of the struct module.
    """

    cdef void *data
    cdef Py_ssize_t[2] shape
    cdef Py_ssize_t[2] strides
    cdef Py_ssize_t item
    cdef int dimensions
    cdef bytes format

    def __dealloc__(self):
        free(self.data)

    def __len__(self):
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


cdef Column _column(void **data, Py_ssize_t count, Py_ssize_t width, Py_ssize_t item, bytes format):
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


# Of this process alone, so that no file can be made whose ids all meet in one place of a table.
cdef uint64_t SEED = int.from_bytes(urandom(8), "little")


cdef class IdTable:
    """The number of each id, for ids that are integers.

    Parameters
    ----------
    ids : iterable of int
        Distinct, within 64 bits; the first gets number 0.

    Raises
    ------
    OverflowError, TypeError
        Where an id is no such integer.
    """

    cdef int64_t *ids
    cdef int32_t *numbers
    cdef uint64_t mask
    cdef int64_t low
    cdef bint direct
    cdef bint repeats

    def __dealloc__(self):
        free(self.ids)
        free(self.numbers)

    def __init__(self, ids):
        cdef list listed = list(ids)
        cdef Py_ssize_t count = len(listed), i
        cdef int64_t *copied = <int64_t *>malloc(max(count, 1) * sizeof(int64_t))
        if copied == NULL:
            raise MemoryError
        try:
            for i in range(count):
                copied[i] = listed[i]
            if not self.build(copied, count):
                raise MemoryError
        finally:
            free(copied)

    cdef bint build(self, const int64_t *ids, Py_ssize_t count) noexcept nogil:
        """Number the ids; False where memory is short. Sets `repeats` where two are equal."""
        cdef int64_t high
        cdef Py_ssize_t i
        self.low = high = ids[0] if count else 0
        for i in range(count):
            self.low = min(self.low, ids[i])
            high = max(high, ids[i])
        self.direct = <uint64_t>high - <uint64_t>self.low < <uint64_t>(8 * count + 1024)
        if self.direct:
            return self.build_direct(ids, count, <uint64_t>high - <uint64_t>self.low + 1)
        return self.build_hashed(ids, count)

    cdef bint build_direct(self, const int64_t *ids, Py_ssize_t count, uint64_t span) noexcept nogil:
        cdef Py_ssize_t i
        self.mask = span
        self.numbers = <int32_t *>malloc(span * sizeof(int32_t))
        if self.numbers == NULL:
            return False
        memset(self.numbers, 0xFF, span * sizeof(int32_t))
        for i in range(count):
            self.repeats |= self.numbers[ids[i] - self.low] >= 0
            self.numbers[ids[i] - self.low] = <int32_t>i
        return True

    cdef bint build_hashed(self, const int64_t *ids, Py_ssize_t count) noexcept nogil:
        cdef uint64_t size = 16, at
        cdef Py_ssize_t i
        while size < 2 * <uint64_t>count:
            size *= 2
        self.mask = size - 1
        self.ids = <int64_t *>malloc(size * sizeof(int64_t))
        self.numbers = <int32_t *>malloc(size * sizeof(int32_t))
        if self.ids == NULL or self.numbers == NULL:
            return False
        memset(self.numbers, 0xFF, size * sizeof(int32_t))
        for i in range(count):
            at = self.slot(ids[i])
            self.repeats |= self.numbers[at] >= 0
            self.ids[at] = ids[i]
            self.numbers[at] = <int32_t>i
        return True

    cdef inline uint64_t slot(self, int64_t identifier) noexcept nogil:
        cdef uint64_t high, at
        at = jc_multiply(<uint64_t>identifier ^ SEED, JC_MIX, &high)
        at = (at ^ high) & self.mask
        while self.numbers[at] >= 0 and self.ids[at] != identifier:
            at = (at + 1) & self.mask
        return at

    cdef inline int32_t number(self, int64_t identifier) noexcept nogil:
        """Return the number of an id, -1 where it is unknown."""
        cdef uint64_t offset
        if self.direct:
            offset = <uint64_t>identifier - <uint64_t>self.low
            return self.numbers[offset] if offset < self.mask else -1
        return self.numbers[self.slot(identifier)]


cdef bint _are_distinct(int64_t *ids, Py_ssize_t count) noexcept nogil:
    """Tell whether no two ids are equal, False too where memory is short; sorts the ids.

    By their bytes, lowest first: a table of so many would miss the cache at each.
    """
    cdef uint64_t *items = <uint64_t *>ids
    cdef uint64_t *spare = <uint64_t *>malloc(max(count, 1) * sizeof(uint64_t))
    cdef uint64_t *given = spare
    cdef uint64_t *other
    cdef Py_ssize_t places[256]
    cdef Py_ssize_t place, size, i
    cdef int digit, value
    cdef bint distinct = spare != NULL
    if spare == NULL:
        return False
    for digit in range(8):
        memset(places, 0, sizeof(places))
        for i in range(count):
            places[(items[i] >> (8 * digit)) & 255] += 1
        if count and places[(items[0] >> (8 * digit)) & 255] == count:
            continue
        place = 0
        for value in range(256):
            size = places[value]
            places[value] = place
            place += size
        for i in range(count):
            value = (items[i] >> (8 * digit)) & 255
            spare[places[value]] = items[i]
            places[value] += 1
        other = items
        items = spare
        spare = other
    for i in range(1, count):
        distinct = distinct and items[i] != items[i - 1]
    free(given)
    return distinct


cdef Py_ssize_t _renumber(int64_t *ids, Py_ssize_t count, IdTable table) noexcept nogil:
    """Replace ids by their numbers, packed into the first half; return how many are unknown."""
    cdef int32_t *numbers = <int32_t *>ids
    cdef int64_t last = 0
    cdef int32_t number = -1
    cdef Py_ssize_t i, unknown = 0
    for i in range(count):
        if i == 0 or ids[i] != last:
            last = ids[i]
            number = table.number(last)
        unknown += number < 0
        # Row i of the result lies at or before row i of the ids, which has been read.
        numbers[i] = number
    return unknown

# ---------------------------------------------------------------------------------------------
# The scanners

cdef enum:
    BLOCK = 262144
    PADDING = 128       # readable behind the bytes at hand, all zero
    PAUSED = 2          # the array goes on where another scan has begun
    NEARBY = 64         # a step that fails this close to their end is taken again with more


cdef enum Part:
    NO_PART, OTHER_PART, IMAGES, ANNOTATIONS, CATEGORIES, PREDICTIONS


cdef Part _part(Bytes key, Py_ssize_t length) noexcept nogil:
    if _is(key, length, b"images", 6):
        return IMAGES
    if _is(key, length, b"annotations", 11):
        return ANNOTATIONS
    if _is(key, length, b"categories", 10):
        return CATEGORIES
    return PREDICTIONS if _is(key, length, b"predictions", 11) else OTHER_PART


cdef class _Scan:
    """What both scanners share: the bytes at hand, and the steps through a document.

    A step that fails close to the end of the bytes at hand is taken again with more of them.

    Attributes
    ----------
    regular : bool
        Whether the file was read; else it is for the careful reader.
    count : int
        Records read.
    """

    cdef int descriptor
    cdef object reader
    cdef uint8_t *bytes
    cdef size_t capacity, have, at, start
    cdef uint64_t given_bytes, most_bytes
    cdef uint64_t start_offset  # where in the file the scan begins
    cdef uint64_t stop_offset   # where it pauses, if a record begins there; 0: nowhere
    cdef bint cancelled
    cdef bint ended
    cdef Cursor cursor
    cdef Shape shape
    cdef Row row
    cdef uint64_t hashed        # of the last key
    cdef Py_ssize_t rows, room, most_records
    cdef readonly bint regular

    def __cinit__(self, int descriptor, reader, most_bytes, most_records, nesting):
        self.descriptor = descriptor
        self.reader = reader
        self.most_bytes = most_bytes
        self.most_records = most_records
        self.cursor.deepest = min(nesting, 64)

    def __dealloc__(self):
        free(self.bytes)

    @property
    def count(self):
        return self.rows

    cdef Py_ssize_t read_into(self, uint8_t *to, size_t count) noexcept nogil:
        if self.descriptor >= 0:
            return jc_read(self.descriptor, to, count, self.start_offset + self.given_bytes)
        with gil:
            try:
                block = self.reader(count)
                memcpy(to, <const char *>(<bytes>block), min(<size_t>len(block), count))
                return len(block) if <size_t>len(block) <= count else -1
            except BaseException:
                return -1  # the careful reader meets it again and says what it is

    cdef bint more(self) noexcept nogil:
        """Read another block behind what is not yet done with; False on failure."""
        cdef Py_ssize_t got
        cdef size_t larger
        cdef uint8_t *grown
        if self.at:
            memmove(self.bytes, self.bytes + self.at, self.have - self.at)
            self.have -= self.at
            self.at = 0
        if self.have + BLOCK > self.capacity:
            larger = max(2 * self.capacity, <size_t>(2 * BLOCK))
            grown = <uint8_t *>realloc(self.bytes, larger + PADDING)
            if grown == NULL:
                return False
            self.bytes = grown
            self.capacity = larger
        got = self.read_into(self.bytes + self.have, BLOCK)
        if got < 0 or self.cancelled:
            return False
        self.ended = got == 0
        self.have += got
        self.given_bytes += got
        memset(self.bytes + self.have, 0, PADDING)
        self.cursor.end = self.bytes + self.have
        return self.given_bytes <= self.most_bytes

    cdef bint again(self) noexcept nogil:
        """After a failed step: read more if it may have failed for want of bytes."""
        if self.ended or self.cursor.failed + NEARBY < self.cursor.end:
            return False
        return self.more()

    cdef bint begin(self) noexcept nogil:
        """Read the first block and step over a byte order mark."""
        while self.have < 4 and not self.ended:
            if not self.more():
                return False
        if memcmp(self.bytes, b"\xef\xbb\xbf", 3) == 0:
            self.at = 3
        return True

    cdef uint8_t next(self) noexcept nogil:
        """Step to the next byte that is no space and return it; 0 at the end."""
        cdef Bytes p
        while True:
            p = _space(self.bytes + self.at)
            self.at = p - self.bytes
            if p < self.cursor.end or self.ended:
                return p[0]
            if not self.more():
                return 0

    cdef bint finish(self) noexcept nogil:
        """Tell whether nothing follows."""
        return self.next() == 0 and self.ended and self.at == self.have

    cdef bint skip(self) noexcept nogil:
        """Step over a value at level 2, which `start` and `at` enclose."""
        cdef Bytes p
        while True:
            self.cursor.keys = 0
            p = _skip_value(&self.cursor, self.bytes + self.at, 2)
            # A number may go on where the bytes at hand end.
            if p != NULL and (p < self.cursor.end or self.ended):
                self.start = self.at
                self.at = p - self.bytes
                return True
            if p != NULL:
                self.cursor.failed = p
            if not self.again():
                return False

    cdef Part key(self) noexcept nogil:
        """Step over a key of the outermost object, its colon and the space behind it."""
        cdef bint escapes
        cdef Bytes p, start
        cdef Part part
        while True:
            start = self.bytes + self.at
            p = start
            if p[0] == 34:
                p = _skip_string(&self.cursor, p, &escapes)
                if p != NULL:
                    self.hashed = _hash(start, p - start)
                    part = _part(start + 1, p - start - 2)
                    p = _space(p)
                    if p[0] == 58:
                        self.at = p + 1 - self.bytes
                        return NO_PART if escapes or self.next() == 0 else part
                    self.cursor.failed = p
            else:
                self.cursor.failed = p
            if not self.again():
                return NO_PART

    cdef inline uint64_t offset(self, Bytes p) noexcept nogil:
        """Return where in the file a byte at hand lies."""
        return self.start_offset + self.given_bytes - <uint64_t>(self.cursor.end - p)

    cdef int array(self, Kind kind, int depth) noexcept nogil:
        """Step through an array of records; `at` is behind its bracket. False declines."""
        cdef Bytes p
        cdef bint first = True
        self.shape.count = 0
        if self.cursor.deepest < depth + 2:
            return False
        while True:
            p = _space(self.bytes + self.at)
            if self.stop_offset and self.offset(p) == self.stop_offset and p < self.cursor.end:
                self.at = p - self.bytes
                return PAUSED
            if first and p[0] == 93:
                self.at = p + 1 - self.bytes
                return True
            self.cursor.keys = 0
            if kind == SKIPPED:
                p = _skip_value(&self.cursor, p, depth + 1)
            else:
                p = _read_record(&self.cursor, &self.shape, &self.row, kind, p, depth + 1)
            if p != NULL:
                p = _space(p)
                if p[0] == 44 or p[0] == 93:
                    if not self.commit(kind):
                        return False
                    first = False
                    self.at = p + 1 - self.bytes
                    if p[0] == 93:
                        return True
                    continue
                self.cursor.failed = p
            if not self.again():
                return False

    cdef bint commit(self, Kind kind) noexcept nogil:
        """Append `row` to the columns; False declines it."""
        return True


cdef inline bint _grow(void **data, Py_ssize_t room, Py_ssize_t size) noexcept nogil:
    cdef void *grown = realloc(data[0], room * size)
    if grown == NULL:
        return False
    data[0] = grown
    return True



cdef class ResultsScan(_Scan):
    """A results file being scanned.

    Parameters
    ----------
    descriptor : int
        Of the file, or -1.
    reader : callable or None
        Where there is no descriptor: gives the next bytes, at most as many as asked for.
    most_bytes, most_records, nesting : int
        The limits.
    """

    cdef int64_t *images
    cdef int64_t *categories
    cdef double *corners
    cdef double *areas
    cdef double *scores
    cdef ResultsScan rest
    cdef readonly bint paused

    def __dealloc__(self):
        free(self.images)
        free(self.categories)
        free(self.corners)
        free(self.areas)
        free(self.scores)

    def run(self):
        """Scan the file; returns whether it was regular, and has not `paused`."""
        cdef int state
        with nogil:
            state = self.document()
            self.end(state)
        return self.regular

    def run_rest(self, uint64_t start):
        """Scan the file from a place on where a record of the outermost array seems to begin.

        Whether one does only the scan of what comes before can tell: see `split_at`.
        """
        cdef int state
        self.start_offset = start
        with nogil:
            state = self.more() and self.array(RESULT, 1) and self.finish()
            self.end(state)
        return self.regular

    def split_at(self, uint64_t stop):
        """Let `run` pause where a record begins at this place."""
        self.stop_offset = stop

    def resume(self):
        """Go on after a pause, to the end; returns whether the file was regular."""
        cdef int state
        self.stop_offset = 0
        self.paused = False
        with nogil:
            state = self.array(RESULT, 1) and self.finish()
            self.end(state)
        return self.regular

    def append(self, ResultsScan rest):
        """Take what another scan read from the place on where this one has paused.

        Returns whether the file was regular.
        """
        self.rest = rest
        self.paused = False
        self.regular = rest.regular and self.rows + rest.rows <= self.most_records
        return self.regular

    @property
    def given(self):
        """How many bytes have been taken; a thread may ask while another scans."""
        return self.given_bytes

    def cancel(self):
        """Let a scan in another thread end soon, with nothing."""
        self.cancelled = True

    @property
    def count(self):
        return self.rows + (self.rest.rows if self.rest is not None else 0)

    cdef void end(self, int state) noexcept nogil:
        self.regular = state == True
        self.paused = state == PAUSED
        if not self.paused:
            free(self.bytes)
            self.bytes = NULL

    cdef int document(self) noexcept nogil:
        cdef uint8_t first
        cdef int state
        if not self.begin():
            return False
        first = self.next()
        self.at += 1
        if first == 91:
            state = self.array(RESULT, 1)
            return self.finish() if state == True else state
        self.stop_offset = 0
        return first == 123 and self.members() and self.finish()

    cdef bint members(self) noexcept nogil:
        """Read an object of one list of detections and nothing else."""
        cdef Part part
        self.next()
        part = self.key()
        if part != ANNOTATIONS and part != PREDICTIONS:
            return False
        if self.next() != 91:
            return False
        self.at += 1
        if not self.array(RESULT, 2) or self.next() != 125:
            return False
        self.at += 1
        return True

    cdef bint commit(self, Kind kind) noexcept nogil:
        cdef Py_ssize_t i = self.rows
        cdef Row *row = &self.row
        cdef double *corner
        cdef uint32_t due = (1 << <int>IMAGE_ID | 1 << <int>CATEGORY_ID | 1 << <int>BBOX
                             | 1 << <int>SCORE)
        if row.seen & due != due or i == self.most_records:
            return False
        if i == self.room and not self.enlarge():
            return False
        corner = self.corners + 4 * i
        corner[0] = row.box[0]
        corner[1] = row.box[1]
        corner[2] = row.box[2] + row.box[0]
        corner[3] = row.box[3] + row.box[1]
        self.areas[i] = row.box[2] * row.box[3]
        self.images[i] = row.image
        self.categories[i] = row.category
        self.scores[i] = row.score
        self.rows = i + 1
        return True

    cdef bint enlarge(self) noexcept nogil:
        cdef Py_ssize_t room = max(2 * self.room, <Py_ssize_t>8192)
        self.room = room
        return (
            _grow(<void **>&self.images, room, sizeof(int64_t))
            and _grow(<void **>&self.categories, room, sizeof(int64_t))
            and _grow(<void **>&self.corners, room, 4 * sizeof(double))
            and _grow(<void **>&self.areas, room, sizeof(double))
            and _grow(<void **>&self.scores, room, sizeof(double))
        )

    def columns(self, IdTable images, list categories):
        """Return the columns, with images numbered by a table and categories by a list.

        Returns
        -------
        tuple or None
            image, label, corners, box_area, score, and a dict of how many detections each
            unknown category has. Unknown categories are numbered behind the known ones, in the
            order of the dict. None where an image is unknown. The scan is empty afterwards.
        """
        cdef IdTable known = IdTable(categories)
        cdef dict counted = {}
        cdef Py_ssize_t count
        if not self.number_images(images):
            return None
        self.count_unknown(known, counted)
        if counted:
            known = IdTable(categories + list(counted))
        self.number_categories(known)
        if self.rest is not None and not self.join():
            raise MemoryError
        count = self.rows
        self.rows = self.room = 0
        return (
            _column(<void **>&self.images, count, 1, 4, b"i"),
            _column(<void **>&self.categories, count, 1, 4, b"i"),
            _column(<void **>&self.corners, count, 4, 8, b"d"),
            _column(<void **>&self.areas, count, 1, 8, b"d"),
            _column(<void **>&self.scores, count, 1, 8, b"d"),
            counted,
        )

    cdef bint number_images(self, IdTable images):
        """Number the images, unless one is unknown."""
        cdef Py_ssize_t unknown
        with nogil:
            unknown = _renumber(self.images, self.rows, images)
        return not unknown and (self.rest is None or self.rest.number_images(images))

    cdef void number_categories(self, IdTable known):
        with nogil:
            _renumber(self.categories, self.rows, known)
        if self.rest is not None:
            self.rest.number_categories(known)

    cdef count_unknown(self, IdTable known, dict counted):
        """Count the detections of each category that is not known."""
        cdef Py_ssize_t i, unknown = 0
        with nogil:
            for i in range(self.rows):
                unknown += known.number(self.categories[i]) < 0
        if unknown:
            for i in range(self.rows):
                if known.number(self.categories[i]) < 0:
                    counted[self.categories[i]] = counted.get(self.categories[i], 0) + 1
        if self.rest is not None:
            self.rest.count_unknown(known, counted)

    cdef bint join(self):
        """Move the rows of the rest behind these, a column at a time."""
        cdef ResultsScan rest = self.rest
        cdef Py_ssize_t a = self.rows, b = rest.rows
        cdef bint done
        with nogil:
            done = (
                _move(<void **>&self.images, a * 4, <void **>&rest.images, b * 4)
                and _move(<void **>&self.categories, a * 4, <void **>&rest.categories, b * 4)
                and _move(<void **>&self.corners, a * 32, <void **>&rest.corners, b * 32)
                and _move(<void **>&self.areas, a * 8, <void **>&rest.areas, b * 8)
                and _move(<void **>&self.scores, a * 8, <void **>&rest.scores, b * 8)
            )
        self.rows = a + b
        rest.rows = rest.room = 0
        self.rest = None
        return done


cdef bint _move(void **to, Py_ssize_t before, void **rest, Py_ssize_t count) noexcept nogil:
    """Append one buffer to another, and free it."""
    cdef void *grown = realloc(to[0], max(before + count, 1))
    if grown == NULL:
        return False
    to[0] = grown
    memcpy(<char *>grown + before, rest[0], count)
    free(rest[0])
    rest[0] = NULL
    return True


def find_record(const uint8_t[::1] block):
    """Return where, in the middle of a list of objects, one seems to begin; -1 if nowhere.

    It is the first brace behind a comma behind a closing brace. In a string or a nested list it
    would be none, which only shows when what comes before is scanned up to there.
    """
    cdef Py_ssize_t i
    cdef uint8_t c, last = 0
    for i in range(block.shape[0]):
        c = block[i]
        if c == 32 or c == 10 or c == 13 or c == 9:
            continue
        if c == 44 and last == 125:
            last = 1
        elif c == 123 and last == 1:
            return i
        else:
            last = 125 if c == 125 else 0
    return -1


CAN_SPLIT = bool(JC_AT_ONCE)
"""Whether two threads can read one file here, each from its own place."""


cdef struct Ordered:
    int64_t id
    Py_ssize_t row


cdef int _compare(const void *a, const void *b) noexcept nogil:
    cdef int64_t x = (<const Ordered *>a).id, y = (<const Ordered *>b).id
    return (x > y) - (x < y)


cdef struct Truth:
    int64_t *ids
    int64_t *images
    int64_t *categories
    double *corners
    double *box_areas
    double *areas
    uint8_t *crowd
    uint8_t *ignore
    uint8_t *group_of


cdef class TruthScan(_Scan):
    """An instances file being scanned.

    Parameters
    ----------
    descriptor : int
        Of the file, or -1.
    reader : callable or None
        Where there is no descriptor: gives the next bytes, at most as many as asked for.
    most_bytes, most_records, nesting : int
        The limits.

    Attributes
    ----------
    without_id, id_zero, without_area, without_crowd : int
        How many annotations are so.
    zero_row : int
        Where `id_zero` is not 0: the row of the annotation with the id 0.
    """

    cdef Truth truth
    cdef int64_t *image_ids
    cdef double *sizes
    cdef Py_ssize_t image_count, image_room
    cdef uint8_t *listed
    cdef size_t listed_length
    cdef uint64_t[64] top       # the keys of the outermost object
    cdef int top_count
    cdef bint found_images, found_annotations, found_categories
    cdef IdTable images
    cdef readonly Py_ssize_t without_id, id_zero, zero_row, without_area, without_crowd

    def __dealloc__(self):
        self.release_truth()
        free(self.image_ids)
        free(self.sizes)
        free(self.listed)

    cdef void release_truth(self) noexcept nogil:
        free(self.truth.ids)
        free(self.truth.images)
        free(self.truth.categories)
        free(self.truth.corners)
        free(self.truth.box_areas)
        free(self.truth.areas)
        free(self.truth.crowd)
        free(self.truth.ignore)
        free(self.truth.group_of)

    def run(self):
        """Scan the file; returns whether it was regular."""
        self.images = IdTable.__new__(IdTable)
        with nogil:
            self.regular = self.document() and self.sort_images() and self.check_ids()
            free(self.bytes)
            self.bytes = NULL
        return self.regular

    @property
    def categories(self):
        """The bytes of the list of categories, for the careful reader."""
        return (<char *>self.listed)[:self.listed_length]

    cdef bint document(self) noexcept nogil:
        cdef uint8_t c
        if not self.begin() or self.next() != 123:
            return False
        self.at += 1
        self.next()
        self.cursor.keys = 0
        while True:
            if not self.member():
                return False
            c = self.next()
            self.at += 1
            if c == 125:
                break
            if c != 44:
                return False
            self.next()
        return (
            self.found_images and self.found_annotations and self.found_categories
            and self.rows > 0 and self.finish()
        )

    cdef bint member(self) noexcept nogil:
        cdef Part part = self.key()
        cdef bint array
        if part == NO_PART or self.is_repeated():
            return False
        array = self.bytes[self.at] == 91
        if part == CATEGORIES:
            self.found_categories = True
            return array and self.skip() and self.keep_categories()
        if part == IMAGES or part == ANNOTATIONS:
            if not array:
                return False
            self.at += 1
            if part == IMAGES:
                self.found_images = True
                return self.array(IMAGE, 2)
            self.found_annotations = True
            return self.array(ANNOTATION, 2)
        if array:
            self.at += 1
            return self.array(SKIPPED, 2)
        return self.skip()

    cdef bint is_repeated(self) noexcept nogil:
        cdef int i
        for i in range(self.top_count):
            if self.top[i] == self.hashed:
                return True
        if self.top_count == 64:
            return True
        self.top[self.top_count] = self.hashed
        self.top_count += 1
        return False

    cdef bint keep_categories(self) noexcept nogil:
        """Copy the value just stepped over."""
        self.listed_length = self.at - self.start
        self.listed = <uint8_t *>malloc(self.listed_length + 1)
        if self.listed == NULL:
            return False
        memcpy(self.listed, self.bytes + self.start, self.listed_length)
        return True

    cdef bint commit(self, Kind kind) noexcept nogil:
        if kind == ANNOTATION:
            return self.commit_annotation()
        if kind == IMAGE:
            return self.commit_image()
        return True

    cdef bint commit_image(self) noexcept nogil:
        cdef Py_ssize_t i = self.image_count
        cdef uint32_t seen = self.row.seen
        if not seen & (1 << <int>ID) or i == self.most_records:
            return False
        if i == self.image_room:
            self.image_room = max(2 * i, <Py_ssize_t>1024)
            if not (_grow(<void **>&self.image_ids, self.image_room, sizeof(int64_t))
                    and _grow(<void **>&self.sizes, self.image_room, 2 * sizeof(double))):
                return False
        self.image_ids[i] = self.row.id
        self.sizes[2 * i] = self.row.width if seen & (1 << <int>WIDTH) else NAN
        self.sizes[2 * i + 1] = self.row.height if seen & (1 << <int>HEIGHT) else NAN
        # What is no size is nothing that can be used, but the careful reader says so.
        if self.sizes[2 * i] <= 0 or self.sizes[2 * i] >= 2.0**53:
            self.sizes[2 * i] = NAN
        if self.sizes[2 * i + 1] <= 0 or self.sizes[2 * i + 1] >= 2.0**53:
            self.sizes[2 * i + 1] = NAN
        self.image_count = i + 1
        return True

    cdef bint commit_annotation(self) noexcept nogil:
        cdef Py_ssize_t i = self.rows
        cdef Row *row = &self.row
        cdef Truth *to = &self.truth
        cdef double *corner
        cdef uint32_t seen = row.seen
        cdef uint32_t due = 1 << <int>IMAGE_ID | 1 << <int>CATEGORY_ID | 1 << <int>BBOX
        if seen & due != due or i == self.most_records:
            return False
        if i == self.room and not self.enlarge():
            return False
        corner = to.corners + 4 * i
        corner[0] = row.box[0]
        corner[1] = row.box[1]
        corner[2] = row.box[2] + row.box[0]
        corner[3] = row.box[3] + row.box[1]
        to.box_areas[i] = row.box[2] * row.box[3]
        to.areas[i] = to.box_areas[i]
        if seen & (1 << <int>AREA):
            if row.area < 0:
                return False
            to.areas[i] = row.area
        else:
            self.without_area += 1
        to.crowd[i] = row.crowd if seen & (1 << <int>ISCROWD) else 0
        self.without_crowd += not seen & (1 << <int>ISCROWD)
        to.ignore[i] = row.ignore if seen & (1 << <int>IGNORE) else 0
        to.group_of[i] = row.group_of if seen & (1 << <int>ISGROUPOF) else 0
        to.images[i] = row.image
        to.categories[i] = row.category
        if seen & (1 << <int>ID):
            to.ids[i - self.without_id] = row.id
            if row.id == 0:
                self.id_zero += 1
                self.zero_row = i
        else:
            self.without_id += 1
        self.rows = i + 1
        return True

    cdef bint enlarge(self) noexcept nogil:
        cdef Py_ssize_t room = max(2 * self.room, <Py_ssize_t>8192)
        cdef Truth *to = &self.truth
        self.room = room
        return (
            _grow(<void **>&to.ids, room, sizeof(int64_t))
            and _grow(<void **>&to.images, room, sizeof(int64_t))
            and _grow(<void **>&to.categories, room, sizeof(int64_t))
            and _grow(<void **>&to.corners, room, 4 * sizeof(double))
            and _grow(<void **>&to.box_areas, room, sizeof(double))
            and _grow(<void **>&to.areas, room, sizeof(double))
            and _grow(<void **>&to.crowd, room, 1)
            and _grow(<void **>&to.ignore, room, 1)
            and _grow(<void **>&to.group_of, room, 1)
        )

    cdef bint sort_images(self) noexcept nogil:
        """Bring the images into ascending order, number them, and the annotations by them."""
        cdef Py_ssize_t count = self.image_count, i
        cdef Ordered *order
        cdef double *sizes
        if not _ascends(self.image_ids, count):
            order = <Ordered *>malloc(max(count, 1) * sizeof(Ordered))
            sizes = <double *>malloc(max(count, 1) * 2 * sizeof(double))
            if order == NULL or sizes == NULL:
                free(order)
                free(sizes)
                return False
            for i in range(count):
                order[i].id = self.image_ids[i]
                order[i].row = i
            qsort(order, count, sizeof(Ordered), _compare)
            for i in range(count):
                self.image_ids[i] = order[i].id
                sizes[2 * i] = self.sizes[2 * order[i].row]
                sizes[2 * i + 1] = self.sizes[2 * order[i].row + 1]
            free(order)
            free(self.sizes)
            self.sizes = sizes
        if not self.images.build(self.image_ids, count) or self.images.repeats:
            return False
        return _renumber(self.truth.images, self.rows, self.images) == 0

    cdef bint check_ids(self) noexcept nogil:
        """Tell whether no two annotations have the same id; the ids are not needed after."""
        cdef Py_ssize_t count = self.rows - self.without_id
        cdef bint distinct = (
            _ascends(self.truth.ids, count) or _are_distinct(self.truth.ids, count)
        )
        free(self.truth.ids)
        self.truth.ids = NULL
        return distinct

    def columns(self, IdTable categories):
        """Return the columns, with categories numbered by this table.

        Returns
        -------
        tuple or None
            A list of the image ids, ascending; image_sizes, image, label, corners, box_area,
            area, crowd, ignore, group_of; None where a category is unknown. The scan is empty
            afterwards.
        """
        cdef Py_ssize_t count = self.rows, i
        cdef Truth *to = &self.truth
        cdef Py_ssize_t unknown
        with nogil:
            unknown = _renumber(to.categories, count, categories)
        if unknown:
            return None
        self.rows = self.room = 0
        return (
            [self.image_ids[i] for i in range(self.image_count)],
            _column(<void **>&self.sizes, self.image_count, 2, 8, b"d"),
            _column(<void **>&to.images, count, 1, 4, b"i"),
            _column(<void **>&to.categories, count, 1, 4, b"i"),
            _column(<void **>&to.corners, count, 4, 8, b"d"),
            _column(<void **>&to.box_areas, count, 1, 8, b"d"),
            _column(<void **>&to.areas, count, 1, 8, b"d"),
            _column(<void **>&to.crowd, count, 1, 1, b"?"),
            _column(<void **>&to.ignore, count, 1, 1, b"?"),
            _column(<void **>&to.group_of, count, 1, 1, b"?"),
        )


cdef bint _ascends(const int64_t *ids, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(1, count):
        if ids[i - 1] >= ids[i]:
            return False
    return True

# ---------------------------------------------------------------------------------------------
# For both readers


def nesting(const uint8_t[::1] data):
    """Return how many arrays and objects of JSON text lie inside each other at most.

    Brackets in strings do not count. Of what is no JSON, the answer is merely some number.
    """
    cdef Py_ssize_t i, length = data.shape[0]
    cdef Py_ssize_t depth = 0, deepest = 0
    cdef bint inside = False
    cdef uint8_t c
    with nogil:
        i = 0
        while i < length:
            c = data[i]
            if inside:
                if c == 92:
                    i += 1
                elif c == 34:
                    inside = False
            elif c == 34:
                inside = True
            elif c == 91 or c == 123:
                depth += 1
                deepest = max(deepest, depth)
            elif c == 93 or c == 125:
                depth -= 1
            i += 1
    return deepest


def survey_boxes(
    const double[:, ::1] corners, const int32_t[::1] image, const double[:, ::1] sizes, double margin
):
    """Count the boxes that reach beyond their image.

    Parameters
    ----------
    corners : (N, 4) float64
        x, y, x + w, y + h.
    image : (N,) int32
        Index into `sizes`.
    sizes : (I, 2) float64
        Width and height; NaN where unknown.
    margin : float
        By how many pixels a box must reach beyond it.

    Returns
    -------
    beyond : int
        How many reach beyond it.
    fitting : int
        How many of those would fit, were x, y, w, h in truth two corners.
    """
    cdef Py_ssize_t i, beyond = 0, fitting = 0
    cdef double width, height, x, y, right, bottom
    with nogil:
        for i in range(corners.shape[0]):
            width = sizes[image[i], 0] + margin
            height = sizes[image[i], 1] + margin
            x, y, right, bottom = corners[i, 0], corners[i, 1], corners[i, 2], corners[i, 3]
            if x <= -margin or y <= -margin or right >= width or bottom >= height:
                beyond += 1
                right -= x
                bottom -= y
                fitting += right >= x and bottom >= y and right < width and bottom < height
    return beyond, fitting


def survey_values(const double[::1] values):
    """Return the lowest and highest value, and how many are 0 and lie outside 0 to 1."""
    cdef Py_ssize_t i, zero = 0, outside = 0
    cdef double low = 0, high = 0, value
    with nogil:
        for i in range(values.shape[0]):
            value = values[i]
            if i == 0 or value < low:
                low = value
            if i == 0 or value > high:
                high = value
            zero += value == 0
            outside += value < 0 or value > 1
    return low, high, zero, outside


cdef inline double _overlap(const double *a, const double *b) noexcept nogil:
    """Return about the IoU of two boxes; good for a look, not for scores."""
    cdef double width = min(a[2], b[2]) - max(a[0], b[0])
    cdef double height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0
    return width * height / (
        (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - width * height
    )


def found_classes(
    const double[:, ::1] truths, const int32_t[::1] truth_image, const int32_t[::1] truth_label,
    const double[:, ::1] corners, const int32_t[::1] image, const int32_t[::1] label,
    const uint8_t[::1] wanted, double threshold
):
    """Return which class lies where each ground truth is, on some images.

    Parameters
    ----------
    truths : (G, 4) float64
        Corners of ground truths, few enough to be compared with every detection of their image.
    truth_image, truth_label : (G,) int32
    corners : (N, 4) float64
        Of detections.
    image, label : (N,) int32
    wanted : (I,) uint8
        1 for the images that the ground truths are on.
    threshold : float
        The IoU from which a detection lies where a ground truth is.

    Returns
    -------
    list of (int, int)
        Of each ground truth with such a detection: its class, and that of the detection with
        the largest IoU, or again its own where any of its own lies there.
    """
    cdef Py_ssize_t total = corners.shape[0], some = truths.shape[0], i, j
    cdef double overlap
    cdef list pairs = []
    cdef double *best = <double *>malloc(max(some, 1) * sizeof(double))
    cdef int32_t *found = <int32_t *>malloc(max(some, 1) * sizeof(int32_t))
    if best == NULL or found == NULL:
        free(best)
        free(found)
        raise MemoryError
    with nogil:
        for j in range(some):
            best[j] = 0
        for i in range(total):
            if not wanted[image[i]]:
                continue
            for j in range(some):
                if truth_image[j] != image[i]:
                    continue
                overlap = _overlap(&truths[j, 0], &corners[i, 0])
                if overlap >= threshold and label[i] == truth_label[j]:
                    overlap = 2
                if overlap >= threshold and overlap > best[j]:
                    best[j] = overlap
                    found[j] = label[i]
    for j in range(some):
        if best[j]:
            pairs.append((truth_label[j], found[j]))
    free(best)
    free(found)
    return pairs
