"""Parse decimal numbers to the same doubles as Python's float(), without the GIL.

Used by the JSON and VOC scanners. Short numbers are one product or quotient of two exact doubles,
which is rounded once and hence correctly (W. D. Clinger, "How to read floating point numbers
accurately", PLDI 1990). `_numbers.scaled` converts up to 19 digits, and Python the others.
"""

from libc.math cimport isfinite
from libc.stdint cimport int64_t, uint64_t

from detap.tables._words cimport HIGH_BITS, load, trailing_zeros
from detap.formats.reading._bytes cimport Bytes, is_digit


# Of hash tables; random per process, so that no file can be crafted whose words all collide.
cdef uint64_t SEED


cdef extern from *:
    """
    #include <float.h>
    static const double detap_tens[23] = {
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
        1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    static const uint64_t detap_whole_tens[8] = {
        1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};

    /* In wider registers, a quotient of two doubles would be rounded twice. */
    #if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
    #define DETAP_ROUNDS_ONCE 0
    #else
    #define DETAP_ROUNDS_ONCE 1
    #endif

    #define DETAP_UNSURE -1.0
    #define DETAP_ZEROS 0x3030303030303030ULL
    """
    const double[23] TENS "detap_tens"
    const uint64_t[8] WHOLE_TENS "detap_whole_tens"
    bint ROUNDS_ONCE "DETAP_ROUNDS_ONCE"
    double UNSURE "DETAP_UNSURE"    # never the value of a mantissa, which has no sign
    uint64_t ZEROS "DETAP_ZEROS"


cdef double scaled(uint64_t mantissa, int64_t power) noexcept nogil
cdef double by_python(Bytes text, Py_ssize_t length) noexcept with gil


cdef inline double converted(uint64_t mantissa, int64_t power) noexcept nogil:
    """Return mantissa * 10**power, rounded to nearest, ties to even; or UNSURE."""
    if ROUNDS_ONCE and mantissa <= <uint64_t>1 << 53 and -22 <= power <= 22:
        if power < 0:
            return <double>mantissa / TENS[-power]
        return <double>mantissa * TENS[power]
    return scaled(mantissa, power)


# ---------------------------------------------------------------------------------------------
# A digit at a time


cdef inline Bytes _take_digits(Bytes at, Bytes end, uint64_t *mantissa) noexcept nogil:
    """Append the digits that follow to a mantissa, which wraps after 19 of them."""
    while at < end and is_digit(at[0]):
        mantissa[0] = mantissa[0] * 10 + (at[0] - 48)
        at += 1
    return at


cdef inline bint read_decimal(
    Bytes start, Bytes end, Bytes *stop, double *value, bint strict
) noexcept nogil:
    """Read a number of any length at `start`, and set `stop` after it.

    It is ``[+-]?(d+.?d*|.d+)([eE][+-]?d+)?``, or JSON's if `strict`. False where there is none:
    then `stop` is where that shows. `value` may be infinite.
    """
    cdef Bytes at = start, first, behind, run
    cdef uint64_t mantissa = 0
    cdef Py_ssize_t before, digits, places = 0
    cdef int64_t written = 0
    cdef bint negative, down, whole = True
    negative = at < end and at[0] == c'-'
    at += negative or (not strict and at < end and at[0] == c'+')
    first = at
    at = _take_digits(at, end, &mantissa)
    before = at - first
    if strict and (before == 0 or (before > 1 and first[0] == c'0')):
        stop[0] = first
        return False
    if at < end and at[0] == c'.':
        whole = False
        run = at + 1
        at = _take_digits(run, end, &mantissa)
        places = at - run
    behind = at
    if places == 0 and (before == 0 or (strict and not whole)):
        stop[0] = at
        return False
    if at < end and at[0] | 32 == c'e':
        at += 1
        down = at < end and at[0] == c'-'
        at += down or (at < end and at[0] == c'+')
        run = at
        while at < end and is_digit(at[0]):
            if written < <int64_t>1 << 50:
                written = written * 10 + (at[0] - 48)
            at += 1
        if at == run:
            stop[0] = at
            return False
        written = -written if down else written
    stop[0] = at
    digits = before + places
    while digits > 19 and first < behind and (first[0] == c'0' or first[0] == c'.'):
        digits -= first[0] == c'0'
        first += 1
    value[0] = converted(mantissa, written - places) if digits <= 19 else UNSURE
    if value[0] == UNSURE:
        value[0] = by_python(start, at - start)
    if negative:
        value[0] = -value[0]
    return True


# ---------------------------------------------------------------------------------------------
# Eight digits at a time, of JSON, if 16 bytes after the end are readable and no digits


cdef inline uint64_t _mark_others(uint64_t chunk) noexcept nogil:
    """Mark non-digit bytes, exact up to the first; `chunk` is XORed with zeros."""
    return ((chunk + <uint64_t>0x7676767676767676) | chunk) & HIGH_BITS


cdef inline uint64_t _eight(uint64_t chunk) noexcept nogil:
    """Return the number of eight digits, the first in the lowest byte."""
    cdef uint64_t pairs = <uint64_t>0x000000FF000000FF
    chunk = chunk * 10 + (chunk >> 8)
    return (
        (chunk & pairs) * (100 + (<uint64_t>1000000 << 32))
        + ((chunk >> 16) & pairs) * (1 + (<uint64_t>10000 << 32))
    ) >> 32


cdef Bytes read_long(Bytes start, Bytes end, Bytes *failed, double *value) noexcept nogil


cdef inline Bytes read_number(
    Bytes start, Bytes end, Bytes *failed, double *value
) noexcept nogil:
    """Read a finite number; fast for up to 7 digits before and 18 after the point.

    Returns the pointer after it, or NULL and sets `failed`. One that ends where the bytes do may
    go on: it fails where it is not of the quick kind.
    """
    cdef Bytes p = start
    cdef bint negative = p[0] == c'-'
    cdef uint64_t chunk, others, mantissa
    cdef int bits, digits, places = 0
    cdef double result
    p += negative
    chunk = load(p) ^ ZEROS
    others = _mark_others(chunk)
    if others == 0 or others & 0x80:
        return read_long(start, end, failed, value)
    bits = trailing_zeros(others) - 7
    digits = bits >> 3
    if digits > 1 and p[0] == c'0':
        failed[0] = p
        return NULL
    mantissa = _eight(chunk << (64 - bits))
    p += digits
    if p[0] != c'.':
        if p[0] | 32 == c'e':
            return read_long(start, end, failed, value)
        result = <double>mantissa
        value[0] = -result if negative and mantissa else result
        return p
    p += 1
    chunk = load(p) ^ ZEROS
    others = _mark_others(chunk)
    if others & 0x80:
        failed[0] = p
        return NULL
    while others == 0:
        mantissa = mantissa * 100000000 + _eight(chunk)
        places += 8
        p += 8
        if places > 16:
            return read_long(start, end, failed, value)
        chunk = load(p) ^ ZEROS
        others = _mark_others(chunk)
    bits = trailing_zeros(others) - 7
    if bits:
        mantissa = mantissa * WHOLE_TENS[bits >> 3] + _eight(chunk << (64 - bits))
        places += bits >> 3
        p += bits >> 3
    if digits + places > 19 or p[0] | 32 == c'e':
        return read_long(start, end, failed, value)
    result = converted(mantissa, -places)
    if result == UNSURE:
        return read_long(start, end, failed, value)
    value[0] = -result if negative else result
    return p


cdef inline Bytes read_integer(Bytes p, Bytes *failed, int64_t *value) noexcept nogil:
    """Read an integer below 2**63; return the pointer after it, or NULL."""
    cdef Bytes first
    cdef bint negative = p[0] == c'-'
    cdef uint64_t result = 0
    p += negative
    first = p
    if not is_digit(p[0]) or (p[0] == c'0' and is_digit(p[1])):
        failed[0] = p
        return NULL
    p = _take_digits(p, p + 20, &result)
    # Nineteen digits fit 64 bits without a sign.
    if p - first > 19 or result >> 63 or p[0] == c'.' or p[0] | 32 == c'e':
        failed[0] = p
        return NULL
    value[0] = -<int64_t>result if negative else <int64_t>result
    return p
