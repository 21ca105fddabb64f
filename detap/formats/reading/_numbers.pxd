"""Parse decimal numbers to the same doubles as Python's float(), without the GIL.

Used by the JSON and VOC scanners. Short numbers are one product or quotient of two exact doubles,
which is rounded once and hence correctly (W. D. Clinger, "How to read floating point numbers
accurately", PLDI 1990). `_numbers.scaled` converts up to 19 digits, and Python the others.
"""

from libc.math cimport isfinite
from libc.stdint cimport int64_t, uint64_t

from detap.formats.reading._bytes cimport Bytes, is_digit


# Of hash tables; random per process, so that no file can be crafted whose words all collide.
cdef uint64_t SEED


cdef extern from *:
    """
    #include <float.h>
    static const double detap_tens[23] = {
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
        1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

    /* In wider registers, a quotient of two doubles would be rounded twice. */
    #if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
    #define DETAP_ROUNDS_ONCE 0
    #else
    #define DETAP_ROUNDS_ONCE 1
    #endif

    #define DETAP_UNSURE -1.0
    #define DETAP_ERROR 8.8817841970012523e-16
    """
    const double[23] TENS "detap_tens"
    bint ROUNDS_ONCE "DETAP_ROUNDS_ONCE"
    double UNSURE "DETAP_UNSURE"    # never the value of a mantissa, which has no sign
    double ERROR "DETAP_ERROR"      # 2**-50


cdef double scaled(uint64_t mantissa, int64_t power) noexcept nogil
cdef double by_python(Bytes text, Py_ssize_t length) noexcept with gil


cdef inline double converted(uint64_t mantissa, int64_t power) noexcept nogil:
    """Return mantissa * 10**power, rounded to nearest, ties to even; or UNSURE."""
    if ROUNDS_ONCE and mantissa <= <uint64_t>1 << 53 and -22 <= power <= 22:
        if power < 0:
            return <double>mantissa / TENS[-power]
        return <double>mantissa * TENS[power]
    return scaled(mantissa, power)


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
    # JSON's -0 is an integer, which has no sign.
    if negative and not (strict and whole and at == behind and value[0] == 0):
        value[0] = -value[0]
    return True


cdef inline Bytes read_number(
    Bytes start, Bytes end, Bytes *failed, double *value
) noexcept nogil:
    """Read a finite JSON number; return the pointer after it, or NULL and set `failed`.

    A number that ends with the buffer may continue, and fails.
    """
    cdef Bytes stop
    if not read_decimal(start, end, &stop, value, True) or stop == end:
        failed[0] = stop
        return NULL
    if not isfinite(value[0]):
        failed[0] = start
        return NULL
    return stop


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
