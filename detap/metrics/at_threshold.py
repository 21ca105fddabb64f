"""F1, precision, recall and false positives per image at a score threshold."""

from collections.abc import Callable

from detap.metrics.metric import Metric


class AtThreshold(Metric):
    """A metric of TP, FP, FN and the number of images, independent of the protocol."""

    def __init__(self, name: str, of_counts: Callable[[int, int, int, int], float]) -> None:
        self.name, self.title = name, name.replace("-", " ")
        self.key = name.replace("-", "_")  # in the JSON report
        self.of_counts = of_counts


class FalsePositivesPerImage(AtThreshold):
    """False positives over images."""

    unit = "per image"
    higher_is_better = False
    bounds = (0.0, float("inf"))
    ratcheted = False


def _ratio(numerator: int, denominator: int) -> float:
    return numerator / denominator if denominator else float("nan")


AT_THRESHOLD = {
    metric.name: metric
    for metric in (
        AtThreshold("F1", lambda tp, fp, fn, _: _ratio(2 * tp, 2 * tp + fp + fn)),
        AtThreshold("precision", lambda tp, fp, fn, _: _ratio(tp, tp + fp)),
        AtThreshold("recall", lambda tp, fp, fn, _: _ratio(tp, tp + fn)),
        FalsePositivesPerImage(
            "false-positives-per-image", lambda tp, fp, fn, images: _ratio(fp, images)
        ),
    )
}
"""The metrics at a score threshold, by name."""
