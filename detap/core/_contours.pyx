"""Fill contours of pixels; see contours.py."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, realloc


cdef struct Canvas:
    uint8_t *pixels     # of the bounding box, column by column
    int64_t left, top, width, height


cdef inline void _draw(
    Canvas *canvas, int64_t x0, int64_t y0, int64_t x1, int64_t y1
) noexcept nogil:
    """Draw an edge: the nearest pixel in each column, or row if it is steep.

    From left to right; halfway between two pixels, the one nearer to the start.
    """
    cdef int64_t dx, dy, step, index, minor, x, y
    if x1 < x0:
        x0, y0, x1, y1 = x1, y1, x0, y0
    dx = x1 - x0
    dy = y1 - y0 if y1 >= y0 else y0 - y1
    step = 1 if y1 >= y0 else -1
    for index in range((dx if dx >= dy else dy) + 1):
        if dx >= dy:
            minor = (2 * dy * index + dx - 1) // (2 * dx) if dx else 0
            x, y = x0 + index, y0 + step * minor
        else:
            minor = (2 * dx * index + dy - 1) // (2 * dy)
            x, y = x0 + minor, y0 + step * index
        canvas.pixels[(x - canvas.left) * canvas.height + y - canvas.top] |= 2


cdef inline void _toggle(
    Canvas *canvas, int64_t x0, int64_t y0, int64_t x1, int64_t y1
) noexcept nogil:
    """Mark the first pixel at or below an edge in each of its columns but the last."""
    cdef int64_t x, dx, rise, y
    if x1 < x0:
        x0, y0, x1, y1 = x1, y1, x0, y0
    dx = x1 - x0
    for x in range(x0, x1):
        rise = (y1 - y0) * (x - x0)
        y = y0 + ((rise + dx - 1) // dx if rise > 0 else -(-rise // dx))
        canvas.pixels[(x - canvas.left) * canvas.height + y - canvas.top] ^= 1


cdef bint _append(uint32_t **runs, Py_ssize_t *count, Py_ssize_t *room, int64_t run) noexcept nogil:
    cdef uint32_t *larger
    if count[0] == room[0]:
        larger = <uint32_t *>realloc(runs[0], 2 * (room[0] + 32) * sizeof(uint32_t))
        if larger == NULL:
            return False
        runs[0] = larger
        room[0] = 2 * (room[0] + 32)
    runs[0][count[0]] = <uint32_t>run
    count[0] += 1
    return True


cdef bint _encode(
    Canvas *canvas, int64_t width, int64_t height, uint32_t **runs, Py_ssize_t *count
) noexcept nogil:
    """Append the runs of the whole image; False without memory."""
    cdef Py_ssize_t room = 0
    cdef int64_t x, y, at, last = 0
    cdef bint inside, before = False, odd
    for x in range(canvas.width):
        odd = False
        for y in range(canvas.height + 1):
            at = (canvas.left + x) * height + canvas.top + y
            inside = False
            if y < canvas.height:
                odd ^= canvas.pixels[x * canvas.height + y] & 1
                inside = odd or canvas.pixels[x * canvas.height + y] & 2
            elif canvas.height == height:
                continue    # the next column follows
            if inside != before:
                if not _append(runs, count, &room, at - last):
                    return False
                last, before = at, inside
    at = (canvas.left + canvas.width) * height
    if before:
        if not _append(runs, count, &room, at - last):
            return False
        last = at
    return last == width * height or _append(runs, count, &room, width * height - last)


def fill(
    const int32_t[:, ::1] points: NDArray[np.int32], int width, int height
) -> bytes:
    """Return the runs of a filled contour as bytes of uint32.

    Parameters
    ----------
    points : (n, 2) int32
        x and y of its corners, from 0 to width - 1 and height - 1; at least one.
    width, height : int
        Size of the image.
    """
    cdef Canvas canvas
    cdef Py_ssize_t count = 0, index, after, n = points.shape[0]
    cdef int64_t right, bottom
    cdef uint32_t *runs = NULL
    cdef bint done
    canvas.left = right = points[0, 0]
    canvas.top = bottom = points[0, 1]
    for index in range(n):
        canvas.left = min(canvas.left, points[index, 0])
        right = max(right, points[index, 0])
        canvas.top = min(canvas.top, points[index, 1])
        bottom = max(bottom, points[index, 1])
    if canvas.left < 0 or canvas.top < 0 or right >= width or bottom >= height:
        raise ValueError("a contour lies outside its image")
    canvas.width = right - canvas.left + 1
    canvas.height = bottom - canvas.top + 1
    canvas.pixels = <uint8_t *>calloc(canvas.width * canvas.height, 1)
    if canvas.pixels == NULL:
        raise MemoryError
    with nogil:
        for index in range(n):
            after = index + 1 if index + 1 < n else 0
            _draw(&canvas, points[index, 0], points[index, 1], points[after, 0], points[after, 1])
            _toggle(&canvas, points[index, 0], points[index, 1], points[after, 0], points[after, 1])
        done = _encode(&canvas, width, height, &runs, &count)
    free(canvas.pixels)
    try:
        if not done:
            raise MemoryError
        return (<const char *>runs)[:count * sizeof(uint32_t)]
    finally:
        free(runs)
