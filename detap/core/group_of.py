"""Boxes around groups of objects: what is no hit may lie in one.

Detections first claim the ground truths that are single objects. Each false positive then,
duplicates too, goes to the group of its image and class in which most of it lies, if enough of it
does, and counts neither way. Where groups are to be found, the best-scored detection of each finds
it. All of this is told of evidence, so that whatever asks that needs to know nothing of groups.

Axes: T thresholds, A area ranges, N detections, G ground truths, P pairs, C cells.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from detap.core.accumulate import Scores, accumulate
from detap.core.match_table import AreaIouPair, MatchTable
from detap.core.matching import Boxes, match_and_accumulate
from detap.core.overlap import paired_overlaps
from detap.core.params import MatchParams

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Flags = NDArray[np.bool_]
Rows = NDArray[np.intp]

_COLUMNS = ("image", "label", "corners", "overlap_area", "area")
"""Those of ground truths."""


def match_grouped(
    detections: Boxes,
    truths: Boxes,
    *,
    group: Flags,
    ignored: Flags,
    crowd: Flags,
    unmatchable: Flags,
    images: int,
    classes: int,
    params: MatchParams,
    pairs: None = None,
    threads: int | None = None,
    match_table: Iterable[AreaIouPair] | None = None,
    rank: Integers | None = None,
    curves: bool = True,
) -> Scores:
    """Match detections to single objects and then to groups, and score them.

    Parameters
    ----------
    detections, truths : Boxes
        N and G rows, in file order.
    group : (G,) bool
        Which ground truths are around groups; neutral where they need not be found. A group is
        reached as a ground truth is, by the intersection over the detection's own area.
    neutral, absorbing, void, images, classes, params, threads, evidence, rank, curves
        As :func:`detap.core.matching.score` has them.
    pairs : None
        Only boxes have groups.

    Returns
    -------
    Scores

    References
    ----------
    The description of the Open Images metrics (storage.googleapis.com/openimages/web), and
    per_image_evaluation.py of TensorFlow's object detection library.
    """
    single = np.flatnonzero(~group)
    kept = match_and_accumulate(
        detections,
        truths._replace(**{name: getattr(truths, name)[single] for name in _COLUMNS}),
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
    assert kept is not None
    told = _Grouping(kept, detections, truths, (group, ignored, unmatchable)).grouped()
    levels = params.levels if curves else params.levels[:1]
    scores = accumulate(told, params=params._replace(levels=levels), threads=threads)
    return scores if match_table is None else scores._replace(match_table=told)


class _Grouping:
    """Evidence of single objects, being told of groups."""

    def __init__(
        self,
        match_table: MatchTable,
        detections: Boxes,
        truths: Boxes,
        flags: tuple[Flags, Flags, Flags],
    ) -> None:
        self.match_table, self.params = match_table, match_table.params
        self.detections, self.truths = detections, truths
        group, ignored, unmatchable = flags
        self.groups = np.flatnonzero(group)
        low, high = np.array(self.params.area_ranges)[:, :, None].swapaxes(0, 1)
        self.due = (truths.area >= low) & (truths.area <= high) & ~ignored
        self.findable = self.due & ~unmatchable
        self.true_positive, self.ignored = (
            match_table.true_positive.copy(),
            match_table.ignored.copy(),
        )
        self.matched_gt = np.append(np.flatnonzero(~group), -1).astype(np.int32)[
            match_table.matched_gt
        ]
        self.duplicate, self.max_iou = match_table.duplicate.copy(), match_table.max_iou.copy()

    def grouped(self) -> MatchTable:
        """Return the evidence that knows of the groups."""
        rows, group, overlap = self._nearest_groups()
        self.max_iou[rows] = np.maximum(self.max_iou[rows], overlap)
        for t, threshold in enumerate(self.params.thresholds):
            reached = overlap > threshold if self.params.strict else overlap >= threshold
            for a in range(len(self.params.area_ranges)):
                self._enter(a, t, rows[reached], group[reached])
        told = replace(
            self.match_table,
            true_positive=self.true_positive,
            ignored=self.ignored,
            duplicate=self.duplicate,
            max_iou=self.max_iou,
            matched_gt=self.matched_gt,
            truth_label=self.truths.label,
            truth_image=self.truths.image,
            positive=self.due,
        )
        told.set_ranking(self.match_table.ranking.rows, np.diff(self.match_table.ranking.start))
        return told.freeze()

    def _enter(self, a: int, t: int, rows: Rows, group: Rows) -> None:
        """Let false positives go to their groups, at a threshold in an area range."""
        bit = self.true_positive.dtype.type(1 << t)
        goes = (self.true_positive[a, rows] | self.ignored[a, rows]) & bit == 0
        rows, group = rows[goes], group[goes]
        self.ignored[a, rows] |= bit
        if (a, t) == (0, 0):
            self.duplicate[rows] = False
        if (a, t) in self.match_table.area_iou_pairs:
            self.matched_gt[self.match_table.area_iou_pairs.index((a, t)), rows] = group
        able = self.findable[a, group] & (self.detections.score[rows] > 0)
        # Rows ascend by rank: the first of each group is its best.
        best = rows[able][np.unique(group[able], return_index=True)[1]]
        self.true_positive[a, best] |= bit
        self.ignored[a, best] &= ~bit

    def _nearest_groups(self) -> tuple[Rows, Rows, Floats]:
        """Return the detections that overlap a group, by rank, the group of each, and how far."""
        claim, truth = self._neighbours()
        overlap = paired_overlaps(
            self.detections.corners[claim],
            self.truths.corners[truth],
            detection_areas=self.detections.overlap_area[claim],
            truth_areas=self.truths.overlap_area[truth],
            crowd=np.ones(len(claim), np.bool_),
            inclusive_pixels=self.params.inclusive_pixels,
        )
        rank = np.zeros(len(self.match_table), np.intp)
        rank[self.match_table.ranking.rows] = np.arange(len(self.match_table.ranking.rows))
        order = np.lexsort((-truth if self.params.last_of_equal else truth, -overlap, rank[claim]))
        order = order[overlap[order] > 0]
        first = np.flatnonzero(np.diff(rank[claim[order]], prepend=-1))
        best = order[first]
        return claim[best], truth[best], overlap[best]

    def _neighbours(self) -> tuple[Rows, Rows]:
        """Return the pairs of group and detection of one image and class, those within limits."""
        places = self._places(self.truths)[self.groups]
        claims = self.match_table.ranking.rows.astype(np.intp)
        claims = claims[np.isin(self._places(self.detections)[claims], places)]
        claimed = self._places(self.detections)[claims]
        order = np.argsort(claimed, kind="stable")
        begin, end = (np.searchsorted(claimed[order], places, side) for side in ("left", "right"))
        each = np.repeat(np.arange(len(self.groups)), end - begin)
        nth = np.arange(len(each)) - np.searchsorted(each, each)
        return claims[order[begin[each] + nth]], self.groups[each]

    def _places(self, boxes: Boxes) -> NDArray[np.int64]:
        """Return image and class of each box as one number."""
        return boxes.image.astype(np.int64) * self.match_table.classes + boxes.label
