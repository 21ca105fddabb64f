"""Keypoints, and how alike those of a detection and of a ground truth lie (OKS).

Source: `COCOeval.computeOks` of pycocotools, to the last bit: the exponential is numpy's own, the
order of operations is its, and so is that of the sum, which numpy adds in eight parts.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core import _keypoints
from detap.core.matching import Boxes, Pairs
from detap.core.threads import run_threads, thread_count

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]

_PIECE = 1 << 15
"""Exponentials taken at once: what fits into a cache close by."""


class Poses(NamedTuple):
    """The keypoints of G ground truths, K each.

    Attributes
    ----------
    keypoints : (G, K, 3) float64
        x, y in pixels and v, above 0 where a keypoint is labelled.
    boxes : (G, 4) float64
        x, y, width, height. Where no keypoint is labelled, distances are those to the box with its
        own width and height added on every side.
    """

    keypoints: Floats
    boxes: Floats


def extents(keypoints: Floats) -> Floats:
    """Return the boxes (N, 4), x1 y1 x2 y2, around keypoints (N, K, 2), K above 0."""
    out = np.empty((len(keypoints), 4))
    _keypoints.fill_extents(np.ascontiguousarray(keypoints), out)
    return out


def keypoint_pairs(
    detections: Boxes,
    truths: Boxes,
    *,
    claims: Floats,
    poses: Poses,
    sigmas: tuple[float, ...],
    lowest: float = 0.0,
    threads: int | None = None,
) -> Pairs:
    """Return how alike the keypoints of detections and ground truths of a cell lie.

    A pair has the mean, over its labelled keypoints, of exp(-d² / 2a(2s)²), for the distance d, the
    area a and the keypoint's s.

    Parameters
    ----------
    detections, truths : Boxes
        N and G rows, of which image and label are looked at, and of ground truths the area.
    claims : (N, K, 2) float64
        x and y in pixels.
    poses : Poses
    sigmas : tuple of float
        K of them.
    lowest : float
        Pairs below this are left out, and so are those of 0.
    threads : int, optional
        The result does not depend on it.
    """
    start, truth = _of_one_cell(detections, truths)
    overlap, variances = np.empty(len(truth)), (np.array(sigmas) * 2) ** 2
    labelled = poses.keypoints[:, :, 2] > 0
    keypoint = np.nonzero(labelled)[1]
    likeness = _keypoints.OksPairs(
        np.ascontiguousarray(claims),
        np.concatenate([[0], np.cumsum(labelled.sum(axis=1))]).astype(np.int64),
        keypoint.astype(np.int32),
        poses.keypoints[labelled][:, :2].copy(),
        variances[keypoint],
        np.ascontiguousarray(poses.boxes),
        truths.area + np.spacing(1.0),
        variances,
        start,
        truth,
        lowest,
        overlap,
    )
    edges = _edges(start, max(1, _PIECE // len(sigmas)))
    pieces = iter([*pairwise(edges)])  # threads share it
    most = max((int(start[end] - start[begin]) for begin, end in pairwise(edges)), default=0)

    def work() -> None:
        room = np.empty(most * len(sigmas))
        for begin, end in pieces:
            values = room[: likeness.exponents(begin, end, room)]
            np.exp(values, out=values)
            likeness.means(begin, end, values)

    run_threads(work, threads or thread_count(len(truth)))
    return _reaching(Pairs(start, truth, overlap), lowest)


def _edges(start: NDArray[np.int64], pairs: int) -> list[int]:
    """Return detections at which pieces begin that have so many pairs, or a few more."""
    wanted = np.arange(0, start[-1], pairs)
    first = np.searchsorted(start, wanted)
    # np.unique would import numpy.ma, which takes longer than all that is done here.
    return sorted({*first.tolist(), len(start) - 1}) if len(wanted) else []


def _of_one_cell(detections: Boxes, truths: Boxes) -> tuple[NDArray[np.int64], Integers]:
    """Return the ground truths of each detection's image and class, as pairs have them."""
    labels = np.int64(max(detections.label.max(initial=0), truths.label.max(initial=0)) + 1)
    claims, cells = (boxes.image * labels + boxes.label for boxes in (detections, truths))
    order = np.argsort(cells, kind="stable").astype(np.int32)
    begin, end = (np.searchsorted(cells[order], claims, side) for side in ("left", "right"))
    start = np.concatenate([[0], np.cumsum(end - begin)]).astype(np.int64)
    place = np.arange(start[-1]) - np.repeat(start[:-1] - begin, end - begin)
    return start, order[place]


def _reaching(pairs: Pairs, lowest: float) -> Pairs:
    """Return the pairs that reach an overlap, and have any."""
    kept = (pairs.similarity >= lowest) & (pairs.similarity > 0)
    if kept.all():
        return pairs
    before = np.concatenate([[0], np.cumsum(kept)])
    return Pairs(before[pairs.start], pairs.truth[kept], pairs.similarity[kept])
