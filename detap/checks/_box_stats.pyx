"""Statistics of whole columns of boxes and values."""

from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport free, malloc


def survey_boxes(
    const double[:, ::1] corners, const int32_t[::1] image, const double[:, ::1] sizes,
    double margin,
) -> tuple[int, int]:
    """Count the boxes (N, 4) beyond their image by a margin, and those that fit as two corners.

    `sizes` (I, 2) are width and height, NaN where unknown.
    """
    cdef Py_ssize_t i, beyond = 0, fitting = 0
    cdef double width, height, x, y, right, bottom
    with nogil:
        for i in range(corners.shape[0]):
            width = sizes[image[i], 0] + margin
            height = sizes[image[i], 1] + margin
            x, y, right, bottom = corners[i, 0], corners[i, 1], corners[i, 2], corners[i, 3]
            if x <= -margin or y <= -margin or right >= width or bottom >= height:
                beyond += 1
                right -= x
                bottom -= y
                fitting += right >= x and bottom >= y and right < width and bottom < height
    return beyond, fitting


def survey_values(const double[::1] values) -> tuple[float, float, int, int]:
    """Return the lowest and highest value, and how many are 0 and lie outside 0 to 1."""
    cdef Py_ssize_t i, zero = 0, outside = 0
    cdef double low = 0, high = 0, value
    with nogil:
        for i in range(values.shape[0]):
            value = values[i]
            if i == 0 or value < low:
                low = value
            if i == 0 or value > high:
                high = value
            zero += value == 0
            outside += value < 0 or value > 1
    return low, high, zero, outside


cdef inline double _overlap(const double *a, const double *b) noexcept nogil:
    """Return about the IoU of two boxes; good for a look, not for scores."""
    cdef double width = min(a[2], b[2]) - max(a[0], b[0])
    cdef double height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0
    return width * height / (
        (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - width * height
    )


def found_classes(
    const double[:, ::1] truths, const int32_t[::1] truth_image, const int32_t[::1] truth_label,
    const double[:, ::1] corners, const int32_t[::1] image, const int32_t[::1] label,
    const uint8_t[::1] selected, double threshold
) -> list[tuple[int, int]]:
    """Return the classes of each detected ground truth of the selected images, and of its detection.

    That is the detection with the largest IoU, from a threshold on, or any of its own class. The
    ground truths (G, 4) are few enough to be compared with every detection (N, 4) of their image.
    """
    cdef Py_ssize_t total = corners.shape[0], some = truths.shape[0], i, j
    cdef double overlap
    cdef list pairs = []
    cdef double *best = <double *>malloc(max(some, 1) * sizeof(double))
    cdef int32_t *overlapped_label = <int32_t *>malloc(max(some, 1) * sizeof(int32_t))
    if best == NULL or overlapped_label == NULL:
        free(best)
        free(overlapped_label)
        raise MemoryError
    with nogil:
        for j in range(some):
            best[j] = 0
        for i in range(total):
            if not selected[image[i]]:
                continue
            for j in range(some):
                if truth_image[j] != image[i]:
                    continue
                overlap = _overlap(&truths[j, 0], &corners[i, 0])
                if overlap >= threshold and label[i] == truth_label[j]:
                    overlap = 2
                if overlap >= threshold and overlap > best[j]:
                    best[j] = overlap
                    overlapped_label[j] = label[i]
    for j in range(some):
        if best[j]:
            pairs.append((truth_label[j], overlapped_label[j]))
    free(best)
    free(overlapped_label)
    return pairs
