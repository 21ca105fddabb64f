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
    const Whole[::1] values, Py_ssize_t at, uint64_t low, int32_t[::1] table, int32_t[::1] out,
    int32_t count
):
    """Number whole numbers, each when it is first met, as far as a table goes.

    Parameters
    ----------
    values : (N,) of any whole numbers
    at : int
        The first to be numbered; those before are.
    low : int
        The first entry of the table is its; of a negative one, what it is modulo 2^64.
    table : int32
        An entry for each number in a row: its number, or -1.
    out : (N,) int32
        Filled.
    count : int
        How many have a number.

    Returns
    -------
    at : int
        The first that the table has no entry for; N where there is none.
    count : int
        How many have a number now.
    """
    cdef uint64_t place, entries = table.shape[0]
    with nogil:
        while at < values.shape[0]:
            if at and values[at] == values[at - 1]:  # as images mostly are
                out[at] = out[at - 1]
                at += 1
                continue
            place = <uint64_t>values[at] - low
            if place >= entries:
                break
            if table[<Py_ssize_t>place] < 0:
                table[<Py_ssize_t>place] = count
                count += 1
            out[at] = table[<Py_ssize_t>place]
            at += 1
    return at, count


def translate(const Whole[::1] codes, const int32_t[::1] numbers, int32_t[::1] out):
    """Put in place of each code the number that it is an index of."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(codes.shape[0]):
            out[i] = numbers[<Py_ssize_t>codes[i]]
