"""Masks of contours: polygons whose corners are the centers of a mask's border pixels.

OpenCV's ``findContours`` gives such contours, and ``fillPoly`` fills them: the pixels inside by the
even-odd rule, and those of the edges.
"""

import numpy as np
from numpy.typing import NDArray

from detap.core import _contours


def contour_runs(points: NDArray[np.int32], size: tuple[int, int]) -> NDArray[np.uint32]:
    """Return the runs of a filled contour, as of :class:`detap.tables.masks.Masks`.

    Parameters
    ----------
    points : (n, 2) int32
        Column and row of border pixels, n > 0; edges join them and the last with the first.
    size : (int, int)
        Height and width of the image.

    Raises
    ------
    ValueError
        If a point lies outside the image.
    """
    height, width = size
    return np.frombuffer(_contours.fill(np.ascontiguousarray(points), width, height), np.uint32)
