"""Metrics, computed from match results.

A metric is a class in a module of this package and an element of :data:`METRICS`.
"""

from collections.abc import Iterator
from importlib import import_module

from detap.core.match_table import AreaIouPair
from detap.errors import UnknownNameError
from detap.metrics.at_threshold import AT_THRESHOLD
from detap.metrics.average_precision import AveragePrecision
from detap.metrics.average_recall import AverageRecall, FinalRecall
from detap.metrics.best_threshold import AtLevel, MacroF
from detap.metrics.froc import CPM, FROC, RECALL_AT_FPPI
from detap.metrics.jaccard import JaccardIndex
from detap.metrics.lrp import COMPONENTS, LocalizationRecallPrecision, OptimalLRP
from detap.metrics.metric import Metric as Metric
from detap.metrics.metric import MetricSpec
from detap.metrics.miss_rate import LogAverageMissRate, MissRateAtFppi
from detap.metrics.threshold_grid import ThresholdGridAP
from detap.protocols import Protocol
from detap.text_input import suggest

METRICS: list[Metric] = [
    AveragePrecision(),
    AverageRecall(),
    FinalRecall(),
    LogAverageMissRate("MR-2"),
    LogAverageMissRate("MR-4"),
    MissRateAtFppi(),
    RECALL_AT_FPPI,
    CPM,
    FROC,
    MacroF(),
    AtLevel("precision", "recall"),
    AtLevel("recall", "precision"),
    ThresholdGridAP(),
    OptimalLRP(),
    *COMPONENTS.values(),
    LocalizationRecallPrecision(),
    JaccardIndex(),
]
"""All metrics, in the order in which reports list them after the primary one."""


def summary(protocol: Protocol) -> tuple[MetricSpec, ...]:
    """Return the metrics of a protocol's summary in order, the primary metric first."""
    return tuple(spec for spec in _listed(protocol) if spec.metric.scope != "class")


def columns(protocol: Protocol) -> tuple[MetricSpec, ...]:
    """Return the metrics of each class that a protocol lists, in order."""
    specs = (spec for spec in _listed(protocol) if spec.metric.scope != "overall")
    return tuple(spec for spec in specs if not (spec.group or spec.pooled))


def _listed(protocol: Protocol) -> Iterator[MetricSpec]:
    """Yield the metrics that a protocol lists, those of its primary metric first."""
    own = [*_own(protocol)]
    yield from own
    names = {spec.name for spec in own}
    yield from (named(protocol, name) for name in protocol.metrics if name not in names)


def _own(protocol: Protocol) -> Iterator[MetricSpec]:
    """Yield the metrics that a protocol lists without those of its field `metrics`."""
    primary = protocol.primary_metric.removeprefix("m")
    for metric in sorted(_of(protocol), key=lambda metric: metric.primary_metric != primary):
        yield from metric.listed(protocol)


def _of(protocol: Protocol) -> list[Metric]:
    """Return the metrics of detections with scores, or those of detections without."""
    if protocol.has_scores:
        return METRICS
    metrics: list[Metric] = import_module("detap.metrics.unscored").UNSCORED
    return metrics


def named(protocol: Protocol, name: str) -> MetricSpec:
    """Return a metric of a protocol by name, also one that the summary omits."""
    # "AP90" is AP at IoU 0.9, "AP75s" AP at IoU 0.75 and small areas, "AR10" recall at 10
    # detections, "ARm" recall at the largest `max_dets` and medium areas.
    for spec in _all(protocol):
        if spec.name == name:
            return spec
    for metric in _of(protocol):
        parsed = metric.find(protocol, name)
        if parsed is not None:
            return parsed
    usual = [spec.name for spec in _own(protocol) if spec.metric.scope != "class"]
    known = [spec.name for spec in _all(protocol)]
    if "@" in name:
        known += [f"{one.name}{one.parameter}" for one in _of(protocol) if one.parameter]
    hint = suggest(name, usual) or suggest(name, dict.fromkeys(known))
    hint = hint or f"available: {', '.join(usual)}"
    raise UnknownNameError(f"protocol {protocol.name} has no metric {name!r}; {hint}")


def named_of_class(protocol: Protocol, name: str) -> MetricSpec:
    """Return a metric of one class by name: AP if the mean is mAP."""
    others = (spec for metric in _of(protocol) for spec in metric.others(protocol))
    for spec in (*columns(protocol), *others):
        if spec.class_name == name:
            return spec
    return named(protocol, name)


def metric_named(protocol: Protocol, name: str) -> Metric | None:
    """Return the metric with a name in reports; None for a count."""
    for spec in (*columns(protocol), *_all(protocol)):
        if name in (spec.name, spec.class_name):
            return spec.metric
    for metric in _of(protocol):
        if metric.find(protocol, name) is not None:
            return metric
    return next((one for one in AT_THRESHOLD.values() if name in (one.name, one.key)), None)


def of_matched_iou(protocol: Protocol) -> dict[AreaIouPair, MetricSpec]:
    """Return a listed metric for each area range and threshold whose IoUs of matches are used."""
    specs = (*summary(protocol), *columns(protocol))
    by_pair = {(spec.area, spec.threshold): spec for spec in specs if spec.metric.uses_matched_iou}
    return {
        (area, threshold): by_pair[area, threshold]
        for area, threshold in sorted(by_pair)
        if threshold is not None
    }


def after_matching() -> frozenset[str]:
    """Return the protocol fields that metrics depend on and matching does not."""
    return frozenset(field for metric in METRICS for field in metric.fields)


def _all(protocol: Protocol) -> Iterator[MetricSpec]:
    """Yield the metrics over classes that a protocol has by a fixed name; names may repeat."""
    yield from (spec for spec in _own(protocol) if spec.metric.scope != "class")
    for metric in _of(protocol):
        if metric.scope != "class":
            yield from metric.others(protocol)
