"""Exact conversion of long decimal numbers; `_numbers.pxd` has the short ones."""

from os import urandom

from cpython.bytes cimport PyBytes_FromStringAndSize

from libc.math cimport INFINITY, fma, isfinite
from libc.stdint cimport int64_t, uint64_t

from detap.formats.reading._bytes cimport Bytes


SEED = int.from_bytes(urandom(8), "little")


cdef double scaled(uint64_t mantissa, int64_t power) noexcept nogil:
    """Return mantissa * 10**power, rounded to nearest, ties to even; or UNSURE.

    The mantissa has up to 19 digits. The quotient is the sum of two doubles, the second of which has
    a relative error below 2**-51: where the sum rounds alike with more and with less than that, so
    does the true value.
    """
    cdef double high = <double>mantissa
    cdef double ten, quotient, rest, low, up
    cdef int64_t places = -power
    if not ROUNDS_ONCE or not 0 <= places <= 22:
        return UNSURE
    ten = TENS[places]
    quotient = high / ten
    rest = (fma(-quotient, ten, high) + <double><int64_t>(mantissa - <uint64_t>high)) / ten
    low, up = quotient + rest * (1 - 2.0**-50), quotient + rest * (1 + 2.0**-50)
    return low if low == up else UNSURE


cdef double by_python(Bytes text, Py_ssize_t length) noexcept with gil:
    """Return Python's value of a number without sign; infinite if it overflows."""
    try:
        return abs(float(PyBytes_FromStringAndSize(<const char *>text, length)))
    except BaseException:
        return INFINITY


cdef Bytes read_long(Bytes start, Bytes end, Bytes *failed, double *value) noexcept nogil:
    """Read a finite JSON number of any length; return the pointer after it, or NULL.

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
