"""A metric value as text, compared by its digits."""

from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from detap.decimals import fraction, to_fraction
from detap.errors import UsageError

MIN_DIGITS = 3
"""Minimal number of decimals: fewer match nearly every protocol."""


class TargetValue(NamedTuple):
    """A metric value as text.

    Attributes
    ----------
    text : str
    value : Fraction
        From 0 to 1; text above 1 is a percentage.
    digits : int
        Number of decimals of `value`.
    """

    text: str
    value: Fraction
    digits: int

    @classmethod
    def of(cls, text: str) -> "TargetValue":
        """Parse a value."""
        try:
            value = fraction(text)
        except ValueError as error:
            raise UsageError(f"--value: {error}") from None
        digits = max(0, -int(Decimal(text.strip()).as_tuple().exponent))
        if value > 1:
            value, digits = value / 100, digits + 2
        if not 0 <= value <= 1:
            raise UsageError(f"--value {text} is outside [0, 1] and not a percentage")
        if digits < MIN_DIGITS:
            raise UsageError(
                f"--value {text} has too few digits and matches many protocols; "
                f"use {MIN_DIGITS} decimals, or 1 for a percentage"
            )
        return cls(text.strip(), value, digits)

    def distance(self, value: float) -> Fraction:
        """Return the absolute difference from a value."""
        return abs(to_fraction(value) - self.value)

    def digits_of(self, value: float) -> int:
        """Return the number of matching decimals of a value, at most `digits`."""
        off = self.distance(value)
        return next((n for n in range(self.digits, 0, -1) if off <= Fraction(1, 2 * 10**n)), 0)
