"""Test integer ids for repeats; the seed of hash tables."""

from os import urandom

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

SEED = int.from_bytes(urandom(8), "little")


cdef bint ascend(const int64_t *ids, Py_ssize_t count) noexcept nogil:
    """Return True if the ids are strictly ascending."""
    cdef Py_ssize_t i
    for i in range(1, count):
        if ids[i - 1] >= ids[i]:
            return False
    return True


cdef bint are_distinct(int64_t *ids, Py_ssize_t count) noexcept nogil:
    """Return True if all ids are distinct, False when out of memory; sorts the ids.

    Radix sort, lowest byte first: a large hash table would miss the cache at every id.
    """
    cdef uint64_t *items = <uint64_t *>ids
    cdef uint64_t *spare = <uint64_t *>malloc(max(count, 1) * sizeof(uint64_t))
    cdef uint64_t *given = spare
    cdef uint64_t *other
    cdef Py_ssize_t offsets[256]
    cdef Py_ssize_t offset, size, i
    cdef int digit, value
    cdef bint distinct = spare != NULL
    if spare == NULL:
        return False
    for digit in range(8):
        memset(offsets, 0, sizeof(offsets))
        for i in range(count):
            offsets[(items[i] >> (8 * digit)) & 255] += 1
        if count and offsets[(items[0] >> (8 * digit)) & 255] == count:
            continue
        offset = 0
        for value in range(256):
            size = offsets[value]
            offsets[value] = offset
            offset += size
        for i in range(count):
            value = (items[i] >> (8 * digit)) & 255
            spare[offsets[value]] = items[i]
            offsets[value] += 1
        other = items
        items = spare
        spare = other
    for i in range(1, count):
        distinct = distinct and items[i] != items[i - 1]
    free(given)
    return distinct
