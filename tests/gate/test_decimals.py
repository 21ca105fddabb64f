"""Comparison of numbers up to rounding, and their text."""

from fractions import Fraction
from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.decimals import (
    decimal,
    format_against,
    format_distinct,
    fraction,
    nearly_equal,
    snap,
    to_fraction,
)
from detap.report.numbers import change
from detap.report.numbers import fraction as shown_fraction
from detap.text_input import number, parse_int
from detap.text_input import parse_fraction as written_share

shares = st.floats(0, 1)


@pytest.mark.parametrize(
    ("first", "second", "alike"),
    [
        (0.1 + 0.2, 0.3, True),  # 5.6e-17 apart
        (0.5, 0.5 + 1e-12, True),
        (0.5, 0.5 + 1.1e-12, False),
        (0.0, 1e-9, False),  # one more true positive of a million, of one of a thousand classes
        (1e6, 1e6 + 1e-7, True),  # of the larger
        (1e6, 1e6 + 1e-5, False),
        (nan, nan, False),
        (0.0, nan, False),
    ],
)
def test_equal_up_to_rounding(first: float, second: float, alike: bool) -> None:
    assert nearly_equal(first, second) == nearly_equal(second, first) == alike
    assert snap(second, first) == (first if alike else second) or second != second  # noqa: PLR0124


@given(shares, shares)
def test_visible_differences_are_not_rounding(first: float, second: float) -> None:
    if abs(first - second) > 1.1e-12:
        assert not nearly_equal(first, second)
        assert not nearly_equal(to_fraction(first), to_fraction(second))


@given(st.lists(shares, min_size=1, max_size=200), st.randoms(use_true_random=False))
def test_a_sum_in_another_order_is_equal(values: list[float], random: object) -> None:
    other = list(values)
    random.shuffle(other)  # type: ignore[attr-defined]
    assert nearly_equal(sum(values) / len(values), sum(other) / len(other))


@given(st.floats(-1, 1), st.integers(1, 6))
def test_no_printed_0_has_a_sign(value: float, places: int) -> None:
    for text in (
        shown_fraction(value, places),
        change(value, places),
        decimal(to_fraction(value), places),
    ):
        assert float(text) != 0 or text[0] == "0"


@given(shares, shares)
def test_a_value_is_shown_with_enough_digits_to_differ_from_its_limit(
    value: float, bound: float
) -> None:
    shown = Fraction(format_against(to_fraction(value), to_fraction(bound)))
    assert (shown > to_fraction(bound)) == (value > bound)
    assert (shown < to_fraction(bound)) == (value < bound)


@pytest.mark.parametrize(
    ("first", "second", "texts"),
    [
        (0.5, 0.25, ("0.5000", "0.2500")),
        (0.50001, 0.50002, ("0.5000", "0.50002")),
        (0.5, 0.5, ("0.5000", "0.5000")),
        (0.123456, nan, ("0.1235", "undefined")),
        (nan, 0.123456, ("undefined", "0.1235")),
    ],
)
def test_two_numbers_are_distinguished(first: float, second: float, texts: tuple[str, str]) -> None:
    assert format_distinct(first, second) == texts


@pytest.mark.parametrize("text", ["nan", "inf", "1_0", "0x1", "\uff11", "", "1,5", "1/3", "1e9999"])
def test_invalid_numbers(text: str) -> None:
    for read in (number, fraction, parse_int, written_share):
        with pytest.raises(ValueError, match=r"is not|is too large"):
            read(text)


def test_numbers_are_read_exactly() -> None:
    assert number(" 0.5 ") == 0.5
    assert fraction("0.1") == Fraction(1, 10)
    assert parse_int("-12") == -12
    assert written_share("0.95") == written_share(0.95) == 0.95
    with pytest.raises(ValueError, match="'1e999' is too large"):
        number("1e999")


@pytest.mark.parametrize("given_share", [0, 1, 0.0, 1.0, nan, -0.1, True, None, "0", "1", "95"])
def test_a_fraction_is_between_0_and_1(given_share: object) -> None:
    with pytest.raises(ValueError, match="is not between 0 and 1"):
        written_share(given_share)
