"""Numbers as they are compared and shown, to the last digit.

Limits and numbers are compared as the decimals that are written: 0.75 has fallen to 0.745 by
exactly 0.005, although the floats differ by a little more.

Two numbers that were computed are *the same* where they differ by at most :data:`ROUNDING` of the
larger, or of 1 where both are smaller. Sums of the same terms in another order, on another
processor or by another version of numpy, differ by less: means by some 1e-16, an average precision
over a million detections by some 1e-13. One more true positive among a million ground truths of one
of a thousand classes moves the mean by 1e-9.
"""

from decimal import Context, Decimal
from fractions import Fraction
from math import isnan
from typing import TypeVar

from detap.text_input import number

ROUNDING = 1e-12
"""Numbers that differ by at most this share of the larger, or of 1, are the same."""

_DIGITS = Context(prec=60)

Real = TypeVar("Real", float, Fraction)


def fraction(text: str) -> Fraction:
    """Return the very decimal that is written.

    Raises
    ------
    ValueError
        Where the text is no number.
    """
    number(text)
    return Fraction(text.strip())


def nearly_equal(first: Real, second: Real) -> bool:
    """Tell whether two numbers differ by no more than rounding does; NaN is like nothing."""
    largest = max(1.0, float(abs(first)), float(abs(second)))
    return float(abs(first - second)) <= ROUNDING * largest


def snap(value: Real, at: Real) -> Real:
    """Return `at` where the value is the same number, and the value where it is another."""
    return at if nearly_equal(value, at) else value


def to_fraction(value: float) -> Fraction:
    """Return the very decimal that a float is written as."""
    return Fraction(repr(float(value)))


def decimal(value: Fraction, places: int) -> str:
    """Return a number rounded to so many decimals; what is rounded to 0 has no sign."""
    quotient = _DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))
    text = f"{quotient:.{places}f}"
    return text if Fraction(text) else text.removeprefix("-")


def format_distinct(first: float, second: float) -> tuple[str, str]:
    """Return two numbers with as many decimals as tell them apart; NaN is called undefined."""
    if isnan(first) or isnan(second):
        return _or_undefined(first), _or_undefined(second)
    one, other = to_fraction(first), to_fraction(second)
    return format_against(one, other), format_against(other, one)


def _or_undefined(value: float) -> str:
    return "undefined" if isnan(value) else decimal(to_fraction(value), 4)


def format_against(value: Fraction, bound: Fraction, least: int = 4) -> str:
    """Return a number with as many decimals as show on which side of `bound` it lies."""
    for places in range(least, 18):
        text = decimal(value, places)
        shown = Fraction(text)
        if (shown > bound) == (value > bound) and (shown < bound) == (value < bound):
            return text
    return repr(float(value))
