"""Recall of class-agnostic proposals, matched to ground truths by IoU.

Source: Hosang et al., What makes for effective detection proposals?, TPAMI 2016; Detectron2's
``_evaluate_box_proposals``.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.core.arrays import Boxes, Scores
from detap.core.matching import max_dets_array
from detap.core.overlap import overlaps_of
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
    limits = max_dets_array(max_dets).tolist()
    out = np.zeros((len(counted), len(limits), len(ground_truths.image)))
    ranked = np.lexsort((-detections.score, detections.image))
    grouped = np.argsort(ground_truths.image, kind="stable")
    proposals_of, truths_of = (
        np.split(order, np.searchsorted(image[order], np.arange(1, images)))
        for order, image in ((ranked, detections.image), (grouped, ground_truths.image))
    )
    for proposals, truths in zip(proposals_of, truths_of, strict=True):
        rows = proposals[: limits[-1]]
        if not (len(rows) and len(truths)):
            continue
        iou = overlaps_of((detections, ground_truths), rows, truths, inclusive_pixels)
        counts = [min(limit, len(rows)) for limit in limits]
        for a, mask in enumerate(counted[:, truths]):
            matched = {count: _match_best(iou[:count, mask]) for count in {*counts}}
            out[a][:, truths[mask]] = [matched[count] for count in counts]
    return out


def _match_best(iou: Floats) -> Floats:
    """Match the unmatched pair of largest IoU repeatedly; return the IoU of each ground truth."""
    # Of equal ones, the first ground truth is matched, with the proposal of the best score.
    unmatched = iou.T.copy()
    matched = np.zeros(len(unmatched))
    for _ in range(min(unmatched.shape)):
        truth, proposal = divmod(int(unmatched.argmax()), unmatched.shape[1])
        if unmatched[truth, proposal] <= 0:
            break
        matched[truth] = unmatched[truth, proposal]
        unmatched[truth] = unmatched[:, proposal] = 0
    return matched


def accumulate_by_iou(
    iou: Floats,  # (A, M, G) of each ground truth with its matched proposal
    counted: NDArray[np.bool_],  # (A, G)
    proposals: NDArray[Any],  # (I,) number of each image's proposals
    params: MatchParams,
) -> Scores:
    """Accumulate matched ground truths to recall."""
    ground_truths = iou.shape[2]
    scores = Scores.undefined(
        params._replace(levels=()), np.array([ground_truths]), all_max_dets=False
    )
    scores.positives[:, 0] = counted.sum(axis=1)
    tp_counts = np.zeros((len(params.thresholds), *iou.shape[:2]), np.int64)
    for t, threshold in enumerate(params.thresholds):
        reached = iou > threshold if params.strict else iou >= threshold
        tp_counts[t] = (reached & counted[:, None]).sum(axis=2)
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
