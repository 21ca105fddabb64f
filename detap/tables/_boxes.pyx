"""Boxes from the numbers of their encoding."""


def encode(double[:, ::1] boxes, double[::1] areas, bint corners):
    """Make corners of boxes, in their place, and their areas, as their own encoding gives them.

    Parameters
    ----------
    boxes : (N, 4) float64
        x1, y1, x2, y2 where `corners`; else x, y, width, height.
    areas : (N,) float64
        Filled.
    corners : bool
    """
    cdef Py_ssize_t i
    with nogil:
        for i in range(boxes.shape[0]):
            if corners:
                areas[i] = (boxes[i, 2] - boxes[i, 0]) * (boxes[i, 3] - boxes[i, 1])
            else:
                areas[i] = boxes[i, 2] * boxes[i, 3]
                boxes[i, 2] += boxes[i, 0]
                boxes[i, 3] += boxes[i, 1]
