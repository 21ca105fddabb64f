"""Precision, recall and average precision of a ranked list, stored as *hits*.

For each relevant item, by rank, a hit is the number of irrelevant items above it: with f of them
above the h-th, precision is h / (h + f) and recall h / positives.

Sources: Everingham et al., The PASCAL Visual Object Classes (VOC) Challenge, IJCV 2010; Lin et al.,
Microsoft COCO, ECCV 2014; Manning et al., Introduction to Information Retrieval, chapter 8.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detap.core import _curves
from detap.core.params import SUMMINGS, Summing, recall_targets

Floats = NDArray[np.float64]


def hits_of(relevant: ArrayLike) -> NDArray[np.int32]:
    """Return the hits of a ranked list."""
    positions = np.flatnonzero(relevant)
    return (positions - np.arange(len(positions))).astype(np.int32)


def precision_at_hits(hits: NDArray[np.int32], *, precision_eps: float = 0.0) -> Floats:
    """Return the precision at each hit, (H,) float64."""
    relevant = np.arange(1.0, len(hits) + 1)
    return relevant / ((hits + relevant) + precision_eps)


def envelope(hits: NDArray[np.int32], *, precision_eps: float = 0.0) -> Floats:
    """Return the interpolated precision at each hit, (H,) float64."""
    precision = precision_at_hits(hits, precision_eps=precision_eps)
    return np.maximum.accumulate(precision[::-1])[::-1]


def interpolated_precision(
    hits: NDArray[np.int32],  # (H,)
    positives: float,  # number of relevant items
    levels: Floats,  # (R,) ascending recalls
    *,
    summing: Summing = "pairwise",
    precision_eps: float = 0.0,
) -> Floats:
    """Return the interpolated precision at each recall level, (R,) float64."""
    recall = np.arange(1.0, len(hits) + 1) / positives
    reached = np.searchsorted(recall, recall_targets(levels, summing))
    return np.append(envelope(hits, precision_eps=precision_eps), 0.0)[reached]


def average_precision(
    hits: NDArray[np.int32],  # (H,)
    positives: float,  # number of relevant items; AP is undefined if it is 0
    *,
    levels: Floats | None = None,  # (R,) by default precision is integrated over recall
    interpolated: bool = True,  # without levels: by its envelope (VOC 2010-2012)
    summing: Summing = "pairwise",
    precision_eps: float = 0.0,
) -> float:
    """Return the average precision of one ranked list."""
    # `summing` adds in pairs as numpy.mean, p / R level by level as voc_eval, which differs in the
    # last bits, or integrates by the trapezoidal rule over the levels.
    if interpolated:
        begin, counts = np.array([0, len(hits)], np.int32), np.array([positives], np.int64)
        values = average_precisions(
            hits, begin, counts, levels=levels, summing=summing, precision_eps=precision_eps
        )
        return float(values[0])
    if positives <= 0:
        return float("nan")
    # One more term, the step from the final recall to 1, changes NumPy's order of summation.
    recall = np.arange(1.0, len(hits) + 1) / positives
    terms = np.zeros(len(hits) + (len(hits) < positives))
    terms[: len(hits)] = recall
    terms[1 : len(hits)] -= recall[:-1]
    terms[: len(hits)] *= precision_at_hits(hits)
    return float(terms.sum())


def average_precisions(
    hits: NDArray[np.int32],  # (H,)
    begin: NDArray[np.int32],  # (K + 1,) first hit of each list
    positives: NDArray[np.int64],  # (K,)
    *,
    levels: Floats | None = None,
    summing: Summing = "pairwise",
    precision_eps: float = 0.0,
) -> Floats:
    """Return the interpolated average precision of K ranked lists, (K,) float64."""
    out = np.empty(len(positives))
    levels = np.zeros(0) if levels is None else levels
    targets, method = recall_targets(levels, summing), SUMMINGS.index(summing)
    _curves.fill_averages(hits, begin, positives, levels, targets, precision_eps, method, out)
    return out


def count_above(
    kind: NDArray[np.int8],  # (N,) of each item, from 0; below 0 if it is not counted
    start: NDArray[np.int32],  # (K + 1,) first item of each list
    begin: NDArray[np.int32],  # (K + 1,) first position of each list
    index: NDArray[np.int32],  # (n,) the positions
    kinds: int,
) -> NDArray[np.int32]:
    """Count the items of each kind above given positions of their lists, (kinds, n) int32."""
    first = np.repeat(start[:-1], np.diff(begin))
    counts = np.zeros((kinds, len(kind) + 1), np.int32)
    np.cumsum(kind == np.arange(kinds)[:, None], axis=1, dtype=np.int32, out=counts[:, 1:])
    return counts[:, index] - counts[:, first]


def mean_of_defined(values: Floats) -> float:
    """Return the mean of the values that are not NaN; NaN if there are none."""
    defined = values[~np.isnan(values)]
    return float(np.mean(defined)) if len(defined) else float("nan")
