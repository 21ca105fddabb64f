"""Metrics of detections without scores: precision, recall, F1 and the mean IoU of the pairs.

They are computed from the counts of true positives, false positives and false negatives at an IoU
threshold. Those of all classes together add the counts (micro-average); macro-F1 is the mean of
the classes with ground truth.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core.resampling import Weights
from detap.metrics.at_threshold import AT_THRESHOLD
from detap.metrics.metric import (
    MatchedResult,
    Metric,
    MetricSpec,
    Specs,
    mean_over_classes,
    metric_spec,
    ratios,
)
from detap.protocols import Protocol
from detap.protocols.summary import percent
from detap.tables.detection import Floats

_ALIASES = {"precision": "P", "recall": "R", "mean-IoU": "mean IoU"}
"""Other names of metrics, as gates and command lines write them."""


class _Counts(NamedTuple):
    """Counts of each class in each resample at an IoU threshold, (K, B) each."""

    true: Floats
    false: Floats
    missed: Floats
    total_iou: Floats  # of the true positives


def _at_threshold(name: str) -> Callable[[_Counts], Floats]:
    of_counts = AT_THRESHOLD[name].of_counts
    return lambda counts: of_counts(counts.true, counts.false, counts.missed, None)


_f1 = _at_threshold("F1")


def _mean_iou(counts: _Counts) -> Floats:
    return ratios(counts.total_iou, counts.true)


class Unscored(Metric):
    """A metric of counts at an IoU threshold, or its mean over the thresholds."""

    def __init__(
        self,
        name: str,
        title: str,
        value: Callable[[_Counts], Floats],
        *,
        listed: Callable[[Protocol], Sequence[int | None]] = lambda protocol: [0],
        scope: Literal["overall", "both"] = "both",
        heading: str = "",
    ) -> None:
        self.name, self.title, self._value, self._listed = name, title, value, listed
        self.scope = scope
        self.heading, self.key = heading, heading.replace(" ", "_").lower() or name
        self.uses_matched_iou = value is _mean_iou

    def listed(self, protocol: Protocol) -> Iterator[MetricSpec]:
        """Yield the metric at the thresholds of summaries; None is the mean over all."""
        for threshold in self._listed(protocol):
            at = f"@{percent(protocol.iou_thresholds[threshold])}" if threshold else ""
            yield self._at(protocol, threshold, f"{self.name}{at}")

    def find(self, protocol: Protocol, name: str) -> MetricSpec | None:
        """Return the metric at a threshold, such as ``F1@75``, or by another name."""
        name, at, digits = name.partition("@")
        if _ALIASES.get(name, name) != self.name:
            return None
        if not at:
            return next(iter(self.listed(protocol)), None)
        for t, iou in enumerate(protocol.iou_thresholds):
            if percent(iou) == digits:
                return self._at(protocol, t, f"{self.name}@{digits}")
        return None

    def _at(self, protocol: Protocol, threshold: int | None, name: str) -> MetricSpec:
        spec = metric_spec(protocol, self, name, (threshold, 0, 0))
        return spec._replace(class_name=name.replace(self.name, self.key))

    def by_class(self, result: MatchedResult, spec: MetricSpec) -> Floats:
        """Compute the value of each class, (K,) float64."""
        return self._values(result, spec)[0][:, 0]

    def overall(self, result: MatchedResult, spec: MetricSpec) -> float:
        """Compute the value of all classes together."""
        return float(self._values(result, spec)[1][0])

    def resample(
        self, result: MatchedResult, weights: Weights, specs: Specs, threads: int | None
    ) -> Sequence[Floats]:
        """Compute values of each class in each resample."""
        del threads
        metrics: list[Any] = [spec.metric for spec in specs]
        pairs = zip(metrics, specs, strict=True)
        return [metric._values(result, spec, weights)[0] for metric, spec in pairs]

    def resample_overall(
        self, result: MatchedResult, weights: Weights, spec: MetricSpec, by_class: Floats
    ) -> Floats:
        """Compute the value of all classes together in each resample, (B,) float64."""
        del by_class
        return self._values(result, spec, weights)[1]

    def _values(
        self, result: MatchedResult, spec: MetricSpec, *weights: Weights
    ) -> tuple[Floats, Floats]:
        """Compute the value of each class (K, B), and of all together (B,), in each resample."""
        counts = [*_counts(result, spec, *weights)]
        by_class = [self._value(one) for one in counts]
        return np.mean(by_class, axis=0), np.mean([*map(self._of_all, counts)], axis=0)

    def _of_all(self, counts: _Counts) -> Floats:
        return self._value(_Counts(*(column.sum(axis=0) for column in counts)))


class MeanOverClasses(Unscored):
    """The mean of a metric over the classes with counted ground truth."""

    def _of_all(self, counts: _Counts) -> Floats:
        present = counts.true + counts.missed > 0
        return mean_over_classes(np.where(present, self._value(counts), np.nan))


def _at_75(protocol: Protocol) -> list[int | None]:
    """Return the threshold .75, unless it is the lowest or the protocol lacks it."""
    index = protocol.threshold_index(0.75)
    return [index] if index else []


def _mean_of_several(protocol: Protocol) -> list[int | None]:
    return [None] if len(protocol.iou_thresholds) > 1 else []


UNSCORED: list[Metric] = [
    Unscored("F1", "F1 of precision and recall", _f1),
    Unscored("P", "precision", _at_threshold("precision")),
    Unscored("R", "recall", _at_threshold("recall")),
    Unscored("F1", "F1 at IoU 0.75", _f1, listed=_at_75, scope="overall"),
    Unscored("mF1", "mean F1 over IoU thresholds", _f1, listed=_mean_of_several, scope="overall"),
    MeanOverClasses("macro-F1", "mean F1 of the classes", _f1, scope="overall"),
    Unscored("mean IoU", "mean IoU of the true positives", _mean_iou, heading="mean IoU"),
]
"""The metrics of detections without scores, the primary one first."""


def _counts(
    result: MatchedResult, spec: MetricSpec, weights: Weights | None = None
) -> Iterator[_Counts]:
    """Count the matches of each class at each threshold; without weights once, as B = 1."""
    table = result.match_table
    weight = None if weights is None else weights.table().T.astype(np.float64)  # (I, B)

    def summed(label: NDArray[np.int32], image: NDArray[np.int32], amount: Floats) -> Any:
        """Add amounts by class, (K, B) float64."""
        if weight is None:
            return np.bincount(label, amount, table.classes)[:, None]
        shape = table.classes, len(weight)
        cells = np.bincount(label * np.int64(len(weight)) + image, amount, shape[0] * shape[1])
        return cells.reshape(shape) @ weight

    positive = table.positive[0].astype(np.float64)
    positives = summed(table.truth_label, table.truth_image, positive)
    for threshold in range(len(result.protocol.iou_thresholds))[spec.thresholds]:
        true = table.is_true_positive(0, threshold)
        false = ~(true | table.is_ignored(0, threshold))
        hits, wrong = (
            summed(table.label, table.image, flags.astype(np.float64)) for flags in (true, false)
        )
        total_iou = hits
        if spec.metric.uses_matched_iou:
            iou = result.matched_iou(spec._replace(threshold=threshold))
            order = np.argsort(iou)  # the last bit of a sum depends on the order of the file
            total_iou = summed(table.label[order], table.image[order], iou[order])
        yield _Counts(hits, wrong, positives - hits, total_iou)
