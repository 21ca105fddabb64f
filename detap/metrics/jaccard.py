"""Jaccard index of CrowdHuman: matched people over all people, per image."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.core.resampling import Weights
from detap.errors import UsageError
from detap.metrics.metric import MatchedResult, Metric, MetricSpec, Specs, metric_spec
from detap.protocols import Protocol
from detap.protocols.summary import percent
from detap.tables.detection import Floats


class JaccardIndex(Metric):
    """The largest mean over images of their Jaccard index, over ten score thresholds."""

    # The matching of an image is the one of largest total IoU, not the protocol's.

    name = "JI"
    title = "Jaccard index"

    def others(self, protocol: Protocol) -> Iterator[MetricSpec]:
        """Yield the index at the lowest IoU threshold."""
        if not _problem(protocol):
            yield self._at(protocol, 0, self.name)

    def find(self, protocol: Protocol, name: str) -> MetricSpec | None:
        """Return ``JI@75``."""
        names = {f"{self.name}@{percent(iou)}": t for t, iou in enumerate(protocol.iou_thresholds)}
        threshold = ({self.name: 0} | names).get(name)
        if threshold is None:
            return None
        if problem := _problem(protocol):
            raise UsageError(f"{name}: {problem}")
        return self._at(protocol, threshold, name)

    def _at(self, protocol: Protocol, threshold: int, name: str) -> MetricSpec:
        return metric_spec(protocol, self, name, (threshold, 0, len(protocol.max_dets) - 1))

    def by_class(self, result: MatchedResult, spec: MetricSpec) -> Floats:
        """Compute the value of each class, (K,) float64."""
        every_image_once = np.ones((1, result.match_table.images), np.uint8)
        return self._values(result, spec, every_image_once)[:, 0]

    def resample(
        self, result: MatchedResult, weights: Weights, specs: Specs, threads: int | None
    ) -> Sequence[Floats]:
        """Compute the values of each class in each resample; see :meth:`Metric.resample`."""
        return [self._values(result, spec, weights.table()) for spec in specs]

    @staticmethod
    def _values(result: MatchedResult, spec: MetricSpec, weights: NDArray[Any]) -> Floats:
        match_table = result.match_table
        positive = match_table.positive[0]
        counts = result.jaccard_counts(spec)
        values: Floats = counts.largest_mean(match_table.classes, weights)
        for label in range(match_table.classes):
            image = match_table.truth_image[positive & (match_table.truth_label == label)]
            values[label, ~weights[:, image].any(axis=1)] = np.nan  # no ground truth drawn
        return values


def _problem(protocol: Protocol) -> str:
    """Return the reason why a protocol cannot have the index, or an empty string."""
    if protocol.iou_type != "bbox":
        return "the Jaccard index matches boxes; use --iou-type bbox"
    if protocol.matching != "by-score":
        return f"protocol {protocol.name} does not rank detections; use another --protocol"
    if protocol.verified == "listed":
        return (
            "unmatched detections have no meaning where each image is verified for some classes "
            f"only, as with protocol {protocol.name}; use --verified all"
        )
    return ""
