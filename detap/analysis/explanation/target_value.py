"""A number as somebody has written it, and which numbers are equal to its digits."""

from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from detap.decimals import fraction, to_fraction
from detap.errors import UsageError

MIN_DIGITS = 3
"""Of fewer digits nearly every protocol gives a number."""


class TargetValue(NamedTuple):
    """A number as somebody has written it.

    Attributes
    ----------
    text : str
    value : Fraction
        From 0 to 1: what is above 1 is in percent.
    digits : int
        How many there are behind the point, of the number from 0 to 1.
    """

    text: str
    value: Fraction
    digits: int

    @classmethod
    def of(cls, text: str) -> "TargetValue":
        """Take a number as it is written.

        Raises
        ------
        UsageError
            Where it is none from 0 to 1 or 0 to 100, or has too few digits to be told from others.
        """
        try:
            value = fraction(text)
        except ValueError as error:
            raise UsageError(f"--value: {error}") from None
        digits = max(0, -int(Decimal(text.strip()).as_tuple().exponent))
        if value > 1:
            value, digits = value / 100, digits + 2
        if not 0 <= value <= 1:
            raise UsageError(f"--value {text} is neither from 0 to 1 nor in percent")
        if digits < MIN_DIGITS:
            raise UsageError(
                f"--value {text} has too few digits: many protocols would give it; "
                f"write {MIN_DIGITS} behind the point, or 1 of a percentage"
            )
        return cls(text.strip(), value, digits)

    def distance(self, value: float) -> Fraction:
        """Return how far off a number is."""
        return abs(to_fraction(value) - self.value)

    def digits_of(self, value: float) -> int:
        """Return to how many digits behind the point, of those given, a number is this one."""
        off = self.distance(value)
        return next((n for n in range(self.digits, 0, -1) if off <= Fraction(1, 2 * 10**n)), 0)
