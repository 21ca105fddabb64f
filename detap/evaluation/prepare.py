"""Step 1, prepare: ground truth, detections and protocol as the core's columns."""

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.core.arrays import Boxes, Pairs
from detap.core.matching import UNLIMITED
from detap.core.overlap import overlaps_of
from detap.errors import Note, UsageError
from detap.evaluation.conditions import dropped_by_condition, ignored_by_condition
from detap.evaluation.overlaps import shapes_of
from detap.evaluation.overlaps.boxes import Shapes
from detap.evaluation.regions import in_regions
from detap.protocols import Protocol
from detap.protocols.fields import exact
from detap.tables.columns import check_threads
from detap.tables.detection import Detections, Flags, Floats, GroundTruth, Integers, Table

Rows = NDArray[np.integer[Any]]

_CLASS_LISTS = {
    "verified": (
        "negative",
        "all",
        "the classes known to be absent (LVIS's neg_category_ids, Open Images' --image-labels)",
    ),
    "not_exhaustive": (
        "not_exhaustive",
        "count",
        "the classes not exhaustively annotated (LVIS's not_exhaustive_category_ids)",
    ),
}
"""The ground truth's list that each field uses, the value without it, and its content."""


class PreparedTables:
    """Ground truth, detections and protocol prepared for the core.

    With `prepared`, the detections are those of another run: rounded and filtered already.
    `class_ids` are those of the detections' classes.
    """

    def __init__(
        self,
        ground_truth: GroundTruth,
        detections: Detections,
        protocol: Protocol,
        threads: int | None,
        *,
        prepared: bool = False,
    ) -> None:
        check_threads(threads)
        by_class = protocol.class_agnostic and protocol.max_dets_order == "score"
        if by_class and protocol.tie_break == "image":
            # pycocotools without classes lists an image's boxes class by class; ties and equal
            # IoUs follow that order.
            ground_truth = ground_truth.select(np.argsort(ground_truth.label, kind="stable"))
            detections = detections.select(np.argsort(detections.label, kind="stable"))
        self.protocol, self.threads = protocol, threads
        self.dropped: list[Note] = []  # with the number of rows, also of none
        if not prepared:
            ground_truth, detections = self._drop_rows(ground_truth, detections)
        if protocol.zero_area == "drop":
            area = shapes_of(ground_truth, detections, protocol, threads).truth_areas()
            by = f"are dropped by protocol {protocol.name}"
            note = Note("zero-area-ground-truth-dropped", f"ground truths without area {by}")
            ground_truth = self._without(area <= 0, ground_truth, note)
        self.ground_truth, self.detections = ground_truth, detections
        self.classes = ("all",) if protocol.class_agnostic else self.detections.classes
        self.group = ground_truth.group_of & (protocol.group_of_weight is not None)
        by_condition = ignored_by_condition(ground_truth, protocol)
        flags = map(ground_truth.marked, protocol.ignore_flags)
        self.ignored = np.any([*flags, by_condition, self._without_detections()], axis=0)
        self.ignored |= self.group & (protocol.group_of_weight == 0)
        crowd_flags = map(ground_truth.marked, protocol.crowd_flags)
        self.crowd = np.any([*crowd_flags, self.group], axis=0)
        if protocol.candidate == "best-unmatched":  # else they are ignored as VOC's difficult ones
            self.crowd |= by_condition
        self.unmatchable = ground_truth.zero_id & (protocol.annotation_id_zero == "unmatched")
        self.images = ground_truth.images
        self.class_ids = self.detections.class_ids
        self._check_class_lists()

    def _check_class_lists(self) -> None:
        """Raise UsageError if the ground truth lacks data the protocol needs."""
        lacking = {
            f"--{field.replace('_', '-')} {default}": content
            for field, (name, default, content) in _CLASS_LISTS.items()
            if getattr(self.protocol, field) != default and name not in self.ground_truth.listed
        }
        if lacking:
            contents = " and ".join(lacking.values())
            raise UsageError(
                f"protocol {self.protocol.name} requires, per image, {contents}; the ground truth "
                f"lacks them; add them or use {' '.join(lacking)}"
            )

    def _drop_rows(self, truth: GroundTruth, table: Detections) -> tuple[GroundTruth, Detections]:
        """Return the tables without the rows that the protocol drops, and rounded as it says."""
        protocol, by = self.protocol, "are dropped by the protocol"
        if protocol.drop_in_regions:
            of_truth, of_table = in_regions(truth, table, protocol)
            regions = f"in regions ({', '.join(dict(protocol.drop_in_regions))}) are dropped"
            note = Note("ground-truths-in-regions", f"ground truths {regions}")
            truth = self._without(of_truth, truth, note)
            note = Note("detections-in-regions", f"detections {regions}")
            table = self._without(of_table, table, note)
        if protocol.excluded_classes:
            truth = _kept(truth, ~excluded_rows(truth, protocol))
        if protocol.drop_where:
            note = Note("detections-dropped", f"detections {by}: {protocol.drop_where}")
            table = self._without(dropped_by_condition(table, protocol), table, note)
        if protocol.unknown_labels == "drop":
            message = f"detections of labels that the ground truth lacks {by}"
            unknown = table.label >= len(truth.classes)
            table = self._without(unknown, table, Note("unknown-labels-dropped", message))
        if protocol.min_score is not None:
            low, text = table.score < protocol.min_score, exact(protocol.min_score)
            message = f"detections with a score below {text} (protocol's min_score) are dropped"
            table = self._without(low, table, Note("below-min-score", message))
        table = _rounded(table, protocol)
        if protocol.degenerate_boxes == "drop":
            flat = np.any(table.corners[:, 2:] <= table.corners[:, :2], axis=1)
            note = Note("degenerate-detections-dropped", f"detections without width or height {by}")
            table = self._without(flat, table, note)
        if protocol.max_dets_scope == "dataset":
            label = np.zeros_like(table.label) if protocol.class_agnostic else table.label
            image = table.image if protocol.tie_break == "image" else None
            limit = protocol.max_dets[-1]
            assert limit is not None
            table = _kept(table, _rank_within(label, table.score, image) < limit)
        return truth, table

    def _without(self, drop: Flags, table: Table, note: Note) -> Table:
        """Return a table without some rows, which are noted."""
        count = int(np.count_nonzero(drop))
        self.dropped.append(replace(note, count=count, severity="info"))
        return _kept(table, ~drop) if count else table

    def _without_detections(self) -> Flags:
        """Flag the ground truths that lack detections of their class, if those are excluded."""
        truth, detections = self.ground_truth, self.detections
        if self.protocol.empty_images == "count" or self.protocol.matching != "by-score":
            return np.zeros(len(truth), np.bool_)
        width = np.int64(len(self.classes))
        of_any = self.protocol.class_agnostic
        own, other = (t.image * width + (0 if of_any else t.label) for t in (truth, detections))
        return ~np.isin(own, other)

    @cached_property
    def lowest_score(self) -> float | None:
        """The lowest score; None without detections."""
        score = self.detections.score
        return float(score.min()) + 0.0 if len(score) else None  # -0.0 as 0.0

    @cached_property
    def unverified(self) -> Flags:
        """Detections of classes not verified for the image, (N,)."""
        detections = self.detections
        if self.protocol.verified == "all":
            return np.zeros(len(detections), np.bool_)
        list_names = "negative", "positive"
        image_and_label = detections.image, detections.label
        return ~self.ground_truth.in_lists(list_names, *image_and_label, or_present=True)

    @cached_property
    def without_area(self) -> Flags:
        """Detections dropped for lack of area, (N,)."""
        if self.protocol.zero_area == "count":
            return np.zeros(len(self.detections), np.bool_)
        return ~(self.shapes.range_areas > 0)

    @cached_property
    def not_scored(self) -> Flags:
        """Detections that count for max dets but are not scored, (N,)."""
        not_scored = self.unverified | self.without_area
        if self.protocol.images_without_ground_truth == "ignore":
            not_scored = not_scored | ~np.isin(self.detections.image, self.ground_truth.image)
        if self.protocol.excluded_classes:
            not_scored = not_scored | excluded_rows(self.detections, self.protocol)
        return not_scored

    @cached_property
    def not_exhaustive(self) -> Flags:
        """Detections of classes not exhaustively annotated in the image, (N,)."""
        detections = self.detections
        if self.protocol.not_exhaustive == "count":
            return np.zeros(len(detections), np.bool_)
        return self.ground_truth.in_lists(("not_exhaustive",), detections.image, detections.label)

    def boxes(self) -> tuple[Boxes, Boxes]:
        """Return the core's columns of both tables (step 1, prepare), cached."""
        return self._boxes

    @cached_property
    def _boxes(self) -> tuple[Boxes, Boxes]:
        truth, detections = self.ground_truth, self.detections
        detection_area, truth_area = self.shapes.areas
        range_area = self.shapes.in_range_unit(self.shapes.range_areas, detections.image)
        if self.not_exhaustive.any():
            # NaN is outside all ranges, so that unmatched detections are ignored.
            range_area = np.where(self.not_exhaustive, np.nan, range_area)
        truth_range_area = self.shapes.in_range_unit(self.shapes.truth_areas(), truth.image)
        agnostic = self.protocol.class_agnostic
        labels = [np.zeros_like(t.label) if agnostic else t.label for t in (detections, truth)]
        return (
            Boxes(
                detections.image,
                labels[0],
                detections.corners,
                detection_area,
                range_area,
                detections.score,
            ),
            Boxes(truth.image, labels[1], truth.corners, truth_area, truth_range_area, np.zeros(0)),
        )

    @cached_property
    def shapes(self) -> Shapes:
        """The shapes that the protocol compares."""
        return shapes_of(self.ground_truth, self.detections, self.protocol, self.threads)

    @cached_property
    def pairs(self) -> Pairs | None:
        """The IoUs of pairs of one image and class; None for boxes."""
        return self.shapes.pairs(self.boxes(), self.crowd, 0.0)

    @cached_property
    def pairs_of_any_class(self) -> Pairs | None:
        """The IoUs of pairs of one image, of any class and without crowds."""
        detections, ground_truths = (
            columns._replace(label=np.zeros_like(columns.label)) for columns in self.boxes()
        )
        return self.shapes.pairs((detections, ground_truths), np.zeros_like(self.crowd), 0.0)

    def overlaps(self, boxes: tuple[Boxes, Boxes], rows: Rows, ground_truths: Rows) -> Floats:
        """Return the IoUs (n, g) of some detections and ground truths of an image."""
        if self.pairs is not None:
            claim, truth = np.repeat(rows, len(ground_truths)), np.tile(ground_truths, len(rows))
            return self.pairs.between(claim, truth).reshape(len(rows), len(ground_truths))
        inclusive = self.protocol.inclusive_pixels
        return overlaps_of(boxes, rows, ground_truths, inclusive, crowd=self.crowd)

    def matched_iou(self, matched_gt: Integers) -> Floats:
        """Return the IoU of each detection with its matched ground truth, (N,) float64."""
        iou = np.zeros(len(matched_gt))
        rows = np.flatnonzero(matched_gt >= 0)
        truth, inclusive = matched_gt[rows], self.protocol.inclusive_pixels
        iou[rows] = (
            overlaps_of(self.boxes(), rows, truth, inclusive, crowd=self.crowd, paired=True)
            if self.pairs is None
            else self.pairs.between(rows, truth)
        )
        return iou

    def ranks(self) -> Integers | None:
        """Return the rank of each detection for max dets; None to use the core's.

        Detections that are not scored count for the rank and get an unlimited one.
        """
        protocol = self.protocol
        of_class = protocol.max_dets_scope != "image" and protocol.max_dets_order == "score"
        if of_class and not self.not_scored.any():
            return None
        scope: NDArray[np.integer[Any]] = self.detections.image
        if protocol.max_dets_scope == "class" and not protocol.class_agnostic:
            scope = scope * np.int64(len(self.classes)) + self.detections.label
        by_score = protocol.max_dets_order == "score"  # else stable: in file order
        rank = _rank_within(scope, self.detections.score if by_score else np.zeros(len(scope)))
        rank[self.not_scored] = UNLIMITED
        return rank


def excluded_rows(table: Table, protocol: Protocol) -> Flags:
    """Return a mask of the rows whose class is excluded."""
    excluded: Flags = np.isin(table.classes, protocol.excluded_classes)
    return excluded[table.label]


def _kept(table: Table, mask: Flags) -> Table:
    """Return the masked rows of a table; the table itself if these are all."""
    return table if mask.all() else table.select(np.flatnonzero(mask))


def rows_by_key(
    key: NDArray[np.int64], mask: Flags, keys: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """Return the masked rows of each key, in their order."""
    rows = np.flatnonzero(mask)
    rows = rows[np.argsort(key[rows], kind="stable")]
    first = np.searchsorted(key[rows], keys, side="left").tolist()
    end = np.searchsorted(key[rows], keys, side="right").tolist()
    return [rows[a:b] for a, b in zip(first, end, strict=True)]


def _rounded(table: Detections, protocol: Protocol) -> Detections:
    """Return detections with scores and boxes rounded as the protocol requires."""
    if protocol.score_decimals is not None:
        table = replace(table, score=_round_as_text(table.score, protocol.score_decimals))
    if protocol.box_decimals is not None:
        corners = _round_as_text(table.corners, protocol.box_decimals)
        width_height = corners[:, 2:] - corners[:, :2]
        table = replace(table, corners=corners, box_area=width_height[:, 0] * width_height[:, 1])
        if table.polygons is not None:
            table = replace(table, polygons=_round_as_text(table.polygons, protocol.box_decimals))
    return table


def _rank_within(
    scope: NDArray[np.integer[Any]], score: Floats, image: Integers | None = None
) -> Integers:
    """Return each detection's rank by score (then by image, if given) within its scope, from 0."""
    order = np.lexsort((*(() if image is None else (image,)), -score, scope))
    ordered = scope[order]
    rank = np.empty(len(scope), np.int32)
    rank[order] = np.arange(len(scope)) - np.searchsorted(ordered, ordered, side="left")
    return rank


def _round_as_text(values: Floats, decimals: int) -> Floats:
    """Round numbers as writing and reading decimal text does.

    The result is the float nearest to k/10**d, which is their quotient if both are exact. Near a
    half, only the text decides k.
    """
    flat, factor = values.ravel(), 10.0 ** min(decimals, 15)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = flat * factor
        nearest = np.rint(scaled)
        unambiguous = (np.abs(scaled) < 2**30) & (np.abs(scaled - nearest) < 0.499999)
    rounded = nearest / factor
    via_text = ~unambiguous | (decimals > 15)
    rounded[via_text] = [float(f"{value:.{decimals}f}") for value in flat[via_text].tolist()]
    return rounded.reshape(values.shape)
