"""Read masks, keypoints and polygons from callers, with boxes or instead of them.

:data:`READERS` has a function for each kind, by the name in readers, tables and
``Protocol.reading``.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.io.problems import FaultError
from detap.tables.columns import FARTHEST, Columns, as_array
from detap.tables.masks import MOST_PIXELS, Masks, read_rle

Floats = NDArray[np.float64]
Column = Any
"""Shapes of N rows: an array, or Masks."""


def _coordinates(columns: Columns, what: str, given: NDArray[Any]) -> Floats:
    """Return finite coordinates, (n, k)."""
    rows = given.reshape(len(given), -1)
    values = columns.numbers(what, rows, rows.shape)
    for row, k in np.argwhere(~(np.abs(values) <= FARTHEST))[:1].tolist():
        message = f"{what} has {values[row, k].item()}"
        columns.fail(message, "expected coordinates in pixels", columns.location(row))
    return values


def _bounds(points: Floats) -> Floats:
    """Return the bounding boxes x, y, width, height (n, 4) of points (n, P, 2)."""
    low, high = points.min(axis=1), points.max(axis=1)
    return np.hstack([low, high - low])


# --- masks

_FORMS = "expected bitmaps (n, H, W), or a list of RLE {'size', 'counts'}"
_FLAGS = "expected bool, or uint8 of 0 and 1 (e.g. masks > 0.5)"


def _read_masks(columns: Columns, values: Any, keypoint_count: int | None) -> Masks:
    """Return the masks of bitmaps (n, H, W), or of a list of (H, W) and COCO's RLE."""
    if isinstance(values, Masks):
        return values
    values = as_array(values)
    if _is_array(values):
        return _of_bitmaps(columns, columns.array("masks", values), columns.whole)
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        columns.fail(f"masks is a {type(values).__name__}", _FORMS, columns.whole)
    parts = [_of_row(columns, value, columns.location(row)) for row, value in enumerate(values)]
    return Masks.joined(parts) if parts else Masks.none()


def _is_array(values: Any) -> bool:
    return hasattr(values, "shape") or hasattr(values, "__array__")


def _of_row(columns: Columns, value: Any, location: str) -> Masks:
    """Return the mask of a row; `counts` of RLE is text, bytes or a list."""
    if isinstance(value, Mapping):
        for key in ("size", "counts"):
            if key not in value:
                columns.fail(f"masks has no {key}", _FORMS, location)
        try:
            size, runs = read_rle(value["size"], value["counts"])
        except FaultError as fault:
            columns.fail(fault.message, fault.hint, location)
        return Masks.of_runs([(size[0], size[1])], [runs])
    value = as_array(value)
    if not _is_array(value):
        columns.fail(f"masks is a {type(value).__name__}", _FORMS, location)
    array = columns.array("masks", value)
    if array.ndim != 2:
        columns.fail(f"masks has shape {array.shape}", "expected (H, W)", location)
    return _of_bitmaps(columns, array[None], location)


def _of_bitmaps(columns: Columns, bits: NDArray[Any], location: str) -> Masks:
    """Return the masks of bitmaps (n, H, W)."""
    if not len(bits):
        return Masks.none()
    if bits.ndim != 3:
        above = " > 0.5" if bits.dtype.kind == "f" else ""
        hint = f" (e.g. masks[:, 0]{above})" if bits.ndim == 4 and bits.shape[1] == 1 else ""
        columns.fail(f"masks has shape {bits.shape}", f"expected (n, H, W){hint}", location)
    if bits.dtype not in (np.bool_, np.uint8):
        columns.fail(f"masks has dtype {bits.dtype}", _FLAGS, location)
    height, width = bits.shape[1:]
    if not 0 < height * width <= MOST_PIXELS:
        message = f"masks has bitmaps of {height} x {width} pixels"
        columns.fail(message, f"expected 1 to {MOST_PIXELS} pixels", location)
    flags = np.ascontiguousarray(bits).view(np.uint8)
    if flags.max() > 1:
        columns.fail(f"masks has the value {bits[bits > 1][0]}", _FLAGS, location)
    return Masks.of_bitmaps(flags)


# --- keypoints and polygons


def _read_keypoints(columns: Columns, values: Any, keypoint_count: int | None) -> Floats:
    """Return keypoints x, y, v (n, P, 3), of detections x, y (n, P, 2)."""
    given = columns.array("keypoints", values)
    of_truth = columns.table == "ground truth"
    if not len(given):
        return np.zeros((0, keypoint_count or 0, 3 if of_truth else 2))
    widths = (3,) if of_truth else (3, 2)
    fits = given.ndim == 3 and given.shape[1] and given.shape[2] in widths
    if not fits or keypoint_count not in (None, given.shape[1]):
        points = "P" if keypoint_count is None else keypoint_count
        hint = f"expected ({len(given)}, {points}, 3): x, y, v"
        columns.fail(f"keypoints has shape {given.shape}", hint, columns.whole)
    keypoints = _coordinates(columns, "keypoints", given).reshape(given.shape)
    return keypoints if of_truth else np.ascontiguousarray(keypoints[:, :, :2])


def _read_polygons(columns: Columns, values: Any, keypoint_count: int | None) -> Floats:
    """Return quadrilaterals (n, 8) of (n, 8) or (n, 4, 2)."""
    given = columns.array("polygons", values)
    if not len(given):
        return np.zeros((0, 8))
    if given.shape[1:] not in ((8,), (4, 2)):
        hint = f"expected ({len(given)}, 8) or ({len(given)}, 4, 2): four corners"
        columns.fail(f"polygons has shape {given.shape}", hint, columns.whole)
    return _coordinates(columns, "polygons", given)


def _cross(a: Floats, b: Floats, c: Floats) -> Floats:
    """Return twice the signed areas of triangles."""
    (bx, by), (cx, cy) = (b - a).T, (c - a).T
    area: Floats = bx * cy - by * cx
    return area


READERS: Mapping[str, Callable[[Columns, Any, int | None], Column]] = {
    "masks": _read_masks,
    "keypoints": _read_keypoints,
    "polygons": _read_polygons,
}


def refuse_other_shapes(columns: Columns, given: Mapping[str, Any]) -> None:
    """Raise InputError if polygons are given with boxes or other shapes."""
    if given.get("polygons") is not None:
        for name, values in given.items():
            if name != "polygons" and values is not None:
                hint = "pass one of them; the boxes are the bounding boxes of polygons"
                columns.fail(f"both polygons and {name} are given", hint, columns.whole)


def read_shapes(columns: Columns, given: Mapping[str, Any], count: int) -> dict[str, Column]:
    """Return the column of each kind that is not None."""
    shapes = {k: READERS[k](columns, v, None) for k, v in given.items() if v is not None}
    for name, column in shapes.items():
        if len(column) != count:
            hint = f"expected {count}, as many as image"
            columns.fail(f"{name} has {len(column)} rows", hint, columns.whole)
    return shapes


def boxes_of(columns: Columns, shapes: Mapping[str, Column]) -> Floats:
    """Return the bounding boxes x, y, width, height (N, 4) of masks, else of other shapes."""
    if "masks" in shapes:
        boxes: Floats = shapes["masks"].measured()[1]
        return boxes
    if "polygons" in shapes:
        return _bounds(shapes["polygons"].reshape(-1, 4, 2))
    if columns.table == "ground truth":  # OKS needs the areas of ground truth boxes
        columns.fail("keypoints without boxes", "pass boxes too", columns.whole)
    keypoints = shapes["keypoints"]
    return _bounds(keypoints) if len(keypoints) else np.zeros((0, 4))


def areas_of(shapes: Mapping[str, Column]) -> Floats | None:
    """Return the areas (N,) of masks or polygons; None if the boxes' areas are used."""
    if "masks" in shapes:
        pixels: Floats = shapes["masks"].measured()[0]
        return pixels
    if "polygons" not in shapes:
        return None
    first, second, third, fourth = np.moveaxis(shapes["polygons"].reshape(-1, 4, 2), 1, 0)
    twice = _cross(first, second, third) + _cross(first, third, fourth)
    return np.abs(twice / 2)


def fields_of(shapes: Mapping[str, Column]) -> dict[str, Any]:
    """Return the fields of a table that hold the shapes."""
    fields: dict[str, Any] = {**shapes}
    if "masks" in shapes:
        fields["mask"] = np.arange(len(shapes["masks"]), dtype=np.int32)
    if "keypoints" in shapes and shapes["keypoints"].shape[2] == 3:  # of ground truths
        fields["no_keypoints"] = ~(shapes["keypoints"][:, :, 2] > 0).any(axis=1)
    return fields
