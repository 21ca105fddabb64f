"""How much quadrilaterals overlap, compiled. See polygons.py."""

from libc.math cimport fabs, fmax, fmin
from libc.stdint cimport int32_t, int64_t, uint8_t

from detap.core._overlap cimport share_of

cdef enum:
    MOST = 9  # corners of what is left of a triangle after three cuts, however they are rounded


cdef struct Point:
    double x, y


cdef inline double _cross(Point a, Point b, Point c) noexcept nogil:
    """Return twice the area of a triangle, above 0 where its corners turn to the left."""
    return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x)


cdef int _cut(const Point* corners, int count, Point a, Point b, Point* out) noexcept nogil:
    """Keep what of a convex polygon lies to the left of the line from a to b."""
    cdef int i, kept = 0
    cdef Point here, there
    cdef double side, next_side, part
    if count == 0:
        return 0
    here = corners[count - 1]
    side = _cross(a, b, here)
    for i in range(count):
        there = corners[i]
        next_side = _cross(a, b, there)
        if (side < 0.0) != (next_side < 0.0):
            part = side / (side - next_side)
            out[kept].x = here.x + part * (there.x - here.x)
            out[kept].y = here.y + part * (there.y - here.y)
            kept += 1
        if next_side >= 0.0:
            out[kept] = there
            kept += 1
        here = there
        side = next_side
    return kept


cdef double _area(const Point* corners, int count) noexcept nogil:
    """Return the signed area of a polygon, seen from its first corner."""
    cdef double twice = 0.0
    cdef int i
    for i in range(1, count - 1):
        twice += _cross(corners[0], corners[i], corners[i + 1])
    return twice / 2


cdef int _halve(const Point* corners, Point* triangles, double* weights) noexcept nogil:
    """Split a quadrilateral at its first corner into triangles that turn left, and their signs.

    Where it is concave, the sign of one of them takes from the other what is too much.
    """
    cdef int half, found = 0
    cdef double turn
    for half in range(2):
        turn = _cross(corners[0], corners[half + 1], corners[half + 2])
        if turn == 0.0:
            continue
        triangles[3 * found] = corners[0]
        triangles[3 * found + 1] = corners[half + 1 if turn > 0.0 else half + 2]
        triangles[3 * found + 2] = corners[half + 2 if turn > 0.0 else half + 1]
        weights[found] = 1.0 if turn > 0.0 else -1.0
        found += 1
    return found


cdef double _share(const double* detection, const double* truth, bint crowd) noexcept nogil:
    """Return intersection over union, or over the detection's own area for crowds."""
    cdef Point[4] first, second
    cdef Point[6] triangles, others
    cdef double[2] weights, other_weights
    cdef Point[MOST] left, right
    cdef double common = 0.0, area, truth_area
    cdef int i, j, count
    # Seen from a corner of one of them, nothing is lost to the size of coordinates.
    for i in range(4):
        first[i].x = detection[2 * i] - truth[0]
        first[i].y = detection[2 * i + 1] - truth[1]
        second[i].x = truth[2 * i] - truth[0]
        second[i].y = truth[2 * i + 1] - truth[1]
    area, truth_area = _area(first, 4), _area(second, 4)
    cdef int halves = _halve(first, triangles, weights)
    cdef int other_halves = _halve(second, others, other_weights)
    for i in range(halves):
        for j in range(other_halves):
            count = _cut(triangles + 3 * i, 3, others[3 * j], others[3 * j + 1], left)
            count = _cut(left, count, others[3 * j + 1], others[3 * j + 2], right)
            count = _cut(right, count, others[3 * j + 2], others[3 * j], left)
            common += weights[i] * other_weights[j] * _area(left, count)
    if (area < 0.0) != (truth_area < 0.0):
        common = -common
    area, truth_area = fabs(area), fabs(truth_area)
    # Above 1 are last bits, and bow ties of which one half all but cancels the other's area.
    return fmin(share_of(common, area, truth_area, crowd), 1.0) if common > 0.0 else 0.0


cdef inline bint _meet(const double* a, const double* b) noexcept nogil:
    """Tell whether two boxes, x1 y1 x2 y2, have an area in common."""
    return fmin(a[2], b[2]) > fmax(a[0], b[0]) and fmin(a[3], b[3]) > fmax(a[1], b[1])


def fill_areas(const double[:, ::1] polygons, double[::1] out) -> None:
    """Write the area of each quadrilateral."""
    cdef Point[4] corners
    cdef Py_ssize_t n, i
    if polygons.shape[1] != 8 or out.shape[0] != polygons.shape[0]:
        raise ValueError("the shapes do not go together")
    with nogil:
        for n in range(polygons.shape[0]):
            for i in range(4):
                corners[i].x, corners[i].y = polygons[n, 2 * i], polygons[n, 2 * i + 1]
            out[n] = fabs(_area(corners, 4))


def fill_shares(
    const double[:, ::1] detections, const double[:, ::1] truths, const uint8_t[::1] crowd,
    double[::1] out,
) -> None:
    """Write the overlap of each detection with the ground truth beside it."""
    cdef Py_ssize_t p
    if (
        detections.shape[1] != 8 or truths.shape[1] != 8
        or not detections.shape[0] == truths.shape[0] == crowd.shape[0] == out.shape[0]
    ):
        raise ValueError("the shapes do not go together")
    with nogil:
        for p in range(out.shape[0]):
            out[p] = _share(&detections[p, 0], &truths[p, 0], crowd[p])


def fill_meeting(
    const double[:, ::1] detections, const double[:, ::1] truths,
    const int32_t[::1] order, const int64_t[::1] begin, const int64_t[::1] end,
    int64_t[::1] start, int32_t[::1] found,
) -> None:
    """Write which ground truths have bounds that meet those of each detection.

    Those of its image and class are ``order[begin : end]``; what is found for detection n goes
    from ``start[n]`` to ``start[n + 1]``. Where there is no room in `found`, they are counted only.
    """
    cdef Py_ssize_t n, i
    cdef int64_t count = 0
    cdef bint filling = found.shape[0] > 0
    if (
        detections.shape[1] != 4 or truths.shape[1] != 4 or order.shape[0] != truths.shape[0]
        or not detections.shape[0] == begin.shape[0] == end.shape[0] == start.shape[0] - 1
    ):
        raise ValueError("the shapes do not go together")
    with nogil:
        for n in range(detections.shape[0]):
            for i in range(begin[n], end[n]):
                if _meet(&detections[n, 0], &truths[order[i], 0]):
                    if filling:
                        found[count] = order[i]
                    count += 1
            start[n + 1] = count
