"""What images can show: the smallest drop that is told from noise, and how many images one takes.

A drop is told from noise where the whole of its interval (``detap/analysis/bootstrap.py``) lies on
one side of 0. With the standard error s of the drop, the standard deviation over its resamples,
that becomes so in a share `power` of all samples of as many images once the true drop is

    (z(1 - (1 - level) / 2) + z(power)) * s,

z being the quantile of the normal distribution; s falls with the root of the number of images.
docs/statistics.md has the theory, and what a simulation made of it.

References
----------
Cohen, Statistical Power Analysis for the Behavioral Sciences, 1988, chapter 2; Efron and
Tibshirani, An Introduction to the Bootstrap, 1993, section 25.4.
"""

from dataclasses import dataclass
from math import ceil, isnan, nan, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from detap import metrics
from detap.decimals import ROUNDING
from detap.tables.detection import Floats

if TYPE_CHECKING:
    from detap.analysis.comparison import Comparison

LEVEL = 0.95
"""Of the intervals, where none is asked for."""

_quantile = NormalDist().inv_cdf


@dataclass(frozen=True, slots=True)
class Criterion:
    """How drops are told from noise.

    Attributes
    ----------
    level : float
        Of the two-sided intervals.
    paired : bool
        Whether the spread is that of a difference of two detectors on the same images. Otherwise
        it is that of one detector's number, and another is taken for as noisy and independent: the
        spread of their difference is at most the root of 2 as large, as what makes an image hard
        for both cancels out.
    drop : float or None
        The wished-for drop.
    power : float
        In which share of samples a drop is to be told from noise.
    """

    level: float = LEVEL
    paired: bool = True
    drop: float | None = None
    power: float = 0.8

    def error(self, spread: Floats) -> float:
        """Return the standard error of a drop from the resamples of it, or of one number.

        Parameters
        ----------
        spread : (B,) float64
            NaN where undefined: left out.

        Returns
        -------
        float
            NaN where the resamples are all the same: nothing tells how noisy the number is.
        """
        error = standard_error(spread)
        return error if self.paired else sqrt(2) * error

    def min_detectable_drop(self, error: float) -> float:
        """Return the smallest drop that is told from noise in a share `power` of samples."""
        return (_quantile(1 - (1 - self.level) / 2) + _quantile(self.power)) * error

    def margin(self, error: float) -> float:
        """Return how far beyond a limit a true number must be for its estimate to be so as often.

        What is held to a limit as it is, without an interval, is beyond it in half of the samples
        where it is truly at it.
        """
        return _quantile(self.power) * error


def standard_error(spread: Floats) -> float:
    """Return the standard deviation of resampled numbers; NaN where they are all the same."""
    defined = spread[~np.isnan(spread)]
    if len(defined) < 2:
        return nan
    error = float(np.std(defined, ddof=1))
    return error if error > ROUNDING else nan


class DetectableDrop(NamedTuple):
    """What images can show of a drop of one number.

    Attributes
    ----------
    name : str
    units : int
        How many images there are; of a ranking, queries.
    standard_error : float
        Of its drop. NaN where the resamples do not tell.
    min_detectable_drop : float
        The least that is told from noise.
    limit : float or None
        How far a gate lets it fall or rise.
    drop_failing_gate : float or None
        The true drop from which on that gate fails in a share `power` of samples.
    images_needed : int or None
        How many units like these the wished-for drop takes; without a wish, the gate's limit.
    ground_truths : int or None
        Of the class, where it is a class's number.
    """

    name: str
    units: int
    standard_error: float
    min_detectable_drop: float
    limit: float | None = None
    drop_failing_gate: float | None = None
    images_needed: int | None = None
    ground_truths: int | None = None

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
        """Return what resamples say of it; see above.

        Parameters
        ----------
        spread : (B,) float64
            Of the drop, or of the number where it is not paired.
        by_interval : bool
            Whether the gate fails where the whole interval is beyond the limit, or where the drop
            itself is.
        """
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
        """Whether a gate's limit is a drop that is not told from noise; 0 names no size."""
        return self.limit is not None and 0 < self.limit < self.min_detectable_drop


class ThresholdMargin(NamedTuple):
    """How far a number must truly be beyond a floor or ceiling for the gate to notice.

    Attributes
    ----------
    name : str
    kind : {"floor", "ceiling"}
    limit : str
        As it was given.
    standard_error : float
        Of the number itself. NaN where the resamples do not tell.
    margin : float
        So far beyond its limit, it fails in a share `power` of samples; so far within, it passes in
        as many. At the limit either happens in half of them.
    """

    name: str
    kind: str
    limit: str
    standard_error: float
    margin: float


@dataclass(frozen=True, slots=True)
class PowerAnalysis:
    """What images can show of several numbers.

    Attributes
    ----------
    criterion : Criterion
    unit : str
        What is resampled: ``"image"`` or ``"query"``.
    metrics : tuple of DetectableDrop
        Those that were asked for.
    classes : tuple of DetectableDrop
        Of each class besides.
    margins : tuple of ThresholdMargin
        Of what is held to a floor or ceiling.
    """

    criterion: Criterion
    unit: str
    metrics: tuple[DetectableDrop, ...]
    classes: tuple[DetectableDrop, ...] = ()
    margins: tuple[ThresholdMargin, ...] = ()

    @property
    def units(self) -> str:
        """What is resampled, in the plural."""
        return {"image": "images", "query": "queries"}[self.unit]


def images_needed(units: int, smallest: float, drop: float | None) -> int | None:
    """Return how many units like these tell a drop from noise; None where it is not known.

    The standard error falls with the root of their number.
    """
    if not drop or isnan(smallest):
        return None
    return ceil(units * (smallest / drop) ** 2 * (1 - ROUNDING))


def power_analysis(comparison: "Comparison", drop: float | None = None) -> PowerAnalysis | None:
    """Return what the images of a comparison can show; None where nothing was resampled.

    Parameters
    ----------
    comparison : Comparison
        Of :func:`detap.analysis.comparison.compare`; its resamples are used.
    drop : float, optional
        The wished-for drop.
    """
    if comparison.resamples is None:
        return None
    before, after = comparison.resamples
    images = len(comparison.first.images)
    criterion = Criterion(comparison.confidence, drop=drop)
    primary = metrics.summary(comparison.first.protocol)[0]
    headline = primary.name
    numbers = [
        DetectableDrop.of(name, before.overall[name] - after.overall[name], images, criterion)
        for name in comparison.names
        if comparison.has_interval(name)
    ]
    truths = comparison.first.ground_truths
    classes = [
        DetectableDrop.of(
            f"class:{name}.{primary.class_name}",
            before.by_class[headline][label] - after.by_class[headline][label],
            images,
            criterion,
            ground_truths=int(truths[label]),
        )
        for label, name in enumerate(comparison.first.classes)
        if truths[label] and comparison.has_interval(headline, label)
    ]
    return PowerAnalysis(criterion, "image", tuple(numbers), tuple(classes))
