"""Decimal numbers from bytes to the same doubles as Python's float(), without the GIL.

Only functions to be inlined: nothing of this module exists when the program runs.
"""

from libc.stdint cimport uint64_t


cdef extern from *:
    """
    /* Each is a double exactly, so that one product or quotient with an exact mantissa is rounded
       once, and hence correctly (Clinger 1990). */
    static const double detap_power_of_ten[23] = {
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
        1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    """
    const double detap_power_of_ten[23]


cdef enum:
    NUMBER_NONE = 0
    NUMBER_EXACT = 1
    NUMBER_LONG = 2


cdef inline int scan_decimal(
    const char *at, const char *end, const char **stop, double *value
) noexcept nogil:
    """Read ``[+-]?(d+.?d*|.d+)([eE][+-]?d+)?`` at `at`, and leave `stop` behind it.

    NUMBER_EXACT: `value` is the number. NUMBER_LONG: it is a number, but has more digits or a
    larger exponent than can be converted here; ask PyOS_string_to_double. NUMBER_NONE: none here.
    """
    cdef uint64_t mantissa = 0
    cdef int digits = 0, significant = 0, exponent = 0, written = 0, sign = 1
    cdef bint negative = False
    cdef unsigned char digit
    if at < end and (at[0] == c'-' or at[0] == c'+'):
        negative = at[0] == c'-'
        at += 1
    while at < end:
        digit = <unsigned char>at[0] - 48
        if digit > 9:
            break
        digits = 1
        if significant < 19:
            mantissa = mantissa * 10 + digit
            significant += mantissa != 0
        else:
            significant = 20
        at += 1
    if at < end and at[0] == c'.':
        at += 1
        while at < end:
            digit = <unsigned char>at[0] - 48
            if digit > 9:
                break
            digits = 1
            if significant < 19:
                mantissa = mantissa * 10 + digit
                significant += mantissa != 0
                exponent -= 1
                # A million zeros behind the point must not wrap it.
                if exponent < -100000:
                    significant = 20
            else:
                significant = 20
            at += 1
    if not digits:
        return NUMBER_NONE
    if at < end and (at[0] == c'e' or at[0] == c'E'):
        at += 1
        if at < end and (at[0] == c'-' or at[0] == c'+'):
            sign = -1 if at[0] == c'-' else 1
            at += 1
        digits = 0
        while at < end:
            digit = <unsigned char>at[0] - 48
            if digit > 9:
                break
            digits = 1
            if written < 100000:
                written = written * 10 + digit
            else:
                significant = 20
            at += 1
        if not digits:
            return NUMBER_NONE
        exponent += sign * written
    stop[0] = at
    if mantissa == 0 and significant < 20:
        value[0] = -0.0 if negative else 0.0
        return NUMBER_EXACT
    if significant >= 20 or mantissa > (<uint64_t>1 << 53) or exponent < -22 or exponent > 22:
        return NUMBER_LONG
    value[0] = <double>mantissa
    if exponent < 0:
        value[0] /= detap_power_of_ten[-exponent]
    else:
        value[0] *= detap_power_of_ten[exponent]
    if negative:
        value[0] = -value[0]
    return NUMBER_EXACT
