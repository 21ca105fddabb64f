"""JSON grammar: skip values and check their syntax.

Every function takes a pointer into the buffer and returns the pointer after the skipped text, or
NULL if that is invalid or irregular JSON, which requires the fallback reader.
Inline functions only.
"""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcmp

from detap.tables._words cimport HIGH_BITS, LOW_BITS, MIX, load, multiply, trailing_zeros
from detap.formats.reading._bytes cimport Bytes, is_digit, skip_character


cdef extern from *:
    """
    /* Constants with a value in each byte. */
    #define DETAP_SPACES 0x2020202020202020ULL
    #define DETAP_QUOTES 0x2222222222222222ULL
    #define DETAP_SLASHES 0x5C5C5C5C5C5C5C5CULL

    #if defined(__SSE2__) || defined(_M_X64)
    #include <emmintrin.h>
    static CYTHON_INLINE uint64_t detap_mask(__m128i a, __m128i b, __m128i c, __m128i d) {
        return (uint64_t)(uint32_t)_mm_movemask_epi8(a)
            | (uint64_t)(uint32_t)_mm_movemask_epi8(b) << 16
            | (uint64_t)(uint32_t)_mm_movemask_epi8(c) << 32
            | (uint64_t)(uint32_t)_mm_movemask_epi8(d) << 48;
    }
    #define DETAP_IS(c) detap_mask( \\
        _mm_cmpeq_epi8(x0, _mm_set1_epi8(c)), _mm_cmpeq_epi8(x1, _mm_set1_epi8(c)), \\
        _mm_cmpeq_epi8(x2, _mm_set1_epi8(c)), _mm_cmpeq_epi8(x3, _mm_set1_epi8(c)))
    #define DETAP_DIGITS(x) _mm_cmpeq_epi8( \\
        _mm_min_epu8(_mm_sub_epi8(x, _mm_set1_epi8('0')), _mm_set1_epi8(9)), \\
        _mm_sub_epi8(x, _mm_set1_epi8('0')))

    /* Skip an array of plain numbers, 64 bytes at a time. p is at its first number. Returns the
       closing bracket and sets *done, or else the pointer after the last comma up to which all is
       well. Each mask has a bit per byte; the carries hand the last bit to the next 64 bytes.
       If no bit differs from the grammar, the bytes are numbers without exponents, separated
       by a comma and at most one space. At least 64 bytes behind the end must be readable, and
       hold a byte that is none of these. */
    static const uint8_t *detap_skip_numbers(const uint8_t *p, int *done) {
        const uint8_t *resume = p;
        uint64_t was_break = 1, was_comma = 0, was_minus = 0, was_point = 0;
        uint64_t was_digit = 0, was_zero = 0, fraction = 0;
        *done = 0;
        for (;; p += 64) {
            const __m128i x0 = _mm_loadu_si128((const __m128i *)p);
            const __m128i x1 = _mm_loadu_si128((const __m128i *)(p + 16));
            const __m128i x2 = _mm_loadu_si128((const __m128i *)(p + 32));
            const __m128i x3 = _mm_loadu_si128((const __m128i *)(p + 48));
            const uint64_t digit = detap_mask(
                DETAP_DIGITS(x0), DETAP_DIGITS(x1), DETAP_DIGITS(x2), DETAP_DIGITS(x3));
            const uint64_t point = DETAP_IS('.'), comma = DETAP_IS(','), space = DETAP_IS(' ');
            const uint64_t minus = DETAP_IS('-'), zero = DETAP_IS('0');
            const uint64_t between = comma | space;
            const uint64_t other = ~(digit | point | between | minus);
            const int length = other ? detap_ctz(other) : 64;
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
                resume = p + 64 - detap_clz(between & valid);
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
    static const uint8_t *detap_skip_numbers(const uint8_t *p, int *done) {
        *done = 0;
        return p;
    }
    #endif
    """
    uint64_t SPACES "DETAP_SPACES"
    uint64_t QUOTES "DETAP_QUOTES", SLASHES "DETAP_SLASHES"
    Bytes _skip_numbers "detap_skip_numbers"(Bytes, int *done) noexcept nogil


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


cdef inline Bytes _skip_wide(Cursor *cursor, Bytes p) noexcept nogil:
    """Skip one multi-byte character."""
    cdef Bytes behind = skip_character(p, cursor.end)
    return behind if behind != NULL else fail(cursor, p)


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
    cdef uint64_t x, quote, slash, special
    escapes[0] = False
    p += 1
    while True:
        x = load(p)
        quote = x ^ QUOTES
        slash = x ^ SLASHES
        # Zero bytes of `quote` and `slash`, bytes below a space, bytes beyond ASCII.
        special = ((quote - LOW_BITS) & ~quote) | ((slash - LOW_BITS) & ~slash)
        special |= ((x - SPACES) & ~x) | x
        special &= HIGH_BITS
        if special == 0:
            p += 8
            continue
        p += trailing_zeros(special) >> 3
        if p[0] == c'"':
            return p + 1
        if p[0] == c'\\':
            escapes[0] = True
            p = _skip_escape(cursor, p)
        elif p[0] >= 0x80:
            p = _skip_wide(cursor, p)
        else:
            return fail(cursor, p)
        if p == NULL:
            return NULL


cdef inline uint64_t hash_of(Bytes p, Py_ssize_t length) noexcept nogil:
    """Return a hash of some bytes; eight bytes after them must be readable."""
    cdef uint64_t result = <uint64_t>length, high
    cdef Py_ssize_t i = 0
    while i + 8 <= length:
        result = multiply(result ^ load(p + i), MIX, &high) ^ high
        i += 8
    if i < length:
        result ^= load(p + i) << (64 - 8 * (length - i))
    result = multiply(result, MIX, &high)
    return result ^ high


cdef inline Bytes skip_key(Cursor *cursor, Bytes p, uint64_t *hashed) noexcept nogil:
    """Skip and hash a key. Fails for escapes, since the key may equal another without."""
    cdef Bytes behind
    cdef bint escapes
    if p[0] != c'"':
        return fail(cursor, p)
    behind = skip_string(cursor, p, &escapes)
    if behind == NULL:
        return NULL
    hashed[0] = hash_of(p, behind - p)
    return behind if not escapes else fail(cursor, p)


cdef inline Bytes skip_colon(Cursor *cursor, Bytes p) noexcept nogil:
    """Skip a colon and white space around it."""
    p = skip_space(p)
    return skip_space(p + 1) if p[0] == c':' else fail(cursor, p)


cdef inline Bytes _skip_number(Cursor *cursor, Bytes p) noexcept nogil:
    p += p[0] == c'-'
    if not is_digit(p[0]) or (p[0] == c'0' and is_digit(p[1])):
        return fail(cursor, p)
    while is_digit(p[0]):
        p += 1
    if p[0] == c'.':
        p += 1
        if not is_digit(p[0]):
            return fail(cursor, p)
        while is_digit(p[0]):
            p += 1
    if p[0] | 32 == c'e':
        p += 1
        p += p[0] == c'-' or p[0] == c'+'
        if not is_digit(p[0]):
            return fail(cursor, p)
        while is_digit(p[0]):
            p += 1
    return p


cdef inline Bytes skip_word(Cursor *cursor, Bytes p, const char *word, int length) noexcept nogil:
    if memcmp(p, word, length) != 0:
        return fail(cursor, p)
    return p + length


cdef inline Bytes skip_value(Cursor *cursor, Bytes p, int depth) noexcept nogil:
    """Skip a value at nesting level `depth` and check its syntax."""
    cdef bint escapes
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
    return _skip_number(cursor, p)


cdef inline Bytes _skip_array(Cursor *cursor, Bytes p, int depth) noexcept nogil:
    cdef int done
    if depth > cursor.deepest:
        return fail(cursor, p)
    p = skip_space(p + 1)
    if p[0] == c']':
        return p + 1
    while True:
        if is_digit(p[0]) or p[0] == c'-':
            p = _skip_numbers(p, &done)
            if done:
                return p + 1
            p = skip_space(p)
        p = skip_value(cursor, p, depth + 1)
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
