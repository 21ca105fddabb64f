"""AR: the recall of all detections within the limit, a mean over IoU thresholds."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from detap.metrics.metric import Accumulated, mean_over_thresholds
from detap.protocols.summary import metric_spec, percent

if TYPE_CHECKING:
    from detap.evaluation.results import Result
    from detap.protocols import MetricSpec, Protocol
    from detap.tables.detection import Floats


class AverageRecall(Accumulated):
    """Average recall, at each detection limit."""

    name = "AR"
    title = "average recall"
    accumulated = "recall"
    primary_metric = "AR"
    column_priority = 2

    def listed(self, protocol: "Protocol") -> "Iterator[MetricSpec]":
        """Yield it at each limit, at IoU .5 and .75 for keypoints, and by area."""
        limits, bands = range(len(protocol.max_dets)), range(len(protocol.area_ranges))
        if protocol.primary_metric == "AR":
            yield from (self._at(protocol, area, m, both=True) for m in limits for area in bands)
        elif protocol.primary_metric == "AP":
            yield from (self._at(protocol, 0, limit) for limit in limits)
            if protocol.iou_type == "keypoints":
                # pycocotools' summary of keypoints has recall at single thresholds, here unless it
                # were called as the recall at a limit is.
                for p in sorted({50, 75}.difference(protocol.max_dets)):
                    if (t := protocol.threshold_index(p / 100)) is not None:
                        name = f"AR{percent(protocol.iou_thresholds[t])}"
                        yield metric_spec(protocol, self, name, (t, 0, limits[-1]))
            yield from (self._at(protocol, area, limits[-1]) for area in bands[1:])

    def others(self, protocol: "Protocol") -> "Iterator[MetricSpec]":
        """Yield it at each limit and area range, which its name says or leaves out."""
        for both in (False, True):
            for limit in reversed(range(len(protocol.max_dets))):
                for area in range(len(protocol.area_ranges)):
                    yield self._at(protocol, area, limit, both=both)

    def by_class(self, result: "Result", spec: "MetricSpec") -> "Floats":
        """Return the mean over thresholds."""
        recall = result.recall[spec.thresholds, :, spec.area, spec.max_dets_index]
        return mean_over_thresholds(recall)

    def overall(self, result: "Result", spec: "MetricSpec") -> float:
        """Return the mean over thresholds and classes that have it."""
        from detap.core.curves import mean_of_defined

        return mean_of_defined(result.recall[spec.thresholds, :, spec.area, spec.max_dets_index])

    def _at(
        self, protocol: "Protocol", area: int, limit: int, *, both: bool = False
    ) -> "MetricSpec":
        most = protocol.max_dets[limit]
        named_limit = "" if most is None or (area and not both) else str(most)
        name = f"AR{named_limit}{protocol.area_ranges[area].suffix}"
        last = area == 0 and limit == len(protocol.max_dets) - 1
        heading = "AR" if last and protocol.primary_metric != "AR" else ""
        return metric_spec(protocol, self, name, (None, area, limit))._replace(heading=heading)


class FinalRecall(Accumulated):
    """The recall of each class that VOC's tables have beside AP."""

    name = "recall"
    title = "final recall"
    scope = "class"
    accumulated = "recall"

    def listed(self, protocol: "Protocol") -> "Iterator[MetricSpec]":
        """Yield it over all areas at the largest limit, if the primary metric is mAP."""
        if protocol.primary_metric == "mAP":
            yield metric_spec(protocol, self, self.name, (None, 0, len(protocol.max_dets) - 1))

    def by_class(self, result: "Result", spec: "MetricSpec") -> "Floats":
        """Return the mean over thresholds."""
        means: Floats = result.recall[:, :, spec.area, spec.max_dets_index].mean(axis=0)
        return means
