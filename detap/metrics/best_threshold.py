"""Metrics at the best score threshold: F-beta, precision at a recall, recall at a precision.

Score thresholds keep all detections of equal score or none. Each class has its own threshold; the
pooled metrics have one for all classes together.

References
----------
van Rijsbergen, Information Retrieval, 2nd edition 1979, chapter 7: F-beta, there as 1 - E.
"""

from math import isnan
from typing import Any

import numpy as np

from detap.errors import UsageError
from detap.metrics.metric import Details, MetricSpec
from detap.metrics.ranked import Ranked, RankedCounts
from detap.protocols import Protocol
from detap.tables.detection import Floats

_TOLERANCE = 1e-9
"""Of a count of true positives: 9 of 10 reach a recall of 0.9."""


class BestThreshold(Ranked):
    """The largest value over score thresholds; of equal ones, the highest threshold is reported."""

    def at_points(self, counts: RankedCounts, argument: float) -> Floats:
        """Compute the value at each threshold, (B, n) float64; below 0 if it is no candidate."""
        raise NotImplementedError

    def compute(self, counts: RankedCounts, spec: MetricSpec, protocol: Protocol) -> Floats:
        """Compute the largest value, 0 without any."""
        assert spec.argument is not None
        values = self.at_points(counts.at_thresholds(), spec.argument)
        best: Floats = values.max(axis=1, initial=0.0)
        return best

    def details(self, counts: RankedCounts, spec: MetricSpec, protocol: Protocol) -> dict[str, Any]:
        """Return the threshold with precision and recall there; NaN if there is none."""
        assert spec.argument is not None
        counts = counts.at_thresholds()
        values = self.at_points(counts, spec.argument)[0, 1:]
        index = int(values.argmax()) + 1 if len(values) else 0
        if index == 0 or values[index - 1] < 0:
            return dict.fromkeys(("score", "precision", "recall"), float("nan"))
        true, false = counts.true_positives[0, index], counts.false_positives[0, index]
        return {
            "score": float(counts.score[index]),
            "precision": float(true / (true + false)),
            "recall": float(true / counts.positives[0]),
        }

    def remarks(self, spec: MetricSpec, details: Details, protocol: Protocol) -> list[str]:
        """State the threshold if there is one."""
        if len(details) > 1:
            return []
        score = details[0]["score"]
        return ["no detections"] if isnan(score) else [f"at score {score:.6g}"]


class MacroF(BestThreshold):
    """F-beta at the best threshold: the mean over classes, and pooled."""

    name = "macro-F"
    parameter = "B"
    title = "best F-beta of each class"
    class_prefix = pooled_name = "F"

    def check_argument(self, name: str, argument: float) -> None:
        """Raise UsageError unless beta is above 0."""
        if not argument > 0:
            raise UsageError(f"{name}: beta must be above 0")

    def at_points(self, counts: RankedCounts, argument: float) -> Floats:
        """Compute ``(1 + b^2) TP / (TP + FP + b^2 n)``."""
        square = argument**2
        true, false = counts.true_positives, counts.false_positives
        positives = np.maximum(counts.positives, 1)[:, None]
        values: Floats = (1 + square) * true / (true + false + square * positives)
        return values


class AtLevel(BestThreshold):
    """The largest precision where the recall reaches a level, or the reverse."""

    def __init__(self, value: str, level: str) -> None:
        self.name, self.parameter = f"{value}@{level}=", level[0].upper()
        self.title = f"largest {value} at {level} {self.parameter} or more"
        self._value, self._level = value, level

    def check_argument(self, name: str, argument: float) -> None:
        """Raise UsageError unless the level is a fraction."""
        if not 0 <= argument <= 1:
            raise UsageError(f"{name}: {self._level} is from 0 to 1")

    def remarks(self, spec: MetricSpec, details: Details, protocol: Protocol) -> list[str]:
        """State the threshold, or the number of classes that do not reach the level."""
        without = sum(isnan(one["score"]) for one in details)
        if not without:
            return super().remarks(spec, details, protocol)
        subject = f"{without} of {len(details)} classes have 0" if len(details) > 1 else "0"
        return [f"{subject} because {self._level} does not reach {spec.argument:g}"]

    def at_points(self, counts: RankedCounts, argument: float) -> Floats:
        """Compute the value where ``TP >= level * (TP + FP)`` or ``TP >= level * n``."""
        true, positives = counts.true_positives, counts.positives[:, None]
        whole = {"precision": true + counts.false_positives, "recall": positives}
        reached = true >= argument * whole[self._level] - _TOLERANCE
        return np.where(reached, true / np.maximum(whole[self._value], 1), -1.0)
