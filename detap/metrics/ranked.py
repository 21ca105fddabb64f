"""Common code of metrics of the ranking: counts down the ranked detections of a class.

Such a metric has one IoU threshold: the protocol's lowest, or the one in its name (``MR-2@75``,
as ``AP75``). It is computed for several resamples of the images at once; without resampling there
is one, which has every image once.

Axes: B resamples, K classes, I images, n ranked detections of a class that count.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core.resampling import Weights
from detap.errors import UsageError
from detap.metrics.metric import Details, MatchedResult, Metric, MetricSpec, Specs, metric_spec
from detap.protocols import Protocol
from detap.protocols.summary import percent
from detap.tables.detection import Flags, Floats, Integers

_NUMBER = r"(?:\d+(?:\.\d+)?|\.\d+)(?:e-?\d+)?"

_BLOCK = 1 << 20
"""Maximum number of resampled detections in memory at a time, if there is more than one resample"""


class RankedCounts(NamedTuple):
    """Cumulative counts down the ranking of a class, in B resamples of the images."""

    # Point 0 is before the first detection, point i after detection i. Ignored detections are left
    # out. A detection whose image a resample lacks changes no count there.
    rows: Integers  # (n,) rows of the match table, by descending score
    score: Floats  # (n + 1,) the score of the detection; NaN at point 0
    weights: NDArray[Any]  # (B, n) the number of times that a resample has the detection
    true_positives: NDArray[Any]  # (B, n + 1)
    false_positives: NDArray[Any]  # (B, n + 1)
    positives: NDArray[Any]  # (B,) ground truths that count
    images: NDArray[Any]  # (B,) all images, with or without ground truths or detections
    score_range: tuple[float, float]  # (float, float)
    iou_of: Callable[[Integers], Floats]  # of rows; see `matched_iou`

    @property
    def matched_iou(self) -> Floats:
        """The IoU of each true positive with its ground truth; 0 for others, (n,) float64."""
        return self.iou_of(self.rows)

    def cumulate(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the cumulative sum of a value of each detection, (B, n + 1)."""
        return _cumulate(self.weights, values)

    def at_thresholds(self) -> "RankedCounts":
        """Return the counts at score thresholds: the last point of equal scores, and point 0."""
        score = self.score[1:]
        last = np.append(score[1:] != score[:-1], True)[: len(score)]
        points = np.append(0, np.flatnonzero(last) + 1)
        return self._replace(
            rows=self.rows[last],
            score=self.score[points],
            weights=self.weights[:, last],
            true_positives=self.true_positives[:, points],
            false_positives=self.false_positives[:, points],
        )

    def last_within(self, limits: NDArray[Any]) -> NDArray[Any]:
        """Return the last point with at most so many false positives, (B, F) int64."""
        resamples, points = self.false_positives.shape
        above = int(self.false_positives[:, -1].max(initial=0)) + 1
        # The counts ascend, so those of all resamples do when each is shifted beyond the one before
        shift = np.arange(resamples)[:, None]
        counts = (self.false_positives + shift * above).ravel()
        keys = np.minimum(limits, above - 1) + shift * above
        last: NDArray[Any] = np.searchsorted(counts, keys, side="right") - 1 - shift * points
        return last


class Ranked(Metric):
    """A metric of the ranking of each class at one IoU threshold; a subclass has `compute`."""

    # The overall value is the mean over classes; of a pooled metric, that of all ranked together.

    per_image = False  # True if it depends on false positives per image
    fields: tuple[str, ...] = ("duplicates",)

    @property
    def pooled_name(self) -> str:
        """The name of the pooled metric, without its number."""
        return f"pooled-{self.name}"

    @property
    def class_prefix(self) -> str:
        """The name for one class, without its number."""
        return self.name

    def compute(self, counts: RankedCounts, spec: MetricSpec, protocol: Protocol) -> Floats:
        """Compute the value of a class in each resample, (B,) float64."""
        raise NotImplementedError

    def details(self, counts: RankedCounts, spec: MetricSpec, protocol: Protocol) -> dict[str, Any]:
        """Return the points of the curve behind the value of a class, for the JSON report."""
        return {}

    def remarks(self, spec: MetricSpec, details: Details, protocol: Protocol) -> list[str]:
        """Return remarks on the value for the text report; `details` has one entry per class."""
        return []

    def check_argument(self, name: str, argument: float) -> None:
        """Raise UsageError if the number in a name is invalid."""

    def others(self, protocol: Protocol) -> Iterator[MetricSpec]:
        """Yield the metric at the lowest threshold by area, unless its name has a number."""
        if not self.parameter and not self._problem(protocol):
            for suffix in _area_suffixes(protocol):
                spec = self.find(protocol, f"{self.name}{suffix}")
                if spec is not None:
                    yield spec

    def find(self, protocol: Protocol, name: str) -> MetricSpec | None:
        """Return the metric of a name: with its number, IoU threshold and area range."""
        prefix = next((p for p in (self.name, self.pooled_name) if name.startswith(p)), None)
        if prefix is None:
            return None
        rest = name.removeprefix(prefix)
        for number, threshold, area in _readings(protocol, rest):
            if not re.fullmatch(_NUMBER if self.parameter else "", number):
                continue
            if problem := self._problem(protocol):
                raise UsageError(f"{name}: {problem}")
            argument = float(number) if self.parameter else None
            if argument is not None:
                self.check_argument(name, argument)
            if threshold and protocol.duplicates == "ignore":
                raise UsageError(
                    f"{name}: duplicates are known at the lowest IoU threshold only; leave out "
                    "--duplicates, or set --iou to this threshold"
                )
            indices = (threshold, area, len(protocol.max_dets) - 1)
            return metric_spec(protocol, self, name, indices)._replace(
                argument=argument,
                pooled=prefix != self.name,
                class_name=f"{self.class_prefix}{rest}",
            )
        return None

    def _problem(self, protocol: Protocol) -> str:
        """Return the reason why a protocol cannot have the metric, or an empty string."""
        if protocol.matching != "by-score":
            return (
                f"protocol {protocol.name} uses matching {protocol.matching}, which labels no "
                "detection TP or FP; use another --protocol"
            )
        if self.per_image and protocol.verified == "listed":
            return (
                "false positives per image (FPPI) have no meaning where each image is verified "
                f"for some classes only, as with protocol {protocol.name}; use --verified all"
            )
        return ""

    def by_class(self, result: MatchedResult, spec: MetricSpec) -> Floats:
        """Compute the value of each class, (K,) float64."""
        table = self._values(result, _plain(result), [spec._replace(pooled=False)])[0]
        values: Floats = table[:, 0]
        return values

    def overall(self, result: MatchedResult, spec: MetricSpec) -> float:
        """Compute the mean over classes with ground truth, or the pooled value."""
        if spec.pooled:
            return float(self._values(result, _plain(result), [spec])[0][0, 0])
        return super().overall(result, spec)

    def resample(
        self, result: MatchedResult, weights: Weights, specs: Specs, threads: int | None
    ) -> Sequence[Floats]:
        """Compute the values of each class in each resample; see :meth:`Metric.resample`."""
        of_classes = [spec._replace(pooled=False) for spec in specs]
        return self._values(result, weights.table(), of_classes)

    def resample_overall(
        self, result: MatchedResult, weights: Weights, spec: MetricSpec, by_class: Floats
    ) -> Floats:
        """Compute the mean over classes or the pooled value in each resample, (B,) float64."""
        if spec.pooled:
            values: Floats = self._values(result, weights.table(), [spec])[0][0]
            return values
        return super().resample_overall(result, weights, spec, by_class)

    def details_by_class(
        self, result: MatchedResult, spec: MetricSpec
    ) -> dict[int, dict[str, Any]]:
        """Return the details of each class with ground truth, by its index."""
        return {
            label: self.details(counts, spec, result.protocol)
            for label, _, counts in counts_of_ranking(result, _plain(result), spec)
        }

    @staticmethod
    def _values(
        result: MatchedResult, weights: NDArray[Any], specs: Sequence[MetricSpec]
    ) -> list[Floats]:
        """Compute metrics in resamples of weights (B, I): a (K, B) array each."""
        shape = result.match_table.classes, len(weights)
        tables = [np.full(shape, np.nan) for _ in specs]
        same: dict[tuple[int, int | None], list[int]] = {}
        for q, spec in enumerate(specs):
            same.setdefault((spec.area, spec.threshold), []).append(q)
        for indices in same.values():
            for label, block, counts in counts_of_ranking(result, weights, specs[indices[0]]):
                defined = counts.positives > 0
                for q in indices:
                    metric: Any = specs[q].metric
                    values = metric.compute(counts, specs[q], result.protocol)
                    tables[q][label, block] = np.where(defined, values, np.nan)
        return tables


def _plain(result: MatchedResult) -> NDArray[Any]:
    """Return the weights of the data itself: every image once, (1, I) uint8."""
    return np.ones((1, result.match_table.images), np.uint8)


def counts_of_ranking(
    result: MatchedResult, weights: NDArray[Any], spec: MetricSpec
) -> Iterator[tuple[int, slice, RankedCounts]]:
    """Yield the counts of each class with ground truth, a block of resamples at a time."""
    match_table = result.match_table
    positive = np.flatnonzero(match_table.positive[spec.area])
    truth_label = match_table.truth_label[positive]
    if spec.pooled:
        rankings = [(0, match_table.by_score, positive)] if len(positive) else []
    else:
        positive = positive[np.argsort(truth_label, kind="stable")]
        ends = np.cumsum(np.bincount(truth_label, minlength=match_table.classes))
        rankings = [
            (label, match_table.ranking.of_class(label), truth_rows)
            for label, truth_rows in enumerate(np.split(positive, ends[:-1]))
            if len(truth_rows)
        ]
    images = weights.sum(axis=1, dtype=np.int64)
    scores = match_table.score
    score_range = np.nan, np.nan
    if len(scores):
        score_range = float(scores.min()), float(scores.max())
    for label, ranked, truth_rows in rankings:
        rows = ranked[_counted(result, spec, ranked)]
        is_true = match_table.is_true_positive(spec.area, spec.threshold or 0, rows)
        is_true = is_true.astype(np.int64)
        score = np.append(np.nan, match_table.score[rows])
        image, truth_image = match_table.image[rows], match_table.truth_image[truth_rows]
        size = max(_BLOCK // (len(rows) + len(truth_rows)), 1)
        for start in range(0, len(weights), size):
            block = slice(start, start + size)
            drawn = weights[block].take(image, axis=1)
            positives = weights[block].take(truth_image, axis=1).sum(axis=1, dtype=np.int64)
            yield (
                label,
                block,
                RankedCounts(
                    rows,
                    score,
                    drawn,
                    _cumulate(drawn, is_true),
                    _cumulate(drawn, 1 - is_true),
                    positives,
                    images[block],
                    score_range,
                    lambda rows: result.matched_iou(spec)[rows],
                ),
            )


def _counted(result: MatchedResult, spec: MetricSpec, rows: Integers) -> Flags:
    """Return the mask of detections that are true or false positives."""
    match_table, threshold = result.match_table, spec.threshold or 0
    counted: Flags = ~match_table.is_ignored(spec.area, threshold, rows)
    if result.protocol.duplicates == "ignore":
        is_true = match_table.is_true_positive(spec.area, threshold, rows)
        counted &= is_true | ~match_table.duplicate[rows]
    return counted


def exact_fraction(number: float) -> Fraction:
    """Return the shortest decimal of a number as a fraction, so that 0.1 is 1/10."""
    return Fraction(repr(float(number)))


def whole_count(rate: Fraction, images: int, *, least: bool = False) -> int:
    """Return the largest count within a rate per image; or the least one that reaches it."""
    most = rate.numerator * images // rate.denominator
    return most + (least and most < rate * images)


def per_images(images: NDArray[Any], bounds: Iterable[Callable[[int], int]]) -> NDArray[Any]:
    """Return integer bounds of false positives for numbers of images, (B, F) int64."""
    unique, index = np.unique(images, return_inverse=True)
    functions = [*bounds]
    table = [[function(count) for function in functions] for count in unique.tolist()]
    return np.array(table, np.int64).reshape(len(unique), len(functions))[index]


def _cumulate(weights: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
    """Return the cumulative sums of weighted values (n,), from 0 on, (B, n + 1)."""
    sums = np.zeros((len(weights), len(values) + 1), values.dtype)
    np.cumsum(weights * values, axis=1, out=sums[:, 1:])
    return sums


def _readings(protocol: Protocol, name: str) -> Iterator[tuple[str, int, int]]:
    """Yield the ways to read the end of a name: its number, and its threshold and area range."""
    for area, area_suffix in enumerate(_area_suffixes(protocol)):
        if name.endswith(area_suffix):
            stem = name.removesuffix(area_suffix)
            yield stem, 0, area
            for threshold, iou in enumerate(protocol.iou_thresholds):
                suffix = f"@{percent(iou)}"
                if stem.endswith(suffix):
                    yield stem.removesuffix(suffix), threshold, area


def _area_suffixes(protocol: Protocol) -> tuple[str, ...]:
    """Return the ends of names by area range; the first range has none."""
    return ("", *(area_range.suffix for area_range in protocol.area_ranges[1:]))
