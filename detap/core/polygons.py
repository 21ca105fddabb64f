"""IoU of quadrilaterals: rotated boxes and other shapes with four corners.

A quadrilateral is x1, y1, ... x4, y4 in either direction. It is split into two signed triangles,
also if it is concave, and triangles are clipped by each other. In a self-intersecting one, parts
that turn the other way are subtracted, as in the reference; a bow tie of equal halves overlaps
nothing.

Source: the definition. polyiou.cpp of CAPTAIN-WHU/DOTA_devkit sums triangles relative to the
origin, which loses digits for large coordinates.
"""

import numpy as np
from numpy.typing import NDArray

from detap.core import _polygons
from detap.core.arrays import Boxes, Pairs
from detap.core.matching import group_ranges

Floats = NDArray[np.float64]


def box_polygons(corners: Floats) -> Floats:
    """Convert boxes x1 y1 x2 y2 (N, 4) to (N, 8); inverted ones have no area."""
    ends = np.maximum(corners[:, :2], corners[:, 2:])
    return np.ascontiguousarray(np.hstack([corners[:, :2], ends])[:, [0, 1, 2, 1, 2, 3, 0, 3]])


def rotated_boxes(boxes: Floats) -> Floats:
    """Return the corners (N, 8) of rotated boxes."""
    center, (width, height, angle) = boxes[:, None, :2], boxes[:, 2:].T
    cosine, sine = np.cos(angle), np.sin(angle)
    half_width = np.stack([width / 2 * cosine, width / 2 * sine], axis=1)[:, None]
    half_height = np.stack([-height / 2 * sine, height / 2 * cosine], axis=1)[:, None]
    signs = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])[None, :, :, None]
    corners = center + signs[:, :, 0] * half_width + signs[:, :, 1] * half_height
    return np.ascontiguousarray(corners).reshape(-1, 8)


def bounds(polygons: Floats) -> Floats:
    """Return the bounding boxes of quadrilaterals, (N, 4) x1 y1 x2 y2."""
    corners = polygons.reshape(-1, 4, 2)
    return np.hstack([corners.min(axis=1), corners.max(axis=1)])


def polygon_areas(polygons: Floats) -> Floats:
    """Return the areas (N,) of quadrilaterals."""
    out = np.empty(len(polygons))
    _polygons.fill_areas(np.ascontiguousarray(polygons), out)
    return out


def is_self_intersecting(polygons: Floats) -> NDArray[np.bool_]:
    """Return True for quadrilaterals with opposite sides that cross, (N,) bool."""
    corners = polygons.reshape(-1, 4, 2)
    first, second, third, fourth = (corners[:, i] for i in range(4))
    return _segments_cross(first, second, third, fourth) | _segments_cross(
        second, third, fourth, first
    )


def _segments_cross(a: Floats, b: Floats, c: Floats, d: Floats) -> NDArray[np.bool_]:
    """Return True for rows where segments ab and cd cross."""

    def side(p: Floats, q: Floats, r: Floats) -> Floats:
        (x, y), (u, v) = (q - p).T, (r - p).T
        turn: Floats = np.sign(x * v - y * u)
        return turn

    opposite = side(a, b, c) * side(a, b, d) < 0
    crossed: NDArray[np.bool_] = opposite & (side(c, d, a) * side(c, d, b) < 0)
    return crossed


def polygon_overlaps(
    detections: Floats, ground_truths: Floats, crowd: NDArray[np.bool_] | None = None
) -> Floats:
    """Return the IoU of P pairs of quadrilaterals, (P,) float64."""
    out = np.empty(len(detections))
    flags = np.zeros(len(out), np.bool_) if crowd is None else crowd
    _polygons.fill_ious(
        np.ascontiguousarray(detections),
        np.ascontiguousarray(ground_truths),
        np.ascontiguousarray(flags).view(np.uint8),
        out,
    )
    return out


def polygon_pairs(
    detections: Boxes,
    ground_truths: Boxes,
    *,
    polygons: tuple[Floats, Floats],
    crowd: NDArray[np.bool_],  # (G,) divide by the detection's area for these
) -> Pairs:
    """Return the IoUs of quadrilaterals of equal image and class."""
    order, begin, end = group_ranges(detections, ground_truths)
    inputs = (
        np.ascontiguousarray(detections.corners),
        np.ascontiguousarray(ground_truths.corners),
        order,
        begin,
        end,
    )
    start = np.zeros(len(begin) + 1, np.int64)
    _polygons.fill_candidates(*inputs, start, np.zeros(0, np.int32))
    truth = np.empty(start[-1], np.int32)
    _polygons.fill_candidates(*inputs, start, truth)
    dt = np.repeat(np.arange(len(begin)), np.diff(start))
    similarity = polygon_overlaps(polygons[0][dt], polygons[1][truth], crowd[truth])
    return Pairs(start, truth, similarity)
