"""``pycocotools.mask``: masks as run-length strings, and overlaps of masks and of boxes.

The strings are pycocotools', byte for byte. Where it never ends, crashes or returns what it found
in memory (runs that are more or fewer pixels than the mask has, strings cut off, ...) there is a
:class:`~detap.errors.MaskError`, which is a ValueError.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.compat.pycocotools import _runs
from detap.errors import MaskError

Floats = NDArray[np.float64]


def iou(dt: Any, gt: Any, pyiscrowd: Sequence[int]) -> Any:
    """Return the overlap of each of D detections with each of G ground truths.

    Parameters
    ----------
    dt, gt : list or (n, 4) array
        Boxes as x, y, width, height; or masks, run-length encoded.
    pyiscrowd : sequence of int
        G flags: for a crowd it is the intersection over the detection's own area.

    Returns
    -------
    (D, G) float64, column by column in memory; or an empty list where D or G is 0.
        -1 for masks of different sizes.
    """
    crowd = np.array(pyiscrowd, np.uint8)
    claims, truths = _shapes(dt), _shapes(gt)
    if len(pyiscrowd) != len(gt):
        raise AssertionError("iou(iscrowd=) must have the same length as gt")
    if len(dt) == 0 or len(gt) == 0:
        return []
    if isinstance(claims, _runs.Lists) and isinstance(truths, _runs.Lists):
        return _runs.overlaps(claims, truths, crowd)
    if isinstance(claims, _runs.Lists) or isinstance(truths, _runs.Lists):
        raise Exception(
            "The dt and gt should have the same data type, either RLEs, list or np.ndarray"
        )
    return np.asfortranarray(_overlaps(claims, truths, crowd != 0))


def _shapes(objects: Any) -> "Floats | _runs.Lists":
    """Return boxes as an array (n, 4), masks as their runs."""
    if isinstance(objects, np.ndarray):
        if len(objects) and (objects.ndim != 2 or objects.shape[1] != 4):
            raise MaskError(f"an array of shape {objects.shape} is none of boxes; give (n, 4)")
        return objects.astype(np.float64)
    if type(objects) is not list:
        raise MaskError(f"overlaps are those of lists or arrays; this is {type(objects).__name__}")
    if all(type(entry) is dict for entry in objects):
        return _runs.read(objects) if objects else np.zeros((0, 4))
    if all(type(entry) in (list, np.ndarray) and len(entry) == 4 for entry in objects):
        return np.array(objects, np.float64)
    raise Exception("list input can be bounding box (Nx4) or RLEs ([RLE])")


def _overlaps(claims: Floats, truths: Floats, crowd: NDArray[np.bool_]) -> Floats:
    """Return the overlaps of boxes in the order of operations of ``bbIou`` in COCO's maskApi.c.

    Of NaN too, and of boxes without end: what those overlap is whatever it is there.
    """
    with np.errstate(all="ignore"):
        ends, truth_ends = claims[:, 2:] + claims[:, :2], truths[:, 2:] + truths[:, :2]
        sides = np.fmin(ends[:, None], truth_ends) - np.fmax(claims[:, None, :2], truths[:, :2])
        common = sides[..., 0] * sides[..., 1]
        area = (claims[:, 2] * claims[:, 3])[:, None]
        union = np.where(crowd, area, area + truths[:, 2] * truths[:, 3] - common)
        overlaps: Floats = np.where((sides <= 0).any(axis=-1), 0.0, common / union)
    return overlaps


def merge(rleObjs: Any, intersect: int = 0) -> Any:
    """Return the union of masks, or their intersection; nothing of masks of different sizes."""
    return _runs.read(rleObjs).merged(bool(intersect))


def frPyObjects(pyobj: Any, h: int, w: int) -> Any:
    """Return polygons, boxes or plain run lengths as run-length strings.

    Parameters
    ----------
    pyobj : list of polygons, list of dict, dict, or (n, 4) array
        Polygons [x, y, x, y, x, y, ...]; ``size`` and ``counts``, a list; boxes.
    h, w : int
        Height and width of the image; run lengths have their own.
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
            f"a polygon of {len(first)} numbers: it takes three points or more; boxes are given as "
            "an array (n, 4)"
        )
    raise MaskError(f"{pyobj!r:.60} is none of polygons, boxes or run lengths")


def _corners(boxes: NDArray[Any]) -> Floats:
    """Return boxes as the polygons that pycocotools draws, (n, 8)."""
    if boxes.ndim != 2 or boxes.shape[1] != 4 or boxes.dtype != np.float64:
        raise MaskError(f"boxes are {boxes.dtype} {boxes.shape}; give float64 (n, 4)")
    left, top = boxes[:, :2].T
    right, bottom = (boxes[:, :2] + boxes[:, 2:]).T
    return np.stack([left, top, left, bottom, right, bottom, right, top], axis=1)


def encode(bimask: NDArray[Any]) -> Any:
    """Return the run-length string of a bitmap (h, w), or of each of (h, w, n), in Fortran's order.

    Both are uint8.
    """
    if bimask.ndim == 3:
        return _runs.encode(bimask).texts()
    return _runs.encode(bimask.reshape((*bimask.shape, 1), order="F")).texts()[0]


def decode(rleObjs: Any) -> Any:
    """Return the bitmap of one mask (h, w), or those of a list (h, w, n)."""
    if type(rleObjs) is list:
        return _runs.read(rleObjs).decoded()
    return _runs.read([rleObjs]).decoded()[:, :, 0]


def area(rleObjs: Any) -> Any:
    """Return how many pixels a mask, or each of a list, has."""
    return _runs.read(rleObjs).areas() if type(rleObjs) is list else area([rleObjs])[0]


def toBbox(rleObjs: Any) -> Any:
    """Return the box around a mask, or around each of a list."""
    return _runs.read(rleObjs).boxes() if type(rleObjs) is list else toBbox([rleObjs])[0]
