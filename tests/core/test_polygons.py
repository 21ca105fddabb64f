"""Overlaps of quadrilaterals: by hand, against exact arithmetic, and the laws they keep."""

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from detap.core import _polygons
from detap.core.matching import Boxes
from detap.core.overlap import overlaps
from detap.core.polygons import (
    bounds,
    crossing,
    polygon_areas,
    polygon_overlaps,
    polygon_pairs,
    rectangles,
    turned,
)

Point = tuple[Fraction, Fraction]
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


def overlap(first: Quad, second: Quad) -> float:
    return float(polygon_overlaps(np.array([first], float), np.array([second], float))[0])


@pytest.mark.parametrize(("first", "second", "expected"), CASES)
def test_by_hand_and_exactly(first: Quad, second: Quad, expected: float) -> None:
    assert overlap(first, second) == overlap(second, first) == expected


def test_turned_squares_and_crossed_bars() -> None:
    diamond = [5, 5 - ROOT, 5 + ROOT, 5, 5, 5 + ROOT, 5 - ROOT, 5]
    assert overlap(SQUARE, diamond) == pytest.approx(1 / math.sqrt(2), abs=1e-15)
    lying, standing = [-10, -5, 10, -5, 10, 5, -10, 5], [-5, -10, 5, -10, 5, 10, -5, 10]
    assert overlap(lying, standing) == pytest.approx(1 / 3, abs=1e-16)


def test_the_cases_of_the_reference(real_data: Path) -> None:
    cases = json.loads((real_data / "iou-types-cases" / "rotated.json").read_text())
    assert len(cases) == 9
    for case in cases:
        assert overlap(case["a"], case["b"]) == pytest.approx(case["polyiou"], abs=1e-9)


def test_where_a_ground_truth_absorbs_the_detection_alone_counts() -> None:
    given = np.array([[0, 0, 10, 0, 10, 5, 0, 5]], float), np.array([SQUARE], float)
    assert polygon_overlaps(*given, np.array([True]))[0] == 1
    assert polygon_overlaps(*given[::-1], np.array([True]))[0] == 0.5


# --- against exact arithmetic: cross sections between all heights where anything changes


def points(quad: Quad) -> list[Point]:
    return [(Fraction(x), Fraction(y)) for x, y in zip(quad[::2], quad[1::2], strict=True)]


def sides(corners: list[Point]) -> list[tuple[Point, Point]]:
    return list(pairwise([*corners, corners[0]]))


def turn(a: Point, b: Point, c: Point) -> Fraction:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def touch(one: tuple[Point, Point], other: tuple[Point, Point]) -> bool:
    """Tell whether two segments have any point in common."""
    (a, b), (c, d) = one, other
    apart = any(
        max(a[axis], b[axis]) < min(c[axis], d[axis])
        or max(c[axis], d[axis]) < min(a[axis], b[axis])
        for axis in (0, 1)
    )
    return not apart and turn(a, b, c) * turn(a, b, d) <= 0 and turn(c, d, a) * turn(c, d, b) <= 0


def is_simple(quad: Quad) -> bool:
    first, second, third, fourth = sides(points(quad))
    corners = points(quad)
    straight = any(turn(corners[i - 1], corners[i], corners[(i + 1) % 4]) == 0 for i in range(4))
    return not (touch(first, third) or touch(second, fourth) or straight)


def heights(edges: list[tuple[Point, Point]]) -> list[Fraction]:
    found = {point[1] for edge in edges for point in edge}
    for (a, b), (c, d) in combinations(edges, 2):
        across = (b[0] - a[0]) * (d[1] - c[1]) - (b[1] - a[1]) * (d[0] - c[0])
        if across:
            part = ((c[0] - a[0]) * (d[1] - c[1]) - (c[1] - a[1]) * (d[0] - c[0])) / across
            found.add(a[1] + part * (b[1] - a[1]))
    return sorted(found)


def section(corners: list[Point], y: Fraction) -> list[tuple[Fraction, Fraction]]:
    at = sorted(
        a[0] + (y - a[1]) / (b[1] - a[1]) * (b[0] - a[0])
        for a, b in sides(corners)
        if min(a[1], b[1]) < y < max(a[1], b[1])
    )
    return list(zip(at[::2], at[1::2], strict=True))


def exact_overlap(first: Quad, second: Quad) -> Fraction:
    one, other = points(first), points(second)
    common = united = Fraction(0)
    for low, high in pairwise(heights(sides(one) + sides(other))):
        middle = (low + high) / 2
        ours, theirs = section(one, middle), section(other, middle)
        both = sum(
            (max(min(b, d) - max(a, c), Fraction(0)) for a, b in ours for c, d in theirs),
            Fraction(0),
        )
        every = sum((b - a for a, b in ours + theirs), Fraction(0)) - both
        common, united = common + both * (high - low), united + every * (high - low)
    return common / united


coordinates = st.integers(-40, 40).map(lambda n: n / 4) | st.floats(-50, 50).map(
    lambda x: round(x, 3)
)
quads = st.lists(coordinates, min_size=8, max_size=8).filter(is_simple)


def test_the_exact_overlap_by_hand() -> None:
    assert exact_overlap(SQUARE, DART) == Fraction(1, 2)
    assert exact_overlap(SQUARE, [5, 5, 15, 5, 15, 15, 5, 15]) == Fraction(25, 175)


@given(quads, quads, st.sampled_from([0.0, 1000.0, 10000.0]))
def test_simple_quadrilaterals_against_exact_arithmetic(
    first: Quad, second: Quad, away: float
) -> None:
    # Far from the origin too, where the reference is off by 5e-10.
    first, second = [x + away for x in first], [x + away for x in second]
    if not (is_simple(first) and is_simple(second)):
        return  # three corners have become a line by rounding
    expected = float(exact_overlap(first, second))
    assert overlap(first, second) == pytest.approx(expected, abs=1e-9)
    assert not crossing(np.array([first, second])).any()


def test_far_from_the_origin_no_digit_is_lost() -> None:
    bar = [10000.1, 9999.9, 10004.3, 10001.7, 10003.2, 10004.4, 9999.0, 10002.6]
    other = [x + 0.75 for x in bar]
    assert overlap(bar, other) == pytest.approx(float(exact_overlap(bar, other)), abs=1e-14)


@given(quads, quads, st.integers(0, 3), st.booleans(), st.booleans())
def test_neither_order_nor_winding_nor_first_corner_matters(
    first: Quad, second: Quad, shift: int, back: bool, swap: bool
) -> None:
    corners = np.roll(np.array(second).reshape(4, 2), shift, axis=0)
    turned_round = (corners[::-1] if back else corners).ravel().tolist()
    pair = (turned_round, first) if swap else (first, turned_round)
    assert overlap(*pair) == pytest.approx(overlap(first, second), abs=1e-12)
    assert 0 <= overlap(*pair) <= 1


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=16, max_size=16))
def test_any_numbers_give_no_crash_and_no_overlap_above_one(values: list[float]) -> None:
    with np.errstate(all="ignore"):
        found = overlap(values[:8], values[8:])
    assert math.isnan(found) or 0 <= found <= 1


boxes = st.tuples(*[st.floats(-100, 100)] * 2, *[st.floats(0.01, 100)] * 2).map(
    lambda box: [box[0], box[1], box[0] + box[2], box[1] + box[3]]
)


@given(boxes, boxes)
def test_upright_quadrilaterals_overlap_as_boxes(first: Quad, second: Quad) -> None:
    a, b = np.array([first]), np.array([second])
    area = [polygon_areas(rectangles(box)) for box in (a, b)]
    expected = overlaps(a, b, detection_areas=area[0], truth_areas=area[1])[0, 0]
    found = polygon_overlaps(rectangles(a), rectangles(b))[0]
    assert found == pytest.approx(expected, abs=1e-9)


# --- the rest


def test_bounds_areas_and_crossing_sides() -> None:
    given = np.array([SQUARE, BOW_TIE, DART, [0] * 8], float)
    assert bounds(given).tolist() == [[0, 0, 10, 10]] * 3 + [[0, 0, 0, 0]]
    assert polygon_areas(given).tolist() == [100, 0, 50, 0]
    assert crossing(given).tolist() == [False, True, False, False]


def test_corners_of_turned_boxes() -> None:
    found = turned(np.array([[10, 20, 8, 4, 0], [10, 20, 8, 4, np.pi / 2]]))
    assert found[0].tolist() == [6, 18, 14, 18, 14, 22, 6, 22]
    # A quarter from x to y: what was the width now goes down.
    assert found[1] == pytest.approx([12, 16, 12, 24, 8, 24, 8, 16])


def columns(image: list[int], label: list[int], polygons: np.ndarray) -> Boxes:
    empty = np.zeros(len(image))
    ids = np.array(image, np.int32), np.array(label, np.int32)
    return Boxes(*ids, bounds(polygons), empty, empty, empty)


def test_pairs_are_of_one_image_and_class_and_of_bounds_that_meet() -> None:
    shifted = [np.array([[x + by for x in SQUARE]], float) for by in (0, 5, 50)]
    truths = np.vstack([shifted[0], shifted[1], shifted[2], shifted[0], shifted[0]])
    claims = np.vstack([shifted[2], shifted[0]])
    given = columns([0, 0], [0, 0], claims), columns([0, 0, 0, 1, 0], [0, 0, 0, 0, 1], truths)
    pairs = polygon_pairs(*given, polygons=(claims, truths), absorbing=np.zeros(5, np.bool_))
    pairs.check(*given)
    assert_array_equal(pairs.start, [0, 1, 3])
    assert_array_equal(pairs.truth, [2, 0, 1])
    assert pairs.overlap.tolist() == [1, 1, 25 / 175]


def test_shapes_that_do_not_go_together_are_refused() -> None:
    eight = np.zeros((2, 8))
    with pytest.raises(ValueError, match="do not go together"):
        _polygons.fill_areas(eight, np.zeros(3))
    with pytest.raises(ValueError, match="do not go together"):
        _polygons.fill_shares(eight, eight[:1], np.zeros(2, np.uint8), np.zeros(2))
    none, wide = np.zeros(0, np.int32), np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="do not go together"):
        _polygons.fill_meeting(eight, eight, none, wide, wide, wide, none)
