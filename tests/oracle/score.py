"""The whole evaluation as plain loops."""

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.protocols import AreaRange, Protocol
from detap.tables.detection import Detections, GroundTruth
from tests.oracle.curves import area_under, at_levels, curve
from tests.oracle.matching import MatchResult, Target, in_group, match, reaches
from tests.oracle.overlap import area, boxes, overlap
from tests.oracle.proposals import covered

Floats = NDArray[np.float64]


@dataclass
class Scores:
    """The arrays of a Result, with its letters: T, R, K, A, M, N. Undefined is NaN."""

    average_precision: Floats  # (T, K, A)
    recall: Floats  # (T, K, A, M)
    precision: Floats  # (T, R, K, A, M)
    matched: NDArray[Any]  # (A, T, N)
    ignored: NDArray[Any]  # (A, T, N)
    counted: NDArray[Any]  # (N,)
    overlap: Floats  # (N,)
    counts: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    hits: dict[tuple[int, int], list[bool]] = field(default_factory=dict)


def score(truth: GroundTruth, detections: Detections, protocol: Protocol) -> Scores:
    """Return the scores of detections, indexed as in the ground truth."""
    detections = counted_detections(detections, protocol)
    truth = with_area(truth, protocol)
    names = detections.classes if len(detections.classes) > len(truth.classes) else truth.classes
    K = 1 if protocol.class_agnostic else len(names)  # noqa: N806 - the letter of the axis
    T, A = len(protocol.iou_thresholds), len(protocol.area_ranges)  # noqa: N806
    R, M = len(protocol.recall_levels), len(protocol.max_dets)  # noqa: N806
    result = Scores(
        np.full((T, K, A), np.nan),
        np.full((T, K, A, M), np.nan),
        np.full((T, R, K, A, M), np.nan),
        np.full((A, T, len(detections)), -1),
        np.zeros((A, T, len(detections)), bool),
        np.zeros(len(detections), bool),
        np.zeros(len(detections)),
    )
    for k in range(K):
        for a, band in enumerate(protocol.area_ranges):
            one = _OneClass(truth, detections, protocol, k, band)
            if protocol.matching == "by-iou":
                result.recall[:, k, a, :] = one.proposal_recall()
            else:
                one.fill(result, k, a)
        detected = protocol.class_agnostic or bool((detections.label == k).any())
        if protocol.absent_class == "zero" or (
            protocol.absent_class == "zero-if-detected" and detected and len(detections)
        ):
            averages = result.average_precision[:, k, :1]  # of all areas
            averages[np.isnan(averages)] = 0.0
    return result


class _OneClass:
    """The ground truths and detections of one class, in one area range."""

    def __init__(
        self,
        truth: GroundTruth,
        detections: Detections,
        protocol: Protocol,
        label: int,
        band: AreaRange,
    ) -> None:
        self.truth, self.detections = truth, detections
        self.protocol, self.band = protocol, band
        self.places = _ranks(detections, protocol)
        self.ranked = [
            row
            for row in _ranking(detections, protocol)
            if protocol.class_agnostic or detections.label[row] == label
        ]
        self.truth_boxes, self.detection_boxes = boxes(truth), boxes(detections)
        self.truth_rows = _rows(truth, label, protocol)
        self.positives = sum(not self.ignored(row) for row in self.truth_rows)

    def flagged(self, row: int, flags: tuple[str, ...]) -> bool:
        return any(getattr(self.truth, flag)[row] for flag in flags)

    def ignored(self, row: int) -> bool:
        need_not = self.protocol.group_of_weight == 0 and self.is_group(row)
        need_not = need_not or self.holds(row) or self.without_detections(row)
        return need_not or self.flagged(row, self.protocol.ignore_flags) or not self.in_range(row)

    def holds(self, row: int) -> bool:
        """Return True if the condition of the protocol holds, as Python evaluates it."""
        if not self.protocol.ignore_where:
            return False
        x1, y1, x2, y2 = self.truth.corners[row].tolist()
        more = int(self.protocol.inclusive_pixels)
        values = {
            "x1": x1,
            "y1": y1,
            "x2": x2,
            "y2": y2,
            "area": float(self.truth.area[row]),
            "width": round(x2 - x1, 9) + more,
            "height": round(y2 - y1, 9) + more,
        }
        values |= {name: column[row] for name, column in self.truth.extra.items()}
        return bool(eval(self.protocol.ignore_where, {}, values))

    def without_detections(self, row: int) -> bool:
        """Return True if the image has no detection of the class, and that excludes it."""
        if self.protocol.empty_images == "count" or self.protocol.matching != "by-score":
            return False
        image = self.truth.image[row]
        return not any(self.detections.image[other] == image for other in self.ranked)

    def is_group(self, row: int) -> bool:
        """Return True if a ground truth is matched in the stage of groups."""
        return self.protocol.group_of_weight is not None and self.flagged(row, ("group_of",))

    def in_range(self, row: int) -> bool:
        if self.protocol.area_source == "annotation":
            value = float(self.truth.area[row])
        else:
            value = area(self.truth_boxes[row], self.protocol)
        return self.in_band(value, int(self.truth.image[row]))

    def in_band(self, value: float, image: int) -> bool:
        """Return True if an area of an image is in the range."""
        if self.band.unit == "px":
            return self.band.low <= value <= self.band.high
        assert self.truth.image_sizes is not None
        width, height = self.truth.image_sizes[image].tolist()
        share = value / (width * height)
        return bool(self.band.low / 100 <= share <= self.band.high / 100)

    def targets(self) -> dict[int, list[Target]]:
        """Return the ground truths of each image, in file order."""
        result: dict[int, list[Target]] = defaultdict(list)
        for row in self.truth_rows:
            crowd = self.is_group(row) or self.flagged(row, self.protocol.crowd_flags)
            crowd = crowd or (self.holds(row) and self.protocol.candidate == "best-unmatched")
            unmatchable = self.protocol.annotation_id_zero == "unmatched" and self.flagged(
                row, ("zero_id",)
            )
            target = Target(row, self.ignored(row), crowd, unmatchable)
            result[int(self.truth.image[row])].append(target)
        return result

    def overlap(self, row: int, target: Target) -> float:
        return overlap(
            self.detection_boxes[row],
            self.truth_boxes[target.row],
            self.protocol,
            crowd=target.crowd,
        )

    def within(self, limit: int | None) -> list[int]:
        """Return the ranked detections within max dets."""
        if self.protocol.max_dets_scope == "dataset":
            limit = None  # counted_detections has applied it
        rows = [row for row in self.ranked if limit is None or self.places[row] < limit]
        if self.protocol.images_without_ground_truth == "ignore":
            occupied = set(self.truth.image.tolist())
            rows = [row for row in rows if self.detections.image[row] in occupied]
        if self.protocol.zero_area == "drop":
            rows = [row for row in rows if area(self.detection_boxes[row], self.protocol) > 0]
        return rows

    def matches(self, threshold: float) -> dict[int, MatchResult]:
        """Return the match of each detection within the largest max dets."""
        targets = self.targets()
        result = {}
        for row in self.within(self.protocol.max_dets[-1]):
            here = targets[int(self.detections.image[row])]
            overlaps = {t.row: self.overlap(row, t) for t in here}
            single = [t for t in here if not self.is_group(t.row)]
            outcome = match(single, [overlaps[t.row] for t in single], threshold, self.protocol)
            outcome.overlap = max(overlaps.values(), default=0.0)
            own = area(self.detection_boxes[row], self.protocol)
            if outcome.truth == -1 and not self.in_band(own, int(self.detections.image[row])):
                outcome.ignored = True
            if outcome.truth == -1 and not outcome.ignored:
                groups = [(t, overlaps[t.row]) for t in here if self.is_group(t.row)]
                score = float(self.detections.score[row])
                outcome = in_group(outcome, groups, score, threshold, self.protocol)
            result[row] = outcome
        return result

    def fill(self, result: Scores, k: int, a: int) -> None:
        for t, threshold in enumerate(self.protocol.search_thresholds):
            matches = self.matches(threshold)
            for row, outcome in matches.items():
                result.matched[a, t, row] = outcome.truth
                result.ignored[a, t, row] = outcome.ignored
                result.counted[row] = True
                result.overlap[row] = outcome.overlap
            if a == 0 and t == 0:
                self.count(result.counts, matches)
            for m, limit in enumerate(self.protocol.max_dets):
                rows = [row for row in self.within(limit) if not matches[row].ignored]
                hits = [matches[row].truth != -1 for row in rows]
                if a == 0 and limit == self.protocol.max_dets[-1]:
                    result.hits[t, k] = hits
                self.measure(result, hits, (t, k, a, m))

    def measure(self, result: Scores, hits: list[bool], where: tuple[int, int, int, int]) -> None:
        t, k, a, m = where
        if not self.positives:
            return
        precision, recall = curve(hits, self.positives, self.protocol.precision_eps)
        result.recall[t, k, a, m] = recall[-1] if recall else 0.0
        result.precision[t, :, k, a, m] = at_levels(precision, recall, self.protocol)
        result.average_precision[t, k, a] = area_under(precision, recall, self.protocol)

    def count(self, counts: dict[str, list[int]], matches: dict[int, MatchResult]) -> None:
        wrong = [o for o in matches.values() if o.truth == -1 and not o.ignored]
        counts["ground_truths"].append(self.positives)
        counts["detections_count"].append(len(self.ranked))
        counts["within_max_dets"].append(len(matches))
        counts["ignored"].append(len(self.truth_rows) - self.positives)
        counts["true_positives"].append(
            sum(o.truth != -1 and not o.ignored for o in matches.values())
        )
        counts["false_positives"].append(len(wrong))
        counts["duplicates"].append(sum(o.duplicate for o in wrong))

    def proposal_recall(self) -> Floats:
        """Return the recall (T, M), with ground truths matched by descending IoU."""
        thresholds, limits = self.protocol.search_thresholds, self.protocol.max_dets
        result = np.full((len(thresholds), len(limits)), np.nan)
        occupied = {int(self.detections.image[row]) for row in self.ranked}
        for m, limit in enumerate(limits):
            proposals = defaultdict(list)
            for row in self.within(limit):
                proposals[int(self.detections.image[row])].append(row)
            overlaps: list[float] = []
            for image, targets in self.targets().items():
                if self.protocol.empty_images == "exclude" and image not in occupied:
                    continue
                expected = [target for target in targets if not target.ignored]
                overlaps += covered(
                    [[self.overlap(row, t) for row in proposals[image]] for t in expected]
                )
            for t, threshold in enumerate(thresholds):
                if overlaps:
                    hits = sum(reaches(o, threshold, self.protocol) for o in overlaps)
                    result[t, m] = hits / len(overlaps)
        return result


def _rows(table: GroundTruth, label: int, protocol: Protocol) -> list[int]:
    """Return the ground truths of a class; of all, class by class if ties follow pycocotools."""
    rows = range(len(table))
    if protocol.class_agnostic and protocol.tie_break == "image":
        return sorted(rows, key=lambda row: (table.label[row], row))
    return [row for row in rows if protocol.class_agnostic or table.label[row] == label]


def _ranking(detections: Detections, protocol: Protocol) -> list[int]:
    """Return all rows by descending score, ties in the protocol's order."""

    def key(row: int) -> tuple[float, int, int, int]:
        by_image = protocol.tie_break == "image"
        image = int(detections.image[row]) if by_image else 0
        label = int(detections.label[row]) if by_image and protocol.class_agnostic else 0
        return (-float(detections.score[row]), image, label, row)

    return sorted(range(len(detections)), key=key)


def _ranks(detections: Detections, protocol: Protocol) -> list[int]:
    """Return the rank of each row within its max-dets group: 0 for the highest score."""
    seen: dict[tuple[int, int], int] = defaultdict(int)
    places = [0] * len(detections)
    for row in _ranking(detections, protocol):
        whole = protocol.max_dets_scope == "image" or protocol.class_agnostic
        group = (int(detections.image[row]), -1 if whole else int(detections.label[row]))
        places[row] = seen[group]
        seen[group] += 1
    return places


def counted_detections(detections: Detections, protocol: Protocol) -> Detections:
    """Return the detections that the protocol scores."""
    detections = _through_text(detections, protocol)
    rows = list(range(len(detections)))
    if protocol.degenerate_boxes == "drop":
        x1, y1, x2, y2 = detections.corners.T.tolist() if rows else ([], [], [], [])
        rows = [row for row in rows if x1[row] < x2[row] and y1[row] < y2[row]]
    detections = detections.select(np.array(rows, np.intp))
    return best_of_classes(detections, protocol)


def best_of_classes(detections: Detections, protocol: Protocol) -> Detections:
    """Return the detections within the limit of the data set, if there is one."""
    if protocol.max_dets_scope != "dataset":
        return detections
    (limit,) = protocol.max_dets
    assert limit is not None
    seen: dict[int, int] = defaultdict(int)
    rows = []
    for row in _ranking(detections, protocol):
        label = -1 if protocol.class_agnostic else int(detections.label[row])
        seen[label] += 1
        if seen[label] <= limit:
            rows.append(row)
    return detections.select(np.array(sorted(rows), np.intp))


def with_area(truth: GroundTruth, protocol: Protocol) -> GroundTruth:
    """Return the ground truths that the protocol scores."""
    if protocol.zero_area == "count":
        return truth
    areas = [area(box, protocol) for box in boxes(truth)]
    if protocol.area_source == "annotation":
        areas = truth.area.tolist()
    rows = [row for row, value in enumerate(areas) if value > 0]
    return truth.select(np.array(rows, np.intp))


def _through_text(detections: Detections, protocol: Protocol) -> Detections:
    """Return the detections as if written to a file with rounding and read again."""
    if protocol.min_score is not None:
        detections = detections.select(np.flatnonzero(detections.score >= protocol.min_score))
    if protocol.score_decimals is None and protocol.box_decimals is None:
        return detections

    def rounded(values: Floats, decimals: int | None) -> Floats:
        if decimals is None:
            return values
        text = [f"{value:.{decimals}f}" for value in values.ravel().tolist()]
        return np.array([float(value) for value in text]).reshape(values.shape)

    corners = rounded(detections.corners, protocol.box_decimals)
    area = detections.box_area
    if protocol.box_decimals is not None:
        area = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
    return replace(
        detections,
        score=rounded(detections.score, protocol.score_decimals),
        corners=corners,
        box_area=area,
    )
