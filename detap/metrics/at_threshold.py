"""F1, precision, recall and false positives per image at a score threshold."""

from collections.abc import Callable
from typing import Any

from detap.metrics.metric import Metric, ratios
from detap.tables.detection import Floats


class AtThreshold(Metric):
    """A metric of arrays of TP, FP, FN and the number of images, independent of the protocol."""

    def __init__(self, name: str, of_counts: Callable[[Any, Any, Any, Any], Floats]) -> None:
        self.name, self.title = name, name.replace("-", " ")
        self.key = name.replace("-", "_")  # in the JSON report
        self.of_counts = of_counts


class FalsePositivesPerImage(AtThreshold):
    """False positives over images."""

    unit = "per image"
    higher_is_better = False
    bounds = (0.0, float("inf"))
    ratcheted = False


AT_THRESHOLD = {
    metric.name: metric
    for metric in (
        AtThreshold("F1", lambda tp, fp, fn, _: ratios(2 * tp, 2 * tp + fp + fn)),
        AtThreshold("precision", lambda tp, fp, fn, _: ratios(tp, tp + fp)),
        AtThreshold("recall", lambda tp, fp, fn, _: ratios(tp, tp + fn)),
        FalsePositivesPerImage(
            "false-positives-per-image", lambda tp, fp, fn, images: ratios(fp, images)
        ),
    )
}
"""The metrics at a score threshold, by name."""
