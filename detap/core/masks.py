"""Mask areas, bounding boxes and IoU.

Masks are compared as runs of pixels. Polygons are rasterized only if bounds and areas do not decide
whether the minimum similarity is reached.

Source: run lengths, polygons and IoU of COCO's maskApi.c, to the last bit: edges are traced on a
grid five times as fine, and a pixel is inside if the lower half of its column's middle is.
Boundaries: Cheng et al., Boundary IoU, CVPR 2021, as in bowenc0221/boundary-iou-api.
"""

import numpy as np
from numpy.typing import NDArray

from detap.core import _masks
from detap.core.arrays import Boxes, Pairs
from detap.core.matching import group_keys
from detap.core.threads import run_threads, thread_count

Integers = NDArray[np.int32]
Flags = NDArray[np.bool_]
Int64Array = NDArray[np.int64]
Floats = NDArray[np.float64]

MaskArrays = tuple[Integers, Int64Array, NDArray[np.uint32], Int64Array, Int64Array, Floats]
"""M masks: sizes (M, 2) as height, width; run starts (M + 1,) and runs; polygon starts (M + 1,),
polygon ends, and points (P, 2). A mask with polygons is their union."""


def max_runs(masks: MaskArrays) -> Int64Array:
    """Bound the number of runs of each polygon mask, (M,) int64."""
    return _store(masks).max_runs()


def pixel_counts(masks: MaskArrays) -> Int64Array:
    """Count the pixels of each mask, (M,) int64."""
    return areas_and_boxes(masks)[0]


def areas_and_boxes(masks: MaskArrays) -> tuple[Int64Array, Floats]:
    """Return the pixel count and bounding box of each mask."""
    return _store(masks).areas_and_boxes()


def runs_of(masks: MaskArrays, number: int) -> NDArray[np.uint32]:
    """Return the runs of one mask, (n,) uint32."""
    return _store(masks).runs_of(number)


def contour_runs(points: NDArray[np.int32], size: tuple[int, int]) -> NDArray[np.uint32]:
    """Return the runs of a filled contour, as of :class:`detap.tables.masks.Masks`."""
    # Edges join the centers of border pixels, (n, 2) int32 columns and rows, as of OpenCV's
    # findContours; its fillPoly fills them: the pixels inside by the even-odd rule, and the edges.
    height, width = size
    return np.frombuffer(
        _masks.fill_contour(np.ascontiguousarray(points), width, height), np.uint32
    )


def mask_pairs(
    detections: Boxes,
    ground_truths: Boxes,
    *,
    masks: tuple[MaskArrays, MaskArrays],  # of detections and ground truths
    numbers: tuple[Integers, Integers],  # mask index of each row
    crowd: Flags,  # (G,) divide by the detection's pixels for these
    min_similarity: float = 0.0,  # pairs below it, and pairs with no common pixel, are left out
    dilation_ratio: float = 0.0,  # above 0 for boundary IoU; crowds always use their masks
    threads: int | None = None,
) -> Pairs:
    """Return the IoUs of masks of equal image and class."""
    # With a dilation ratio, the minimum of mask IoU and boundary IoU. The boundary of a mask is its
    # pixels within d of a pixel outside it, or of the image border; d is the ratio times the image
    # diagonal, rounded (halves to even), at least 1.
    counts = np.zeros(len(detections.image), np.int64)
    dt_key, gt_key = group_keys(detections, ground_truths)
    kernel = _masks.MaskPairs(
        _store(masks[0]),
        _store(masks[1]),
        numbers[0],
        numbers[1],
        (*_rows_of_shared(dt_key, gt_key), *_rows_of_shared(gt_key, dt_key)),
        crowd.view(np.uint8),
        min_similarity,
        dilation_ratio,
        counts,
    )
    n_threads = threads or thread_count(len(detections.image) + len(ground_truths.image))
    run_threads(kernel.work, n_threads)
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    pairs = Pairs(start, np.zeros(start[-1], np.int32), np.zeros(start[-1]))
    kernel.gather(*pairs)
    return pairs


def _store(masks: MaskArrays) -> _masks.Store:
    sizes, run_start, runs, ring_start, ring_end, points = masks
    return _masks.Store(sizes, run_start, runs, ring_start, ring_end, points.reshape(-1))


def _rows_of_shared(key: Int64Array, other: Int64Array) -> tuple[Integers, Int64Array]:
    """Return the rows whose key is among the others, by key, and the start of each group."""
    order = np.argsort(key, kind="stable").astype(np.int32)
    key, other = key[order], np.sort(other)
    shared = np.searchsorted(other, key, "left") < np.searchsorted(other, key, "right")
    start = np.flatnonzero(np.diff(key[shared], prepend=-1))
    return order[shared], np.append(start, np.count_nonzero(shared)).astype(np.int64)
