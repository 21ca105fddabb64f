"""Stable sorts without the GIL: by descending score, and by group."""

from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

import numpy as np

cdef enum:
    SMALL = 48  # below it, insertion sort is faster than radix sort


cdef uint64_t descending_key(double score) noexcept nogil:
    """Return a key that ascends as the score descends; -0.0 ties with 0.0."""
    cdef uint64_t bits
    if score == 0.0:
        bits = 0
    else:
        memcpy(&bits, &score, 8)
    # Doubles sort as integers after flipping all bits of negatives, the sign bit of others.
    if bits >> 63:
        bits = ~bits
    else:
        bits = bits | (<uint64_t>1 << 63)
    return ~bits


cdef void insertion_sort(Keyed* items, Py_ssize_t count) noexcept nogil:
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
    """Sort stably by ascending key; return the array that holds the result."""
    cdef int32_t counts[8][256]
    cdef int32_t offset, size
    cdef Py_ssize_t i
    cdef int digit, byte
    cdef uint64_t key
    cdef Keyed* other
    if count < SMALL:
        insertion_sort(items, count)
        return items
    memset(counts, 0, sizeof(counts))
    for i in range(count):
        key = items[i].key
        for digit in range(8):
            counts[digit][(key >> (8 * digit)) & 255] += 1
    for digit in range(8):
        # Skip bytes that all keys share, such as the sign.
        if counts[digit][(items[0].key >> (8 * digit)) & 255] == count:
            continue
        offset = 0
        for byte in range(256):
            size = counts[digit][byte]
            counts[digit][byte] = offset
            offset += size
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
    """Write the rows by group in file order; start[g] to start[g + 1] is group g."""
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


cdef Keyed* sort_if_needed(Keyed* items, Keyed* spare, Py_ssize_t count) noexcept nogil:
    """Sort as sort_by_key, unless the keys ascend already."""
    cdef Py_ssize_t i
    for i in range(1, count):
        if items[i].key < items[i - 1].key:
            return sort_by_key(items, spare, count)
    return items


def rank_rows(
    const int32_t[::1] label, const int32_t[::1] image, const double[::1] score,
    Py_ssize_t classes, bint ties_by_image,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Rank the rows of each class by descending score; return the start of each, and the rows."""
    cdef Py_ssize_t n = label.shape[0], k, i, count
    starts, ranked = np.zeros(classes + 1, np.int32), np.zeros(n, np.int32)
    cdef int32_t[::1] start = starts, rows = ranked
    cdef uint8_t[::1] memory = np.empty(2 * n * sizeof(Keyed) + 1, np.uint8)
    cdef int32_t* row = &rows[0] if n else NULL
    cdef Keyed* items_a = <Keyed*>&memory[0]
    cdef Keyed* items_b = items_a + n
    cdef Keyed* items
    with nogil:
        group_rows(&label[0] if n else NULL, n, classes, &start[0], row)
        for k in range(classes):
            count = start[k + 1] - start[k]
            items = items_a
            for i in range(count):
                items[i].row = row[i]
            if ties_by_image:
                for i in range(count):
                    items[i].key = image[items[i].row]
                items = sort_if_needed(items, items_b, count)
            for i in range(count):
                items[i].key = descending_key(score[items[i].row])
            items = sort_if_needed(items, items_b if items == items_a else items_a, count)
            for i in range(count):
                row[i] = items[i].row
            row += count
    return starts, ranked


def find_rank_positions(
    const int32_t[::1] image, const double[::1] score, bint ties_by_image,
    const int32_t[::1] start, const int32_t[::1] ranked, const int32_t[::1] rows,
    const int32_t[::1] label, int32_t[::1] out,
) -> None:
    """Write the index in `ranked` at which some rows are, or would be, in a class."""
    cdef Py_ssize_t i
    cdef int32_t row, other, low, high, middle
    cdef bint above
    with nogil:
        for i in range(rows.shape[0]):
            row = rows[i]
            low, high = start[label[i]], start[label[i] + 1]
            while low < high:
                middle = low + (high - low) // 2
                other = ranked[middle]
                if score[other] != score[row]:
                    above = score[other] > score[row]
                elif ties_by_image and image[other] != image[row]:
                    above = image[other] < image[row]
                else:
                    above = other < row
                if above:
                    low = middle + 1
                else:
                    high = middle
            out[i] = low
