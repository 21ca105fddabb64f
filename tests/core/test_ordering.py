"""Rows ranked by descending score, for every sorting algorithm that their number selects."""

import numpy as np
import pytest

from detap.core import _ordering


def ranked(score: list[float]) -> list[int]:
    """Return the rows of one class on one image in the core's order."""
    zeros = np.zeros(len(score), np.int32)
    start, rows = _ordering.rank_rows(zeros, zeros, np.array(score), 1, True)
    assert start.tolist() == [0, len(score)]
    return [*map(int, rows)]


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
