"""What the axes do to the columns and to the numbers, by hand: areas, neutral rows, absent classes.

Squares of side 10 stand 20 pixels apart; a detection either is its ground truth or is far away.
"""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from detap.core import curves
from detap.evaluation.detection import Result, evaluate
from detap.protocols import AreaRange, Protocol, protocol
from detap.tables.detection import Detections, GroundTruth

COCO = protocol("coco")
VOC = protocol("voc2012")


def square(place: int, side: float = 10) -> list[float]:
    return [20 * place, 0, 20 * place + side, side]


def score(truth: GroundTruth, places: list[int], rules: Protocol, label: str = "cat") -> Result:
    """Score squares on one image by falling score: .9, .8, ..."""
    detections = Detections.from_arrays(
        image=["i"] * len(places),
        label=[label] * len(places),
        boxes=[square(place) for place in places],
        score=[0.9 - 0.1 * n for n in range(len(places))],
    )
    return evaluate(truth, detections, rules)


def squares(count: int, **columns: object) -> GroundTruth:
    return GroundTruth.from_arrays(
        image=["i"] * count,
        label=["cat"] * count,
        boxes=[square(place) for place in range(count)],
        images=["i"],
        **columns,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(("absent", "expected"), [("undefined", 1.0), ("zero", 0.5)])
def test_a_class_without_ground_truth_is_undefined_or_zero(absent: str, expected: float) -> None:
    truth = squares(1, classes=["cat", "dog"])
    rules = replace(VOC, absent_class=absent)  # type: ignore[arg-type]
    result = score(truth, [0], rules)
    assert result.summary["mAP"] == expected
    assert_array_equal(result.by_class["AP"], [1, 0] if absent == "zero" else [1, np.nan])


@pytest.mark.parametrize(("source", "counted"), [("annotation", 1), ("box", 0)])
def test_a_range_holds_the_area_of_the_annotation_or_of_the_box(source: str, counted: int) -> None:
    # A mask of 40 pixels in a box of 100.
    bands = (AreaRange("all", 0, 1e10), AreaRange("tiny", 0, 50, "t"))
    rules = replace(COCO, area_source=source, area_ranges=bands)  # type: ignore[arg-type]
    result = score(squares(1, area=[40]), [0], rules)
    assert result.ground_truths[0] == 1
    assert np.isnan(result.average_precision[0, 0, 1]) == (counted == 0)


def test_a_curve_has_neither_neutral_detections_nor_those_beyond_the_limit() -> None:
    # By score: on the difficult one, beside all, on the plain one; the last is beyond the limit.
    truth = squares(2, difficult=[True, False])
    (curve,) = score(truth, [0, 9, 1, 8], replace(VOC, detection_limits=(3,))).curves()
    assert_array_equal(curve.score, [0.8, 0.9 - 0.2])
    assert_array_equal(curve.precision, [0, 1 / 2])
    assert_array_equal(curve.recall, [0, 1])
    assert curve.average_precision == 1 / 2


def test_proposals_have_recall_alone() -> None:
    bands = (
        AreaRange("all", 0, 1e10),
        AreaRange("x", 100, 100, "x"),
        AreaRange("y", 101, 1e5, "y"),
    )
    rules = replace(protocol("proposals"), iou_thresholds=(0.5,), area_ranges=bands)
    result = score(squares(2), [0, 9], rules)
    assert result.curves() == []
    assert result.average_precision.shape == (1, 1, 3)
    assert result.precision.shape == (1, 0, 1, 3)
    # Both squares have 100 pixels, the two ends of the second range; the third holds none.
    assert_array_equal(result.recall[0, 0, :, -1], [1 / 2, 1 / 2, np.nan])
    assert (result.ground_truths[0], result.neutral[0]) == (2, 0)
    assert (result.true_positives[0], result.false_positives[0]) == (1, 1)


def test_no_decimals_and_a_range_of_one_area_are_allowed() -> None:
    rules = replace(COCO, score_decimals=0, box_decimals=0, area_ranges=(AreaRange("x", 5, 5),))
    assert (rules.score_decimals, rules.box_decimals) == (0, 0)


def test_average_precision_with_and_without_the_envelope() -> None:
    # 0 0 1 1 1: precision 1/3, 2/4, 3/5 at the hits; the envelope is 3/5 at each.
    hits = np.array([2, 2, 2], np.int32)
    plain = curves.average_precision(hits, 3, interpolated=False)
    assert plain == pytest.approx((1 / 3 + 1 / 2 + 3 / 5) / 3, abs=1e-15)
    assert curves.average_precision(hits, 3) == pytest.approx(3 / 5, abs=1e-15)
