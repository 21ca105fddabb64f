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
from detap.core.overlap import overlaps_of
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
    counted = inside_ranges(ground_truths.area, params.area_ranges) & ~ignored
    grouped_table = _with_groups(
        table, detections, ground_truths, group, counted=counted, matchable=counted & ~unmatchable
    )
    levels = params.levels if curves else params.levels[:1]
    scores = accumulate(grouped_table, params=params._replace(levels=levels), threads=threads)
    return scores if match_table is None else scores._replace(match_table=grouped_table)


def _with_groups(
    table: MatchTable,
    detections: Boxes,
    ground_truths: Boxes,
    group: Flags,
    *,
    counted: Flags,  # (A, G)
    matchable: Flags,  # (A, G)
) -> MatchTable:
    """Return the match table of single objects, extended by groups."""
    rows, groups, iou = _nearest_groups(table, detections, ground_truths, np.flatnonzero(group))
    true_positive, ignored = table.true_positive.copy(), table.ignored.copy()
    duplicate, max_iou = table.duplicate.copy(), table.max_iou.copy()
    matched_gt = np.append(np.flatnonzero(~group), -1).astype(np.int32)[table.matched_gt]
    max_iou[rows] = np.maximum(max_iou[rows], iou)
    for t, threshold in enumerate(table.params.thresholds):
        bit = true_positive.dtype.type(1 << t)
        reached = iou > threshold if table.params.strict else iou >= threshold
        for a in range(len(counted)):
            assigned = reached & ((true_positive[a, rows] | ignored[a, rows]) & bit == 0)
            row, of_row = rows[assigned], groups[assigned]
            ignored[a, row] |= bit
            if (a, t) == (0, 0):
                duplicate[row] = False
            if (a, t) in table.area_iou_pairs:
                matched_gt[table.area_iou_pairs.index((a, t)), row] = of_row
            is_matchable = matchable[a, of_row] & (detections.score[row] > 0)
            # Rows are in rank order: the first of each group is the best.
            best = row[is_matchable][np.unique(of_row[is_matchable], return_index=True)[1]]
            true_positive[a, best] |= bit
            ignored[a, best] &= ~bit
    grouped_table = replace(
        table,
        true_positive=true_positive,
        ignored=ignored,
        duplicate=duplicate,
        max_iou=max_iou,
        matched_gt=matched_gt,
        truth_label=ground_truths.label,
        truth_image=ground_truths.image,
        positive=counted,
    )
    grouped_table.set_ranking(table.ranking.rows, np.diff(table.ranking.start))
    return grouped_table.freeze()


def _nearest_groups(
    table: MatchTable, detections: Boxes, ground_truths: Boxes, groups: Rows
) -> tuple[Rows, Rows, Floats]:
    """Return detections that overlap a group, by rank; their group of largest IoA; the IoA."""
    rows = table.ranking.rows.astype(np.intp)
    start, index = group_pairs(detections.select(rows), ground_truths.select(groups))
    rank, truth = np.repeat(np.arange(len(rows)), np.diff(start)), groups[index]
    dt = rows[rank]
    boxes, inclusive = (detections, ground_truths), table.params.inclusive_pixels
    iou = overlaps_of(boxes, dt, truth, inclusive, crowd=True, paired=True)
    order = np.lexsort((-truth if table.params.last_of_equal else truth, -iou, rank))
    order = order[iou[order] > 0]
    best = order[np.flatnonzero(np.diff(rank[order], prepend=-1))]
    return dt[best], truth[best], iou[best]
