"""Hash tables from integer ids to indices."""

from os import urandom

cimport cython
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from detap.tables._words cimport MIX, multiply

SEED = int.from_bytes(urandom(8), "little")


@cython.final
cdef class IdTable:
    """Table from integer ids to indices.

    Parameters
    ----------
    ids : iterable of int
        Distinct, within 64 bits; the first gets number 0.

    Raises
    ------
    OverflowError, TypeError
        If an id is not an integer of 64 bits.
    """

    def __dealloc__(self):
        free(self.ids)
        free(self.numbers)

    def __init__(self, ids: Iterable[int]):
        cdef list listed = list(ids)
        cdef Py_ssize_t count = len(listed), i
        cdef int64_t *copied = <int64_t *>malloc(max(count, 1) * sizeof(int64_t))
        if copied == NULL:
            raise MemoryError
        try:
            for i in range(count):
                copied[i] = listed[i]
            if not self.build(copied, count):
                raise MemoryError
        finally:
            free(copied)

    cdef bint build(self, const int64_t *ids, Py_ssize_t count) noexcept nogil:
        """Build the table; False when out of memory or for more ids than int32 can index."""
        cdef int64_t high
        cdef Py_ssize_t i
        if count > 0x7FFFFFFF:
            return False
        self.low = high = ids[0] if count else 0
        for i in range(count):
            self.low = min(self.low, ids[i])
            high = max(high, ids[i])
        self.direct = <uint64_t>high - <uint64_t>self.low < <uint64_t>(8 * count + 1024)
        if self.direct:
            return self.build_direct(ids, count, <uint64_t>high - <uint64_t>self.low + 1)
        return self.build_hashed(ids, count)

    cdef bint build_direct(self, const int64_t *ids, Py_ssize_t count, uint64_t span) noexcept nogil:
        cdef Py_ssize_t i
        self.mask = span
        self.numbers = <int32_t *>malloc(span * sizeof(int32_t))
        if self.numbers == NULL:
            return False
        memset(self.numbers, 0xFF, span * sizeof(int32_t))
        for i in range(count):
            self.numbers[ids[i] - self.low] = <int32_t>i
        return True

    cdef bint build_hashed(self, const int64_t *ids, Py_ssize_t count) noexcept nogil:
        cdef uint64_t size = 16, at
        cdef Py_ssize_t i
        while size < 2 * <uint64_t>count:
            size *= 2
        self.mask = size - 1
        self.ids = <int64_t *>malloc(size * sizeof(int64_t))
        self.numbers = <int32_t *>malloc(size * sizeof(int32_t))
        if self.ids == NULL or self.numbers == NULL:
            return False
        memset(self.numbers, 0xFF, size * sizeof(int32_t))
        for i in range(count):
            at = self.slot(ids[i])
            self.ids[at] = ids[i]
            self.numbers[at] = <int32_t>i
        return True

    cdef inline uint64_t slot(self, int64_t identifier) noexcept nogil:
        cdef uint64_t high, at
        at = multiply(<uint64_t>identifier ^ SEED, MIX, &high)
        at = (at ^ high) & self.mask
        while self.numbers[at] >= 0 and self.ids[at] != identifier:
            at = (at + 1) & self.mask
        return at

    cdef inline int32_t number(self, int64_t identifier) noexcept nogil:
        """Return the index of an id, -1 if unknown."""
        cdef uint64_t offset
        if self.direct:
            offset = <uint64_t>identifier - <uint64_t>self.low
            return self.numbers[offset] if offset < self.mask else -1
        return self.numbers[self.slot(identifier)]


cdef IdTable listed(list numbers):
    """Return a table from the ids 0, 1, 2, ... to these indices; -1 is unknown."""
    cdef IdTable table = IdTable.__new__(IdTable)
    cdef Py_ssize_t i
    table.direct = True
    table.mask = len(numbers)
    table.numbers = <int32_t *>malloc(max(len(numbers), 1) * sizeof(int32_t))
    if table.numbers == NULL:
        raise MemoryError
    for i in range(len(numbers)):
        table.numbers[i] = numbers[i]
    return table


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


cdef Py_ssize_t renumber(int64_t *ids, Py_ssize_t count, IdTable table) noexcept nogil:
    """Replace ids by indices in the first half; return the number of unknown ids."""
    cdef int32_t *numbers = <int32_t *>ids
    cdef int64_t last = 0
    cdef int32_t number = -1
    cdef Py_ssize_t i, unknown = 0
    for i in range(count):
        if i == 0 or ids[i] != last:
            last = ids[i]
            number = table.number(last)
        unknown += number < 0
        # Row i of the result overwrites only ids already read.
        numbers[i] = number
    return unknown
