"""Recall of class-agnostic proposals, matched to ground truths by IoU.

Source: Hosang et al., What makes for effective detection proposals?, TPAMI 2016; Detectron2's
``_evaluate_box_proposals``.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.core import _proposals
from detap.core.accumulate import Scores
from detap.core.matching import Boxes, max_dets_array
from detap.core.params import MatchParams

Floats = NDArray[np.float64]


def match_by_iou(
    detections: Boxes,
    ground_truths: Boxes,
    *,
    counted: NDArray[np.bool_],  # (A, G) counted ground truths of each area range
    images: int,
    max_dets: tuple[int | None, ...],  # ascending numbers of best-scored proposals per image
    inclusive_pixels: bool,
) -> Floats:
    """Return the IoU of each ground truth with its matched proposal, (A, M, G); 0 without one."""
    # Per image, the unmatched pair of largest IoU is matched repeatedly, whatever the scores; these
    # only select the proposals within max dets.
    out = np.zeros((len(counted), len(max_dets), len(ground_truths.image)))
    _proposals.fill_coverage(
        dt_image=detections.image,
        dt_score=detections.score,
        dt_corners=detections.corners,
        dt_areas=detections.overlap_area,
        gt_image=ground_truths.image,
        gt_corners=ground_truths.corners,
        gt_areas=ground_truths.overlap_area,
        counted=np.ascontiguousarray(counted).view(np.uint8),
        images=images,
        max_dets=max_dets_array(max_dets),
        pixel_offset=1.0 if inclusive_pixels else 0.0,
        out=out,
    )
    return out


def reached_thresholds(iou: Floats, thresholds: Floats, *, strict: bool) -> NDArray[np.uint64]:
    """Return the thresholds that each ground truth reaches, as bits, (A, M, G) uint64."""
    bits = np.zeros(iou.shape, np.uint64)
    for t, threshold in enumerate(thresholds):
        reached = iou > threshold if strict else iou >= threshold
        bits |= reached.astype(np.uint64) << np.uint64(t)
    return bits


def accumulate_by_iou(
    bits: NDArray[Any], counted: NDArray[np.bool_], proposals: NDArray[Any], params: MatchParams
) -> Scores:
    """Accumulate matched ground truths to recall."""
    thresholds, (areas, n_max_dets, ground_truths) = len(params.thresholds), bits.shape
    scores = Scores.undefined(params._replace(levels=()), 1, all_max_dets=False)
    scores.positives[:, 0] = counted.sum(axis=1)
    tp_counts = np.zeros((thresholds, areas, n_max_dets), np.int64)
    for t in range(thresholds):
        reached = (bits & bits.dtype.type(1 << t)) != 0
        tp_counts[t] = (reached & counted[:, None, :]).sum(axis=2)
    total = scores.positives.astype(np.float64)
    total[total == 0] = np.nan
    scores.recall[:, 0] = tp_counts / total
    max_dets = max_dets_array(params.max_dets)[-1]
    within = int(np.minimum(proposals, max_dets).sum())
    tp = int(tp_counts[0, 0, -1])
    positives = int(scores.positives[0, 0])
    counts = [positives, ground_truths - positives, proposals.sum(), tp, within - tp, 0, within]
    scores.counts[:, 0] = counts
    return scores
