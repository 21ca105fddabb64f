"""Equality to the last bit, undefined equal to undefined."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def assert_same_bits(ours: ArrayLike, theirs: ArrayLike, what: str) -> None:
    """Fail unless both have the same shape and the same value everywhere, NaN where NaN is."""
    left, right = np.atleast_1d(ours), np.atleast_1d(theirs)
    assert left.shape == right.shape, f"{what}: shape {left.shape}, not {right.shape}"
    if left.dtype.kind == "f" or right.dtype.kind == "f":
        different = ~((left == right) | (np.isnan(left) & np.isnan(right)))
    else:
        different = left != right
    if different.any():
        where = tuple(int(index[0]) for index in np.nonzero(different))
        raise AssertionError(
            f"{what}: {int(different.sum())} of {different.size} differ, the first at {where}: "
            f"{left[where]!r}, not {right[where]!r}"
        )


def assert_same_numbers(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Fail unless both have the same names and the same values to the last bit."""
    assert list(ours) == list(theirs)
    assert_same_bits(list(ours.values()), list(theirs.values()), ", ".join(ours))
