"""Match detections to ground truths, then accumulate counts and curves.

Axes: T thresholds, R recall levels, K classes, A area ranges, M max dets, N detections,
G ground truths, P precomputed pairs, C pairs of area range and threshold. Undefined is NaN.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from detap.core import _matching
from detap.core.arrays import Boxes, Pairs, Scores
from detap.core.match_table import AreaIouPair, MatchTable, empty_bits
from detap.core.params import MatchParams, inside_ranges
from detap.core.threads import run_threads, thread_count

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Flags = NDArray[np.bool_]

UNLIMITED = np.iinfo(np.int32).max
"""Above any number of rows; this rank exceeds every max dets."""


def group_keys(
    detections: Boxes, ground_truths: Boxes
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a number for the image and class of each detection and ground truth."""
    labels = np.int64(max(detections.label.max(initial=0), ground_truths.label.max(initial=0)) + 1)
    dt_key, gt_key = (boxes.image * labels + boxes.label for boxes in (detections, ground_truths))
    return dt_key, gt_key


def group_ranges(
    detections: Boxes, ground_truths: Boxes
) -> tuple[Integers, NDArray[np.int64], NDArray[np.int64]]:
    """Return the ground truths by image and class, and of each detection their first and end."""
    dt_group, gt_group = group_keys(detections, ground_truths)
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


def accumulate(
    match_table: MatchTable,
    *,
    params: MatchParams | None = None,  # others with the same matches
    threads: int | None = None,
    all_max_dets: bool = False,  # precision at every max dets, not only the largest
) -> Scores:
    """Accumulate a match table, with the same bits as matching and accumulating at once."""
    truth_counts = np.bincount(match_table.truth_label, minlength=match_table.classes)
    scores = Scores.undefined(params or match_table.params, truth_counts, all_max_dets=all_max_dets)
    scores.positives[:] = match_table.ground_truth_counts
    accumulator = _matching.TableAccumulator(
        params or match_table.params, scores, all_max_dets, match_table
    )
    n_threads = threads or thread_count(len(match_table))
    run_threads(accumulator.work, min(n_threads, max(match_table.classes, 1)))
    scores.counts[1] = truth_counts - scores.positives[0]
    scores.counts[2] = np.bincount(match_table.label, minlength=match_table.classes)
    return scores._replace(match_table=match_table if params is None else None)


def _empty_table(
    detections: Boxes,
    ground_truths: Boxes,
    ignored: Flags,
    params: MatchParams,
    area_iou_pairs: tuple[AreaIouPair, ...],
) -> MatchTable:
    """Return a match table with every detection beyond max dets."""
    n_rows = len(detections.image)
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
        positive=inside_ranges(ground_truths.area, params.area_ranges) & ~ignored,
        images=0,
        classes=0,
        params=params,
    )
