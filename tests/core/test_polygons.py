"""IoU of quadrilaterals: by hand, against exact arithmetic, and invariances."""

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from detap.core import _polygons
from detap.core.arrays import Boxes
from detap.core.overlap import overlaps
from detap.core.polygons import (
    bounds,
    box_polygons,
    is_self_intersecting,
    polygon_areas,
    polygon_overlaps,
    polygon_pairs,
    rotated_boxes,
)
from tests.core.pairs import check_pairs
from tests.oracle.polygons import is_simple, quad_area, quad_iou

Quad = Sequence[float]

SQUARE = [0, 0, 10, 0, 10, 10, 0, 10]
BOW_TIE = [0, 0, 10, 10, 10, 0, 0, 10]
DART = [0, 0, 10, 0, 5, 5, 0, 10]
ROOT = math.sqrt(50)

CASES = [
    (SQUARE, [5, 0, 10, 5, 5, 10, 0, 5], 0.5),  # the diamond in it
    (SQUARE, [0, 0, 10, 0, 10, 5, 0, 5], 0.5),
    (SQUARE, [0, 0, 0, 10, 10, 10, 10, 0], 1.0),  # the other way round
    (SQUARE, DART, 0.5),
    (SQUARE, BOW_TIE, 0.0),
    (SQUARE, [10, 0, 20, 0, 20, 10, 10, 10], 0.0),  # touching
    (SQUARE, [0] * 8, 0.0),
    ([0] * 8, [0] * 8, 0.0),
    (DART, [10, 10, 10, 0, 5, 5, 0, 10], 0.0),  # darts back to back
    (DART, DART, 1.0),
]


def polygon_iou(first: Quad, second: Quad) -> float:
    return float(polygon_overlaps(np.array([first], float), np.array([second], float))[0])


@pytest.mark.parametrize(("first", "second", "expected"), CASES)
def test_iou_equals_values_worked_by_hand_and_exact_arithmetic(
    first: Quad, second: Quad, expected: float
) -> None:
    assert polygon_iou(first, second) == polygon_iou(second, first) == expected


def test_rotated_squares_and_crossed_bars() -> None:
    diamond = [5, 5 - ROOT, 5 + ROOT, 5, 5, 5 + ROOT, 5 - ROOT, 5]
    assert polygon_iou(SQUARE, diamond) == pytest.approx(1 / math.sqrt(2), abs=1e-15)
    lying, standing = [-10, -5, 10, -5, 10, 5, -10, 5], [-5, -10, 5, -10, 5, 10, -5, 10]
    assert polygon_iou(lying, standing) == pytest.approx(1 / 3, abs=1e-16)


def test_the_cases_of_the_reference(real_data: Path) -> None:
    cases = json.loads((real_data / "iou-types-cases" / "rotated.json").read_text())
    assert len(cases) == 9
    for case in cases:
        assert polygon_iou(case["a"], case["b"]) == pytest.approx(case["polyiou"], abs=1e-9)


def test_crowd_iou_divides_by_the_detection_area() -> None:
    given = np.array([[0, 0, 10, 0, 10, 5, 0, 5]], float), np.array([SQUARE], float)
    assert polygon_overlaps(*given, np.array([True]))[0] == 1
    assert polygon_overlaps(*given[::-1], np.array([True]))[0] == 0.5


# --- against exact arithmetic


coordinates = st.integers(-40, 40).map(lambda n: n / 4) | st.floats(-50, 50).map(
    lambda x: round(x, 3)
)
quads = st.lists(coordinates, min_size=8, max_size=8).filter(is_simple)


def test_the_exact_oracle_equals_values_worked_by_hand() -> None:
    assert quad_iou(SQUARE, DART) == Fraction(1, 2)
    assert quad_iou(SQUARE, [5, 5, 15, 5, 15, 15, 5, 15]) == Fraction(25, 175)


@given(quads, quads, st.sampled_from([0.0, 1000.0, 10000.0]))
def test_simple_quadrilaterals_against_exact_arithmetic(
    first: Quad, second: Quad, away: float
) -> None:
    # Far from the origin too, where the reference is off by 5e-10.
    first, second = [x + away for x in first], [x + away for x in second]
    if not (is_simple(first) and is_simple(second)):
        return  # three corners have become a line by rounding
    expected = float(quad_iou(first, second))
    assert polygon_iou(first, second) == pytest.approx(expected, abs=1e-9)
    pair = np.array([first], float), np.array([second], float)
    expected = float(quad_iou(first, second, crowd=True))
    assert polygon_overlaps(*pair, np.array([True]))[0] == pytest.approx(expected, abs=1e-9)
    assert polygon_areas(pair[0])[0] == pytest.approx(float(quad_area(first)), rel=1e-9)
    assert not is_self_intersecting(np.array([first, second])).any()


def test_no_precision_is_lost_far_from_the_origin() -> None:
    bar = [10000.1, 9999.9, 10004.3, 10001.7, 10003.2, 10004.4, 9999.0, 10002.6]
    other = [x + 0.75 for x in bar]
    assert polygon_iou(bar, other) == pytest.approx(float(quad_iou(bar, other)), abs=1e-14)


@given(quads, quads, st.integers(0, 3), st.booleans(), st.booleans())
def test_order_winding_and_first_corner_do_not_matter(
    first: Quad, second: Quad, shift: int, back: bool, swap: bool
) -> None:
    corners = np.roll(np.array(second).reshape(4, 2), shift, axis=0)
    turned_round = (corners[::-1] if back else corners).ravel().tolist()
    pair = (turned_round, first) if swap else (first, turned_round)
    assert polygon_iou(*pair) == pytest.approx(polygon_iou(first, second), abs=1e-12)
    assert 0 <= polygon_iou(*pair) <= 1


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=16, max_size=16))
def test_any_numbers_give_an_iou_in_0_1_or_nan(values: list[float]) -> None:
    with np.errstate(all="ignore"):
        actual = polygon_iou(values[:8], values[8:])
    assert math.isnan(actual) or 0 <= actual <= 1


boxes = st.tuples(*[st.floats(-100, 100)] * 2, *[st.floats(0.01, 100)] * 2).map(
    lambda box: [box[0], box[1], box[0] + box[2], box[1] + box[3]]
)


@given(boxes, boxes)
def test_axis_aligned_quadrilaterals_have_the_iou_of_boxes(first: Quad, second: Quad) -> None:
    a, b = np.array([first]), np.array([second])
    area = [polygon_areas(box_polygons(box)) for box in (a, b)]
    expected = overlaps(a, b, detection_areas=area[0], truth_areas=area[1])[0, 0]
    actual = polygon_overlaps(box_polygons(a), box_polygons(b))[0]
    assert actual == pytest.approx(expected, abs=1e-9)


# --- the rest


def test_bounds_areas_and_self_intersections() -> None:
    given = np.array([SQUARE, BOW_TIE, DART, [0] * 8], float)
    assert bounds(given).tolist() == [[0, 0, 10, 10]] * 3 + [[0, 0, 0, 0]]
    assert polygon_areas(given).tolist() == [100, 0, 50, 0]
    assert is_self_intersecting(given).tolist() == [False, True, False, False]


def test_corners_of_rotated_boxes() -> None:
    actual = rotated_boxes(np.array([[10, 20, 8, 4, 0], [10, 20, 8, 4, np.pi / 2]]))
    assert actual[0].tolist() == [6, 18, 14, 18, 14, 22, 6, 22]
    # A quarter from x to y: what was the width now goes down.
    assert actual[1] == pytest.approx([12, 16, 12, 24, 8, 24, 8, 16])


def columns(image: list[int], label: list[int], polygons: np.ndarray) -> Boxes:
    empty = np.zeros(len(image))
    ids = np.array(image, np.int32), np.array(label, np.int32)
    return Boxes(*ids, bounds(polygons), empty, empty, empty)


def test_pairs_share_image_and_class_and_have_overlapping_bounds() -> None:
    shifted = [np.array([[x + by for x in SQUARE]], float) for by in (0, 5, 50)]
    truths = np.vstack([shifted[0], shifted[1], shifted[2], shifted[0], shifted[0]])
    detections = np.vstack([shifted[2], shifted[0]])
    given = columns([0, 0], [0, 0], detections), columns([0, 0, 0, 1, 0], [0, 0, 0, 0, 1], truths)
    pairs = polygon_pairs(*given, polygons=(detections, truths), crowd=np.zeros(5, np.bool_))
    check_pairs(pairs, *given)
    assert_array_equal(pairs.start, [0, 1, 3])
    assert_array_equal(pairs.truth, [2, 0, 1])
    assert pairs.similarity.tolist() == [1, 1, 25 / 175]


def test_pairs_are_in_file_order_of_ground_truths() -> None:
    """The ground truths of two images alternate."""
    squares = np.tile(np.array(SQUARE, float), (64, 1))
    image = np.arange(64) % 2
    given = columns([0, 1], [0, 0], squares[:2]), columns(image.tolist(), [0] * 64, squares)
    pairs = polygon_pairs(*given, polygons=(squares[:2], squares), crowd=np.zeros(64, np.bool_))
    assert pairs.truth.tolist() == [*range(0, 64, 2), *range(1, 64, 2)]


def test_candidates_are_those_whose_bounds_share_more_than_an_edge() -> None:
    """Of the ground truths, 0 overlaps, 1 touches, 2 lies below, 3 is of another class."""
    detections = np.array([[0.0, 0, 4, 4], [0.0, 0, 1, 1]])
    truths = np.array([[2.0, 2, 6, 6], [4, 0, 8, 4], [0, 5, 4, 9], [0, 0, 4, 4], [3, 3, 4, 4]])
    order = np.array([3, 4, 2, 1, 0], np.int32)
    begin, end = np.array([1, 0]), np.array([5, 1])
    start, none = np.zeros(3, np.int64), np.zeros(0, np.int32)
    _polygons.fill_candidates(detections, truths, order, begin, end, start, none)
    assert start.tolist() == [0, 2, 3]
    out = np.full(3, -1, np.int32)
    _polygons.fill_candidates(detections, truths, order, begin, end, start, out)
    assert (start.tolist(), out.tolist()) == ([0, 2, 3], [4, 0, 3])
