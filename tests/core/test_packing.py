"""Packed bit columns, compared with the oracle's dictionaries and sorts."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from detap.core.packing import group_rows, is_sorted, narrowest_dtype, number_columns, rank_columns
from tests.oracle import packing as plain


def columns_of(*tables: NDArray[Any]) -> list[tuple[int, ...]]:
    rows = np.concatenate([np.atleast_2d(table).astype(np.uint64) for table in tables])
    return list(map(tuple, rows.T.tolist()))


@st.composite
def tables(draw: st.DrawFn) -> list[NDArray[Any]]:
    count = draw(st.integers(0, 40))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    most = draw(st.sampled_from((1, 2, 5, 200)))
    kinds = draw(st.lists(st.sampled_from(("u1", "u2", "u4", "u8", "?")), min_size=1, max_size=4))
    return [
        random.integers(0, most, (draw(st.integers(1, 3)), count)).astype(kind) for kind in kinds
    ]


@given(tables())
def test_equal_columns_get_one_code_by_first_occurrence(detections: list[NDArray[Any]]) -> None:
    codes, first = number_columns(*detections)
    assert (codes.tolist(), first.tolist()) == plain.distinct(columns_of(*detections))


def test_more_distinct_columns_than_the_initial_capacity() -> None:
    values = np.arange(70_000, dtype=np.uint32)
    codes, first = number_columns(values)
    assert codes.tolist() == values.tolist()
    assert first.tolist() == values.tolist()
    codes, first = number_columns(np.concatenate([values, values[::-1]]))
    assert len(first) == len(values)
    assert codes[len(values) :].tolist() == values[::-1].tolist()


def test_bitmasks_that_differ_only_in_the_high_half() -> None:
    words = np.array([1, 1 << 40, 1, 1 << 63], np.uint64)
    assert number_columns(words)[0].tolist() == [0, 1, 0, 2]


@given(tables())
def test_codes_follow_the_order_of_columns(detections: list[NDArray[Any]]) -> None:
    table = np.concatenate([each.astype(np.uint64) for each in detections])
    there = columns_of(table)
    rank, first = rank_columns(table)
    assert rank.tolist() == plain.ranks(there)
    assert [there[index] for index in first] == sorted(set(there))


@given(st.lists(st.integers(0, 4)), st.randoms(use_true_random=False))
def test_rows_are_grouped_and_keep_their_order(group: list[int], random: Any) -> None:
    given_rows = list(range(len(group)))
    random.shuffle(given_rows)
    column = np.array(group, np.int32)
    start, order = group_rows(column, 5, np.array(given_rows, np.int64))
    assert (start.tolist(), order.tolist()) == plain.grouped(group, 5, given_rows)
    start, order = group_rows(column, 5)
    assert (start.tolist(), order.tolist()) == plain.grouped(group, 5, range(len(group)))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=6), st.booleans())
def test_rows_sorted_by_label_and_group_are_detected(
    pairs: list[tuple[int, int]], sort: bool
) -> None:
    pairs = sorted(pairs) if sort else pairs
    label, group = ([pair[side] for pair in pairs] for side in (0, 1))
    actual = is_sorted(np.array(label, np.int32), np.array(group, np.int32))
    assert actual == plain.in_order(label, group)
    assert actual or not sort


@pytest.mark.parametrize(
    ("most", "kind"),
    [(0, "<u1"), (255, "<u1"), (256, "<u2"), (65_535, "<u2"), (65_536, "<u4"), (2**32, "<u8")],
)
def test_codes_have_the_narrowest_type(most: int, kind: str) -> None:
    assert narrowest_dtype(most) == kind
    assert np.array([most], np.uint64).astype(kind).tolist() == [most]
