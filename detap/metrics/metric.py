"""The interface of a metric, and what average precision and average recall share.

Nothing here or in a metric's file imports NumPy at start-up.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from detap.errors import UsageError

if TYPE_CHECKING:
    from detap.core.resampling import Weights
    from detap.evaluation.results import Result
    from detap.protocols import MetricSpec, Protocol
    from detap.tables.detection import Flags, Floats


class Metric:
    """A metric of detectors; undefined is NaN.

    Attributes
    ----------
    name : str
        What its numbers are called, but for thresholds, limits and areas: ``"AP"``.
    title : str
        The name written out: ``"average precision"``.
    unit : str
        Of its numbers, shown in headings of tables; empty for a share.
    higher_is_better : bool
    bounds : (float, float)
        The least and the largest value.
    scope : {"class", "overall", "both"}
        Whether it is a column of the class table, a line of the summary, or both.
    fields : tuple of str
        The fields of the protocol that it depends on and matching does not: protocols that differ
        in these alone are matched once.
    accumulated : {"precision", "recall"} or None
        The array of pycocotools' ``COCOeval.eval`` that it is a mean of; None if of neither.
    primary_metric : {"AP", "AR"} or None
        The `headline` of protocols whose primary metric it is; None if of none.
    ratcheted : bool
        Whether ``detap baseline`` keeps the better of two values.
    column_priority : int
        Of its columns at one area range or detection limit: how soon a narrow table drops them.
    """

    name: str
    title: str
    unit = ""
    higher_is_better = True
    bounds: tuple[float, float] = (0, 1)
    scope: Literal["class", "overall", "both"] = "both"
    fields: tuple[str, ...] = ()
    accumulated: Literal["precision", "recall"] | None = None
    primary_metric: Literal["AP", "AR"] | None = None
    ratcheted = True
    column_priority = 1

    def listed(self, protocol: "Protocol") -> Iterable["MetricSpec"]:
        """Return its numbers that the reports of a protocol list, in order."""
        return ()

    def others(self, protocol: "Protocol") -> Iterable["MetricSpec"]:
        """Return its numbers that a protocol has when asked by name; a name may occur again."""
        return ()

    def by_class(self, result: "Result", spec: "MetricSpec") -> "Floats":
        """Return the number of each class, (K,) float64."""
        raise NotImplementedError

    def overall(self, result: "Result", spec: "MetricSpec") -> float:
        """Return the number over all classes: the mean of those where it is defined."""
        from detap.core.curves import mean_of_defined  # NumPy comes with a result

        return mean_of_defined(result.class_values(spec))

    @property
    def has_intervals(self) -> bool:
        """Whether it can be resampled."""
        return type(self).resample is not Metric.resample

    def resample(
        self,
        result: "Result",
        weights: "Weights",
        entries: "Sequence[MetricSpec]",
        threads: int | None,
    ) -> "Sequence[Floats]":
        """Return numbers of each class in each resample of the images, (K, B) float64 each.

        Metrics that inherit one function are resampled in one pass.

        Raises
        ------
        UsageError
            Where the metric cannot be resampled.
        """
        raise UsageError(f"{self.name} has no interval: it cannot be resampled; leave it out")


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
        entries: "Sequence[MetricSpec]",
        threads: int | None,
    ) -> "Sequence[Floats]":
        """Return numbers of each class in each resample, those of AP and AR in one pass."""
        import numpy as np

        from detap.core.resampling import Wanted, detected_classes, resample

        protocol, match_table = result.protocol, result.match_table
        every = tuple(range(len(protocol.iou_thresholds)))
        requests = [
            Wanted(
                spec.metric.accumulated == "precision",
                every if spec.threshold is None else (spec.threshold,),
                spec.area,
                spec.max_dets_index,
            )
            for spec in entries
        ]
        values = resample(match_table, weights, requests, threads=threads)
        if protocol.absent_class != "undefined":
            absent = averages_of_absent(protocol, detected_classes(match_table, weights))
            for one, table in zip(requests, values, strict=True):
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
