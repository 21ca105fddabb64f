"""Loops over whole columns, in one pass where NumPy takes several with temporary arrays."""

from libc.stdint cimport int32_t, int64_t


def encode(double[:, ::1] boxes, double[::1] areas, bint xyxy) -> None:
    """Compute the areas (N,) of boxes (N, 4), and make x, y, w, h corners in place."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(boxes.shape[0]):
            if xyxy:
                areas[i] = (boxes[i, 2] - boxes[i, 0]) * (boxes[i, 3] - boxes[i, 1])
            else:
                areas[i] = boxes[i, 2] * boxes[i, 3]
                boxes[i, 2] += boxes[i, 0]
                boxes[i, 3] += boxes[i, 1]


def survey_boxes(
    const double[:, ::1] corners, const int32_t[::1] image, const double[:, ::1] sizes,
    double margin,
) -> tuple[int, int]:
    """Count the boxes beyond their image by a margin, and those that would fit as two corners.

    `sizes` (I, 2) are width and height, NaN where unknown.
    """
    cdef Py_ssize_t i, beyond = 0, fits = 0
    cdef double width, height, x, y, right, bottom
    with nogil:
        for i in range(corners.shape[0]):
            x, y, right, bottom = corners[i, 0], corners[i, 1], corners[i, 2], corners[i, 3]
            width, height = sizes[image[i], 0] + margin, sizes[image[i], 1] + margin
            if x <= -margin or y <= -margin or right >= width or bottom >= height:
                beyond += 1
                right -= x
                bottom -= y
                fits += x <= right < width and y <= bottom < height
    return beyond, fits


def number(
    const int64_t[::1] keys, int64_t low, int32_t[::1] numbers, int32_t[::1] rows
) -> None:
    """Number the distinct keys (N,) in order of occurrence: `numbers` by key - low, `rows` by row.

    `numbers` are -1 before, and remain so for keys that do not occur.
    """
    cdef Py_ssize_t i, code
    cdef int32_t count = 0
    with nogil:
        for i in range(keys.shape[0]):
            code = keys[i] - low
            if numbers[code] < 0:
                numbers[code] = count
                count += 1
            rows[i] = numbers[code]
