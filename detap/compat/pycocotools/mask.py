"""``pycocotools.mask``: overlaps of boxes are detap's, masks are left to an installed pycocotools.

Masks are not scored here, but code that scores boxes often makes or reads some on its way. So each
function asks the pycocotools that is installed, which is found when it is first needed, under
:func:`~detap.compat.pycocotools.init_as_pycocotools` too.
"""

import importlib.util
import sys
from collections.abc import Sequence
from functools import cache
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.errors import UsageError

Floats = NDArray[np.float64]

_COMPILED = "pycocotools._mask"


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
    """
    if len(dt) == 0 or len(gt) == 0:
        return []
    if not (_are_boxes(dt) and _are_boxes(gt)):
        return _installed().iou(dt, gt, pyiscrowd)
    claims, truths = np.array(dt, np.float64), np.array(gt, np.float64)
    return np.asfortranarray(_overlaps(claims, truths, np.array(pyiscrowd, np.uint8) != 0))


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


def _are_boxes(objects: Any) -> bool:
    if isinstance(objects, np.ndarray):
        return objects.ndim == 2 and objects.shape[1] == 4
    return type(objects) is list and all(
        type(entry) in (list, np.ndarray) and len(entry) == 4 for entry in objects
    )


def merge(rleObjs: Any, intersect: int = 0) -> Any:
    """Return the union of masks, or their intersection."""
    return _installed().merge(rleObjs, intersect)


def frPyObjects(pyobj: Any, h: int, w: int) -> Any:
    """Return polygons, boxes or plain run lengths as compressed run lengths."""
    return _installed().frPyObjects(pyobj, h, w)


def encode(bimask: NDArray[Any]) -> Any:
    """Return the run lengths of a bitmap (h, w), or of each of (h, w, n)."""
    if bimask.ndim == 3:
        return _installed().encode(bimask)
    return _installed().encode(bimask.reshape((*bimask.shape, 1), order="F"))[0]


def decode(rleObjs: Any) -> Any:
    """Return the bitmap of one mask (h, w), or those of a list (h, w, n)."""
    if type(rleObjs) is list:
        return _installed().decode(rleObjs)
    return _installed().decode([rleObjs])[:, :, 0]


def area(rleObjs: Any) -> Any:
    """Return how many pixels a mask, or each of a list, has."""
    return _installed().area(rleObjs) if type(rleObjs) is list else _installed().area([rleObjs])[0]


def toBbox(rleObjs: Any) -> Any:
    """Return the box around a mask, or around each of a list."""
    if type(rleObjs) is list:
        return _installed().toBbox(rleObjs)
    return _installed().toBbox([rleObjs])[0]


@cache
def _installed() -> ModuleType:
    """Return the compiled half of the pycocotools that is installed.

    It is found by its file: ``pycocotools`` itself may mean this package by now.
    """
    loaded = sys.modules.get(_COMPILED)
    if loaded is not None:
        return loaded
    package = PathFinder.find_spec("pycocotools")
    found = package and PathFinder.find_spec(_COMPILED, package.submodule_search_locations)
    if found is None or found.loader is None:
        raise UsageError(
            "masks need pycocotools itself, which is not installed (pip install pycocotools); "
            "boxes do not"
        )
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module
