from math import fsum, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.report import numbers
from detap.report.numbers import change, exact, fraction, in_column


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (0.0, 4, "0.0000"),
        (-0.0, 4, "0.0000"),
        (-0.00001, 4, "0.0000"),
        (1.0, 4, "1.0000"),
        (0.99999, 4, "0.9999"),
        (0.99995, 4, "0.9999"),
        (0.99994, 4, "0.9999"),
        (1 - 1e-8, 4, "0.9999"),
        (1e-300, 4, "0.0001"),
        (0.00004, 4, "0.0001"),
        (0.0004, 3, "0.001"),
        (0.9996, 3, "0.999"),
        (0.5045806987249628, 4, "0.5046"),
        (0.5045806987249628, 3, "0.505"),
        (nan, 3, "\N{EN DASH}"),
        # All detections right under the coco protocol, whose guard keeps precision just below 1.
        (0.9999999999999998, 4, "1.0000"),
    ],
)
def test_rounding_never_reaches_0_or_1(value: float, decimals: int, text: str) -> None:
    assert fraction(value, decimals) == text


@given(st.floats(0, 1), st.integers(1, 6))
def test_only_exact_0_and_1_are_shown_as_such(value: float, decimals: int) -> None:
    shown = float(fraction(value, decimals))
    assert abs(shown - value) <= 10.0**-decimals
    assert (shown == 0) == (value == 0)
    assert shown < 1 or value > 1 - 1e-9


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1, "0.1"), (1 / 3, "0.3333333333333333"), (nan, "\N{EN DASH}"), (0, "0.0")],
)
def test_exact_values_read_back(value: float, text: str) -> None:
    assert exact(value) == in_column("exact", value, 4) == text


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (0.0, 4, "0.0000"),
        (-0.0, 2, "0.00"),
        (0.00004, 4, "+0.0001"),
        (-0.00004, 4, "-0.0001"),
        (0.00006, 4, "+0.0001"),
        (0.0004, 3, "+0.001"),
        (0.12344, 4, "+0.1234"),
        (-0.25, 3, "-0.250"),
        (-1.0, 1, "-1.0"),
        (1e-9, 4, "+0.0001"),
        (-1e-9, 4, "-0.0001"),
        (nan, 4, "\N{EN DASH}"),
    ],
)
def test_a_change_has_a_sign_and_is_never_shown_as_0(
    value: float, decimals: int, text: str
) -> None:
    assert change(value, decimals) == text


def test_a_change_of_counts() -> None:
    texts = [in_column("count_change", value, 4) for value in (0, 3, -3, 0.0, nan)]
    assert texts == ["0", "+3", "-3", "0", "\N{EN DASH}"]
    assert in_column("count", nan, 4) == "\N{EN DASH}"


def test_a_mean_adds_in_order_on_every_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """sum() compensates rounding from Python 3.12 on: ten times 0.1 is 1 there."""
    monkeypatch.setattr(numbers, "sum", fsum, raising=False)
    assert numbers.mean([0.1] * 10 + [nan, None]) == 0.9999999999999999 / 10
