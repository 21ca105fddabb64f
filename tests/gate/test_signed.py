"""Text of differences."""

from math import nan

import pytest

from detap.report.numbers import UNDEFINED, change, count_change


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1234567, "+0.1235"),
        (-0.5, "-0.5000"),
        (0.0, "0.0000"),
        (-0.0, "0.0000"),
        (nan, UNDEFINED),
        (1e-9, "+0.0001"),
        (-1e-9, "-0.0001"),
        (0.00005, "+0.0001"),
    ],
)
def test_a_change_has_a_sign_and_is_never_shown_as_0(value: float, text: str) -> None:
    assert change(value, 4) == text


def test_changes_of_counts() -> None:
    assert [count_change(count) for count in (3, 0, -2)] == ["+3", "0", "-2"]
