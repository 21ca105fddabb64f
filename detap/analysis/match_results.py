"""Match results at one IoU threshold over all areas, the input of all analyses."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from detap.core.arrays import Boxes
from detap.core.match_table import MatchTable
from detap.core.nearest import GroundTruthIndex, PairedGroundTruthIndex
from detap.display import Brief
from detap.errors import UsageError
from detap.evaluation.results import Result
from detap.evaluation.run import EvaluationRun
from detap.evaluation.selection import SelectedClasses
from detap.protocols import Protocol
from detap.tables.detection import Flags, Floats, Integers

Counts = NDArray[np.int64]

NOT_ANALYZED = "analyze with another protocol"  # hint for a protocol that does not match by score
USUAL_IOU = 0.5


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class MatchResults(Brief):
    """Match results of N detections and G ground truths of K classes."""

    run: EvaluationRun
    threshold: int  # the IoU threshold, as an index into those of the result's protocol
    matched_gt: Integers  # (N,) ground truth matched to each detection, or -1
    ignored: Flags  # (N,) a detection is neither a true nor a false positive
    within_max_dets: Flags  # (N,) a detection is within max dets
    positive: Flags  # (G,) a ground truth is not ignored
    match_table: MatchTable  # source of these columns
    result: Result  # result with this match table
    min_score: float | None = None  # detections below it are ignored

    @classmethod
    def of(cls, result: "Result | MatchResults", iou: float | None = None) -> "MatchResults":
        """Return the match results of a result."""
        if isinstance(result, MatchResults):
            return result
        return _adapted(result, threshold_of(result.protocol, iou))

    @cached_property
    def all_classes(self) -> "tuple[MatchResults, SelectedClasses] | None":
        """Results of all classes, and the selection; None if all classes are reported."""
        if self.result.full is None:
            return None
        chosen = self.result._run
        assert isinstance(chosen, SelectedClasses)
        return _adapted(self.result.full, self.threshold).above(self.min_score), chosen

    def above(self, score: float | None) -> "MatchResults":
        """Return the results of the detections at or above a score."""
        if score is None:
            return self
        ignored = self.ignored | (self.boxes[0].score < score)
        return replace(self, ignored=ignored, min_score=score)

    @property
    def protocol(self) -> Protocol:
        """The protocol, with one IoU threshold and one area range."""
        return self.run.protocol

    @property
    def iou(self) -> float:
        """The IoU threshold, before the protocol's max_iou_threshold."""
        return self.protocol.iou_thresholds[0]

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the K classes."""
        return self.run.classes

    @property
    def images(self) -> int:
        """Number of images of the ground truth."""
        return len(self.run.ground_truth.images)

    @property
    def boxes(self) -> tuple[Boxes, Boxes]:
        """The columns of the detections and of the ground truths."""
        return self.run.boxes()

    @cached_property
    def scored(self) -> Flags:
        """Flags of true and false positives, (N,) bool."""
        return self.within_max_dets & ~self.ignored

    @cached_property
    def true_positive(self) -> Flags:
        """Flags of true positives, (N,) bool."""
        return self.scored & (self.matched_gt >= 0)

    @cached_property
    def false_positive(self) -> Flags:
        """Flags of false positives, (N,) bool."""
        return self.scored & (self.matched_gt < 0)

    @cached_property
    def matched_by(self) -> Integers:
        """True positive that matches each ground truth, or -1, (G,) int32."""
        matched_by = np.full(len(self.positive), -1, np.int32)
        rows = np.flatnonzero(self.true_positive)
        matched_by[self.matched_gt[rows]] = rows
        return matched_by

    @property
    def matched(self) -> Flags:
        """Flags of ground truths matched by a true positive, (G,) bool."""
        return self.matched_by >= 0

    @cached_property
    def ground_truth_counts(self) -> Counts:
        """Number of ground truths of each class, without ignored, (K,) int64."""
        return self.by_class(self.boxes[1].label[self.positive])

    def by_class(self, labels: Integers) -> Counts:
        """Count the labels of each class, (K,) int64."""
        return np.bincount(labels, minlength=len(self.classes)).astype(np.int64)

    @cached_property
    def by_score(self) -> Integers:
        """Detections within max dets by descending score, (n,) int32."""
        return self.match_table.by_score

    @cached_property
    def matched_similarity(self) -> Floats:
        """IoU or OKS of each detection with its matched ground truth, or 0, (N,) float64."""
        return self.run.matched_iou(self.matched_gt)

    @cached_property
    def ground_truth_index(self) -> GroundTruthIndex:
        """Index of the ground truths that are not ignored."""
        return ground_truth_index(self.run, self.positive, taken=self.matched)


def ground_truth_index(
    run: EvaluationRun, among: Flags, *, taken: Flags | None = None, crowd: bool = False
) -> GroundTruthIndex:
    """Index ground truths, to look up the nearest to a detection."""
    detections, ground_truths = run.boxes()
    taken = np.zeros(len(among), np.bool_) if taken is None else taken
    pairs = run.pairs_of_any_class
    if pairs is not None:
        return PairedGroundTruthIndex(pairs, detections, ground_truths, among, matched=taken)
    return GroundTruthIndex(
        ground_truths,
        len(run.ground_truth.images),
        among,
        matched=taken,
        crowd=crowd,
        inclusive_pixels=run.protocol.inclusive_pixels,
    )


def threshold_of(protocol: Protocol, iou: float | None) -> int:
    """Return the index of an IoU threshold in a protocol."""
    protocol.require_score_matching(NOT_ANALYZED)
    if iou is None:
        return protocol.threshold_index(USUAL_IOU) or 0
    index = protocol.threshold_index(iou)
    if index is None:
        thresholds = ", ".join(format(t, ".6g") for t in protocol.iou_thresholds)
        raise UsageError(
            f"IoU {iou!r} is not among the thresholds of the evaluation ({thresholds}); "
            "evaluate with it, or choose one of these"
        )
    return index


def _adapted(result: Result, threshold: int) -> MatchResults:
    """Make match results from the match table, over all areas."""
    protocol, run = result.protocol, result._run
    match_table = result.match_table_for((0, threshold))
    single = replace(
        protocol,
        iou_thresholds=(protocol.iou_thresholds[threshold],),
        area_ranges=protocol.area_ranges[:1],
    )
    return MatchResults(
        run=EvaluationRun(run.ground_truth, run.detections, single, run.threads, prepared=True),
        threshold=threshold,
        matched_gt=match_table.matched_gt_at(0, threshold),
        ignored=match_table.is_ignored(0, threshold),
        within_max_dets=match_table.within_max_dets,
        positive=match_table.positive[0],
        match_table=match_table,
        result=result,
    )
