"""Metrics: what each number of a detector is, and how it is computed from match results.

A metric is one file here and one line of :data:`METRICS`. It names itself, its bounds and which
direction is better, says under which names a protocol has it, and computes it for each class, over
all classes and in resamples of the images. Tables, reports, gates and comparisons ask it.

====================  =======================================================
metric.py             the interface, and what most metrics share
average_precision.py  AP and mAP
average_recall.py     AR
====================  =======================================================
"""

from detap.metrics.average_precision import AveragePrecision
from detap.metrics.average_recall import AverageRecall
from detap.metrics.metric import Metric

METRICS: list[Metric] = [AveragePrecision(), AverageRecall()]
"""All metrics, in the order in which a summary lists them."""

__all__ = ["METRICS", "Metric"]
