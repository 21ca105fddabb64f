"""Recall of class-agnostic proposals, worked by hand."""

import numpy as np
import pytest

from detap.core.params import MatchParams
from detap.core.proposals import accumulate_by_iou


def test_counts_and_recall_of_two_images() -> None:
    """Of three proposals on one image, two are within max dets; one of two positives is matched."""
    params = MatchParams(
        thresholds=(0.5,),
        levels=(0.0, 1.0),
        summing="pairwise",
        max_dets=(2,),
        area_ranges=((0.0, np.inf),),
        strict=False,
        best_unmatched=True,
        last_of_equal=False,
        ties_by_image=False,
        precision_eps=0.0,
        inclusive_pixels=False,
    )
    scores = accumulate_by_iou(
        np.array([[[1, 0, 0]]], np.uint8),
        counted=np.array([[True, True, False]]),
        proposals=np.array([3, 1]),
        params=params,
    )
    assert scores.recall.ravel() == pytest.approx([1 / 2])
    positives, ignored, detections, tp, fp, duplicates, within = scores.counts[:, 0].tolist()
    assert (positives, ignored, detections, within) == (2, 1, 4, 3)
    assert (tp, fp, duplicates) == (1, 2, 0)
