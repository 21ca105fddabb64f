"""Real data, with metrics that others published or computed for it."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from detap.evaluation.detection import Result, evaluate
from detap.formats.coco import format as coco
from detap.formats.voc import tables as voc
from detap.protocols import Protocol, protocol
from detap.tables.detection import Detections, GroundTruth
from tests.oracle import score
from tests.parity import reference
from tests.parity.compare import assert_same_bits
from tests.parity.voc_eval import voc_eval

Tables = tuple[GroundTruth, Detections]


def per_class(result: Result) -> dict[str, dict[str, float]]:
    return {name: result.class_metrics(k) for k, name in enumerate(result.classes)}


@pytest.fixture(scope="module")
def voc2007(real_data: Path) -> Tables:
    folder = real_data / "voc2007-test"
    truth = voc.read_ground_truth(folder, image_set="test")
    return truth, voc.read_detections(folder / "detections", truth)


@pytest.fixture(scope="module")
def voc2007_expected(real_data: Path) -> dict[str, Any]:
    text = (real_data / "voc2007-test" / "expected.json").read_text("utf-8")
    return json.loads(text)  # type: ignore[no-any-return]


@pytest.mark.parametrize("year", ["07", "12"])
@pytest.mark.parametrize("threads", [1, 2, 8])
def test_voc2007_test_equals_py_faster_rcnn(
    voc2007: Tables, voc2007_expected: dict[str, Any], year: str, threads: int
) -> None:
    truth, detections = voc2007
    result = evaluate(truth, detections, f"voc20{year}-py", threads=threads)
    actual = per_class(result)
    assert set(actual) == set(voc2007_expected["per_class"])
    for name, expected in voc2007_expected["per_class"].items():
        assert actual[name]["AP"] == pytest.approx(expected[f"ap_{year}"], abs=1e-5), name
        label = result.classes.index(name)
        assert result.detections_count[label] == expected["detections"]
        assert result.recall[0, label, 0, 0] == pytest.approx(expected["max_recall"], abs=1e-9)
    assert result.summary["mAP"] == pytest.approx(voc2007_expected[f"map_{year}"], abs=1e-6)


NO_EDGE = {"inclusive_pixels": False}
ALL_NORMAL: dict[str, Any] = {"ignore_flags": ()}


@pytest.mark.parametrize(
    ("preset", "changes", "expected"),
    [
        ("voc2007-py", NO_EDGE, 0.743535),
        ("voc2012-py", NO_EDGE, 0.766942),
        ("voc2007-py", ALL_NORMAL, 0.666841),
        ("voc2012-py", ALL_NORMAL, 0.682513),
    ],
)
def test_voc2007_test_with_other_protocols(
    voc2007: Tables, preset: str, changes: dict[str, Any], expected: float
) -> None:
    result = evaluate(*voc2007, replace(protocol(preset), **changes))
    assert result.summary["mAP"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("label", [0, 4, 14])  # aeroplane, bottle, person: 3400 to 32,000 rows
def test_voc2007_test_equals_our_voc_eval(voc2007: Tables, label: int) -> None:
    """Bit by bit along the ranking: precision and recall after every counted detection."""
    truth, detections = voc2007
    recall, precision, average = voc_eval(truth, detections, label, eleven_points=True)
    result = evaluate(truth, detections, "voc2007-py")
    assert result.class_metrics(label)["AP"] == pytest.approx(average, abs=1e-14)
    curve = next(curve for curve in result.curves() if curve.label == label)
    ours = set(zip(curve.recall.tolist(), curve.precision.tolist(), strict=True))
    # Ignored detections repeat the point before them; leading ones have none.
    theirs = set(zip(recall.tolist(), precision.tolist(), strict=True))
    assert ours - {(0.0, 0.0)} == theirs - {(0.0, 0.0)}


def _voc_100(folder: Path, boxes: str, ground_truth: str = "voc_xml") -> Tables:
    truth = voc.read_ground_truth(folder / "gt" / ground_truth)
    name = {"xyxy": "abs_xyx2y2", "xywh": "abs_xywh"}[boxes]
    names = folder / "voc.names"
    return truth, voc.read_detections(folder / "dt" / name, truth, class_names=names, boxes=boxes)


@pytest.mark.parametrize("boxes", ["xyxy", "xywh"])
@pytest.mark.parametrize(
    ("preset", "flags", "expected"),
    [
        ("voc2012", ("difficult",), 0.613875),
        ("voc2007-py", ("difficult",), 0.607511),
        ("voc2012", (), 0.610913),
        # numpy's levels; MATLAB's give .604126: a recall of .3 or .7 more is reached.
        ("voc2007-py", (), 0.598969),
    ],
)
def test_voc_100(
    real_data: Path, boxes: str, preset: str, flags: tuple[str, ...], expected: float
) -> None:
    truth, detections = _voc_100(real_data / "voc-100", boxes)
    result = evaluate(truth, detections, replace(protocol(preset), ignore_flags=flags))
    assert result.summary["mAP"] == pytest.approx(expected, abs=1e-6)


def _expected(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text("utf-8"))  # type: ignore[no-any-return]


def _assert_values(result: Result, expected: dict[str, Any]) -> None:
    """Compare the summary and the classes with a reference's file, where -1 is undefined."""
    required = {n: math.nan if v == -1 else v for n, v in expected["stats"].items()}
    assert result.summary == pytest.approx(required, abs=1e-6, nan_ok=True)
    actual = per_class(result)
    for name, numbers in expected.get("per_class", {}).items():
        for key, value in numbers.items():
            value_or_nan = math.nan if value == -1 else value
            assert actual[name][key] == pytest.approx(value_or_nan, abs=1e-6, nan_ok=True), (
                name,
                key,
            )


def test_voc_100_as_coco(real_data: Path) -> None:
    folder = real_data / "voc-100"
    truth = coco.read_ground_truth(folder / "gt" / "coco_v1" / "instances_default.json")
    detections = coco.read_detections(folder / "dt" / "coco_aligned_to_gt_v1.json", truth)
    _assert_values(evaluate(truth, detections, "coco"), _expected(folder / "expected_coco.json"))


def _toy(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    instances = _expected(folder / "gts_coco_format" / "toy_example_coco.JSON")
    return instances, _expected(folder / "dets_coco_format" / "coco_dets.json")["annotations"]


def _assert_toy_values(result: Result, folder: Path) -> None:
    """Compare a result with pycocotools, annotations numbered from 1."""
    assert result.summary == pytest.approx(
        reference.run(*_toy(folder)).summary, abs=1e-15, nan_ok=True
    )
    assert math.isnan(result.summary["APs"])
    assert math.isnan(result.summary["APm"])


def test_voc_toy_known_numbers_include_annotation_id_zero(real_data: Path) -> None:
    """The known AP of .495217 is pycocotools' with annotation 0 taken as unmatched (quirk 3)."""
    folder = real_data / "voc-toy"
    assert any(row["id"] == 0 for row in _toy(folder)[0]["annotations"])
    truth = coco.read_ground_truth(folder / "gts_coco_format" / "toy_example_coco.JSON")
    detections = coco.read_detections(folder / "dets_coco_format" / "coco_dets.json", truth)
    theirs = reference.run(*_toy(folder), renumber=False).summary
    for summary in (evaluate(truth, detections, "coco-strict").summary, theirs):
        assert summary["AP"] == pytest.approx(0.495216879, abs=1e-6)
        assert summary["AP50"] == pytest.approx(0.759488449, abs=1e-6)


def test_voc_toy_as_coco(real_data: Path) -> None:
    folder = real_data / "voc-toy"
    truth = coco.read_ground_truth(folder / "gts_coco_format" / "toy_example_coco.JSON")
    detections = folder / "dets_coco_format" / "coco_dets.json"
    _assert_toy_values(evaluate(truth, coco.read_detections(detections, truth), "coco"), folder)


@pytest.mark.parametrize("names", ["classid", "classname"])
@pytest.mark.parametrize(("box_format", "boxes"), [("xyx2y2", "xyxy"), ("xywh", "xywh")])
def test_voc_toy_as_xml_and_text(real_data: Path, names: str, box_format: str, boxes: str) -> None:
    folder = real_data / "voc-toy"
    truth = voc.read_ground_truth(folder / "gts_vocpascal_format")
    detections = voc.read_detections(
        folder / f"dets_{names}_abs_{box_format}",
        truth,
        class_names=folder / "voc.names" if names == "classid" else None,
        boxes=boxes,
    )
    _assert_toy_values(evaluate(truth, detections, "coco"), folder)


def _cartucho(folder: Path) -> Tables:
    truth = voc.read_ground_truth(folder / "ground-truth")
    return truth, voc.read_detections(folder / "detection-results", truth)


def test_cartucho_85_as_text(real_data: Path) -> None:
    """All-point AP, inclusive pixels, IoU .5.

    8 classes occur only in detections and are left out.
    """
    folder = real_data / "cartucho-85"
    expected = _expected(folder / "expected0_5.json")
    required = {name: numbers for name, numbers in expected.items() if isinstance(numbers, dict)}
    result = evaluate(*_cartucho(folder), "voc2012")
    assert set(result.classes) == set(required)
    for k, name in enumerate(result.classes):
        actual = result.class_metrics(k)["AP"]
        assert actual == pytest.approx(required[name]["ap"], abs=1e-12, nan_ok=True), name
        assert result.true_positives[k] == required[name]["tp"]
        assert result.false_positives[k] == required[name]["fp"]
        assert result.ground_truths[k] == required[name]["num_groundtruth"]
    assert int((result.ground_truths > 0).sum()) == 30
    assert result.summary["mAP"] == pytest.approx(0.31047718500906324, abs=1e-12)


def test_cartucho_85_curves(real_data: Path) -> None:
    """The raw points of every curve, as Cartucho's tool writes them."""
    folder = real_data / "cartucho-85"
    expected = _expected(folder / "expected0_5.json")
    result = evaluate(*_cartucho(folder), "voc2012")
    for curve in result.curves():
        required = expected[result.classes[curve.label]]
        assert curve.precision.tolist() == pytest.approx(required["precision"], abs=1e-12)
        assert curve.recall.tolist() == pytest.approx(required["recall"], abs=1e-12)


def test_cartucho_85_as_coco(real_data: Path) -> None:
    folder = real_data / "cartucho-85"
    truth = coco.read_ground_truth(folder / "groundtruths_coco.json")
    detections = coco.read_detections(folder / "detections_coco.json", truth)
    _assert_values(evaluate(truth, detections, "coco"), _expected(folder / "expected_coco.json"))


@pytest.mark.parametrize(
    ("preset", "inclusive_pixels", "expected"),
    [
        # numpy's levels and MATLAB's give the same here.
        ("voc2007", True, 0.2683982684),
        ("voc2007-py", True, 0.2683982684),
        ("voc2012", True, 0.2456866805),
        ("voc2012", False, 0.2253968254),
    ],
)
def test_odm_sample_2(
    real_data: Path, preset: str, inclusive_pixels: bool, expected: float
) -> None:
    folder = real_data / "odm-sample-2"
    truth = voc.read_ground_truth(folder / "groundtruths", boxes="xywh")
    detections = voc.read_detections(folder / "detections", truth, boxes="xywh")
    rules = replace(protocol(preset), iou_thresholds=(0.3,), inclusive_pixels=inclusive_pixels)
    assert evaluate(truth, detections, rules).summary["mAP"] == pytest.approx(expected, abs=1e-6)


def test_detectron_style_proposals_on_coco_val2014_100(real_data: Path) -> None:
    """The oracle and the core give the same proposal recall of real detections."""
    folder = real_data / "coco-val2014-100"
    truth = coco.read_ground_truth(folder / "instances_val2014_100.json")
    detections = coco.read_detections(folder / "instances_val2014_fakebbox100_results.json", truth)
    for empty_images in ("count", "exclude"):
        rules: Protocol = replace(protocol("proposals"), empty_images=empty_images)
        ours, plain = evaluate(truth, detections, rules), score(truth, detections, rules)
        assert_same_bits(ours.recall, plain.recall, "proposal recall")
