"""IoU worked by hand."""

import numpy as np
import pytest

from detap.core.overlap import overlaps, pixel_areas
from detap.tables.detection import encode_boxes

BOX, LINE, POINT = [0, 0, 10, 10], [3, 3, 3, 9], [3, 3, 3, 3]
TINY = [0, 0, 1e-200, 1e-200]
CROWD = {"crowd": np.array([True])}


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


CASES = {
    "half of the box": (BOX, [0, 0, 5, 10], {}, 50 / 100),
    "width and height and one": (BOX, [0, 0, 5, 10], {"inclusive_pixels": True}, 66 / 121),
    "touching": (BOX, [10, 0, 20, 10], {}, 0),
    "a column of 11 pixels": (BOX, [10, 0, 20, 10], {"inclusive_pixels": True}, 11 / 231),
    "a quarter in the crowd": (BOX, [5, 5, 100, 100], CROWD, 0.25),
    **{f"no area {n}": (box, BOX, {}, 0) for n, box in enumerate((LINE, POINT))},
    **{f"no area twice {n}": (box, box, {}, 0) for n, box in enumerate((LINE, POINT))},
    # Half a pixel apart: neither negative, nor of two negative sides.
    "right": (BOX, [10.5, 0, 20, 10], {}, 0),
    "below": (BOX, [0, 10.5, 10, 20], {}, 0),
    "right below": (BOX, [10.5, 10.5, 20, 20], {}, 0),
    "left above": ([10.5, 10.5, 20, 20], BOX, {}, 0),
    "left": ([10.5, 0, 20, 10], BOX, {}, 0),
    "above": ([0, 10.5, 10, 20], BOX, {}, 0),
    # 1e-200 squared is 0 as a double: common area and union are both 0.
    "underflow": (TINY, TINY, {}, 0),
    "underflow in a crowd": (TINY, TINY, CROWD, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_iou_worked_by_hand(name: str) -> None:
    first, second, options, expected = CASES[name]
    assert iou_of(first, second, **options) == expected  # type: ignore[arg-type]
