"""Stable orders, without the GIL: by falling score, and by group."""

from libc.stdint cimport int32_t, uint64_t
from libc.string cimport memcpy, memset

cdef enum:
    SMALL = 48  # below it, insertion beats counting


cdef uint64_t falling(double score) noexcept nogil:
    """Return a key whose rising order is the score's falling order; -0.0 ties with 0.0."""
    cdef uint64_t bits
    if score == 0.0:
        bits = 0
    else:
        memcpy(&bits, &score, 8)
    # Rising order of doubles as integers: flip all bits of negatives, the sign of the others.
    if bits >> 63:
        bits = ~bits
    else:
        bits = bits | (<uint64_t>1 << 63)
    return ~bits


cdef void sort_few(Keyed* items, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef Keyed item
    for i in range(1, count):
        item = items[i]
        j = i
        while j > 0 and items[j - 1].key > item.key:
            items[j] = items[j - 1]
            j -= 1
        items[j] = item


cdef Keyed* sort_by_key(Keyed* items, Keyed* spare, Py_ssize_t count) noexcept nogil:
    """Sort stably by rising key; return whichever of the two arrays holds the result."""
    cdef int32_t counts[8][256]
    cdef int32_t place, size
    cdef Py_ssize_t i
    cdef int digit, byte
    cdef uint64_t key
    cdef Keyed* other
    if count < SMALL:
        sort_few(items, count)
        return items
    memset(counts, 0, sizeof(counts))
    for i in range(count):
        key = items[i].key
        for digit in range(8):
            counts[digit][(key >> (8 * digit)) & 255] += 1
    for digit in range(8):
        # A byte that all keys share needs no pass: the sign and most of the exponent, usually.
        if counts[digit][(items[0].key >> (8 * digit)) & 255] == count:
            continue
        place = 0
        for byte in range(256):
            size = counts[digit][byte]
            counts[digit][byte] = place
            place += size
        for i in range(count):
            byte = (items[i].key >> (8 * digit)) & 255
            spare[counts[digit][byte]] = items[i]
            counts[digit][byte] += 1
        other = items
        items = spare
        spare = other
    return items


cdef void group_rows(
    const int32_t* group, Py_ssize_t rows, Py_ssize_t groups, int32_t* start, int32_t* order
) noexcept nogil:
    """Write the rows group by group, each in file order; start[g] to start[g + 1] is group g."""
    cdef Py_ssize_t i
    cdef int32_t g
    memset(start, 0, (groups + 1) * sizeof(int32_t))
    for i in range(rows):
        start[group[i] + 1] += 1
    for i in range(groups):
        start[i + 1] += start[i]
    for i in range(rows):
        g = group[i]
        order[start[g]] = <int32_t>i
        start[g] += 1
    for i in range(groups, 0, -1):
        start[i] = start[i - 1]
    start[0] = 0
