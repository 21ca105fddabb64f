"""Power analysis: minimum detectable drop and number of images needed.

A drop is detected if its interval (``detap/analysis/bootstrap.py``) excludes 0. Let s be the
standard error of the drop: the standard deviation over its resamples. The probability of detection
is `power` if the true drop is

    (z(1 - (1 - level) / 2) + z(power)) * s,

where z is the normal quantile. s is proportional to 1 / sqrt(number of images).
docs/statistics.md has the theory, and what a simulation made of it.

References
----------
Cohen, Statistical Power Analysis for the Behavioral Sciences, 1988, chapter 2; Efron and
Tibshirani, An Introduction to the Bootstrap, 1993, section 25.4.
"""

from dataclasses import dataclass
from math import ceil, isnan, sqrt
from statistics import NormalDist
from typing import NamedTuple

from detap import metrics
from detap.analysis.bootstrap import standard_error
from detap.analysis.comparison import Comparison
from detap.decimals import ROUNDING
from detap.display import Brief
from detap.tables.detection import Floats

LEVEL = 0.95  # default level of the intervals
_quantile = NormalDist().inv_cdf


@dataclass(frozen=True, slots=True)
class Criterion:
    """Criterion of detecting a drop."""

    level: float = LEVEL  # level of the two-sided intervals
    paired: bool = True  # resamples of a difference on the same images, not of one detector
    drop: float | None = None  # drop to detect
    power: float = 0.8  # probability of detection

    def error(self, spread: Floats) -> float:
        """Return the standard error of a drop from resamples of it or of one metric."""
        error = standard_error(spread)
        return error if self.paired else sqrt(2) * error

    def min_detectable_drop(self, error: float) -> float:
        """Return the drop that is detected with probability `power`."""
        return (_quantile(1 - (1 - self.level) / 2) + _quantile(self.power)) * error

    def margin(self, error: float) -> float:
        """Return the distance from a limit that exceeds it with probability `power`."""
        return _quantile(self.power) * error


class DetectableDrop(NamedTuple):
    """Minimum detectable drop of one metric."""

    name: str
    units: int
    standard_error: float  # standard error of the drop; NaN if unknown
    min_detectable_drop: float
    limit: float | None = None  # change that a gate allows
    drop_failing_gate: float | None = None  # true drop that fails the gate with probability `power`
    images_needed: int | None = None
    ground_truths: int | None = None  # number of ground truths of the class, for a class's metric

    @classmethod
    def of(
        cls,
        name: str,
        spread: Floats,
        units: int,
        criterion: Criterion,
        *,
        limit: float | None = None,
        by_interval: bool = True,
        ground_truths: int | None = None,
    ) -> "DetectableDrop":
        """Compute the minimum detectable drop from resamples."""
        error = criterion.error(spread)
        smallest = criterion.min_detectable_drop(error)
        margin = smallest if by_interval else criterion.margin(error)
        return cls(
            name,
            units,
            error,
            smallest,
            limit,
            None if limit is None else limit + margin,
            images_needed(units, smallest, limit if criterion.drop is None else criterion.drop),
            ground_truths,
        )

    @property
    def is_underpowered(self) -> bool:
        """True if the gate's limit is above 0 and below the minimum detectable drop."""
        return self.limit is not None and 0 < self.limit < self.min_detectable_drop


class ThresholdMargin(NamedTuple):
    """Distance of a metric from a threshold that its gate detects."""

    name: str
    kind: str
    limit: str  # as given
    standard_error: float  # standard error of the metric; NaN if unknown
    margin: float


@dataclass(frozen=True, slots=True, repr=False)
class PowerAnalysis(Brief):
    """Power analysis of several metrics."""

    criterion: Criterion
    unit: str  # resampled unit: ``"image"`` or ``"query"``
    metrics: tuple[DetectableDrop, ...]  # requested metrics
    classes: tuple[DetectableDrop, ...] = ()  # primary metric of each class
    margins: tuple[ThresholdMargin, ...] = ()  # metrics with a lower or upper threshold

    @property
    def units(self) -> str:
        """The resampled unit in the plural."""
        return {"image": "images", "query": "queries"}[self.unit]


def images_needed(units: int, smallest: float, drop: float | None) -> int | None:
    """Return the number of units that detect a drop; None if unknown."""
    if not drop or isnan(smallest):
        return None
    return ceil(units * (smallest / drop) ** 2 * (1 - ROUNDING))


def power_analysis(comparison: Comparison, drop: float | None = None) -> PowerAnalysis | None:
    """Analyze the power of a comparison; return None without resamples."""
    if comparison.resamples is None:
        return None
    images = len(comparison.first.images)
    criterion = Criterion(comparison.confidence, drop=drop)
    primary = metrics.summary(comparison.first.protocol)[0]
    numbers = [
        DetectableDrop.of(name, draws.drawn, images, criterion)
        for name in comparison.first.summary
        if len((draws := comparison.draws(name)).drawn)
    ]
    counts = comparison.first.ground_truths.tolist()
    classes = [
        DetectableDrop.of(
            f"class:{name}.{primary.class_name}",
            draws.drawn,
            images,
            criterion,
            ground_truths=counts[label],
        )
        for label, name in enumerate(comparison.first.classes)
        if counts[label] and len((draws := comparison.draws(primary.name, label)).drawn)
    ]
    return PowerAnalysis(criterion, "image", tuple(numbers), tuple(classes))
