"""Classes and images that explain a failed gate."""

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

_MAX_ROWS = 10

SliceResults = Callable[[str | None], Result | None]
"""Return the result of a slice, or the overall result for None."""


@dataclass(frozen=True, slots=True)
class ClassRegression:
    """A class whose AP (F1 without scores) dropped, or is low without a baseline."""

    name: str
    value: float
    baseline: float | None  # the value in the baseline
    ground_truths: int
    metric: str = "AP"

    @property
    def change(self) -> float:
        """The change of the value; negative for a drop."""
        return self.value - (self.baseline or 0.0)


@dataclass(frozen=True, slots=True)
class ImageErrors:
    """The errors of an image, or its additional errors since the baseline."""

    name: ImageName
    by_type: Mapping[str, int]  # counts by error type of `detap.analysis.comparison.KINDS`

    @property
    def total(self) -> int:
        """The sum over all types."""
        return sum(self.by_type.values())


@dataclass(frozen=True, slots=True)
class LocalizationRegression:
    """A drop of AP mostly at high IoU thresholds."""

    threshold: int  # index of the IoU threshold with the largest drop
    # the lowest threshold and that one, and the drops of AP there
    iou: tuple[float, float]
    drop: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Regressions:
    """The classes and images behind the gates that did not pass."""

    slice: str | None  # the slice, if all of these gates are about one
    classes: tuple[ClassRegression, ...]  # largest drops first
    localization: LocalizationRegression | None
    images: tuple[ImageErrors, ...]  # most errors first
    baseline: bool  # True if the metrics of a baseline are known
    images_compared: bool  # True if images are compared with an earlier detector


def regressions(
    gates: Sequence[Gate],
    current: SliceResults,
    baseline_metrics: Metrics | None,
    baseline: SliceResults | None,
) -> Regressions | None:
    """Return the classes and images behind the gates that did not pass."""
    names = [
        gate.metric_name
        for gate in gates
        if (gate.failed or gate.warned) and gate.metric_name is not None
    ]
    tags = {name.slice for name in names}
    tag = tags.pop() if len(tags) == 1 else None
    result = current(tag)
    if not names or result is None:
        return None
    earlier = None if baseline is None else baseline(tag)
    metrics = None if baseline_metrics is None else baseline_metrics.of_slice(tag)
    labels = _labels(names, len(result.classes))
    classes = _classes(labels, result, metrics)
    localization = None if metrics is None else _localization(labels, result, metrics)
    threshold = 0 if localization is None else localization.threshold
    images = _images(labels, threshold, result, earlier)
    if not classes and not images:
        return None
    return Regressions(tag, classes, localization, images, metrics is not None, earlier is not None)


def _labels(names: Sequence[MetricName], count: int) -> list[int]:
    """Return the classes of gates: all classes, if one is on a mean."""
    labels = sorted({name.row for name in names if name.row is not None and name.row < count})
    overall = any(name.row is None for name in names)
    return list(range(count)) if overall or not labels else labels


def _aligned(baseline: Metrics, metric: str, result: Result) -> Floats:
    """Return the baseline's metric of each class, (K,) float64; NaN if it has none."""
    if not baseline.row_has(metric):
        return np.full(len(result.classes), np.nan)
    values = baseline.by_key(metric)
    return np.array([values.get(row_key(row), nan) for row in class_rows(result)])


def _classes(
    labels: Sequence[int], result: Result, baseline: Metrics | None
) -> tuple[ClassRegression, ...]:
    """Return the classes with the largest drops; without a baseline the lowest."""
    metric = "AP" if result.protocol.has_scores else "F1"
    earlier = None if baseline is None else _aligned(baseline, metric, result).tolist()
    rows: list[dict[str, Any]] = [*class_rows(result)]
    classes = []
    for label in labels:
        row = rows[label]
        value, before = float(row[metric]), None if earlier is None else earlier[label]
        if isnan(value):
            continue
        if before is not None and (not before > value or nearly_equal(before, value)):
            continue
        classes.append(ClassRegression(row["name"], value, before, row["ground_truths"], metric))
    return tuple(sorted(classes, key=lambda regression: regression.change)[:_MAX_ROWS])


def _localization(
    labels: Sequence[int], result: Result, baseline: Metrics
) -> LocalizationRegression | None:
    """Return the drop at a higher threshold, if that at the lowest is less than half of it."""
    drops: dict[int, float] = {}
    for threshold, iou in enumerate(result.iou_thresholds):
        before = _aligned(baseline, f"AP{format(100 * iou, '.6g')}", result)
        drop = mean_of_defined((before - result.average_precision[threshold, :, 0])[list(labels)])
        if not isnan(drop):
            drops[threshold] = drop
    worst = max(drops, key=lambda threshold: drops[threshold], default=0)
    if worst == 0 or 0 not in drops or not drops[0] < drops[worst] / 2:
        return None
    iou = (float(result.iou_thresholds[0]), float(result.iou_thresholds[worst]))
    return LocalizationRegression(worst, iou, (drops[0], drops[worst]))


def _images(
    labels: Sequence[int], threshold: int, result: Result, earlier: Result | None
) -> tuple[ImageErrors, ...]:
    """Return the images with the most errors, or additional errors, at a threshold."""
    results = [result] if earlier is None else [result, earlier]
    if result.protocol.matching != "by-score" or not all(one.has_boxes for one in results):
        return ()
    counts = count_errors(result, threshold=threshold).select_classes(labels)
    if earlier is not None:
        names = {result.classes[label] for label in labels}
        same = [label for label, name in enumerate(earlier.classes) if name in names]
        counts = counts - count_errors(earlier, threshold=threshold).select_classes(same)
    total = counts.sum(axis=1)
    order = np.argsort(-total, kind="stable")[:_MAX_ROWS]
    images = result.images
    return tuple(
        ImageErrors(images[index], dict(zip(KINDS, counts[index].tolist(), strict=True)))
        for index in order.tolist()
        if total[index] > 0
    )
