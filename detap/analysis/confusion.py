"""Confusion matrix of classes.

With the rule ``protocol`` the protocol's matches come first. Then each unmatched detection, by
descending score, matches the unmatched ground truth of another class with the largest IoU at or
above the threshold.

With ``class-agnostic``, as in Ultralytics, there is one pass by descending score: a detection
matches the unmatched ground truth with the largest IoU, whatever its class. Detections that the
protocol ignores take part.
"""

from dataclasses import dataclass, replace
from heapq import nlargest
from operator import attrgetter
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from detap.analysis.match_results import Counts, MatchResults
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
    """Confusion matrix of K classes.

    Attributes
    ----------
    rule : {"protocol", "class-agnostic"}
    iou : float
    score_threshold : float or None
        Detections below it are left out.
    classes : tuple of K str
    matrix : (K + 1, K + 1) int64
        Rows are ground truths, columns detections. The last row has the background false positives,
        the last column the missed ground truths.
    detection, ground_truth : (n,) int32
        The counted pairs, as rows of the tables: (r, -1) for a background false positive, (-1, r)
        for a missed ground truth.
    """

    rule: Rule
    iou: float
    score_threshold: float | None
    classes: tuple[str, ...]
    matrix: Counts
    detection: Integers
    ground_truth: Integers

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
        inner = self.matrix[:-1, :-1].copy()
        np.fill_diagonal(inner, 0)
        rows, columns = np.nonzero(inner)
        cells = map(Cell, rows.tolist(), columns.tolist(), inner[rows, columns].tolist())
        return nlargest(count, cells, key=attrgetter("pairs"))


def confusion(
    result: Result | MatchResults,
    rule: Rule = "protocol",
    *,
    score: float | None = None,
    iou: float | None = None,
) -> Confusion:
    """Compute the confusion matrix of a detector.

    Parameters
    ----------
    result : Result or MatchResults
    rule : {"protocol", "class-agnostic"}
    score : float, optional
        Detections below it are left out.
    iou : float, optional
        One of the protocol's thresholds; by default 0.5.

    Raises
    ------
    UsageError
        If the rule is unknown, the protocol does not match by score, or does not have the
        threshold.
    """
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
        matched = matched.copy()
        matched[unmatched] = _claims(results, rows[unmatched], free, others_only=True)
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
    """False positives that could match a ground truth of another class.

    With these, the confusion matrix at any score threshold follows without boxes: each false
    positive at or above it, in this order, matches the first of its candidates that no true
    positive at or above it has matched, and no false positive before.

    Attributes
    ----------
    detection : (n,) int32
        Rows of the detections, by descending score.
    candidate_count : (n,) int64
    candidate : (P,) int64
        The candidates of each, as indices into `ground_truth`, in the order in which they are
        tried.
    ground_truth : (g,) int32
        Rows of the ground truths.
    matched_by : (g,) int32
        True positive that matches each, or -1.
    """

    detection: Integers
    candidate_count: NDArray[np.int64]
    candidate: NDArray[np.int64]
    ground_truth: Integers
    matched_by: Integers


def misclassifiable(results: MatchResults) -> Misclassifiable:
    """Find the false positives that could match a ground truth of another class."""
    rows = results.by_score[results.false_positive[results.by_score]]
    candidates = results.ground_truth_index.other_class_candidates(
        results.boxes[0], rows, **_rule_of(results.protocol)
    )
    first, count = np.unique(candidates.row_index, return_counts=True)
    ground_truth, candidate = np.unique(candidates.ground_truth, return_inverse=True)
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


def _rule_of(protocol: Protocol) -> dict[str, Any]:
    """Return the arguments that say which IoU is enough, and which of equal ones counts."""
    return {
        "threshold": protocol.search_thresholds[0],
        "strict": protocol.strict_iou,
        "last_of_equal": protocol.equal_iou == "last",
    }
