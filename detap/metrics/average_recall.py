"""AR: recall at a maximum of detections, averaged over IoU thresholds."""

from collections.abc import Iterator

from detap.metrics.metric import (
    Accumulated,
    MatchedResult,
    MetricSpec,
    mean_of_classes,
    mean_over_thresholds,
    metric_spec,
)
from detap.protocols import Protocol
from detap.protocols.summary import percent
from detap.tables.detection import Floats


class AverageRecall(Accumulated):
    """Average recall at each `max_dets` value."""

    name = "AR"
    title = "average recall"
    fields = ("class_mean",)
    accumulated = "recall"
    primary_metric = "AR"
    column_priority = 2

    def listed(self, protocol: Protocol) -> Iterator[MetricSpec]:
        """Yield AR at each max_dets, at OKS 0.5 and 0.75 for keypoints, and by area."""
        if protocol.max_dets_scope == "dataset":
            return
        limits, areas = range(len(protocol.max_dets)), range(len(protocol.area_ranges))
        if protocol.primary_metric == "AR":
            yield from (self._at(protocol, area, m, both=True) for m in limits for area in areas)
        elif protocol.primary_metric == "AP":
            yield from (self._at(protocol, 0, limit) for limit in limits)
            if protocol.iou_type == "keypoints":
                # pycocotools' keypoint summary has recall at single thresholds; omitted if the name
                # is that of a recall at a max_dets value.
                for p in sorted({50, 75}.difference(protocol.max_dets)):
                    if (t := protocol.threshold_index(p / 100)) is not None:
                        name = f"AR{percent(protocol.iou_thresholds[t])}"
                        yield metric_spec(protocol, self, name, (t, 0, limits[-1]))
            yield from (self._at(protocol, area, limits[-1]) for area in areas[1:])

    def others(self, protocol: Protocol) -> Iterator[MetricSpec]:
        """Yield AR at each max_dets and area range, by short and full names."""
        for both in (False, True):
            for limit in reversed(range(len(protocol.max_dets))):
                for area in range(len(protocol.area_ranges)):
                    yield self._at(protocol, area, limit, both=both)

    def by_class(self, result: MatchedResult, spec: MetricSpec) -> Floats:
        """Compute the mean over thresholds."""
        recall = result.recall[spec.thresholds, :, spec.area, spec.max_dets_index]
        return mean_over_thresholds(recall)

    def overall(self, result: MatchedResult, spec: MetricSpec) -> float:
        """Compute the mean over thresholds and over classes with a defined AR."""
        recall = result.recall[spec.thresholds, :, spec.area, spec.max_dets_index]
        return mean_of_classes(result, recall)

    def _at(self, protocol: Protocol, area: int, limit: int, *, both: bool = False) -> MetricSpec:
        max_dets = protocol.max_dets[limit]
        infix = "" if max_dets is None or (area and not both) else str(max_dets)
        name = f"AR{infix}{protocol.area_ranges[area].suffix}"
        last = area == 0 and limit == len(protocol.max_dets) - 1
        heading = "AR" if last and protocol.primary_metric != "AR" else ""
        return metric_spec(protocol, self, name, (None, area, limit))._replace(heading=heading)


class FinalRecall(Accumulated):
    """The recall of each class over all detections, as in VOC tables."""

    name = "recall"
    title = "final recall"
    scope = "class"
    accumulated = "recall"

    def listed(self, protocol: Protocol) -> Iterator[MetricSpec]:
        """Yield the recall over all areas at the largest max_dets, for mAP protocols."""
        if protocol.primary_metric == "mAP":
            yield metric_spec(protocol, self, self.name, (None, 0, len(protocol.max_dets) - 1))

    def by_class(self, result: MatchedResult, spec: MetricSpec) -> Floats:
        """Compute the mean over thresholds."""
        means: Floats = result.recall[:, :, spec.area, spec.max_dets_index].mean(axis=0)
        return means
