"""Effect of protocol fields, computed by hand: area ranges, ignored rows, absent classes.

Squares of side 10 are 20 pixels apart; a detection either equals its ground truth or is far away.
"""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from detap import metrics
from detap.analysis.errors import errors
from detap.analysis.image_results import image_results
from detap.errors import Note, UsageError
from detap.evaluation import prepare
from detap.evaluation.detection import Result, evaluate
from detap.evaluation.overlaps import keypoints
from detap.evaluation.scoring import on_images
from detap.protocols import AreaRange, Protocol, protocol
from detap.tables.detection import Detections, GroundTruth
from detap.tables.notes import POLYGONS_BOUNDED
from tests.tables import dt_table, gt_table

COCO = protocol("coco")
VOC = protocol("voc2012")


def square(index: int, side: float = 10) -> list[float]:
    return [20 * index, 0, 20 * index + side, side]


def score(truth: GroundTruth, places: list[int], protocol: Protocol, label: str = "cat") -> Result:
    """Evaluate squares on one image with descending scores: .9, .8, ..."""
    detections = dt_table(
        [square(index) for index in places],
        [0.9 - 0.1 * n for n in range(len(places))],
        label=[label] * len(places),
    )
    return evaluate(truth, detections, protocol)


def squares(count: int, **columns: object) -> GroundTruth:
    return gt_table([square(index) for index in range(count)], label="cat", images=["i"], **columns)


def test_a_detection_below_min_score_has_no_effect() -> None:
    """A false positive of .05 above a true one of .04: with both and with neither."""
    truth = squares(2)
    detections = dt_table([square(0), square(5), square(1)], [0.9, 0.05, 0.04], label="cat")
    # Two hits, the second with one false positive above: 1/2 * 1 + 1/2 * 2/3.
    assert evaluate(truth, detections, VOC).summary["mAP"] == pytest.approx(5 / 6)
    kept = evaluate(truth, detections, replace(VOC, min_score=0.05))  # at the minimum it counts
    assert (kept.summary["mAP"], kept.false_positives[0], len(kept.detections)) == (0.5, 1, 2)
    result = evaluate(truth, detections, replace(VOC, min_score=0.5))
    assert (result.false_positives[0], result.detections_count[0]) == (0, 1)
    (note,) = (note for note in result.notes if note.code == "below-min-score")
    assert note.message == "detections with a score below 0.5 (protocol's min_score) are dropped"
    assert (note.count, note.severity) == (2, "info")


def test_float32_thresholds_miss_an_iou_of_exactly_0_6() -> None:
    """10 x 6 of 10 x 10 pixels overlap: .6 reaches linspace's .6 but not float32's."""
    truth = squares(1)
    x, y, _, _ = square(0)
    detections = dt_table([[x, y, x + 10, y + 6]], [0.5], label="cat")
    protocol = replace(COCO, iou_thresholds=(0.6,))
    assert evaluate(truth, detections, protocol).true_positives[0] == 1
    single = replace(protocol, iou_dtype="float32")
    assert single.search_thresholds == (float(np.float32(0.6)),)
    assert evaluate(truth, detections, single).true_positives[0] == 0
    assert metrics.named(single, "AP60").threshold == 0  # by its name, whatever it is rounded to


def test_a_curve_excludes_ignored_detections_and_those_beyond_max_dets() -> None:
    # By score: on the difficult one, on none, on the plain one; the last is beyond max_dets.
    truth = squares(2, difficult=[True, False])
    (curve,) = score(truth, [0, 9, 1, 8], replace(VOC, max_dets=(3,))).curves()
    assert_array_equal(curve.score, [0.8, 0.9 - 0.2])
    assert_array_equal(curve.precision, [0, 1 / 2])
    assert_array_equal(curve.recall, [0, 1])
    assert curve.average_precision == 1 / 2


def test_proposals_have_only_recall() -> None:
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
    assert np.isnan(result.average_precision).all()
    assert result.average_precision.dtype == result.precision.dtype == np.float64
    # Both squares have 100 pixels, the two ends of the second range; the third holds none.
    assert_array_equal(result.recall[0, 0, :, -1], [1 / 2, 1 / 2, np.nan])
    assert (result.ground_truths[0], result.ignored[0]) == (2, 0)
    assert (result.true_positives[0], result.false_positives[0]) == (1, 1)


def keypoint_tables(count: int = 2) -> tuple[GroundTruth, Detections]:
    """Return two labeled keypoints at the corners of a box of 100 by 100 pixels, as annotated.

    The detection has them too, but its bbox has 40 by 40 pixels.
    """
    keypoints = [[[0, 0, 2], [100, 100, 2]][:count]]
    columns = {"image": ["i"], "label": ["cat"], "keypoints": keypoints}
    truth = GroundTruth.from_arrays(boxes=[[0, 0, 100, 100]], **columns)  # type: ignore[arg-type]
    detections = Detections.from_arrays(boxes=[[0, 0, 40, 40]], score=[0.9], **columns)  # type: ignore[arg-type]
    return truth, detections


def mask_tables() -> tuple[GroundTruth, Detections]:
    """Return a mask of 100 by 100 pixels, detected exactly, but with a bbox of 40 by 40."""
    masks = np.ones((1, 100, 100), np.bool_)
    truth = GroundTruth.from_arrays(image=["i"], label=["cat"], masks=masks)
    detections = dt_table([[0, 0, 40, 40]], [0.9], label="cat", masks=masks)
    return truth, detections


@pytest.mark.parametrize(
    ("tables", "preset", "shape", "value"),
    [
        (keypoint_tables(), "coco-keypoints", "keypoints", "extent"),
        (mask_tables(), "coco-segm", "mask", "pixels"),
    ],
)
def test_the_area_of_a_detection_is_that_of_its_bbox_or_its_shape(
    tables: tuple[GroundTruth, Detections], preset: str, shape: str, value: str
) -> None:
    """1,600 square pixels are of medium size, 10,000 large."""
    truth, detections = tables
    rules = protocol(preset)
    if shape == "keypoints":
        rules = replace(rules, sigmas=(0.1, 0.1))
    result = evaluate(truth, detections, rules)
    assert result._run.boxes()[0].area.tolist() == [1600]
    message = (
        f"detections have a bbox in another area range than their {shape}; the bbox decides the "
        "range of unmatched detections, as in pycocotools; use "
        f"--detection-area {value} for the area of the {shape}"
    )
    assert [note for note in result.notes if note.code == "detection-area-of-box"] == [
        Note("detection-area-of-box", message, 1, severity="info")
    ]
    result = evaluate(truth, detections, replace(rules, detection_area=value))  # type: ignore[arg-type]
    assert result._run.boxes()[0].area.tolist() == [10000]
    assert "detection-area-of-box" not in {note.code for note in result.notes}


def test_each_keypoint_needs_a_sigma() -> None:
    truth, _ = keypoint_tables()
    keypoints.check_skeleton(truth, (0.1, 0.1))
    message = "the protocol has 3 sigmas, but rows of the ground truth have 2 keypoints; pass 2"
    with pytest.raises(UsageError, match=message):
        keypoints.check_skeleton(truth, (0.1, 0.1, 0.1))
    # Nothing to compare: no keypoints, or no rows.
    keypoints.check_skeleton(squares(1), (0.1,))
    keypoints.check_skeleton(truth.select(np.zeros(0, np.int64)), (0.1,))


DIAMOND = [[5.0, 0, 10, 5, 5, 10, 0, 5]]


def test_a_quadrilateral_is_compared_with_a_plain_box() -> None:
    """A diamond in a square has half its pixels: IoU .5, which COCO's .5 reaches."""
    truth = squares(1)
    detections = dt_table([square(0)], [0.9], label="cat")
    diamond = replace(detections, polygons=np.array(DIAMOND))
    rules = replace(COCO, iou_type="polygon", iou_thresholds=(0.5, 0.55))
    assert evaluate(truth, diamond, rules).average_precision[:, 0, 0] == pytest.approx([1, 0])
    assert evaluate(truth, detections, rules).summary["AP"] == pytest.approx(1)


def test_polygons_read_as_boxes_are_refused() -> None:
    detections = dt_table([square(0)], [0.9], label="cat")
    rules = replace(COCO, iou_type="polygon")
    bounded = (Note(POLYGONS_BOUNDED, "polygons are read as boxes", 3),)
    message = (
        "3 polygons are read as boxes, but --iou-type polygon requires quadrilaterals; use four "
        "corners per object (YOLO, DOTA) or --iou-type bbox"
    )
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        evaluate(squares(1), replace(detections, notes=bounded), rules)
    # Polygons of any other source are accepted, also of COCO files (cli/test_polygon_overlap.py).
    diamond = replace(detections, polygons=np.array(DIAMOND))
    for source in ("", "coco"):
        truth = replace(squares(1), polygons=np.array(DIAMOND), format=source)
        assert evaluate(truth, diamond, rules).summary["AP"] == pytest.approx(1)


@pytest.mark.parametrize("decimals", [None, 1, 0])
def test_boxes_and_scores_are_rounded_if_the_protocol_requires_it(decimals: int | None) -> None:
    # Two tenths of a pixel off, the square of 100 has 9.8 of 10.2 in common; to no decimals, all.
    detections = dt_table([[0.2, 0, 10.2, 10], square(9)], [0.54, 0.56], label="cat")
    protocol = replace(VOC, iou_thresholds=(0.97,), score_decimals=decimals, box_decimals=decimals)
    result = evaluate(squares(1), detections, replace(protocol, inclusive_pixels=False))
    assert result.true_positives[0] == (decimals == 0)
    # The second is first, or of the same score in the order of the file.
    rounded = {None: [0.56, 0.54], 1: [0.6, 0.5], 0: [1, 1]}[decimals]
    assert_array_equal(result.curves()[0].score, rounded)
    assert result.summary["mAP"] == (1 if decimals == 0 else 0)


_numbers = st.floats(allow_nan=False, allow_infinity=False) | st.floats(-1000, 1000)
# A quarter, an eighth, ...: halves of what decimals can tell, one way or the other.
_halves = st.builds(
    lambda n, d, ulp: np.nextafter(n / 10**d / 2, ulp * np.inf),
    *(st.integers(-2000, 2000), st.integers(0, 4), st.sampled_from((-1, 1))),
) | st.builds(lambda n, d: n / 2**d, st.integers(-4000, 4000), st.integers(0, 6))


@given(st.lists(_numbers | _halves), st.integers(0, 30))
def test_rounding_equals_that_of_text(values: list[float], decimals: int) -> None:
    expected = [float(f"{value:.{decimals}f}") for value in values]
    rounded = prepare._round_as_text(np.array(values, np.float64), decimals)
    assert [repr(value) for value in rounded.tolist()] == [repr(value) for value in expected]


def test_a_protocol_filters_and_rounds_once() -> None:
    """Rounded to an integer, a score of .3 falls below the minimum."""
    truth = gt_table([(0, 0, 9, 9)] * 2, image=["a", "b"])
    detections = dt_table(
        [(0, 0, 9, 9), (20, 20, 29, 29), (0, 0, 0, 9), (0, 0, 9, 9)],
        [0.3, 0.9, 0.9, 0.1],
        image=["a", "a", "a", "b"],
    )
    changes = {"min_score": 0.2, "score_decimals": 0, "degenerate_boxes": "drop"}
    result = evaluate(truth, detections, protocol("padilla").with_changes(**changes))
    assert result.detections.score.tolist() == [0, 1]
    assert errors(result).count.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert [one.result for one in image_results(result, "a").detections] == [
        "background",
        "true-positive",
    ]
    assert on_images(result, ["a"]).summary["mAP"] == 0.5
