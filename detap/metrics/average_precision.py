"""AP and mAP: area under the precision-recall curve, averaged over IoU thresholds."""

from collections.abc import Iterator

import numpy as np

from detap.core.curves import mean_of_defined
from detap.metrics.metric import (
    Accumulated,
    MatchedResult,
    MetricSpec,
    mean_over_thresholds,
    metric_spec,
)
from detap.protocols import Protocol
from detap.protocols.summary import FREQUENCIES, percent
from detap.tables.detection import Floats


class AveragePrecision(Accumulated):
    """Average precision; mAP over all classes if the protocol names it so."""

    name = "AP"
    title = "average precision"
    fields = ("interpolation", "recall_grid", "precision_eps", "absent_class", "class_mean")
    accumulated = "precision"
    primary_metric = "AP"

    def listed(self, protocol: Protocol) -> Iterator[MetricSpec]:
        """Yield AP over all thresholds, at 0.5 and 0.75, by area and by class group."""
        if protocol.primary_metric == "AR":
            return
        overall = self._at(protocol, None, 0)
        yield overall
        at_thresholds = len(protocol.iou_thresholds) > 1 or protocol.primary_metric == "AP"
        if at_thresholds and not protocol.class_iou:
            indices = map(protocol.threshold_index, (0.5, 0.75))
            yield from (self._at(protocol, t, 0) for t in indices if t is not None)
        yield from (self._at(protocol, None, area) for area in range(1, len(protocol.area_ranges)))
        if protocol.class_groups != "none":
            for suffix, group in FREQUENCIES.items():
                params = overall.params._replace(classes=group)
                yield overall._replace(name=f"{overall.name}{suffix}", params=params, group=group)

    def others(self, protocol: Protocol) -> Iterator[MetricSpec]:
        """Yield AP at each threshold and area range."""
        if protocol.primary_metric == "AR":
            return
        thresholds = (None, *range(len(protocol.iou_thresholds) if not protocol.class_iou else 0))
        for area in range(len(protocol.area_ranges)):
            yield from (self._at(protocol, t, area) for t in thresholds)

    def by_class(self, result: MatchedResult, spec: MetricSpec) -> Floats:
        """Compute the mean over thresholds, and over recall levels if there are any."""
        if result.protocol.interpolation == "101-point":
            means = result.average_precision[0, :, spec.area].copy()
            labels = np.flatnonzero(~np.isnan(means))
            for first in range(0, len(labels), 1000):  # for less memory
                part = labels[first : first + 1000]
                precision = result._interpolated.at(spec.area, spec.thresholds, part)
                # The values of a class are contiguous, as in mean_over_thresholds.
                means[part] = np.concatenate(precision, axis=1).mean(axis=1)
            return means
        return mean_over_thresholds(result.average_precision[spec.thresholds, :, spec.area])

    def overall(self, result: MatchedResult, spec: MetricSpec) -> float:
        """Compute the mean over classes with a defined AP, and over thresholds."""
        average = result.average_precision[spec.thresholds, :, spec.area]
        defined = ~np.isnan(average[0])
        if spec.group:
            defined &= result.in_group(spec.group)
        labels = np.flatnonzero(defined)
        if result.protocol.class_mean == "images":
            labels = np.repeat(labels, result._images_by_class[labels])
        if result.protocol.interpolation == "101-point":
            # numpy.mean over thresholds, levels and classes at once, as pycocotools' summarize:
            # a mean of means would differ in the last bits.
            return result._interpolated.mean(spec.area, spec.thresholds, labels)
        return mean_of_defined(average[:, labels])

    def _at(self, protocol: Protocol, threshold: int | None, area: int) -> MetricSpec:
        iou = "" if threshold is None else percent(protocol.iou_thresholds[threshold])
        name = f"{protocol.primary_metric}{iou}{protocol.area_ranges[area].suffix}"
        indices = (threshold, area, len(protocol.max_dets) - 1)
        return metric_spec(protocol, self, name, indices)._replace(
            class_name=name.removeprefix("m")
        )
