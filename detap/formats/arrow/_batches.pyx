"""Batches of a table's columns on their way to whole ones, each in one pass and without the GIL."""

from libc.stdint cimport (
    int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t)

ctypedef fused Real:
    float
    double

ctypedef fused Whole:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t
    uint64_t


def interleave(
    const Real[:] first, const Real[:] second, const Real[:] third, const Real[:] fourth,
    double[:, ::1] rows, double large
):
    """Put four columns side by side.

    Parameters
    ----------
    first, second, third, fourth : (N,) float32 or float64
    rows : (N, 4) float64
        Where they are put.
    large : float

    Returns
    -------
    bool
        Whether every number lies between -large and large.
    """
    cdef Py_ssize_t i
    cdef double a, b, c, d
    cdef bint calm = True
    with nogil:
        for i in range(rows.shape[0]):
            a, b, c, d = first[i], second[i], third[i], fourth[i]
            rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 3] = a, b, c, d
            calm &= (
                (-large < a) & (a < large) & (-large < b) & (b < large)
                & (-large < c) & (c < large) & (-large < d) & (d < large)
            )
    return calm


def number(
    const Whole[::1] values, uint64_t low, int32_t[::1] table, int32_t[::1] out, int32_t count
):
    """Number whole numbers, each when it is first met.

    Parameters
    ----------
    values : (N,) of any whole numbers
    low : int
        The first entry of the table is its; of a negative one, what it is modulo 2^64.
    table : int32
        An entry for each number that `values` may hold: its number, or -1.
    out : (N,) int32
        Filled.
    count : int
        How many have a number.

    Returns
    -------
    int
        How many have a number now.
    """
    cdef Py_ssize_t i
    cdef int32_t *found
    with nogil:
        for i in range(values.shape[0]):
            if i and values[i] == values[i - 1]:  # as images mostly are
                out[i] = out[i - 1]
                continue
            found = &table[<Py_ssize_t>(<uint64_t>values[i] - low)]
            if found[0] < 0:
                found[0] = count
                count += 1
            out[i] = found[0]
    return count


def translate(const Whole[::1] codes, const int32_t[::1] numbers, int32_t[::1] out):
    """Put in place of each code the number that it is an index of."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(codes.shape[0]):
            out[i] = numbers[<Py_ssize_t>codes[i]]
