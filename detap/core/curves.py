"""Precision, recall and average precision of a ranked list.

Detection, retrieval and classification share this step: an ordered list of relevant and irrelevant
items and the number of relevant ones give precision, recall and average precision. The variants
differ in the recall levels, the envelope and the divisor.

A list is stored as *hits*: for each relevant item, by rank, the number of irrelevant items above
it. With h hits and f irrelevant items above the h-th, precision is h / (h + f) and recall
h / positives.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detap.core import _curves
from detap.core.params import SUMMINGS, Summing, recall_targets

Floats = NDArray[np.float64]


def hits_of(relevant: ArrayLike) -> NDArray[np.int32]:
    """Return the hits of a ranked list.

    Parameters
    ----------
    relevant : (n,) array of bool
        Relevance of each item, best-ranked first.

    Returns
    -------
    (H,) int32
        For each relevant item, the number of irrelevant items above it.
    """
    flags = np.ascontiguousarray(np.asarray(relevant, np.bool_)).view(np.uint8)
    return np.array(_curves.hits_of(flags), np.int32)


def precision_at_hits(hits: NDArray[np.int32], *, precision_eps: float = 0.0) -> Floats:
    """Return the precision at each hit, (H,) float64.

    Parameters
    ----------
    hits : (H,) int32
        As from :func:`hits_of`.
    precision_eps : float
        Added to the number of items; pycocotools adds ``numpy.spacing(1)``.
    """
    out = np.empty(len(hits))
    _curves.fill_precision(hits, precision_eps, False, out)
    return out


def envelope(hits: NDArray[np.int32], *, precision_eps: float = 0.0) -> Floats:
    """Return the interpolated precision at each hit, (H,) float64."""
    out = np.empty(len(hits))
    _curves.fill_precision(hits, precision_eps, True, out)
    return out


def interpolated_precision(
    hits: NDArray[np.int32],
    positives: float,
    levels: Floats,
    *,
    summing: Summing = "pairwise",
    precision_eps: float = 0.0,
) -> Floats:
    """Return the interpolated precision at each recall level, (R,) float64.

    It is 0 at levels that are not reached.

    Parameters
    ----------
    hits : (H,) int32
        As from :func:`hits_of`.
    positives : float
        Number of relevant items.
    levels : (R,) float64
        Ascending recalls.
    summing : {"pairwise", "one-by-one", "trapezoid"}
        As for :func:`average_precision`; for the trapezoid a recall must exceed the level.
    precision_eps : float
        As for :func:`precision_at_hits`.
    """
    out = np.empty(len(levels))
    targets = recall_targets(levels, summing)
    _curves.fill_levels(envelope(hits, precision_eps=precision_eps), positives, targets, out)
    return out


def average_precision(
    hits: NDArray[np.int32],
    positives: float,
    *,
    levels: Floats | None = None,
    interpolated: bool = True,
    summing: Summing = "pairwise",
    precision_eps: float = 0.0,
) -> float:
    """Return the average precision of one ranked list.

    Parameters
    ----------
    hits : (H,) int32
        As from :func:`hits_of`.
    positives : float
        Number of relevant items; AP is undefined if it is 0.
    levels : (R,) float64, optional
        Recall levels at which interpolated precision is averaged (11 for VOC 2007, 101 for COCO);
        by default precision is integrated over recall.
    interpolated : bool
        Without levels: replace precision by its envelope (VOC 2010-2012), or not (information
        retrieval).
    summing : {"pairwise", "one-by-one", "trapezoid"}
        With levels: add in pairs as numpy.mean; add p / R level by level as voc_eval, which differs
        in the last bits; or integrate by the trapezoidal rule over the levels.
    precision_eps : float
        As for :func:`precision_at_hits`.

    Returns
    -------
    float
        In [0, 1]; NaN if there are no positives.

    References
    ----------
    Everingham et al., The PASCAL Visual Object Classes (VOC) Challenge, IJCV 2010; Lin et al.,
    Microsoft COCO, ECCV 2014; Manning et al., Introduction to Information Retrieval, chapter 8.
    """
    if positives <= 0:
        return float("nan")
    if levels is not None:
        values = interpolated_precision(
            hits, positives, levels, summing=summing, precision_eps=precision_eps
        )
        return _curves.average_precision(values, levels, SUMMINGS.index(summing))
    precision = (envelope if interpolated else precision_at_hits)(hits, precision_eps=precision_eps)
    return _curves.area(precision, positives)


def average_precisions(
    hits: NDArray[np.int32],
    begin: NDArray[np.int32],
    positives: NDArray[np.int64],
    *,
    levels: Floats | None = None,
    summing: Summing = "pairwise",
    precision_eps: float = 0.0,
) -> Floats:
    """Return the interpolated average precision of K ranked lists, (K,) float64.

    Parameters
    ----------
    hits : (H,) int32
        As from :func:`hits_of`, list after list.
    begin : (K + 1,) int32
        First hit of each list.
    positives : (K,) int64
    levels, summing, precision_eps
        As for :func:`average_precision`.
    """
    out = np.empty(len(positives))
    levels = np.zeros(0) if levels is None else levels
    targets, method = recall_targets(levels, summing), SUMMINGS.index(summing)
    _curves.fill_averages(hits, begin, positives, levels, targets, precision_eps, method, out)
    return out


def mean_of_defined(values: Floats) -> float:
    """Return the mean of the values that are not NaN; NaN if there are none."""
    defined = values[~np.isnan(values)]
    return float(np.mean(defined)) if len(defined) else float("nan")
