"""``pycocotools.mask``: RLE masks, and IoU of masks and boxes.

RLE strings equal pycocotools', byte for byte. Input for which pycocotools hangs, crashes or reads
invalid memory (wrong numbers of pixels, truncated strings, ...) raises
:class:`~detap.errors.MaskError`, a ValueError.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.compat.pycocotools import _runs
from detap.errors import MaskError

Floats = NDArray[np.float64]


def iou(dt: Any, gt: Any, pyiscrowd: Sequence[int]) -> Any:
    """Compute the IoU of D detections and G ground truths.

    Parameters
    ----------
    dt, gt : list or (n, 4) array
        Boxes as x, y, width, height; or RLE masks.
    pyiscrowd : sequence of int
        G flags; for crowds the intersection is divided by the detection's area.

    Returns
    -------
    (D, G) float64 in Fortran order; or an empty list if D or G is 0.
        -1 for masks of different sizes.
    """
    crowd = np.array(pyiscrowd, np.uint8)
    detections, ground_truths = _shapes(dt), _shapes(gt)
    if len(pyiscrowd) != len(gt):
        raise AssertionError("iou(iscrowd=) must have the same length as gt")
    if len(dt) == 0 or len(gt) == 0:
        return []
    if isinstance(detections, _runs.Lists) and isinstance(ground_truths, _runs.Lists):
        return _runs.overlaps(detections, ground_truths, crowd)
    if isinstance(detections, _runs.Lists) or isinstance(ground_truths, _runs.Lists):
        raise Exception(
            "The dt and gt should have the same data type, either RLEs, list or np.ndarray"
        )
    return np.asfortranarray(_overlaps(detections, ground_truths, crowd != 0))


def _shapes(objects: Any) -> "Floats | _runs.Lists":
    """Return boxes as an array (n, 4), or masks as run lists."""
    if isinstance(objects, np.ndarray):
        if len(objects) and (objects.ndim != 2 or objects.shape[1] != 4):
            raise MaskError(f"array of boxes has shape {objects.shape}, expected (n, 4)")
        return objects.astype(np.float64)
    if type(objects) is not list:
        raise MaskError(f"expected a list or array, got {type(objects).__name__}")
    if all(type(entry) is dict for entry in objects):
        return _runs.read(objects) if objects else np.zeros((0, 4))
    if all(type(entry) in (list, np.ndarray) and len(entry) == 4 for entry in objects):
        return np.array(objects, np.float64)
    raise Exception("list input can be bounding box (Nx4) or RLEs ([RLE])")


def _overlaps(detections: Floats, ground_truths: Floats, crowd: NDArray[np.bool_]) -> Floats:
    """Compute the IoU of boxes with the operations of ``bbIou`` in maskApi.c.

    NaN and infinite boxes give the same values as there.
    """
    with np.errstate(all="ignore"):
        ends, truth_ends = (
            detections[:, 2:] + detections[:, :2],
            ground_truths[:, 2:] + ground_truths[:, :2],
        )
        width_height = np.fmin(ends[:, None], truth_ends) - np.fmax(
            detections[:, None, :2], ground_truths[:, :2]
        )
        common = width_height[..., 0] * width_height[..., 1]
        area = (detections[:, 2] * detections[:, 3])[:, None]
        union = np.where(crowd, area, area + ground_truths[:, 2] * ground_truths[:, 3] - common)
        overlaps: Floats = np.where((width_height <= 0).any(axis=-1), 0.0, common / union)
    return overlaps


def merge(rleObjs: Any, intersect: int = 0) -> Any:
    """Return the union or intersection of masks; empty for different sizes."""
    return _runs.read(rleObjs).merged(bool(intersect))


def frPyObjects(pyobj: Any, h: int, w: int) -> Any:
    """Convert polygons, boxes or uncompressed RLE to RLE.

    Parameters
    ----------
    pyobj : list of polygons, list of dict, dict, or (n, 4) array
        Polygons [x, y, x, y, x, y, ...]; dicts of ``size`` and ``counts``; boxes.
    h, w : int
        Height and width of the image; unused for RLE.
    """
    if type(pyobj) is np.ndarray:
        return _runs.draw(list(_corners(pyobj)), h, w).texts()
    if type(pyobj) is dict and "counts" in pyobj and "size" in pyobj:
        return _runs.read_counts([pyobj]).texts()[0]
    if type(pyobj) is list and pyobj:
        first = pyobj[0]
        if type(first) is dict and "counts" in first and "size" in first:
            return _runs.read_counts(pyobj).texts()
        if len(first) > 4:
            return _runs.draw(pyobj, h, w).texts()
        raise MaskError(
            f"polygon has {len(first)} numbers, expected at least 6; use an array (n, 4) for boxes"
        )
    raise MaskError(f"{pyobj!r:.60} is not polygons, boxes or RLE")


def _corners(boxes: NDArray[Any]) -> Floats:
    """Return boxes as polygons (n, 8), with pycocotools' corners."""
    if boxes.ndim != 2 or boxes.shape[1] != 4 or boxes.dtype != np.float64:
        raise MaskError(f"boxes are {boxes.dtype} {boxes.shape}, expected float64 (n, 4)")
    left, top = boxes[:, :2].T
    right, bottom = (boxes[:, :2] + boxes[:, 2:]).T
    return np.stack([left, top, left, bottom, right, bottom, right, top], axis=1)


def encode(bimask: NDArray[Any]) -> Any:
    """Encode a bitmap (h, w), or bitmaps (h, w, n), uint8 in Fortran order, as RLE."""
    if bimask.ndim == 3:
        return _runs.encode(bimask).texts()
    return _runs.encode(bimask.reshape((*bimask.shape, 1), order="F")).texts()[0]


def decode(rleObjs: Any) -> Any:
    """Decode a mask to a bitmap (h, w), or a list to (h, w, n)."""
    if type(rleObjs) is list:
        return _runs.read(rleObjs).decoded()
    return _runs.read([rleObjs]).decoded()[:, :, 0]


def area(rleObjs: Any) -> Any:
    """Return the number of pixels of a mask, or of each mask of a list."""
    return _runs.read(rleObjs).areas() if type(rleObjs) is list else area([rleObjs])[0]


def toBbox(rleObjs: Any) -> Any:
    """Return the bounding box of a mask, or of each mask of a list."""
    return _runs.read(rleObjs).boxes() if type(rleObjs) is list else toBbox([rleObjs])[0]
