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

from collections.abc import Iterator
from typing import TYPE_CHECKING

from detap.errors import UnknownNameError
from detap.metrics.average_precision import AveragePrecision
from detap.metrics.average_recall import AverageRecall
from detap.metrics.metric import Metric
from detap.spelling import near

if TYPE_CHECKING:
    from detap.protocols import Measure, Protocol

METRICS: list[Metric] = [AveragePrecision(), AverageRecall()]
"""All metrics, in the order in which a summary lists them."""

__all__ = ["METRICS", "Metric", "metric_named", "named", "summary"]


def metric_named(name: str) -> Metric | None:
    """Return the metric that a number of a report is of, such as ``"mAP50s"``; None for a count.

    It is the one with the longest name that the number's name begins with.
    """
    from detap.metrics.at_threshold import AT_THRESHOLD  # a plain run has none

    if name in AT_THRESHOLD:
        return AT_THRESHOLD[name]
    found = [metric for metric in METRICS if name.startswith((metric.name, f"m{metric.name}"))]
    return max(found, key=lambda metric: len(metric.name), default=None)


def summary(rules: "Protocol") -> "tuple[Measure, ...]":
    """Return the numbers of a protocol's summary, in order, the headline first."""
    return tuple(entry for metric in METRICS for entry in metric.summary(rules))


def named(rules: "Protocol", name: str) -> "Measure":
    """Return a number of a protocol by its name, also one that the summary leaves out.

    ``"AP90"`` is AP at IoU .9, ``"AP75s"`` that at small areas, ``"AR10"`` recall at 10
    detections, ``"ARm"`` that at the largest limit and medium areas.

    Raises
    ------
    UnknownNameError
        If there is none, with near names. It is a KeyError too.
    """
    for candidate in _all(rules):
        if candidate.name == name:
            return candidate
    usual = [entry.name for entry in summary(rules)]
    hint = near(name, usual) or near(name, dict.fromkeys(entry.name for entry in _all(rules)))
    hint = hint or f"it has {', '.join(usual)}"
    raise UnknownNameError(f"protocol {rules.name} has no number {name!r}; {hint}")


def _all(rules: "Protocol") -> "Iterator[Measure]":
    """Yield all numbers of a protocol, those of the summary first; a name may occur again."""
    yield from summary(rules)
    for metric in METRICS:
        yield from metric.others(rules)
