"""Values behind the metrics of --metrics, in the JSON and text reports; by hand.

Class a has 5 ground truths on 4 images and the ranking T F T T F with scores .9 to .5; class b has
2 and no detections; class c has none.
"""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from detap.evaluation.detection import Result, evaluate
from detap.protocols import protocol
from detap.report.numbers import UNDEFINED
from detap.report.sections.detection import detection_report
from detap.report.writers import json as json_writer
from detap.report.writers import text
from detap.report.writers.registry import Style
from detap.tables.detection import Detections, GroundTruth
from tests.schemas import valid

WIDE = Style(width=300)
BOXES = [[0, 0, 10, 10], [20, 0, 30, 10], [0, 0, 10, 10], [0, 0, 10, 10], [0, 0, 10, 10]]


def result_of(metrics: str, classes: tuple[str, ...] = ("a", "b", "c"), **fields: Any) -> Result:
    labels = ["a"] * 5 + ["b"] * 2 * ("b" in classes)
    extra = [[50, 50, 60, 60], [70, 50, 80, 60]] if "b" in classes else []
    truth = GroundTruth.from_arrays(
        image=[1, 1, 2, 3, 4, 1, 2][: len(labels)],
        label=labels,
        boxes=BOXES + extra,
        images=[1, 2, 3, 4],
        classes=classes,
    )
    far = [90, 90, 99, 99]
    detections = Detections.from_arrays(
        image=[1, 1, 2, 3, 4],
        label=["a"] * 5,
        boxes=[BOXES[0], far, BOXES[2], BOXES[3], far],
        score=[0.9, 0.8, 0.7, 0.6, 0.5],
    )
    listed = replace(protocol("coco"), metrics=tuple(metrics.split(",")), **fields)
    return evaluate(truth, detections, listed)


def record_of(result: Result) -> Any:
    return valid(json.loads(json_writer.render(detection_report(result), WIDE)))["metric_details"]


def test_the_points_behind_each_value_are_in_the_json_report() -> None:
    details = record_of(result_of("MR-2,miss@0.25,recall@fppi=0.25,macro-F2,precision@recall=0.9"))
    miss = [0.8] * 6 + [0.4] * 3
    assert details["MR-2"]["classes"] == 2
    of_a, of_b = details["MR-2"]["by_class"]
    assert (of_a["name"], of_b["name"]) == ("a", "b")
    assert of_a["fppi"] == [0.01, 0.0178, 0.0316, 0.0562, 0.1, 0.1778, 0.3162, 0.5623, 1]
    assert of_a["miss_rate"] == pytest.approx(miss)
    assert of_b["miss_rate"] == [1] * 9
    assert details["miss@0.25"]["by_class"][0]["miss_rate"] == pytest.approx([0.4])
    assert details["recall@fppi=0.25"]["by_class"][0]["recall"] == pytest.approx([0.6])
    assert details["recall@fppi=0.25"]["by_class"][0]["last_fppi"] == 0.5
    # F2 of T F T T is 5 * 3 / (4 + 4 * 5)
    best = {"score": 0.6, "precision": 0.75, "recall": 0.6}
    first = details["macro-F2"]["by_class"][0]
    assert {key: first[key] for key in best} == pytest.approx(best)
    assert details["precision@recall=0.9"]["by_class"][0]["score"] is None


def test_exact_references_are_listed() -> None:
    details = record_of(result_of("MR-4", mr_points="exact"))["MR-4"]["by_class"][0]["fppi"]
    assert details == pytest.approx((10 ** np.arange(-4, 0.1, 0.5)).tolist())


def test_a_pooled_metric_has_one_entry() -> None:
    details = record_of(result_of("F2,pooled-CPM"))
    assert list(details["F2"]) == ["classes", "pooled"]
    # of 7 ground truths: 5 * 3 / (4 + 4 * 7)
    result = result_of("F2")
    assert result.summary["F2"] == pytest.approx(15 / 32)
    assert details["F2"]["pooled"] == pytest.approx(
        {"score": 0.6, "precision": 0.75, "recall": 3 / 7}
    )
    assert details["pooled-CPM"]["pooled"]["last_fppi"] == 0.5
    assert "F2" not in result.by_class
    assert result.metric_by_class("F2")[:2].tolist() == pytest.approx([15 / 24, 0])


@pytest.mark.parametrize(
    ("classes", "metrics", "line"),
    [
        ("abc", "MR-2", "MR-2: mean over 2 of 3 classes"),
        ("abc", "F2", "F2: 2 classes ranked together; at score 0.6"),
        (
            "abc",
            "recall@precision=0.9",
            "recall@precision=0.9: mean over 2 of 3 classes; 1 of 2 classes have 0 because "
            "precision does not reach 0.9",
        ),
        (
            "abc",
            "precision@recall=0.9",
            "precision@recall=0.9: mean over 2 of 3 classes; 2 of 2 classes have 0 because recall "
            "does not reach 0.9",
        ),
        (
            "abc",
            "FROC",
            "FROC: mean over 2 of 3 classes; 2 of 2 curves end before 8 FPPI, constant from there",
        ),
        ("a", "MR-2", "MR-2: of 1 class"),
        ("a", "macro-F1", "macro-F1: at score 0.6"),
        ("a", "precision@recall=0.9", "precision@recall=0.9: 0 because recall does not reach 0.9"),
        ("a", "CPM", "CPM: the curve ends at 0.5 FPPI; from there the recall is constant"),
    ],
)
def test_the_text_states_classes_and_gaps(classes: str, metrics: str, line: str) -> None:
    lines = text.render(detection_report(result_of(metrics, tuple(classes))), WIDE).splitlines()
    assert line in lines


def test_a_miss_rate_of_zero_is_explained() -> None:
    result = result_of("MR-2", ("a",))
    perfect = Detections.from_arrays(
        image=[1, 1, 2, 3, 4], label=["a"] * 5, boxes=BOXES, score=[0.9] * 5
    )
    again = evaluate(result.ground_truth, perfect, result.protocol)
    assert again.summary["MR-2"] == 0
    lines = text.render(detection_report(again), WIDE).splitlines()
    assert "MR-2: 0 because the miss rate is 0 from 0.01 FPPI on" in lines
    least = replace(again.protocol, mr_floor=0.001)
    assert evaluate(result.ground_truth, perfect, least).summary["MR-2"] == pytest.approx(0.001)


def test_undefined_values_are_dashes_and_null() -> None:
    """Without ground truths there is no class to average over."""
    truth = GroundTruth.from_arrays(
        image=np.zeros(0, int),
        label=np.zeros(0, int),
        boxes=np.zeros((0, 4)),
        images=[1],
        classes=["a"],
    )
    none = Detections.from_arrays(
        image=np.zeros(0, int), label=np.zeros(0, int), boxes=np.zeros((0, 4)), score=np.zeros(0)
    )
    names = ("MR-2", "miss@1", "CPM", "recall@fppi=1", "F2", "macro-F1", "precision@recall=0.5")
    result = evaluate(truth, none, replace(protocol("coco"), metrics=names))
    report = detection_report(result)
    record = valid(json.loads(json_writer.render(report, WIDE)))
    assert [record["summary"][name] for name in names] == [None] * len(names)
    for line in text.render(report, WIDE).splitlines():
        if line.startswith(names) and ":" not in line:
            assert line.split()[1] == UNDEFINED
