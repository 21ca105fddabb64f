"""TIDE error analysis: error types and the AP gained by fixing each (dAP).

The type of a false positive is the first that applies (t is the IoU threshold):

background
    the image has no ground truth;
localization
    the largest IoU with a ground truth of its class is from 0.1 to t;
classification
    the IoU with a ground truth of another class is at least t;
duplicate
    the IoU with a matched ground truth of its class is at least t;
background
    the IoU with every ground truth is at most 0.1;
both
    none of these: it is near a ground truth of another class.

A localization or classification error is attributed to its target ground truth. An unmatched
ground truth without an attributed error is missed. The best-scored error of an unmatched target
fixes it.

Fixing localization and classification errors makes those that fix their target true positives, with
the target's class and their own score, and deletes the others. Fixing both, duplicate and
background errors deletes them. Fixing missed errors deletes the ground truths. Two more types
delete all false positives, and all unmatched ground truths.

References
----------
Bolya, Foley, Hays and Hoffman, TIDE: A General Toolbox for Identifying Object Detection Errors,
ECCV 2020. The convention ``tidecv`` is that of tidecv 1.0.1; ``protocol`` uses the matching of the
protocol. docs/analysis.md describes the differences.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from detap.analysis.match_results import (
    NOT_ANALYZED,
    USUAL_IOU,
    Counts,
    MatchResults,
    ground_truth_index,
)
from detap.core.curves import average_precisions, count_above, mean_of_defined
from detap.core.nearest import CLASSIFICATION, LOCALIZATION
from detap.display import Displayed
from detap.errors import UsageError
from detap.evaluation.results import Result
from detap.evaluation.run import EvaluationRun
from detap.evaluation.selection import SelectedClasses
from detap.metrics.metric import averages_of_absent
from detap.protocols import ANY_AREA, Protocol
from detap.tables.detection import Flags, Floats, Integers

TYPES = (
    "classification",
    "localization",
    "both",
    "duplicate",
    "background",
    "missed",
    "false_positives",
    "false_negatives",
)
"""Error types, in the order of every array."""

ACROSS = TYPES[6:]  # types that combine others
NEAR = 0.1  # IoU below which a detection is a background error
Convention = Literal["protocol", "tidecv"]

_MISSED, _FALSE_POSITIVES, _FALSE_NEGATIVES = 5, 6, 7  # after those of detap.core.nearest
_TIDECV_LIMIT = 100


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class Errors(Displayed):
    """The errors of a detector. 8 types, K classes, N detections, G ground truths."""

    convention: Convention
    iou: float  # the IoU threshold
    classes: tuple[str, ...]
    average_precision: float  # AP at this threshold under the convention, from 0 to 1
    average_precision_by_class: Floats  # (K,) NaN where undefined
    delta_ap: Floats  # (8,) dAP, in the order of `TYPES`
    delta_ap_by_class: Floats  # (8, K) dAP of each class; NaN if undefined before or after
    count: Counts  # (8,)
    count_by_class: Counts  # (8, K) by the class of the detection, or of the unmatched ground truth
    kind: NDArray[np.int8]  # (N,) index into `TYPES` of each detection; -1 if it is not an error
    target: Integers  # (N,)
    similarity: Floats  # (N,) IoU or OKS with the target, or 0
    fixes_target: Flags  # (N,) fixing makes it a true positive
    missed: Flags  # (G,)
    unmatched: Flags  # (G,)

    def by_delta_ap(self) -> list[str]:
        """Return the six types that do not combine others, by descending dAP."""
        order = np.argsort(-np.nan_to_num(self.delta_ap[: _MISSED + 1]), kind="stable")
        return [TYPES[index] for index in order]

    def of_type(self, name: str) -> tuple[float, int]:
        """Return the dAP and the count of a type."""
        if name not in TYPES:
            raise KeyError(name)
        index = TYPES.index(name)
        return float(self.delta_ap[index]), int(self.count[index])


def errors(
    result: Result | MatchResults,
    convention: Convention = "protocol",
    *,
    iou: float | None = None,
    score: float | None = None,
) -> Errors:
    """Classify the errors of a detector by type, or count those at or above a score."""
    if convention not in get_args(Convention):
        raise UsageError(
            f"convention {convention!r} is unknown; choose from {', '.join(get_args(Convention))}"
        )
    if convention == "protocol":
        results = MatchResults.of(result, iou).above(score)
        if results.all_classes is None:
            return _Analysis(results, "protocol", results.false_positive).errors()
        everything, selected = results.all_classes
        analysis = _Analysis(everything, "protocol", everything.false_positive)
        return _of_classes(analysis.errors(selected.labels), selected)
    if isinstance(result, MatchResults):
        raise UsageError("convention tidecv has its own matching; pass a Result")
    run, whole = result._run, result.full or result
    results, wrong, rows = _as_tidecv(whole, iou)
    if score is not None:
        results, wrong = results.above(score), wrong & (results.boxes[0].score >= score)
    analysis, count = _Analysis(results, "tidecv", wrong), len(whole.ground_truth)
    if not isinstance(run, SelectedClasses):
        return _on_all_rows(analysis.errors(), rows, count)
    return _of_classes(_on_all_rows(analysis.errors(run.labels), rows, count), run)


class _Analysis:
    """Error types of detections, and AP by class before and after fixing each type."""

    def __init__(self, results: MatchResults, convention: Convention, wrong: Flags) -> None:
        self.results = results
        self.convention = convention
        self.kind, self.target, self.similarity = results.ground_truth_index.error_types(
            results.boxes[0],
            np.flatnonzero(wrong).astype(np.int32),
            background_iou=NEAR,
            threshold=results.protocol.search_thresholds[0],
            strict=results.protocol.strict_iou,
            threads=results.run.threads,
        )
        self.unmatched = results.positive & ~results.matched
        has_target = (self.kind == LOCALIZATION) | (self.kind == CLASSIFICATION)
        candidates = np.flatnonzero(has_target).astype(np.int32)
        target = self.target[candidates]
        self.missed = self.unmatched.copy()
        self.missed[target] = False
        unmatched_target = self.unmatched[target]
        self.fixing = results.match_table.best_of_groups(
            candidates[unmatched_target], target[unmatched_target], len(self.unmatched)
        )
        self.levels = np.array(results.protocol.recall_levels)
        rows = results.match_table.ranking.rows
        self.ranked_kind = self.kind[rows]
        self.typed = self._of_classes()
        self.ranked_kind[~results.false_positive[rows]] = -1
        self.false = self._of_classes()
        positions = np.flatnonzero(results.true_positive[rows]).astype(np.int32)
        labels = results.boxes[0].label[rows[positions]]
        self._rank(positions, labels, np.full(len(positions), -1, np.int8))
        detected = results.by_class(results.boxes[0].label) > 0
        self.before = averages_of_absent(results.protocol, detected)  # without ground truths
        self.before = self._after(None)
        if convention == "tidecv":  # tidecv ranks errors first among tied scores
            positions = self._ends_of_ties(positions)
        fixed_labels = results.boxes[1].label[self.target[self.fixing]]
        fixed_positions = results.match_table.rank_positions(self.fixing, fixed_labels)
        kind = np.append(np.full(len(positions), -1, np.int8), self.kind[self.fixing])
        positions = np.concatenate([positions, fixed_positions])
        labels = np.concatenate([labels, fixed_labels])
        # Nearly sorted: a stable sort of one key is much faster than a lexsort of two.
        order = np.argsort(labels * (len(rows) + np.int64(1)) + positions, kind="stable")
        self._rank(positions[order], labels[order], kind[order])

    def errors(self, labels: Sequence[int] | None = None) -> Errors:
        """Return the errors with metrics of some classes and the rows of all."""
        results, chosen = self.results, slice(None) if labels is None else list(labels)
        missed, unmatched = (
            results.by_class(results.boxes[1].label[rows]) for rows in (self.missed, self.unmatched)
        )
        false = self.false.sum(axis=0)
        count_by_class = np.array([*self.typed, missed, false, unmatched], np.int64)[:, chosen]
        fixes_target = np.zeros(len(self.kind), np.bool_)
        fixes_target[self.fixing] = True
        before = self.before[chosen]
        changed = np.array([self._after(k) for k in range(len(TYPES))])[:, chosen]
        change = np.array([mean_of_defined(after) for after in changed]) - mean_of_defined(before)
        if self.convention == "tidecv":
            change[: _MISSED + 1] = np.maximum(change[: _MISSED + 1], 0.0)
        return Errors(
            convention=self.convention,
            iou=results.iou,
            classes=tuple(np.array(results.classes, object)[chosen].tolist()),
            average_precision=mean_of_defined(before),
            average_precision_by_class=before,
            delta_ap=change,
            delta_ap_by_class=changed - before,
            count=count_by_class.sum(axis=1),
            count_by_class=count_by_class,
            kind=self.kind,
            target=self.target,
            similarity=self.similarity,
            fixes_target=fixes_target,
            missed=self.missed,
            unmatched=self.unmatched,
        )

    def _rank(self, positions: Integers, labels: Integers, fixed: NDArray[np.int8]) -> None:
        """Take what is relevant: always (-1), or where errors of a type are repaired."""
        self.labels, self.repaired = labels, fixed
        self.above = self._above(self._begin(labels), positions)

    def _begin(self, labels: Integers) -> Integers:
        return np.searchsorted(labels, np.arange(len(self.results.classes) + 1)).astype(np.int32)

    def _above(self, begin: Integers, positions: Integers) -> Integers:
        start = self.results.match_table.ranking.start
        return count_above(self.ranked_kind, start, begin, positions, _MISSED)

    def _of_classes(self) -> Integers:
        start = self.results.match_table.ranking.start
        return self._above(np.arange(len(start), dtype=np.int32), start[1:])

    def _ends_of_ties(self, positions: Integers) -> Integers:
        """Return the end of each position's tie group in the ranking by class."""
        ranking = self.results.match_table.ranking
        score = self.results.boxes[0].score[ranking.rows]
        ends = np.ones(len(score) + 1, np.bool_)
        ends[1:-1] = score[1:] != score[:-1]
        ends[ranking.start] = True
        after = np.flatnonzero(ends).astype(np.int32)
        return after[np.searchsorted(after, positions, side="right")]

    def _after(self, error_type: int | None) -> Floats:
        """Compute the AP of each class after fixing a type, (K,) float64; NaN if undefined."""
        hits, false = self.above.sum(axis=0, dtype=np.int32), self.false.sum(axis=0)
        positives = self.results.ground_truth_counts
        selected = self.repaired < 0
        if error_type == _FALSE_POSITIVES:  # deleted, they rank above no true positive
            hits[:] = 0
        elif error_type in (_MISSED, _FALSE_NEGATIVES):
            unmatched = self.missed if error_type == _MISSED else self.unmatched
            positives = positives - self.results.by_class(self.results.boxes[1].label[unmatched])
        elif error_type is not None:
            hits -= self.above[error_type]
            false -= self.false[error_type]
            selected |= self.repaired == error_type
        protocol, begin = self.results.protocol, self._begin(self.labels[selected])
        values = average_precisions(
            hits[selected],
            begin,
            positives,
            levels=self.levels if len(self.levels) else None,
            summing=protocol.summing,
            precision_eps=protocol.precision_eps,
        )
        if self.convention == "tidecv":
            values[(positives == 0) & (false + np.diff(begin) > 0)] = 0.0
            return values
        # A class left without ground truths by a fix keeps its AP.
        return np.where(positives > 0, values, self.before)


def _as_tidecv(result: Result, iou: float | None) -> tuple[MatchResults, Flags, Integers]:
    """Match as tidecv; return the results, flags of errors and the ground-truth rows used."""
    # Ground truths that the protocol ignores are ignore regions. They are not matched; an unmatched
    # detection that one of them covers is ignored.
    result.protocol.require_score_matching(NOT_ANALYZED)
    result.protocol.require_boxes("type the errors by the protocol: --errors")
    result.protocol.refuse_lists("type the errors by the protocol: --errors")
    run = result._run
    protocol = Protocol(
        name=result.protocol.name,
        iou_thresholds=(USUAL_IOU if iou is None else iou,),
        candidate="best-unmatched",
        equal_iou="first",
        area_ranges=(ANY_AREA,),
        max_dets=(_TIDECV_LIMIT,),
        max_dets_scope="image",
        tie_break="image",
        interpolation="101-point",
        recall_grid="hundredths",
        class_agnostic=result.protocol.class_agnostic,
    )
    kept = np.flatnonzero(~run.ignored).astype(np.int32)
    ground_truths = run.ground_truth.select(kept)
    run_without_ignored = EvaluationRun(
        ground_truths, run.detections, protocol, run.threads, prepared=True
    )
    results = MatchResults.of(
        replace(result, protocol=protocol, _run=run_without_ignored, _match_table=None),
        protocol.iou_thresholds[0],
    )
    wrong = results.false_positive
    if len(kept) < len(run.ignored):  # false positives that a region of their class covers
        rows = np.flatnonzero(wrong).astype(np.int32)
        plain = replace(run.protocol, inclusive_pixels=False)
        box_run = EvaluationRun(run.ground_truth, run.detections, plain, run.threads, prepared=True)
        ignore_regions = ground_truth_index(box_run, run.ignored, crowd=True)
        nearest = ignore_regions.nearest(results.boxes[0], rows, threads=run.threads)
        covered = np.zeros(len(wrong), np.bool_)
        covered[rows[nearest.same_class_similarity > results.iou]] = True
        results = replace(results, ignored=covered)
    return results, wrong, kept


def _of_classes(full: Errors, chosen: SelectedClasses) -> Errors:
    """Select the rows of some classes; a target of another class becomes -1."""
    target = chosen.new_rows[1][full.target[chosen.rows]]
    return replace(
        full,
        kind=full.kind[chosen.rows],
        target=target,
        similarity=np.where(target < 0, 0.0, full.similarity[chosen.rows]),
        fixes_target=full.fixes_target[chosen.rows] & (target >= 0),
        missed=full.missed[chosen.ground_truths],
        unmatched=full.unmatched[chosen.ground_truths],
    )


def _on_all_rows(partial: Errors, rows: Integers, count: int) -> Errors:
    """Convert rows of some ground truths to rows of all `count`."""

    def spread(flags: Flags) -> Flags:
        full = np.zeros(count, np.bool_)
        full[rows] = flags
        return full

    target = np.append(rows, np.int32(-1))[partial.target]  # index -1 gives -1
    return replace(
        partial, target=target, missed=spread(partial.missed), unmatched=spread(partial.unmatched)
    )
