"""Matching by hand: matched, ignored, and duplicate detections.

Squares of side 10 that share a column strip: a detection shifted by s pixels has with its ground
truth an IoU of (10 - s)
(10 + s): 9/11 for 1, 2/3 for 2, 1/3 for 5.
"""

from dataclasses import replace

import pytest

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


def score(truths: list[float], dt: list[tuple[float, float]], protocol: Protocol) -> Result:
    """Score squares at x of one class on one image; `dt` is (x, score)."""
    table = gt_table([square(x) for x in truths], images=["i"], classes=["c"])
    detections = dt_table([square(x) for x, _ in dt], [value for _, value in dt])
    return evaluate(table, detections, protocol)


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


def test_a_proposal_of_low_iou_matches_too() -> None:
    # Shifted by 9 of 10 pixels: overlap 1/19.
    rules = replace(protocol("proposals"), iou_thresholds=(0.05,), max_dets=(1,))
    assert score([0], [(9, 0.9)], rules).recall[0, 0, 0, 0] == 1
    strict = replace(rules, iou_thresholds=(1 / 19,), strict_iou=True)
    assert score([0], [(9, 0.9)], strict).recall[0, 0, 0, 0] == 0


def test_proposals_have_no_classes() -> None:
    with pytest.raises(UsageError, match="requires a class-agnostic protocol"):
        score([0], [(0, 1)], replace(protocol("proposals"), class_agnostic=False))
