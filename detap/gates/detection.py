"""Gates for detection: metrics of results, and their bootstrap intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from math import isnan
from typing import Any

from detap import metrics
from detap.analysis.bootstrap import Draws, Resampled, draw_weights, leave_out, resampled
from detap.analysis.intervals import MetricIntervals, metric_intervals
from detap.analysis.operating import OperatingPoint, Threshold, operating_point
from detap.errors import UnknownNameError, UsageError
from detap.evaluation.results import Result, class_rows
from detap.evaluation.scoring import on_images
from detap.gates.baseline import drop_threshold_columns
from detap.gates.checks import Gate, Interval, Intervals
from detap.gates.config import CHANGES, RULES, GateConfig, Limit
from detap.gates.metric_names import MetricName, Metrics, escaped, resolve
from detap.gates.power import Resamples
from detap.gates.regressions import Regressions, regressions
from detap.metrics.at_threshold import AT_THRESHOLD
from detap.metrics.metric import MetricSpec
from detap.protocols import Protocol
from detap.tables.detection import Name as ImageName


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """The result of a detector, overall and by slice: a ``Subject`` of detap/gates/evaluate.py."""

    overall: Result
    slices: Mapping[str, Result | None] = field(default_factory=dict)  # None without images
    score_threshold: Threshold | None = None  # of precision, recall, F1 and FP per image

    @classmethod
    def of(
        cls,
        overall: Result,
        slices: Mapping[str, Sequence[ImageName]],
        *,
        score_threshold: Threshold | None = None,
    ) -> "Scored":
        """Evaluate each slice of the images."""
        known, threads = set(overall.images), overall._run.threads
        results: dict[str, Result | None] = {}
        for tag, names in slices.items():
            images = [name for name in names if name in known]
            results[tag] = on_images(overall, images, threads=threads) if images else None
        return cls(overall, results, score_threshold)

    def of_slice(self, tag: str | None) -> Result | None:
        """Return the result of a slice, or the overall result for None."""
        return self.overall if tag is None else self.slices[tag]

    def metrics(self) -> Metrics:
        """Return the metrics that gates can name."""
        at = self.score_threshold
        overall = _metrics_of(self.overall, at)
        slices = {
            tag: overall.undefined() if result is None else _metrics_of(result, at)
            for tag, result in self.slices.items()
        }
        return replace(overall, slices=slices)

    def resample(self, baseline: "Scored | None", config: GateConfig) -> "ImageResamples":
        """Resample the drops from a baseline, or the metrics if there is none."""
        return ImageResamples(self, baseline, config)

    def intervals(self, config: GateConfig) -> Intervals:
        """Return the confidence intervals of the metrics, overall and by slice."""
        assert config.confidence is not None
        current = self.metrics()
        spec_of = partial(_spec_of, current, self.overall.protocol)
        limited = [
            spec_of(name)
            for limit in config.limits
            if limit.kind not in CHANGES
            for name in resolve(limit.name, current)
        ]
        of_slices: dict[str | None, MetricIntervals] = {
            tag: metric_intervals(
                result,
                confidence=config.confidence,
                resamples=config.resamples,
                seed=config.seed,
                min_ground_truths=config.min_ground_truths,
                others=dict.fromkeys(spec for spec in limited if spec is not None),
            )
            for tag in (None, *self.slices)
            if (result := self.of_slice(tag)) is not None
        }

        def interval(name: MetricName) -> Interval | None:
            spec, intervals = spec_of(name), of_slices.get(name.slice)
            if spec is None or intervals is None:
                return None
            low, high = intervals.of(spec.name if name.row is None else spec.class_name, name.row)
            return None if isnan(low) else (low, high)

        return Intervals(config.confidence, interval, of_slices)

    def find_regressions(
        self, gates: Sequence[Gate], baseline_metrics: Metrics | None, baseline: "Scored | None"
    ) -> Regressions | None:
        """Return the classes and images behind the gates that did not pass."""
        return regressions(
            gates, self.of_slice, baseline_metrics, None if baseline is None else baseline.of_slice
        )


def _metrics_of(result: Result, score_threshold: Threshold | None) -> Metrics:
    at_threshold = AT_THRESHOLD if result.protocol.ranks_detections else ()

    @cache
    def point() -> OperatingPoint:
        return operating_point(result, "best" if score_threshold is None else score_threshold)

    def compute_overall(name: str) -> float:
        if name in at_threshold:
            return point().overall.metrics()[name]
        return result.metric(name)

    def compute_rows(name: str) -> Any:
        if name in at_threshold:
            return [counts.metrics()[name] for counts in point().by_class]
        spec = metrics.named_of_class(result.protocol, name)
        return result.class_values(spec).tolist()

    def compute_counts(name: str) -> Any:
        if name in at_threshold:
            return result.ground_truths.tolist()
        spec = metrics.named_of_class(result.protocol, name)
        return result.ground_truth_counts_of(spec).tolist()

    # A given threshold is that of F1, also if the summary lists F1 at the best one.
    summary = result.summary
    if score_threshold is not None:
        summary = {name: value for name, value in summary.items() if name not in at_threshold}
    return Metrics(
        next(iter(result.summary)),
        summary,
        drop_threshold_columns(class_rows(result), score_threshold is not None),
        compute_overall=compute_overall,
        compute_rows=compute_rows,
        compute_counts=compute_counts,
        metric_of=cache(partial(metrics.metric_named, result.protocol)),
        has_scores=result.protocol.has_scores,
    )


class ImageResamples(Resamples):
    """Metrics in resamples of the images, drawn once per slice."""

    unit = "image"

    def __init__(self, current: Scored, baseline: Scored | None, config: GateConfig) -> None:
        super().__init__(config, paired=baseline is not None)
        self._current, self._metrics = current, current.metrics()
        self._spec_of = partial(_spec_of, self._metrics, current.overall.protocol)
        self._resampled: dict[str | None, list[Resampled | None]] = {}
        # Those with limits, else the primary metric.
        names_by_slice: dict[str | None, set[str]] = {}
        for limit in config.limits:
            for name in resolve(limit.name, self._metrics):
                spec = self._spec_of(name)
                if spec is not None and spec.metric.has_intervals:
                    names_by_slice.setdefault(name.slice, set()).add(spec.name)
                elif self.paired and config.confidence is not None and limit.kind in CHANGES:
                    raise UsageError(_no_interval(name, spec, limit, config))
        for tag, names in (names_by_slice or {None: {self._metrics.primary_metric}}).items():
            before = None if baseline is None else baseline.of_slice(tag)
            after = current.of_slice(tag)
            if after is None or (self.paired and before is None):
                continue
            images = max(len(after.images), 1)
            weights = leave_out(draw_weights(images, config.resamples, config.seed))
            self._resampled[tag] = [
                None if result is None else resampled(result, weights, sorted(names))
                for result in (before, after)
            ]

    def draws(self, name: MetricName, *, earlier: bool = False) -> Draws | None:
        """Return a metric, or that of the baseline; None if it cannot be resampled."""
        spec, pair = self._spec_of(name), self._resampled.get(name.slice)
        values = None if pair is None else pair[0 if earlier else 1]
        if spec is None or values is None or spec.name not in values.overall:
            return None
        if name.row is not None and name.row >= len(values.by_class[spec.name].drawn):
            return None  # a class of the baseline alone
        return values.of(spec.name, name.row)

    def count(self, tag: str | None) -> int:
        """Return the number of images, in a slice or overall."""
        result = self._current.of_slice(tag)
        return 0 if result is None else len(result.images)


def _spec_of(metrics_now: Metrics, protocol: Protocol, name: MetricName) -> MetricSpec | None:
    """Return the metric of the protocol with this name; None if there is none."""
    if name.extreme is not None or metrics_now.at_threshold(name):
        return None
    find = metrics.named if name.row is None else metrics.named_of_class
    try:
        return find(protocol, name.metric)
    except UnknownNameError:
        return None


def _no_interval(
    name: MetricName, spec: MetricSpec | None, limit: Limit, config: GateConfig
) -> str:
    """Return the message for a drop or rise that has no interval."""
    confidence = config.option_names("confidence")
    if spec is not None:
        reason = f"{spec.metric.name} cannot be resampled; remove it or {confidence}"
    elif name.extreme is None:
        reason = f"not an average precision or recall; remove it or {confidence}"
    else:
        prefix = "" if name.slice is None else f"slice:{escaped(name.slice)}."
        metric = f"{prefix}class:*.{name.metric}"
        each = config.option_names.limit(RULES[limit.kind].option, metric, limit.text)
        reason = (
            f"that of a {name.extreme}imum is biased; limit each class with {each}, "
            f"or remove {confidence}"
        )
    return f"{name.text!r} has no interval: {reason}"
