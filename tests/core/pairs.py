"""Check the pairs that the kernels return."""

import numpy as np

from detap.core.arrays import Boxes, Pairs


def check_pairs(pairs: Pairs, detections: Boxes, ground_truths: Boxes) -> None:
    """Assert that pairs join rows of one image and class, those of a detection in order."""
    counts = np.diff(pairs.start)
    assert len(counts) == len(detections.image)
    assert pairs.start[0] == 0
    assert (counts >= 0).all()
    assert pairs.start[-1] == len(pairs.truth) == len(pairs.similarity)
    dt = np.repeat(np.arange(len(counts)), counts)
    assert (detections.image[dt] == ground_truths.image[pairs.truth]).all()
    assert (detections.label[dt] == ground_truths.label[pairs.truth]).all()
    assert ((np.diff(pairs.truth) > 0) | (np.diff(dt) > 0)).all()
