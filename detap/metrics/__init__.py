"""Metrics: what each number of a detector is, and how it is computed from match results.

A metric is one file here and one line of :data:`METRICS`. It names itself, its bounds and which
direction is better, says under which names a protocol has it, and computes it for each class, over
all classes and in resamples of the images. Tables, reports, gates and comparisons ask it.

====================  =======================================================
metric.py             the interface, and what most metrics share
average_precision.py  AP and mAP
average_recall.py     AR
accumulated.py        what these two share
at_threshold.py       F1, precision, recall, false positives per image
====================  =======================================================
"""

from detap.metrics.average_precision import AveragePrecision
from detap.metrics.average_recall import AverageRecall
from detap.metrics.metric import Metric

METRICS: list[Metric] = [AveragePrecision(), AverageRecall()]
"""All metrics, in the order in which a summary lists them."""

__all__ = ["METRICS", "Metric", "metric_named"]


def metric_named(name: str) -> Metric | None:
    """Return the metric that a number of a report is of, such as ``"mAP50s"``; None for a count.

    It is the one with the longest name that the number's name begins with.
    """
    from detap.metrics.at_threshold import AT_THRESHOLD  # a plain run has none

    if name in AT_THRESHOLD:
        return AT_THRESHOLD[name]
    found = [metric for metric in METRICS if name.startswith((metric.name, f"m{metric.name}"))]
    return max(found, key=lambda metric: len(metric.name), default=None)
