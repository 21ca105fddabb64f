"""AP at a fixed number of score thresholds, as WIDER FACE's script computes it.

Scores are scaled to 0 to 1, from the lowest to the highest of the data set. Only the points of the
curve at the thresholds 1 - 1/N, 1 - 2/N, ... 0 count. Each has all detections of equal score.

References
----------
Yang, Luo, Loy and Tang, WIDER FACE: A Face Detection Benchmark, CVPR 2016. The rules are those of
widerface_evaluate/evaluation.py in derronqi/yolov7-face 74a2a1d.
"""

import numpy as np

from detap.errors import UsageError
from detap.metrics.metric import MetricSpec
from detap.metrics.ranked import Ranked, RankedCounts
from detap.protocols import Protocol
from detap.tables.detection import Floats


class ThresholdGridAP(Ranked):
    """The area under the interpolated curve of the points at N score thresholds."""

    name = "AP@thresholds="
    parameter = "N"
    title = "AP of the points at N score thresholds"

    def check_argument(self, name: str, argument: float) -> None:
        """Raise UsageError unless the number of thresholds is a positive integer."""
        if argument < 1 or argument % 1:
            raise UsageError(f"{name}: the number of thresholds must be a positive integer")

    def compute(self, counts: RankedCounts, spec: MetricSpec, protocol: Protocol) -> Floats:
        """Compute the area; precision is the maximum at that recall or a higher one."""
        assert spec.argument is not None
        low, high = counts.score_range
        counts = counts.at_thresholds()
        scores = counts.score[1:]
        scaled = (scores - low) / (high - low) if high > low else np.ones(len(scores))
        n = int(spec.argument)
        points = np.searchsorted(-scaled, np.arange(1, n + 1) / n - 1, side="right")
        true, false = counts.true_positives[:, points], counts.false_positives[:, points]
        precision = true / np.maximum(true + false, 1)
        envelope = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
        gained = np.diff(true, axis=1, prepend=0)
        areas: Floats = (gained * envelope).sum(axis=1) / np.maximum(counts.positives, 1)
        return areas
