"""Corners and areas back into x, y, width and height, to the last bit where there is a way.

A reader adds: x2 is ``x + width`` as a float64 sum, and the area the product of both sides. What
was added cannot be had back by subtraction alone: many widths lead to the same x2, and only some
of those pairs of sides to the same area.
"""

import numpy as np
from numpy.typing import NDArray

from detap.tables.detection import Flags, Floats

_DECIMALS = range(13)
"""Sides are short decimals in most files; beyond these a difference of corners is noise."""
_MOST = 4096
"""Lengths tried for one box, spread over all that lead to its corners."""


def as_sides(corners: Floats, box_area: Floats) -> tuple[Floats, Flags]:
    """Return boxes as x, y, width and height, and which of them lead back to the same bits.

    Parameters
    ----------
    corners : (N, 4) float64
        x1, y1, x2, y2.
    box_area : (N,) float64
        What the product of the sides is to be.

    Returns
    -------
    (N, 4) float64, (N,) bool
    """
    near = corners[:, 2:] - corners[:, :2]
    sides = near.copy()
    exact = _leads_back(corners, box_area, sides)
    with np.errstate(over="ignore", invalid="ignore"):
        guesses = [np.round(near, decimals) for decimals in _DECIMALS]
        guesses.append(near.astype(np.float32).astype(np.float64))
    for guess in guesses:
        found = ~exact & _leads_back(corners, box_area, guess)
        sides[found] = guess[found]
        exact |= found
    for row in np.flatnonzero(~exact).tolist():
        sides[row], exact[row] = _searched(corners[row], float(box_area[row]))
    return np.hstack([corners[:, :2], sides]), exact


def _leads_back(corners: Floats, box_area: Floats, sides: Floats) -> Flags:
    with np.errstate(over="ignore", invalid="ignore"):
        same = (corners[:, :2] + sides == corners[:, 2:]).all(axis=1)
        found: Flags = same & (sides[:, 0] * sides[:, 1] == box_area)
    return found


def _searched(corners: Floats, area: float) -> tuple[Floats, bool]:
    """Return the sides of one box, tried one by one, and whether they lead to its area.

    Where no pair does, the sides still lead to its corners if any do.
    """
    lengths = [_reaching(corners[axis], corners[axis + 2]) for axis in (0, 1)]
    for axis, tried in enumerate(lengths):
        with np.errstate(all="ignore"):
            # Beside a length, only those next to area / length can give the area.
            other = area / tried
            others = np.stack([other, np.nextafter(other, -np.inf), np.nextafter(other, np.inf)])
            good = (others * tried == area) & (corners[1 - axis] + others == corners[3 - axis])
        for way, which in np.argwhere(good)[:1].tolist():
            pair = np.array([tried[which], others[way, which]])
            return pair[::-1] if axis else pair, True
    if not all(map(len, lengths)):
        return corners[2:] - corners[:2], False
    return np.array([lengths[0][0], lengths[1][0]]), False


def _reaching(start: float, end: float) -> NDArray[np.float64]:
    """Return lengths that lead from `start` to `end`, the nearest to their difference first."""
    length = end - start
    step = np.spacing(abs(length)) or np.spacing(0.0)
    reach = int(np.spacing(max(abs(start), abs(end))) / step) + 1
    steps = np.arange(-reach, reach + 1, max(1, 2 * reach // _MOST))
    tried = length + steps[np.argsort(np.abs(steps), kind="stable")] * step
    found: NDArray[np.float64] = tried[start + tried == end]
    return found
