"""What average precision and average recall share: arrays over thresholds, areas and limits."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from detap.metrics.metric import Metric

if TYPE_CHECKING:
    from detap.core.resampling import Weights
    from detap.evaluation.results import Result
    from detap.protocols import Measure, Protocol
    from detap.tables.detection import Flags, Floats


class Accumulated(Metric):
    """A mean over the arrays that pycocotools' ``COCOeval.accumulate`` makes.

    Attributes
    ----------
    accumulated : {"precision", "recall"}
    """

    accumulated: Literal["precision", "recall"]

    def resample(
        self,
        result: "Result",
        weights: "Weights",
        entries: "Sequence[Measure]",
        threads: int | None,
    ) -> "Sequence[Floats]":
        """Return numbers of each class in each resample, those of AP and AR in one pass."""
        import numpy as np

        from detap.core.resampling import Wanted, detected_classes, resample

        rules, evidence = result.protocol, result.evidence
        every = tuple(range(len(rules.iou_thresholds)))
        wanted = [
            Wanted(
                entry.metric.accumulated == "precision",
                every if entry.threshold is None else (entry.threshold,),
                entry.area,
                entry.limit,
            )
            for entry in entries
        ]
        values = resample(evidence, weights, wanted, threads=threads)
        if rules.absent_class != "undefined":
            absent = averages_of_absent(rules, detected_classes(evidence, weights))
            for one, table in zip(wanted, values, strict=True):
                if one.precision:
                    np.copyto(table, absent, where=np.isnan(table))
        return list(values)


def mean_over_thresholds(values: "Floats") -> "Floats":
    """Return the mean of (T, K) values over the thresholds.

    Each class's values stand side by side, so that NumPy adds them in the order of a flat mean.
    """
    import numpy as np

    means: Floats = np.ascontiguousarray(values.T).mean(axis=1)
    return means


def averages_of_absent(protocol: "Protocol", detected: "Flags") -> "Floats":
    """Return the average precision of classes without ground truth; NaN is undefined.

    Parameters
    ----------
    protocol : Protocol
    detected : (...) bool
        Whether there are detections of the class.
    """
    import numpy as np

    zero = {
        "undefined": np.zeros_like(detected),
        "zero": np.ones_like(detected),
        "zero-if-detected": detected,
    }
    return np.where(zero[protocol.absent_class], 0.0, np.nan)
