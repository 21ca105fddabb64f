"""Metrics over several data sets: their unweighted means, as of RF100-VL and ODinW.

Images are never pooled, and equal class names in two data sets are two classes. Intervals draw the
images of each data set independently (Efron and Tibshirani, An Introduction to the Bootstrap, 1993,
section 8.3: two-sample problems).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import isnan, nan
from statistics import median

import numpy as np

from detap import metrics
from detap.analysis.bootstrap import Draws, draw_weights, leave_out, resampled
from detap.analysis.intervals import Interval, check_arguments
from detap.display import Displayed
from detap.errors import UsageError
from detap.evaluation.results import Result
from detap.metrics.metric import MetricSpec
from detap.protocols import Protocol
from detap.protocols.summary import DEFAULT_MIN_GROUND_TRUTHS
from detap.tables.detection import Floats


@dataclass(frozen=True, slots=True, eq=False)
class DataSet:
    """The metrics of one data set."""

    name: str
    summary: Mapping[str, float]  # NaN is undefined
    group: str  # empty for none
    images: int | None
    ground_truths: int
    detections: int
    metric: Callable[[str], float]  # returns any metric by name; KeyError if there is none
    draws: Mapping[str, tuple[Draws, int]] = field(default_factory=dict)  # and ground truths

    @classmethod
    def of(
        cls,
        name: str,
        result: Result,
        group: str = "",
        resampled_specs: Iterable[MetricSpec] = (),
        *,
        resamples: int = 1000,
        seed: int = 0,
        threads: int | None = None,
    ) -> "DataSet":
        """Return the metrics of a result, and some of them in resamples of its images."""
        names = list(dict.fromkeys(s.name for s in resampled_specs if s.metric.has_intervals))
        draws = {}
        if names:
            weights = leave_out(draw_weights(max(len(result.images), 1), resamples, seed))
            values = resampled(result, weights, names, threads=threads)
            counts = {name: int(result.ground_truth_counts(name).sum()) for name in names}
            draws = {name: (values.of(name), counts[name]) for name in names}
        return cls(
            name,
            result.summary,
            group,
            len(result.images),
            int(result.ground_truths.sum()),
            int(result.detections_count.sum()),
            result.metric,
            draws,
        )


@dataclass(frozen=True, repr=False, slots=True, eq=False)
class DataSets(Displayed):
    """The metrics of several data sets."""

    sets: tuple[DataSet, ...]
    protocol: Protocol
    signature: str
    missing: tuple[str, ...] = ()  # data sets that are left out
    confidence: float | None = None  # level of the intervals; None for none
    resamples: int = 1000
    seed: int = 0
    min_ground_truths: int = DEFAULT_MIN_GROUND_TRUTHS
    _cache: dict[str, dict[str, float]] = field(default_factory=dict)

    def __repr__(self) -> str:
        name, value = next(iter(self.summary.items()))
        return f"DataSets({len(self.sets)} data sets, mean {name}={value:.4f})"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the metrics, the primary one first."""
        return tuple(dict.fromkeys(name for one in self.sets for name in one.summary))

    @property
    def summary(self) -> dict[str, float]:
        """The mean of each metric over the data sets where it is defined."""
        return {name: self.mean(name) for name in self.names}

    def values(self, name: str, group: str | None = None) -> dict[str, float]:
        """Return a metric by data set; NaN if undefined."""
        if name not in self._cache:
            listed = any(name in one.summary for one in self.sets)  # NaN where only others do
            self._cache[name] = {
                one.name: one.summary.get(name, nan) if listed else one.metric(name)
                for one in self.sets
            }
        values = self._cache[name]
        return {
            one.name: values[one.name] for one in self.sets if group is None or one.group == group
        }

    def defined(self, name: str, group: str | None = None) -> dict[str, float]:
        """Return a metric by data set where it is defined."""
        return {each: value for each, value in self.values(name, group).items() if not isnan(value)}

    def mean(self, name: str, group: str | None = None) -> float:
        """Return the unweighted mean; NaN if no data set defines the metric."""
        defined = list(self.defined(name, group).values())
        return float(np.mean(defined)) if defined else nan

    def median(self, name: str) -> float:
        """Return the median."""
        defined = self.defined(name).values()
        return median(defined) if defined else nan

    def minimum(self, name: str) -> tuple[str, float]:
        """Return the data set with the minimum, the first of several, and the minimum."""
        return min(self.defined(name).items(), key=lambda item: item[1], default=("", nan))

    def maximum(self, name: str) -> tuple[str, float]:
        """Return the data set with the maximum, the first of several, and the maximum."""
        return max(self.defined(name).items(), key=lambda item: item[1], default=("", nan))

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups, in the order of the data sets."""
        return tuple(dict.fromkeys(one.group for one in self.sets if one.group))

    def interval(self, name: str, of: str | None = None) -> Interval:
        """Return the interval of a mean, or of a metric of one data set; NaN without one."""
        sets = [one for one in self.sets if of is None or one.name == of]
        pairs = [one.draws[name] for one in sets if name in one.draws]
        counted = sum(count for _, count in pairs)
        if self.confidence is None or len(pairs) < len(sets) or counted < self.min_ground_truths:
            return nan, nan
        # Without one part of the images of one data set.
        whole = self.values(name)
        left_out = []
        for one, (each, _) in zip(sets, pairs, strict=True):
            others = [np.full_like(each.left_out, whole[o.name]) for o in sets if o is not one]
            left_out.append(_mean_of_defined([each.left_out, *others]))
        drawn = _mean_of_defined([each.drawn for each, _ in pairs])
        return Draws(drawn, np.concatenate(left_out)).interval(self.confidence)


def data_sets(
    results: Mapping[str, Result],
    *,
    groups: Mapping[str, str] | None = None,
    confidence: float | None = None,
    resamples: int = 1000,
    seed: int = 0,
    min_ground_truths: int = DEFAULT_MIN_GROUND_TRUTHS,
    threads: int | None = None,
) -> DataSets:
    """Return the metrics of several data sets, and their unweighted means."""
    groups = groups or {}
    if not results:
        raise UsageError("no data set: results is empty")
    if unknown := [name for name in groups if name not in results]:
        raise UsageError(f"groups: no data set is named {unknown[0]!r}")
    (first_name, first), *others = results.items()
    for name, result in others:
        if result.protocol != first.protocol:
            raise UsageError(f"data sets {first_name!r} and {name!r} have different protocols")
    if confidence is not None:
        check_arguments(confidence, resamples, seed)
    specs = () if confidence is None else metrics.summary(first.protocol)
    draw = partial(DataSet.of, resampled_specs=specs, resamples=resamples, threads=threads)
    return DataSets(
        tuple(
            draw(name, result, groups.get(name, ""), seed=seed + index)
            for index, (name, result) in enumerate(results.items())
        ),
        first.protocol,
        signature_of([result.signature for result in results.values()]),
        (),
        confidence,
        resamples,
        seed,
        min_ground_truths,
    )


def signature_of(signatures: Sequence[str]) -> str:
    """Return the common parts of signatures: not selections, which each data set has."""
    parts = [signature.split("|") for signature in signatures]
    common = [part for part in parts[0] if all(part in other for other in parts)]
    return "|".join(part for part in common if not part.startswith(("classes:", "images:")))


def _mean_of_defined(columns: Sequence[Floats]) -> Floats:
    """Return the mean of arrays, without NaN."""
    table = np.array(columns)
    defined = ~np.isnan(table)
    counts = defined.sum(axis=0)
    sums = np.where(defined, table, 0.0).sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), nan)
