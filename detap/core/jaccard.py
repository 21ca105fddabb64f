"""Jaccard index of images: matched objects over all objects, after one-to-one matching.

Unlike AP, detections and ground truths are matched in the pairing of largest total IoU, at each
score threshold anew. Axes: P image-class pairs, S score thresholds.

References
----------
Chu et al., Detection in Crowded Scenes: One Proposal, Multiple Predictions, CVPR 2020; JIToolkits
of CrowdDet, lib/evaluate/compute_JI.py.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SCORE_THRESHOLDS = tuple(tenth / 10 for tenth in range(10))
"""Detections with a higher score are matched."""

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

_EPS = 1e-6  # of the reference: it keeps the index of an image below 1


class JaccardCounts(NamedTuple):
    """Counts of the images of each class that have an object or a detection."""

    label: NDArray[np.int32]  # (P,)
    image: NDArray[np.int32]  # (P,)
    matched: Counts  # (P, S) matched pairs
    objects: Counts  # (P, S) ground truths and detections together, a matched pair counted once

    def largest_mean(self, classes: int, weights: NDArray[np.integer]) -> Floats:
        """Return the largest mean index of the images over thresholds, (K, B); NaN if undefined."""
        index = self.matched / (self.objects + _EPS)
        largest = np.full((classes, len(weights)), np.nan)
        for label in np.unique(self.label).tolist():
            rows = np.flatnonzero(self.label == label)
            weight = weights[:, self.image[rows]].astype(np.float64)
            images = weight @ (self.objects[rows] > 0)
            with np.errstate(invalid="ignore"):
                mean = weight @ index[rows] / images
            largest[label] = np.fmax.reduce(mean, axis=1)
        return largest
