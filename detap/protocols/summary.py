"""Names of metrics."""

from detap.protocols.fields import SAME_THRESHOLD

DEFAULT_MIN_GROUND_TRUTHS = 20
"""Default minimum of ground truths behind a metric with a confidence interval."""


FREQUENCIES = {"r": "rare", "c": "common", "f": "frequent"}
"""Class groups of LVIS by the suffix of their metrics."""


def percent(threshold: float) -> str:
    """Format a threshold in percent as in metric names, with enough digits to be unique."""
    short = format(100 * threshold, ".6g")
    unique = abs(float(short) / 100 - threshold) < SAME_THRESHOLD / 2
    return short if unique else format(100 * threshold, ".12g")
