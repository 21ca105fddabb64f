"""Which errors a detector makes, and what average precision each type of them costs.

Each false positive is of one type, the first of these that holds (t is the IoU threshold):

background
    there is no ground truth in its image;
localization
    its largest overlap with a ground truth of its class is from 0.1 to t;
classification
    its overlap with a ground truth of another class reaches t;
duplicate
    its overlap with a ground truth of its class that another detection has taken reaches t;
background
    it overlaps no ground truth by more than 0.1;
both
    none of these: it is somewhere near a ground truth of another class.

A ground truth that is not found is missed where no localization or classification error aims at
it; otherwise the best-scored of those owns it.

What a type costs is what average precision would gain were its errors repaired. Localisation and
classification: the owners become true positives, of the ground truth's class and with their own
score, and the others are deleted. Both, duplicate and background: they are deleted. Missed: these
ground truths are. Two more look across types: all false positives deleted, all ground truths that
were not found deleted.

References
----------
Bolya, Foley, Hays and Hoffman, TIDE: A General Toolbox for Identifying Object Detection Errors,
ECCV 2020. The convention ``tidecv`` is that of its tidecv 1.0.1; ``protocol`` asks the same of the
protocol in force. docs/analysis.md says how they differ.
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
from detap.core._curves import count_above
from detap.core.curves import average_precisions, mean_of_defined
from detap.core.nearest import CLASSIFICATION, LOCALIZATION
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
"""The types of errors, in the order of every array."""

ACROSS = TYPES[6:]
"""Those that look across the others."""

NEAR = 0.1
"""The overlap below which a detection is on the background."""

Convention = Literal["protocol", "tidecv"]

_MISSED, _FALSE_POSITIVES, _FALSE_NEGATIVES = 5, 6, 7  # after those of detap.core.nearest
_TIDECV_LIMIT = 100


@dataclass(frozen=True, eq=False, kw_only=True)
class Errors:
    """The errors of a detector. 8 types, K classes, N detections, G ground truths.

    Attributes
    ----------
    convention : {"protocol", "tidecv"}
    iou : float
        The IoU threshold.
    classes : tuple of K str
    average_precision : float
        At this threshold, as the convention takes it, from 0 to 1.
    average_precision_by_class : (K,) float64
        NaN where undefined.
    delta_ap : (8,) float64
        What AP would gain, in the order of :data:`TYPES`.
    delta_ap_by_class : (8, K) float64
        The same for the AP of each class; NaN where undefined before or after.
    count : (8,) int64
    count_by_class : (8, K) int64
        By the class of the detection, or of the ground truth that is not found.
    kind : (N,) int8
        The type of each detection, an index into :data:`TYPES`; -1 where it is no error.
    target : (N,) int32
        The ground truth that a localization or classification error aims at, or the one that a
        duplicate stands on; -1 for others, and if that is of a class that is not selected.
    similarity : (N,) float64
        With the target, 0 where there is none.
    fixes_target : (N,) bool
        Whether the repair makes it a true positive.
    missed, unmatched : (G,) bool
        Ground truths at which no error aims; and all that were not found.
    """

    convention: Convention
    iou: float
    classes: tuple[str, ...]
    average_precision: float
    average_precision_by_class: Floats
    delta_ap: Floats
    delta_ap_by_class: Floats
    count: Counts
    count_by_class: Counts
    kind: NDArray[np.int8]
    target: Integers
    similarity: Floats
    fixes_target: Flags
    missed: Flags
    unmatched: Flags

    def by_delta_ap(self) -> list[str]:
        """Return the six types that do not look across others, the costliest first."""
        order = np.argsort(-np.nan_to_num(self.delta_ap[: _MISSED + 1]), kind="stable")
        return [TYPES[index] for index in order]

    def of_type(self, name: str) -> tuple[float, int]:
        """Return the change and the count of a type.

        Raises
        ------
        KeyError
            Where there is no such type.
        """
        if name not in TYPES:
            raise KeyError(name)
        index = TYPES.index(name)
        return float(self.delta_ap[index]), int(self.count[index])


def errors(
    result: Result | MatchResults, convention: Convention = "protocol", *, iou: float | None = None
) -> Errors:
    """Return the errors of a detector, by type.

    Parameters
    ----------
    result : Result or MatchResults
        For ``tidecv``, which matches by its own rules, a result.
    convention : {"protocol", "tidecv"}
        The protocol in force, with one set of classes for all types; or tidecv's, to the last
        digit.
    iou : float, optional
        The threshold: one of the protocol's, or for ``tidecv`` any. Where left out, .5.

    Raises
    ------
    UsageError
        Where the convention is unknown, the protocol ranks no detections, or has no such threshold.
    """
    if convention not in get_args(Convention):
        raise UsageError(
            f"convention {convention!r} is unknown; choose from {', '.join(get_args(Convention))}"
        )
    if convention == "protocol":
        results = MatchResults.of(result, iou)
        if results.all_classes is None:
            return _Analysis(results, "protocol", results.false_positive).errors()
        everything, selected = results.all_classes
        analysis = _Analysis(everything, "protocol", everything.false_positive)
        return _of_classes(analysis.errors(selected.labels), selected)
    if isinstance(result, MatchResults):
        raise UsageError("the convention tidecv matches by its own rules: give the result")
    run, whole = result._run, result.full or result
    results, wrong, rows = _as_tidecv(whole, iou)
    chosen = run if isinstance(run, SelectedClasses) else None
    result_errors = _Analysis(results, "tidecv", wrong).errors(
        None if chosen is None else chosen.labels
    )
    result_errors = _on_all_rows(result_errors, rows, len(whole.ground_truth))
    return result_errors if chosen is None else _of_classes(result_errors, chosen)


class _Analysis:
    """The types of some detections, and average precision after each repair."""

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

    def errors(self, labels: Sequence[int] | None = None) -> Errors:
        """Return the errors, the numbers of some classes alone; the rows are those of all."""
        results, chosen = self.results, slice(None) if labels is None else list(labels)
        fixes = _Repairs(self)
        missed, unmatched = (
            results.by_class(results.boxes[1].label[rows]) for rows in (self.missed, self.unmatched)
        )
        false = fixes.false.sum(axis=0)
        count_by_class = np.array([*fixes.typed, missed, false, unmatched], np.int64)[:, chosen]
        fixes_target = np.zeros(len(self.kind), np.bool_)
        fixes_target[self.fixing] = True
        before = fixes.before[chosen]
        changed = np.array([fixes.after(k) for k in range(len(TYPES))])[:, chosen]
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


class _Repairs:
    """Average precision by class, before and after repairs.

    What is relevant, a true positive or an owner, is held as its place in the ranking by class; of
    the irrelevant it is enough to know how many of each type stand above it.

    Attributes
    ----------
    typed, false : (5, K) int32
        How many detections are of each type, and how many of these are false positives.
    before : (K,) float64
    """

    def __init__(self, analysis: _Analysis) -> None:
        results = analysis.results
        self.results, self.analysis = results, analysis
        self.levels = np.array(results.protocol.recall_levels)
        rows = results.match_table.ranking.rows
        self.kind = analysis.kind[rows]
        self.typed = self._of_classes()
        self.kind[~results.false_positive[rows]] = -1
        self.false = self._of_classes()
        positions = np.flatnonzero(results.true_positive[rows]).astype(np.int32)
        labels = results.boxes[0].label[rows[positions]]
        self._rank(positions, labels, np.full(len(positions), -1, np.int8))
        self.before = self.after(None)
        if analysis.convention == "tidecv":  # there the errors lead where scores are equal
            positions = self._ends_of_ties(positions)
        self._rank(*self._with_fixed(positions, labels))

    def _with_fixed(
        self, positions: Integers, labels: Integers
    ) -> tuple[Integers, Integers, NDArray[np.int8]]:
        fixing = self.analysis.fixing
        target_labels = self.results.boxes[1].label[self.analysis.target[fixing]]
        labels = np.concatenate([labels, target_labels])
        positions = np.concatenate(
            [positions, self.results.match_table.rank_positions(fixing, target_labels)]
        )
        kind = np.full(len(positions), -1, np.int8)
        kind[len(positions) - len(fixing) :] = self.analysis.kind[fixing]
        # Mostly sorted already: a stable sort of one column takes a fraction of one by two.
        order = np.argsort(labels * (len(self.kind) + np.int64(1)) + positions, kind="stable")
        return positions[order], labels[order], kind[order]

    def _rank(self, positions: Integers, labels: Integers, fixed: NDArray[np.int8]) -> None:
        """Take what is relevant: always (-1), or where errors of a type are repaired."""
        self.labels, self.repaired = labels, fixed
        self.above = self._above(self._begin(labels), positions)

    def _begin(self, labels: Integers) -> Integers:
        return np.searchsorted(labels, np.arange(len(self.results.classes) + 1)).astype(np.int32)

    def _above(self, begin: Integers, positions: Integers) -> Integers:
        start = self.results.match_table.ranking.start
        above = np.zeros((_MISSED, len(positions)), np.int32)
        count_above(self.kind, start, begin, positions, above)
        return above

    def _of_classes(self) -> Integers:
        start = self.results.match_table.ranking.start
        return self._above(np.arange(len(start), dtype=np.int32), start[1:])

    def _ends_of_ties(self, positions: Integers) -> Integers:
        """Return for places in the ranking where those of their class and score end."""
        ranking = self.results.match_table.ranking
        score = self.results.boxes[0].score[ranking.rows]
        ends = np.ones(len(score) + 1, np.bool_)
        ends[1:-1] = score[1:] != score[:-1]
        ends[ranking.start] = True
        after = np.flatnonzero(ends).astype(np.int32)
        return after[np.searchsorted(after, positions, side="right")]

    def after(self, error_type: int | None) -> Floats:
        """Return the average precision of each class once a type is repaired, (K,) float64."""
        hits, false = self.above.sum(axis=0, dtype=np.int32), self.false.sum(axis=0)
        positives = self.results.ground_truth_counts
        selected = self.repaired < 0
        if error_type == _FALSE_POSITIVES:  # below all that is right, they cost nothing
            hits[:] = 0
        elif error_type in (_MISSED, _FALSE_NEGATIVES):
            unmatched = self.analysis.missed if error_type == _MISSED else self.analysis.unmatched
            positives = positives - self.results.by_class(self.results.boxes[1].label[unmatched])
        elif error_type is not None:
            hits -= self.above[error_type]
            false -= self.false[error_type]
            selected |= self.repaired == error_type
        return self._precision(hits[selected], self.labels[selected], false, positives)

    def _precision(
        self, hits: Integers, labels: Integers, false: Counts, positives: Counts
    ) -> Floats:
        """Return the average precision of each class, (K,) float64; NaN of those left out."""
        protocol, begin = self.results.protocol, self._begin(labels)
        values = average_precisions(
            hits,
            begin,
            positives,
            levels=self.levels if len(self.levels) else None,
            summing=protocol.summing,
            precision_eps=protocol.precision_eps,
        )
        if self.analysis.convention == "tidecv":
            values[(positives == 0) & (false + np.diff(begin) > 0)] = 0.0
            return values
        # The classes are fixed before any repair: one left without ground truths stays as it was.
        detected = self.results.by_class(self.results.boxes[0].label) > 0
        before = getattr(self, "before", averages_of_absent(protocol, detected))
        return np.where(positives > 0, values, before)


def _as_tidecv(result: Result, iou: float | None) -> tuple[MatchResults, Flags, Integers]:
    """Return the outcome by tidecv's rules, which detections it types, and the rows it scores.

    The ground truths that the protocol in force leaves out are its ignore regions. They stay out
    of the matching: a detection that has no match leaves AP where one of them covers it.
    """
    result.protocol.require_score_matching(NOT_ANALYZED)
    result.protocol.require_boxes("type the errors by the protocol: --errors")
    result.protocol.refuse_lists("type the errors by the protocol: --errors")
    run = result._run
    protocol = _tidecv_rules(result.protocol, USUAL_IOU if iou is None else iou)
    kept = np.flatnonzero(~run.ignored).astype(np.int32)
    truths = run.ground_truth.select(kept)
    run_without_ignored = EvaluationRun(
        truths, run.detections, protocol, run.threads, prepared=True
    )
    results = MatchResults.of(
        replace(result, protocol=protocol, _source=run_without_ignored, _match_table=None),
        protocol.iou_thresholds[0],
    )
    wrong = results.false_positive
    if len(kept) < len(run.ignored):
        results = replace(results, ignored=_covered(run, results, wrong))
    return results, wrong, kept


def _tidecv_rules(protocol: Protocol, iou: float) -> Protocol:
    return Protocol(
        name=protocol.name,
        iou_thresholds=(iou,),
        candidate="best-unmatched",
        equal_iou="first",
        area_ranges=(ANY_AREA,),
        max_dets=(_TIDECV_LIMIT,),
        max_dets_scope="image",
        tie_break="image",
        interpolation="101-point",
        recall_grid="hundredths",
        class_agnostic=protocol.class_agnostic,
    )


def _covered(run: EvaluationRun, results: MatchResults, wrong: Flags) -> Flags:
    """Return which false positives an ignore region of their class covers."""
    rows = np.flatnonzero(wrong).astype(np.int32)
    plain = replace(run.protocol, inclusive_pixels=False)
    box_run = EvaluationRun(run.ground_truth, run.detections, plain, run.threads, prepared=True)
    ignore_regions = ground_truth_index(box_run, run.ignored, crowd=True)
    similarity = ignore_regions.nearest(
        results.boxes[0], rows, threads=run.threads
    ).same_class_similarity
    covered = np.zeros(len(wrong), np.bool_)
    covered[rows[similarity > results.iou]] = True
    return covered


def _of_classes(full: Errors, chosen: SelectedClasses) -> Errors:
    """Return errors with the rows of the selected classes; a target of another class is -1."""
    target = chosen.new_rows[1][full.target[chosen.rows]]
    return replace(
        full,
        kind=full.kind[chosen.rows],
        target=target,
        similarity=np.where(target < 0, 0.0, full.similarity[chosen.rows]),
        fixes_target=full.fixes_target[chosen.rows] & (target >= 0),
        missed=full.missed[chosen.truths],
        unmatched=full.unmatched[chosen.truths],
    )


def _on_all_rows(partial: Errors, rows: Integers, count: int) -> Errors:
    """Return errors of some ground truths with the rows of all `count` of them."""

    def spread(flags: Flags) -> Flags:
        full = np.zeros(count, np.bool_)
        full[rows] = flags
        return full

    target = (
        np.where(partial.target >= 0, rows[partial.target], -1) if len(rows) else partial.target
    )
    return replace(
        partial, target=target, missed=spread(partial.missed), unmatched=spread(partial.unmatched)
    )
