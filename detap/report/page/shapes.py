"""Masks, polygons and keypoints as columns, which script/shapes.js draws."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.tables.detection import Detections, Floats, GroundTruth

Table = GroundTruth | Detections
Columns = dict[str, NDArray[Any]]

TENTHS = 10
_LARGEST = 2**31 - 1


def tenths(pixels: Floats) -> NDArray[np.int64]:
    """Return coordinates in tenths of a pixel."""
    return np.rint(np.clip(pixels * TENTHS, -_LARGEST, _LARGEST)).astype(np.int64)


def shapes(iou_type: str, table: Table, rows: NDArray[np.integer]) -> Columns:
    """Return the columns of the shapes of some rows; none if boxes are compared."""
    columns = _COLUMNS.get(iou_type)
    return {} if columns is None else columns(table, rows)


def _polygons(table: Table, rows: NDArray[np.integer]) -> Columns:
    return {} if table.polygons is None else {"corners": tenths(table.polygons[rows]).ravel()}


def _keypoints(table: Table, rows: NDArray[np.integer]) -> Columns:
    assert table.keypoints is not None
    points, visibility = table.keypoints[rows, :, :2], table.keypoints[rows, :, 2:]
    labeled = visibility > 0 if visibility.size else np.ones((*points.shape[:2], 1), np.bool_)
    return {"points": tenths(points).ravel(), "labeled": labeled.astype(np.int64).ravel()}


def _masks(table: Table, rows: NDArray[np.integer]) -> Columns:
    assert table.masks is not None
    assert table.mask is not None
    masks = table.masks[table.mask[rows]]
    # Those of polygons have runs only if they were rasterized.
    rings, runs = np.diff(masks.ring_start), np.diff(masks.run_start)
    from_runs = rings == 0
    lengths = masks.runs[np.repeat(from_runs, runs)].astype(np.int64)
    runs = np.where(from_runs, runs, 0)
    # Runs change little from one column of pixels to the next.
    first = np.arange(len(lengths)) - np.repeat(np.cumsum(runs) - runs, runs) < 2
    before = np.zeros(len(lengths), np.int64)
    before[2:] = lengths[:-2]
    return {
        "rings": rings,
        "ring_points": np.diff(masks.ring_end, prepend=0),
        "points": tenths(masks.points).ravel(),
        "runs": runs,
        "lengths": lengths - np.where(first, 0, before),
        "height": masks.sizes[:, 0].astype(np.int64),
    }


_COLUMNS: dict[str, Callable[[Table, NDArray[np.integer]], Columns]] = {
    "segm": _masks,
    "boundary": _masks,
    "keypoints": _keypoints,
    "polygon": _polygons,
}
