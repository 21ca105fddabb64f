"""Polygons: rasterized as by pycocotools, and IoU of quadrilaterals in exact fractions.

Sources: `rleFrPoly` of pycocotools' maskApi.c; for IoU the definition.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np

from tests.oracle.masks import Bitmap, merge

Point = tuple[Fraction, Fraction]
Side = tuple[Point, Point]

# --- rasterized

FINER = 5
"""Edges are traced on a grid so many times as fine as pixels."""


def rasterize(polygons: Sequence[Sequence[float]], height: int, width: int) -> Bitmap:
    """Return the union of polygons, x1, y1, x2, y2, ... each, as a bitmap."""
    return merge([_one(polygon, height, width) for polygon in polygons])


def _one(polygon: Sequence[float], height: int, width: int) -> Bitmap:
    """Fill one polygon: inside and outside swap below each crossing of a column."""
    changes = [False] * (height * width + 1)
    for x, y in _crossings(polygon, height, width):
        pixel = x * height + y  # one beyond the last row is the first of the next column
        changes[pixel] = not changes[pixel]
    inside = False
    pixels = []
    for change in changes[:-1]:
        inside = inside != change
        pixels.append(inside)
    return np.array(pixels, np.bool_).reshape(width, height).T


def _crossings(polygon: Sequence[float], height: int, width: int) -> Iterator[tuple[int, int]]:
    """Yield the crossings of the outline with column centers: the column, and the row below."""
    outline = list(_outline(polygon))
    for (x, y), (next_x, next_y) in pairwise(outline):
        if x == next_x:
            continue
        column = (min(x, next_x) + 0.5) / FINER - 0.5
        if column != int(column) or not 0 <= column < width:
            continue
        row = (min(y, next_y) + 0.5) / FINER - 0.5
        yield int(column), int(np.ceil(min(max(row, 0), height)))


def _outline(polygon: Sequence[float]) -> Iterator[tuple[int, int]]:
    """Yield all points of the finer grid on the outline, in order."""
    corners = [int(FINER * value + 0.5) for value in polygon]
    points = list(zip(corners[::2], corners[1::2], strict=True))
    for start, end in pairwise([*points, points[0]]):
        yield from _edge(start, end)


def _edge(start: tuple[int, int], end: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the points of an edge: one for each step along its longer direction.

    The other coordinate is rounded by adding a half and cutting off, always seen from the end where
    the longer direction is smaller.
    """
    wide, high = abs(end[0] - start[0]), abs(end[1] - start[1])
    longer = 0 if wide >= high else 1
    steps = max(wide, high)
    (low, high_end) = sorted((start, end), key=lambda point: point[longer])
    if steps == 0:
        return [start]
    slope = (high_end[1 - longer] - low[1 - longer]) / steps
    points = []
    for step in range(steps + 1):
        along, across = low[longer] + step, int(low[1 - longer] + slope * step + 0.5)
        points.append((along, across) if longer == 0 else (across, along))
    return points if low == start else points[::-1]


# --- quadrilaterals


def corners_of(quad: Sequence[float]) -> list[Point]:
    """Return the corners of a quadrilateral x1, y1, ... x4, y4."""
    return [(Fraction(x), Fraction(y)) for x, y in zip(quad[::2], quad[1::2], strict=True)]


def is_simple(quad: Sequence[float]) -> bool:
    """Return True if sides meet only at their ends and no corner is straight."""
    corners = corners_of(quad)
    first, second, third, fourth = _sides(corners)
    straight = any(_turn(corners[i - 1], corners[i], corners[(i + 1) % 4]) == 0 for i in range(4))
    return not (_touch(first, third) or _touch(second, fourth) or straight)


def quad_area(quad: Sequence[float]) -> Fraction:
    """Return the area of a simple quadrilateral, by the shoelace formula."""
    return (
        abs(sum((a[0] * b[1] - b[0] * a[1] for a, b in _sides(corners_of(quad))), Fraction(0))) / 2
    )


def quad_iou(
    detection: Sequence[float], truth: Sequence[float], *, crowd: bool = False
) -> Fraction:
    """Return intersection over union of simple quadrilaterals, or over the detection for a crowd.

    Between two heights at which a corner lies or sides cross, the width of what they have in common
    is linear: the width in the middle, times the height, is its area.
    """
    first, second = _sides(corners_of(detection)), _sides(corners_of(truth))
    intersection = Fraction(0)
    for low, high in pairwise(_heights(first + second)):
        middle = (low + high) / 2
        shared = (
            max(min(b, d) - max(a, c), Fraction(0))
            for a, b in _section(first, middle)
            for c, d in _section(second, middle)
        )
        intersection += sum(shared, Fraction(0)) * (high - low)
    whole = quad_area(detection)
    if not crowd:
        whole += quad_area(truth) - intersection
    return intersection / whole


def _sides(corners: list[Point]) -> list[Side]:
    return list(pairwise([*corners, corners[0]]))


def _turn(a: Point, b: Point, c: Point) -> Fraction:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _touch(one: Side, other: Side) -> bool:
    """Return True if two segments have a point in common."""
    (a, b), (c, d) = one, other
    apart = any(
        max(a[axis], b[axis]) < min(c[axis], d[axis])
        or max(c[axis], d[axis]) < min(a[axis], b[axis])
        for axis in (0, 1)
    )
    if apart:
        return False
    return _turn(a, b, c) * _turn(a, b, d) <= 0 and _turn(c, d, a) * _turn(c, d, b) <= 0


def _heights(sides: list[Side]) -> list[Fraction]:
    """Return all heights at which a side ends or crosses another."""
    heights = {point[1] for side in sides for point in side}
    for (a, b), (c, d) in combinations(sides, 2):
        across = (b[0] - a[0]) * (d[1] - c[1]) - (b[1] - a[1]) * (d[0] - c[0])
        if across:
            part = ((c[0] - a[0]) * (d[1] - c[1]) - (c[1] - a[1]) * (d[0] - c[0])) / across
            heights.add(a[1] + part * (b[1] - a[1]))
    return sorted(heights)


def _section(sides: list[Side], y: Fraction) -> list[tuple[Fraction, Fraction]]:
    """Return the intervals inside the quadrilateral at a height without a corner."""
    at = sorted(
        a[0] + (y - a[1]) / (b[1] - a[1]) * (b[0] - a[0])
        for a, b in sides
        if min(a[1], b[1]) < y < max(a[1], b[1])
    )
    return list(zip(at[::2], at[1::2], strict=True))
