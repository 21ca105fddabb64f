"""Compiled loops over whole columns, compared with the oracle row by row."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from detap.checks.box_stats import found_classes
from detap.tables._loops import survey_boxes
from detap.tables.detection import encode_boxes
from detap.tables.notes import backward
from tests.oracle import columns as plain

seeds = st.integers(0, 2**32 - 1)


def some_boxes(random: np.random.Generator, count: int) -> Any:
    """Return corners on few integers, so that boxes touch, coincide and are degenerate."""
    corner = random.integers(-3, 12, (count, 2))
    return np.hstack([corner, corner + random.integers(0, 9, (count, 2))]).astype(float)


@given(seeds, st.integers(0, 40), st.sampled_from((1.0, 0.5, 3.0)))
def test_boxes_beyond_their_image(seed: int, count: int, margin: float) -> None:
    random = np.random.default_rng(seed)
    sizes = random.integers(4, 20, (3, 2)).astype(float)
    sizes[random.random(3) < 0.3] = np.nan  # unknown: only what lies left or above is beyond
    boxes, image = some_boxes(random, count), random.integers(0, 3, count).astype(np.int32)
    expected = plain.beyond_image(boxes.tolist(), [tuple(sizes[i].tolist()) for i in image], margin)
    assert survey_boxes(boxes, image, sizes, margin) == expected


@given(seeds, st.integers(0, 6), st.integers(0, 20), st.sampled_from((0.1, 0.5, 1.0)))
def test_classes_detected_at_ground_truths(
    seed: int, truths: int, detections: int, threshold: float
) -> None:
    random = np.random.default_rng(seed)
    boxes = some_boxes(random, truths), some_boxes(random, detections)
    boxes[1][: min(detections, truths)] = boxes[0][:detections][:truths]
    label = [random.integers(0, 3, count).astype(np.int32) for count in (truths, detections)]
    ours = found_classes(boxes[0], label[0], boxes[1], label[1], threshold)
    expected, rows = (
        [(0, *row) for row in zip(label[side].tolist(), boxes[side].tolist(), strict=True)]
        for side in (0, 1)
    )
    assert ours == plain.detected_classes(expected, rows, threshold)


@given(seeds, st.integers(0, 20), st.booleans())
def test_corners_and_areas(seed: int, count: int, corners: bool) -> None:
    random = np.random.default_rng(seed)
    given_boxes = random.normal(0, 10, (count, 4))
    made, areas = encode_boxes(given_boxes, "xyxy" if corners else "xywh")
    expected = [plain.corners_and_area(box, corners=corners) for box in given_boxes.tolist()]
    assert list(zip(made.tolist(), areas.tolist(), strict=True)) == expected
    negative = [x2 < x1 or y2 < y1 or area < 0 for (x1, y1, x2, y2), area in expected]
    assert backward(made, areas).tolist() == np.flatnonzero(negative).tolist()


def test_boxes_without_extent_are_not_backward_and_a_negative_area_is() -> None:
    corners = np.array([[1.0, 1, 1, 1], [2, 0, 1, 3], [0, 3, 3, 2], [0, 0, 1, 1]])
    assert backward(corners, np.array([0.0, 3, 3, -1])).tolist() == [1, 2, 3]


def test_the_class_on_a_ground_truth_by_hand() -> None:
    def classes(*detections: tuple[int, float]) -> list[tuple[int, int]]:
        """Return the result for detections of a class and an IoU with one box of class 0."""
        corners = np.array([[0, 0, 10, 10 * iou] for _, iou in detections])
        labels = np.array([label for label, _ in detections], np.int32)
        box, zero = np.array([[0.0, 0, 10, 10]]), np.zeros(1, np.int32)
        return found_classes(box, zero, corners, labels, 0.5)

    assert classes((1, 1.0), (0, 0.5)) == [(0, 0)]  # its own class, at the threshold exactly
    assert classes((2, 0.75), (1, 0.75)) == [(0, 2)]  # the first of equal ones
    assert classes((2, 0.25)) == []
