"""Filled contours, compared with a pixel-by-pixel implementation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from detap.core.masks import contour_runs

Points = list[tuple[int, int]]


def bitmap(points: Points, height: int, width: int) -> NDArray[np.uint8]:
    runs = contour_runs(np.array(points, np.int32), (height, width))
    values = np.arange(len(runs), dtype=np.uint8) % 2
    return np.repeat(values, runs).reshape(width, height).T


def on_edge(start: tuple[int, int], end: tuple[int, int]) -> set[tuple[int, int]]:
    """Return the nearest pixel at each step along the longer axis, halves to the left end."""
    (x0, y0), (x1, y1) = sorted([start, end], key=lambda point: point[0])
    steps = max(x1 - x0, abs(y1 - y0))
    pixels = set()
    for k in range(steps + 1):
        minor = abs(y1 - y0) if x1 - x0 >= abs(y1 - y0) else x1 - x0
        whole, rest = divmod(minor * k, max(steps, 1))
        moved = whole + (2 * rest > steps)
        down = 1 if y1 >= y0 else -1
        if x1 - x0 >= abs(y1 - y0):
            pixels.add((x0 + k, y0 + down * moved))
        else:
            pixels.add((x0 + moved, y0 + down * k))
    return pixels


def is_inside(x: int, y: int, points: Points) -> bool:
    """Return True if a ray upward crosses an odd number of edges."""
    inside = False
    for (x0, y0), (x1, y1) in zip(points, [*points[1:], points[0]], strict=True):
        if (x0 <= x) != (x1 <= x):
            crossing = y0 * (x1 - x0) + (y1 - y0) * (x - x0)
            inside ^= (crossing <= y * (x1 - x0)) if x1 > x0 else (crossing >= y * (x1 - x0))
    return inside


@given(st.data(), st.integers(1, 12), st.integers(1, 12))
def test_pixels(data: st.DataObject, height: int, width: int) -> None:
    pixel = st.tuples(st.integers(0, width - 1), st.integers(0, height - 1))
    points = data.draw(st.lists(pixel, min_size=1, max_size=8))
    drawn = set()
    for start, end in zip(points, [*points[1:], points[0]], strict=True):
        drawn |= on_edge(start, end)
    expected = [
        [(x, y) in drawn or is_inside(x, y, points) for x in range(width)] for y in range(height)
    ]
    assert bitmap(points, height, width).tolist() == np.array(expected, np.uint8).tolist()


@pytest.mark.parametrize(
    ("points", "pixels"),
    [
        ([(2, 1)], [(2, 1)]),
        ([(0, 0), (3, 0)], [(0, 0), (1, 0), (2, 0), (3, 0)]),
        ([(1, 0), (3, 2)], [(1, 0), (2, 1), (3, 2)]),
        ([(0, 0), (1, 0), (1, 1), (0, 1)], [(0, 0), (0, 1), (1, 0), (1, 1)]),
        ([(0, 0), (2, 1)], [(0, 0), (1, 0), (2, 1)]),  # halfway: the pixel of the left end
        ([(0, 0), (3, 0), (3, 2), (0, 2)], [(x, y) for x in range(4) for y in range(3)]),
    ],
)
def test_small_contours(points: Points, pixels: Points) -> None:
    bits = bitmap(points, 3, 4)
    assert sorted(zip(*np.nonzero(bits.T), strict=True)) == pixels


@pytest.mark.parametrize("point", [(-1, 0), (0, -1), (4, 0), (0, 3)])
def test_points_outside_the_image(point: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="outside its image"):
        contour_runs(np.array([(0, 0), point], np.int32), (3, 4))
