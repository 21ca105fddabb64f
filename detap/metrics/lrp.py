"""Localization recall precision (LRP) and its optimum over the detections.

Down the ranking of a class with n ground truths, at IoU threshold t, ``LRP = (E + FP + FN) / (TP +
FP + FN)``, where E is the sum of ``(1 - IoU) / (1 - t)`` over the true positives. It is 0 for
perfect detections, and 1 without detections. Optimal LRP (oLRP) is its minimum over the detections,
the first of equal ones.

References
----------
Oksuz, Cam, Kalkan and Akbas, One Metric to Measure Them All: Localisation Recall Precision (LRP)
for Evaluating Visual Detection Tasks, PAMI 44 (2022); kemaloksuz/LRP-Error, cocoeval.py.
"""

from collections.abc import Callable
from math import isnan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.errors import UsageError
from detap.metrics.metric import Details, MetricSpec
from detap.metrics.ranked import Ranked, RankedCounts
from detap.protocols import Protocol
from detap.tables.detection import Floats

_ROUNDING = 1e-12
"""Values closer than this are equal: sums depend on the order of addition."""


class LocalizationRecallPrecision(Ranked):
    """LRP at a score threshold: of all detections with at least this score."""

    name = "LRP@score="
    title = "localization recall precision at score S"
    parameter = "S"
    higher_is_better = False
    uses_matched_iou = True

    def find(self, protocol: Protocol, name: str) -> MetricSpec | None:
        """Return the metric of a name; raise UsageError for LRP without a score."""
        if name == "LRP":
            raise UsageError("LRP requires a score threshold; use LRP@score=0.5, or oLRP")
        return super().find(protocol, name)

    def compute(self, counts: RankedCounts, spec: MetricSpec, protocol: Protocol) -> Floats:
        """Compute LRP after the last detection with this score."""
        last = int(np.count_nonzero(counts.score[1:] >= (spec.argument or 0.0)))
        values: Floats = _lrp(counts, spec, protocol)[0][:, last]
        return values


class Optimum(NamedTuple):
    """The first minimum of LRP over the detections, in B resamples."""

    point: NDArray[Any]  # (B,) of `RankedCounts`
    lrp: Floats  # (B,)
    distance: Floats  # (B,) the sum of ``1 - IoU`` over the true positives
    true_positives: NDArray[Any]  # (B,)
    false_positives: NDArray[Any]  # (B,)
    positives: NDArray[Any]  # (B,)


class OptimalLRP(Ranked):
    """The minimum of LRP over the detections."""

    name = "oLRP"
    title = "optimal localization recall precision"
    higher_is_better = False
    uses_matched_iou = True

    def find(self, protocol: Protocol, name: str) -> MetricSpec | None:
        """Return the metric of a name; raise UsageError for the threshold, which is no metric."""
        if name == "oLRP-threshold":
            raise UsageError(
                "oLRP-threshold is no metric: no score is better than another; --metrics oLRP "
                "reports the score of each class"
            )
        return super().find(protocol, name)

    def compute(self, counts: RankedCounts, spec: MetricSpec, protocol: Protocol) -> Floats:
        """Compute the value at the optimum of each resample."""
        with np.errstate(invalid="ignore"):  # 0 / 0 is undefined
            return self.at_optimum(_optimum(counts, spec, protocol))

    def at_optimum(self, optimum: Optimum) -> Floats:
        """Return the value at the optimum, (B,) float64."""
        return optimum.lrp

    def details(self, counts: RankedCounts, spec: MetricSpec, protocol: Protocol) -> dict[str, Any]:
        """Return the score of the optimum, whether it cuts a tie, and the components."""
        point = int(_optimum(counts, spec, protocol).point[0])
        score = float(counts.score[point])
        cuts_tie = bool((counts.score[point + 1 :] == score).any())
        components = {
            key: float(metric.compute(counts, spec, protocol)[0])
            for key, metric in COMPONENTS.items()
        }
        return {"score": score, "cuts_tie": cuts_tie, **components}

    def remarks(self, spec: MetricSpec, details: Details, protocol: Protocol) -> list[str]:
        """State the score of a single class, and the number of scores that cut ties."""
        ties = sum(one["cuts_tie"] for one in details)
        if len(details) != 1:
            return [f"{ties} of {len(details)} thresholds cut ties"] if ties else []
        score = details[0]["score"]
        if isnan(score):
            return ["no true positives"]
        return [f"at score {score:.6g}{', which cuts a tie' if ties else ''}"]


class _Component(OptimalLRP):
    """A part of oLRP; its score is that of oLRP."""

    def __init__(self, name: str, title: str, value: Callable[[Optimum], Floats]) -> None:
        self.name, self.title, self._value = name, title, value

    def at_optimum(self, optimum: Optimum) -> Floats:
        """Return the value at the optimum, (B,) float64."""
        return self._value(optimum)

    def details(self, counts: RankedCounts, spec: MetricSpec, protocol: Protocol) -> dict[str, Any]:
        """Return the value."""
        return {"value": float(self.compute(counts, spec, protocol)[0])}

    def remarks(self, spec: MetricSpec, details: Details, protocol: Protocol) -> list[str]:
        """State the number of classes without a value."""
        undefined = sum(isnan(one["value"]) for one in details)
        return [f"undefined for {undefined} without true positives"] if undefined else []


def _miss_rate(optimum: Optimum) -> Floats:
    # If LRP is never below 1, the minimum is after the first copy of the first detection.
    hits = optimum.true_positives
    hits = np.where(optimum.lrp >= 1 - _ROUNDING, np.minimum(hits, 1), hits)
    values: Floats = (optimum.positives - hits) / optimum.positives
    return values


COMPONENTS = {
    "localization": _Component(
        "oLRP-loc", "mean of 1 - IoU at oLRP", lambda at: at.distance / at.true_positives
    ),
    "false_positives": _Component(
        "oLRP-fp",
        "1 - precision at oLRP",
        lambda at: at.false_positives / (at.true_positives + at.false_positives),
    ),
    "false_negatives": _Component("oLRP-fn", "1 - recall at oLRP", _miss_rate),
}
"""The components by their names in the details of oLRP."""


def _lrp(counts: RankedCounts, spec: MetricSpec, protocol: Protocol) -> tuple[Floats, Floats]:
    """Return LRP and E at each point, (B, n + 1) float64 each."""
    iou, scale = counts.matched_iou, 1 - protocol.iou_thresholds[spec.threshold or 0]
    # Areas in the file's own format let an IoU exceed 1 by rounding.
    loss = np.maximum(1 - iou, 0) / scale if scale else np.zeros(len(iou))
    errors = counts.cumulate(np.where(iou > 0, loss, 0.0))
    false, positives = counts.false_positives, counts.positives[:, None]
    total = errors + false + (positives - counts.true_positives)
    return total / np.maximum(positives + false, 1), errors


def _optimum(counts: RankedCounts, spec: MetricSpec, protocol: Protocol) -> Optimum:
    lrp, errors = _lrp(counts, spec, protocol)
    candidate = np.zeros(lrp.shape, np.bool_)
    candidate[:, 1:] = (counts.weights > 0) & (counts.true_positives[:, -1:] > 0)
    lowest = np.where(candidate, lrp, np.inf).min(axis=1, keepdims=True)
    point = (candidate & (lrp <= lowest + _ROUNDING)).argmax(axis=1)
    at = np.arange(len(point)), point
    return Optimum(
        point,
        lrp[at],
        errors[at] * (1 - protocol.iou_thresholds[spec.threshold or 0]),
        counts.true_positives[at],
        counts.false_positives[at],
        counts.positives,
    )
