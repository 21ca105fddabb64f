"""Metrics of detections without scores: precision, recall, F1 and the mean IoU of the pairs.

They are computed from the counts of true positives, false positives and false negatives at an IoU
threshold. Those of all classes together add the counts (micro-average); macro-F1 is the mean of
the classes with ground truth.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core.resampling import Weights
from detap.metrics.metric import MatchedResult, Metric, MetricSpec, metric_spec
from detap.protocols import Protocol
from detap.protocols.summary import percent
from detap.tables.detection import Flags, Floats

_ALIASES = {"precision": "P", "recall": "R", "mean-IoU": "mean IoU"}
"""Other names of metrics, as gates and command lines write them."""


class _Counts(NamedTuple):
    """Counts of each class in each resample at an IoU threshold, (K, B) each."""

    true: Floats
    false: Floats
    missed: Floats
    total_iou: Floats  # of the true positives

    @property
    def pooled(self) -> "_Counts":
        """The counts of all classes together, (B,) each."""
        return _Counts(*(column.sum(axis=0) for column in self))


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Divide; NaN if the denominator is 0."""
    quotient = np.full(numerator.shape, np.nan)
    np.divide(numerator, denominator, out=quotient, where=denominator > 0)
    return quotient


def _precision(counts: _Counts) -> Floats:
    return _ratio(counts.true, counts.true + counts.false)


def _recall(counts: _Counts) -> Floats:
    return _ratio(counts.true, counts.true + counts.missed)


def _f1(counts: _Counts) -> Floats:
    return _ratio(2 * counts.true, 2 * counts.true + counts.false + counts.missed)


def _mean_iou(counts: _Counts) -> Floats:
    return _ratio(counts.total_iou, counts.true)


class Unscored(Metric):
    """A metric of counts at an IoU threshold, or its mean over the thresholds."""

    def __init__(
        self, name: str, title: str, value: Callable[[_Counts], Floats], heading: str = ""
    ) -> None:
        self.name, self.title, self._value = name, title, value
        self.heading, self.key = heading, heading.replace(" ", "_").lower() or name
        self.uses_matched_iou = value is _mean_iou

    def listed(self, protocol: Protocol) -> Iterator[MetricSpec]:
        """Yield the metric at the lowest threshold."""
        yield self._at(protocol, 0, self.name)

    def find(self, protocol: Protocol, name: str) -> MetricSpec | None:
        """Return the metric at a threshold, such as ``F1@75``, or by another name."""
        name, at, digits = name.partition("@")
        if _ALIASES.get(name, name) != self.name:
            return None
        if not at:
            return next(iter(self.listed(protocol)))
        for t, iou in enumerate(protocol.iou_thresholds):
            if percent(iou) == digits:
                return self._at(protocol, t, f"{self.name}@{digits}")
        return None

    def _at(self, protocol: Protocol, threshold: int | None, name: str) -> MetricSpec:
        spec = metric_spec(protocol, self, name, (threshold, 0, 0))
        return spec._replace(class_name=name.replace(self.name, self.key))

    def by_class(self, result: MatchedResult, spec: MetricSpec) -> Floats:
        """Compute the value of each class, (K,) float64."""
        return self.resample(result, _once(result), [spec], None)[0][:, 0]

    def overall(self, result: MatchedResult, spec: MetricSpec) -> float:
        """Compute the value of all classes together."""
        weights = _once(result)
        by_class = self.resample(result, weights, [spec], None)[0]
        return float(self.resample_overall(result, weights, spec, by_class)[0])

    def resample(
        self,
        result: MatchedResult,
        weights: Weights,
        specs: Sequence[MetricSpec],
        threads: int | None,
    ) -> Sequence[Floats]:
        """Compute values of each class in each resample."""
        del threads
        values = []
        for spec in specs:
            metric: Unscored = spec.metric  # type: ignore[assignment]
            values.append(metric._mean(result, spec, weights, metric._value))
        return values

    def resample_overall(
        self, result: MatchedResult, weights: Weights, spec: MetricSpec, by_class: Floats
    ) -> Floats:
        """Compute the value of all classes together in each resample, (B,) float64."""
        del by_class
        return self._mean(result, spec, weights, lambda counts: self._value(counts.pooled))

    def _mean(
        self,
        result: MatchedResult,
        spec: MetricSpec,
        weights: Weights,
        value: Callable[[_Counts], Floats],
    ) -> Floats:
        """Compute the mean over the metric's thresholds; NaN if undefined at one."""
        thresholds = range(len(result.protocol.iou_thresholds))[spec.thresholds]
        values = [value(_counts(result, spec, t, weights)) for t in thresholds]
        return np.mean(values, axis=0) if len(values) > 1 else values[0]


class AtIou75(Unscored):
    """A metric that summaries list at the threshold .75, where the protocol has it."""

    scope = "overall"

    def listed(self, protocol: Protocol) -> Iterator[MetricSpec]:
        """Yield the metric at .75 if it is not at the lowest threshold."""
        index = protocol.threshold_index(0.75)
        if index:
            yield self._at(protocol, index, f"{self.name}@75")

    def find(self, protocol: Protocol, name: str) -> MetricSpec | None:
        """Return None: the metric itself has the thresholds."""
        return None


class MeanOverThresholds(Unscored):
    """The mean of a metric over the thresholds, where the protocol has several."""

    scope = "overall"

    def listed(self, protocol: Protocol) -> Iterator[MetricSpec]:
        """Yield the mean."""
        if len(protocol.iou_thresholds) > 1:
            yield self._at(protocol, None, self.name)


class MeanOverClasses(Unscored):
    """The mean of a metric over the classes with counted ground truth."""

    scope = "overall"

    def resample_overall(
        self, result: MatchedResult, weights: Weights, spec: MetricSpec, by_class: Floats
    ) -> Floats:
        """Compute the mean over the classes with ground truth in each resample, (B,) float64."""
        counts = _counts(result, spec, spec.threshold or 0, weights)
        present = np.where(counts.true + counts.missed > 0, by_class, np.nan)
        return Metric.resample_overall(self, result, weights, spec, present)


UNSCORED: list[Metric] = [
    Unscored("F1", "F1 of precision and recall", _f1),
    Unscored("P", "precision", _precision),
    Unscored("R", "recall", _recall),
    AtIou75("F1", "F1 at IoU 0.75", _f1),
    MeanOverThresholds("mF1", "mean F1 over IoU thresholds", _f1),
    MeanOverClasses("macro-F1", "mean F1 of the classes", _f1),
    Unscored("mean IoU", "mean IoU of the true positives", _mean_iou, "mean IoU"),
]
"""The metrics of detections without scores, the primary one first."""


def _once(result: MatchedResult) -> Weights:
    """Return the weights that count each image once."""
    return Weights.from_table(np.ones((1, len(result.images)), np.uint8))


def _counts(result: MatchedResult, spec: MetricSpec, threshold: int, weights: Weights) -> _Counts:
    """Count the matches of each class in each resample."""
    table = result.match_table
    true = table.is_true_positive(0, threshold)
    false = ~(true | table.is_ignored(0, threshold))
    weight = weights.table().T.astype(np.float64)

    def weighted(label: NDArray[np.int32], image: NDArray[np.int32], amount: Floats) -> Floats:
        """Add amounts of each image and class, and weight the images, (K, B)."""
        shape = table.classes, max(table.images, 1)
        sums = np.bincount(label * np.int64(shape[1]) + image, amount, shape[0] * shape[1])
        out: Floats = sums.reshape(shape)[:, : len(weight)] @ weight
        return out

    def counted(label: NDArray[np.int32], image: NDArray[np.int32], mask: Flags) -> Floats:
        return weighted(label[mask], image[mask], np.ones(np.count_nonzero(mask)))

    hits = counted(table.label, table.image, true)
    total_iou = hits
    if spec.metric.uses_matched_iou:
        iou = result.matched_iou(spec._replace(threshold=threshold))
        total_iou = weighted(table.label, table.image, iou)
    return _Counts(
        hits,
        counted(table.label, table.image, false),
        counted(table.truth_label, table.truth_image, table.positive[0]) - hits,
        total_iou,
    )
