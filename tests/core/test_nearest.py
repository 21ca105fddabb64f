"""The nearest ground truths, compared with a search over all pairs in plain Python."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from detap.core import arrays
from detap.core.arrays import Boxes
from detap.core.nearest import GroundTruthIndex, PairedGroundTruthIndex
from detap.core.overlap import overlaps


@dataclass(frozen=True)
class Pairs:
    """Boxes, the ground truths that exist and are matched, and the IoU of each pair."""

    detections: Boxes
    truths: Boxes
    among: Any
    taken: Any
    table: Any
    edge: bool
    crowd_gt: bool
    paired: bool


@st.composite
def pairs(draw: st.DrawFn) -> Pairs:
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    edge, crowd_gt = draw(st.booleans()), draw(st.booleans())

    def boxes(count: int) -> Boxes:
        corner = random.integers(0, 6, (count, 2)).astype(float)
        corners = np.hstack([corner, corner + random.integers(0, 6, (count, 2))])
        sides = corners[:, 2:] - corners[:, :2] + edge
        image, label = random.integers(0, 3, (2, count)).astype(np.int32)
        area = sides[:, 0] * sides[:, 1]
        return Boxes(image, label, corners, area, area, random.random(count))

    detections = boxes(draw(st.integers(0, 12)))
    truths = boxes(draw(st.integers(0, 12)))
    among, taken = random.random((2, len(truths.image))) < 0.7
    table = overlaps(
        detections.corners,
        truths.corners,
        detection_areas=detections.overlap_area,
        truth_areas=truths.overlap_area,
        crowd=np.full(len(truths.image), crowd_gt),
        inclusive_pixels=edge,
    )
    return Pairs(detections, truths, among, taken, table, edge, crowd_gt, draw(st.booleans()))


def ground_truth_index(case: Pairs) -> GroundTruthIndex:
    """Return the ground-truth index of boxes, or of similarities computed by a kernel."""
    if case.paired:
        same = case.detections.image[:, None] == case.truths.image[None]
        detection, truth = np.nonzero(same & (case.table > 0))
        start = np.searchsorted(detection, np.arange(len(case.detections.image) + 1))
        pairs = arrays.Pairs(start, truth.astype(np.int32), case.table[detection, truth])
        return PairedGroundTruthIndex(
            pairs, case.detections, case.truths, case.among, matched=case.taken
        )
    return GroundTruthIndex(
        case.truths,
        3,
        case.among,
        matched=case.taken,
        crowd=case.crowd_gt,
        inclusive_pixels=case.edge,
    )


def candidates(case: Pairs, row: int) -> list[int]:
    image = case.detections.image[row]
    return [g for g in np.flatnonzero(case.among).tolist() if case.truths.image[g] == image]


def largest(case: Pairs, row: int, group: list[int]) -> tuple[int, float]:
    best = max(group, key=lambda g: (case.table[row, g], -g), default=-1)
    return (best, case.table[row, best]) if best >= 0 and case.table[row, best] > 0 else (-1, 0.0)


@given(pairs(), st.sampled_from([1, 3]))
def test_the_nearest_is_the_first_with_the_largest_iou(case: Pairs, threads: int) -> None:
    rows = np.arange(len(case.detections.image), dtype=np.int32)[::-1].copy()
    detections = ground_truth_index(case).nearest(case.detections, rows, threads=threads)
    for n, row in enumerate(rows.tolist()):
        here = candidates(case, row)
        own = [g for g in here if case.truths.label[g] == case.detections.label[row]]
        for name, group in (
            ("same_class", own),
            ("matched", [g for g in own if case.taken[g]]),
            ("other_class", [g for g in here if g not in own]),
        ):
            best, largest = -1, 0.0
            for g in group:
                if case.table[row, g] > largest:
                    best, largest = g, case.table[row, g]
            assert getattr(detections, name)[n] == best
            assert getattr(detections, f"{name}_similarity")[n] == largest


@given(pairs(), st.sampled_from([0.1, 0.5, 1.0]), st.booleans(), st.booleans(), st.booleans())
def test_detections_match_the_remaining_ground_truths(
    case: Pairs, threshold: float, strict: bool, last: bool, others_only: bool
) -> None:
    rows = np.arange(len(case.detections.image), dtype=np.int32)
    free = set(np.flatnonzero(~case.taken & case.among).tolist())
    detections = ground_truth_index(case).match(
        case.detections,
        rows,
        ~case.taken,
        threshold,
        strict=strict,
        last_of_equal=last,
        other_classes_only=others_only,
    )
    for row in rows.tolist():
        best, largest = -1, 0.0
        for g in candidates(case, row):
            value = case.table[row, g]
            same = case.truths.label[g] == case.detections.label[row]
            reached = value > threshold if strict else value >= threshold
            better = value > largest or (last and value == largest)
            if g in free and reached and better and not (others_only and same):
                best, largest = g, value
        assert detections[row] == best
        free.discard(best)


@given(pairs(), st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.booleans(), st.booleans())
def test_candidates_are_the_ground_truths_of_other_classes(
    case: Pairs, threshold: float, strict: bool, last: bool
) -> None:
    rows = np.arange(len(case.detections.image), dtype=np.int32)[::-1].copy()
    indices, truth = ground_truth_index(case).other_class_candidates(
        case.detections, rows, threshold, strict=strict, last_of_equal=last
    )
    expected = []
    for index, row in enumerate(rows.tolist()):
        others = [
            g
            for g in candidates(case, row)
            if case.truths.label[g] != case.detections.label[row]
            and case.table[row, g] > 0
            and (case.table[row, g] > threshold or (case.table[row, g] == threshold and not strict))
        ]
        others.sort(key=lambda g: (-case.table[row, g], -g if last else g))
        expected += [(index, g) for g in others]
    assert [*zip(indices.tolist(), truth.tolist(), strict=True)] == expected


def test_ties_go_to_the_first_in_file_order() -> None:
    """Equal ground truths of two images alternate."""
    corners, area = np.tile([0.0, 0.0, 10.0, 10.0], (64, 1)), np.full(64, 100.0)
    image = np.arange(64, dtype=np.int32) % 2
    equal = Boxes(image, np.zeros(64, np.int32), corners, area, area, np.ones(64))
    index = GroundTruthIndex(equal, 2, np.ones(64, np.bool_))
    assert index.nearest(equal, np.array([1, 0], np.int32)).same_class.tolist() == [1, 0]
