"""Log-average miss rate against the scripts of pedestrian data sets, on worked cases."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap.errors import UnknownNameError, UsageError
from detap.evaluation.detection import Result, evaluate
from detap.protocols import protocol
from tests.parity.test_pedestrians import tables
from tests.tables import dt_table, gt_table

PEDESTRIAN = replace(protocol("coco"), iou_thresholds=(0.5,), max_dets=(1000,))


def result_of(record: dict[str, Any]) -> Result:
    truth, detections = tables(record)
    return evaluate(replace(truth, crowd=truth.crowd | truth.ignore), detections, PEDESTRIAN)


@pytest.fixture(scope="module")
def worked(measures: Path) -> Any:
    return json.loads((measures / "mr_cases.json").read_text("utf-8"))


CASES = (
    *("tp_first", "fp_first", "no_detections", "perfect", "perfect_then_fp", "tie_fp_tp"),
    *("zero_miss_only_late", "ignore_absorbs_two", "missed_image_without_detections"),
    *("iou_exactly_half", "fppi_exact_100_images"),
)
COLUMNS: dict[str, dict[str, Any]] = {
    "": {},
    " floor 1e-10": {"mr_floor": 1e-10},
    " first-above": {"mr_rule": "at-least"},
}


@pytest.mark.parametrize("name", CASES)
def test_worked_cases_have_the_expected_miss_rates(worked: Any, name: str) -> None:
    result, expected = result_of(worked["cases"][name]), worked["expected"][name]
    for metric in ("MR-2", "MR-4"):
        for column, fields in COLUMNS.items():
            ours = replace(result, protocol=replace(PEDESTRIAN, **fields)).metric(metric)
            assert 100 * ours == pytest.approx(expected[metric + column], abs=1e-9), column


@pytest.mark.parametrize("name", ["only_ignored", "no_ground_truth"])
def test_without_ground_truths_it_is_undefined(worked: Any, name: str) -> None:
    assert np.isnan(result_of(worked["cases"][name]).metric("MR-2"))


def by_hand() -> Result:
    """Return the result of T F T T F on 4 images with 5 ground truths, of a far box each."""
    boxes = [[0, 0, 10, 10], [20, 0, 10, 10], [0, 0, 10, 10], [0, 0, 10, 10], [0, 0, 10, 10]]
    truth = gt_table(
        boxes, image=[1, 1, 2, 3, 4], label=1, box_format="xywh", images=[1, 2, 3, 4], classes=[1]
    )
    far = [70, 70, 10, 10]
    detections = dt_table(
        [boxes[0], far, boxes[2], boxes[3], far],
        [0.9, 0.8, 0.7, 0.6, 0.5],
        image=[1, 1, 2, 3, 4],
        label=1,
        box_format="xywh",
    )
    return evaluate(truth, detections, PEDESTRIAN)


def test_a_case_by_hand() -> None:
    """The miss rate is 0.8 at six references, from 0.3162 on 0.4; 0.0178 is 10 ** -1.75 rounded."""
    result = by_hand()
    expected = (0.8**6 * 0.4**3) ** (1 / 9)
    assert result.metric("MR-2") == pytest.approx(expected, abs=1e-15)
    assert result.metric("MR-4") == pytest.approx((0.8**7 * 0.4**2) ** (1 / 9), abs=1e-15)
    assert result.metric("MR-2@50") == result.metric("MR-2")


def test_errors_name_the_reason() -> None:
    result = by_hand()
    with pytest.raises(UnknownNameError, match="no metric 'MR-3'; did you mean MR-"):
        result.metric("MR-3")
    with pytest.raises(UnknownNameError, match="no metric 'MR-2@75'"):
        result.metric("MR-2@75")
    listed = replace(PEDESTRIAN, verified="listed", metrics=("MR-2",))
    with pytest.raises(UsageError, match=r"MR-2: false positives per image \(FPPI\) have no"):
        evaluate(result.ground_truth, result.detections, listed)
    kitti = replace(protocol("kitti"), metrics=("MR-2",))
    with pytest.raises(UsageError, match="MR-2: protocol kitti uses matching kitti"):
        evaluate(result.ground_truth, result.detections, kitti)


def test_listed_metrics_are_in_the_report_and_not_in_the_signature() -> None:
    """A name that the protocol lists anyway is not repeated."""
    result = by_hand()
    listed = replace(PEDESTRIAN, metrics=("MR-4", "AP50", "MR-2"))
    with_metrics = evaluate(result.ground_truth, result.detections, listed)
    assert list(with_metrics.summary) == [*result.summary, "MR-4", "MR-2"]
    assert with_metrics.signature == result.signature
    assert listed == PEDESTRIAN
    changed = replace(listed, mr_points="exact")
    assert evaluate(result.ground_truth, result.detections, changed).signature.startswith(
        f"{result.signature.partition('|detap')[0]}|mr-points:exact|detap"
    )
    misspelled = replace(PEDESTRIAN, metrics=("MR2",))
    with pytest.raises(UnknownNameError, match="did you mean MR-2"):
        evaluate(result.ground_truth, result.detections, misspelled)
