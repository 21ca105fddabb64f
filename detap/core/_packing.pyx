"""Distinct columns and stable sorts by group, compiled. See packing.py."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from detap.core._accumulate cimport Bits, get_bits, bits_of

import numpy as np


cdef inline uint64_t hash_column(
    const Bits* tables, const Py_ssize_t* table_rows, Py_ssize_t count, Py_ssize_t row
) noexcept nogil:
    cdef uint64_t state = 0
    cdef Py_ssize_t i, table_row
    for i in range(count):
        for table_row in range(table_rows[i]):
            # Multiplying by an odd number is injective; the shift spreads the high bits.
            state = (state ^ get_bits(&tables[i], table_row, row)) * <uint64_t>0x9E3779B97F4A7C15
            state ^= state >> 29
    return state


cdef inline bint equal_columns(
    const Bits* tables, const Py_ssize_t* table_rows, Py_ssize_t count,
    Py_ssize_t one, Py_ssize_t other,
) noexcept nogil:
    cdef Py_ssize_t i, table_row
    for i in range(count):
        for table_row in range(table_rows[i]):
            if get_bits(&tables[i], table_row, one) != get_bits(&tables[i], table_row, other):
                return False
    return True


def number_columns(tables: Sequence[NDArray[np.uint8]], uint32_t[::1] code) -> NDArray[np.int64]:
    """Number the columns of stacked tables; equal columns get equal numbers.

    Parameters
    ----------
    tables : sequence of (L, N) arrays of uint8
        Bytes of L unsigned integers for each of N columns.
    code : (N,) uint32
        Written: the number of each column, from 0 by first occurrence.

    Returns
    -------
    (P,) int64
        First column of each number.
    """
    cdef Py_ssize_t n = code.shape[0]
    cdef Py_ssize_t n_tables = len(tables)
    cdef Py_ssize_t row, i, capacity
    cdef uint64_t key, slot, mask
    cdef uint32_t n_distinct = 0
    cdef uint32_t last = 0
    cdef Bits* bits = <Bits*>malloc((n_tables + 1) * sizeof(Bits))
    cdef Py_ssize_t* table_rows = <Py_ssize_t*>malloc((n_tables + 1) * sizeof(Py_ssize_t))
    cdef int64_t* firsts = NULL
    cdef uint64_t* keys = NULL
    cdef uint32_t* slots = NULL
    cdef const uint8_t[:, ::1] table
    cdef int64_t[::1] out
    buffers = []
    try:
        if bits == NULL or table_rows == NULL:
            raise MemoryError()
        for i in range(n_tables):
            table = tables[i]
            buffers.append(table)
            bits[i] = bits_of(table, n)
            table_rows[i] = table.shape[0]
        capacity = 1 << 12
        firsts = <int64_t*>malloc(capacity * sizeof(int64_t))
        keys = <uint64_t*>malloc(capacity * sizeof(uint64_t))
        slots = <uint32_t*>calloc(2 * capacity, sizeof(uint32_t))
        mask = 2 * capacity - 1
        if firsts == NULL or keys == NULL or slots == NULL:
            raise MemoryError()
        for row in range(n):
            # Most columns equal the previous one: false positives at every threshold.
            if n_distinct and equal_columns(bits, table_rows, n_tables, row, firsts[last]):
                code[row] = last
                continue
            key = hash_column(bits, table_rows, n_tables, row)
            slot = key & mask
            while slots[slot] and not (
                keys[slots[slot] - 1] == key
                and equal_columns(bits, table_rows, n_tables, row, firsts[slots[slot] - 1])
            ):
                slot = (slot + 1) & mask
            if not slots[slot]:
                if n_distinct == capacity:
                    capacity *= 2
                    grow(&firsts, &keys, &slots, n_distinct, capacity)
                    mask = 2 * capacity - 1
                    slot = key & mask
                    while slots[slot]:
                        slot = (slot + 1) & mask
                firsts[n_distinct] = row
                keys[n_distinct] = key
                n_distinct += 1
                slots[slot] = n_distinct
            last = slots[slot] - 1
            code[row] = last
        result = np.empty(n_distinct, np.int64)
        out = result
        for i in range(n_distinct):
            out[i] = firsts[i]
        return result
    finally:
        free(bits)
        free(table_rows)
        free(firsts)
        free(keys)
        free(slots)


cdef int grow(
    int64_t** firsts, uint64_t** keys, uint32_t** slots, Py_ssize_t n_distinct, Py_ssize_t capacity
) except -1:
    """Reallocate for `capacity` distinct columns and rehash."""
    cdef int64_t* new_firsts = <int64_t*>malloc(capacity * sizeof(int64_t))
    cdef uint64_t* new_keys = <uint64_t*>malloc(capacity * sizeof(uint64_t))
    cdef uint32_t* new_slots = <uint32_t*>calloc(2 * capacity, sizeof(uint32_t))
    cdef uint64_t mask = 2 * capacity - 1
    cdef uint64_t slot
    cdef Py_ssize_t i
    if new_firsts == NULL or new_keys == NULL or new_slots == NULL:
        free(new_firsts)
        free(new_keys)
        free(new_slots)
        raise MemoryError()
    for i in range(n_distinct):
        new_firsts[i] = firsts[0][i]
        new_keys[i] = keys[0][i]
        slot = new_keys[i] & mask
        while new_slots[slot]:
            slot = (slot + 1) & mask
        new_slots[slot] = i + 1
    free(firsts[0])
    free(keys[0])
    free(slots[0])
    firsts[0] = new_firsts
    keys[0] = new_keys
    slots[0] = new_slots
    return 0


def is_sorted(const int32_t[::1] label, const int32_t[::1] group) -> bool:
    """Return True if rows are sorted by label, then by group."""
    cdef Py_ssize_t i
    for i in range(1, label.shape[0]):
        if label[i] < label[i - 1] or (label[i] == label[i - 1] and group[i] < group[i - 1]):
            return False
    return True


def order_by_group(const int32_t[::1] group, int64_t[::1] start, const int64_t[::1] rows,
               int64_t[::1] order) -> None:
    """Write rows by group, in their given order within a group.

    Parameters
    ----------
    group : (n,) int32
        Group of each row, from 0.
    start : (groups + 1,) int64
        Written: start of each group.
    rows : (n,) or (0,) int64
        Order of the rows; ascending if empty.
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
