"""From results to gates: which numbers there are, and how noisy they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from math import nan

from detap import metrics
from detap.analysis.bootstrap import Resampled, draw_weights, interval, leave_out, resampled
from detap.analysis.operating import OperatingPoint, Threshold, operating_point
from detap.analysis.power import LEVEL
from detap.errors import UnknownNameError, UsageError
from detap.evaluation.detection import on_images
from detap.evaluation.results import Result, class_rows
from detap.gates.baseline import drop_threshold_columns
from detap.gates.checks import Gate, Interval, Limit
from detap.gates.config import CHANGES, GateConfig
from detap.gates.metric_names import MetricName, Metrics, escaped, resolve
from detap.gates.regressions import Regressions, regressions
from detap.io.digest import sha256_of_names
from detap.metrics.at_threshold import AT_THRESHOLD
from detap.protocols import MetricSpec
from detap.tables.detection import Floats
from detap.tables.detection import Name as ImageName


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """A detector's result, whole and by slice; None is a slice without any image.

    What is judged of a detector: a ``Subject`` of ``detap/gates/evaluate.py``.
    """

    overall: Result
    slices: Mapping[str, Result | None] = field(default_factory=dict)
    threads: int | None = None
    score_threshold: Threshold | None = None
    """The score threshold of the numbers at one; None is not said, and means the best."""

    @classmethod
    def of(
        cls,
        whole: Result,
        slices: Mapping[str, Sequence[ImageName]],
        *,
        threads: int | None = None,
        score: Threshold | None = None,
    ) -> "Scored":
        """Score each slice of the images by itself."""
        known = set(whole.images)
        parts: dict[str, Result | None] = {}
        for tag, images in slices.items():
            chosen = [image for image in images if image in known]
            parts[tag] = on_images(whole, chosen, threads=threads) if chosen else None
        return cls(whole, parts, threads, score)

    def of_slice(self, tag: str | None) -> Result | None:
        """Return the result of a slice; None is the whole."""
        return self.overall if tag is None else self.slices[tag]

    def metrics(self) -> Metrics:
        """Return all that gates can name."""
        whole = _metrics_of(self.overall, self.score_threshold)
        slices = {
            tag: whole.undefined() if part is None else _metrics_of(part, self.score_threshold)
            for tag, part in self.slices.items()
        }
        return replace(whole, slices=slices)

    def noise(self, baseline: "Scored | None", config: GateConfig) -> "Intervals":
        """Return how noisy the drops from an earlier detector are, or the numbers without one."""
        return Intervals(self, baseline, config)

    def find_regressions(
        self, gates: Sequence[Gate], baseline_metrics: Metrics | None, baseline: "Scored | None"
    ) -> Regressions | None:
        """Return the classes and images that the gates which did not pass are about."""
        return regressions(
            gates, self.of_slice, baseline_metrics, None if baseline is None else baseline.of_slice
        )

    def slice_metrics(self) -> tuple["SliceMetrics", ...]:
        """Return what there is to say of each slice."""
        return tuple(
            SliceMetrics(
                tag, 0, sha256_of_names(()), 0, dict.fromkeys(self.overall.summary, nan), ()
            )
            if part is None
            else SliceMetrics.of(tag, part)
            for tag, part in self.slices.items()
        )


@dataclass(frozen=True, slots=True)
class SliceMetrics:
    """What a report says of a slice.

    Attributes
    ----------
    tag : str
    images : int
    images_sha256 : str
        Of their names, so that a baseline knows them again.
    ground_truths : int
    summary : mapping of str to float
    classes : sequence of mapping
        As :func:`detap.evaluation.results.class_rows` has them.
    """

    tag: str
    images: int
    images_sha256: str
    ground_truths: int
    summary: Mapping[str, float]
    classes: Sequence[Mapping[str, str | int | float | None]]

    @classmethod
    def of(cls, tag: str, part: Result) -> "SliceMetrics":
        """Return what there is to say of the result of a slice."""
        images = part.images
        truths = int(part.ground_truths.sum())
        return cls(
            tag, len(images), sha256_of_names(images), truths, part.summary, class_rows(part)
        )


def _metrics_of(result: Result, score: Threshold | None) -> Metrics:
    known = AT_THRESHOLD if result.protocol.matching == "by-score" else ()

    @cache
    def point() -> OperatingPoint:
        return operating_point(result, "best" if score is None else score)

    def more(name: str) -> float:
        if name in known:
            return point().overall.numbers()[name]
        return result.measure(name)

    def more_rows(name: str) -> list[float]:
        if name in known:
            return [entry.numbers()[name] for entry in point().by_class]
        entry = metrics.named_of_class(result.protocol, name)
        values: list[float] = result.class_values(entry).tolist()
        return values

    def counted(name: str) -> list[int]:
        if name in known:
            counts = result.ground_truths
        else:
            counts = result.counted_by(metrics.named_of_class(result.protocol, name))
        return counts.tolist()  # type: ignore[no-any-return]

    return Metrics(
        next(iter(result.summary)),
        result.summary,
        drop_threshold_columns(class_rows(result), score is not None),
        compute_overall=more,
        compute_rows=more_rows,
        compute_counts=counted,
        metric_of=cache(partial(metrics.metric_named, result.protocol)),
    )


class Intervals:
    """Intervals of drops, by paired resamples that are drawn once per slice.

    Without an earlier detector there are no drops, and the resamples are of the numbers themselves.

    Parameters
    ----------
    current, baseline : Scored
        The detector and the one before it, on the same images.
    config : GateConfig
        The limits, the confidence, the resamples and their seed: see docs/bootstrap.md.

    Raises
    ------
    UsageError
        Where an interval is asked for of a number that cannot be resampled.
    """

    unit = "image"

    def __init__(self, current: Scored, baseline: Scored | None, config: GateConfig) -> None:
        self.confidence = LEVEL if config.confidence is None else config.confidence
        self.paired = baseline is not None
        self._now, self._numbers = current, current.metrics()
        measures = self._measures(config, judged=self.paired and config.confidence is not None)
        self._drawn: dict[str | None, tuple[Resampled | None, Resampled]] = {}
        for tag, wanted in measures.items():
            before, after = (
                None if baseline is None else baseline.of_slice(tag),
                current.of_slice(tag),
            )
            if after is None or (self.paired and before is None):
                continue
            weights = draw_weights(len(after.images), config.resamples, config.seed)
            weights = leave_out(weights) if self.paired else weights
            self._drawn[tag] = (
                None
                if before is None
                else resampled(before, weights, wanted, threads=current.threads),
                resampled(after, weights, wanted, threads=current.threads),
            )

    def _measures(self, config: GateConfig, *, judged: bool) -> dict[str | None, list[str]]:
        """Return what is resampled of each slice: what limits name, and else the headline."""
        found: dict[str | None, set[str]] = {}
        for limit in config.limits:
            for name in resolve(limit.name, self._numbers):
                entry = self._entry(name)
                if entry is not None and entry.metric.has_intervals:
                    found.setdefault(name.slice, set()).add(entry.name)
                elif judged and limit.kind in CHANGES:
                    raise UsageError(_no_interval(name, entry, limit, config))
        if not found:
            found[None] = {self._numbers.primary_metric}
        return {tag: sorted(measures) for tag, measures in found.items()}

    def _entry(self, name: MetricName) -> MetricSpec | None:
        """Return which number of the protocol a name stands for; None if for none."""
        if name.smallest or self._numbers.at_threshold(name):
            return None
        find = metrics.named if name.row is None else metrics.named_of_class
        try:
            return find(self._now.overall.protocol, name.metric)
        except UnknownNameError:
            return None

    def interval(self, name: MetricName) -> Interval:
        """Return the interval of the drop of a number."""
        drops = self.drops(name)
        if drops is None:
            return nan, nan
        return interval(drops, self.confidence, self._drop(name, left_out=True))

    def drops(self, name: MetricName) -> Floats | None:
        """Return the drop of a number in each resample; None where it has none."""
        return self._drop(name, left_out=False)

    def values(self, name: MetricName) -> Floats | None:
        """Return a number in each resample; None where it cannot be resampled."""
        return self._series(name, 1, left_out=False)

    def _drop(self, name: MetricName, *, left_out: bool) -> Floats | None:
        before, after = (self._series(name, side, left_out=left_out) for side in range(2))
        return None if before is None or after is None else before - after

    def _series(self, name: MetricName, side: int, *, left_out: bool) -> Floats | None:
        entry, drawn = self._entry(name), self._drawn.get(name.slice)
        one = None if drawn is None else drawn[side]
        if one is not None and left_out:
            one = one.left_out
        if entry is None or one is None or entry.name not in one.overall:
            return None
        if name.row is None:
            return one.overall[entry.name]
        rows = one.by_class[entry.name]
        return rows[name.row] if name.row < len(rows) else None  # a class of the baseline alone

    def count(self, tag: str | None) -> int:
        """Return how many images there are, in a slice or in all."""
        part = self._now.of_slice(tag)
        return 0 if part is None else len(part.images)


def _no_interval(
    name: MetricName, entry: MetricSpec | None, limit: Limit, config: GateConfig
) -> str:
    """Return why a drop or rise has no interval, and what to do about it."""
    without = f"leave {config.option_names('confidence')} out"
    if entry is not None:
        return (
            f"{name.text!r} has no interval: {entry.metric.name} cannot be resampled; "
            f"leave it out, or {without}"
        )
    if not name.smallest:
        return (
            f"{name.text!r} is no average precision or recall: it has no interval; leave it out, "
            f"or {without}"
        )
    prefix = "" if name.slice is None else f"slice:{escaped(name.slice)}."
    each = config.option_names.limit(
        f"max_{limit.kind}", f"{prefix}class:*.{name.metric}", limit.text
    )
    return (
        f"{name.text!r} has no interval: that of the smallest of several numbers is biased where "
        f"they are close; limit each class by {each}, or {without}"
    )
