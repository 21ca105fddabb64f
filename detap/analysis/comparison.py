"""Comparison of two detectors by metric, class, image and error type.

Errors have five types, at one IoU threshold (by default the first) and over all areas:

missed
    an unmatched ground truth;
duplicate
    a false positive whose IoU with a ground truth of its class reaches the threshold;
classification
    one whose IoU with a ground truth of another class does;
localization
    one whose IoU with a ground truth of its class is at least 0.1, but below the threshold;
background
    any other false positive.

Only detections at or above the best-F1 score of their class are counted.

References
----------
Hoiem, Chodpathumwan and Dai, Diagnosing Error in Object Detectors, ECCV 2012; Bolya, Foley, Hays
and Hoffman, TIDE: A General Toolbox for Identifying Object Detection Errors, ECCV 2020, from which
the types and the 0.1 are. The operating point is detap's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from detap.analysis.bootstrap import Draws, Resampled, paired_resamples
from detap.analysis.intervals import interval_notes
from detap.analysis.match_results import Counts, ground_truth_index
from detap.analysis.operating import sweep
from detap.core.match_table import MatchTable
from detap.decimals import nearly_equal
from detap.display import Brief, Displayed
from detap.errors import Note, UsageError
from detap.evaluation.results import Result
from detap.evaluation.run import EvaluationRun
from detap.evaluation.selection import SelectedClasses
from detap.protocols import Protocol
from detap.protocols.summary import DEFAULT_MIN_GROUND_TRUTHS
from detap.tables.detection import Flags, Floats, Integers, Name

KINDS = ("missed", "localization", "duplicate", "classification", "background")

LABELS = {kind: "FN" if kind == "missed" else kind for kind in KINDS}
"""The types in text: of false negatives, TIDE counts fewer as missed."""

_NEAR = 0.1
_MISSED, _MISLOCATED, _DUPLICATE, _CONFUSED, _BACKGROUND = range(5)


@dataclass(frozen=True, repr=False, slots=True, eq=False)
class ErrorCounts(Brief):
    """Number of errors of each type."""

    by_image: Counts  # (I, 5) in the order of `KINDS`
    by_class: Counts  # (K, 5) by the class of the detection for a classification error
    rows: tuple[Integers, Integers, NDArray[np.int64]]  # (n,) image, class and type of each error

    def select_classes(self, labels: Sequence[int]) -> Counts:
        """Count the errors of some classes by image, (I, 5) int64."""
        image, label, kind = self.rows
        kept = np.isin(label, labels)
        return _tally(image[kept], kind[kept], len(self.by_image))


def count_errors(result: Result, *, threshold: int = 0) -> ErrorCounts:
    """Count the errors of a detector by image and by class."""
    protocol, run = result.protocol, result._run
    protocol.require_score_matching("compare with another protocol")
    if result.full is not None and isinstance(run, SelectedClasses):
        image, label, kind = count_errors(result.full, threshold=threshold).rows
        chosen = np.flatnonzero(run.new_labels[label] >= 0)
        label = run.new_labels[label[chosen]]
        return _counted(image[chosen], label, kind[chosen], len(result.images), len(run.labels))
    match_table = result.match_table_for((0, threshold))
    if protocol.has_scores:  # those at or above the best-F1 score of their class
        ranking, positives = match_table.ranking, match_table.ground_truth_counts[0].tolist()
        best = [
            sweep(match_table, threshold, ranking.of_class(label), count).best.score
            for label, count in enumerate(positives)
        ]
        rows = ranking.rows[~match_table.is_ignored(0, threshold, ranking.rows)]
        kept = rows[match_table.score[rows] >= np.array(best)[match_table.label[rows]]]
    else:
        counted = match_table.within_max_dets & ~match_table.is_ignored(0, threshold)
        kept = np.flatnonzero(counted).astype(np.int32)
    correct = match_table.is_true_positive(0, threshold, kept)
    matched = np.zeros(len(match_table.truth_image), np.bool_)
    matched[match_table.matched_gt_at(0, threshold)[kept[correct]]] = True
    missed = np.flatnonzero(match_table.positive[0] & ~matched)
    wrong = kept[~correct]
    kinds = _kinds(run, match_table, wrong, threshold)
    image = np.concatenate([match_table.truth_image[missed], match_table.image[wrong]])
    label = np.concatenate([match_table.truth_label[missed], match_table.label[wrong]])
    kind = np.concatenate([np.full(len(missed), _MISSED), kinds])
    return _counted(image, label, kind, match_table.images, match_table.classes)


def _counted(
    image: Integers, label: Integers, kind: NDArray[np.int64], images: int, classes: int
) -> ErrorCounts:
    by_image, by_class = _tally(image, kind, images), _tally(label, kind, classes)
    return ErrorCounts(by_image, by_class, (image, label, kind))


def _tally(index: Integers, kind: NDArray[np.integer], size: int) -> Counts:
    cells = np.bincount(index.astype(np.int64) * 5 + kind, minlength=5 * size)
    return cells.astype(np.int64).reshape(size, 5)


def _kinds(
    run: EvaluationRun, match_table: MatchTable, wrong: Integers, index: int
) -> NDArray[np.int64]:
    """Return the error type of each false positive."""
    threshold = run.protocol.search_thresholds[index]

    def reaches(values: Floats) -> Flags:
        above: Flags = values > threshold if run.protocol.strict_iou else values >= threshold
        return above

    similarity = match_table.max_iou[wrong]
    kinds = np.full(len(wrong), _BACKGROUND)
    kinds[similarity >= _NEAR] = _MISLOCATED

    below = np.flatnonzero(~reaches(similarity))
    ground_truths = ground_truth_index(run, match_table.positive[0])
    nearest = ground_truths.nearest(run.boxes()[0], wrong[below], threads=run.threads)
    kinds[below[reaches(nearest.other_class_similarity)]] = _CONFUSED
    kinds[reaches(similarity)] = _DUPLICATE
    return kinds


def difference(first: float, second: float) -> float:
    """Return the second value minus the first; 0 if they differ by rounding only."""
    return 0.0 if nearly_equal(first, second) else second - first


@dataclass(frozen=True, repr=False, slots=True, eq=False)
class Comparison(Displayed):
    """Two detectors on the same ground truth."""

    first: Result
    second: Result
    resamples: tuple[Resampled, ...] | None  # of the first and of the second
    confidence: float
    min_ground_truths: int = DEFAULT_MIN_GROUND_TRUTHS

    def __repr__(self) -> str:
        return f"Comparison({self.first!r}, {self.second!r})"

    def counted(self, name: str, label: int | None = None) -> int:
        """Return the number of ground truths of a metric or of one class."""
        counts = self.first.ground_truth_counts(name)
        return int(counts.sum() if label is None else counts[label])

    def draws(self, name: str, label: int | None = None) -> Draws:
        """Return the difference of a metric, or a class's; empty without an interval."""
        if self.resamples is None or name not in self.resamples[0].overall:
            return Draws()
        if self.counted(name, label) < self.min_ground_truths:
            return Draws()
        first, second = (one.of(name, label) for one in self.resamples)
        return second - first

    def interval(self, name: str, label: int | None = None) -> tuple[float, float]:
        """Return the interval of a metric's difference; NaN without one."""
        return self.draws(name, label).interval(self.confidence)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on metrics without an interval."""
        if self.resamples is None:
            return ()
        counts = {name: self.counted(name) for name in self.resamples[0].overall}
        return interval_notes([*self.first.summary], counts, self.min_ground_truths)


def compare(
    first: Result,
    second: Result,
    *,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    min_ground_truths: int = DEFAULT_MIN_GROUND_TRUTHS,
    threads: int | None = None,
) -> Comparison:
    """Compare two detectors that were scored on the same ground truth by the same protocol."""
    require_result(first)
    require_result(second)
    files = [result.detections.files[:1] for result in (first, second)]
    labels = [file.path for (file,) in files] if all(files) else ["first", "second"]
    require_comparable(
        (labels[0], first.protocol, first.images), (labels[1], second.protocol, second.images)
    )
    if first.classes != second.classes:
        raise UsageError("the two results have different classes; use align_classes")
    pair = None
    if resamples:
        pair = paired_resamples(first, second, resamples=resamples, seed=seed, threads=threads)
    return Comparison(first, second, pair, confidence, min_ground_truths)


def require_comparable(
    first: tuple[str, Protocol, tuple[Name, ...]], second: tuple[str, Protocol, tuple[Name, ...]]
) -> None:
    """Raise UsageError if two results, by name, protocol and images, cannot be compared."""
    (name, protocol, images), (other, other_protocol, other_images) = first, second
    if protocol.has_scores != other_protocol.has_scores:
        scored, unscored = (name, other) if protocol.has_scores else (other, name)
        raise UsageError(
            f"{unscored!r} has no scores, and {scored!r} has; compare detections that all have "
            "scores, or none"
        )
    if protocol != other_protocol or images != other_images:
        what = "images" if protocol == other_protocol else "protocols"
        raise UsageError(f"the results of {name!r} and {other!r} are of different {what}")


def require_result(value: object) -> None:
    """Raise UsageError for anything but a result."""
    if not isinstance(value, Result):
        kind = type(value).__name__
        raise UsageError(f"expected Result, got {kind}; detap.evaluate returns it")
