"""Exact comparison and formatting of decimal numbers.

Limits and metrics are compared as written decimals: the drop from 0.75 to 0.745 is exactly 0.005,
although the floats differ by slightly more.

Two computed numbers are equal if they differ by at most :data:`ROUNDING` of the larger one, or of 1
if both are smaller. Another summation order, processor or numpy version changes less: a mean by
about 1e-16, the AP of a million detections by about 1e-13. One more true positive among a million
ground truths of one of a thousand classes moves the mean by 1e-9.
"""

from decimal import Context, Decimal
from fractions import Fraction
from math import isnan
from typing import TypeVar

from detap.text_input import number

ROUNDING = 1e-12
"""Relative difference up to which two numbers are equal; absolute below 1."""

_DIGITS = Context(prec=60)

Real = TypeVar("Real", float, Fraction)


def fraction(text: str) -> Fraction:
    """Parse a decimal exactly."""
    number(text)
    return Fraction(text.strip())


def nearly_equal(first: Real, second: Real) -> bool:
    """Return True if two numbers differ by rounding only; NaN equals nothing."""
    largest = max(1.0, float(abs(first)), float(abs(second)))
    return float(abs(first - second)) <= ROUNDING * largest


def snap(value: Real, target: Real) -> Real:
    """Return `target` if the value nearly equals it, otherwise the value."""
    return target if nearly_equal(value, target) else value


def to_fraction(value: float) -> Fraction:
    """Return the shortest decimal of a float, exactly."""
    return Fraction(repr(float(value)))


def decimal(value: Fraction, decimals: int) -> str:
    """Format a number with `decimals` decimals; zero has no sign."""
    quotient = _DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))
    text = f"{quotient:.{decimals}f}"
    return text if Fraction(text) else text.removeprefix("-")


def format_distinct(first: float, second: float) -> tuple[str, str]:
    """Format two numbers with enough decimals to distinguish them."""
    if isnan(first) or isnan(second):
        return _or_undefined(first), _or_undefined(second)
    fractions = to_fraction(first), to_fraction(second)
    return format_against(*fractions), format_against(*fractions[::-1])


def _or_undefined(value: float) -> str:
    return "undefined" if isnan(value) else decimal(to_fraction(value), 4)


def format_against(value: Fraction, bound: Fraction, min_places: int = 4) -> str:
    """Format a number with enough decimals to show whether it exceeds `bound`."""
    for decimals in range(min_places, 18):
        text = decimal(value, decimals)
        rounded = Fraction(text)
        if (rounded > bound) == (value > bound) and (rounded < bound) == (value < bound):
            return text
    return repr(float(value))
