"""Object keypoint similarity (OKS) of many keypoints, and which pairs have one."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.core.arrays import Boxes
from detap.core.keypoints import GroundTruthKeypoints, extents, keypoint_pairs


def boxes(image: Any, label: Any, area: Any) -> Boxes:
    none = np.zeros(0)
    return Boxes(image, label, none.reshape(0, 4), none, area, none)


def similarity_of_one_pair(
    detection: Any, ground_truth: Any, sigmas: Any, *, area: float, lowest: float
) -> list[float]:
    """Return the similarity of a detection and a ground truth, if it is at least the lowest."""
    labeled = np.column_stack([ground_truth, np.full(len(ground_truth), 2.0)])
    zero = np.zeros(1, np.int32)
    pairs = keypoint_pairs(
        boxes(zero, zero, np.zeros(1)),
        boxes(zero, zero, np.array([area])),
        dt_keypoints=detection[None],
        gt_keypoints=GroundTruthKeypoints(labeled[None], np.zeros((1, 4))),
        sigmas=tuple(sigmas.tolist()),
        min_similarity=lowest,
        threads=1,
    )
    values: list[float] = pairs.similarity.tolist()
    return values


@pytest.mark.parametrize("count", [1, 7, 8, 9, 15, 16, 17, 100, 128, 129, 133, 300, 1000])
def test_the_mean_over_keypoints_is_numpys_to_the_last_bit(count: int) -> None:
    """By the formula of pycocotools' computeOks, whose sum is numpy's."""
    random = np.random.default_rng(count)
    for _ in range(20):
        ground_truth = random.uniform(0, 100, (count, 2))
        detection = ground_truth + random.normal(0, 3, (count, 2))
        sigmas, area = random.uniform(0.02, 0.2, count), random.uniform(100, 5000)
        x, y = (detection - ground_truth).T
        exponents = (x**2 + y**2) / (2 * sigmas) ** 2 / (area + np.spacing(1)) / 2
        expected = float(np.sum(np.exp(-exponents)) / count)
        actual = similarity_of_one_pair(detection, ground_truth, sigmas, area=area, lowest=1e-300)
        assert actual == [expected]


def test_far_keypoints_count_for_what_they_add() -> None:
    """Five keypoints add 1 each and five exp(-3.05) = 0.0474: the mean is 0.5237."""
    ground_truth, sigmas = np.zeros((10, 2)), np.full(10, 0.5)
    detection = np.zeros((10, 2))
    detection[5:, 0] = 6.1**0.5
    for lowest, pairs in ((0.52, 1), (0.53, 0)):
        actual = similarity_of_one_pair(detection, ground_truth, sigmas, area=1.0, lowest=lowest)
        assert actual == [pytest.approx(0.5237, abs=1e-4)][:pairs]


@given(st.integers(0, 2**32 - 1), st.integers(1, 20))
def test_bounding_boxes_of_keypoints(seed: int, count: int) -> None:
    keypoints = np.random.default_rng(seed).normal(0, 50, (5, count, 2))
    expected = np.hstack([keypoints.min(axis=1), keypoints.max(axis=1)])
    assert extents(keypoints).tolist() == expected.tolist()


def test_pairs_are_in_file_order_of_ground_truths() -> None:
    """The ground truths of two images alternate."""
    count = 64
    zeros = np.zeros(count, np.int32)
    pairs = keypoint_pairs(
        boxes(np.array([0, 1], np.int32), zeros[:2], np.zeros(2)),
        boxes(np.arange(count, dtype=np.int32) % 2, zeros, np.ones(count)),
        dt_keypoints=np.zeros((2, 1, 2)),
        gt_keypoints=GroundTruthKeypoints(
            np.tile([0.0, 0.0, 2.0], (count, 1, 1)), np.zeros((count, 4))
        ),
        sigmas=(0.1,),
    )
    assert pairs.start.tolist() == [0, 32, 64]
    assert pairs.truth.tolist() == [*range(0, 64, 2), *range(1, 64, 2)]
