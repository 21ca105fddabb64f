"""Convert corners and areas to x, y, width, height that read as the same bits.

Readers compute x2 as ``x + width`` and the area as ``width * height`` in float64. Subtraction does
not invert that: many widths give the same x2, and only some pairs the same area.
"""

import numpy as np
from numpy.typing import NDArray

from detap.tables.detection import Flags, Floats

_DECIMALS = range(13)
"""Decimals tried: widths and heights are short decimals in most files."""
_MAX_TRIES = 4096
"""Lengths tried for one box, spread over all that give its corners."""


def to_xywh(corners: Floats, box_area: Floats) -> tuple[Floats, Flags]:
    """Return boxes as x, y, width, height (N, 4), and a flag of the bit-exact ones (N,)."""
    size = corners[:, 2:] - corners[:, :2]
    width_height, exact = size.copy(), np.zeros(len(size), np.bool_)
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = [np.round(size, decimals) for decimals in _DECIMALS]
        guesses = [size, *rounded, size.astype(np.float32).astype(np.float64)]
    for guess in guesses:
        rows = ~exact & _is_exact(corners, box_area, guess)
        width_height[rows] = guess[rows]
        exact |= rows
    for row in np.flatnonzero(~exact).tolist():
        width_height[row], exact[row] = _search(corners[row], float(box_area[row]))
    return np.hstack([corners[:, :2], width_height]), exact


def _is_exact(corners: Floats, box_area: Floats, width_height: Floats) -> Flags:
    with np.errstate(over="ignore", invalid="ignore"):
        same = (corners[:, :2] + width_height == corners[:, 2:]).all(axis=1)
        exact: Flags = same & (width_height[:, 0] * width_height[:, 1] == box_area)
    return exact


def _search(corners: Floats, area: float) -> tuple[Floats, bool]:
    """Search width and height of one box; return them, and True if the area is exact.

    Otherwise, they still give its corners if possible.
    """
    lengths = [_lengths(corners[axis], corners[axis + 2]) for axis in (0, 1)]
    for axis, tried in enumerate(lengths):
        with np.errstate(all="ignore"):
            # For a length, only values next to area / length can give the area.
            other = area / tried
            others = np.stack([other, np.nextafter(other, -np.inf), np.nextafter(other, np.inf)])
            exact = (others * tried == area) & (corners[1 - axis] + others == corners[3 - axis])
        for way, index in np.argwhere(exact)[:1].tolist():
            pair = np.array([tried[index], others[way, index]])
            return pair[::-1] if axis else pair, True
    if not all(map(len, lengths)):
        return corners[2:] - corners[:2], False
    return np.array([lengths[0][0], lengths[1][0]]), False


def _lengths(start: float, end: float) -> NDArray[np.float64]:
    """Return lengths with ``start + length == end``, closest to the difference first."""
    length = end - start
    step = np.spacing(abs(length)) or np.spacing(0.0)
    reach = int(np.spacing(max(abs(start), abs(end))) / step) + 1
    steps = np.arange(-reach, reach + 1, max(1, 2 * reach // _MAX_TRIES))
    tried = length + steps[np.argsort(np.abs(steps), kind="stable")] * step
    exact: NDArray[np.float64] = tried[start + tried == end]
    return exact
