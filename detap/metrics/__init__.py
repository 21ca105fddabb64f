"""Metrics, computed from match results.

A metric is a class in a module of this package and an element of :data:`METRICS`. It has a name,
bounds and a direction, lists its metric specifications for a protocol, and computes values per
class, over all classes and in bootstrap resamples. Tables, reports and gates use it.

====================  =======================================================
metric.py             the interface; common code of AP and AR
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
    """Return the metrics of a protocol's summary in order, the primary metric first."""
    return tuple(spec for spec in _listed(protocol) if spec.metric.scope != "class")


def columns(protocol: "Protocol") -> "tuple[MetricSpec, ...]":
    """Return the metrics of each class that a protocol lists, in order."""
    specs = (spec for spec in _listed(protocol) if spec.metric.scope != "overall")
    return tuple(spec for spec in specs if not spec.group)


def _listed(protocol: "Protocol") -> "Iterator[MetricSpec]":
    """Yield the metrics that a protocol lists, those of its primary metric first."""
    primary = protocol.primary_metric.removeprefix("m")
    for metric in sorted(METRICS, key=lambda metric: metric.primary_metric != primary):
        yield from metric.listed(protocol)


def named(protocol: "Protocol", name: str) -> "MetricSpec":
    """Return a metric of a protocol by name, also one that the summary omits.

    ``"AP90"`` is AP at IoU 0.9, ``"AP75s"`` AP at IoU 0.75 and small areas, ``"AR10"`` recall at 10
    detections, ``"ARm"`` recall at the largest `max_dets` and medium areas.

    Raises
    ------
    UnknownNameError
        If there is none; the message suggests similar names. It is also a KeyError.
    """
    for spec in _all(protocol):
        if spec.name == name:
            return spec
    usual = [spec.name for spec in summary(protocol)]
    hint = suggest(name, usual) or suggest(
        name, dict.fromkeys(spec.name for spec in _all(protocol))
    )
    hint = hint or f"available: {', '.join(usual)}"
    raise UnknownNameError(f"protocol {protocol.name} has no metric {name!r}; {hint}")


def named_of_class(protocol: "Protocol", name: str) -> "MetricSpec":
    """Return a metric of one class by name: AP if the mean is mAP.

    Raises
    ------
    UnknownNameError
        As for :func:`named`.
    """
    others = (spec for metric in METRICS for spec in metric.others(protocol))
    for spec in (*columns(protocol), *others):
        if spec.class_name == name:
            return spec
    return named(protocol, name)


def metric_named(protocol: "Protocol", name: str) -> Metric | None:
    """Return the metric with a name in reports; None for a count."""
    from detap.metrics.at_threshold import AT_THRESHOLD

    for spec in (*columns(protocol), *_all(protocol)):
        if name in (spec.name, spec.class_name):
            return spec.metric
    return next((one for one in AT_THRESHOLD.values() if name in (one.name, one.key)), None)


def after_matching() -> frozenset[str]:
    """Return the protocol fields that metrics depend on and matching does not."""
    return frozenset(field for metric in METRICS for field in metric.fields)


def _all(protocol: "Protocol") -> "Iterator[MetricSpec]":
    """Yield all metrics over classes, those of the summary first; names may repeat."""
    yield from summary(protocol)
    for metric in METRICS:
        if metric.scope != "class":
            yield from metric.others(protocol)
