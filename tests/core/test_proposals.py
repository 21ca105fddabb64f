"""Recall of class-agnostic proposals, worked by hand."""

import numpy as np
import pytest

from detap.core.matching import Boxes
from detap.core.params import MatchParams
from detap.core.proposals import accumulate_by_iou, match_by_iou


def test_a_proposal_matches_only_ground_truths_of_the_area_range() -> None:
    """It overlaps the first wholly, and the second, shifted by one of ten pixels, by 9/11."""

    def boxes(corners: list[list[float]]) -> Boxes:
        count = len(corners)
        zeros, areas = np.zeros(count, np.int32), np.full(count, 100.0)
        return Boxes(zeros, zeros, np.array(corners), areas, areas, np.ones(count))

    iou = match_by_iou(
        boxes([[0.0, 0.0, 10.0, 10.0]]),
        boxes([[0.0, 0.0, 10.0, 10.0], [1.0, 0.0, 11.0, 10.0]]),
        counted=np.array([[True, True], [False, True]]),
        images=1,
        max_dets=(1,),
        inclusive_pixels=False,
    )
    assert iou.tolist() == [[[1.0, 0.0]], [[0.0, 9 / 11]]]


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
        np.array([[[1.0, 0.0, 0.0]]]),
        counted=np.array([[True, True, False]]),
        proposals=np.array([3, 1]),
        params=params,
    )
    assert scores.recall.ravel() == pytest.approx([1 / 2])
    positives, ignored, detections, tp, fp, duplicates, within = scores.counts[:, 0].tolist()
    assert (positives, ignored, detections, within) == (2, 1, 4, 3)
    assert (tp, fp, duplicates) == (1, 2, 0)
