"""Rows ranked by falling score, whichever way of sorting their number asks for."""

import numpy as np
import pytest

from detap.core import _ordering


def ranked(score: list[float]) -> list[int]:
    """Return the rows of one class on one image in the order that core gives them."""
    count = len(score)
    zeros = np.zeros(count, np.int32)
    start, rows = np.zeros(2, np.int32), np.zeros(count, np.int32)
    places = np.arange(count, dtype=np.int32)
    left_out = np.zeros(count, np.uint8)
    _ordering.rank_rows(zeros, zeros, places, np.array(score), left_out, True, start, rows)
    assert start.tolist() == [0, count]
    return rows.tolist()


@pytest.mark.parametrize("count", [2, 47, 48, 49, 300])
@pytest.mark.parametrize("other", [0.75, 0.25, np.nextafter(0.5, 1), -0.5])
@pytest.mark.parametrize("at", [0, 1, -1])
def test_one_score_among_equal_ones_finds_its_place(count: int, other: float, at: int) -> None:
    """All bytes of all scores but one are alike, where sorting by bytes would skip equal ones."""
    score = [0.5] * count
    score[at] = float(other)
    rest = [row for row in range(count) if row != at % count]
    expected = [at % count, *rest] if other > 0.5 else [*rest, at % count]
    assert ranked(score) == expected
