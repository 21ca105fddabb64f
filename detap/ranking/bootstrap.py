"""Paired bootstrap over queries, as :mod:`detap.analysis.bootstrap` over images."""

import numpy as np
from numpy.typing import NDArray

from detap.core.resampling import MAX_PARTS

Floats = NDArray[np.float64]

_BLOCK = 1 << 22
"""Maximum number of values drawn at once, unless there are more queries."""


def resampled_means(values: Floats, *, resamples: int, seed: int) -> Floats:
    """Return the mean over queries in each resample."""
    queries = len(values)
    if not queries:
        return np.full(resamples, np.nan)
    stream = np.random.PCG64(seed)
    means = []
    step = max(1, _BLOCK // queries)  # resamples per block
    for first in range(0, resamples, step):
        count = min(step, resamples - first)
        raw = np.asarray(stream.random_raw(count * queries), np.uint64).reshape(count, queries)
        # The upper 32 bits, scaled to an index: the same with every version of numpy.
        indices = ((raw >> np.uint64(32)) * np.uint64(queries) >> np.uint64(32)).astype(np.int64)
        drawn = values[indices]
        defined = ~np.isnan(drawn)
        counted = defined.sum(axis=1)
        total = np.where(defined, drawn, 0.0).sum(axis=1)
        means.append(np.where(counted > 0, total / np.maximum(counted, 1), np.nan))
    return np.concatenate(means)


def left_out_means(values: Floats) -> Floats:
    """Return the jackknife means: those over queries without one part, for each part."""
    parts = max(1, min(len(values), MAX_PARTS))
    part, defined = np.arange(len(values)) % parts, ~np.isnan(values)
    counts = defined.sum() - np.bincount(part, defined, parts)
    filled = np.where(defined, values, 0.0)
    totals = filled.sum() - np.bincount(part, filled, parts)
    return np.where(counts > 0, totals / np.maximum(counts, 1), np.nan)
