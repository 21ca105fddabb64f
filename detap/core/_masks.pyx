"""Masks as runs of pixels, column by column: rasterization and IoU. See masks.py.

A run list starts with pixels outside the mask and alternates (`tables/_runs.pyx`). Two masks are
compared by walking both lists; no full image is ever stored.
"""

from cython cimport final
from libc.math cimport ceil, floor, rint, sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, llabs, malloc, realloc
from libc.string cimport memcpy, memset

import numpy as np

from detap.tables._runs cimport (
    Bounds, Runs, area_of, ascend, bounds_of, box_of, make_room, put_run, turn
)


cdef enum:
    GROUPS_PER_STEP = 32        # image-class groups a thread takes at a time
    GRID_STEPS = 5              # of the fine grid, per pixel
    MAX_CROSSINGS = 1 << 18     # numbers, two per crossing; above it, pairs are canceled


# --- run lists


cdef int64_t intersection_area(
    const uint32_t *a, Py_ssize_t count_a, const uint32_t *b, Py_ssize_t count_b
) noexcept nogil:
    """Count the pixels shared by two masks of equal size."""
    cdef int64_t begin_a, end_a, begin_b, end_b, total = 0
    cdef Py_ssize_t i = 1, j = 1
    if count_a < 2 or count_b < 2:
        return 0
    begin_a = a[0]
    end_a = begin_a + a[1]
    begin_b = b[0]
    end_b = begin_b + b[1]
    while True:
        if end_a > begin_b and end_b > begin_a:
            total += min(end_a, end_b) - max(begin_a, begin_b)
        if end_a < end_b:
            i += 2
            if i >= count_a:
                return total
            begin_a = end_a + a[i - 1]
            end_a = begin_a + a[i]
        else:
            j += 2
            if j >= count_b:
                return total
            begin_b = end_b + b[j - 1]
            end_b = begin_b + b[j]


cdef bint next_run(
    const uint32_t *runs, Py_ssize_t count, Py_ssize_t *i, int64_t *begin, int64_t *end
) noexcept nogil:
    """Step to the next run inside the mask, joined with adjacent ones; False at the end."""
    # `i` and `end` are 0 before the first run.
    if i[0] + 1 >= count:
        return False
    begin[0] = end[0] + runs[i[0]]
    end[0] = begin[0] + runs[i[0] + 1]
    i[0] += 2
    while i[0] + 1 < count and runs[i[0]] == 0:
        end[0] += runs[i[0] + 1]
        i[0] += 2
    return True


cdef bint merge(const Runs *a, const Runs *b, bint intersect, Runs *to) noexcept nogil:
    """Write the union or intersection of two equal-sized masks; False if out of memory."""
    # Empty runs inside a mask appear where maskApi.c leaves them.
    cdef Py_ssize_t i = 0, j = 0
    cdef uint32_t remaining_a = a.at[0], remaining_b = b.at[0], step, run = 0
    cdef bint in_a = False, in_b = False, inside = False, was_inside = False
    to.count = 0
    while True:
        step = min(remaining_a, remaining_b)
        run += step
        remaining_a -= step
        remaining_b -= step
        if remaining_a == 0 and i + 1 < a.count:
            i += 1
            remaining_a = a.at[i]
            in_a = not in_a
        if remaining_b == 0 and j + 1 < b.count:
            j += 1
            remaining_b = b.at[j]
            in_b = not in_b
        inside = (in_a and in_b) if intersect else (in_a or in_b)
        if remaining_a == 0 and remaining_b == 0:
            return put_run(to, run)
        if inside != was_inside:
            if not put_run(to, run):
                return False
            run = 0
            was_inside = inside


# --- boundaries

# During erosion a mask is a list of run begins and ends; no run continues into the next column.


cdef bint erode_columns(
    const uint32_t *runs, Py_ssize_t count, int64_t height, int64_t depth, Runs *to
) noexcept nogil:
    """Erode by `depth` pixels above and below; False if out of memory."""
    cdef int64_t begin, end = 0, top = 0
    cdef Py_ssize_t i = 0
    to.count = 0
    while next_run(runs, count, &i, &begin, &end):
        top = begin - begin % height
        while top < end:
            if min(end, top + height) - max(begin, top) > 2 * depth and not (
                put_run(to, <uint32_t>(max(begin, top) + depth))
                and put_run(to, <uint32_t>(min(end, top + height) - depth))
            ):
                return False
            top += height
    return True


cdef bint intersect_shifted(const Runs *ends, int64_t shift, Runs *to) noexcept nogil:
    """Intersect a mask with itself shifted by `shift`; False if out of memory."""
    cdef int64_t begin, end
    cdef Py_ssize_t i = 0, j = 0
    to.count = 0
    while i < ends.count:
        begin = max(<int64_t>ends.at[i], ends.at[j] + shift)
        end = min(<int64_t>ends.at[i + 1], ends.at[j + 1] + shift)
        if begin < end and not (put_run(to, <uint32_t>begin) and put_run(to, <uint32_t>end)):
            return False
        # The shifted run never ends after run i, so j never passes i.
        if ends.at[i + 1] <= ends.at[j + 1] + shift:
            i += 2
        else:
            j += 2
    return True


cdef bint erode(
    const uint32_t *runs, Py_ssize_t count, int64_t height, int64_t depth, Runs *spare, Runs *to
) noexcept nogil:
    """Erode a mask by `depth` pixels, with the image border as outside."""
    # As `depth` erosions by a 3 x 3 square. Columns are intersected by doubling: with the next,
    # then two with the next two, and so on. Uses and may swap `to` and `spare`.
    cdef int64_t columns = 1, step
    cdef Runs swap
    cdef Py_ssize_t i
    if not erode_columns(runs, count, height, depth, to):
        return False
    while columns < 2 * depth + 1 and to.count:
        step = min(columns, 2 * depth + 1 - columns)
        if not intersect_shifted(to, step * height, spare):
            return False
        swap = to[0]
        to[0] = spare[0]
        spare[0] = swap
        columns += step
    # Each column now intersects the 2 * depth before it: move it to their center.
    for i in range(to.count):
        to.at[i] -= <uint32_t>(depth * height)
    return True


cdef bint subtract_runs(
    const uint32_t *runs, Py_ssize_t count, const Runs *inner, Runs *to
) noexcept nogil:
    """Write the runs of a mask without an eroded copy; False if out of memory."""
    cdef int64_t begin, end = 0, previous_end = 0
    cdef Py_ssize_t i = 0, k = 0
    to.count = 0
    while next_run(runs, count, &i, &begin, &end):
        while k < inner.count and inner.at[k] < end:
            if not (put_run(to, <uint32_t>(begin - previous_end))
                    and put_run(to, <uint32_t>(inner.at[k] - begin))):
                return False
            previous_end = inner.at[k]
            begin = inner.at[k + 1]
            k += 2
        if not (put_run(to, <uint32_t>(begin - previous_end))
                and put_run(to, <uint32_t>(end - begin))):
            return False
        previous_end = end
    return True


cdef int64_t boundary_depth(int64_t height, int64_t width, double ratio) noexcept nogil:
    """Return the boundary depth in pixels for an image size."""
    return max(<int64_t>rint(ratio * sqrt(<double>(height * height + width * width))), 1)


# --- polygons


cdef inline void add_crossing(
    int64_t column, int64_t row, int64_t height, Runs *to
) noexcept nogil:
    """Add a crossing of an edge and the middle of a column, at a row of the fine grid."""
    # The pixels below it are those with (row + 0.5) / 5 - 0.5 <= pixel row.
    to.at[to.count] = <uint32_t>column
    to.at[to.count + 1] = <uint32_t>min((max(row, 0) + 2) // GRID_STEPS, height)
    to.count += 2


cdef inline int64_t first_column(int64_t x) noexcept nogil:
    """Return the first column with its middle at or right of fine-grid x."""
    return (max(x, 0) + 2) // GRID_STEPS


cdef inline int64_t last_column(int64_t x, int64_t width) noexcept nogil:
    """Return the last column with its middle left of fine-grid x; -1 if none."""
    return min((x - 3) // GRID_STEPS, width - 1) if x >= 3 else -1


cdef bint trace(
    int64_t x, int64_t y, int64_t to_x, int64_t to_y, int64_t height, int64_t width, Runs *to
) noexcept nogil:
    """Add the crossings of a fine-grid edge and the middles of columns."""
    # The middle of column c is between 5c + 2 and 5c + 3. maskApi.c walks the longer side of the
    # edge, ascending, and rounds the other by adding a half and truncating. Only the steps at a
    # middle matter; they are computed directly.
    cdef int64_t across = llabs(to_x - x), along = llabs(to_y - y), column, last, t
    cdef double slope, inverse, reached
    if (x > to_x) if across >= along else (y > to_y):
        x, to_x = to_x, x
        y, to_y = to_y, y
    column = first_column(min(x, to_x))
    last = last_column(max(x, to_x), width)
    if column > last:  # always so for a vertical edge
        return True
    if not make_room(to, 2 * (last - column + 1)):
        return False
    if across >= along:
        slope = <double>(to_y - y) / across
        while column <= last:
            t = GRID_STEPS * column + 2 - x
            add_crossing(column, min(<int64_t>(y + slope * t + 0.5),
                              <int64_t>(y + slope * (t + 1) + 0.5)), height, to)
            column += 1
        return True
    slope = <double>(to_x - x) / along
    inverse = <double>along / (to_x - x)
    while column <= last:
        reached = GRID_STEPS * column + 3
        # The first step past the middle, or before it for an edge that goes left.
        t = min(max(<int64_t>((reached - 0.5 - x) * inverse), 1), along)
        if slope > 0:
            while t > 1 and x + slope * (t - 1) + 0.5 >= reached:
                t -= 1
            while t < along and x + slope * t + 0.5 < reached:
                t += 1
        else:
            while t < along and x + slope * t + 0.5 >= reached:
                t += 1
        add_crossing(column, y + t - 1, height, to)
        column += 1
    return True


cdef inline int64_t to_fine_grid(double coordinate) noexcept nogil:
    return <int64_t>(GRID_STEPS * coordinate + 0.5)


cdef int64_t max_runs(
    const double *points, Py_ssize_t count, int64_t height, int64_t width
) noexcept nogil:
    """Bound the number of runs of a polygon of `count` points."""
    cdef int64_t total = 0, x, to_x
    cdef Py_ssize_t i
    for i in range(count):
        x = to_fine_grid(points[2 * i])
        to_x = to_fine_grid(points[2 * (i + 1 if i + 1 < count else 0)])
        total += max(last_column(max(x, to_x), width) - first_column(min(x, to_x)) + 1, 0)
    return min(total, (height + 1) * width) + 1


cdef bint cancel_pairs(Runs *crossings, int64_t height) noexcept nogil:
    """Drop pairs of crossings at one pixel; False if out of memory."""
    cdef Py_ssize_t i, count = 0
    cdef uint32_t pixel
    if not ascend(crossings, height):
        return False
    for i in range(crossings.count):
        if count and crossings.at[count - 1] == crossings.at[i]:
            count -= 1
        else:
            crossings.at[count] = crossings.at[i]
            count += 1
    for i in range(count - 1, -1, -1):
        pixel = crossings.at[i]
        crossings.at[2 * i] = <uint32_t>(pixel // height)
        crossings.at[2 * i + 1] = <uint32_t>(pixel % height)
    crossings.count = 2 * count
    return True


cdef bint rasterize(
    const double *points, Py_ssize_t count, int64_t height, int64_t width, Runs *crossings, Runs *to
) noexcept nogil:
    """Write the runs of a polygon of `count` points; False if out of memory."""
    cdef Py_ssize_t i, after, max_count = MAX_CROSSINGS
    crossings.count = to.count = 0
    for i in range(count):
        after = i + 1 if i + 1 < count else 0
        if not trace(
            to_fine_grid(points[2 * i]), to_fine_grid(points[2 * i + 1]),
            to_fine_grid(points[2 * after]), to_fine_grid(points[2 * after + 1]),
            height, width, crossings,
        ):
            return False
        if crossings.count > max_count and height:  # memory is bounded by the pixels of the image
            if not cancel_pairs(crossings, height):
                return False
            max_count = max(2 * crossings.count, <Py_ssize_t>MAX_CROSSINGS)
    return ascend(crossings, height) and turn(crossings, height * width, to)


# --- contours


cdef struct Canvas:
    uint8_t *pixels     # of the bounding box, column by column
    int64_t left, top, width, height


cdef inline void _draw(
    Canvas *canvas, int64_t x0, int64_t y0, int64_t x1, int64_t y1
) noexcept nogil:
    """Draw an edge: the nearest pixel in each column, or row if it is steep."""
    # From left to right; halfway between two pixels, the one nearer to the start.
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


cdef bint _encode(Canvas *canvas, int64_t width, int64_t height, Runs *to) noexcept nogil:
    """Append the runs of the whole image; False without memory."""
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
                if not put_run(to, <uint32_t>(at - last)):
                    return False
                last, before = at, inside
    at = (canvas.left + canvas.width) * height
    if before:
        if not put_run(to, <uint32_t>(at - last)):
            return False
        last = at
    return last == width * height or put_run(to, <uint32_t>(width * height - last))


def fill_contour(
    const int32_t[:, ::1] points: NDArray[np.int32], int width, int height
) -> bytes:
    """Return the runs of a filled contour as bytes of uint32."""
    cdef Canvas canvas
    cdef Py_ssize_t index, after, n = points.shape[0]
    cdef int64_t right, bottom
    cdef Runs runs
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
    memset(&runs, 0, sizeof(Runs))
    with nogil:
        for index in range(n):
            after = index + 1 if index + 1 < n else 0
            _draw(&canvas, points[index, 0], points[index, 1], points[after, 0], points[after, 1])
            _toggle(&canvas, points[index, 0], points[index, 1], points[after, 0], points[after, 1])
        done = _encode(&canvas, width, height, &runs)
    free(canvas.pixels)
    try:
        if not done:
            raise MemoryError
        return (<const char *>runs.at)[:runs.count * sizeof(uint32_t)]
    finally:
        free(runs.at)


# --- a store of masks


cdef struct Shape:
    const uint32_t *runs
    Py_ssize_t count
    int64_t area
    Bounds bounds
    bint rasterized         # if not, only the bounds are set
    bint owns_runs
    Runs boundary           # NULL until it is needed
    int64_t boundary_area


cdef struct Scratch:
    Runs crossings, polygon, spare, mask


cdef Scratch _NO_SCRATCH
memset(&_NO_SCRATCH, 0, sizeof(Scratch))


cdef void _free_scratch(Scratch *scratch) noexcept nogil:
    free(scratch.crossings.at)
    free(scratch.polygon.at)
    free(scratch.spare.at)
    free(scratch.mask.at)


@final
cdef class Store:
    """Masks in the layout of :class:`detap.tables.masks.Masks`."""

    cdef const int32_t[:, ::1] sizes
    cdef const int64_t[::1] run_start, ring_start, ring_end
    cdef const uint32_t[::1] runs
    cdef const double[::1] points

    def __init__(
        self, sizes: NDArray[np.int32], run_start: NDArray[np.int64], runs: NDArray[np.uint32],
        ring_start: NDArray[np.int64], ring_end: NDArray[np.int64], points: NDArray[np.float64],
    ):
        self.sizes = sizes
        self.run_start = run_start
        self.runs = runs
        self.ring_start = ring_start
        self.ring_end = ring_end
        self.points = points

    cdef bint has_runs(self, Py_ssize_t mask) noexcept nogil:
        return self.ring_start[mask + 1] == self.ring_start[mask]

    cdef void load(self, Py_ssize_t mask, Shape *to) noexcept nogil:
        """Load the runs of a mask, or bounds that contain its polygons."""
        cdef int64_t i = self.first_point(self.ring_start[mask])
        cdef int64_t end = self.first_point(self.ring_start[mask + 1])
        cdef double left = 1e300, top = 1e300, right = -1e300, bottom = -1e300
        to.boundary.at = NULL
        to.owns_runs = False
        to.rasterized = self.has_runs(mask)
        if to.rasterized:
            to.count = self.run_start[mask + 1] - self.run_start[mask]
            to.runs = &self.runs[self.run_start[mask]] if to.count else NULL
            self.measure(mask, to)
            return
        while i < end:
            left = min(left, self.points[2 * i])
            right = max(right, self.points[2 * i])
            top = min(top, self.points[2 * i + 1])
            bottom = max(bottom, self.points[2 * i + 1])
            i += 1
        to.bounds.left = max(<int64_t>floor(left) - 1, 0)
        to.bounds.top = max(<int64_t>floor(top) - 1, 0)
        to.bounds.right = min(<int64_t>ceil(right) + 1, <int64_t>self.sizes[mask, 1] - 1)
        to.bounds.bottom = min(<int64_t>ceil(bottom) + 1, <int64_t>self.sizes[mask, 0] - 1)
        to.area = 0
        to.runs = NULL
        to.count = 0

    cdef int64_t first_point(self, int64_t ring) noexcept nogil:
        return self.ring_end[ring - 1] if ring else 0

    cdef void measure(self, Py_ssize_t mask, Shape *to) noexcept nogil:
        to.area = area_of(to.runs, to.count)
        to.bounds = bounds_of(to.runs, to.count, self.sizes[mask, 0])

    cdef bint rasterize_mask(self, Py_ssize_t mask, Scratch *scratch) noexcept nogil:
        """Rasterize a mask's polygons into `scratch.mask`; False if out of memory."""
        cdef int64_t ring = self.ring_start[mask], start, stop
        cdef int64_t height = self.sizes[mask, 0], width = self.sizes[mask, 1]
        cdef Runs swap
        cdef bint first = True
        while ring < self.ring_start[mask + 1]:
            start, stop = self.first_point(ring), self.ring_end[ring]
            if not rasterize(
                &self.points[2 * start], stop - start, height, width, &scratch.crossings,
                &scratch.polygon,
            ):
                return False
            if first:
                swap = scratch.mask
                scratch.mask = scratch.polygon
                scratch.polygon = swap
            else:
                if not merge(&scratch.mask, &scratch.polygon, False, &scratch.spare):
                    return False
                swap = scratch.mask
                scratch.mask = scratch.spare
                scratch.spare = swap
            first = False
            ring += 1
        return True

    def max_runs(self) -> NDArray[np.int64]:
        """Bound the number of runs of each polygon mask, (M,) int64."""
        bounds = np.zeros(self.sizes.shape[0], np.int64)
        cdef int64_t[::1] bound = bounds
        cdef int64_t ring, start
        cdef Py_ssize_t i
        with nogil:
            for i in range(self.sizes.shape[0]):
                for ring in range(self.ring_start[i], self.ring_start[i + 1]):
                    start = self.first_point(ring)
                    bound[i] += max_runs(
                        &self.points[0] + 2 * start, self.ring_end[ring] - start,
                        self.sizes[i, 0], self.sizes[i, 1])
        return bounds

    def areas_and_boxes(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the area (M,) int64 and box x, y, width, height (M, 4) float64."""
        cdef Py_ssize_t count = self.sizes.shape[0], i
        areas, boxes = np.zeros(count, np.int64), np.zeros((count, 4))
        cdef int64_t[::1] area = areas
        cdef double[:, ::1] box = boxes
        cdef Py_ssize_t length
        cdef const uint32_t *runs
        cdef Scratch scratch
        cdef bint done = True
        scratch = _NO_SCRATCH
        with nogil:
            for i in range(count):
                if self.has_runs(i):
                    length = self.run_start[i + 1] - self.run_start[i]
                    runs = &self.runs[self.run_start[i]] if length else NULL
                else:
                    done = self.rasterize_mask(i, &scratch)
                    if not done:
                        break
                    runs, length = scratch.mask.at, scratch.mask.count
                area[i] = box_of(runs, length, self.sizes[i, 0], &box[i, 0])
            _free_scratch(&scratch)
        if not done:
            raise MemoryError
        return areas, boxes

    def runs_of(self, Py_ssize_t mask) -> NDArray[np.uint32]:
        """Return the runs of a mask, (n,) uint32."""
        cdef Scratch scratch = _NO_SCRATCH
        cdef bint done
        if self.has_runs(mask):
            return np.array(self.runs[self.run_start[mask] : self.run_start[mask + 1]])
        with nogil:
            done = self.rasterize_mask(mask, &scratch)
        try:
            if not done:
                raise MemoryError
            return np.array(<uint32_t[: scratch.mask.count]>scratch.mask.at)
        finally:
            _free_scratch(&scratch)


# --- pairs


cdef struct PairList:
    int32_t *truth
    double *similarity
    Py_ssize_t count, capacity


cdef bint _append_pair(PairList *pairs, int32_t truth, double similarity) noexcept nogil:
    cdef void *grown
    if pairs.count == pairs.capacity:
        pairs.capacity = max(2 * pairs.capacity, <Py_ssize_t>8)
        grown = realloc(pairs.truth, pairs.capacity * sizeof(int32_t))
        if grown == NULL:
            return False
        pairs.truth = <int32_t *>grown
        grown = realloc(pairs.similarity, pairs.capacity * sizeof(double))
        if grown == NULL:
            return False
        pairs.similarity = <double *>grown
    pairs.truth[pairs.count] = truth
    pairs.similarity[pairs.count] = similarity
    pairs.count += 1
    return True


@final
cdef class MaskPairs:
    """IoUs of detections and ground truths of equal image and class, by group."""

    cdef Store detections, truths
    cdef const int32_t[::1] dt_mask, gt_mask, dt_rows, gt_rows
    cdef const int64_t[::1] dt_start, gt_start
    cdef const uint8_t[::1] crowd
    cdef double min_similarity, ratio
    cdef int64_t[::1] counts
    cdef PairList *pair_lists
    cdef Py_ssize_t groups, next
    cdef bint failed

    def __init__(
        self, detections: Store, truths: Store, dt_mask: NDArray[np.int32],
        gt_mask: NDArray[np.int32],
        groups: tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]],
        crowd: NDArray[np.uint8], min_similarity: float, ratio: float, counts: NDArray[np.int64],
    ):
        self.detections = detections
        self.truths = truths
        self.dt_mask = dt_mask
        self.gt_mask = gt_mask
        self.dt_rows, self.dt_start, self.gt_rows, self.gt_start = groups
        self.crowd = crowd
        self.min_similarity = min_similarity
        self.ratio = ratio
        self.counts = counts
        self.groups = self.dt_start.shape[0] - 1
        self.pair_lists = <PairList *>calloc(max(self.groups, 1), sizeof(PairList))
        if self.pair_lists == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.pair_lists != NULL:
            for i in range(self.groups):
                free(self.pair_lists[i].truth)
                free(self.pair_lists[i].similarity)
            free(self.pair_lists)

    def work(self) -> None:
        """Process groups until none is left; may run in several threads."""
        cdef Py_ssize_t first, last, group
        cdef bint done = True
        cdef Scratch scratch
        scratch = _NO_SCRATCH
        while done and not self.failed:
            first = self.next
            last = min(first + GROUPS_PER_STEP, self.groups)
            if first >= last:
                break
            self.next = last
            with nogil:
                for group in range(first, last):
                    done = self.pair(group, &scratch)
                    if not done:
                        break
        _free_scratch(&scratch)
        if not done:
            self.failed = True
            raise MemoryError

    cdef bint pair(self, Py_ssize_t group, Scratch *scratch) noexcept nogil:
        """Pair the rows of a group; False if out of memory."""
        cdef Py_ssize_t n = self.dt_start[group + 1] - self.dt_start[group]
        cdef Py_ssize_t g = self.gt_start[group + 1] - self.gt_start[group]
        cdef Shape *shapes = <Shape *>malloc((n + g) * sizeof(Shape))
        cdef Py_ssize_t i
        cdef bint done
        if shapes == NULL:
            return False
        for i in range(n):
            self.detections.load(self.dt_mask[self.dt_rows[self.dt_start[group] + i]], &shapes[i])
        for i in range(g):
            self.truths.load(self.gt_mask[self.gt_rows[self.gt_start[group] + i]], &shapes[n + i])
        done = self.compare(group, shapes, n, g, scratch)
        for i in range(n + g):
            if shapes[i].owns_runs:
                free(<void *>shapes[i].runs)
            free(shapes[i].boundary.at)
        free(shapes)
        return done

    cdef bint compare(
        self, Py_ssize_t group, Shape *shapes, Py_ssize_t n, Py_ssize_t g, Scratch *scratch
    ) noexcept nogil:
        cdef Py_ssize_t i, k
        cdef int32_t dt, truth
        cdef bint crowd
        cdef Shape *dt_shape
        cdef Shape *gt_shape
        cdef int64_t shared, union_area
        cdef double similarity
        for i in range(n):
            dt = self.dt_rows[self.dt_start[group] + i]
            dt_shape = &shapes[i]
            for k in range(g):
                truth = self.gt_rows[self.gt_start[group] + k]
                gt_shape = &shapes[n + k]
                crowd = self.crowd[truth]
                if not self.may_reach(dt_shape, gt_shape, crowd):
                    continue
                if not (
                    self.rasterize(self.detections, self.dt_mask[dt], dt_shape, scratch)
                    and self.rasterize(self.truths, self.gt_mask[truth], gt_shape, scratch)
                ):
                    return False
                if not self.may_reach(dt_shape, gt_shape, crowd):
                    continue
                shared = intersection_area(
                    dt_shape.runs, dt_shape.count, gt_shape.runs, gt_shape.count)
                union_area = dt_shape.area if crowd else dt_shape.area + gt_shape.area - shared
                if shared == 0:
                    continue
                similarity = <double>shared / <double>union_area
                if similarity < self.min_similarity:
                    continue
                if self.ratio and not crowd:
                    if not self.find_boundary(
                        self.detections, self.dt_mask[dt], dt_shape, scratch
                    ) or not self.find_boundary(
                        self.truths, self.gt_mask[truth], gt_shape, scratch
                    ):
                        return False
                    shared = intersection_area(
                        dt_shape.boundary.at, dt_shape.boundary.count,
                        gt_shape.boundary.at, gt_shape.boundary.count)
                    union_area = dt_shape.boundary_area + gt_shape.boundary_area - shared
                    similarity = min(similarity, <double>shared / <double>union_area)
                    if shared == 0 or similarity < self.min_similarity:
                        continue
                if not _append_pair(&self.pair_lists[group], truth, similarity):
                    return False
                self.counts[dt] += 1
        return True

    cdef bint may_reach(
        self, const Shape *dt_shape, const Shape *gt_shape, bint crowd
    ) noexcept nogil:
        """Return True if bounds and areas allow `min_similarity`."""
        cdef int64_t width = min(dt_shape.bounds.right, gt_shape.bounds.right) + 1
        cdef int64_t height = min(dt_shape.bounds.bottom, gt_shape.bounds.bottom) + 1
        cdef int64_t shared, union_area
        width -= max(dt_shape.bounds.left, gt_shape.bounds.left)
        height -= max(dt_shape.bounds.top, gt_shape.bounds.top)
        if width <= 0 or height <= 0:
            return False
        shared = width * height
        if dt_shape.rasterized:
            shared = min(shared, dt_shape.area)
        if gt_shape.rasterized:
            shared = min(shared, gt_shape.area)
        # A mask that is not rasterized yet may be as small as the shared area.
        union_area = dt_shape.area if dt_shape.rasterized else shared
        if not crowd:
            union_area += (gt_shape.area if gt_shape.rasterized else shared) - shared
        return shared > 0 and <double>shared / <double>union_area >= self.min_similarity

    cdef bint rasterize(
        self, Store store, Py_ssize_t mask, Shape *to, Scratch *scratch
    ) noexcept nogil:
        """Rasterize a mask for this group, which owns its runs, once."""
        cdef uint32_t *runs
        if to.rasterized:
            return True
        if not store.rasterize_mask(mask, scratch):
            return False
        runs = <uint32_t *>malloc(max(scratch.mask.count, 1) * sizeof(uint32_t))
        if runs == NULL:
            return False
        memcpy(runs, scratch.mask.at, scratch.mask.count * sizeof(uint32_t))
        to.runs, to.count = runs, scratch.mask.count
        to.rasterized = to.owns_runs = True
        store.measure(mask, to)
        return True

    cdef bint find_boundary(
        self, Store store, Py_ssize_t mask, Shape *to, Scratch *scratch
    ) noexcept nogil:
        """Compute the boundary of a rasterized mask, once per group."""
        cdef int64_t height = store.sizes[mask, 0]
        cdef int64_t depth = boundary_depth(height, store.sizes[mask, 1], self.ratio)
        if to.boundary.at != NULL:
            return True
        to.boundary.count = to.boundary.room = 0
        if not (erode(to.runs, to.count, height, depth, &scratch.polygon, &scratch.mask)
                and subtract_runs(to.runs, to.count, &scratch.mask, &to.boundary)):
            return False
        to.boundary_area = area_of(to.boundary.at, to.boundary.count)
        return True

    def gather(self, const int64_t[::1] start, int32_t[::1] truth, double[::1] similarity) -> None:
        """Write the pairs in the order of the detections."""
        cdef Py_ssize_t group, i, offset, count
        cdef int32_t dt
        for group in range(self.groups):
            offset = 0
            for i in range(self.dt_start[group], self.dt_start[group + 1]):
                dt = self.dt_rows[i]
                count = self.counts[dt]
                if count:
                    memcpy(&truth[start[dt]], self.pair_lists[group].truth + offset,
                           count * sizeof(int32_t))
                    memcpy(&similarity[start[dt]], self.pair_lists[group].similarity + offset,
                           count * sizeof(double))
                offset += count
