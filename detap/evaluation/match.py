"""Step 2, match: by score, by IoU, or by KITTI's rules; the core accumulates what it matches."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from detap.core.arrays import Boxes, Scores
from detap.core.group_of import match_grouped
from detap.core.kitti import Part, match_kitti
from detap.core.match_table import AreaIouPair
from detap.core.matching import accumulate, match_and_accumulate
from detap.core.params import MatchParams
from detap.core.proposals import accumulate_by_iou, match_by_iou
from detap.errors import UsageError
from detap.evaluation.prepare import PreparedTables
from detap.protocols import Protocol
from detap.tables.columns import MOST_ROWS
from detap.tables.detection import Flags, Floats

KITTI_COLUMNS = {"max_occlusion": "occluded", "max_truncation": "truncated"}
"""The ground truth's column that each field uses."""


def by_score(
    run: PreparedTables, match_table: Iterable[AreaIouPair] | None, *, curves: bool
) -> Scores:
    """Match in descending order of scores; get the recall at each limit, if each matches anew."""
    params = match_params(run.protocol)
    scores = _of_params(run, params, match_table, curves=curves)
    lower = params.max_dets[:-1] if run.protocol.matches_by_limit else ()
    for index, limit in enumerate(lower):
        alone = _of_params(run, params._replace(max_dets=(limit,)), None, curves=False)
        scores.recall[..., index] = alone.recall[..., 0]
    return scores


def _of_params(
    run: PreparedTables,
    params: MatchParams,
    match_table: Iterable[AreaIouPair] | None,
    *,
    curves: bool,
) -> Scores:
    if run.protocol.recall_base == "counted":
        return _matched(run, params, match_table, curves=curves)
    # Only the match table changes, so that later steps need not know ignored ground truths.
    table = _matched(run, params, match_table or (), curves=False).match_table
    assert table is not None
    table = replace(table, positive=inside_ranges(run.protocol, run.boxes()[1]))
    params = params if curves else params._replace(levels=params.levels[:1])
    scores = accumulate(table, params=params, threads=run.threads)
    return scores if match_table is None else scores._replace(match_table=table)


def _matched(
    run: PreparedTables,
    params: MatchParams,
    match_table: Iterable[AreaIouPair] | None,
    *,
    curves: bool,
) -> Scores:
    # The match table needs the max IoU of each detection, so no pair may be skipped.
    lowest = 0.0 if match_table is not None else min(run.protocol.search_thresholds)
    match_all = match_and_accumulate
    if run.group.any():
        match_all = partial(match_grouped, group=run.group)
    return match_all(
        *run.boxes(),
        ignored=run.ignored,
        crowd=run.crowd,
        unmatchable=run.unmatchable,
        images=len(run.images),
        classes=len(run.classes),
        params=params,
        pairs=run.shapes.pairs(run.boxes(), run.crowd, lowest),
        threads=run.threads,
        match_table=match_table,
        curves=curves,
        rank=run.ranks(),
    )


def by_iou(run: PreparedTables) -> Scores:
    """Match proposals and ground truths in descending order of their IoU."""
    protocol, images = run.protocol, len(run.images)
    detections, ground_truths = run.boxes()
    if not protocol.class_agnostic:
        raise UsageError("matching by-iou requires a class-agnostic protocol; set --class-agnostic")
    proposals = np.bincount(detections.image, minlength=images)
    _check_pair_count(run, proposals)
    counted = inside_ranges(protocol, ground_truths) & ~run.ignored
    if protocol.empty_images == "exclude":
        counted &= np.isin(ground_truths.image, detections.image)
    iou = match_by_iou(
        detections,
        ground_truths,
        counted=counted,
        images=images,
        max_dets=protocol.max_dets,
        inclusive_pixels=protocol.inclusive_pixels,
    )
    return accumulate_by_iou(iou, counted, proposals, match_params(protocol))


def _check_pair_count(run: PreparedTables, proposals: NDArray[np.int64]) -> None:
    """Raise UsageError if an image has more pairs than int32 can index."""
    limit = run.protocol.max_dets[-1]
    ground_truths = np.bincount(run.ground_truth.image, minlength=len(proposals))
    pairs = ground_truths * (proposals if limit is None else np.minimum(proposals, limit))
    if pairs.max(initial=0) > MOST_ROWS:
        index = int(pairs.argmax())
        raise UsageError(
            f"image {run.images[index]!r} has {pairs[index]} pairs of proposal and ground "
            f"truth, more than {MOST_ROWS}; lower --max-dets"
        )


def kitti(run: PreparedTables) -> Scores:
    """Let ground truths choose detections, class by class."""
    protocol, (detections, ground_truths) = run.protocol, run.boxes()
    label, inside = ground_truths.label, _inside_range(run)
    thresholds = scored_classes(protocol, run.classes)
    if protocol.class_iou and not thresholds:
        listed = ", ".join(name for name, _ in protocol.class_iou)
        raise UsageError(
            f"protocol {protocol.name} evaluates only {listed}, which the data lacks; pass "
            "classes and thresholds with --class-iou, or --class-iou none for all classes"
        )
    parts = []
    for number, threshold in thresholds.items():
        of_class = label == number
        relevant = of_class | np.isin(label, _neighbors(run, run.classes[number]))
        part = Part(
            label=number,
            threshold=protocol.searched(threshold),
            chooses=relevant & ~run.crowd,
            crowd=relevant & run.crowd,
            valid=inside & of_class & ~run.ignored,
        )
        parts.append(part)
    return match_kitti(
        detections,
        ground_truths,
        parts,
        _outside_range(protocol, detections),
        images=len(run.images),
        classes=len(run.classes),
        params=match_params(protocol),
    )


def _neighbors(run: PreparedTables, name: str) -> list[int]:
    """Return the indices of the neighbor classes, ignored for a class."""
    neighbors = {
        neighbor.casefold()
        for class_name, neighbor in run.protocol.neighbor_classes
        if class_name == "*" or class_name.casefold() == name.casefold()
    }
    classes = enumerate(run.classes)
    return [k for k, other in classes if other.casefold() in neighbors and other != name]


def _inside_range(run: PreparedTables) -> Flags:
    """Return masks of the ground truths inside each range, (A, G) bool."""
    protocol, extra, ground_truths = run.protocol, run.ground_truth.extra, run.boxes()[1]
    inside = inside_ranges(protocol, ground_truths)
    if protocol.min_height:
        corners = ground_truths.corners
        inside &= corners[:, 3] - corners[:, 1] > _by_range(protocol.min_height)
    for field, column in KITTI_COLUMNS.items():
        maximum = getattr(protocol, field)
        if maximum and column not in extra:
            option = f"--{field.replace('_', '-')}"
            raise UsageError(
                f"protocol {protocol.name} requires the column {column!r} of the ground truth; "
                f"use KITTI labels (--gt-format kitti) or {option} none"
            )
        if maximum:
            inside &= extra[column] <= _by_range(maximum)
    return inside


def _outside_range(protocol: Protocol, detections: Boxes) -> Flags:
    """Return masks of the detections outside each range, (A, N) bool."""
    area, bounds = detections.area, protocol.area_bounds
    outside = np.array([(area < low) | (area > high) for low, high in bounds])
    if protocol.min_height:
        height = np.abs(detections.corners[:, 3] - detections.corners[:, 1])
        outside |= height < _by_range(protocol.min_height)
    return outside


def inside_ranges(protocol: Protocol, boxes: Boxes) -> Flags:
    """Return masks of the boxes inside each area range, (A, N) bool."""
    bounds = protocol.area_bounds
    return np.array([(boxes.area >= low) & (boxes.area <= high) for low, high in bounds])


def _by_range(values: tuple[float, ...]) -> Floats:
    """Return one value per range, or one for all, as rows."""
    return np.array(values)[:, None]


def scored_classes(protocol: Protocol, classes: Sequence[str]) -> dict[int, float]:
    """Return the IoU threshold of each class that KITTI's rules evaluate, by index."""
    if not protocol.class_iou:
        return dict.fromkeys(range(len(classes)), protocol.iou_thresholds[0])
    thresholds = {name.casefold(): threshold for name, threshold in protocol.class_iou}
    names = enumerate(name.casefold() for name in classes)
    return {number: thresholds[name] for number, name in names if name in thresholds}


def match_params(protocol: Protocol) -> MatchParams:
    """Return the core's parameters of a protocol."""
    return MatchParams(
        thresholds=protocol.search_thresholds,
        strict=protocol.strict_iou,
        best_unmatched=protocol.candidate == "best-unmatched",
        last_of_equal=protocol.equal_iou == "last",
        area_ranges=protocol.area_bounds,
        max_dets=protocol.max_dets_per_image,
        ties_by_image=protocol.tie_break == "image",
        levels=protocol.recall_levels,
        summing=protocol.summing,
        precision_eps=protocol.precision_eps,
        inclusive_pixels=protocol.inclusive_pixels,
    )
