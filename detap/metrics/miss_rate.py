"""Miss rate at false positives per image, and the log-average miss rate of pedestrian detection.

The curve has a point after each detection.

References
----------
Dollár, Wojek, Schiele and Perona, Pedestrian Detection: An Evaluation of the State of the Art,
PAMI 34 (2012), section 3.1.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from math import isqrt
from typing import Any

import numpy as np

from detap.metrics.metric import Details, MetricSpec
from detap.metrics.ranked import Ranked, RankedCounts, exact_fraction, per_images, whole_count
from detap.protocols import Protocol
from detap.tables.detection import Floats

_ROUNDED = {
    "MR-2": (".01", ".0178", ".0316", ".0562", ".1", ".1778", ".3162", ".5623", "1"),
    "MR-4": (".0001", ".0003", ".001", ".0032", ".01", ".0316", ".1", ".3162", "1"),
}
"""The reference FPPI, rounded to four decimals as in the scripts."""

_QUARTERS = {"MR-2": range(8, -1, -1), "MR-4": range(16, -1, -2)}
"""The exact reference FPPI: q stands for 10 to the power -q/4."""

Bound = Callable[..., int]
"""The largest number of false positives within an FPPI for a number of images.

With ``least=True``, the least number that reaches it.
"""


class MissRate(Ranked):
    """The miss rate at some FPPI."""

    higher_is_better = False
    per_image = True
    fields: tuple[str, ...] = ("mr_rule", "duplicates")

    def references(self, spec: MetricSpec, protocol: Protocol) -> tuple[list[float], list[Bound]]:
        """Return the reference FPPI and their bounds."""
        raise NotImplementedError

    def miss_rates(self, counts: RankedCounts, spec: MetricSpec, protocol: Protocol) -> Floats:
        """Compute the miss rates at the references, (B, F) float64."""
        bounds = self.references(spec, protocol)[1]
        last = counts.true_positives.shape[1] - 1
        if protocol.mr_rule == "at-least":
            limits = per_images(counts.images, [partial(bound, least=True) for bound in bounds])
            # The point after the last one with fewer; a reference of 0 is reached at once.
            points = np.where(limits > 0, counts.last_within(np.maximum(limits - 1, 0)) + 1, 0)
            points = np.minimum(points, last)
        else:
            limits = per_images(counts.images, bounds)
            points = counts.last_within(limits)
        if protocol.mr_rule == "at-most-or-last":
            # No point is within 0 false positives if the first detection is one.
            drawn = counts.true_positives + counts.false_positives > 0
            first = drawn.argmax(axis=1)[:, None]
            begins_true = np.take_along_axis(counts.true_positives, first, axis=1) > 0
            points = np.where((limits > 0) | begins_true, points, last)
        true_positives = np.take_along_axis(counts.true_positives, points, axis=1)
        miss: Floats = 1 - true_positives / np.maximum(counts.positives, 1)[:, None]
        return miss

    def details(self, counts: RankedCounts, spec: MetricSpec, protocol: Protocol) -> dict[str, Any]:
        """Return the miss rate at each reference."""
        fppi = self.references(spec, protocol)[0]
        return {"fppi": fppi, "miss_rate": self.miss_rates(counts, spec, protocol)[0].tolist()}


class LogAverageMissRate(MissRate):
    """The geometric mean of the miss rate at nine FPPI."""

    title = "log-average miss rate"
    fields = ("mr_points", "mr_rule", "mr_floor", "duplicates")

    def __init__(self, name: str) -> None:
        self.name = name

    def references(self, spec: MetricSpec, protocol: Protocol) -> tuple[list[float], list[Bound]]:
        """Return the nine FPPI and their bounds."""
        if protocol.mr_points == "exact":
            quarters = _QUARTERS[self.name]
            return [10 ** (-q / 4) for q in quarters], [partial(_of_power, q) for q in quarters]
        points = [Fraction(text) for text in _ROUNDED[self.name]]
        return [*map(float, points)], [partial(whole_count, point) for point in points]

    def compute(self, counts: RankedCounts, spec: MetricSpec, protocol: Protocol) -> Floats:
        """Compute ``exp(mean(log(miss rate)))`` over the references."""
        miss = self.miss_rates(counts, spec, protocol)
        with np.errstate(divide="ignore"):  # a miss rate of 0 makes the mean 0
            log = np.log(np.maximum(miss, protocol.mr_floor))
        means: Floats = np.exp(log.mean(axis=1))
        return means

    def remarks(self, spec: MetricSpec, details: Details, protocol: Protocol) -> list[str]:
        """State where a miss rate of 0 makes the mean 0."""
        if protocol.mr_floor:
            return []
        zero = [one for one in details if 0 in one["miss_rate"]]
        if not zero:
            return []
        if len(details) > 1:
            return [f"{len(zero)} of {len(details)} classes miss nothing at some FPPI and have 0"]
        first = zero[0]["fppi"][zero[0]["miss_rate"].index(0)]
        return [f"0 because the miss rate is 0 from {first:.4g} FPPI on"]


class MissRateAtFppi(MissRate):
    """The miss rate at one FPPI."""

    name = "miss@"
    parameter = "F"
    title = "miss rate at F false positives per image"

    def references(self, spec: MetricSpec, protocol: Protocol) -> tuple[list[float], list[Bound]]:
        """Return the FPPI of the name and its bound."""
        assert spec.argument is not None
        return [spec.argument], [partial(whole_count, exact_fraction(spec.argument))]

    def compute(self, counts: RankedCounts, spec: MetricSpec, protocol: Protocol) -> Floats:
        """Compute the miss rate."""
        rates: Floats = self.miss_rates(counts, spec, protocol)[:, 0]
        return rates


def _of_power(q: int, images: int, *, least: bool = False) -> int:
    """Return the bound of ``10 ** (-q / 4)``, exactly: from its fourth power."""
    most = isqrt(isqrt(images**4 // 10**q))
    return most + (least and most**4 * 10**q < images**4)
