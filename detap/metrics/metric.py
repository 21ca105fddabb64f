"""The interface of metrics, and common code of AP and AR.

Modules of metrics import NumPy lazily (start-up time).
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
    """A metric of detectors; NaN if undefined.

    Attributes
    ----------
    name : str
        The name without thresholds, `max_dets` and areas: ``"AP"``.
    parameter : str
        The number that follows the name, for the docs; empty if none does. ``"F"`` of
        ``recall@fppi=F``.
    title : str
        The long name: ``"average precision"``.
    unit : str
        The unit in table headers; empty for a fraction.
    higher_is_better : bool
    bounds : (float, float)
        Minimum and maximum.
    scope : {"class", "overall", "both"}
        The class table, the summary, or both.
    fields : tuple of str
        The protocol fields that it depends on and matching does not: protocols that differ only in
        these are matched once.
    accumulated : {"precision", "recall"} or None
        The array of pycocotools' ``COCOeval.eval`` that it averages, if any.
    primary_metric : {"AP", "AR"} or None
        The `primary_metric` of protocols that have this one (without ``m``); None if none do.
    ratcheted : bool
        True if ``detap baseline`` retains the better of two values.
    uses_matched_iou : bool
        True if it uses :meth:`detap.Result.matched_iou`. Partials keep these IoUs if they list it.
    column_priority : int
        Priority of its columns at one area range or `max_dets` value in narrow tables.
    """

    name: str
    parameter = ""
    title: str
    unit = ""
    higher_is_better = True
    bounds: tuple[float, float] = (0, 1)
    scope: Literal["class", "overall", "both"] = "both"
    fields: tuple[str, ...] = ()
    accumulated: Literal["precision", "recall"] | None = None
    primary_metric: Literal["AP", "AR"] | None = None
    ratcheted = True
    uses_matched_iou = False
    column_priority = 1

    def listed(self, protocol: "Protocol") -> Iterable["MetricSpec"]:
        """Return the metrics that reports of a protocol list, in order."""
        return ()

    def others(self, protocol: "Protocol") -> Iterable["MetricSpec"]:
        """Return further metrics that a protocol has by name; names may repeat."""
        return ()

    def find(self, protocol: "Protocol", name: str) -> "MetricSpec | None":
        """Return the metric of an unlisted name, such as ``"MR-2@75"``; None if not ours."""
        return None

    def by_class(self, result: "Result", spec: "MetricSpec") -> "Floats":
        """Compute the value of each class, (K,) float64."""
        raise NotImplementedError

    def overall(self, result: "Result", spec: "MetricSpec") -> float:
        """Compute the mean over classes with a defined value."""
        from detap.core.curves import mean_of_defined

        return mean_of_defined(result.class_values(spec))

    @property
    def has_intervals(self) -> bool:
        """True if it can be resampled."""
        return type(self).resample is not Metric.resample

    def resample(
        self,
        result: "Result",
        weights: "Weights",
        specs: "Sequence[MetricSpec]",
        threads: int | None,
    ) -> "Sequence[Floats]":
        """Compute values of each class in each resample of the images.

        The arrays are (K, B) float64. Metrics with the same implementation are resampled in one
        pass.
        """
        raise UsageError(f"{self.name} has no interval: it cannot be resampled; leave it out")

    def resample_overall(
        self, result: "Result", weights: "Weights", spec: "MetricSpec", by_class: "Floats"
    ) -> "Floats":
        """Compute the mean over classes with a defined value in each resample, (B,) float64.

        `by_class` is the (K, B) array that :meth:`resample` returns.
        """
        import numpy as np

        defined = ~np.isnan(by_class)
        counts = defined.sum(axis=0)
        sums: Floats = np.where(defined, by_class, 0.0).sum(axis=0)
        means = np.full(len(sums), np.nan)
        np.divide(sums, counts, out=means, where=counts > 0)
        return means


class Accumulated(Metric):
    """A mean over the arrays of pycocotools' ``COCOeval.accumulate``.

    Attributes
    ----------
    accumulated : {"precision", "recall"}
    """

    accumulated: Literal["precision", "recall"]

    def resample(
        self,
        result: "Result",
        weights: "Weights",
        specs: "Sequence[MetricSpec]",
        threads: int | None,
    ) -> "Sequence[Floats]":
        """Compute values of each class in each resample, AP and AR in one pass."""
        import numpy as np

        from detap.core.resampling import ResampledMetric, detected_classes, resample

        protocol, match_table = result.protocol, result.match_table
        thresholds = tuple(range(len(protocol.iou_thresholds)))
        requests = [
            ResampledMetric(
                spec.metric.accumulated == "precision",
                thresholds if spec.threshold is None else (spec.threshold,),
                spec.area,
                spec.max_dets_index,
            )
            for spec in specs
        ]
        values = resample(match_table, weights, requests, threads=threads)
        if protocol.absent_class != "undefined":
            absent = averages_of_absent(protocol, detected_classes(match_table, weights))
            for request, table in zip(requests, values, strict=True):
                if request.precision:
                    np.copyto(table, absent, where=np.isnan(table))
        return list(values)


def mean_over_thresholds(values: "Floats") -> "Floats":
    """Compute the mean of (T, K) values over the thresholds.

    The values of a class are contiguous, so that NumPy adds them in the order of a 1-D mean.
    """
    import numpy as np

    means: Floats = np.ascontiguousarray(values.T).mean(axis=1)
    return means


def averages_of_absent(protocol: "Protocol", detected: "Flags") -> "Floats":
    """Return the average precision of classes without ground truth; NaN is undefined."""
    import numpy as np

    zero = {
        "undefined": np.zeros_like(detected),
        "zero": np.ones_like(detected),
        "zero-if-detected": detected,
    }
    return np.where(zero[protocol.absent_class], 0.0, np.nan)
