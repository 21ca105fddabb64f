"""JSON grammar: skip values and check their syntax.

Every function takes a pointer into the buffer and returns the pointer after the skipped text, or
NULL if that is invalid or irregular JSON, which requires the fallback reader.
Inline functions only.
"""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcmp

from detap.tables._words cimport leading_zeros
from detap.formats.reading._bytes cimport Bytes, is_digit, skip_character
from detap.formats.reading._names cimport word_hash
from detap.formats.reading._numbers cimport read_number


cdef extern from *:
    """
    /* Return which of 64 bytes are between two characters, a bit for each; none without SSE2. */
    #if defined(__SSE2__) || defined(_M_X64)
    #include <emmintrin.h>
    static CYTHON_INLINE uint64_t detap_between(const uint8_t *p, char low, char high) {
        uint64_t bits = 0;
        for (int i = 0; i < 64; i += 16) {
            const __m128i bytes = _mm_loadu_si128((const __m128i *)(p + i));
            const __m128i above = _mm_sub_epi8(bytes, _mm_set1_epi8(low));
            const __m128i least = _mm_min_epu8(above, _mm_set1_epi8(high - low));
            bits |= (uint64_t)_mm_movemask_epi8(_mm_cmpeq_epi8(above, least)) << i;
        }
        return bits;
    }
    #else
    #define detap_between(p, low, high) 0
    #endif
    """
    uint64_t _between "detap_between"(Bytes, char low, char high) noexcept nogil


cdef struct Cursor:
    Bytes end           # after the last buffered byte; zeros follow
    Bytes failed        # where a function that returned NULL stopped
    int deepest         # maximum nesting depth
    int keys            # number of `hashes` in use
    uint64_t[512] hashes


cdef inline Bytes fail(Cursor *cursor, Bytes p) noexcept nogil:
    cursor.failed = p
    return NULL


cdef inline Bytes skip_space(Bytes p) noexcept nogil:
    while p[0] == c' ' or p[0] == c'\n' or p[0] == c'\r' or p[0] == c'\t':
        p += 1
    return p


cdef inline bint _is_hex(uint8_t c) noexcept nogil:
    return is_digit(c) or c'a' <= c | 32 <= c'f'


cdef inline Bytes _skip_escape(Cursor *cursor, Bytes p) noexcept nogil:
    cdef uint8_t c = p[1]
    if c == c'u':
        if _is_hex(p[2]) and _is_hex(p[3]) and _is_hex(p[4]) and _is_hex(p[5]):
            return p + 6
        return fail(cursor, p)
    if c in (c'"', c'\\', c'/', c'b', c'f', c'n', c'r', c't'):
        return p + 2
    return fail(cursor, p)


cdef inline Bytes skip_string(Cursor *cursor, Bytes p, bint *escapes) noexcept nogil:
    """Skip a string; `p` is at its quote. Sets `escapes` if it has any."""
    cdef Bytes behind
    escapes[0] = False
    p += 1
    while p[0] != c'"':
        if p[0] == c'\\':
            escapes[0] = True
            p = _skip_escape(cursor, p)
        elif p[0] >= 0x80:
            behind = skip_character(p, cursor.end)
            p = behind if behind != NULL else fail(cursor, p)
        else:
            p = p + 1 if p[0] >= c' ' else fail(cursor, p)
        if p == NULL:
            return NULL
    return p + 1


cdef inline Bytes skip_key(Cursor *cursor, Bytes p, uint64_t *hashed) noexcept nogil:
    """Skip and hash a key. Fails for escapes, since the key may equal another without."""
    cdef Bytes behind
    cdef bint escapes
    if p[0] != c'"':
        return fail(cursor, p)
    behind = skip_string(cursor, p, &escapes)
    if behind == NULL:
        return NULL
    hashed[0] = word_hash(<const char *>p, behind - p)
    return behind if not escapes else fail(cursor, p)


cdef inline Bytes skip_colon(Cursor *cursor, Bytes p) noexcept nogil:
    """Skip a colon and white space around it."""
    p = skip_space(p)
    return skip_space(p + 1) if p[0] == c':' else fail(cursor, p)


cdef inline Bytes _skip_plain_numbers(Bytes p) noexcept nogil:
    """Skip numbers of an array, 64 bytes at a time, up to the comma or bracket after the last.

    They have no sign or exponent, and between two are a comma and spaces. Others, and a number that
    the bytes end with, are left. At least 64 bytes after the end must be readable.
    """
    cdef Bytes behind = p
    cdef uint64_t digits, points, commas, spaces, first, odd, stops, ends
    while True:
        digits, points = _between(p, c'0', c'9'), _between(p, c'.', c'.')
        commas, spaces = _between(p, c',', c','), _between(p, c' ', c' ')
        first = (commas | spaces) << 1 | 1      # a number or space is expected
        odd = first & ~(digits | spaces) | spaces & ~first
        odd |= (first & _between(p, c'0', c'0')) << 1 & digits
        odd |= (points | commas) & ~(digits << 1) | points << 1 & ~digits
        odd |= digits + (points << 1 & digits) & points     # digits after a point carry
        stops = odd | ~(digits | points | commas | spaces)
        ends = (commas | _between(p, c']', c']')) & ~odd & (stops ^ (stops - 1))
        if ends == 0:
            return behind
        behind = p + 63 - leading_zeros(ends)
        if stops:
            return behind
        p = behind + 1


cdef inline Bytes skip_word(Cursor *cursor, Bytes p, const char *word, int length) noexcept nogil:
    if memcmp(p, word, length) != 0:
        return fail(cursor, p)
    return p + length


cdef inline Bytes skip_value(Cursor *cursor, Bytes p, int depth) noexcept nogil:
    """Skip a value at nesting level `depth` and check its syntax."""
    cdef bint escapes
    cdef double number
    cdef uint8_t c = p[0]
    if c == c'"':
        return skip_string(cursor, p, &escapes)
    if c == c'[':
        return _skip_array(cursor, p, depth)
    if c == c'{':
        return _skip_object(cursor, p, depth)
    if c == c't':
        return skip_word(cursor, p, b"true", 4)
    if c == c'f':
        return skip_word(cursor, p, b"false", 5)
    if c == c'n':
        return skip_word(cursor, p, b"null", 4)
    return read_number(p, cursor.end, &cursor.failed, &number)


cdef inline Bytes _skip_array(Cursor *cursor, Bytes p, int depth) noexcept nogil:
    cdef Bytes behind
    if depth > cursor.deepest:
        return fail(cursor, p)
    p = skip_space(p + 1)
    if p[0] == c']':
        return p + 1
    while True:
        behind = _skip_plain_numbers(p)
        p = behind if behind != p else skip_value(cursor, p, depth + 1)
        if p == NULL:
            return NULL
        p = skip_space(p)
        if p[0] == c']':
            return p + 1
        if p[0] != c',':
            return fail(cursor, p)
        p = skip_space(p + 1)


cdef inline Bytes _skip_object(Cursor *cursor, Bytes p, int depth) noexcept nogil:
    cdef int first = cursor.keys, i
    cdef Bytes key
    cdef uint64_t hashed
    if depth > cursor.deepest:
        return fail(cursor, p)
    p = skip_space(p + 1)
    if p[0] == c'}':
        return p + 1
    while True:
        key = p
        p = skip_key(cursor, p, &hashed)
        if p == NULL:
            return NULL
        for i in range(first, cursor.keys):
            if cursor.hashes[i] == hashed:
                return fail(cursor, key)
        if cursor.keys == 512:
            return fail(cursor, key)
        cursor.hashes[cursor.keys] = hashed
        cursor.keys += 1
        p = skip_colon(cursor, p)
        if p == NULL:
            return NULL
        p = skip_value(cursor, p, depth + 1)
        if p == NULL:
            return NULL
        p = skip_space(p)
        if p[0] == c'}':
            cursor.keys = first
            return p + 1
        if p[0] != c',':
            return fail(cursor, p)
        p = skip_space(p + 1)
