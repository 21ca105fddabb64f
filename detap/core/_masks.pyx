"""Masks as runs of pixels, column by column: rasterised, overlapped. See masks.py.

A run list begins with pixels outside the mask and alternates (`tables/_runs.pyx`). Two masks are compared by walking
both lists at once, so that nothing of the size of an image is ever held.
"""

from cython cimport final
from libc.math cimport ceil, floor, rint, sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, llabs, malloc, realloc
from libc.string cimport memcpy, memset

from detap.tables._runs cimport (
    Bounds, Runs, area_of, ascend, bounds_of, box_of, make_room, put_run, turn
)


cdef enum:
    TAKEN_AT_ONCE = 32      # cells of image and class
    FINER = 5               # edges are traced at so many steps a pixel
    MANY_CROSSINGS = 1 << 18    # numbers, two a crossing; beyond, those that cancel out are dropped


# --- run lists


cdef int64_t common_to(
    const uint32_t *a, Py_ssize_t count_a, const uint32_t *b, Py_ssize_t count_b
) noexcept nogil:
    """Return how many pixels two masks of one size have in common."""
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
    """Step to the next run inside the mask, with those that follow without a gap; False at the end.

    Both `i` and `end` are 0 before the first.
    """
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
    """Write the union of two masks of as many pixels, or what they share; False without memory.

    In the reference's order of steps: an empty run within a mask stays where it leaves one.
    """
    cdef Py_ssize_t i = 0, j = 0
    cdef uint32_t left_a = a.at[0], left_b = b.at[0], step, run = 0
    cdef bint in_a = False, in_b = False, inside = False, was = False
    to.count = 0
    while True:
        step = min(left_a, left_b)
        run += step
        left_a -= step
        left_b -= step
        if left_a == 0 and i + 1 < a.count:
            i += 1
            left_a = a.at[i]
            in_a = not in_a
        if left_b == 0 and j + 1 < b.count:
            j += 1
            left_b = b.at[j]
            in_b = not in_b
        inside = (in_a and in_b) if intersect else (in_a or in_b)
        if left_a == 0 and left_b == 0:
            return put_run(to, run)
        if inside != was:
            if not put_run(to, run):
                return False
            run = 0
            was = inside


# --- boundaries

# While a mask is eroded, it is the begin and the end of each of its runs in turn, none of which
# goes on in the next column.


cdef bint shorten(
    const uint32_t *runs, Py_ssize_t count, int64_t height, int64_t depth, Runs *to
) noexcept nogil:
    """Write what has as many pixels of the mask above and below; False when out of memory."""
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


cdef bint meet(const Runs *ends, int64_t shift, Runs *to) noexcept nogil:
    """Write what of a mask it has `shift` pixels before too; False when out of memory."""
    cdef int64_t begin, end
    cdef Py_ssize_t i = 0, j = 0
    to.count = 0
    while i < ends.count:
        begin = max(<int64_t>ends.at[i], ends.at[j] + shift)
        end = min(<int64_t>ends.at[i + 1], ends.at[j + 1] + shift)
        if begin < end and not (put_run(to, <uint32_t>begin) and put_run(to, <uint32_t>end)):
            return False
        # The one before ends first, or with it, sooner or later: j never passes i.
        if ends.at[i + 1] <= ends.at[j + 1] + shift:
            i += 2
        else:
            j += 2
    return True


cdef bint erode(
    const uint32_t *runs, Py_ssize_t count, int64_t height, int64_t depth, Runs *spare, Runs *to
) noexcept nogil:
    """Write what has only pixels of the mask within `depth` on every side, and no border.

    The same as `depth` times what has only such neighbours. Of columns beside each other is kept
    what all have: of two, of the four that two such are, and so on. `to` and `spare` are swapped.
    """
    cdef int64_t columns = 1, step
    cdef Runs swap
    cdef Py_ssize_t i
    if not shorten(runs, count, height, depth, to):
        return False
    while columns < 2 * depth + 1 and to.count:
        step = min(columns, 2 * depth + 1 - columns)
        if not meet(to, step * height, spare):
            return False
        swap = to[0]
        to[0] = spare[0]
        spare[0] = swap
        columns += step
    # Each column now holds what all from 2 * depth before have, and belongs to the middle of them.
    for i in range(to.count):
        to.at[i] -= <uint32_t>(depth * height)
    return True


cdef bint outline(
    const uint32_t *runs, Py_ssize_t count, const Runs *inner, Runs *to
) noexcept nogil:
    """Write the runs of a mask without what is left of it eroded; False when out of memory."""
    cdef int64_t begin, end = 0, behind = 0
    cdef Py_ssize_t i = 0, k = 0
    to.count = 0
    while next_run(runs, count, &i, &begin, &end):
        while k < inner.count and inner.at[k] < end:
            if not (put_run(to, <uint32_t>(begin - behind))
                    and put_run(to, <uint32_t>(inner.at[k] - begin))):
                return False
            behind = inner.at[k]
            begin = inner.at[k + 1]
            k += 2
        if not (put_run(to, <uint32_t>(begin - behind)) and put_run(to, <uint32_t>(end - begin))):
            return False
        behind = end
    return True


cdef int64_t depth_of(int64_t height, int64_t width, double ratio) noexcept nogil:
    """Return how deep the boundary is in an image of this size, in pixels."""
    return max(<int64_t>rint(ratio * sqrt(<double>(height * height + width * width))), 1)


# --- polygons


cdef inline void cross(
    int64_t column, int64_t row, int64_t height, Runs *to
) noexcept nogil:
    """Note that an edge crosses the middle of a column, from a row of the finer grid on.

    The pixels from there on are those whose middle is not above: from (row + 0.5) / 5 - 0.5.
    """
    to.at[to.count] = <uint32_t>column
    to.at[to.count + 1] = <uint32_t>min((max(row, 0) + 2) // FINER, height)
    to.count += 2


cdef inline int64_t first_column(int64_t x) noexcept nogil:
    """Return the first column whose middle is not left of x, of the finer grid."""
    return (max(x, 0) + 2) // FINER


cdef inline int64_t last_column(int64_t x, int64_t width) noexcept nogil:
    """Return the last column whose middle is left of x, of the finer grid; -1 if there is none."""
    return min((x - 3) // FINER, width - 1) if x >= 3 else -1


cdef bint trace(
    int64_t x, int64_t y, int64_t to_x, int64_t to_y, int64_t height, int64_t width, Runs *to
) noexcept nogil:
    """Note where an edge of the finer grid crosses the middles of columns: of each, column and row.

    The middle of column c lies between 5c + 2 and 5c + 3. The reference walks the longer side of
    the edge, always upwards on it, and rounds the other by adding a half and cutting off: only the
    steps at a middle matter, and which they are can be worked out.
    """
    cdef int64_t across = llabs(to_x - x), along = llabs(to_y - y), column, last, t
    cdef double slope, inverse, reached
    if across == 0:
        return True
    if (x > to_x) if across >= along else (y > to_y):
        x, to_x = to_x, x
        y, to_y = to_y, y
    column = first_column(min(x, to_x))
    last = last_column(max(x, to_x), width)
    if column > last:
        return True
    if not make_room(to, 2 * (last - column + 1)):
        return False
    if across >= along:
        slope = <double>(to_y - y) / across
        while column <= last:
            t = FINER * column + 2 - x
            cross(column, min(<int64_t>(y + slope * t + 0.5),
                              <int64_t>(y + slope * (t + 1) + 0.5)), height, to)
            column += 1
        return True
    slope = <double>(to_x - x) / along
    inverse = <double>along / (to_x - x)
    while column <= last:
        reached = FINER * column + 3
        # The first step that stands beyond the middle, or before it where the edge goes left.
        t = min(max(<int64_t>((reached - 0.5 - x) * inverse), 1), along)
        if slope > 0:
            while t > 1 and x + slope * (t - 1) + 0.5 >= reached:
                t -= 1
            while t < along and x + slope * t + 0.5 < reached:
                t += 1
        else:
            while t > 1 and x + slope * (t - 1) + 0.5 < reached:
                t -= 1
            while t < along and x + slope * t + 0.5 >= reached:
                t += 1
        cross(column, y + t - 1, height, to)
        column += 1
    return True


cdef inline int64_t finer(double coordinate) noexcept nogil:
    return <int64_t>(FINER * coordinate + 0.5)


cdef int64_t most_runs(
    const double *points, Py_ssize_t count, int64_t height, int64_t width
) noexcept nogil:
    """Return an upper bound on the runs of a polygon of `count` points."""
    cdef int64_t total = 0, x, to_x
    cdef Py_ssize_t i
    for i in range(count):
        x, to_x = finer(points[2 * i]), finer(points[2 * (i + 1 if i + 1 < count else 0)])
        total += max(last_column(max(x, to_x), width) - first_column(min(x, to_x)) + 1, 0)
    return min(total, (height + 1) * width) + 1


cdef bint cancel(Runs *crossings, int64_t height) noexcept nogil:
    """Drop crossings at the same pixel in pairs, which change nothing; False when out of memory."""
    cdef Py_ssize_t i, kept = 0
    cdef uint32_t pixel
    if not ascend(crossings, height, False):
        return False
    for i in range(crossings.count):
        if kept and crossings.at[kept - 1] == crossings.at[i]:
            kept -= 1
        else:
            crossings.at[kept] = crossings.at[i]
            kept += 1
    for i in range(kept - 1, -1, -1):
        pixel = crossings.at[i]
        crossings.at[2 * i] = <uint32_t>(pixel // height)
        crossings.at[2 * i + 1] = <uint32_t>(pixel % height)
    crossings.count = 2 * kept
    return True


cdef bint rasterise(
    const double *points, Py_ssize_t count, int64_t height, int64_t width, Runs *crossings, Runs *to
) noexcept nogil:
    """Write the runs of a polygon of `count` points; False when out of memory.

    Memory is bounded by the pixels of the image, too, however often edges cross them.
    """
    cdef Py_ssize_t i, after, room = MANY_CROSSINGS
    crossings.count = to.count = 0
    for i in range(count):
        after = i + 1 if i + 1 < count else 0
        if not trace(
            finer(points[2 * i]), finer(points[2 * i + 1]), finer(points[2 * after]),
            finer(points[2 * after + 1]), height, width, crossings,
        ):
            return False
        if crossings.count > room and height:
            if not cancel(crossings, height):
                return False
            room = max(2 * crossings.count, <Py_ssize_t>MANY_CROSSINGS)
    return ascend(crossings, height, False) and turn(crossings, height * width, to)


# --- a store of masks


cdef struct Shape:
    const uint32_t *runs
    Py_ssize_t count
    int64_t area
    Bounds bounds
    bint known              # whether the runs are there, or only bounds
    Runs edge               # of the boundary; NULL where it is not yet asked for
    int64_t edge_area


cdef struct Scratch:
    Runs crossings, part, united, found


cdef Scratch _NO_SCRATCH
memset(&_NO_SCRATCH, 0, sizeof(Scratch))


cdef void _free(Scratch *scratch) noexcept nogil:
    free(scratch.crossings.at)
    free(scratch.part.at)
    free(scratch.united.at)
    free(scratch.found.at)


@final
cdef class Store:
    """Masks as :class:`detap.tables.masks.Masks` has them."""

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

    cdef void guess(self, Py_ssize_t mask, Shape *to) noexcept nogil:
        """Take the runs where they are there; else bounds that hold the polygons."""
        cdef int64_t i = self.first_point(self.ring_start[mask])
        cdef int64_t end = self.first_point(self.ring_start[mask + 1])
        cdef double left = 1e300, top = 1e300, right = -1e300, bottom = -1e300
        to.edge.at = NULL
        to.known = self.has_runs(mask)
        if to.known:
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

    cdef bint draw(self, Py_ssize_t mask, Scratch *scratch) noexcept nogil:
        """Put the union of a mask's polygons into `scratch.found`; False when out of memory."""
        cdef int64_t ring = self.ring_start[mask], start, stop
        cdef int64_t height = self.sizes[mask, 0], width = self.sizes[mask, 1]
        cdef Runs swap
        cdef bint first = True
        while ring < self.ring_start[mask + 1]:
            start, stop = self.first_point(ring), self.ring_end[ring]
            if not rasterise(
                &self.points[2 * start], stop - start, height, width, &scratch.crossings,
                &scratch.part,
            ):
                return False
            if first:
                swap = scratch.found
                scratch.found = scratch.part
                scratch.part = swap
            else:
                if not merge(&scratch.found, &scratch.part, False, &scratch.united):
                    return False
                swap = scratch.found
                scratch.found = scratch.united
                scratch.united = swap
            first = False
            ring += 1
        return True

    def most_runs(self) -> NDArray[np.int64]:
        """Return an upper bound on the runs that the polygons of each mask become, (M,) int64."""
        import numpy as np

        bounds = np.zeros(self.sizes.shape[0], np.int64)
        cdef int64_t[::1] most = bounds
        cdef int64_t ring, start
        cdef Py_ssize_t i
        with nogil:
            for i in range(self.sizes.shape[0]):
                for ring in range(self.ring_start[i], self.ring_start[i + 1]):
                    start = self.first_point(ring)
                    most[i] += most_runs(
                        &self.points[0] + 2 * start, self.ring_end[ring] - start,
                        self.sizes[i, 0], self.sizes[i, 1])
        return bounds

    def areas(self) -> NDArray[np.int64]:
        """Return how many pixels each mask has, (M,) int64."""
        import numpy as np

        cdef Py_ssize_t count = self.sizes.shape[0], i
        areas = np.zeros(count, np.int64)
        cdef int64_t[::1] area = areas
        cdef Scratch scratch
        cdef bint done = True
        scratch = _NO_SCRATCH
        with nogil:
            for i in range(count):
                if self.has_runs(i):
                    area[i] = area_of(
                        &self.runs[0] + self.run_start[i], self.run_start[i + 1] - self.run_start[i])
                    continue
                done = self.draw(i, &scratch)
                if not done:
                    break
                area[i] = area_of(scratch.found.at, scratch.found.count)
            _free(&scratch)
        if not done:
            raise MemoryError
        return areas

    def measured(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return of each mask its area (M,) int64, and left, top, width, height (M, 4) float64."""
        import numpy as np

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
                    done = self.draw(i, &scratch)
                    if not done:
                        break
                    runs, length = scratch.found.at, scratch.found.count
                area[i] = box_of(runs, length, self.sizes[i, 0], &box[i, 0])
            _free(&scratch)
        if not done:
            raise MemoryError
        return areas, boxes

    def runs_of(self, Py_ssize_t mask) -> NDArray[np.uint32]:
        """Return the runs of a mask, (n,) uint32."""
        import numpy as np

        cdef Scratch scratch = _NO_SCRATCH
        cdef bint done
        if self.has_runs(mask):
            return np.array(self.runs[self.run_start[mask] : self.run_start[mask + 1]])
        with nogil:
            done = self.draw(mask, &scratch)
        try:
            if not done:
                raise MemoryError
            return np.array(<uint32_t[: scratch.found.count]>scratch.found.at)
        finally:
            _free(&scratch)


# --- pairs


cdef struct Found:
    int32_t *truth
    double *overlap
    Py_ssize_t count, room


cdef bint _put(Found *found, int32_t truth, double overlap) noexcept nogil:
    cdef void *grown
    if found.count == found.room:
        found.room = max(2 * found.room, <Py_ssize_t>8)
        grown = realloc(found.truth, found.room * sizeof(int32_t))
        if grown == NULL:
            return False
        found.truth = <int32_t *>grown
        grown = realloc(found.overlap, found.room * sizeof(double))
        if grown == NULL:
            return False
        found.overlap = <double *>grown
    found.truth[found.count] = truth
    found.overlap[found.count] = overlap
    found.count += 1
    return True


@final
cdef class Pairing:
    """The overlaps of detections and ground truths of one image and class, cell by cell.

    Parameters
    ----------
    detections, truths : Store
    dt_mask, gt_mask : (N,) and (G,) int32
        The mask of each row.
    dt_rows, gt_rows : int32
        Rows, cell by cell, ascending in each.
    dt_start, gt_start : (C + 1,) int64
        Where each cell begins in them.
    crowd : (G,) uint8
    lowest : float
        Overlaps below are left out; so are those of nothing.
    ratio : float
        Of the depth of boundaries to the diagonal of the image, where the overlap is the lesser of
        that of masks and that of boundaries; 0 where it is that of masks.
    counts : (N,) int64
        Filled with how many pairs each detection has.
    """

    cdef Store detections, truths
    cdef const int32_t[::1] dt_mask, gt_mask, dt_rows, gt_rows
    cdef const int64_t[::1] dt_start, gt_start
    cdef const uint8_t[::1] crowd
    cdef double lowest, ratio
    cdef int64_t[::1] counts
    cdef Found *found
    cdef Py_ssize_t cells, next
    cdef bint failed

    def __init__(
        self, detections: Store, truths: Store, dt_mask: NDArray[np.int32],
        gt_mask: NDArray[np.int32],
        cells: tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]],
        crowd: NDArray[np.uint8], lowest: float, ratio: float, counts: NDArray[np.int64],
    ):
        self.detections = detections
        self.truths = truths
        self.dt_mask = dt_mask
        self.gt_mask = gt_mask
        self.dt_rows, self.dt_start, self.gt_rows, self.gt_start = cells
        self.crowd = crowd
        self.lowest = lowest
        self.ratio = ratio
        self.counts = counts
        self.cells = self.dt_start.shape[0] - 1
        self.found = <Found *>calloc(max(self.cells, 1), sizeof(Found))
        if self.found == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.found != NULL:
            for i in range(self.cells):
                free(self.found[i].truth)
                free(self.found[i].overlap)
            free(self.found)

    def work(self) -> None:
        """Take cells until none is left; threads may share them."""
        cdef Py_ssize_t first, last, cell
        cdef bint done = True
        cdef Scratch scratch
        scratch = _NO_SCRATCH
        while done and not self.failed:
            first = self.next
            last = min(first + TAKEN_AT_ONCE, self.cells)
            if first >= last:
                break
            self.next = last
            with nogil:
                for cell in range(first, last):
                    done = self.pair(cell, &scratch)
                    if not done:
                        break
        _free(&scratch)
        if not done:
            self.failed = True
            raise MemoryError

    cdef bint pair(self, Py_ssize_t cell, Scratch *scratch) noexcept nogil:
        """Pair the rows of a cell; False when out of memory."""
        cdef Py_ssize_t n = self.dt_start[cell + 1] - self.dt_start[cell]
        cdef Py_ssize_t g = self.gt_start[cell + 1] - self.gt_start[cell]
        cdef Shape *shapes = <Shape *>malloc((n + g) * sizeof(Shape))
        cdef uint8_t *drawn = <uint8_t *>malloc(n + g)
        cdef Py_ssize_t i
        cdef bint done = shapes != NULL and drawn != NULL
        if done:
            for i in range(n):
                self.detections.guess(self.dt_mask[self.dt_rows[self.dt_start[cell] + i]],
                                  &shapes[i])
                drawn[i] = 0
            for i in range(g):
                self.truths.guess(self.gt_mask[self.gt_rows[self.gt_start[cell] + i]],
                                  &shapes[n + i])
                drawn[n + i] = 0
            done = self.compare(cell, shapes, drawn, n, g, scratch)
            for i in range(n + g):
                if drawn[i]:
                    free(<void *>shapes[i].runs)
                free(shapes[i].edge.at)
        free(shapes)
        free(drawn)
        return done

    cdef bint compare(
        self, Py_ssize_t cell, Shape *shapes, uint8_t *drawn, Py_ssize_t n, Py_ssize_t g,
        Scratch *scratch,
    ) noexcept nogil:
        cdef Py_ssize_t i, k
        cdef int32_t dt, truth
        cdef bint crowd
        cdef Shape *one
        cdef Shape *other
        cdef int64_t common, most, whole
        cdef double overlap
        for i in range(n):
            dt = self.dt_rows[self.dt_start[cell] + i]
            one = &shapes[i]
            for k in range(g):
                truth = self.gt_rows[self.gt_start[cell] + k]
                other = &shapes[n + k]
                crowd = self.crowd[truth]
                if not self.may_reach(one, other, crowd):
                    continue
                if not one.known:
                    if not self.draw(self.detections, self.dt_mask[dt], one, scratch):
                        return False
                    drawn[i] = 1
                if not other.known:
                    if not self.draw(self.truths, self.gt_mask[truth], other, scratch):
                        return False
                    drawn[n + k] = 1
                if not self.may_reach(one, other, crowd):
                    continue
                common = common_to(one.runs, one.count, other.runs, other.count)
                whole = one.area if crowd else one.area + other.area - common
                if common == 0:
                    continue
                overlap = <double>common / <double>whole
                if overlap < self.lowest:
                    continue
                if self.ratio and not crowd:
                    if not (self.edge(self.detections, self.dt_mask[dt], one, scratch)
                            and self.edge(self.truths, self.gt_mask[truth], other, scratch)):
                        return False
                    common = common_to(
                        one.edge.at, one.edge.count, other.edge.at, other.edge.count)
                    whole = one.edge_area + other.edge_area - common
                    overlap = min(overlap, <double>common / <double>whole)
                    if common == 0 or overlap < self.lowest:
                        continue
                if not _put(&self.found[cell], truth, overlap):
                    return False
                self.counts[dt] += 1
        return True

    cdef bint may_reach(self, const Shape *one, const Shape *other, bint crowd) noexcept nogil:
        """Tell whether bounds and areas allow the lowest overlap that is wanted."""
        cdef int64_t wide = min(one.bounds.right, other.bounds.right) + 1
        cdef int64_t high = min(one.bounds.bottom, other.bounds.bottom) + 1
        cdef int64_t common, whole
        wide -= max(one.bounds.left, other.bounds.left)
        high -= max(one.bounds.top, other.bounds.top)
        if wide <= 0 or high <= 0:
            return False
        common = wide * high
        if one.known:
            common = min(common, one.area)
        if other.known:
            common = min(common, other.area)
        # What is not drawn yet may be no larger than what both have in common.
        whole = one.area if one.known else common
        if not crowd:
            whole += (other.area if other.known else common) - common
        return common > 0 and <double>common / <double>whole >= self.lowest

    cdef bint draw(self, Store store, Py_ssize_t mask, Shape *to, Scratch *scratch) noexcept nogil:
        """Rasterise a mask for this cell, which owns its runs."""
        cdef uint32_t *runs
        if not store.draw(mask, scratch):
            return False
        runs = <uint32_t *>malloc(max(scratch.found.count, 1) * sizeof(uint32_t))
        if runs == NULL:
            return False
        memcpy(runs, scratch.found.at, scratch.found.count * sizeof(uint32_t))
        to.runs, to.count, to.known = runs, scratch.found.count, True
        store.measure(mask, to)
        return True

    cdef bint edge(self, Store store, Py_ssize_t mask, Shape *to, Scratch *scratch) noexcept nogil:
        """Find the boundary of a mask whose runs are known, for this cell; once."""
        cdef int64_t height = store.sizes[mask, 0]
        cdef int64_t depth = depth_of(height, store.sizes[mask, 1], self.ratio)
        if to.edge.at != NULL:
            return True
        to.edge.count = to.edge.room = 0
        if not (erode(to.runs, to.count, height, depth, &scratch.part, &scratch.found)
                and outline(to.runs, to.count, &scratch.found, &to.edge)):
            return False
        to.edge_area = area_of(to.edge.at, to.edge.count)
        return True

    def gather(self, const int64_t[::1] start, int32_t[::1] truth, double[::1] overlap) -> None:
        """Write the pairs in the order of the detections' rows."""
        cdef Py_ssize_t cell, i, at, count
        cdef int32_t dt
        for cell in range(self.cells):
            at = 0
            for i in range(self.dt_start[cell], self.dt_start[cell + 1]):
                dt = self.dt_rows[i]
                count = self.counts[dt]
                if count:
                    memcpy(&truth[start[dt]], self.found[cell].truth + at,
                           count * sizeof(int32_t))
                    memcpy(&overlap[start[dt]], self.found[cell].overlap + at,
                           count * sizeof(double))
                at += count
