"""Masks: how many pixels they have, what they span, and how much they overlap.

Masks are compared as runs of pixels. Polygons become runs only where bounds and areas leave open
whether an overlap reaches what is wanted.

Source: the run lengths, polygons and overlaps of COCO's maskApi.c, reproduced to the last bit:
edges are traced on a grid five times as fine, and a pixel belongs to a polygon where the middle of
its column, at its lower half, does. Boundaries: Cheng et al., Boundary IoU, CVPR 2021, as
bowenc0221/boundary-iou-api takes them.
"""

import numpy as np
from numpy.typing import NDArray

from detap.core import _masks
from detap.core.matching import Boxes, Pairs
from detap.core.threads import run_threads, thread_count

Integers = NDArray[np.int32]
Flags = NDArray[np.bool_]
Wide = NDArray[np.int64]
Floats = NDArray[np.float64]

MaskArrays = tuple[Integers, Wide, NDArray[np.uint32], Wide, Wide, Floats]
"""M masks, as a table has them: height and width of each (M, 2); where its runs begin (M + 1,),
and the runs; where its polygons begin (M + 1,), where each of them ends, and the points (P, 2).
Where there are polygons, their union is the mask."""


def most_runs(masks: MaskArrays) -> Wide:
    """Return an upper bound on the runs that the polygons of each mask become, (M,) int64."""
    bounds: Wide = _store(masks).max_runs()
    return bounds


def pixel_counts(masks: MaskArrays) -> Wide:
    """Return how many pixels each mask has, (M,) int64."""
    areas: Wide = _store(masks).areas()
    return areas


def measured(masks: MaskArrays) -> tuple[Wide, Floats]:
    """Return how many pixels each mask has, and the box around them.

    Returns
    -------
    areas : (M,) int64
    boxes : (M, 4) float64
        x, y, width, height; zeros where a mask has no pixel.
    """
    areas, boxes = _store(masks).areas_and_boxes()
    return areas, boxes


def runs_of(masks: MaskArrays, number: int) -> NDArray[np.uint32]:
    """Return the runs of one mask, (n,) uint32."""
    runs: NDArray[np.uint32] = _store(masks).runs_of(number)
    return runs


def mask_pairs(
    detections: Boxes,
    truths: Boxes,
    *,
    masks: tuple[MaskArrays, MaskArrays],
    numbers: tuple[Integers, Integers],
    crowd: Flags,
    lowest: float = 0.0,
    dilation_ratio: float = 0.0,
    threads: int | None = None,
) -> Pairs:
    """Return the overlaps of masks of the same image and class.

    Or, where there is a dilation ratio, the lesser of that and the overlap of their boundaries:
    of the pixels that have one outside the mask, or the border of the image, within so many on any
    side. How many is that part of the image's diagonal, rounded (halves to even), and at least 1.

    Parameters
    ----------
    detections, truths : Boxes
        N and G rows, of which image and label are looked at.
    masks : pair of MaskArrays
        Of the detections and of the ground truths; those of an image are of one size.
    numbers : pair of (N,) and (G,) int32
        Which mask is each row's.
    crowd : (G,) bool
        Ground truths of which the overlap is what is in common over the detection's pixels.
    lowest : float
        Overlaps below this are left out, and so are those of no pixel.
    dilation_ratio : float
        Above 0 where boundaries count; those that absorb go by their masks in any case.
    threads : int, optional
        The result does not depend on it.
    """
    counts = np.zeros(len(detections.image), np.int64)
    pairing = _masks.MaskPairs(
        _store(masks[0]),
        _store(masks[1]),
        numbers[0],
        numbers[1],
        _cells(detections, truths),
        crowd.view(np.uint8),
        lowest,
        dilation_ratio,
        counts,
    )
    wanted = threads or thread_count(len(detections.image) + len(truths.image))
    run_threads(pairing.work, wanted)
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    pairs = Pairs(start, np.zeros(start[-1], np.int32), np.zeros(start[-1]))
    pairing.gather(*pairs)
    return pairs


def _store(masks: MaskArrays) -> _masks.Store:
    sizes, run_start, runs, ring_start, ring_end, points = masks
    return _masks.Store(sizes, run_start, runs, ring_start, ring_end, points.reshape(-1))


def _cells(detections: Boxes, truths: Boxes) -> tuple[Integers, Wide, Integers, Wide]:
    """Return the rows of each image and class that both sides have, and where each cell begins."""
    labels = max(detections.label.max(initial=0), truths.label.max(initial=0)) + 1
    claims, claim, claim_start = _sorted_rows(detections, labels)
    rows, truth, truth_start = _sorted_rows(truths, labels)
    at = np.searchsorted(truth, claim)
    shared = np.flatnonzero(np.append(truth, -1)[at] == claim)
    return *_cells_of(claims, claim_start, shared), *_cells_of(rows, truth_start, at[shared])


def _sorted_rows(boxes: Boxes, labels: int) -> tuple[Integers, Wide, Wide]:
    """Return rows by image and class, a number of each of these cells, and where each begins."""
    key = boxes.image.astype(np.int64) * labels + boxes.label
    order = np.argsort(key, kind="stable").astype(np.int32)
    key = key[order]
    first = np.flatnonzero(np.diff(key, prepend=-1))
    return order, key[first], np.append(first, len(order))


def _cells_of(rows: Integers, start: Wide, cells: NDArray[np.intp]) -> tuple[Integers, Wide]:
    """Return the rows of some cells, ascending, and where each of them begins."""
    counts = np.diff(start)
    kept = np.zeros(len(counts), np.bool_)
    kept[cells] = True
    begin = np.concatenate([[0], np.cumsum(counts[kept])]).astype(np.int64)
    return rows[np.repeat(kept, counts)], begin
