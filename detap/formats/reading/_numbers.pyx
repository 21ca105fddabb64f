"""Exact conversion of long decimal numbers; `_numbers.pxd` has the short ones.

D. Lemire, "Number parsing at a gigabyte per second", Software: Practice and Experience 51 (8),
2021: the product of up to 19 digits with the leading 128 bits of a power of ten determines the
rounding in all but a few cases. Python converts those, and powers beyond the range of float32.
"""

from os import urandom

from cpython.bytes cimport PyBytes_FromStringAndSize

from libc.math cimport INFINITY, isfinite
from libc.stdint cimport int64_t, uint64_t

from detap.tables._words cimport ALL_BITS, leading_zeros, multiply
from detap.formats.reading._bytes cimport Bytes


cdef extern from *:
    """
    static CYTHON_INLINE double detap_double(uint64_t bits) {
        double x;
        memcpy(&x, &bits, 8);
        return x;
    }
    """
    double _double "detap_double"(uint64_t) noexcept nogil
    uint64_t MOST_DIGITS "1000000000000000000ULL"   # from here on, a mantissa has 19 digits


SEED = int.from_bytes(urandom(8), "little")


cdef enum:
    LOWEST_POWER = -70      # the least single, 1.4e-45, with 19 digits has -63
    HIGHEST_POWER = 55
    POWERS = 126

cdef uint64_t[POWERS][2] FIVES
"""The leading 128 bits of 5**q for each power q, high half first."""


cdef void _make_powers():
    """Compute the powers of five from Python's integers.

    Positive powers are truncated; up to 5**55 nothing is lost. Negative ones are reciprocals,
    rounded up where the product with a mantissa of 64 bits can be exact (q >= -27), and truncated
    beyond, as the paper has it.
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
        _keep(q, (1 << (bits + 127)) // power + (q >= -27))


cdef void _keep(int q, object value):
    FIVES[q - LOWEST_POWER][0] = <uint64_t>(value >> 64)
    FIVES[q - LOWEST_POWER][1] = <uint64_t>(value & 0xFFFFFFFFFFFFFFFF)


_make_powers()


cdef double scaled(uint64_t mantissa, int64_t power) noexcept nogil:
    """Return mantissa * 10**power, rounded to nearest, ties to even; or UNSURE.

    For these powers, every product is a normal double.
    """
    cdef uint64_t high, low, second_high, significand
    cdef int shift, upper
    cdef int64_t exponent
    if mantissa == 0:
        return 0.0
    if power < LOWEST_POWER or power > HIGHEST_POWER:
        return UNSURE
    shift = leading_zeros(mantissa)
    mantissa <<= shift
    low = multiply(mantissa, FIVES[power - LOWEST_POWER][0], &high)
    if (high & 0x1FF) == 0x1FF:
        multiply(mantissa, FIVES[power - LOWEST_POWER][1], &second_high)
        low += second_high
        if second_high > low:
            high += 1
        if low == ALL_BITS and power < -27:
            return UNSURE
    upper = <int>(high >> 63)
    significand = high >> (upper + 9)
    # floor(power * log2(10)), by a multiplication that is exact over this range.
    exponent = ((217706 * power) >> 16) + 63 + upper - shift + 1023
    if low <= 1 and -4 <= power <= 23 and (significand & 3) == 1:
        if significand << (upper + 9) == high:
            significand &= ~(<uint64_t>1)
    significand = (significand + (significand & 1)) >> 1
    if significand >= (<uint64_t>2 << 52):
        significand = <uint64_t>1 << 52
        exponent += 1
    return _double((significand & ~(<uint64_t>1 << 52)) | <uint64_t>exponent << 52)


cdef double shortened(Bytes digits, Bytes end, int64_t power) noexcept nogil:
    """Return the value of more than 19 digits, one of which may be a point; or UNSURE.

    `power` is that of the last digit. The first 19 significant ones make the mantissa. Where the
    next larger mantissa comes to the same double, those that were cut off do not matter.
    """
    cdef uint64_t mantissa = 0
    cdef bint cut = False
    cdef double value
    while digits < end:
        if digits[0] == c'.':
            pass
        elif mantissa < MOST_DIGITS:
            mantissa = mantissa * 10 + (digits[0] - 48)
        else:
            power += 1
            cut |= digits[0] != c'0'
        digits += 1
    value = converted(mantissa, power)
    return value if not cut or value == converted(mantissa + 1, power) else UNSURE


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


def parse(bytes text not None) -> float | None:
    """Return the number in `text`, possibly infinite, or None if it is not a number."""
    cdef Bytes start = text, stop
    cdef double value
    cdef bint valid = read_decimal(start, start + len(text), &stop, &value, False)
    return value if valid and stop == start + len(text) else None


def parse_json(bytes text not None) -> float | None:
    """Return the JSON number in `text`, or None if it is not a finite number."""
    cdef Bytes failed, stop
    cdef double value
    padded = text + b"," + bytes(16)
    cdef Bytes start = padded
    stop = read_number(start, start + len(text) + 1, &failed, &value)
    return value if stop != NULL and stop == start + len(text) else None
