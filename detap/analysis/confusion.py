"""Confusion matrix of classes.

With the rule ``protocol`` the protocol's matches come first. Then each unmatched detection, by
descending score, matches the unmatched ground truth of another class with the largest IoU at or
above the threshold.

Without scores, these are assigned one to one (:mod:`detap.core.assignment`).

With ``class-agnostic``, as in Ultralytics, there is one pass by descending score: a detection
matches the unmatched ground truth with the largest IoU, whatever its class. Detections that the
protocol ignores take part.
"""

from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from detap.analysis.match_results import Counts, MatchResults
from detap.core.assignment import assign, candidates
from detap.display import Displayed
from detap.errors import UsageError
from detap.evaluation.results import Result
from detap.evaluation.selection import SelectedClasses
from detap.protocols import Protocol
from detap.tables.detection import Integers

Rule = Literal["protocol", "class-agnostic"]


class Cell(NamedTuple):
    """Number of ground truths of one class predicted as another."""

    ground_truth: int
    prediction: int
    pairs: int


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class Confusion(Displayed):
    """Confusion matrix of K classes."""

    rule: Rule
    iou: float
    score_threshold: float | None  # detections below it are left out
    classes: tuple[str, ...]
    matrix: Counts  # (K + 1, K + 1) rows are ground truths, columns detections
    detection: Integers  # (n,)
    ground_truth: Integers  # (n,)

    @property
    def matched(self) -> int:
        """Ground truths matched by a detection of their class: the diagonal."""
        return int(np.trace(self.matrix))

    @property
    def misclassified(self) -> int:
        """Ground truths matched by a detection of another class."""
        return int(self.matrix[:-1, :-1].sum()) - self.matched

    @property
    def missed(self) -> int:
        """Missed ground truths."""
        return int(self.matrix[:-1, -1].sum())

    @property
    def background(self) -> int:
        """Background false positives."""
        return int(self.matrix[-1].sum())

    def largest(self, count: int) -> list[Cell]:
        """Return the largest nonzero off-diagonal cells, at most `count`; ties by row."""
        return off_diagonal(self.matrix[:-1, :-1])[:count]


def off_diagonal(matrix: Counts) -> list[Cell]:
    """Return the nonzero cells off the diagonal, the largest first; ties by row."""
    others = matrix.copy()
    np.fill_diagonal(others, 0)
    rows, columns = np.nonzero(others)
    cells = map(Cell, rows.tolist(), columns.tolist(), others[rows, columns].tolist())
    return sorted(cells, key=attrgetter("pairs"), reverse=True)


def confusion(
    result: Result | MatchResults,
    rule: Rule = "protocol",
    *,
    score: float | None = None,  # detections below it are left out
    iou: float | None = None,  # one of the protocol's thresholds; by default 0.5
) -> Confusion:
    """Compute the confusion matrix of a detector."""
    if rule not in get_args(Rule):
        raise UsageError(f"rule {rule!r} is unknown; choose from {', '.join(get_args(Rule))}")
    results = MatchResults.of(result, iou)
    if results.all_classes is not None:
        full, chosen = results.all_classes
        return _of_classes(confusion(full, rule, score=score), chosen)
    detections, ground_truths = results.boxes
    rows = results.by_score
    if score is not None:
        rows = rows[detections.score[rows] >= score]
    if rule == "protocol":
        rows = rows[results.scored[rows]]
        matched = results.matched_gt[rows]
        unmatched = matched < 0
        free = results.positive.copy()
        free[matched[~unmatched]] = False
        if results.protocol.has_scores:
            matched[unmatched] = _claims(results, rows[unmatched], free, others_only=True)
        else:
            matched[unmatched] = _assigned(results, rows[unmatched], free)
    else:
        matched = _claims(results, rows, results.positive, others_only=False)
    missed = results.positive.copy()
    missed[matched[matched >= 0]] = False
    missed_rows = np.flatnonzero(missed).astype(np.int32)
    background = len(results.classes)
    size = background + 1
    row = np.full(len(rows), background)
    row[matched >= 0] = ground_truths.label[matched[matched >= 0]]
    cells = np.concatenate(
        [
            row * size + detections.label[rows],
            ground_truths.label[missed_rows].astype(np.int64) * size + background,
        ]
    )
    return Confusion(
        rule=rule,
        iou=results.iou,
        score_threshold=score,
        classes=results.classes,
        matrix=np.bincount(cells, minlength=size * size).reshape(size, size),
        detection=np.concatenate([rows, np.full(len(missed_rows), -1, np.int32)]),
        ground_truth=np.concatenate([matched, missed_rows]),
    )


class Misclassifiable(NamedTuple):
    """False positives that could match a ground truth of another class."""

    # With these, the confusion matrix at any score threshold follows without boxes: each at or
    # above it, in this order, matches the first of its candidates that neither a true positive nor
    # a false positive before has matched.
    detection: Integers  # (n,) rows of the detections, by descending score
    candidate_count: NDArray[np.int64]  # (n,)
    candidate: NDArray[np.int64]  # (P,)
    ground_truth: Integers  # (g,) rows of the ground truths
    matched_by: Integers  # (g,) true positive that matches each, or -1


def misclassifiable(results: MatchResults) -> Misclassifiable:
    """Find the false positives that could match a ground truth of another class."""
    if not results.protocol.has_scores:  # one candidate each: the assigned one
        pairs = confusion(results)
        wrong = np.flatnonzero((pairs.detection >= 0) & (pairs.ground_truth >= 0))
        wrong = wrong[results.false_positive[pairs.detection[wrong]]]
        number = np.arange(len(wrong))
        return Misclassifiable(
            pairs.detection[wrong],
            np.ones_like(number),
            number,
            pairs.ground_truth[wrong],
            np.full(len(wrong), -1, np.int32),
        )
    rows = results.by_score[results.false_positive[results.by_score]]
    index, truth = results.ground_truth_index.other_class_candidates(
        results.boxes[0], rows, **_rule_of(results.protocol)
    )
    first, count = np.unique(index, return_counts=True)
    ground_truth, candidate = np.unique(truth, return_inverse=True)
    return Misclassifiable(
        rows[first], count, candidate, ground_truth, results.matched_by[ground_truth]
    )


def _of_classes(full: Confusion, chosen: SelectedClasses) -> Confusion:
    """Return the cells of the selected classes and the background."""
    kept = [*chosen.labels, len(full.classes)]
    rows = [
        np.where(pairs < 0, -1, new_rows[pairs])
        for new_rows, pairs in zip(
            chosen.new_rows, (full.detection, full.ground_truth), strict=True
        )
    ]
    selected = ((full.detection < 0) | (rows[0] >= 0)) & ((full.ground_truth < 0) | (rows[1] >= 0))
    return replace(
        full,
        classes=chosen.classes,
        matrix=full.matrix[np.ix_(kept, kept)],
        detection=rows[0][selected],
        ground_truth=rows[1][selected],
    )


def _claims(
    results: MatchResults, rows: Integers, free: NDArray[np.bool_], *, others_only: bool
) -> Integers:
    return results.ground_truth_index.match(
        results.boxes[0],
        rows,
        free,
        other_classes_only=others_only,
        **_rule_of(results.protocol),
    )


def _assigned(results: MatchResults, rows: Integers, free: NDArray[np.bool_]) -> Integers:
    """Assign ground truths to detections without scores, whatever their class."""
    run, protocol = results.run, results.protocol
    detections, truth = (boxes._replace(label=np.zeros_like(boxes.label)) for boxes in run.boxes())
    among = np.zeros(len(detections.image), np.bool_)
    among[rows] = True
    any_class, inclusive = run.pairs_of_any_class, protocol.inclusive_pixels
    pairs = candidates((detections, truth), False, any_class, inclusive_pixels=inclusive)
    matched, _ = assign(
        pairs.select(among[pairs.detection] & free[pairs.truth]),
        counted=free,
        repeatable=np.zeros(len(free), np.bool_),
        never_false=~among,
        threshold=protocol.search_thresholds[0],
        strict=protocol.strict_iou,
    )
    return matched[rows]


def _rule_of(protocol: Protocol) -> dict[str, Any]:
    """Return the arguments that say which IoU is enough, and which of equal ones counts."""
    return {
        "threshold": protocol.search_thresholds[0],
        "strict": protocol.strict_iou,
        "last_of_equal": protocol.equal_iou == "last",
    }
