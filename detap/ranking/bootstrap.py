"""Intervals of drops between two rankings of the same queries: a paired bootstrap over queries.

A mean over queries is a sum of independent parts: a resample draws queries with replacement and
takes the weighted mean again, of both rankings with the same weights. The interval is the
percentile one, as for detectors (:mod:`detap.analysis.bootstrap`).
"""

import numpy as np
from numpy.typing import NDArray

from detap.core.resampling import MAX_PARTS

Floats = NDArray[np.float64]

_BLOCK = 1 << 22


def resampled_means(values: Floats, *, resamples: int, seed: int) -> Floats:
    """Return a mean over queries in each resample of them.

    Parameters
    ----------
    values : (Q,) float64
        What each query adds to the mean; NaN where it is left out of it.
    resamples : int
        B, how many are drawn.
    seed : int
        The same one gives the same resamples, of as many queries.

    Returns
    -------
    (B,) float64
        NaN where no query of a resample counts.
    """
    queries = len(values)
    if not queries:
        return np.full(resamples, np.nan)
    stream = np.random.PCG64(seed)
    means = []
    step = max(1, _BLOCK // queries)
    for first in range(0, resamples, step):
        count = min(step, resamples - first)
        raw = np.asarray(stream.random_raw(count * queries), np.uint64).reshape(count, queries)
        # The upper half of each word, scaled to the number of queries: the same in any numpy.
        chosen = ((raw >> np.uint64(32)) * np.uint64(queries) >> np.uint64(32)).astype(np.int64)
        drawn = values[chosen]
        defined = ~np.isnan(drawn)
        counted = defined.sum(axis=1)
        total = np.where(defined, drawn, 0.0).sum(axis=1)
        means.append(np.where(counted > 0, total / np.maximum(counted, 1), np.nan))
    return np.concatenate(means)


def left_out_means(values: Floats) -> Floats:
    """Return a mean over queries without one part of them, for each part.

    Parameters
    ----------
    values : (Q,) float64
        As in :func:`resampled_means`.

    Returns
    -------
    (G,) float64
        NaN where no query is left.
    """
    parts = max(1, min(len(values), MAX_PARTS))
    part, defined = np.arange(len(values)) % parts, ~np.isnan(values)
    counts = defined.sum() - np.bincount(part, defined, parts)
    drawn = np.where(defined, values, 0.0)
    totals = drawn.sum() - np.bincount(part, drawn, parts)
    return np.where(counts > 0, totals / np.maximum(counts, 1), np.nan)
