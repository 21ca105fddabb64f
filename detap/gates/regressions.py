"""What made a gate fail: the classes that fell, and the images with most mistakes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any

import numpy as np

from detap.analysis.comparison import KINDS, count_errors
from detap.core.curves import mean_of_defined
from detap.decimals import nearly_equal
from detap.evaluation.results import Result, class_rows
from detap.gates.checks import Gate
from detap.gates.metric_names import MetricName, Metrics, row_key
from detap.tables.detection import Floats
from detap.tables.detection import Name as ImageName

_MOST = 10

Parts = Callable[[str | None], Result | None]
"""From a slice to its result, None being the whole."""


@dataclass(frozen=True, slots=True)
class ClassRegression:
    """A class that fell, or one of low AP where nothing earlier is known.

    Attributes
    ----------
    name : str
    average_precision : float
    baseline : float or None
        What it was, where that is known.
    ground_truths : int
    """

    name: str
    average_precision: float
    baseline: float | None
    ground_truths: int

    @property
    def change(self) -> float:
        """By how much it rose."""
        return self.average_precision - (self.baseline or 0.0)


@dataclass(frozen=True, slots=True)
class ImageErrors:
    """An image with mistakes, or with more than before.

    Attributes
    ----------
    name : int or str
    by_type : mapping of str to int
        How many, or how many more, of each kind of ``detap.analysis.comparison.KINDS``.
    """

    name: ImageName
    by_type: Mapping[str, int]

    @property
    def total(self) -> int:
        """How many, or how many more, of all kinds."""
        return sum(self.by_type.values())


@dataclass(frozen=True, slots=True)
class LocalizationRegression:
    """That boxes are found as before, but with less overlap.

    Attributes
    ----------
    threshold : int
        Where AP fell most: an index into the protocol's thresholds.
    iou, drop : (float, float)
        The lowest threshold and that one, and by how much AP fell there.
    """

    threshold: int
    iou: tuple[float, float]
    drop: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Regressions:
    """The classes and images that gates which did not pass are about.

    Attributes
    ----------
    slice : str or None
        The slice that all of these gates are about.
    classes : tuple of ClassRegression
        Those that fell most first.
    localization : LocalizationRegression or None
    images : tuple of ImageErrors
        Those with most mistakes first.
    baseline, images_compared : bool
        Whether earlier numbers are known, and whether images are compared with an earlier
        detector's.
    """

    slice: str | None
    classes: tuple[ClassRegression, ...]
    localization: LocalizationRegression | None
    images: tuple[ImageErrors, ...]
    baseline: bool
    images_compared: bool


def regressions(
    gates: Sequence[Gate], current: Parts, baseline_metrics: Metrics | None, then: Parts | None
) -> Regressions | None:
    """Return the classes and images that the gates which did not pass are about.

    Parameters
    ----------
    gates : sequence of Gate
    current : callable
        The results that were judged.
    baseline_metrics : Numbers, optional
        What the numbers were.
    then : callable, optional
        The detector before: with it, images are those that got worse. Without it nothing tells
        which these are, and they are those with most mistakes now.
    """
    doubtful = [gate.metric_name for gate in gates if gate.failed or gate.warned]
    names = [name for name in doubtful if name is not None]
    tags = {name.slice for name in names}
    tag = tags.pop() if len(tags) == 1 else None
    result = current(tag)
    if not names or result is None:
        return None
    before = None if then is None else then(tag)
    was = None if baseline_metrics is None else baseline_metrics.of_slice(tag)
    labels = _labels(names, len(result.classes))
    classes = _classes(labels, result, was)
    looser = None if was is None else _looser(labels, result, was)
    threshold = 0 if looser is None else looser.threshold
    images = _images(labels, threshold, result, before)
    if not classes and not images:
        return None
    return Regressions(tag, classes, looser, images, was is not None, before is not None)


def _labels(names: Sequence[MetricName], count: int) -> list[int]:
    """Return the classes that gates are about: all, where one is about all."""
    labels = sorted({name.row for name in names if name.row is not None and name.row < count})
    whole = any(name.row is None for name in names)
    return list(range(count)) if whole or not labels else labels


def _aligned(baseline: Metrics, metric: str, now: Result) -> Floats:
    """Return a number of each class as it was, (K,) float64; NaN where there was none."""
    if not baseline.row_has(metric):
        return np.full(len(now.classes), np.nan)
    values = zip(baseline.rows, baseline.by_row(metric), strict=True)
    was = {row_key(row): value for row, value in values}
    return np.array([was.get(row_key(row), nan) for row in class_rows(now)])


def _classes(
    labels: Sequence[int], now: Result, baseline: Metrics | None
) -> tuple[ClassRegression, ...]:
    """Return the classes that fell most; without a baseline those of lowest AP."""
    was = None if baseline is None else _aligned(baseline, "AP", now).tolist()
    rows: list[dict[str, Any]] = [*class_rows(now)]
    found = []
    for label in labels:
        row = rows[label]
        value, then = float(row["AP"]), None if was is None else was[label]
        if isnan(value) or (then is not None and (not then > value or nearly_equal(then, value))):
            continue
        found.append(ClassRegression(row["name"], value, then, row["ground_truths"]))
    return tuple(sorted(found, key=lambda fallen: fallen.change)[:_MOST])


def _looser(labels: Sequence[int], now: Result, baseline: Metrics) -> LocalizationRegression | None:
    """Tell whether AP fell at a higher threshold, and less than half as much at the lowest.

    Of an earlier report only the thresholds are known that it has numbers of.
    """
    drops: dict[int, float] = {}
    for threshold, iou in enumerate(now.iou_thresholds):
        then = _aligned(baseline, f"AP{format(100 * iou, '.6g')}", now)
        drop = mean_of_defined((then - now.average_precision[threshold, :, 0])[list(labels)])
        if not isnan(drop):
            drops[threshold] = drop
    worst = max(drops, key=lambda threshold: drops[threshold], default=0)
    if worst == 0 or 0 not in drops or not drops[0] < drops[worst] / 2:
        return None
    iou = (float(now.iou_thresholds[0]), float(now.iou_thresholds[worst]))
    return LocalizationRegression(worst, iou, (drops[0], drops[worst]))


def _images(
    labels: Sequence[int], threshold: int, now: Result, then: Result | None
) -> tuple[ImageErrors, ...]:
    """Return the images with most mistakes at a threshold, or most more than before."""
    if now.protocol.matching != "by-score" or not all(r.has_boxes for r in (now, then) if r):
        return ()
    counts = count_errors(now, threshold=threshold).select_classes(labels)
    if then is not None:
        names = {now.classes[label] for label in labels}
        alike = [label for label, name in enumerate(then.classes) if name in names]
        counts = counts - count_errors(then, threshold=threshold).select_classes(alike)
    total = counts.sum(axis=1)
    order = np.argsort(-total, kind="stable")[:_MOST]
    names_of_images = now.images
    return tuple(
        ImageErrors(names_of_images[image], dict(zip(KINDS, counts[image].tolist(), strict=True)))
        for image in order.tolist()
        if total[image] > 0
    )
