"""Distinct columns, and stable orders of rows by class and image. See packing.py."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from detap.core._accumulate cimport Bits, get_bits, bits_of

import numpy as np


cdef inline uint64_t hash_of(
    const Bits* tables, const Py_ssize_t* lanes, Py_ssize_t count, Py_ssize_t row
) noexcept nogil:
    cdef uint64_t state = 0
    cdef Py_ssize_t i, lane
    for i in range(count):
        for lane in range(lanes[i]):
            # Multiplied by an odd number no two words come to one, and the high bits come down.
            state = (state ^ get_bits(&tables[i], lane, row)) * <uint64_t>0x9E3779B97F4A7C15
            state ^= state >> 29
    return state


cdef inline bint alike(
    const Bits* tables, const Py_ssize_t* lanes, Py_ssize_t count,
    Py_ssize_t one, Py_ssize_t other,
) noexcept nogil:
    cdef Py_ssize_t i, lane
    for i in range(count):
        for lane in range(lanes[i]):
            if get_bits(&tables[i], lane, one) != get_bits(&tables[i], lane, other):
                return False
    return True


def distinct(tables: Sequence[NDArray[np.uint8]], uint32_t[::1] code) -> NDArray[np.int64]:
    """Give the columns of tables that stand side by side numbers, equal ones the same.

    Parameters
    ----------
    tables : sequence of (L, N) arrays of uint8
        Each the bytes of L words for each of N columns, N times the width of a word long.
    code : (N,) uint32
        Written: the number of each column, from 0 by first occurrence.

    Returns
    -------
    (P,) int64
        The first column of each number.
    """
    cdef Py_ssize_t n = code.shape[0]
    cdef Py_ssize_t count = len(tables)
    cdef Py_ssize_t row, i, most
    cdef uint64_t key, place, mask
    cdef uint32_t found = 0
    cdef uint32_t last = 0
    cdef Bits* bits = <Bits*>malloc((count + 1) * sizeof(Bits))
    cdef Py_ssize_t* lanes = <Py_ssize_t*>malloc((count + 1) * sizeof(Py_ssize_t))
    cdef int64_t* firsts = NULL
    cdef uint64_t* keys = NULL
    cdef uint32_t* slots = NULL
    cdef const uint8_t[:, ::1] table
    cdef int64_t[::1] out
    kept = []
    try:
        if bits == NULL or lanes == NULL:
            raise MemoryError()
        for i in range(count):
            table = tables[i]
            kept.append(table)
            bits[i] = bits_of(table, n)
            lanes[i] = table.shape[0]
        most = 1 << 12
        firsts = <int64_t*>malloc(most * sizeof(int64_t))
        keys = <uint64_t*>malloc(most * sizeof(uint64_t))
        slots = <uint32_t*>calloc(2 * most, sizeof(uint32_t))
        mask = 2 * most - 1
        if firsts == NULL or keys == NULL or slots == NULL:
            raise MemoryError()
        for row in range(n):
            # Most columns are those of the one before: false positives in every respect.
            if found and alike(bits, lanes, count, row, firsts[last]):
                code[row] = last
                continue
            key = hash_of(bits, lanes, count, row)
            place = key & mask
            while slots[place] and not (
                keys[slots[place] - 1] == key
                and alike(bits, lanes, count, row, firsts[slots[place] - 1])
            ):
                place = (place + 1) & mask
            if not slots[place]:
                if found == most:
                    most *= 2
                    grown(&firsts, &keys, &slots, found, most)
                    mask = 2 * most - 1
                    place = key & mask
                    while slots[place]:
                        place = (place + 1) & mask
                firsts[found] = row
                keys[found] = key
                found += 1
                slots[place] = found
            last = slots[place] - 1
            code[row] = last
        result = np.empty(found, np.int64)
        out = result
        for i in range(found):
            out[i] = firsts[i]
        return result
    finally:
        free(bits)
        free(lanes)
        free(firsts)
        free(keys)
        free(slots)


cdef int grown(
    int64_t** firsts, uint64_t** keys, uint32_t** slots, Py_ssize_t found, Py_ssize_t most
) except -1:
    """Make room for `most` numbers, and number the slots anew."""
    cdef int64_t* wider = <int64_t*>malloc(most * sizeof(int64_t))
    cdef uint64_t* more = <uint64_t*>malloc(most * sizeof(uint64_t))
    cdef uint32_t* places = <uint32_t*>calloc(2 * most, sizeof(uint32_t))
    cdef uint64_t mask = 2 * most - 1
    cdef uint64_t place
    cdef Py_ssize_t i
    if wider == NULL or more == NULL or places == NULL:
        free(wider)
        free(more)
        free(places)
        raise MemoryError()
    for i in range(found):
        wider[i] = firsts[0][i]
        more[i] = keys[0][i]
        place = more[i] & mask
        while places[place]:
            place = (place + 1) & mask
        places[place] = i + 1
    free(firsts[0])
    free(keys[0])
    free(slots[0])
    firsts[0] = wider
    keys[0] = more
    slots[0] = places
    return 0


def in_order(const int32_t[::1] label, const int32_t[::1] group) -> bool:
    """Return whether rows stand by label, and those of a label by group."""
    cdef Py_ssize_t i
    for i in range(1, label.shape[0]):
        if label[i] < label[i - 1] or (label[i] == label[i - 1] and group[i] < group[i - 1]):
            return False
    return True


def group_rows(const int32_t[::1] group, int64_t[::1] start, const int64_t[::1] rows,
               int64_t[::1] order) -> None:
    """Write rows group by group, those of a group in the order in which they are given.

    Parameters
    ----------
    group : (n,) int32
        Of each row, from 0.
    start : (groups + 1,) int64
        Written: where each group begins.
    rows : (n,) int64, or none
        The rows in the order wanted; by default ascending.
    order : (n,) int64
        Written.
    """
    cdef Py_ssize_t n = group.shape[0]
    cdef Py_ssize_t groups = start.shape[0] - 1
    cdef bint given = rows.shape[0] == n
    cdef Py_ssize_t i
    cdef int64_t row
    with nogil:
        for i in range(groups + 1):
            start[i] = 0
        for i in range(n):
            start[group[i] + 1] += 1
        for i in range(groups):
            start[i + 1] += start[i]
        for i in range(n):
            row = rows[i] if given else i
            order[start[group[row]]] = row
            start[group[row]] += 1
        for i in range(groups, 0, -1):
            start[i] = start[i - 1]
        start[0] = 0
