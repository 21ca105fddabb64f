"""Group-of boxes of Open Images: false positives inside them are ignored.

Detections match single objects first. Then each false positive, duplicates included, is assigned to
the group of its image and class that contains most of it, if it contains enough, and is ignored. If
groups count, the best-scored detection of each is a true positive. Only the match table changes, so
later steps need not know groups.

Source: the description of the Open Images metrics (storage.googleapis.com/openimages/web), and
per_image_evaluation.py of TensorFlow's object detection library.

Axes: T thresholds, A area ranges, N detections, G ground truths, P pairs, C pairs of area range and
threshold.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from detap.core.arrays import Boxes, Scores
from detap.core.match_table import AreaIouPair, MatchTable
from detap.core.matching import accumulate, group_pairs, match_and_accumulate
from detap.core.overlap import paired_overlaps
from detap.core.params import MatchParams, inside_ranges

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Flags = NDArray[np.bool_]
Rows = NDArray[np.intp]


def match_grouped(
    detections: Boxes,
    ground_truths: Boxes,
    *,
    group: Flags,  # (G,) group-of ground truths
    ignored: Flags,
    crowd: Flags,
    unmatchable: Flags,
    images: int,
    classes: int,
    params: MatchParams,
    pairs: None = None,  # only boxes have groups
    threads: int | None = None,
    match_table: Iterable[AreaIouPair] | None = None,
    rank: Integers | None = None,
    curves: bool = True,
) -> Scores:
    """Match detections to single objects, then to groups, and accumulate."""
    single = np.flatnonzero(~group)
    table = match_and_accumulate(
        detections,
        ground_truths.select(single),
        ignored=ignored[single],
        crowd=crowd[single],
        unmatchable=unmatchable[single],
        images=images,
        classes=classes,
        params=params,
        pairs=pairs,
        threads=threads,
        match_table=() if match_table is None else match_table,
        rank=rank,
        curves=False,
    ).match_table
    assert table is not None
    grouped_table = _Grouping(
        table, detections, ground_truths, (group, ignored, unmatchable)
    ).grouped()
    levels = params.levels if curves else params.levels[:1]
    scores = accumulate(grouped_table, params=params._replace(levels=levels), threads=threads)
    return scores if match_table is None else scores._replace(match_table=grouped_table)


class _Grouping:
    """Match table of single objects, extended by groups."""

    def __init__(
        self,
        match_table: MatchTable,
        detections: Boxes,
        ground_truths: Boxes,
        flags: tuple[Flags, Flags, Flags],
    ) -> None:
        self.match_table, self.params = match_table, match_table.params
        self.detections, self.ground_truths = detections, ground_truths
        group, ignored, unmatchable = flags
        self.groups = np.flatnonzero(group)
        self.counted = inside_ranges(ground_truths.area, self.params.area_ranges) & ~ignored
        self.matchable = self.counted & ~unmatchable
        self.true_positive, self.ignored = (
            match_table.true_positive.copy(),
            match_table.ignored.copy(),
        )
        self.matched_gt = np.append(np.flatnonzero(~group), -1).astype(np.int32)[
            match_table.matched_gt
        ]
        self.duplicate, self.max_iou = match_table.duplicate.copy(), match_table.max_iou.copy()

    def grouped(self) -> MatchTable:
        """Return the match table with groups."""
        rows, group, iou = self._nearest_groups()
        self.max_iou[rows] = np.maximum(self.max_iou[rows], iou)
        for t, threshold in enumerate(self.params.thresholds):
            reached = iou > threshold if self.params.strict else iou >= threshold
            for a in range(len(self.params.area_ranges)):
                self._match_groups(a, t, rows[reached], group[reached])
        grouped_table = replace(
            self.match_table,
            true_positive=self.true_positive,
            ignored=self.ignored,
            duplicate=self.duplicate,
            max_iou=self.max_iou,
            matched_gt=self.matched_gt,
            truth_label=self.ground_truths.label,
            truth_image=self.ground_truths.image,
            positive=self.counted,
        )
        grouped_table.set_ranking(
            self.match_table.ranking.rows, np.diff(self.match_table.ranking.start)
        )
        return grouped_table.freeze()

    def _match_groups(self, a: int, t: int, rows: Rows, group: Rows) -> None:
        """Assign false positives to groups at a threshold and area range."""
        bit = self.true_positive.dtype.type(1 << t)
        is_false_positive = (self.true_positive[a, rows] | self.ignored[a, rows]) & bit == 0
        rows, group = rows[is_false_positive], group[is_false_positive]
        self.ignored[a, rows] |= bit
        if (a, t) == (0, 0):
            self.duplicate[rows] = False
        if (a, t) in self.match_table.area_iou_pairs:
            self.matched_gt[self.match_table.area_iou_pairs.index((a, t)), rows] = group
        is_matchable = self.matchable[a, group] & (self.detections.score[rows] > 0)
        # Rows are in rank order: the first of each group is the best.
        best = rows[is_matchable][np.unique(group[is_matchable], return_index=True)[1]]
        self.true_positive[a, best] |= bit
        self.ignored[a, best] &= ~bit

    def _nearest_groups(self) -> tuple[Rows, Rows, Floats]:
        """Return detections that overlap a group, by rank; their group of largest IoA; the IoA."""
        dt, truth = self._candidate_pairs()
        iou = paired_overlaps(
            self.detections.corners[dt],
            self.ground_truths.corners[truth],
            detection_areas=self.detections.overlap_area[dt],
            truth_areas=self.ground_truths.overlap_area[truth],
            crowd=np.ones(len(dt), np.bool_),
            inclusive_pixels=self.params.inclusive_pixels,
        )
        rank = np.zeros(len(self.match_table), np.intp)
        rank[self.match_table.ranking.rows] = np.arange(len(self.match_table.ranking.rows))
        order = np.lexsort((-truth if self.params.last_of_equal else truth, -iou, rank[dt]))
        order = order[iou[order] > 0]
        first = np.flatnonzero(np.diff(rank[dt[order]], prepend=-1))
        best = order[first]
        return dt[best], truth[best], iou[best]

    def _candidate_pairs(self) -> tuple[Rows, Rows]:
        """Return the group-detection pairs of equal image and class within max dets."""
        rows = self.match_table.ranking.rows.astype(np.intp)
        groups = self.ground_truths.select(self.groups)
        start, truth = group_pairs(self.detections.select(rows), groups)
        return np.repeat(rows, np.diff(start)), self.groups[truth]
