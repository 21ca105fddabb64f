"""The presets of DOTA: cases by hand, and a plain evaluator that follows the kit.

The kit itself (DOTA_devkit 9938855, its polyiou compiled) gave the same AP to the last bit for each
of 12 classes on its seven labeled example images, 984 objects, with 2,952 random detections of
distinct scores, 253 of which are self-intersecting: mAP .5003411162724837, all-point
.4976332867091395.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.core.polygons import bounds, box_polygons, polygon_areas, polygon_overlaps
from detap.errors import UsageError
from detap.evaluation.detection import Result, evaluate
from detap.evaluation.tie_range import tie_range
from detap.protocols import Protocol, protocol
from detap.tables.detection import Detections, Floats, GroundTruth
from tests.depth import examples

SQUARE = np.array([[0, 0, 10, 0, 10, 10, 0, 10]], float)
DIAMOND = np.array([[5, 0, 10, 5, 5, 10, 0, 5]], float)


def truths(polygons: Floats, **columns: object) -> GroundTruth:
    columns = {"image": ["i"] * len(polygons), "label": ["ship"] * len(polygons)} | columns
    table = GroundTruth.from_arrays(
        boxes=bounds(polygons),
        area=polygon_areas(polygons),
        **columns,  # type: ignore[arg-type]
    )
    return replace(table, polygons=polygons)


def detections_of(
    polygons: Floats, score: Sequence[float] | Floats | None = None, **columns: object
) -> Detections:
    columns = {"image": ["i"] * len(polygons), "label": ["ship"] * len(polygons)} | columns
    scores = [1 - n / 100 for n in range(len(polygons))] if score is None else score
    table = Detections.from_arrays(boxes=bounds(polygons), score=scores, **columns)  # type: ignore[arg-type]
    return replace(table, polygons=polygons)


def row(*places: int) -> Floats:
    """Return squares 20 pixels apart."""
    return np.vstack([SQUARE + [20 * n, 0] * 4 for n in places])


def ap(result: Result) -> float:
    return float(result.average_precision[0][0][0])


def test_seven_of_ten_objects_matched() -> None:
    given = truths(row(*range(10))), detections_of(row(*range(7)))
    assert ap(evaluate(*given, "dota")) == pytest.approx(0.636364, abs=5e-7)  # 7/11, not 8/11
    assert ap(evaluate(*given, "dota-allpoint")) == pytest.approx(0.7, abs=1e-15)


def test_iou_of_exactly_one_half_does_not_match() -> None:
    given = truths(SQUARE), detections_of(DIAMOND)
    assert ap(evaluate(*given, "dota")) == 0
    at_least = replace(protocol("dota"), strict_iou=False)
    assert ap(evaluate(*given, at_least)) == pytest.approx(1)
    # Their bounding boxes are equal.
    truth, detections = given
    detections = replace(detections, polygons=None)
    assert ap(evaluate(replace(truth, polygons=None), detections, "dota")) == pytest.approx(1)


def test_only_the_best_ground_truth_is_tried_and_the_first_of_equal_ones() -> None:
    twice = truths(np.vstack([SQUARE, SQUARE]))
    result = evaluate(twice, detections_of(np.vstack([SQUARE, SQUARE])), "dota")
    assert result.true_positives.tolist() == [1]
    assert result.duplicates.tolist() == [1]
    assert result.match_table.matched_gt_at(0, 0).tolist() == [0, -1]


def test_difficult_objects_are_ignored_and_match_any_number() -> None:
    truth = truths(row(0, 1), difficult=[True, False])
    result = evaluate(truth, detections_of(row(0, 0, 1)), "dota")
    assert result.true_positives.tolist() == [1]
    assert result.false_positives.tolist() == [0]
    assert ap(result) == pytest.approx(1)


def test_a_class_without_ground_truth_has_11_point_ap_0() -> None:
    truth = truths(row(0, 1), label=["plane", "ship"], difficult=[True, False])
    detections = detections_of(row(0, 1), label=["plane", "ship"])
    assert evaluate(truth, detections, "dota").summary["mAP"] == pytest.approx(0.5)
    assert evaluate(truth, detections, "dota-allpoint").summary["mAP"] == pytest.approx(1)


def test_a_bow_tie_of_equal_halves_matches_nothing() -> None:
    bow_tie = np.array([[0, 0, 10, 10, 10, 0, 0, 10]], float)
    assert ap(evaluate(truths(SQUARE), detections_of(bow_tie), "dota")) == 0
    assert ap(evaluate(truths(bow_tie), detections_of(bow_tie), "dota")) == 0


def test_tie_bounds_contain_the_ap_of_any_order() -> None:
    given = truths(row(0)), detections_of(row(0, 5), [0.5, 0.5])
    result = evaluate(*given, "dota-allpoint")
    low, value, high = tie_range(result)["mAP"]
    assert (low, value, high) == pytest.approx((0.5, 1, 1))


def test_boxes_are_scored_as_quadrilaterals() -> None:
    boxes = GroundTruth.from_arrays(image=["i"], label=["ship"], boxes=[[0, 0, 10, 10]])
    assert ap(evaluate(boxes, detections_of(SQUARE), "dota")) == pytest.approx(1)
    assert ap(evaluate(boxes, detections_of(DIAMOND), "dota")) == 0


def test_a_crowd_matches_any_detection_inside_it() -> None:
    rules = replace(protocol("coco"), iou_type="polygon")
    truth = truths(np.vstack([2 * SQUARE, row(5)]), crowd=[True, False])
    result = evaluate(truth, detections_of(np.vstack([DIAMOND, DIAMOND, row(5)])), rules)
    assert result.false_positives[0] == 0
    assert result.summary["AP"] == pytest.approx(1)


def test_area_ranges_use_the_area_of_quadrilaterals() -> None:
    # The box around has 40 * 40, beyond 32 * 32: the diamond in it half of that.
    result = evaluate(
        truths(4 * DIAMOND),
        detections_of(4 * DIAMOND),
        replace(protocol("coco"), iou_type="polygon"),
    )
    assert result.summary["APs"] == pytest.approx(1)
    assert np.isnan(result.summary["APm"])


def test_fields_that_exclude_polygons() -> None:
    with pytest.raises(UsageError, match="requires matching by-score, not by-iou"):
        replace(protocol("proposals"), iou_type="polygon")
    with pytest.raises(
        UsageError, match="no effect with iou_type polygon; leave out --inclusive-pixels"
    ):
        replace(protocol("voc2012"), iou_type="polygon")
    changed = protocol("voc2012").with_changes(iou_type="polygon")
    assert (changed.iou_type, changed.inclusive_pixels) == ("polygon", False)


def test_box_decimals_round_corners() -> None:
    rules = replace(protocol("dota"), box_decimals=0)
    # Rounded, the half becomes more than that.
    half = np.array([[0, 0, 10, 0, 10, 5, 0, 5.6]], float)
    narrow = half * [1, 1, 1, 1, 1, 0.9, 1, 0.9]
    assert ap(evaluate(truths(SQUARE), detections_of(narrow), "dota")) == 0
    assert ap(evaluate(truths(SQUARE), detections_of(half), rules)) == pytest.approx(1)


# --- against a plain evaluator


def plain_ap(truth: GroundTruth, detections: Detections, protocol: Protocol) -> float:
    """Return the 11-point AP of one class, one detection after the other."""
    assert truth.polygons is not None
    assert detections.polygons is not None
    taken, hits = set(), []
    for at in np.argsort(-detections.score, kind="stable").tolist():
        near = np.flatnonzero(truth.image == detections.image[at])
        detection = np.repeat(detections.polygons[at : at + 1], len(near), axis=0)
        overlaps = polygon_overlaps(detection, truth.polygons[near])
        best = int(near[overlaps.argmax()]) if len(near) else -1
        if not len(near) or overlaps.max() <= protocol.iou_thresholds[0]:
            hits.append(False)
        elif not truth.difficult[best]:
            hits.append(best not in taken)
            taken.add(best)
    expected = int((~truth.difficult).sum())
    true = np.cumsum(hits)
    recall, precision = true / expected, true / np.arange(1, len(hits) + 1)
    reached = [precision[recall >= level] for level in np.arange(0.0, 1.1, 0.1)]
    return sum(float(part.max()) / 11 for part in reached if len(part))


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 30))
@examples(60)
def test_random_quadrilaterals_equal_a_plain_evaluator(
    seed: int, required: int, count: int
) -> None:
    made = np.random.default_rng(seed)
    centers = made.integers(0, 3, (required, 1, 2)) * 6.0
    shapes = np.array([[0, 0], [10, 1], [11, 12], [1, 10]]) + centers
    true = (shapes + made.normal(0, 1.5, (required, 4, 2))).reshape(-1, 8)
    dts = true[made.integers(0, required, count)] + made.normal(0, 1.2, (count, 8))
    difficult = made.random(required) < 0.2
    difficult[0] = False
    names = np.array(["a", "b"])
    truth = truths(
        true, image=names[made.integers(0, 2, required)], difficult=difficult, images=["a", "b"]
    )
    detections = detections_of(
        dts, made.permutation(count) / count, image=names[made.integers(0, 2, count)]
    ).reindex_like(truth)
    rules = protocol("dota")
    expected = plain_ap(truth, detections, rules)
    assert ap(evaluate(truth, detections, rules)) == pytest.approx(expected, abs=1e-12)


def test_rectangles_score_as_boxes() -> None:
    assert box_polygons(np.array([[1.0, 2.0, 3.0, 5.0]])).tolist() == [[1, 2, 3, 2, 3, 5, 1, 5]]
    # One that ends before it begins overlaps nothing.
    backward = box_polygons(np.array([[10.0, 0.0, 0.0, 10.0]]))
    assert polygon_areas(backward).tolist() == [0]
    assert polygon_overlaps(backward, SQUARE).tolist() == [0]
