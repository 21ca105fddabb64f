"""Masks as runs of pixels, column by column: decoded, encoded, measured. See masks.py.

A run list begins with pixels outside the mask and alternates.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, qsort
from libc.string cimport memmove, memset

from detap.tables._words cimport load, trailing_zeros


cdef enum:
    MANY = 16               # crossings of one column


# --- run-length strings


cdef Fault decode(
    const uint8_t *text, Py_ssize_t length, bint escaped, int64_t pixels, Runs *to
) noexcept nogil:
    """Append the runs that COCO's run-length string has.

    Each run is a number in digits of five bits, the lowest first, a sixth bit says that more
    follow; from the fourth run on it is the difference to the run two places before. `escaped` is
    text as JSON has it, where a backslash stands twice; any other escape is no digit.
    """
    cdef Py_ssize_t first = to.count, at = 0
    cdef int64_t value, total = 0
    cdef int shift, digit
    if not make_room(to, length):
        return NO_MEMORY
    while at < length:
        value, shift = 0, 0
        while True:
            if at == length:
                return CUT_OFF
            if escaped and text[at] == c'\\':
                at += 1
                if at == length or text[at] != c'\\':
                    return NO_DIGIT
            digit = text[at] - 48
            at += 1
            if digit < 0 or digit > 63:
                return NO_DIGIT
            if shift > 35:
                return TOO_LONG
            value |= <int64_t>(digit & 31) << shift
            shift += 5
            if not digit & 32:
                break
        if digit & 16:
            value -= <int64_t>1 << shift
        if to.count - first > 2:
            value += to.at[to.count - 2]
        if value < 0:
            return NEGATIVE
        total += value
        if total > pixels:
            return TOO_LONG
        to.at[to.count] = <uint32_t>value
        to.count += 1
    return SOUND


FAULTS: dict[int, str] = {
    <int>NO_DIGIT: "holds a character that is no digit of run lengths",
    <int>CUT_OFF: "ends within a number",
    <int>NEGATIVE: "holds a negative run",
    <int>TOO_LONG: "runs beyond the mask",
}


def decoded(bytes text, int64_t pixels) -> NDArray[np.uint32] | str:
    """Return the runs of a run-length string, (n,) uint32, or what is wrong with it."""
    room = np.empty(len(text) + 1, np.uint32)  # a run has at least one digit
    cdef uint32_t[::1] at = room
    cdef Runs runs = Runs(&at[0], 0, len(text) + 1)
    cdef Fault fault = decode(text, len(text), False, pixels, &runs)
    return room[: runs.count].copy() if fault == SOUND else FAULTS[<int>fault]


# --- what masks measure


cdef int64_t area_of(const uint32_t *runs, Py_ssize_t count) noexcept nogil:
    """Return the number of pixels of a mask."""
    cdef int64_t total = 0
    cdef Py_ssize_t i = 1
    while i < count:
        total += runs[i]
        i += 2
    return total


cdef Bounds bounds_of(const uint32_t *runs, Py_ssize_t count, uint32_t height) noexcept nogil:
    """Return the columns and rows that a mask spans; a run that goes on in the next spans all."""
    cdef Bounds bounds = Bounds(<int64_t>1 << 40, <int64_t>1 << 40, -1, -1)  # none
    cdef uint32_t begin, end = 0, last = 0, top = height, bottom = 0, column, row
    cdef double of_height = 1.0 / height
    cdef Py_ssize_t i = 1
    while i < count:
        begin = end + runs[i - 1]
        end = begin + runs[i]
        if runs[i]:
            column = column_of(begin, of_height)
            bounds.left = min(bounds.left, <int64_t>column)
            last = end - 1
            row = begin - column * height
            top = min(top, row if row + runs[i] <= height else 0)
            bottom = max(bottom, min(row + runs[i], height))
        i += 2
    if bottom:
        bounds.right = column_of(last, of_height)
        bounds.top, bounds.bottom = top, <int64_t>bottom - 1
    return bounds


cdef inline uint32_t column_of(uint32_t pixel, double of_height) noexcept nogil:
    """Return pixel // height: half a pixel keeps off what rounding could move."""
    return <uint32_t><int64_t>((pixel + 0.5) * of_height)


cdef int64_t box_of(
    const uint32_t *runs, Py_ssize_t count, uint32_t height, double *box
) noexcept nogil:
    """Return the number of pixels of a mask; write x, y, width, height if it has any."""
    cdef int64_t area = area_of(runs, count)
    cdef Bounds bounds
    if area:
        bounds = bounds_of(runs, count, height)
        box[0], box[1] = bounds.left, bounds.top
        box[2] = bounds.right - bounds.left + 1
        box[3] = bounds.bottom - bounds.top + 1
    return area


# --- crossings


cdef int _compare(const void *a, const void *b) noexcept nogil:
    cdef uint32_t x = (<const uint32_t *>a)[0], y = (<const uint32_t *>b)[0]
    return (x > y) - (x < y)


cdef bint ascend(Runs *crossings, int64_t height) noexcept nogil:
    """Turn columns and rows into ascending pixels; False when out of memory."""
    cdef Py_ssize_t count = crossings.count // 2, width, i, k, begin
    cdef uint32_t low = 0xFFFFFFFF, high = 0, pixel
    cdef uint32_t *behind
    cdef uint32_t *to
    if count == 0:
        return True  # there may be no room at all yet
    for i in range(count):
        low = min(low, crossings.at[2 * i])
        high = max(high, crossings.at[2 * i])
    width = high - low + 1
    if not make_room(crossings, width + count):
        return False
    behind = crossings.at + 2 * count
    to = behind + width
    memset(behind, 0, width * sizeof(uint32_t))
    for i in range(count):
        behind[crossings.at[2 * i] - low] += 1
    begin = 0
    for i in range(width):
        begin += behind[i]
        behind[i] = <uint32_t>(begin - behind[i])
    for i in range(count):
        k = crossings.at[2 * i] - low
        to[behind[k]] = <uint32_t>(crossings.at[2 * i] * height + crossings.at[2 * i + 1])
        behind[k] += 1
    begin = 0
    for k in range(width):
        if behind[k] - begin > MANY:
            qsort(to + begin, behind[k] - begin, sizeof(uint32_t), _compare)
        else:
            for i in range(begin + 1, behind[k]):
                pixel = to[i]
                while i > begin and to[i - 1] > pixel:
                    to[i] = to[i - 1]
                    i -= 1
                to[i] = pixel
        begin = behind[k]
    memmove(crossings.at, to, count * sizeof(uint32_t))
    crossings.count = count
    return True


cdef bint turn(const Runs *crossings, int64_t pixels, Runs *to) noexcept nogil:
    """Append the runs of a mask that ascending crossings bound; False when out of memory.

    Each turns inside to outside: two at one position change nothing.
    """
    cdef Py_ssize_t first = to.count, i
    cdef uint32_t before = 0, position
    for i in range(crossings.count):
        position = crossings.at[i]
        if position != before or to.count == first:
            if not put_run(to, position - before):
                return False
            before = position
        else:
            to.count -= 1
            before = position - to.at[to.count]
    if before != pixels or to.count == first:
        return put_run(to, <uint32_t>pixels - before)
    return True


# --- bitmaps


cdef bint compare_rows(
    const uint8_t *upper, const uint8_t *lower, Py_ssize_t width, Py_ssize_t row, Runs *to
) noexcept nogil:
    """Note where the columns of two rows differ, eight at a time; False when out of memory."""
    cdef Py_ssize_t column = 0, step
    cdef uint64_t differs
    while column < width:
        if column + 8 <= width:
            step, differs = 8, load(upper + column) ^ load(lower + column)
        else:
            step, differs = 1, upper[column] ^ lower[column]
        if differs and not make_room(to, 16):
            return False
        while differs:
            to.at[to.count] = <uint32_t>(column + (trailing_zeros(differs) >> 3))
            to.at[to.count + 1] = <uint32_t>row
            to.count += 2
            differs &= differs - 1
        column += step
    return True


def encoded(const uint8_t[:, :, ::1] bits) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Return the runs of bitmaps (n, H, W) of 0 and 1: where each begins (n + 1,), and all.

    A bitmap is read row by row, as it lies in memory: wherever a pixel differs from that above it,
    its column crosses the border of the mask.
    """
    cdef Py_ssize_t count = bits.shape[0], height = bits.shape[1], width = bits.shape[2], i, row
    cdef const uint8_t[::1] outside = np.zeros(width, np.uint8)
    cdef Runs crossings, runs
    cdef bint done = True
    start = np.zeros(count + 1, np.int64)
    cdef int64_t[::1] begin = start
    memset(&crossings, 0, sizeof(Runs))
    memset(&runs, 0, sizeof(Runs))
    with nogil:
        for i in range(count):
            crossings.count = 0
            for row in range(height + 1):
                done = done and compare_rows(
                    &bits[i, row - 1, 0] if row else &outside[0],
                    &bits[i, row, 0] if row < height else &outside[0], width, row, &crossings,
                )
            done = done and ascend(&crossings, height) and turn(&crossings, height * width, &runs)
            begin[i + 1] = runs.count
    free(crossings.at)
    try:
        if not done:
            raise MemoryError
        return start, np.array(<uint32_t[: runs.count]>runs.at) if count else np.zeros(0, np.uint32)
    finally:
        free(runs.at)


def measured(
    const int32_t[:, ::1] sizes, const int64_t[::1] start, const uint32_t[::1] runs,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the pixels of each mask (M,), and x, y, width, height (M, 4): zeros where it has none."""
    cdef Py_ssize_t count = sizes.shape[0], i
    areas, boxes = np.zeros(count), np.zeros((count, 4))
    cdef double[::1] area = areas
    cdef double[:, ::1] box = boxes
    with nogil:
        for i in range(count):
            if start[i + 1] - start[i] > 1:
                area[i] = box_of(&runs[start[i]], start[i + 1] - start[i], sizes[i, 0], &box[i, 0])
    return areas, boxes
