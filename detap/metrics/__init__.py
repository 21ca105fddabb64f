"""Metrics: what each number of a detector is, and how it is computed from match results.

A metric is one file here and one line of :data:`METRICS`. It names itself, its bounds and which
direction is better, says under which names a protocol has it, and computes it for each class, over
all classes and in resamples of the images. Tables, reports, gates and comparisons ask it.

====================  =======================================================
metric.py             the interface, and what AP and AR share
average_precision.py  AP and mAP
average_recall.py     AR, and the final recall of each class
at_threshold.py       F1, precision, recall, false positives per image
====================  =======================================================
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from detap.errors import UnknownNameError
from detap.metrics.average_precision import AveragePrecision
from detap.metrics.average_recall import AverageRecall, FinalRecall
from detap.metrics.metric import Metric
from detap.text_input import suggest

if TYPE_CHECKING:
    from detap.protocols import MetricSpec, Protocol

METRICS: list[Metric] = [AveragePrecision(), AverageRecall(), FinalRecall()]
"""All metrics, in the order in which reports list them after the primary one."""

__all__ = [
    "METRICS",
    "Metric",
    "after_matching",
    "columns",
    "metric_named",
    "named",
    "named_of_class",
    "summary",
]


def summary(protocol: "Protocol") -> "tuple[MetricSpec, ...]":
    """Return the numbers of a protocol's summary, in order, the headline first."""
    return tuple(spec for spec in _listed(protocol) if spec.metric.scope != "class")


def columns(protocol: "Protocol") -> "tuple[MetricSpec, ...]":
    """Return the numbers that a protocol lists of each class, in order."""
    entries = (spec for spec in _listed(protocol) if spec.metric.scope != "overall")
    return tuple(spec for spec in entries if not spec.group)


def _listed(protocol: "Protocol") -> "Iterator[MetricSpec]":
    """Yield the numbers that a protocol lists, those of its primary metric first."""
    primary = protocol.primary_metric.removeprefix("m")
    for metric in sorted(METRICS, key=lambda metric: metric.primary_metric != primary):
        yield from metric.listed(protocol)


def named(protocol: "Protocol", name: str) -> "MetricSpec":
    """Return a number of a protocol by its name, also one that the summary leaves out.

    ``"AP90"`` is AP at IoU .9, ``"AP75s"`` that at small areas, ``"AR10"`` recall at 10
    detections, ``"ARm"`` that at the largest limit and medium areas.

    Raises
    ------
    UnknownNameError
        If there is none, with near names. It is a KeyError too.
    """
    for spec in _all(protocol):
        if spec.name == name:
            return spec
    usual = [spec.name for spec in summary(protocol)]
    hint = suggest(name, usual) or suggest(
        name, dict.fromkeys(spec.name for spec in _all(protocol))
    )
    hint = hint or f"it has {', '.join(usual)}"
    raise UnknownNameError(f"protocol {protocol.name} has no number {name!r}; {hint}")


def named_of_class(protocol: "Protocol", name: str) -> "MetricSpec":
    """Return a number of one class by its name, which is AP where the mean is mAP.

    Raises
    ------
    UnknownNameError
        As of :func:`named`.
    """
    others = (spec for metric in METRICS for spec in metric.others(protocol))
    for spec in (*columns(protocol), *others):
        if spec.class_name == name and spec.metric.scope != "overall":
            return spec
    return named(protocol, name)


def metric_named(protocol: "Protocol", name: str) -> Metric | None:
    """Return the metric that a number of a report is of; None for a count and the like."""
    from detap.metrics.at_threshold import AT_THRESHOLD  # a plain run has none

    for spec in (*columns(protocol), *_all(protocol)):
        if name in (spec.name, spec.class_name):
            return spec.metric
    return next((one for one in AT_THRESHOLD.values() if name in (one.name, one.key)), None)


def after_matching() -> frozenset[str]:
    """Return the fields of a protocol that metrics depend on, and matching does not."""
    return frozenset(field for metric in METRICS for field in metric.fields)


def _all(protocol: "Protocol") -> "Iterator[MetricSpec]":
    """Yield all numbers over classes, those of the summary first; a name may occur again."""
    yield from summary(protocol)
    for metric in METRICS:
        if metric.scope != "class":
            yield from metric.others(protocol)
