"""Match detections to ground truths, then accumulate counts and curves.

Axes: T thresholds, R recall levels, K classes, A area ranges, M max dets, N detections,
G ground truths, P precomputed pairs, C pairs of area range and threshold. Undefined is NaN.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core import _matching
from detap.core.accumulate import Scores
from detap.core.match_table import AreaIouPair, MatchTable, empty_bits
from detap.core.params import MatchParams
from detap.core.threads import run_threads, thread_count

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Flags = NDArray[np.bool_]

UNLIMITED = np.iinfo(np.int32).max
"""Above any number of rows; this rank exceeds every max dets."""


class Boxes(NamedTuple):
    """Columns of boxes, all of one length."""

    image: Integers
    label: Integers
    corners: Floats  # (n, 4) x1, y1, x2, y2. Not used if pairs are given
    overlap_area: Floats  # area in the denominator of the IoU. Not used if pairs are given
    area: Floats  # area that selects the area range
    score: Floats  # empty for ground truths


class Pairs(NamedTuple):
    """Precomputed similarities of detections and ground truths, such as OKS or mask IoU."""

    start: NDArray[np.int64]  # (N + 1,)
    truth: Integers  # (P,)
    similarity: Floats  # (P,) for crowds, the value that the protocol defines

    def between(self, rows: NDArray[Any], gt: NDArray[Any]) -> Floats:
        """Return the similarity of given pairs; 0 if not listed."""
        if not len(self.truth):
            return np.zeros(len(rows))
        low, end = self.start[rows], self.start[rows + 1]
        last, high = np.maximum(end - 1, 0), end
        # Vectorized binary search in the pairs of each detection.
        while (low < high).any():
            middle = (low + high) // 2
            less = (low < high) & (self.truth[np.minimum(middle, last)] < gt)
            high = np.where(less, high, np.minimum(middle, high))
            low = np.where(less, middle + 1, low)
        listed = (low < end) & (self.truth[np.minimum(low, last)] == gt)
        return np.where(listed, self.similarity[np.minimum(low, last)], 0.0)

    def check(self, detections: Boxes, ground_truths: Boxes) -> None:
        """Raise ValueError if these are not pairs of these detections and ground truths."""
        counts = np.diff(self.start)
        if (
            len(self.start) != len(detections.image) + 1
            or self.start[0] != 0
            or (counts < 0).any()
            or not self.start[-1] == len(self.truth) == len(self.similarity)
        ):
            raise ValueError("pairs.start does not ascend from 0 to the number of pairs")
        if len(self.truth) and not 0 <= self.truth.min() <= self.truth.max() < len(
            ground_truths.image
        ):
            raise ValueError(
                f"pairs contain ground truths outside 0 to {len(ground_truths.image) - 1}"
            )
        dt = np.repeat(np.arange(len(counts)), counts)
        if (detections.image[dt] != ground_truths.image[self.truth]).any() or (
            detections.label[dt] != ground_truths.label[self.truth]
        ).any():
            raise ValueError("pairs join different images or classes")
        if ((np.diff(self.truth) <= 0) & (np.diff(dt) == 0)).any():
            raise ValueError("pairs of a detection are not in ascending order of ground truths")


def group_ranges(
    detections: Boxes, ground_truths: Boxes
) -> tuple[Integers, NDArray[np.int64], NDArray[np.int64]]:
    """Return the ground truths by image and class, and of each detection their first and end."""
    labels = np.int64(max(detections.label.max(initial=0), ground_truths.label.max(initial=0)) + 1)
    dt_group, gt_group = (
        boxes.image * labels + boxes.label for boxes in (detections, ground_truths)
    )
    order = np.argsort(gt_group, kind="stable").astype(np.int32)
    begin, end = (np.searchsorted(gt_group[order], dt_group, side) for side in ("left", "right"))
    return order, begin.astype(np.int64), end.astype(np.int64)


def group_pairs(detections: Boxes, ground_truths: Boxes) -> tuple[NDArray[np.int64], Integers]:
    """List the ground truths of each detection's image and class, as in :class:`Pairs`."""
    order, begin, end = group_ranges(detections, ground_truths)
    start = np.concatenate([[0], np.cumsum(end - begin)]).astype(np.int64)
    index = np.arange(start[-1]) - np.repeat(start[:-1] - begin, end - begin)
    return start, order[index]


def max_dets_array(max_dets: tuple[int | None, ...]) -> NDArray[np.int64]:
    """Return max dets as an array, None as :data:`UNLIMITED`."""
    return np.array([UNLIMITED if count is None else count for count in max_dets], np.int64)


def match_and_accumulate(
    detections: Boxes,
    ground_truths: Boxes,
    *,
    ignored: Flags,  # (G,)
    crowd: Flags,  # (G,) match any number of detections
    unmatchable: Flags,  # (G,) ground truths with matches that are not true positives
    images: int,
    classes: int,
    params: MatchParams,
    pairs: Pairs | None = None,  # similarities; by default the IoU of the boxes
    threads: int | None = None,
    all_max_dets: bool = False,  # compute precision at every max dets, not only the largest
    match_table: Iterable[AreaIouPair] | None = None,
    rank: Integers | None = None,  # (N,) compared with max dets; by default in its class and image
    curves: bool = True,
) -> Scores:
    """Match detections to ground truths, class by class, and accumulate."""
    if pairs is not None:
        pairs.check(detections, ground_truths)
    curve_params = params if curves else params._replace(levels=params.levels[:1])
    truth_counts = np.bincount(ground_truths.label, minlength=classes)
    scores = Scores.undefined(curve_params, truth_counts, all_max_dets=all_max_dets)
    n_threads = threads or thread_count(len(detections.image) + len(ground_truths.image))
    matcher = _matching.Matcher(
        detections,
        ground_truths,
        (ignored.view(np.uint8), crowd.view(np.uint8), unmatchable.view(np.uint8)),
        pairs,
        np.zeros(0, np.int32) if rank is None else rank,
        curve_params,
        max_dets_array(params.max_dets),
        images,
        scores,
        all_max_dets,
    )
    if match_table is None:
        run_threads(matcher.work, min(n_threads, max(classes, 1)))
        return scores
    table = _empty_table(detections, ground_truths, ignored, params, tuple(match_table))
    table = replace(table, images=images, classes=classes)
    ranked = np.zeros(len(detections.image), np.int32)
    matcher.keep_matches(table, ranked)
    run_threads(matcher.work, min(n_threads, max(classes, 1)))
    table.set_ranking(ranked, within=scores.counts[6])
    return scores._replace(match_table=table.freeze())


def _empty_table(
    detections: Boxes,
    ground_truths: Boxes,
    ignored: Flags,
    params: MatchParams,
    area_iou_pairs: tuple[AreaIouPair, ...],
) -> MatchTable:
    """Return a match table with every detection beyond max dets."""
    n_rows = len(detections.image)
    in_range = [
        (ground_truths.area >= low) & (ground_truths.area <= high)
        for low, high in params.area_ranges
    ]
    return MatchTable(
        label=detections.label,
        image=detections.image,
        score=detections.score,
        max_dets_index=np.full(n_rows, len(params.max_dets), np.uint8),
        true_positive=empty_bits(params, n_rows),
        ignored=empty_bits(params, n_rows),
        duplicate=np.zeros(n_rows, np.bool_),
        max_iou=np.zeros(n_rows),
        area_iou_pairs=area_iou_pairs,
        matched_gt=np.full((len(area_iou_pairs), n_rows), -1, np.int32),
        truth_label=ground_truths.label,
        truth_image=ground_truths.image,
        positive=np.array(in_range) & ~ignored,
        images=0,
        classes=0,
        params=params,
    )
