"""Object keypoint similarity (OKS) of detections and ground truths.

Source: `COCOeval.computeOks` of pycocotools, to the last bit: numpy's exponential and pairwise sum,
and the same order of operations.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core import _keypoints
from detap.core.arrays import Boxes, Pairs
from detap.core.matching import group_pairs
from detap.core.threads import run_chunks, thread_count

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]

_CHUNK_SIZE = 1 << 15
"""Mean number of exponentials per chunk, which fit into the L2 cache."""


class GroundTruthKeypoints(NamedTuple):
    """K keypoints of each of G ground truths."""

    keypoints: Floats  # (G, K, 3) x, y in pixels and v, above 0 for labeled keypoints
    boxes: Floats  # (G, 4) x, y, width, height


def extents(keypoints: Floats) -> Floats:
    """Return the boxes x1 y1 x2 y2 (N, 4) around keypoints (N, K, 2 or 3)."""
    points = keypoints[:, :, :2]
    low, high = points.min(axis=1, initial=np.inf), points.max(axis=1, initial=-np.inf)
    return np.hstack([low, high])


def keypoint_pairs(
    detections: Boxes,
    ground_truths: Boxes,
    *,
    dt_keypoints: Floats,  # (N, K, 2) x and y in pixels
    gt_keypoints: GroundTruthKeypoints,
    sigmas: tuple[float, ...],  # one per keypoint
    min_similarity: float = 0.0,  # pairs below it, and pairs of 0, are left out
    threads: int | None = None,
) -> Pairs:
    """Return the OKS of detections and ground truths of equal image and class."""
    # The mean of exp(-d² / 2a(2s)²) over labeled keypoints, for distance d, area a and sigma s.
    start, truth = group_pairs(detections, ground_truths)
    similarity, variances = np.empty(len(truth)), (np.array(sigmas) * 2) ** 2
    labeled = gt_keypoints.keypoints[:, :, 2] > 0
    keypoint = np.nonzero(labeled)[1]
    oks = _keypoints.OksPairs(
        np.ascontiguousarray(dt_keypoints),
        np.concatenate([[0], np.cumsum(labeled.sum(axis=1))]).astype(np.int64),
        keypoint.astype(np.int32),
        gt_keypoints.keypoints[labeled][:, :2].copy(),
        variances[keypoint],
        np.ascontiguousarray(gt_keypoints.boxes),
        ground_truths.area + np.spacing(1.0),
        variances,
        start,
        truth,
        min_similarity,
        similarity,
    )
    rows = len(start) - 1
    rows_per_chunk = _CHUNK_SIZE * rows // max(1, len(truth) * len(sigmas))

    def work(begin: int, end: int) -> None:
        values = np.empty((start[end] - start[begin]) * len(sigmas))
        values = values[: oks.exponents(begin, end, values)]
        np.exp(values, out=values)
        oks.means(begin, end, values)

    run_chunks(work, rows, max(1, rows_per_chunk), threads or thread_count(len(truth)))
    mask = (similarity >= min_similarity) & (similarity > 0)
    new_start = np.concatenate([[0], np.cumsum(mask)])
    return Pairs(new_start[start], truth[mask], similarity[mask])
