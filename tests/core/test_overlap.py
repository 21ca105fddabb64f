"""IoU worked by hand."""

import numpy as np
import pytest

from detap.core.overlap import overlaps, pixel_areas
from detap.tables.detection import encode_boxes


def iou_of(a: list[float], b: list[float], **options: object) -> float:
    first, second = np.array([a]), np.array([b])
    if options.get("inclusive_pixels"):
        areas = pixel_areas(first), pixel_areas(second)
    else:
        areas = encode_boxes(first, "xyxy")[1], encode_boxes(second, "xyxy")[1]
    actual = overlaps(
        first,
        second,
        detection_areas=areas[0],
        truth_areas=areas[1],
        **options,  # type: ignore[arg-type]
    )
    return float(actual[0, 0])


def test_half_a_box() -> None:
    # 10 x 10 against its left half: 50 / 100.
    assert iou_of([0, 0, 10, 10], [0, 0, 5, 10]) == 0.5


def test_inclusive_pixels_adds_one_to_width_and_height() -> None:
    # 11 x 11 pixels against 6 x 11 of them: 66 / 121.
    assert iou_of([0, 0, 10, 10], [0, 0, 5, 10], inclusive_pixels=True) == 66 / 121


def test_touching_boxes_share_a_column_only_with_inclusive_pixels() -> None:
    assert iou_of([0, 0, 10, 10], [10, 0, 20, 10]) == 0
    # 1 x 11 pixels of 121 + 121 - 11.
    assert iou_of([0, 0, 10, 10], [10, 0, 20, 10], inclusive_pixels=True) == 11 / 231


def test_crowd_iou_divides_by_the_detection_area() -> None:
    # A quarter of the detection lies in the crowd.
    actual = iou_of([0, 0, 10, 10], [5, 5, 100, 100], crowd=np.array([True]))
    assert actual == 0.25


@pytest.mark.parametrize("box", [[3, 3, 3, 9], [3, 3, 3, 3]])
def test_a_box_without_area_has_iou_zero(box: list[float]) -> None:
    assert iou_of(box, [0, 0, 10, 10]) == 0
    assert iou_of(box, box) == 0


@pytest.mark.parametrize("box", [[10.5, 0, 20, 10], [0, 10.5, 10, 20], [10.5, 10.5, 20, 20]])
def test_boxes_half_a_pixel_apart_have_iou_zero(box: list[float]) -> None:
    # Neither a negative one, nor that of two negative sides.
    assert iou_of(box, [0, 0, 10, 10]) == 0
    assert iou_of([0, 0, 10, 10], box) == 0


def test_boxes_whose_area_underflows_have_iou_zero() -> None:
    # 1e-200 squared is 0 as a double: common area and union are both 0.
    tiny = [0, 0, 1e-200, 1e-200]
    assert iou_of(tiny, tiny) == 0
    assert iou_of(tiny, tiny, crowd=np.array([True])) == 0
