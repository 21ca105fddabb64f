"""Recall of class-agnostic proposals: how well each ground truth is covered by its own proposal."""

import numpy as np
from numpy.typing import NDArray

from detap.core import _proposals
from detap.core.matching import Boxes, detection_limits

Floats = NDArray[np.float64]


def coverage(
    detections: Boxes,
    truths: Boxes,
    *,
    counted: NDArray[np.bool_],
    images: int,
    limits: tuple[int | None, ...],
    pixel_edge: bool = False,
) -> Floats:
    """Return the overlap of each ground truth with the proposal that it is paired with.

    Per image, the ground truth and the unused proposal of largest overlap are paired off, again and
    again, whatever the scores; scores only decide which proposals are within the limit.

    Parameters
    ----------
    detections, truths : Boxes
        N proposals with scores, and G ground truths.
    counted : (A, G) bool
        Which ground truths take part in each area range.
    images : int
        How many images there are.
    limits : tuple of M int or None
        Ascending; so many of the best-scored proposals of each image take part.
    pixel_edge : bool
        As for :func:`detap.core.overlap.overlaps`.

    Returns
    -------
    (A, M, G) float64
        0 where a ground truth is left without a proposal.

    References
    ----------
    Hosang et al., What makes for effective detection proposals?, TPAMI 2016; Detectron2's
    ``_evaluate_box_proposals``.
    """
    out = np.zeros((len(counted), len(limits), len(truths.image)))
    _proposals.fill_coverage(
        dt_image=detections.image,
        dt_score=detections.score,
        dt_corners=detections.corners,
        dt_areas=detections.overlap_area,
        gt_image=truths.image,
        gt_corners=truths.corners,
        gt_areas=truths.overlap_area,
        counted=np.ascontiguousarray(counted).view(np.uint8),
        images=images,
        limits=detection_limits(limits),
        edge=1.0 if pixel_edge else 0.0,
        out=out,
    )
    return out


def recall_of_coverage(
    covered: Floats, counted: NDArray[np.bool_], thresholds: Floats, *, strict: bool = False
) -> Floats:
    """Return the share of ground truths that are covered, (T, A, M) float64, NaN where none count.

    Parameters
    ----------
    covered : (A, M, G) float64
        As from :func:`coverage`.
    counted : (A, G) bool
        Which ground truths are in each area range.
    thresholds : (T,) float64
        Overlaps from which a ground truth is covered.
    strict : bool
        Whether the overlap must exceed the threshold.
    """
    total = counted.sum(axis=1).astype(np.float64)
    total[total == 0] = np.nan
    recall = np.empty((len(thresholds), *covered.shape[:2]))
    for t, threshold in enumerate(thresholds):
        reached = covered > threshold if strict else covered >= threshold
        recall[t] = (reached & counted[:, None, :]).sum(axis=2) / total[:, None]
    return recall
