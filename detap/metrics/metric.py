"""The interface of metrics, and common code of AP and AR."""

import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core.curves import mean_of_defined
from detap.core.interpolated import Interpolated
from detap.core.jaccard import Counts, JaccardCounts
from detap.core.match_table import MatchTable
from detap.core.resampling import (
    ResampledMetric,
    Weights,
    detected_classes,
    images_drawn,
    resample,
)
from detap.errors import UsageError
from detap.protocols import Protocol
from detap.tables.detection import Flags, Floats

Specs = Sequence["MetricSpec"]
Details = Sequence[Mapping[str, Any]]
"""The details of the value of each class."""


class MatchedResult(typing.Protocol):
    """The part of :class:`detap.Result` that metrics read."""

    @property
    def protocol(self) -> Protocol:
        """The protocol."""

    @property
    def images(self) -> Sequence[Any]:
        """The images."""

    @property
    def ground_truths(self) -> Counts:
        """The number of ground truths of each class."""

    @property
    def true_positives(self) -> Counts:
        """The number of true positives of each class."""

    @property
    def average_precision(self) -> Floats:
        """AP, (T, K, A)."""

    @property
    def recall(self) -> Floats:
        """Recall, (T, K, A, M)."""

    @property
    def _images_by_class(self) -> Counts:
        """The number of images with counted ground truths of each class."""

    @property
    def _interpolated(self) -> Interpolated:
        """Interpolated precision."""

    @property
    def match_table(self) -> MatchTable:
        """The match result of each detection."""

    def matched_iou(self, metric: "MetricSpec") -> Floats:
        """Return the IoU of each true positive."""

    def jaccard_counts(self, metric: "MetricSpec") -> JaccardCounts:
        """Return the counts of Jaccard indices."""

    def class_values(self, metric: "MetricSpec") -> Floats:
        """Return a metric of each class."""

    def in_group(self, group: str) -> Flags:
        """Return True for the classes of a group."""


class Metric:
    """A metric of detectors; NaN if undefined."""

    name: str  # the name without thresholds, `max_dets` and areas: ``"AP"``
    parameter = ""  # the number that follows the name: ``"F"`` of ``recall@fppi=F``
    title: str  # ``"average precision"``
    unit = ""  # in table headers; empty for a fraction
    higher_is_better = True
    bounds: tuple[float, float] = (0, 1)
    scope: Literal["class", "overall", "both"] = "both"  # the class table, the summary, or both
    fields: tuple[str, ...] = ()  # protocol fields on which it depends, and matching does not
    accumulated: Literal["precision", "recall"] | None = None  # array of COCOeval.eval it averages
    primary_metric: Literal["AP", "AR"] | None = None  # of the protocols, without ``m``
    heading = ""  # of its columns; empty for its name
    ratcheted = True  # ``detap baseline`` retains the better of two values
    uses_matched_iou = False
    column_priority = 1  # of its columns at one area range or `max_dets` value in narrow tables

    def listed(self, protocol: Protocol) -> Iterable["MetricSpec"]:
        """Return the metrics that reports of a protocol list, in order."""
        return ()

    def others(self, protocol: Protocol) -> Iterable["MetricSpec"]:
        """Return further metrics that a protocol has by name; names may repeat."""
        return ()

    def find(self, protocol: Protocol, name: str) -> "MetricSpec | None":
        """Return the metric of an unlisted name, such as ``"MR-2@75"``; None if not ours."""
        return None

    def by_class(self, result: MatchedResult, spec: "MetricSpec") -> Floats:
        """Compute the value of each class, (K,) float64."""
        raise NotImplementedError

    def overall(self, result: MatchedResult, spec: "MetricSpec") -> float:
        """Compute the mean over classes with a defined value."""
        return mean_of_classes(result, result.class_values(spec))

    @property
    def has_intervals(self) -> bool:
        """True if it can be resampled."""
        return type(self).resample is not Metric.resample

    def resample(
        self, result: MatchedResult, weights: Weights, specs: Specs, threads: int | None
    ) -> Sequence[Floats]:
        """Compute values of each class in each resample of the images."""
        raise UsageError(f"{self.name} has no interval: it cannot be resampled; leave it out")

    def resample_overall(
        self, result: MatchedResult, weights: Weights, spec: "MetricSpec", by_class: Floats
    ) -> Floats:
        """Compute the mean over classes with a defined value in each resample, (B,) float64."""
        if result.protocol.class_mean == "images":
            return mean_over_classes(by_class, images_drawn(result.match_table, weights))
        return mean_over_classes(by_class)


class MetricParams(NamedTuple):
    """The parameters of a metric as a summary shows them."""

    iou: str
    area: str
    max_dets: str
    classes: str = "all"


class MetricSpec(NamedTuple):
    """A metric at an IoU threshold, area range and `max_dets` value."""

    name: str  # ``"AP50"``, ``"AR100"``, ``"mAP"``
    metric: Metric
    threshold: int | None  # index of the IoU threshold; None for the mean over all of them
    area: int  # index of the area range
    max_dets_index: int  # index into `max_dets`
    params: MetricParams
    group: str = ""  # the class group of the mean; empty for all classes
    class_name: str = ""  # the name for one class: ``"AP50"`` if the mean is ``"mAP50"``
    heading: str = ""  # a shorter column header; empty for none
    argument: float | None = None  # the number in a name such as ``"recall@fppi=0.1"``
    pooled: bool = False  # all classes are ranked together

    @property
    def thresholds(self) -> slice:
        """The rows of an array over IoU thresholds that are averaged."""
        return slice(None) if self.threshold is None else slice(self.threshold, self.threshold + 1)


def metric_spec(
    protocol: Protocol, metric: Metric, name: str, indices: tuple[int | None, int, int]
) -> MetricSpec:
    """Return a metric with its parameters."""
    threshold, area, limit = indices
    thresholds = (
        protocol.iou_thresholds if threshold is None else (protocol.iou_thresholds[threshold],)
    )
    if protocol.class_iou:
        iou = ", ".join(map(_two_decimals, sorted({value for _, value in protocol.class_iou})))
    else:
        iou = ":".join(map(_two_decimals, dict.fromkeys((thresholds[0], thresholds[-1]))))
    max_dets = protocol.max_dets[limit]
    area_range = protocol.area_ranges[area]
    area_text = (
        f"{area_range.name} {area_range.text}" if area_range.unit == "%" else area_range.name
    )
    params = MetricParams(iou, area_text, "any" if max_dets is None else str(max_dets))
    return MetricSpec(name, metric, *indices, params, class_name=name)


def _two_decimals(threshold: float) -> str:
    """Format a threshold with two decimals as pycocotools does, or more if needed."""
    short, long = format(threshold, ".2f"), format(threshold, ".6g")
    return short if float(short) == float(long) else long


class Accumulated(Metric):
    """A mean over the arrays of pycocotools' ``COCOeval.accumulate``."""

    accumulated: Literal["precision", "recall"]

    def resample(
        self, result: MatchedResult, weights: Weights, specs: Specs, threads: int | None
    ) -> Sequence[Floats]:
        """Compute values of each class in each resample, AP and AR in one pass."""
        protocol, match_table = result.protocol, result.match_table
        thresholds = tuple(range(len(protocol.iou_thresholds)))
        requests = [
            ResampledMetric(
                spec.metric.accumulated == "precision",
                thresholds if spec.threshold is None else (spec.threshold,),
                spec.area,
                spec.max_dets_index,
            )
            for spec in specs
        ]
        values = resample(match_table, weights, requests, threads=threads)
        if protocol.matches_by_limit:  # matches at lower limits are not in the match table
            lower = [request.max_dets_index < len(protocol.max_dets) - 1 for request in requests]
            values[lower] = np.nan
        if protocol.absent_class != "undefined":
            absent = averages_of_absent(protocol, detected_classes(match_table, weights))
            for request, table in zip(requests, values, strict=True):
                if request.precision and request.area == 0:
                    np.copyto(table, absent, where=np.isnan(table))
        return list(values)


def ratios(part: NDArray[Any], whole: NDArray[Any]) -> Floats:
    """Divide elementwise; NaN for a divisor of 0."""
    quotients = np.full(part.shape, np.nan)
    np.divide(part, whole, out=quotients, where=whole > 0)
    return quotients


def mean_of_classes(result: MatchedResult, values: Floats) -> float:
    """Compute the mean of (..., K) values over the classes with a defined value."""
    if result.protocol.class_mean == "images":
        values = np.repeat(values, result._images_by_class, axis=-1)
    return mean_of_defined(values)


def mean_over_classes(by_class: Floats, images: Counts | None = None) -> Floats:
    """Compute the mean of (K, B) values over the classes with a defined value, (B,) float64.

    Classes are weighted by `images` (K, B), if given.
    """
    defined = ~np.isnan(by_class)
    weights = defined if images is None else np.where(defined, images, 0)
    counts = weights.sum(axis=0)
    sums: Floats = np.where(defined, by_class if images is None else by_class * images, 0.0).sum(
        axis=0
    )
    return ratios(sums, counts)


def mean_over_thresholds(values: Floats) -> Floats:
    """Compute the mean of (T, K) values over the thresholds."""
    # The values of a class are contiguous, so that NumPy adds them in the order of a 1-D mean.
    means: Floats = np.ascontiguousarray(values.T).mean(axis=1)
    return means


def averages_of_absent(protocol: Protocol, detected: Flags) -> Floats:
    """Return the average precision of classes without ground truth; NaN is undefined."""
    zero = {
        "undefined": np.zeros_like(detected),
        "zero": np.ones_like(detected),
        "zero-if-detected": detected,
    }
    return np.where(zero[protocol.absent_class], 0.0, np.nan)
