"""Candidate pairs instead of boxes: same results from the same IoUs, and invalid pairs."""

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from detap.core.arrays import Boxes, Pairs, Scores
from detap.core.matching import match_and_accumulate
from detap.core.overlap import overlaps
from detap.evaluation.match import match_params
from detap.evaluation.run import EvaluationRun
from detap.protocols import PRESETS, Protocol
from tests.cases import RANKED, Case, Detection, Truth, cases
from tests.parity.compare import assert_same_bits


def pairs_of(generated: EvaluationRun) -> Pairs:
    """Return all pairs of boxes of one image and class, with their IoU."""
    detections, truths = generated.boxes()
    alike = (detections.image[:, None] == truths.image) & (
        detections.label[:, None] == truths.label
    )
    table = overlaps(
        detections.corners,
        truths.corners,
        detection_areas=detections.overlap_area,
        truth_areas=truths.overlap_area,
        crowd=generated.crowd,
        inclusive_pixels=generated.protocol.inclusive_pixels,
    )
    start = np.append(0, np.cumsum(alike.sum(axis=1))).astype(np.int64)
    return Pairs(start, np.nonzero(alike)[1].astype(np.int32), table[alike])


def without_corners(boxes: Boxes) -> Boxes:
    return boxes._replace(corners=np.zeros((0, 4)), overlap_area=np.zeros(0))


def run(generated: EvaluationRun, pairs: Pairs | None, **changes: Any) -> Scores:
    detections, truths = generated.boxes()
    if pairs is not None:
        detections, truths = without_corners(detections), without_corners(truths)
    return match_and_accumulate(
        detections,
        truths,
        ignored=generated.ignored,
        crowd=generated.crowd,
        unmatchable=generated.unmatchable,
        images=len(generated.ground_truth.images),
        classes=len(generated.classes),
        params=match_params(generated.protocol),
        pairs=pairs,
        match_table=[(0, 0)],
        **changes,
    )


@given(cases(), st.sampled_from([*RANKED.values(), replace(PRESETS["coco"], class_agnostic=True)]))
def test_box_ious_passed_as_pairs_give_the_same_result(case: Case, protocol: Protocol) -> None:
    generated = EvaluationRun(*case.tables(), protocol, None)
    ours, theirs = run(generated, pairs_of(generated)), run(generated, None)
    for name in ("precision", "average", "recall", "positives", "counts"):
        assert_same_bits(getattr(ours, name), getattr(theirs, name), name)
    assert ours.match_table is not None
    assert theirs.match_table is not None
    for name in (
        "true_positive",
        "ignored",
        "max_dets_index",
        "duplicate",
        "max_iou",
        "matched_gt",
        "positive",
    ):
        left, right = getattr(ours.match_table, name), getattr(theirs.match_table, name)
        assert_same_bits(left, right, name)


TWO = Case(
    truths=(Truth(1, 1, (0, 0, 9, 9)), Truth(1, 1, (5, 0, 9, 9)), Truth(2, 1, (0, 0, 9, 9))),
    dt=(Detection(1, 1, (0, 0, 9, 9), 0.9), Detection(2, 2, (0, 0, 9, 9), 0.8)),
    images=(1, 2),
    classes=(1, 2),
)


@given(st.lists(st.sets(st.integers(0, 6)), min_size=1, max_size=6))
def test_pairs_that_are_not_listed_have_similarity_zero(listed: list[set[int]]) -> None:
    start = np.cumsum([0, *map(len, listed)])
    truth = np.array([g for of_one in listed for g in sorted(of_one)], np.int32)
    pairs = Pairs(start, truth, np.arange(1, len(truth) + 1, dtype=np.float64))
    rows, columns = (grid.ravel() for grid in np.indices((len(listed), 7)))
    table = [
        start[n] + sorted(listed[n]).index(g) + 1.0 if g in listed[n] else 0.0
        for n, g in zip(rows.tolist(), columns.tolist(), strict=True)
    ]
    assert pairs.between(rows, columns).tolist() == table


def test_similarities_of_a_custom_kernel_decide_matches() -> None:
    """By these similarities the first detection prefers the second ground truth, .8 to .6."""
    pairs = Pairs(np.array([0, 2, 2]), np.array([0, 1], np.int32), np.array([0.6, 0.8]))
    match_table = run(EvaluationRun(*TWO.tables(), PRESETS["coco"], None), pairs).match_table
    assert match_table is not None
    assert match_table.matched_gt_at(0, 0).tolist() == [1, -1]
    assert match_table.max_iou.tolist() == [0.8, 0.0]
