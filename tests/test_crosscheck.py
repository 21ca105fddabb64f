"""The cross-check with pycocotools, on boxes of every kind."""

from dataclasses import replace
from math import inf, nan
from typing import Any

import numpy as np
import pytest

from detap.analysis.crosscheck import check_supported, cross_check, difference
from detap.errors import Note, UsageError
from detap.evaluation.detection import evaluate
from detap.protocols import PRESETS, protocol
from detap.tables.detection import Detections, GroundTruth
from tests.cases import Case, Detection, Truth


def tables(box_format: str = "xywh") -> tuple[GroundTruth, Detections]:
    """Return 200 noisy detections of 60 boxes of 3 classes on 8 images."""
    random = np.random.default_rng(5)
    corner, side = random.uniform(0, 500, (60, 2)), random.uniform(5, 150, (60, 2))
    boxes = np.hstack([corner, corner + side if box_format == "xyxy" else side])
    image, label = random.integers(0, 8, 60), random.integers(0, 3, 60)
    truth = GroundTruth.from_arrays(
        image=image,
        label=label,
        boxes=boxes,
        box_format=box_format,
        crowd=random.random(60) < 0.1,
        images=range(8),
        classes=range(3),
    )
    chosen = random.integers(0, 60, 200)
    detections = Detections.from_arrays(
        image=image[chosen],
        label=label[chosen],
        boxes=boxes[chosen] * random.normal(1, 0.01, (200, 4)),
        box_format=box_format,
        score=random.integers(0, 20, 200) / 20,
    )
    return truth, detections


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"iou_thresholds": (0.3, 0.5, 1.0)},
        {"max_dets": (2, 7)},
        {"max_dets": (3, None)},
        {"area_ranges": protocol("proposals").area_ranges},
        {"area_source": "box"},
        {"class_agnostic": True},
        {"iou_dtype": "float32", "recall_grid": "float32"},
        {"recall_grid": "hundredths"},
        {"min_score": 0.3},
    ],
    ids=str,
)
@pytest.mark.parametrize("box_format", ["xywh", "xyxy"])
def test_pycocotools_agrees(changes: dict[str, Any], box_format: str) -> None:
    result = evaluate(*tables(box_format), replace(protocol("coco"), **changes))
    check = cross_check(result)
    assert check.equal, check.conclusion
    assert check.largest == 0
    assert check.metrics.keys() == result.summary.keys()
    assert "to the last bit" in check.conclusion
    assert check.arrays["precision"][0] == result.full_precision().size


def test_pycocotools_agrees_on_masks() -> None:
    """Two masks of equal boxes, and one of half the width, IoU above one half."""
    case = Case(
        truths=(Truth(1, 1, (0, 0, 20, 20)), Truth(1, 1, (100, 50, 40, 40))),
        dt=(Detection(1, 1, (0, 0, 20, 20), 0.9), Detection(1, 1, (100, 50, 30, 40), 0.8)),
    )
    protocol = PRESETS["coco-segm"]
    check = cross_check(evaluate(*case.tables_for(protocol), protocol))
    assert check.equal, check.conclusion
    assert 0.5 < check.metrics["AP"][1] < 1


def test_pycocotools_agrees_with_torchmetrics() -> None:
    """With float32 thresholds and recall levels it computes what torchmetrics does."""
    assert cross_check(evaluate(*tables(), "torchmetrics")).equal


@pytest.mark.parametrize("class_agnostic", [False, True])
@pytest.mark.parametrize("row", [0, 7, 31])
def test_an_annotation_of_id_0(row: int, class_agnostic: bool) -> None:
    """On the unmodified file pycocotools equals coco-strict bit for bit; notes have both values."""
    truth, detections = tables()
    note = Note("annotation-id-zero", "", severity="info")
    truth = replace(truth, zero_id=np.arange(len(truth)) == row, notes=(note,))
    results = {
        name: evaluate(truth, detections, replace(protocol(name), class_agnostic=class_agnostic))
        for name in ("coco", "coco-strict")
    }
    check, strict = (cross_check(result) for result in results.values())
    assert check.equal
    assert strict.equal
    assert "to the last bit" in strict.conclusion
    assert check.unmodified_file == {name: theirs for name, (_, theirs) in strict.metrics.items()}
    numbers = {name: f"{result.summary['AP']:.4f}" for name, result in results.items()}
    other_values = f"AP {numbers['coco-strict']} instead of {numbers['coco']}"
    assert f"other values on the unmodified file, {other_values}" in check.conclusion
    assert "to the last bit" not in check.conclusion
    assert [note.code for note in check.notes][:1] == ["cross-check-renumbered"]
    for name, other in (("coco", "coco-strict"), ("coco-strict", "coco")):
        (said,) = [n for n in results[name].notes if n.code == note.code]
        expected = f"AP is {numbers[name]} here and {numbers[other]} with --protocol {other}"
        assert said.message.endswith(expected)


def test_an_unmatched_annotation_of_id_0_changes_nothing() -> None:
    truth, detections = tables()
    lonely = GroundTruth.from_arrays(image=[0], label=[0], boxes=[[2000, 2000, 2009, 2009]])
    truth = replace(
        truth,
        zero_id=np.arange(len(truth)) == 0,
        corners=np.vstack((lonely.corners, truth.corners[1:])),
    )
    check = cross_check(evaluate(truth, detections, "coco"))
    assert check.unmodified_file is None
    assert "to the last bit" in check.conclusion


def test_no_detections_at_all() -> None:
    truth, detections = tables()
    check = cross_check(evaluate(truth, detections.select(np.zeros(0, np.int64)), "coco"))
    assert check.equal
    assert check.metrics["AP"] == (0.0, 0.0)


def test_a_difference_is_detected() -> None:
    """The comparison can fail: one entry is off by one bit."""
    result = evaluate(*tables(), "coco")
    recall = result.recall.copy()
    recall[3, 1, 0, 2] = np.nextafter(recall[3, 1, 0, 2], 2)
    check = cross_check(replace(result, recall=recall))
    assert not check.equal
    assert check.arrays["recall"][1] == 1
    assert check.conclusion.endswith(f"by {check.largest:.6g} at most")
    assert 0 < check.largest < 1e-15


def test_the_order_of_ties_matters() -> None:
    truth, detections = tables()
    result = evaluate(truth, detections, "coco")
    turned = evaluate(truth, detections.select(np.arange(len(detections))[::-1].copy()), "coco")
    check = cross_check(replace(result, _run=turned._run))
    assert not check.equal


@pytest.mark.parametrize(
    ("ours", "theirs", "gap"),
    [(0.5, 0.5, 0), (0.5, 0.25, 0.25), (nan, nan, 0), (nan, 0.5, inf), (0.5, nan, inf)],
)
def test_difference(ours: float, theirs: float, gap: float) -> None:
    assert difference(ours, theirs) == gap


def test_boxes_without_exact_width_and_height_are_counted() -> None:
    truth, detections = tables()
    area = detections.box_area.copy()
    area[3] += 1  # no width and height near those of the corners have this product
    check = cross_check(evaluate(truth, replace(detections, box_area=area), "coco"))
    assert check.inexact == 1
    assert [(note.code, note.count) for note in check.notes] == [("cross-check-inexact", 1)]


@pytest.mark.parametrize(
    ("name", "changes", "field"),
    [
        ("voc2012", {}, "candidate"),
        ("proposals", {}, "matching"),
        ("ultralytics", {}, "ignore-flags, .* interpolation"),
        ("tidecv-ap", {}, "max-iou-threshold, equal-iou, max-dets-scope, precision-eps, absent"),
        ("globox", {}, "ignore-flags"),
        ("coco", {"interpolation": "trapezoid-101"}, "interpolation"),
        ("coco", {"absent_class": "zero-if-detected"}, "absent-class"),
        ("coco", {"strict_iou": True}, "strict-iou"),
        ("coco", {"tie_break": "file"}, "tie-break"),
        ("coco-boundary", {}, "iou-type"),
        ("dota", {}, "iou-type"),
    ],
)
def test_other_protocols_are_rejected(name: str, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(UsageError, match=rf"does not support protocol {name} .*{field}"):
        check_supported(replace(protocol(name), **changes))
