"""Matching by hand: matched, ignored, and duplicate detections.

Squares of side 10 that share a column strip: a detection shifted by s pixels has with its ground
truth an IoU of (10 - s)
(10 + s): 9/11 for 1, 2/3 for 2, 1/3 for 5.
"""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from detap.errors import UsageError
from detap.evaluation.detection import Result, evaluate
from detap.protocols import AreaRange, Protocol, protocol
from detap.tables.detection import Detections, GroundTruth
from tests.tables import dt_table, gt_table

COCO = replace(
    protocol("coco"), iou_thresholds=(0.5, 0.75), area_ranges=(AreaRange("all", 0, 1e10),)
)
VOC = replace(protocol("voc2012"), inclusive_pixels=False)


def square(x: float, side: float = 10) -> list[float]:
    return [x, 0, x + side, side]


def score(
    truths: list[float], dt: list[tuple[float, float]], protocol: Protocol, **flags: list[bool]
) -> Result:
    """Score squares at x of one class on one image; `dt` is (x, score)."""
    table = gt_table([square(x) for x in truths], images=["i"], classes=["c"], **flags)
    detections = dt_table([square(x) for x, _ in dt], [value for _, value in dt])
    return evaluate(table, detections, protocol, matches=True)


def matched(result: Result, threshold: int = 0) -> list[int]:
    assert result.matches is not None
    return list(map(int, result.matches.ground_truth[0, threshold]))


def test_best_unmatched_takes_the_second_best_if_the_best_is_matched() -> None:
    # The second detection overlaps truth 0 (x = 0) by 9/11 and truth 1 (x = 3) by 2/3.
    truths, detections = [0.0, 3.0], [(0.0, 0.9), (1.0, 0.8)]
    assert matched(score(truths, detections, COCO)) == [0, 1]
    voc = score(truths, detections, VOC)
    assert matched(voc) == [0, -1]
    assert voc.duplicates[0] == 1


@pytest.mark.parametrize(("equal_iou", "expected"), [("first", 0), ("last", 1)])
def test_equal_ious(equal_iou: str, expected: int) -> None:
    for preset in (COCO, VOC):
        changed = replace(preset, equal_iou=equal_iou)  # type: ignore[arg-type]
        assert matched(score([0, 2], [(1, 0.9)], changed)) == [expected]


def test_an_ignored_ground_truth_without_crowd_flag_matches_once() -> None:
    protocol = replace(COCO, ignore_flags=("ignore",), crowd_flags=())
    result = score([0], [(0, 0.9), (1, 0.8)], protocol, ignore=[True])
    assert result.matches is not None
    assert_array_equal(result.matches.ignored[0, 0], [True, False])
    # No ground truth counts, so that AP is undefined, and the false positive is no duplicate.
    assert np.isnan(result.summary["AP"])
    assert (result.false_positives[0], result.duplicates[0]) == (1, 0)


def test_area_ranges_include_both_ends() -> None:
    protocol = replace(COCO, area_ranges=(AreaRange("x", 100, 400, "x"),))
    sides = [9.5, 10, 15, 20, 20.5]  # areas 90.25, 100, 225, 400, 420.25
    boxes = [square(100 * n, side) for n, side in enumerate(sides)]
    away = [[x, y + 500, u, v + 500] for x, y, u, v in boxes]
    table = gt_table(boxes)
    detections = dt_table([*boxes, *away], np.linspace(1, 0.1, 10))
    result = evaluate(table, detections, protocol, matches=True)
    assert (result.ground_truths[0], result.ignored[0]) == (3, 2)
    assert (result.true_positives[0], result.false_positives[0]) == (3, 3)
    assert result.matches is not None
    assert_array_equal(result.matches.ignored[0, 0], [True, False, False, False, True] * 2)


def test_a_detection_outside_the_area_range_is_no_duplicate() -> None:
    # 14 x 14 around 10 x 10: overlap 100/196, above .5; its area of 196 is beyond the range.
    table = gt_table([square(0)])
    detections = dt_table([square(0), square(0, 14)], [0.9, 0.8])
    inside = replace(COCO, area_ranges=(AreaRange("x", 0, 196, "x"),))
    beyond = replace(COCO, area_ranges=(AreaRange("x", 0, 195, "x"),))
    counts = [
        (result.false_positives[0], result.duplicates[0], result.within_max_dets[0])
        for result in (evaluate(table, detections, protocol) for protocol in (inside, beyond))
    ]
    assert counts == [(1, 1, 2), (0, 0, 2)]


def test_max_dets_apply_after_ranking() -> None:
    protocol = replace(COCO, max_dets=(1, 2))
    result = score([0, 50, 90], [(0, 0.1), (50, 0.9), (90, 0.8)], protocol)
    assert_array_equal(result.recall[0, 0, 0], [1 / 3, 2 / 3])
    assert result.matches is not None
    assert_array_equal(result.matches.counted, [False, True, True])
    assert result.within_max_dets[0] == 2
    assert result.full_precision().shape == (2, 101, 1, 1, 2)


def test_max_dets_scope_image() -> None:
    table = gt_table([square(0)] * 2, label=["a", "b"])
    detections = dt_table([square(0)] * 2, [0.9, 0.8], label=["a", "b"])
    protocol = replace(COCO, max_dets=(1, 2))
    assert evaluate(table, detections, protocol).recall[0, :, 0].tolist() == [[1, 1], [1, 1]]
    protocol = replace(protocol, max_dets_scope="image")
    assert evaluate(table, detections, protocol).recall[0, :, 0].tolist() == [[1, 1], [0, 1]]


@pytest.mark.parametrize(
    "changes", [{}, {"zero_area": "drop"}, {"images_without_ground_truth": "ignore"}]
)
def test_max_dets_of_one_class_are_per_image(changes: dict[str, str]) -> None:
    """Also where some detections are not scored: one without area, one where nothing is annotated.

    Image i keeps its best detection, of class b; image j has one; class a has another on image i.
    """
    table = GroundTruth.from_arrays(
        image=["i", "i", "j"],
        label=["a", "b", "a"],
        boxes=[square(0), square(50), square(0)],
        images=["i", "j", "k"],
    )
    boxes = [square(0), square(50), square(0), square(0), [0.0, 0.0, 0.0, 10.0]]
    detections = Detections.from_arrays(
        image=["i", "i", "j", "k", "k"],
        label=["a", "b", "a", "a", "a"],
        boxes=boxes,
        score=[0.5, 0.9, 0.6, 0.8, 0.1],
    )
    protocol = COCO.with_changes(class_agnostic=True, max_dets=(1,), **changes)
    result = evaluate(table, detections, protocol, matches=True)
    ignored = "images_without_ground_truth" in changes
    match_table = result.match_table
    scores = match_table.score[match_table.within_max_dets].tolist()
    assert sorted(scores) == ([0.6, 0.9] if ignored else [0.6, 0.8, 0.9])


def test_positive_and_negative_zero_scores_tie() -> None:
    table = gt_table([square(0)])
    detections = dt_table([square(0), square(50)], [-0.0, 0.0])
    assert evaluate(table, detections, VOC).summary["mAP"] == 1


def test_proposals_match_by_iou_not_by_score() -> None:
    # The best-scored proposal covers both truths; pairing by overlap leaves it to the worse one.
    rules = replace(
        protocol("proposals"),
        iou_thresholds=(0.5,),
        area_ranges=(AreaRange("all", 0, 1e10),),
        max_dets=(1, 2),
    )
    result = score([0, 4], [(2, 0.9), (0, 0.8)], rules)
    assert result.summary == {"AR1": 0.5, "AR2": 1.0}
    assert result.classes == ("all",)


def test_a_proposal_of_low_iou_matches_too() -> None:
    # Shifted by 9 of 10 pixels: overlap 1/19.
    rules = replace(protocol("proposals"), iou_thresholds=(0.05,), max_dets=(1,))
    assert score([0], [(9, 0.9)], rules).recall[0, 0, 0, 0] == 1
    strict = replace(rules, iou_thresholds=(1 / 19,), strict_iou=True)
    assert score([0], [(9, 0.9)], strict).recall[0, 0, 0, 0] == 0


def test_proposals_have_no_classes() -> None:
    with pytest.raises(UsageError, match="requires a class-agnostic protocol"):
        score([0], [(0, 1)], replace(protocol("proposals"), class_agnostic=False))


def test_a_match_with_annotation_id_zero_counts_as_unmatched() -> None:
    """As in pycocotools: a perfect detection matches it, and AP is still 0."""
    table = gt_table([square(0)])
    table = replace(table, zero_id=np.array([True]))
    twice = dt_table([square(0)] * 2, [0.9, 0.8])
    assert evaluate(table, twice, COCO).true_positives[0] == 1
    strict = evaluate(table, twice, replace(COCO, annotation_id_zero="unmatched"), matches=True)
    assert strict.summary["AP"] == 0
    assert (strict.true_positives[0], strict.false_positives[0]) == (0, 2)
    assert matched(strict) == [-1, -1]
