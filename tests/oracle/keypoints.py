"""Object keypoint similarity (OKS), one keypoint at a time.

Source: `COCOeval.computeOks` of pycocotools.
"""

import math
import sys
from collections.abc import Sequence

Keypoint = tuple[float, float, float]
"""x, y and v, above 0 if the keypoint is labeled."""

XYWH = tuple[float, float, float, float]


def oks(
    detection: Sequence[tuple[float, float]],
    truth: Sequence[Keypoint],
    *,
    box: XYWH,
    area: float,
    sigmas: Sequence[float],
) -> float:
    """Return the mean of exp(-d² / 2a(2s)²) over the labeled keypoints of a ground truth.

    If none is labeled: over all, with the distance to the box of the ground truth, to which its
    own width and height are added on every side.
    """
    labeled = [n for n, (_, _, visible) in enumerate(truth) if visible > 0]
    terms = []
    for n in labeled or range(len(truth)):
        x, y = detection[n]
        if labeled:
            dx, dy = x - truth[n][0], y - truth[n][1]
        else:
            left, top, width, height = box
            dx = _outside(x, left - width, left + 2 * width)
            dy = _outside(y, top - height, top + 2 * height)
        variance = (2 * sigmas[n]) ** 2
        terms.append(math.exp(-(dx**2 + dy**2) / variance / (area + sys.float_info.epsilon) / 2))
    return math.fsum(terms) / len(terms)


def extent(keypoints: Sequence[tuple[float, float]]) -> tuple[float, float, float, float]:
    """Return the box x1, y1, x2, y2 around keypoints."""
    columns, rows = zip(*keypoints, strict=True)
    return min(columns), min(rows), max(columns), max(rows)


def _outside(value: float, low: float, high: float) -> float:
    """Return the distance of a value to a range, 0 inside."""
    return max(low - value, 0.0) + max(value - high, 0.0)
