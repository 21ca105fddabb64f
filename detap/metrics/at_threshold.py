"""F1, precision, recall and false positives per image at a score threshold."""

from detap.metrics.metric import Metric


class AtThreshold(Metric):
    """A metric of counts at a score threshold, independent of the protocol."""

    @property
    def key(self) -> str:
        """The key in the JSON report."""
        return self.name.replace("-", "_")

    def of_counts(self, tp: int, fp: int, fn: int, images: int) -> float:
        """Compute the metric from TP, FP, FN and the number of images."""
        raise NotImplementedError


class F1(AtThreshold):
    """The harmonic mean of precision and recall."""

    name = title = "F1"

    def of_counts(self, tp: int, fp: int, fn: int, images: int) -> float:
        """Compute 2 TP / (2 TP + FP + FN)."""
        return _ratio(2 * tp, 2 * tp + fp + fn)


class Precision(AtThreshold):
    """True positives over detections."""

    name = title = "precision"

    def of_counts(self, tp: int, fp: int, fn: int, images: int) -> float:
        """Compute TP / (TP + FP)."""
        return _ratio(tp, tp + fp)


class Recall(AtThreshold):
    """True positives over ground truths."""

    name = title = "recall"

    def of_counts(self, tp: int, fp: int, fn: int, images: int) -> float:
        """Compute TP / (TP + FN)."""
        return _ratio(tp, tp + fn)


class FalsePositivesPerImage(AtThreshold):
    """False positives over images."""

    name = "false-positives-per-image"
    title = "false positives per image"
    unit = "per image"
    higher_is_better = False
    bounds = (0.0, float("inf"))
    ratcheted = False

    def of_counts(self, tp: int, fp: int, fn: int, images: int) -> float:
        """Compute FP / images."""
        return _ratio(fp, images)


AT_THRESHOLD = {
    metric.name: metric for metric in (F1(), Precision(), Recall(), FalsePositivesPerImage())
}
"""The metrics at a score threshold, by name."""


def _ratio(numerator: int, denominator: int) -> float:
    return numerator / denominator if denominator else float("nan")
