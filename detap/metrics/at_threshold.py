"""F1, precision, recall and false positives per image: a detector at one score threshold."""

from detap.metrics.metric import Metric


class AtThreshold(Metric):
    """A metric of the counts at a score threshold, which no protocol decides."""

    @property
    def key(self) -> str:
        """Its key in the JSON report."""
        return self.name.replace("-", "_")

    def of_counts(self, found: int, false: int, missed: int, images: int) -> float:
        """Return it of true positives, false positives, false negatives and images."""
        raise NotImplementedError


class F1(AtThreshold):
    """The harmonic mean of precision and recall."""

    name = title = "F1"

    def of_counts(self, found: int, false: int, missed: int, images: int) -> float:
        """Return twice the true positives over detections and ground truths."""
        return _ratio(2 * found, 2 * found + false + missed)


class Precision(AtThreshold):
    """True positives among the detections kept."""

    name = title = "precision"

    def of_counts(self, found: int, false: int, missed: int, images: int) -> float:
        """Return the true positives over the detections."""
        return _ratio(found, found + false)


class Recall(AtThreshold):
    """True positives among the ground truths."""

    name = title = "recall"

    def of_counts(self, found: int, false: int, missed: int, images: int) -> float:
        """Return the true positives over the ground truths."""
        return _ratio(found, found + missed)


class FalsePositivesPerImage(AtThreshold):
    """False positives over all images."""

    name = "false-positives-per-image"
    title = "false positives per image"
    unit = "per image"
    higher_is_better = False
    bounds = (0.0, float("inf"))
    ratcheted = False

    def of_counts(self, found: int, false: int, missed: int, images: int) -> float:
        """Return the false positives over the images."""
        return _ratio(false, images)


AT_THRESHOLD = {
    metric.name: metric for metric in (F1(), Precision(), Recall(), FalsePositivesPerImage())
}
"""The metrics of a detector at one score threshold by name, which no protocol decides."""


def _ratio(numerator: int, denominator: int) -> float:
    return numerator / denominator if denominator else float("nan")
