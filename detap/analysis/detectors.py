"""Comparison of several detectors on the same ground truth: ranking, pairs and groups.

All detectors are resampled on the same images, so that each pair is a paired bootstrap. The
p-values of all pairs (:class:`detap.analysis.bootstrap.Draws`) are adjusted by Holm's method, and
detectors that do not differ significantly share a letter (compact letter display, by insertion and
absorption).

References
----------
Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of Statistics 6,
1979; Piepho, An Algorithm for a Letter-Based Representation of All-Pairwise Comparisons, Journal of
Computational and Graphical Statistics 13, 2004.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil, comb, isnan, nan
from os.path import basename, isdir
from string import ascii_lowercase
from typing import NamedTuple

import numpy as np

from detap import metrics
from detap.analysis.bootstrap import Draws, draw_weights, leave_out, resampled, standard_error
from detap.analysis.comparison import difference, require_comparable, require_result
from detap.analysis.intervals import Interval, check_arguments, interval_notes
from detap.analysis.power import Criterion
from detap.decimals import nearly_equal
from detap.display import Displayed
from detap.errors import Note, UsageError
from detap.evaluation.results import Result
from detap.evaluation.selection import Selection
from detap.metrics.metric import MetricSpec
from detap.protocols import Protocol
from detap.protocols.summary import DEFAULT_MIN_GROUND_TRUTHS
from detap.text_input import join_names, quote, suggest

_LEAST, _MOST = 1000, 10_000  # bounds of the default number of resamples
_LIMIT = 1_000_000  # of `--resamples`
_SUFFIX = re.compile(r"(?<=.)\.[^.]+(\.(gz|bz2|xz|zst))?$")  # also of a compressed file


class Detector(NamedTuple):
    """The metrics of one detector, without its boxes."""

    name: str
    summary: Mapping[str, float]  # the compared metric first
    by_class: Mapping[str, float]  # the compared metric of each class
    counts: Mapping[str, int]  # ground truths of each class for this metric
    detections: int
    draws: Draws  # the compared metric; empty without intervals

    @property
    def value(self) -> float:
        """The compared metric."""
        return next(iter(self.summary.values()))


class Pair(NamedTuple):
    """Two detectors, in the JSON report the better one first."""

    first: str
    second: str
    difference: float  # second minus first
    low: float  # of the interval; NaN without one
    high: float
    p: float  # two-sided; NaN without an interval
    adjusted_p: float  # by Holm's method
    min_detectable_difference: float  # NaN if all resamples are equal


class Settings(NamedTuple):
    """The settings of the intervals."""

    confidence: float = 0.95
    resamples: int = _LEAST  # 0 for none
    seed: int = 0
    min_ground_truths: int = DEFAULT_MIN_GROUND_TRUTHS


@dataclass(frozen=True, repr=False, slots=True, eq=False)
class Detectors(Displayed):
    """Several detectors on the same ground truth, the best first."""

    detectors: tuple[Detector, ...]
    metric: MetricSpec  # by which they are ranked
    reference: str
    pairs: tuple[Pair, ...]
    groups: dict[str, tuple[str, ...]]  # by letter; empty without intervals
    protocol: Protocol
    signature: str
    selection: Selection | None
    images: int
    settings: Settings

    def __repr__(self) -> str:
        best, count = self.detectors[0], len(self.detectors)
        value = f"{self.metric.name}={best.value:.4f}"
        return f"Detectors({count} detectors, best {best.name!r}: {value})"

    def __getitem__(self, name: str) -> Detector:
        """Return a detector by name."""
        return {one.name: one for one in self.detectors}[name]

    @property
    def names(self) -> tuple[str, ...]:
        """The names, the best detector first."""
        return tuple(one.name for one in self.detectors)

    def rank(self, name: str) -> int:
        """Return the rank, from 1; equal detectors have the same."""
        before, value = self.detectors[: self.names.index(name)], self[name].value
        return 1 + sum(not (isnan(one.value) or nearly_equal(one.value, value)) for one in before)

    def interval(self, name: str) -> Interval:
        """Return the interval of the metric; NaN without one."""
        return self[name].draws.interval(self.settings.confidence)

    def to_reference(self, name: str) -> Pair:
        """Return the difference of a detector to the reference."""
        return _pair(self[self.reference], self[name], self.settings.confidence)

    def letters(self, name: str) -> str:
        """Return the letters of the groups of a detector."""
        return "".join(letter for letter, names in self.groups.items() if name in names)

    @property
    def by_class(self) -> dict[str, dict[str, float]]:
        """The metric by class and detector, of classes where some detector defines it."""
        values = [(name, v) for one in self.detectors for name, v in one.by_class.items()]
        return {
            name: {one.name: one.by_class.get(name, nan) for one in self.detectors}
            for name in dict.fromkeys(name for name, value in values if not isnan(value))
        }

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on a missing interval, and on too few resamples for letters."""
        confidence, resamples, _, min_ground_truths = self.settings
        if not resamples:
            return ()
        if not self.groups:
            fewest = min(sum(one.counts.values()) for one in self.detectors)
            counts = {self.metric.name: fewest} if self.metric.metric.has_intervals else {}
            return interval_notes([self.metric.name], counts, min_ground_truths)
        # Too few if the smallest p-value that they can have is not significant.
        unresolved = sum(
            pair.adjusted_p > 1 - confidence
            and (self[pair.second].draws - self[pair.first].draws).beyond == 0
            for pair in self.pairs
        )
        enough = max(default_resamples(len(self.detectors), confidence), 10 * resamples)
        if not unresolved or enough > _LIMIT:
            return ()
        message = (
            f"pairs of detectors differ in all of {resamples:,} resamples, but these are too few "
            f"for significance at the {100 * confidence:g}% level; use --resamples {enough}"
        )
        return (Note("too-few-resamples", message, unresolved),)


def default_resamples(count: int, confidence: float) -> int:
    """Return the number of resamples for a number of detectors: 1,000 for up to four."""
    # So many that the smallest adjusted p-value is below 1 - confidence: a quarter of it if the
    # tail were normal; that of Student's t makes the p-value three times as large where twenty
    # images have influence.
    return min(max(_LEAST, 1000 * ceil(8 * comb(count, 2) / (1 - confidence) / 1000)), _MOST)


def rank_detectors(
    results: Iterable[tuple[str, Result]],
    settings: Settings,
    *,
    reference: str | None = None,
    metric: str | None = None,
    threads: int | None = None,
) -> Detectors:
    """Rank detectors by a metric; the results are taken one at a time, and not kept."""
    confidence, resamples, seed, min_ground_truths = settings
    check_arguments(confidence, max(resamples, 1), seed)
    detectors: list[Detector] = []
    for name, result in results:
        require_result(result)
        if not detectors:
            first = name, result.protocol, result.images
            data = result.protocol, result.signature, result.selection, len(result.images)
            primary, *_ = metrics.summary(result.protocol)
            spec = primary if metric is None else metrics.named(result.protocol, metric)
            has_intervals = resamples and spec.metric.has_intervals
            weights = leave_out(draw_weights(max(len(result.images), 1), max(resamples, 1), seed))
        require_comparable(first, (name, result.protocol, result.images))
        counts, draws = result.ground_truth_counts(spec.name), Draws()
        if has_intervals and counts.sum() >= min_ground_truths:
            draws = resampled(result, weights, [spec.name], threads=threads).of(spec.name)
        summary = {spec.name: result.metric(spec.name), **result.summary}
        columns = result.metric_by_class(spec.name), counts
        by_class, counted = (dict(zip(result.classes, c.tolist(), strict=True)) for c in columns)
        detections = int(result.detections_count.sum())
        detectors.append(Detector(name, summary, by_class, counted, detections, draws))
        del result  # before the next one is made
    sign = -1 if spec.metric.higher_is_better else 1
    detectors.sort(key=lambda one: (isnan(one.value), sign * one.value))  # undefined ones last
    names = [one.name for one in detectors]
    pairs = [_pair(*two, confidence) for two in combinations(detectors, 2)]
    adjusted = holm([pair.p for pair in pairs])
    pairs = [pair._replace(adjusted_p=p) for pair, p in zip(pairs, adjusted, strict=True)]
    apart = [(pair.first, pair.second) for pair in pairs if pair.adjusted_p <= 1 - confidence]
    has_groups = all(len(one.draws.drawn) for one in detectors)
    groups = letter_groups(names, apart) if has_groups else {}
    reference = names[0] if reference is None else reference
    return Detectors(tuple(detectors), spec, reference, tuple(pairs), groups, *data, settings)


def _pair(first: Detector, second: Detector, confidence: float) -> Pair:
    """Compare two detectors, without adjustment of the p-value; NaN without intervals."""
    draws = second.draws - first.draws
    change, p = difference(first.value, second.value), draws.p_value()
    detectable = Criterion(confidence).min_detectable_drop(standard_error(draws.drawn))
    ends = draws.interval(confidence)
    return Pair(first.name, second.name, change, *ends, p, p, detectable)


def check_names(names: Sequence[str], reference: str | None = None) -> None:
    """Raise UsageError if two names are equal, or the reference is none of them."""
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise UsageError(
            f"two detectors are named {quote(name)}; name one of them: NAME=PATH (in Python, a "
            "mapping of names)"
        )
    if reference is not None and reference not in names:
        hint = suggest(reference, names) or f"the detectors are {join_names(names)}"
        raise UsageError(f"no detector is named {quote(reference)}; {hint}")


def holm(values: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Holm's method; undefined ones remain so, and do not count."""
    p = np.array(values)
    order, adjusted = np.argsort(p), np.zeros(len(p))  # undefined ones last
    factors = np.count_nonzero(~np.isnan(p)) - np.arange(len(p))
    adjusted[order] = np.minimum(1, np.maximum.accumulate(factors * p[order]))
    return adjusted.tolist()


def letter_groups(
    names: Sequence[str], apart: Iterable[tuple[str, str]]
) -> dict[str, tuple[str, ...]]:
    """Return the largest groups of names without a pair that is apart, by insertion and absorption.

    The groups are in the order of their names, and their letters a, b, ..., z, a2, b2, ...
    """
    groups = {frozenset(names)}
    for pair in map(frozenset, apart):
        split = [group for group in groups if pair <= group]
        groups = groups.difference(split) | {group - {one} for group in split for one in pair}
        groups = {one for one in groups if not any(one < other for other in groups)}
    members = [tuple(name for name in names if name in group) for group in groups]
    members.sort(key=lambda group: [names.index(name) for name in group])
    letters = [f"{a}{n}" for n in ("", *range(2, 2 + len(members) // 26)) for a in ascii_lowercase]
    return dict(zip(letters, members, strict=False))


def name_of(path: str) -> str:
    """Return the name of a detector by the path of its detections: the stem."""
    name = basename(path.rstrip("/\\"))
    return name if isdir(path) else _SUFFIX.sub("", name) or name


def compare(
    results: Sequence[Result] | Mapping[str, Result],
    *,
    reference: str | None = None,
    metric: str | None = None,
    confidence: float = 0.95,
    resamples: int | None = None,
    seed: int = 0,
    min_ground_truths: int = DEFAULT_MIN_GROUND_TRUTHS,
    threads: int | None = None,
) -> Detectors:
    """Compare detectors that were evaluated on the same ground truth by the same protocol.

    Parameters
    ----------
    results : sequence of Result, or mapping of str to Result
        Two or more. A mapping names them; otherwise names are the stems of the detections' files,
        or numbers from 1.
    reference : str, optional
        The name of the detector to which differences are taken; the best by default.
    metric : str, optional
        The metric by which detectors are ranked; the primary metric by default.
    confidence : float
        Level of the intervals and of significant differences.
    resamples : int, optional
        Number of resamples, 0 for none; by default 1000, or more for five or more detectors.
    seed : int
        Seed of the resamples.
    min_ground_truths : int
        A metric with fewer has no interval.
    threads : int, optional
        All of the machine by default. The values do not depend on it.

    Returns
    -------
    Detectors

    Raises
    ------
    UsageError
        If fewer than two results are given, two names are equal, protocols or images differ, or
        the metric or the reference is unknown.
    """
    if isinstance(results, Mapping):
        named = [*results.items()]
    else:
        named = [(_name_of_result(one, number), one) for number, one in enumerate(results, 1)]
    if len(named) < 2:
        raise UsageError(f"expected two or more results, got {len(named)}")
    check_names([name for name, _ in named], reference)
    if resamples is None:
        resamples = default_resamples(len(named), confidence)
    settings = Settings(confidence, resamples, seed, min_ground_truths)
    return rank_detectors(named, settings, reference=reference, metric=metric, threads=threads)


def _name_of_result(result: Result, number: int) -> str:
    """Return the stem of the detections' file, or a number."""
    require_result(result)
    files = result.detections.files
    return name_of(files[0].path) if files else str(number)
