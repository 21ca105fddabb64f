"""Quadrilaterals, and how much they overlap: rotated boxes, and whatever else has four corners.

A quadrilateral is x1, y1, ... x4, y4, its corners in either direction. Each is split into two
triangles with a sign, which is exact for concave ones too, and triangles are cut by each other. Of
one whose sides cross, parts that turn the other way count against the rest, as in the reference;
a bow tie of equal halves overlaps nothing.

Source: the definition. polyiou.cpp of CAPTAIN-WHU/DOTA_devkit has the same sums over triangles that
begin at the origin of coordinates, and so loses digits where these are large.
"""

import numpy as np
from numpy.typing import NDArray

from detap.core import _polygons
from detap.core.matching import Boxes, Pairs

Floats = NDArray[np.float64]


def rectangles(corners: Floats) -> Floats:
    """Return boxes (N, 4), x1 y1 x2 y2, as quadrilaterals (N, 8); flat where they end too early."""
    ends = np.maximum(corners[:, :2], corners[:, 2:])
    return np.ascontiguousarray(np.hstack([corners[:, :2], ends])[:, [0, 1, 2, 1, 2, 3, 0, 3]])


def turned(boxes: Floats) -> Floats:
    """Return the corners (N, 8) of rotated boxes.

    Parameters
    ----------
    boxes : (N, 5) float64
        Centre x and y, width, height, and the angle in radians by which the width is turned from
        the x axis to the y axis.
    """
    centre, half = boxes[:, None, :2], boxes[:, 2:4] / 2
    cosine, sine = np.cos(boxes[:, 4]), np.sin(boxes[:, 4])
    wide = np.stack([half[:, 0] * cosine, half[:, 0] * sine], axis=1)[:, None]
    high = np.stack([-half[:, 1] * sine, half[:, 1] * cosine], axis=1)[:, None]
    signs = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])[None, :, :, None]
    corners = centre + signs[:, :, 0] * wide + signs[:, :, 1] * high
    return np.ascontiguousarray(corners).reshape(-1, 8)


def bounds(polygons: Floats) -> Floats:
    """Return the boxes around quadrilaterals, (N, 4) x1 y1 x2 y2."""
    corners = polygons.reshape(-1, 4, 2)
    return np.hstack([corners.min(axis=1), corners.max(axis=1)])


def polygon_areas(polygons: Floats) -> Floats:
    """Return the areas (N,) of quadrilaterals."""
    out = np.empty(len(polygons))
    _polygons.fill_areas(np.ascontiguousarray(polygons), out)
    return out


def crossing(polygons: Floats) -> NDArray[np.bool_]:
    """Return whether two sides cross that do not share a corner, (N,) bool."""
    corners = polygons.reshape(-1, 4, 2)
    first, second, third, fourth = (corners[:, i] for i in range(4))
    return _cross(first, second, third, fourth) | _cross(second, third, fourth, first)


def _cross(a: Floats, b: Floats, c: Floats, d: Floats) -> NDArray[np.bool_]:
    """Return whether the lines from a to b and from c to d cross, row by row."""

    def side(p: Floats, q: Floats, r: Floats) -> Floats:
        (x, y), (u, v) = (q - p).T, (r - p).T
        turn: Floats = np.sign(x * v - y * u)
        return turn

    apart = side(a, b, c) * side(a, b, d) < 0
    crossed: NDArray[np.bool_] = apart & (side(c, d, a) * side(c, d, b) < 0)
    return crossed


def polygon_overlaps(
    detections: Floats, truths: Floats, crowd: NDArray[np.bool_] | None = None
) -> Floats:
    """Return the overlap of each detection with the one ground truth beside it, (P,) float64.

    Parameters
    ----------
    detections, truths : (P, 8) float64
        Pair by pair.
    crowd : (P,) bool, optional
        For these, intersection over the detection's own area.
    """
    out = np.empty(len(detections))
    flags = np.zeros(len(out), np.bool_) if crowd is None else crowd
    _polygons.fill_ious(
        np.ascontiguousarray(detections),
        np.ascontiguousarray(truths),
        np.ascontiguousarray(flags).view(np.uint8),
        out,
    )
    return out


def polygon_pairs(
    detections: Boxes,
    truths: Boxes,
    *,
    polygons: tuple[Floats, Floats],
    crowd: NDArray[np.bool_],
) -> Pairs:
    """Return the overlaps of quadrilaterals of the same image and class.

    Parameters
    ----------
    detections, truths : Boxes
        N and G rows, whose corners are the bounds: only pairs whose bounds meet are looked at.
    polygons : pair of (N, 8) and (G, 8) float64
    crowd : (G,) bool
        Ground truths of which the overlap is what is in common over the detection's area.
    """
    labels = np.int64(max(detections.label.max(initial=0), truths.label.max(initial=0)) + 1)
    claims, cells = (boxes.image * labels + boxes.label for boxes in (detections, truths))
    order = np.argsort(cells, kind="stable").astype(np.int32)
    begin, end = (np.searchsorted(cells[order], claims, side) for side in ("left", "right"))
    given = (
        np.ascontiguousarray(detections.corners),
        np.ascontiguousarray(truths.corners),
        order,
        begin.astype(np.int64),
        end.astype(np.int64),
    )
    start = np.zeros(len(claims) + 1, np.int64)
    _polygons.fill_candidates(*given, start, np.zeros(0, np.int32))
    truth = np.empty(start[-1], np.int32)
    _polygons.fill_candidates(*given, start, truth)
    claim = np.repeat(np.arange(len(claims)), np.diff(start))
    overlap = polygon_overlaps(polygons[0][claim], polygons[1][truth], crowd[truth])
    return Pairs(start, truth, overlap)
