"""Step 2, match: by score, by IoU, or by KITTI's rules; the core accumulates what it matches."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from detap.core.arrays import Scores
from detap.core.group_of import match_grouped
from detap.core.kitti import Part, match_kitti
from detap.core.match_table import AreaIouPair
from detap.core.matching import accumulate, match_and_accumulate
from detap.core.params import MatchParams, inside_ranges
from detap.core.proposals import accumulate_by_iou, match_by_iou
from detap.errors import UsageError
from detap.evaluation.prepare import PreparedTables
from detap.protocols import Protocol
from detap.tables.columns import MOST_ROWS
from detap.tables.detection import Flags, Floats

KITTI_COLUMNS = {"max_occlusion": "occluded", "max_truncation": "truncated"}
"""The ground truth's column that each field uses."""


class Matching:
    """A way to match prepared tables."""

    def __init__(self, run: PreparedTables) -> None:
        self.run, self.protocol = run, run.protocol
        self.detections, self.ground_truths = run.boxes()

    def scores(self, match_table: Iterable[AreaIouPair] | None, *, curves: bool) -> Scores:
        """Match and accumulate."""
        raise NotImplementedError


class ByScore(Matching):
    """Detections match in descending order of their scores."""

    def scores(self, match_table: Iterable[AreaIouPair] | None, *, curves: bool) -> Scores:
        """Match and accumulate; the recall at each limit, if each matches what it keeps."""
        params = match_params(self.protocol)
        scores = self._of_params(params, match_table, curves=curves)
        lower = params.max_dets[:-1] if self.protocol.matches_by_limit else ()
        for index, limit in enumerate(lower):
            alone = self._of_params(params._replace(max_dets=(limit,)), None, curves=False)
            scores.recall[..., index] = alone.recall[..., 0]
        return scores

    def _of_params(
        self, params: MatchParams, match_table: Iterable[AreaIouPair] | None, *, curves: bool
    ) -> Scores:
        if self.protocol.recall_base == "counted":
            return self._matched(params, match_table, curves=curves)
        # Only the match table changes, so that later steps need not know ignored ground truths.
        table = self._matched(params, match_table or (), curves=False).match_table
        assert table is not None
        positive = inside_ranges(self.ground_truths.area, self.protocol.area_bounds)
        table = replace(table, positive=positive)
        params = params if curves else params._replace(levels=params.levels[:1])
        scores = accumulate(table, params=params, threads=self.run.threads)
        return scores if match_table is None else scores._replace(match_table=table)

    def _matched(
        self, params: MatchParams, match_table: Iterable[AreaIouPair] | None, *, curves: bool
    ) -> Scores:
        run = self.run
        # The match table needs the max IoU of each detection, so no pair may be skipped.
        if match_table is not None:
            pairs = run.pairs
        else:
            lowest = min(self.protocol.search_thresholds)
            pairs = run.shapes.pairs((self.detections, self.ground_truths), run.crowd, lowest)
        match_all = match_and_accumulate
        if run.group.any():
            match_all = partial(match_grouped, group=run.group)
        return match_all(
            self.detections,
            self.ground_truths,
            ignored=run.ignored,
            crowd=run.crowd,
            unmatchable=run.unmatchable,
            images=len(run.images),
            classes=len(run.classes),
            params=params,
            pairs=pairs,
            threads=run.threads,
            match_table=match_table,
            curves=curves,
            rank=run.ranks(),
        )


class ByIou(Matching):
    """Proposals and ground truths match in descending order of their IoU."""

    def scores(self, match_table: Iterable[AreaIouPair] | None, *, curves: bool) -> Scores:
        """Match and accumulate."""
        del match_table, curves
        protocol, images = self.protocol, len(self.run.images)
        if not protocol.class_agnostic:
            raise UsageError(
                "matching by-iou requires a class-agnostic protocol; set --class-agnostic"
            )
        proposals = np.bincount(self.detections.image, minlength=images)
        self._check_pair_count(proposals)
        counted = inside_ranges(self.ground_truths.area, protocol.area_bounds) & ~self.run.ignored
        if protocol.empty_images == "exclude":
            counted &= np.isin(self.ground_truths.image, self.detections.image)
        iou = match_by_iou(
            self.detections,
            self.ground_truths,
            counted=counted,
            images=images,
            max_dets=protocol.max_dets,
            inclusive_pixels=protocol.inclusive_pixels,
        )
        return accumulate_by_iou(iou, counted, proposals, match_params(protocol))

    def _check_pair_count(self, proposals: NDArray[np.int64]) -> None:
        """Raise UsageError if an image has more pairs than int32 can index."""
        limit = self.protocol.max_dets[-1]
        ground_truths = np.bincount(self.ground_truths.image, minlength=len(proposals))
        pairs = ground_truths * (proposals if limit is None else np.minimum(proposals, limit))
        if pairs.max(initial=0) > MOST_ROWS:
            index = int(pairs.argmax())
            raise UsageError(
                f"image {self.run.images[index]!r} has {pairs[index]} pairs of proposal and ground "
                f"truth, more than {MOST_ROWS}; lower --max-dets"
            )


class Kitti(Matching):
    """Ground truths choose detections, class by class."""

    def scores(self, match_table: Iterable[AreaIouPair] | None, *, curves: bool) -> Scores:
        """Match and accumulate."""
        del match_table, curves
        run, area, bounds = self.run, self.detections.area, self.protocol.area_bounds
        outside = np.array([(area < low) | (area > high) for low, high in bounds])  # (A, N)
        if self.protocol.min_height:
            height = np.abs(self.detections.corners[:, 3] - self.detections.corners[:, 1])
            outside |= height < _by_range(self.protocol.min_height)
        return match_kitti(
            self.detections,
            self.ground_truths,
            self._parts(),
            outside,
            images=len(run.images),
            classes=len(run.classes),
            params=match_params(self.protocol),
        )

    def _parts(self) -> list[Part]:
        """Return the roles of the ground truths for each evaluated class."""
        run, protocol = self.run, self.protocol
        label, inside = self.ground_truths.label, self._inside_range()
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
            relevant = of_class | np.isin(label, self._neighbors(run.classes[number]))
            part = Part(
                label=number,
                threshold=protocol.searched(threshold),
                chooses=relevant & ~run.crowd,
                crowd=relevant & run.crowd,
                valid=inside & of_class & ~run.ignored,
            )
            parts.append(part)
        return parts

    def _neighbors(self, name: str) -> list[int]:
        """Return the indices of the neighbor classes, ignored for a class."""
        neighbors = {
            neighbor.casefold()
            for class_name, neighbor in self.protocol.neighbor_classes
            if class_name == "*" or class_name.casefold() == name.casefold()
        }
        classes = enumerate(self.run.classes)
        return [k for k, other in classes if other.casefold() in neighbors and other != name]

    def _inside_range(self) -> Flags:
        """Return masks of the ground truths inside each range, (A, G) bool."""
        protocol, extra = self.protocol, self.run.ground_truth.extra
        inside = inside_ranges(self.ground_truths.area, protocol.area_bounds)
        if protocol.min_height:
            corners = self.ground_truths.corners
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


MATCHINGS: dict[str, type[Matching]] = {"by-score": ByScore, "by-iou": ByIou, "kitti": Kitti}


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
