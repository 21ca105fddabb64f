"""Byte tests: words, digits, UTF-8 characters.

Inline functions only.
"""

from libc.stdint cimport uint8_t
from libc.string cimport memcmp


ctypedef const uint8_t *Bytes


cdef inline bint is_word(
    const void *text, size_t length, const char *word, size_t expected
) noexcept nogil:
    """Return True if the bytes are a word of `expected` bytes."""
    return length == expected and memcmp(text, word, expected) == 0


cdef inline bint is_digit(uint8_t c) noexcept nogil:
    return <uint8_t>(c - 48) <= 9


cdef inline Bytes skip_character(Bytes at, Bytes end) noexcept nogil:
    """Return the pointer after a multi-byte UTF-8 character, or NULL if invalid."""
    cdef uint8_t first = at[0]
    cdef uint8_t low = 0x80, high = 0xBF
    cdef int more, i
    # No overlong form, no surrogate, nothing beyond U+10FFFF.
    if 0xC2 <= first <= 0xDF:
        more = 1
    elif 0xE0 <= first <= 0xEF:
        more = 2
        low = 0xA0 if first == 0xE0 else 0x80
        high = 0x9F if first == 0xED else 0xBF
    elif 0xF0 <= first <= 0xF4:
        more = 3
        low = 0x90 if first == 0xF0 else 0x80
        high = 0x8F if first == 0xF4 else 0xBF
    else:
        return NULL
    if end - at <= more or not low <= at[1] <= high:
        return NULL
    for i in range(2, more + 1):
        if not 0x80 <= at[i] <= 0xBF:
            return NULL
    return at + more + 1
