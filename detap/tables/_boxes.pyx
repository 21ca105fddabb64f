"""Boxes from the numbers of their encoding, and what is odd about them."""

from libc.stdint cimport uint8_t


def encode(double[:, ::1] boxes, double[::1] areas, bint corners) -> None:
    """Make corners of boxes, in place, and their areas, as their own encoding gives them.

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


def mark_backward(const double[:, :] corners, const double[:] areas, uint8_t[::1] wrong) -> bool:
    """Mark the boxes of negative width or height, or area; return whether there are any.

    Parameters
    ----------
    corners : (N, 4) float64
    areas : (N,) float64
    wrong : (N,) uint8
        Filled.
    """
    cdef Py_ssize_t i
    cdef uint8_t negative, ever = 0
    with nogil:
        for i in range(corners.shape[0]):
            negative = (corners[i, 2] < corners[i, 0]) | (corners[i, 3] < corners[i, 1]) | (areas[i] < 0)
            wrong[i] = negative
            ever |= negative
    return bool(ever)
