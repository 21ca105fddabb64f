"""IoU of quadrilaterals, compiled. See polygons.py."""

from libc.math cimport fabs, fmax, fmin
from libc.stdint cimport int32_t, int64_t, uint8_t

from detap.core._overlap cimport divide_overlap

cdef enum:
    MAX_CORNERS = 9  # of a triangle after three cuts, with any rounding


cdef struct Point:
    double x, y


cdef inline double _cross(Point a, Point b, Point c) noexcept nogil:
    """Return twice the signed area of a triangle, above 0 if it turns left."""
    return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x)


cdef int _clip(const Point* corners, int count, Point a, Point b, Point* out) noexcept nogil:
    """Clip a convex polygon to the left of the line from a to b."""
    cdef int i, n_out = 0
    cdef Point current, following
    cdef double side, next_side, fraction
    if count == 0:
        return 0
    current = corners[count - 1]
    side = _cross(a, b, current)
    for i in range(count):
        following = corners[i]
        next_side = _cross(a, b, following)
        if (side < 0.0) != (next_side < 0.0):
            fraction = side / (side - next_side)
            out[n_out].x = current.x + fraction * (following.x - current.x)
            out[n_out].y = current.y + fraction * (following.y - current.y)
            n_out += 1
        if next_side >= 0.0:
            out[n_out] = following
            n_out += 1
        current = following
        side = next_side
    return n_out


cdef double _area(const Point* corners, int count) noexcept nogil:
    """Return the signed area of a polygon, relative to its first corner."""
    cdef double twice = 0.0
    cdef int i
    for i in range(1, count - 1):
        twice += _cross(corners[0], corners[i], corners[i + 1])
    return twice / 2


cdef int _triangulate(const Point* corners, Point* triangles, double* signs) noexcept nogil:
    """Split a quadrilateral at its first corner into left-turning triangles with signs."""
    # In a concave one, the negative sign subtracts the excess.
    cdef int half, n_triangles = 0
    cdef double cross
    for half in range(2):
        cross = _cross(corners[0], corners[half + 1], corners[half + 2])
        if cross == 0.0:
            continue
        triangles[3 * n_triangles] = corners[0]
        triangles[3 * n_triangles + 1] = corners[half + 1 if cross > 0.0 else half + 2]
        triangles[3 * n_triangles + 2] = corners[half + 2 if cross > 0.0 else half + 1]
        signs[n_triangles] = 1.0 if cross > 0.0 else -1.0
        n_triangles += 1
    return n_triangles


cdef double _iou(const double* detection, const double* truth, bint crowd) noexcept nogil:
    """Return the IoU, or for crowds the intersection over the detection's area."""
    cdef Point[4] dt_corners, gt_corners
    cdef Point[6] dt_triangles, gt_triangles
    cdef const Point* gt
    cdef double[2] dt_signs, gt_signs
    cdef Point[MAX_CORNERS] left, right
    cdef double intersection = 0.0, area, truth_area
    cdef int i, j, count
    # Coordinates relative to a corner keep precision far from the origin.
    for i in range(4):
        dt_corners[i].x = detection[2 * i] - truth[0]
        dt_corners[i].y = detection[2 * i + 1] - truth[1]
        gt_corners[i].x = truth[2 * i] - truth[0]
        gt_corners[i].y = truth[2 * i + 1] - truth[1]
    area, truth_area = _area(dt_corners, 4), _area(gt_corners, 4)
    cdef int n_first = _triangulate(dt_corners, dt_triangles, dt_signs)
    cdef int n_second = _triangulate(gt_corners, gt_triangles, gt_signs)
    for i in range(n_first):
        for j in range(n_second):
            gt = gt_triangles + 3 * j
            count = _clip(dt_triangles + 3 * i, 3, gt[0], gt[1], left)
            count = _clip(left, count, gt[1], gt[2], right)
            count = _clip(right, count, gt[2], gt[0], left)
            intersection += dt_signs[i] * gt_signs[j] * _area(left, count)
    if (area < 0.0) != (truth_area < 0.0):
        intersection = -intersection
    area, truth_area = fabs(area), fabs(truth_area)
    # Above 1: rounding, and bow ties with halves that nearly cancel.
    if not intersection > 0.0:
        return 0.0
    return fmin(divide_overlap(intersection, area, truth_area, crowd), 1.0)


cdef inline bint _bounds_intersect(const double* a, const double* b) noexcept nogil:
    """Return True if two boxes x1, y1, x2, y2 intersect."""
    return fmin(a[2], b[2]) > fmax(a[0], b[0]) and fmin(a[3], b[3]) > fmax(a[1], b[1])


def fill_areas(const double[:, ::1] polygons, double[::1] out) -> None:
    """Write the area of each quadrilateral."""
    cdef Point[4] corners
    cdef Py_ssize_t n, i
    if polygons.shape[1] != 8 or out.shape[0] != polygons.shape[0]:
        raise ValueError("array shapes do not match")
    with nogil:
        for n in range(polygons.shape[0]):
            for i in range(4):
                corners[i].x, corners[i].y = polygons[n, 2 * i], polygons[n, 2 * i + 1]
            out[n] = fabs(_area(corners, 4))


def fill_ious(
    const double[:, ::1] detections, const double[:, ::1] truths, const uint8_t[::1] crowd,
    double[::1] out,
) -> None:
    """Write the IoU of each pair of detection and ground truth."""
    cdef Py_ssize_t p
    if (
        detections.shape[1] != 8 or truths.shape[1] != 8
        or not detections.shape[0] == truths.shape[0] == crowd.shape[0] == out.shape[0]
    ):
        raise ValueError("array shapes do not match")
    with nogil:
        for p in range(out.shape[0]):
            out[p] = _iou(&detections[p, 0], &truths[p, 0], crowd[p])


def fill_candidates(
    const double[:, ::1] detections, const double[:, ::1] truths,
    const int32_t[::1] order, const int64_t[::1] begin, const int64_t[::1] end,
    int64_t[::1] start, int32_t[::1] out,
) -> None:
    """Write the ground truths with bounds that intersect those of each detection."""
    # Those of its image and class are ``order[begin : end]``; an empty `out` only counts them.
    cdef Py_ssize_t n, i
    cdef int64_t count = 0
    cdef bint filling = out.shape[0] > 0
    if (
        detections.shape[1] != 4 or truths.shape[1] != 4 or order.shape[0] != truths.shape[0]
        or not detections.shape[0] == begin.shape[0] == end.shape[0] == start.shape[0] - 1
    ):
        raise ValueError("array shapes do not match")
    with nogil:
        for n in range(detections.shape[0]):
            for i in range(begin[n], end[n]):
                if _bounds_intersect(&detections[n, 0], &truths[order[i], 0]):
                    if filling:
                        out[count] = order[i]
                    count += 1
            start[n + 1] = count
