"""Stable orders, without the GIL: by falling score, and by group."""

from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
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


cdef Keyed* put_in_order(Keyed* items, Keyed* spare, Py_ssize_t count) noexcept nogil:
    """Sort stably by rising key, as sort_by_key; no work where they are so."""
    cdef Py_ssize_t i
    for i in range(1, count):
        if items[i].key < items[i - 1].key:
            return sort_by_key(items, spare, count)
    return items


def rank_rows(
    const int32_t[::1] label, const int32_t[::1] image, const int32_t[::1] order,
    const double[::1] score, const uint8_t[::1] left_out, bint ties_by_image,
    int32_t[::1] start, int32_t[::1] ranked,
) -> None:
    """Rank the rows of each class by falling score.

    Parameters
    ----------
    label, image, order : (N,) int32
    score : (N,) float64
    left_out : (N,) uint8
        Rows that are not ranked.
    ties_by_image : bool
        Whether equal scores rank by image before they rank by order.
    start : (K + 1,) int32
        Written: where each class begins in `ranked`.
    ranked : (N,) int32
        Written: rows, class by class.
    """
    cdef Py_ssize_t n = label.shape[0]
    cdef Py_ssize_t classes = start.shape[0] - 1
    cdef Py_ssize_t k, i, count
    cdef int32_t total = 0
    cdef int32_t most = 0
    cdef int32_t* grouped = <int32_t*>malloc((n + 1) * sizeof(int32_t))
    cdef int32_t* group = <int32_t*>malloc((classes + 1) * sizeof(int32_t))
    cdef Keyed* first = NULL
    cdef Keyed* second = NULL
    cdef Keyed* items
    cdef bint ready = grouped != NULL and group != NULL
    if ready:
        group_rows(&label[0] if n else NULL, n, classes, group, grouped)
        for k in range(classes):
            most = max(most, group[k + 1] - group[k])
        first = <Keyed*>malloc((most + 1) * sizeof(Keyed))
        second = <Keyed*>malloc((most + 1) * sizeof(Keyed))
        ready = first != NULL and second != NULL
    if ready:
        with nogil:
            for k in range(classes):
                start[k] = total
                count = 0
                for i in range(group[k], group[k + 1]):
                    if not left_out[grouped[i]]:
                        first[count].row = grouped[i]
                        first[count].key = order[grouped[i]]
                        count += 1
                items = put_in_order(first, second, count)
                if ties_by_image:
                    for i in range(count):
                        items[i].key = image[items[i].row]
                    items = put_in_order(items, second if items == first else first, count)
                for i in range(count):
                    items[i].key = falling(score[items[i].row])
                items = put_in_order(items, second if items == first else first, count)
                for i in range(count):
                    ranked[total + i] = items[i].row
                total += <int32_t>count
            start[classes] = total
    free(grouped)
    free(group)
    free(first)
    free(second)
    if not ready:
        raise MemoryError()


def find_rank_positions(
    const int32_t[::1] image, const int32_t[::1] order, const double[::1] score,
    bint ties_by_image, const int32_t[::1] start, const int32_t[::1] ranked,
    const int32_t[::1] rows, const int32_t[::1] label, int32_t[::1] out,
) -> None:
    """Write where in `ranked`, as rank_rows made it, some rows stand or would stand in a class."""
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
                    above = order[other] < order[row]
                if above:
                    low = middle + 1
                else:
                    high = middle
            out[i] = low
