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
from detap.gates.metric_names import Metrics, row_key
from detap.tables.detection import Floats

_MAX_ROWS = 10

SliceResults = Callable[[str | None], Result | None]
"""Return the result of a slice, or the overall result for None."""


@dataclass(frozen=True, slots=True)
class Regressions:
    """The classes and images behind the gates that did not pass, as in the JSON report."""

    slice: str | None  # the slice, if all of these gates are about one
    # With AP (F1 without scores), now and in the baseline: the largest drops first.
    classes: tuple[Mapping[str, Any], ...]
    # If AP dropped mostly at high IoU: IoU and drop at the lowest and the worst threshold.
    localization: Mapping[str, Mapping[str, float]] | None
    images: tuple[Mapping[str, Any], ...]  # with errors by type, the most first
    baseline: bool  # True if the metrics of a baseline are known
    images_compared: bool  # True if errors are those added since an earlier detector


def regressions(
    gates: Sequence[Gate],
    current: SliceResults,
    baseline_metrics: Metrics | None,
    baseline: SliceResults | None,
) -> Regressions | None:
    """Return the classes and images behind the gates that did not pass."""
    names = [gate.metric for gate in gates if gate.failed or gate.warned]
    tags = {name.slice for name in names}
    tag = tags.pop() if len(tags) == 1 else None
    result = current(tag)
    if not names or result is None:
        return None
    earlier = None if baseline is None else baseline(tag)
    metrics = None if baseline_metrics is None else baseline_metrics.of_slice(tag)
    count = len(result.classes)
    labels = sorted({name.row for name in names if name.row is not None and name.row < count})
    if not labels or any(name.row is None for name in names):  # one is on a mean
        labels = [*range(count)]
    # The classes with the largest drops; without a baseline the lowest.
    metric = "AP" if result.protocol.has_scores else "F1"
    before_by_class = None if metrics is None else _aligned(metrics, metric, result).tolist()
    rows: list[dict[str, Any]] = [*class_rows(result)]
    classes: list[dict[str, Any]] = []
    for label in labels:
        row, before = rows[label], None if before_by_class is None else before_by_class[label]
        value = float(row[metric])
        if isnan(value):
            continue
        if before is not None and (not before > value or nearly_equal(before, value)):
            continue
        counts = {"baseline": before, "ground_truths": row["ground_truths"]}
        classes.append({"name": row["name"], metric: value, **counts})
    classes.sort(key=lambda row: row[metric] - (row["baseline"] or 0.0))
    threshold, localization = (
        (0, None) if metrics is None else _localization(labels, result, metrics)
    )
    images = _images(labels, threshold, result, earlier)
    if not classes and not images:
        return None
    largest, baselines = tuple(classes[:_MAX_ROWS]), (metrics is not None, earlier is not None)
    return Regressions(tag, largest, localization, images, *baselines)


def _aligned(baseline: Metrics, metric: str, result: Result) -> Floats:
    """Return the baseline's metric of each class, (K,) float64; NaN if it has none."""
    if not baseline.row_has(metric):
        return np.full(len(result.classes), np.nan)
    values = baseline.by_key(metric)
    return np.array([values.get(row_key(row), nan) for row in class_rows(result)])


def _localization(
    labels: Sequence[int], result: Result, baseline: Metrics
) -> tuple[int, dict[str, dict[str, float]] | None]:
    """Return the worst threshold, and the drops if that at the lowest is less than half of it."""
    drops: dict[int, float] = {}
    for threshold, iou in enumerate(result.iou_thresholds):
        before = _aligned(baseline, f"AP{format(100 * iou, '.6g')}", result)
        drop = mean_of_defined((before - result.average_precision[threshold, :, 0])[list(labels)])
        if not isnan(drop):
            drops[threshold] = drop
    worst = max(drops, key=lambda threshold: drops[threshold], default=0)
    if worst == 0 or 0 not in drops or not drops[0] < drops[worst] / 2:
        return 0, None
    ends = {"lowest": 0, "worst": worst}
    return worst, {
        end: {"iou": float(result.iou_thresholds[k]), "drop": drops[k]} for end, k in ends.items()
    }


def _images(
    labels: Sequence[int], threshold: int, result: Result, earlier: Result | None
) -> tuple[dict[str, Any], ...]:
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
    by_type = [dict(zip(KINDS, row, strict=True)) for row in counts[order].tolist()]
    return tuple(
        {"name": result.images[index], "errors": int(total[index]), **errors}
        for index, errors in zip(order.tolist(), by_type, strict=True)
        if total[index] > 0
    )
