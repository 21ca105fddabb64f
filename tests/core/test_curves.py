"""Precision, recall and AP, against values worked by hand and NumPy's sums."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from detap.core import curves
from detap.core.params import SUMMINGS
from detap.protocols import COCO_PRECISION_EPS, RECALL_GRIDS

# Ranking 1 0 1 0 1, three relevant items: hits with 0, 1 and 2 irrelevant items above.
WORKED = np.array([0, 1, 2], np.int32)


def grid(name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array(RECALL_GRIDS[name])


def test_true_positives_and_their_precision() -> None:
    assert_array_equal(curves.hits_of([1, 0, 1, 0, 1]), WORKED)
    assert_array_equal(curves.precision_at_hits(WORKED), [1, 2 / 3, 3 / 5])
    assert curves.hits_of([]).shape == curves.hits_of([False, False]).shape == (0,)


def test_envelope_is_the_maximum_precision_at_higher_recall() -> None:
    # 0 0 1 1 1: precision 1/3, 2/4, 3/5 rises, so that all of the envelope is 3/5.
    assert_array_equal(curves.envelope(np.array([2, 2, 2], np.int32)), [0.6, 0.6, 0.6])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"interpolated": False}, 0.755556),
        ({}, 0.755556),
        ({"levels": grid("matlab"), "summing": "one-by-one"}, 0.763636),
        ({"levels": grid("linspace")}, 0.756436),
        # 1 below recall 1/3, 2/3 below 2/3, 3/5 below 1, 0 there: 34, 33 and 33 levels, of which
        # the first and the last have half a weight.
        ({"levels": grid("linspace"), "summing": "trapezoid"}, 0.33 + 0.005 + 0.22 + 0.198),
    ],
)
def test_average_precision_of_the_worked_ranking(
    arguments: dict[str, object], expected: float
) -> None:
    actual = curves.average_precision(WORKED, 3, **arguments)  # type: ignore[arg-type]
    assert actual == pytest.approx(expected, abs=5e-7)


def test_interpolated_precision_is_zero_where_recall_is_not_reached() -> None:
    # One hit of two: recall 1/2. Levels 0, .1 ... .5 are reached.
    levels = grid("matlab")
    actual = curves.interpolated_precision(np.array([0], np.int32), 2, levels)
    assert_array_equal(actual, [1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0])


def test_precision_eps_changes_the_last_bit_of_a_perfect_precision() -> None:
    guarded = curves.precision_at_hits(np.array([0, 0], np.int32), precision_eps=COCO_PRECISION_EPS)
    assert_array_equal(guarded, [0.9999999999999998, 1.0])


def test_average_precision_without_positives_or_true_positives() -> None:
    none = np.zeros(0, np.int32)
    assert np.isnan(curves.average_precision(none, 0))
    for levels in (None, grid("linspace")):
        assert curves.average_precision(none, 4, levels=levels) == 0


def test_sequential_summation_is_plain_addition_capped_at_1() -> None:
    total = 0.0
    for _ in range(11):
        total += 1 / 11
    assert total > 1  # by one unit in the last digit
    hits, levels = np.zeros(11, np.int32), grid("matlab")
    assert curves.average_precision(hits, 11, levels=levels, summing="one-by-one") == 1


def as_ultralytics(ranking: list[bool], positives: int) -> tuple[Any, float]:
    """Return the precision at 101 recall levels and the area under the curve, as Ultralytics.

    It uses sentinels, the envelope, numpy.interp and numpy.trapezoid.
    """
    true_positives = np.cumsum(ranking)
    recall, precision = true_positives / positives, true_positives / np.arange(1, len(ranking) + 1)
    last = recall[-1] if len(ranking) else 1.0
    recall = np.concatenate(([0.0], recall, [last], [1.0]))
    precision = np.concatenate(([1.0], precision, [0.0], [0.0]))
    precision = np.flip(np.maximum.accumulate(np.flip(precision)))
    at = np.linspace(0, 1, 101)
    values = np.interp(at, recall, precision)
    return values, float(np.trapezoid(values, at))


@given(st.lists(st.booleans(), min_size=1, max_size=300), st.integers(0, 50))
def test_the_trapezoid_rule_equals_ultralytics_to_the_last_bit(
    ranking: list[bool], missing: int
) -> None:
    """The line falls only at recall values, so it can be read at the recall levels."""
    positives = sum(ranking) + missing
    if positives == 0:
        return
    values, area = as_ultralytics(ranking, positives)
    hits, levels = curves.hits_of(ranking), grid("linspace")
    actual = curves.interpolated_precision(hits, positives, levels, summing="trapezoid")
    assert_array_equal(actual, values)
    assert curves.average_precision(hits, positives, levels=levels, summing="trapezoid") == area


def test_the_trapezoid_of_a_perfect_ranking_is_not_1() -> None:
    # At recall 1 the line is 0: half a step of .01 is lost.
    perfect = np.zeros(5, np.int32)
    actual = curves.average_precision(perfect, 5, levels=grid("linspace"), summing="trapezoid")
    assert actual == pytest.approx(0.995, abs=1e-15)


@given(st.lists(st.booleans(), max_size=300), st.integers(0, 50))
@example([True, False] * 7, 4)  # NumPy adds eight steps in another order than seven
def test_area_equals_the_numpy_implementation_to_the_last_bit(
    ranking: list[bool], missing: int
) -> None:
    """The usual NumPy code: sentinels, envelope, steps, one numpy.sum."""
    positives = sum(ranking) + missing
    if positives == 0:
        return
    true_positives = np.cumsum(ranking)
    recall = np.concatenate(([0.0], true_positives / positives, [1.0]))
    precision = np.concatenate(([0.0], true_positives / np.arange(1, len(ranking) + 1), [0.0]))
    precision = np.maximum.accumulate(precision[::-1])[::-1]
    steps = np.flatnonzero(recall[1:] != recall[:-1])
    expected = np.sum((recall[steps + 1] - recall[steps]) * precision[steps + 1])
    assert curves.average_precision(curves.hits_of(ranking), positives) == expected


@given(
    st.lists(st.tuples(st.lists(st.booleans(), max_size=600), st.integers(0, 3)), max_size=4),
    st.sampled_from([None, grid("matlab"), grid("linspace")]),
    st.sampled_from(SUMMINGS),
)
def test_lists_averaged_together_equal_each_list_alone_bitwise(
    lists: list[tuple[list[bool], int]], levels: Any, summing: Any
) -> None:
    hits = [curves.hits_of(relevant) for relevant, _ in lists]
    # All relevant items that were retrieved, and some more.
    positives = np.array([len(h) + more for h, (_, more) in zip(hits, lists, strict=True)], int)
    begin = np.cumsum([0, *map(len, hits)]).astype(np.int32)
    joined = np.concatenate([np.zeros(0, np.int32), *hits])
    options = {"levels": levels, "summing": summing, "precision_eps": COCO_PRECISION_EPS}
    actual = curves.average_precisions(joined, begin, positives, **options)
    alone = [
        curves.average_precision(h, int(p), **options) for h, p in zip(hits, positives, strict=True)
    ]
    assert_array_equal(actual, alone)


def test_levels_are_added_in_order_as_voc_eval_does() -> None:
    precision = 1 / (1 + COCO_PRECISION_EPS)
    expected = 0.0
    for _ in range(11):
        expected += precision / 11
    actual = curves.average_precision(
        np.zeros(1, np.int32),
        1,
        levels=grid("arange"),
        summing="one-by-one",
        precision_eps=COCO_PRECISION_EPS,
    )
    assert actual == expected


def test_counts_above_a_rank_are_those_of_its_own_list() -> None:
    # Two lists: kinds 0 1 - 1 (the third is not counted) and 1 0.
    kind = np.array([0, 1, -1, 1, 1, 0], np.int8)
    start, begin = np.array([[0, 4, 6], [0, 3, 4]], np.int32)
    out = curves.count_above(kind, start, begin, np.array([0, 3, 4, 5], np.int32), 2)
    assert_array_equal(out, [[0, 1, 1, 0], [0, 1, 2, 1]])
