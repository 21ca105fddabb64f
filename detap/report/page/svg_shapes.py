"""SVG paths of masks, polygons and keypoints.

`_DRAWN` has a function for each IoU type; the others are drawn as boxes.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from detap.core.masks import runs_of
from detap.tables.detection import Detections, GroundTruth

Table = GroundTruth | Detections


def svg_paths(iou_type: str, table: Table, rows: Sequence[int]) -> list[str] | None:
    """Return the path of each row, for the ``d`` of SVG's ``path``.

    Parameters
    ----------
    iou_type : str
    table : GroundTruth or Detections
    rows : sequence of int

    Returns
    -------
    list of str or None
        None if boxes are compared.
    """
    drawn = _DRAWN.get(iou_type)
    return None if drawn is None else [drawn(table, row) for row in rows]


def _box(table: Table, row: int) -> str:
    x1, y1, x2, y2 = table.corners[row].tolist()
    return _ring([(x1, y1), (x2, y1), (x2, y2), (x1, y2)])


def _polygon(table: Table, row: int) -> str:
    if table.polygons is None:
        return _box(table, row)
    return _ring(table.polygons[row].reshape(-1, 2).tolist())


def _mask(table: Table, row: int) -> str:
    """Return the polygons of a mask, or the edges of its pixels."""
    assert table.masks is not None
    assert table.mask is not None
    masks, number = table.masks, int(table.mask[row])
    if rings := masks.rings_of(number):
        return "".join(_ring(ring.tolist()) for ring in rings)
    height, width = masks.sizes[number].tolist()
    runs = runs_of(masks.arrays, number)
    pixels = np.repeat(np.arange(len(runs)) % 2 == 1, runs).reshape(width, height)
    return "".join(map(_ring, edges(pixels.T)))


def edges(pixels: NDArray[np.bool_]) -> list[list[tuple[int, int]]]:
    """Return the edges of the set pixels as closed rings of corners x, y.

    Parameters
    ----------
    pixels : (H, W) bool
    """
    padded = np.pad(pixels, 1)
    around = padded[:-1, :-1], padded[:-1, 1:], padded[1:, :-1], padded[1:, 1:]
    # A corner has one or three of its four pixels set; where two touch there are two corners.
    odd = around[0] ^ around[1] ^ around[2] ^ around[3]
    touching = (around[0] == around[3]) & (around[1] == around[2]) & (around[0] != around[1])
    y, x = (np.repeat(axis, 1 + touching[odd | touching]) for axis in np.nonzero(odd | touching))
    # Along a row or column, every second segment between corners is an edge.
    across, above = (_partners(order) for order in (np.lexsort((x, y)), np.lexsort((y, x))))
    left, rings = dict.fromkeys(range(len(x))), []
    while left:
        corner, ring = next(iter(left)), []
        while corner in left:
            other = across[corner]
            ring += [(int(x[n]), int(y[n])) for n in (corner, other)]
            del left[corner], left[other]
            corner = above[other]
        rings.append(ring)
    return rings


def _partners(order: NDArray[np.intp]) -> list[int]:
    """Return the other end of the edge at each corner; consecutive pairs are edges."""
    partner = np.empty(len(order), np.intp)
    partner[order[::2]], partner[order[1::2]] = order[1::2], order[::2]
    partners: list[int] = partner.tolist()
    return partners


def _ring(corners: Sequence[Sequence[float]]) -> str:
    """Return a closed path, with short commands for steps along an axis."""
    (x, y), *others = corners
    path = [f"M{x:.6g} {y:.6g}"]
    for right, down in others:
        across, along = right - x, down - y
        if not along:
            path.append(f"h{across:.6g}")
        elif not across:
            path.append(f"v{along:.6g}")
        else:
            path.append(f"L{right:.6g} {down:.6g}")
        x, y = right, down
    return "".join(path) + "Z"


_SKELETON = np.array(
    [
        *((16, 14), (14, 12), (17, 15), (15, 13), (12, 13), (6, 12), (7, 13), (6, 7), (6, 8)),
        *((7, 9), (8, 10), (9, 11), (2, 3), (1, 2), (1, 3), (2, 4), (3, 5), (4, 6), (5, 7)),
    ]
)
"""The `skeleton` of COCO's 17 keypoints of a person: pairs counted from 1."""


def _keypoints(table: Table, row: int) -> str:
    """Return a cross at each labeled keypoint, joined by COCO's skeleton."""
    assert table.keypoints is not None
    points, visibility = table.keypoints[row, :, :2], table.keypoints[row, :, 2:]
    labeled = visibility[:, 0] > 0 if visibility.size else np.ones(len(points), np.bool_)
    if not labeled.any():
        return _box(table, row)  # OKS compares the boxes then
    arm = float(np.ptp(points[labeled], axis=0).max()) / 40 or 1.0
    path = [
        f"M{x - arm:.6g} {y:.6g}h{2 * arm:.6g}M{x:.6g} {y - arm:.6g}v{2 * arm:.6g}"
        for x, y in points[labeled].tolist()
    ]
    for i, j in _SKELETON - 1 if len(points) == 17 else ():
        if labeled[i] and labeled[j]:
            (x1, y1), (x2, y2) = points[i].tolist(), points[j].tolist()
            path.append(f"M{x1:.6g} {y1:.6g}L{x2:.6g} {y2:.6g}")
    return "".join(path)


_DRAWN: dict[str, Callable[[Table, int], str]] = {
    "segm": _mask,
    "boundary": _mask,
    "keypoints": _keypoints,
    "polygon": _polygon,
}
