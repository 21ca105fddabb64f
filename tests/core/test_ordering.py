"""Rows ranked by descending score, for every sorting algorithm that their number selects."""

import numpy as np
import pytest

from detap.core import _ordering


def ranked(score: list[float]) -> list[int]:
    """Return the rows of one class on one image in the core's order."""
    count = len(score)
    zeros = np.zeros(count, np.int32)
    start, rows = np.zeros(2, np.int32), np.zeros(count, np.int32)
    left_out = np.zeros(count, np.uint8)
    _ordering.rank_rows(zeros, zeros, np.array(score), left_out, True, start, rows)
    assert start.tolist() == [0, count]
    return rows.tolist()


@pytest.mark.parametrize("count", [2, 47, 48, 49, 300])
@pytest.mark.parametrize("other", [0.75, 0.25, np.nextafter(0.5, 1), -0.5])
@pytest.mark.parametrize("at", [0, 1, -1])
def test_one_different_score_among_equal_ones_is_ranked(count: int, other: float, at: int) -> None:
    """All scores but one have the same bytes: radix sort must not skip that byte."""
    score = [0.5] * count
    score[at] = float(other)
    rest = [row for row in range(count) if row != at % count]
    expected = [at % count, *rest] if other > 0.5 else [*rest, at % count]
    assert ranked(score) == expected
