"""Recall of class-agnostic proposals: how well each ground truth is covered by its own proposal."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.core import _proposals
from detap.core.accumulate import Scores
from detap.core.matching import Boxes, max_dets_array
from detap.core.params import MatchParams

Floats = NDArray[np.float64]


def coverage(
    detections: Boxes,
    truths: Boxes,
    *,
    counted: NDArray[np.bool_],
    images: int,
    limits: tuple[int | None, ...],
    inclusive_pixels: bool = False,
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
    inclusive_pixels : bool
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
        max_dets=max_dets_array(limits),
        pixel_offset=1.0 if inclusive_pixels else 0.0,
        out=out,
    )
    return out


def reached_thresholds(
    covered: Floats, thresholds: Floats, *, strict: bool = False
) -> NDArray[np.uint64]:
    """Return the thresholds at which each ground truth is covered, as bits, (A, M, G) uint64.

    Parameters
    ----------
    covered : (A, M, G) float64
        As from :func:`coverage`.
    thresholds : (T,) float64
        Overlaps from which a ground truth is covered.
    strict : bool
        Whether the overlap must exceed the threshold.
    """
    words = np.zeros(covered.shape, np.uint64)
    for t, threshold in enumerate(thresholds):
        reached = covered > threshold if strict else covered >= threshold
        words |= reached.astype(np.uint64) << np.uint64(t)
    return words


def accumulate_coverage(
    words: NDArray[Any], counted: NDArray[np.bool_], proposals: NDArray[Any], params: MatchParams
) -> Scores:
    """Return the scores that covered ground truths come to.

    Parameters
    ----------
    words : (A, M, G) unsigned integers
        As from :func:`reached_thresholds`.
    counted : (A, G) bool
        Which ground truths are in each area range.
    proposals : (I,) array of int
        How many there are in each image.
    params : Rules
    """
    thresholds, (areas, limits, truths) = len(params.thresholds), words.shape
    scores = Scores.undefined(params._replace(levels=()), np.array([truths]), all_max_dets=False)
    scores.positives[:, 0] = counted.sum(axis=1)
    found = np.zeros((thresholds, areas, limits), np.int64)
    for t in range(thresholds):
        reached = (words & words.dtype.type(1 << t)) != 0
        found[t] = (reached & counted[:, None, :]).sum(axis=2)
    total = scores.positives.astype(np.float64)
    total[total == 0] = np.nan
    scores.recall[:, 0] = found / total
    most = max_dets_array(params.max_dets)[-1]
    within = int(np.minimum(proposals.astype(np.int64), most).sum())
    right = int(found[0, 0, -1])
    positives = int(scores.positives[0, 0])
    counts = [positives, truths - positives, proposals.sum(), right, within - right, 0, within]
    scores.counts[:, 0] = counts
    return scores
