"""Optimal LRP against LRP-Error's cocoeval.py, on worked cases and real data."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap import metrics
from detap.errors import UnknownNameError, UsageError
from detap.evaluation.detection import Result, evaluate
from detap.metrics.ranked import Ranked
from detap.protocols import protocol
from tests.coco import saved
from tests.tables import dt_table, gt_table

pytestmark = pytest.mark.filterwarnings("ignore::detap.errors.DetapWarning")

NAMES = {"oLRP": "oLRP", "oLRP_Loc": "oLRP-loc", "oLRP_FP": "oLRP-fp", "oLRP_FN": "oLRP-fn"}


def number(value: float | None) -> float:
    return float("nan") if value is None else value


def details_of(result: Result, name: str = "oLRP") -> dict[int, dict[str, Any]]:
    spec = metrics.named(result.protocol, name)
    assert isinstance(spec.metric, Ranked)
    return spec.metric.details_by_class(result, spec)


def assert_details(result: Result, expected: dict[str, Any]) -> None:
    """Compare the scores and components behind oLRP of each class."""
    details = details_of(result)
    assert {result.classes[label] for label in details} == {*expected}
    keys = {"localization": "oLRP_Loc", "false_positives": "oLRP_FP", "false_negatives": "oLRP_FN"}
    for label, one in details.items():
        row = expected[result.classes[label]]
        for ours, theirs in {"score": "threshold", **keys}.items():
            assert one[ours] == pytest.approx(number(row[theirs]), abs=1e-9, nan_ok=True)


CASES = (
    *("mixed", "perfect", "no_true_positive", "no_detection_in_class", "fp_first", "all_poor"),
    *("equal_minima", "crowd", "tie"),
)


@pytest.mark.parametrize("case", CASES)
def test_worked_cases_have_the_expected_values(measures: Path, case: str, tmp_path: Path) -> None:
    record = json.loads((measures / "lrp_cases.json").read_text("utf-8"))[case]
    files = saved(tmp_path, record["ground_truth"], record["detections"])
    result = evaluate(*files, "coco")
    for key, name in NAMES.items():
        expected = number(record["expected"][key])
        assert result.metric(name) == pytest.approx(expected, abs=1e-12, nan_ok=True), name
    assert_details(result, {result.classes[0]: record["expected"]})
    assert not details_of(result)[0]["cuts_tie"]  # the optimum of "tie" is its last detection


COCO = "coco-val2014-100"
DATA = {
    f"{COCO} bbox": (f"{COCO}/instances_val2014_100.json", f"{COCO}/*fakebbox100*.json", "coco"),
    f"{COCO} segm": (f"{COCO}/instances_val2014_100.json", f"{COCO}/*segm100*.json", "coco-segm"),
    "cartucho-85 bbox": ("cartucho-85/groundtruths_coco.json", "cartucho-85/det*.json", "coco"),
}


@pytest.mark.parametrize("name", DATA)
def test_real_data_have_the_reference_values(measures: Path, real_data: Path, name: str) -> None:
    expected = json.loads((measures / "lrp_expected.json").read_text("utf-8"))[name]
    truth, pattern, preset = DATA[name]
    result = evaluate(real_data / truth, next(real_data.glob(pattern)), preset)
    for key, metric in NAMES.items():
        values = result.metric_by_class(metric)
        defined = 0
        for label, value in zip(result.classes, values.tolist(), strict=True):
            row = expected["classes"].get(label, {})
            assert value == pytest.approx(number(row.get(key)), abs=1e-9, nan_ok=True), label
            defined += label in expected["classes"]
        assert defined == expected["mean"]["classes"]
        assert result.metric(metric) == pytest.approx(expected["mean"][key], abs=1e-9)
    assert_details(result, expected["classes"])
    for metric in ("oLRPs", "oLRPm", "oLRPl", "AP"):
        assert result.metric(metric) == pytest.approx(expected["mean"][metric], abs=1e-9)


def kaist(folder: Path, detector: str) -> Result:
    """Return the result of a detector on all images of KAIST test, Reasonable setup.

    Image n of the results has the id n - 1.
    """
    record = json.loads((folder / "KAIST_annotation.json").read_text("utf-8"))
    rows = record["annotations"]
    boxes = np.array([row["bbox"] for row in rows], float)
    x, y = boxes[:, 0], boxes[:, 1]
    inside = (x >= 5) & (y >= 5) & (x + boxes[:, 2] <= 635) & (y + boxes[:, 3] <= 507)
    reasonable = np.array(
        [
            row["category_id"] == 1
            and row["height"] >= 55
            and row["occlusion"] < 2
            and not row["ignore"]
            for row in rows
        ]
    )
    truth = gt_table(
        boxes,
        image=[row["image_id"] for row in rows],
        label=1,
        box_format="xywh",
        crowd=~(inside & reasonable),
        images=[image["id"] for image in record["images"]],
        classes=[1],
    )
    columns = np.loadtxt(folder / f"{detector}_result.txt", delimiter=",")
    detections = dt_table(
        columns[:, 1:5],
        columns[:, 5],
        image=columns[:, 0].astype(int) - 1,
        label=1,
        box_format="xywh",
    )
    return evaluate(truth, detections, "coco")


@pytest.mark.parametrize("detector", ["INSANet", "MLPD"])
def test_kaist(measures: Path, detector: str) -> None:
    result = kaist(measures / "kaist", detector)
    record = json.loads((measures / "kaist" / "expected.json").read_text("utf-8"))
    assert result.ground_truths.tolist() == [1455]
    expected: dict[str, Any] = record["detectors"][detector]["all"]["oLRP"]
    for key, name in NAMES.items():
        assert result.metric(name) == pytest.approx(expected[key], abs=1e-9)
    assert_details(result, {result.classes[0]: expected})


def by_hand(ious: tuple[float, ...], *, positives: int, tau: float = 0.5) -> Result:
    """Return the result of detections of falling score, of these IoUs; 0 is a false positive."""
    boxes = [[100 * n, 0, 40, 40] for n in range(positives)]
    hits = iter(boxes)
    detected = [
        [*next(hits)[:3], 40 * iou] if iou else [100 * n, 300, 40, 40] for n, iou in enumerate(ious)
    ]
    truth = gt_table(boxes, image=1, label=1, box_format="xywh", images=[1], classes=[1])
    detections = dt_table(
        np.reshape(detected, (-1, 4)),
        [0.9 - 0.1 * n for n in range(len(ious))],
        image=1,
        label=1,
        box_format="xywh",
    )
    return evaluate(
        truth, detections, protocol("coco").with_changes(iou_thresholds=tuple(sorted({tau, 0.75})))
    )


def test_a_case_by_hand() -> None:
    """T(.9) F T(.8) T(.6) F F T(.55): at rank 4, (.2 + .4 + .8 + 1 + 1) / 5."""
    result = by_hand((0.9, 0, 0.8, 0.6, 0, 0, 0.55), positives=4)
    expected = {"oLRP": 0.68, "oLRP-loc": 0.7 / 3, "oLRP-fp": 0.25, "oLRP-fn": 0.25}
    for name, value in expected.items():
        assert result.metric(name) == pytest.approx(value, abs=1e-12)
        assert result.metric(f"{name}@50") == result.metric(name)
    # At 0.75, the optimum is at the third detection: (.4 + .8 + 1 + 2) / 5.
    assert result.metric("oLRP@75") == pytest.approx(4.2 / 5, abs=1e-12)
    assert result.metric("oLRP-fn@75") == 0.5


@pytest.mark.parametrize(
    ("score", "expected"),
    [("0.95", 1), ("0.9", 3.2 / 4), ("0.75", 4.2 / 5), ("0.6", 0.68), ("0", 5.3 / 7)],
)
def test_lrp_at_a_score_keeps_equal_and_higher_scores(score: str, expected: float) -> None:
    result = by_hand((0.9, 0, 0.8, 0.6, 0, 0, 0.55), positives=4)
    assert result.metric(f"LRP@score={score}") == pytest.approx(expected, abs=1e-12)


def test_errors_name_the_reason() -> None:
    result = by_hand((0.9,), positives=1)
    with pytest.raises(UnknownNameError, match="no metric 'oLRP@50:95'"):
        result.metric("oLRP@50:95")
    kitti = protocol("kitti").with_changes(metrics=("oLRP",))
    with pytest.raises(UsageError, match="oLRP: protocol kitti uses matching kitti"):
        evaluate(result.ground_truth, result.detections, kitti)


def test_an_iou_threshold_of_1_has_no_localization_error() -> None:
    """All true positives have IoU 1; 1 - IoU divided by 0 counts as 0."""
    result = by_hand((1.0, 0, 1.0, 0.9), positives=3, tau=1.0)
    assert result.metric("oLRP@100") == 0.5  # FP 1, FN 1 of 4, after the third detection
    assert result.metric("oLRP-loc@100") == 0


def remarks(result: Result, name: str) -> list[str]:
    spec = metrics.named(result.protocol, name)
    assert isinstance(spec.metric, Ranked)
    return spec.metric.remarks(spec, [*details_of(result, name).values()], result.protocol)


def test_remarks_state_the_threshold_and_ties() -> None:
    result = by_hand((0.9, 0, 0.8, 0.6, 0, 0, 0.55), positives=4)
    assert remarks(result, "oLRP") == ["at score 0.6"]
    tied = replace(result.detections, score=np.full(len(result.detections), 0.5))
    again = evaluate(result.ground_truth, tied, result.protocol)
    assert remarks(again, "oLRP") == ["at score 0.5, which cuts a tie"]
    none = by_hand((0,), positives=1)
    assert remarks(none, "oLRP") == ["no true positives"]
    assert remarks(none, "oLRP-loc") == ["undefined for 1 without true positives"]
    assert remarks(result, "oLRP-loc") == remarks(none, "oLRP-fn") == []


def test_remarks_count_the_thresholds_of_several_classes() -> None:
    """Class a ties two detections of which the second is false; b has distinct scores."""
    boxes = [[0, 0, 40, 40], [100, 0, 140, 40]]
    truth = gt_table(boxes, image=1, label=["a", "b"], images=[1], classes=["a", "b"])
    far = [300, 300, 340, 340]
    detections = dt_table(
        [boxes[0], far, boxes[1], far], [0.5, 0.5, 0.9, 0.8], image=1, label=["a", "a", "b", "b"]
    )
    result = evaluate(truth, detections, "coco")
    assert remarks(result, "oLRP") == ["1 of 2 thresholds cut ties"]
    assert [one["cuts_tie"] for one in details_of(result).values()] == [True, False]
