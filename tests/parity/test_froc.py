"""FROC scores, F-beta and fractions at a level against other implementations.

The expected values of worked cases are those of LUNA16's script, nnDetection, MONAI and
scikit-learn, and of the definitions; those of data sets were computed from matches of pycocotools.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap import metrics
from detap.evaluation.detection import Result, evaluate
from detap.protocols import protocol
from tests.tables import dt_table, gt_table

HALF = replace(protocol("coco"), iou_thresholds=(0.5,))


def read(measures: Path, name: str) -> Any:
    return json.loads((measures / name).read_text("utf-8"))


def ranked(case: dict[str, Any]) -> Result:
    """Return the result of detections with these scores that hit or miss, on some images."""
    hits, count, images = case["true_positive"], case["ground_truths"], case["images"]
    boxes = [[20 * k, 0, 10, 10] for k in range(count)]
    truth = gt_table(
        boxes, image=1, label=1, box_format="xywh", images=range(1, images + 1), classes=[1]
    )
    unmatched = iter(boxes)
    detected = [next(unmatched) if hit else [0, 500, 10, 10] for hit in hits]
    detections = dt_table(
        np.reshape(detected, (-1, 4)), case["scores"], image=1, label=1, box_format="xywh"
    )
    return evaluate(truth, detections, HALF)


def with_fields(result: Result, **fields: Any) -> Result:
    return replace(result, protocol=replace(result.protocol, **fields))


CASES = (
    *("monai_case_4", "tp_first", "fp_first", "tie", "no_fp", "no_tp", "no_detections"),
    *("perfect_plus_fp", "many_fp"),
)
CPM = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


@pytest.mark.parametrize("name", CASES)
def test_worked_cases_have_the_expected_scores(measures: Path, name: str) -> None:
    case = read(measures, "froc_cases.json")[name]
    result, expected = ranked(case), case["expected"]
    for rule in ("step", "linear"):
        ours = with_fields(result, froc_rule=rule)
        assert [ours.metric(f"recall@fppi={f}") for f in CPM] == pytest.approx(expected[rule])
        assert ours.metric("CPM") == pytest.approx(expected[f"CPM {rule}"], abs=1e-12)
        assert ours.metric("FROC") == pytest.approx(expected[f"CAMELYON {rule}"], abs=1e-12)
    linear = with_fields(result, froc_rule="linear")
    theirs = expected["nnDetection (1/8..8)"]  # None without true positives
    assert theirs is None or linear.metric("CPM") == pytest.approx(theirs, abs=1e-12)
    for metric, theirs in expected["pr"].items():
        if not metric.startswith("F"):
            assert result.metric(metric) == pytest.approx(theirs, abs=1e-12)
            continue
        spec = metrics.named(HALF, metric.removesuffix("-max"))
        metric_object: Any = spec.metric
        details = metric_object.details_by_class(result, spec)[0]
        nothing = theirs["threshold"] is None
        assert result.metric(spec.name) == pytest.approx(theirs["value"], abs=1e-12)
        assert details["score"] == pytest.approx(
            np.nan if nothing else theirs["threshold"], nan_ok=True
        )
        if not nothing:
            ours_here = details["precision"], details["recall"]
            assert ours_here == pytest.approx((theirs["precision"], theirs["recall"]))


def test_a_list_of_points_replaces_those_of_froc(measures: Path) -> None:
    """MONAI's case by hand: one score of 0.8 has two hits and a miss, so 0.5 or 0.75 at 1/4."""
    result = ranked(read(measures, "froc_cases.json")["monai_case_4"])
    quarter = with_fields(result, froc_points=(0.25,))
    assert quarter.metric("FROC") == 0.5
    assert with_fields(quarter, froc_rule="linear").metric("FROC") == 0.75
    assert quarter.metric("CPM") == result.metric("CPM")


FILES = {
    "cartucho-85": ("groundtruths_coco.json", "detections_coco.json"),
    "coco-val2014-100": (
        "instances_val2014_100.json",
        "instances_val2014_fakebbox100_results.json",
    ),
}


@pytest.mark.filterwarnings("ignore::detap.errors.DetapWarning")
@pytest.mark.parametrize("name", FILES)
def test_data_sets_have_the_expected_metrics(real_data: Path, measures: Path, name: str) -> None:
    expected = read(measures, "froc_pr_mr_expected.json")[name]
    truth, detections = (real_data / name / file for file in FILES[name])
    result = evaluate(truth, detections, HALF)
    linear = with_fields(result, froc_rule="linear")
    mean = expected["mean"]
    kinds = ("precision@recall", "recall@precision")
    levels = [f"{kind}={level}" for kind in kinds for level in (0.5, 0.8, 0.9)]
    pairs = {
        "CPM": mean["CPM step"],
        "MR-2": mean["MR-2"] / 100,
        "macro-F1": mean["F1-max"],
        "macro-F2": mean["F2-max"],
        **{level: mean[level] for level in levels},
    }
    for metric, value in pairs.items():
        assert result.metric(metric) == pytest.approx(value, abs=1e-9), metric
    assert linear.metric("CPM") == pytest.approx(mean["CPM linear"], abs=1e-9)
    assert linear.metric("FROC") == pytest.approx(mean["CAMELYON linear"], abs=1e-9)
    recalls = [result.metric(f"recall@fppi={f}") for f in CPM]
    assert recalls == pytest.approx(mean["recall@fppi (1/8..8), step"], abs=1e-9)
    assert np.isfinite(result.metric_by_class("CPM")).sum() == mean["classes"]
    for of_class, its in expected["classes"].items():
        label = result.classes.index(of_class)
        for metric, value in {
            "CPM": its["froc"]["CPM step"],
            "FROC": its["froc"]["CAMELYON step"],
            "MR-2": its["MR-2"] / 100,
            "MR-4": its["MR-4"] / 100,
            "F1": its["pr"]["F1-max"]["value"],
            "F2": its["pr"]["F2-max"]["value"],
            "F0.5": its["pr"]["F0.5-max"]["value"],
            **{level: its["pr"][level] for level in levels},
        }.items():
            ours = result.metric_by_class(metric)[label]
            assert ours == pytest.approx(value, abs=1e-9), (of_class, metric)


def test_duplicates_can_be_ignored() -> None:
    """Ranking by hand: T, a duplicate, T; of 2 ground truths on 1 image; recall at 0 FPPI."""
    boxes = [[0, 0, 10, 10], [50, 0, 60, 10]]
    truth = gt_table(boxes, image=1, label=1, images=[1])
    detections = dt_table([boxes[0], boxes[0], boxes[1]], [0.9, 0.8, 0.7], image=1, label=1)
    ignore = replace(HALF, duplicates="ignore", froc_points=(0.5,))
    for fields, recall in ((ignore, 1.0), (replace(ignore, duplicates="false-positive"), 0.5)):
        result = evaluate(truth, detections, fields)
        assert result.metric("FROC") == recall
        assert result.metric("AP") == pytest.approx((51 + 50 * 2 / 3) / 101)
    assert "duplicates:ignore" in evaluate(truth, detections, ignore).signature


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("F0", "F0: beta must be above 0"),
        ("precision@recall=1.5", "precision@recall=1.5: recall is from 0 to 1"),
        ("recall@precision=2", "recall@precision=2: precision is from 0 to 1"),
        ("MR-2@75", "MR-2@75: duplicates are known at the lowest IoU threshold only"),
    ],
)
def test_numbers_in_names_are_checked(name: str, message: str) -> None:
    from detap.errors import UsageError

    coco = replace(protocol("coco"), duplicates="ignore")
    with pytest.raises(UsageError, match=message):
        metrics.named(coco, name)
