"""Recall at false positives per image: FROC curves and their scores.

Score thresholds keep all detections of equal score or none, so the curve has a point per distinct
score, and (0, 0).

References
----------
Setio et al., Validation, comparison, and combination of algorithms for automatic detection of
pulmonary nodules in CT images: The LUNA16 challenge, Medical Image Analysis 42 (2017): CPM.
Bejnordi et al., Diagnostic Assessment of Deep Learning Algorithms for Detection of Lymph Node
Metastases in Women With Breast Cancer, JAMA 318 (2017): the FROC score of CAMELYON16.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from detap.metrics.metric import Details, MetricSpec
from detap.metrics.ranked import Ranked, RankedCounts, exact_fraction, per_images, whole_count
from detap.protocols import Protocol
from detap.tables.detection import Floats

_CPM = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


class MeanRecall(Ranked):
    """The mean of the recall at fixed FPPI, at that of the name, or at those of the protocol."""

    per_image = True

    def __init__(
        self, name: str, title: str, fppi: tuple[float, ...] = (), *, parameter: str = ""
    ) -> None:
        self.name, self.title, self.parameter, self._fppi = name, title, parameter, fppi
        of_protocol = () if fppi or parameter else ("froc_points",)
        self.fields = ("froc_rule", "duplicates", *of_protocol)

    def points(self, spec: MetricSpec, protocol: Protocol) -> Sequence[float]:
        """Return the FPPI whose recall is averaged."""
        return (spec.argument,) if spec.argument is not None else self._fppi or protocol.froc_points

    def compute(self, counts: RankedCounts, spec: MetricSpec, protocol: Protocol) -> Floats:
        """Compute the mean recall."""
        means: Floats = self._recalls(counts, spec, protocol).mean(axis=1)
        return means

    def details(self, counts: RankedCounts, spec: MetricSpec, protocol: Protocol) -> dict[str, Any]:
        """Return the recall at each FPPI, and the FPPI of all detections."""
        return {
            "fppi": [*self.points(spec, protocol)],
            "recall": self._recalls(counts, spec, protocol)[0].tolist(),
            "last_fppi": float(counts.false_positives[0, -1] / counts.images[0]),
        }

    def remarks(self, spec: MetricSpec, details: Details, protocol: Protocol) -> list[str]:
        """State if curves end before the largest FPPI."""
        largest = max(self.points(spec, protocol))
        last = [one["last_fppi"] for one in details if one["last_fppi"] < largest]
        if not last:
            return []
        if len(details) == 1:
            return [f"the curve ends at {last[0]:.4g} FPPI; from there the recall is constant"]
        ends = f"end before {largest:g} FPPI, constant from there"
        return [f"{len(last)} of {len(details)} curves {ends}"]

    def _recalls(self, counts: RankedCounts, spec: MetricSpec, protocol: Protocol) -> Floats:
        """Compute the recall at each FPPI, (B, F) float64."""
        references = [exact_fraction(fppi) for fppi in self.points(spec, protocol)]
        counts = counts.at_thresholds()
        bounds = [partial(whole_count, fppi) for fppi in references]
        points = counts.last_within(per_images(counts.images, bounds))
        true_positives: Floats = np.take_along_axis(counts.true_positives, points, axis=1)
        if protocol.froc_rule == "linear":
            fppi = np.array([float(fraction) for fraction in references])
            after = np.minimum(points + 1, counts.true_positives.shape[1] - 1)
            start, end = (
                np.take_along_axis(counts.false_positives, index, axis=1)
                for index in (points, after)
            )
            rise = np.take_along_axis(counts.true_positives, after, axis=1) - true_positives
            part = (fppi * counts.images[:, None] - start) / np.maximum(end - start, 1)
            # At the last point there is no rise.
            true_positives = true_positives + part * rise
        recalls: Floats = true_positives / np.maximum(counts.positives, 1)[:, None]
        return recalls


CPM = MeanRecall("CPM", "mean recall at 1/8 to 8 false positives per image", _CPM)
FROC = MeanRecall("FROC", "mean recall at 1/4 to 8 false positives per image, or froc_points")
RECALL_AT_FPPI = MeanRecall("recall@fppi=", "recall at F false positives per image", parameter="F")
