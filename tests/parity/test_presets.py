"""Presets compared with the implementations that they are named after.

Expected values are those of the implementations on real data. An installed implementation is also
run, on that data and on random boxes. Larger differences than a preset's tolerance are tested too:
docs/presets.md lists them with the reason.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap.core import curves
from detap.evaluation.detection import evaluate
from detap.evaluation.tie_range import tie_range
from detap.formats.coco import format as coco
from detap.formats.voc import tables as voc
from detap.protocols import PRESETS, Protocol, protocol
from detap.tables.detection import Detections, GroundTruth
from tests.parity import others
from tests.parity.voc_eval import voc_eval

Tables = tuple[GroundTruth, Detections]


@pytest.fixture(scope="module")
def data(real_data: Path) -> dict[str, Tables]:
    return {
        "voc07": _voc2007(real_data / "voc2007-test"),
        "cart": _coco(real_data / "cartucho-85", "groundtruths_coco", "detections_coco"),
        "val14": _coco(
            real_data / "coco-val2014-100",
            "instances_val2014_100",
            "instances_val2014_fakebbox100_results",
        ),
        "val14 in file order": _in_file_order(real_data / "coco-val2014-100"),
    }


def _coco(folder: Path, truth_name: str, found_name: str) -> Tables:
    truth = coco.read_ground_truth(folder / f"{truth_name}.json")
    return truth, coco.read_detections(folder / f"{found_name}.json", truth)


def _voc2007(folder: Path) -> Tables:
    """Return VOC 2007 as a COCO file stores it: no negative width or height."""
    truth = voc.read_ground_truth(folder, image_set="test")
    detections = voc.read_detections(folder / "detections", truth)
    corners = detections.corners.copy()
    assert ((corners[:, 2:] < corners[:, :2]).any(axis=1)).sum() == 1970
    corners[:, 2:] = np.maximum(corners[:, 2:], corners[:, :2])
    sides = corners[:, 2:] - corners[:, :2]
    return truth, replace(detections, corners=corners, box_area=sides[:, 0] * sides[:, 1])


def _in_file_order(folder: Path) -> Tables:
    """Return COCO's sample with images numbered in file order instead of by id."""
    truth, detections = _coco(
        folder, "instances_val2014_100", "instances_val2014_fakebbox100_results"
    )
    record = json.loads((folder / "instances_val2014_100.json").read_text("utf-8"))
    images = tuple(image["id"] for image in record["images"])
    assert any(later < earlier for earlier, later in pairwise(images))
    index = {name: number for number, name in enumerate(images)}
    number = np.array([index[name] for name in truth.images], np.int32)
    truth = replace(truth, images=images, image=number[truth.image], image_sizes=None)
    return truth, replace(detections, images=images, image=number[detections.image])


NO_EDGE: dict[str, Any] = {"inclusive_pixels": False}
ALL_POINTS: dict[str, Any] = {"interpolation": "all-point"}
NOTHING_NEUTRAL: dict[str, Any] = {"ignore_flags": ()}
ZERO: dict[str, Any] = {"absent_class": "zero"}

Row = tuple[str, dict[str, Any], str, str, float]
"""Preset, changed fields, data, metric, and its value."""

ROWS: list[Row] = [
    ("voc2007-py", {}, "voc07", "mAP", 0.7466074075969336),
    ("voc2012-py", {}, "voc07", "mAP", 0.7706458198523001),
    ("detectron2-voc", {}, "voc07", "mAP50", 0.7466203648578847),
    ("detectron2-voc", ALL_POINTS, "voc07", "mAP50", 0.7706491050644463),
    ("mmdet-voc", {}, "voc07", "mAP", 0.7466074),
    ("mmdet-voc", ALL_POINTS, "voc07", "mAP", 0.7706458568572998),
    ("mmdet-voc", NO_EDGE, "voc07", "mAP", 0.7435348),
    ("mmdet-voc", NO_EDGE | ALL_POINTS, "voc07", "mAP", 0.7669419050),
    ("tf-pascal", {}, "voc07", "mAP", 0.766951345992257),
    ("padilla", NO_EDGE, "cart", "mAP", 0.310296851058464),  # podm
    ("padilla", {}, "cart", "mAP", 0.31047718500906335),
    ("cartucho", {}, "cart", "mAP", 0.31047718500906324),
    ("globox", {}, "val14", "AP", 0.5023456313181366),
    ("tidecv-ap", {}, "cart", "AP", 0.1178699001614421),
    ("tidecv-ap", {}, "voc07", "AP", 0.38014841679016004),
    ("torchmetrics", {}, "cart", "AP", 0.149214968085289),
    ("torchmetrics", {}, "voc07", "AP", 0.3801428080),
    ("torchmetrics", {}, "val14", "AP", 0.5035117268562317),
    ("torchmetrics", {}, "val14 in file order", "AP", 0.5034999847),
    ("ultralytics", {}, "val14", "mAP", 0.49989411511727505),
    ("ultralytics", {}, "voc07", "mAP", 0.379594712387366),
    ("ultralytics", {}, "voc07", "mAP50", 0.6780096115279508),
]


def value(tables: Tables, protocol: Protocol, name: str) -> float:
    return evaluate(*tables, protocol).metric(name)


def difference(data: dict[str, Tables], row: Row) -> float:
    preset, changes, where, name, expected = row
    return abs(value(data[where], protocol(preset).with_changes(**changes), name) - expected)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_metric_is_within_the_tolerance_of_the_preset(data: dict[str, Tables], row: Row) -> None:
    tolerance = protocol(row[0]).tolerance
    assert tolerance is not None
    assert difference(data, row) <= tolerance


def test_every_preset_with_a_tolerance_is_tested() -> None:
    # In test_coco.py, test_masks.py, test_boundary.py, test_keypoints.py and test_<its name>.py.
    elsewhere = {"coco", "coco-strict", "coco-segm", "coco-keypoints", "kitti", "kitti-r11"}
    elsewhere |= {"coco-boundary", "dota", "dota-allpoint", "lvis", "lvis-segm"}
    elsewhere |= {"coco-polygon", "ultralytics-pose"}  # tests/formats/test_ultralytics.py
    elsewhere |= {"open-images-v2", "open-images-challenge"}
    elsewhere |= {"citypersons-script", "kaist-script", "crowdhuman"}  # test_pedestrians.py
    elsewhere |= {"crowdpose", "coco-wholebody"}  # test_benchmark_keypoints.py
    parts = ("body", "foot", "face", "lefthand", "righthand")
    elsewhere |= {f"coco-wholebody-{part}" for part in parts}
    elsewhere |= {"visdrone"}  # test_visdrone.py
    elsewhere |= {"lvis-fixed", "lvis-fixed-segm"}  # test_fixed_ap.py
    elsewhere |= {"wider-easy", "wider-medium", "wider-hard"}  # test_wider.py
    tried = elsewhere | {row[0] for row in ROWS}
    assert {name for name, protocol in PRESETS.items() if protocol.tolerance is not None} == tried


@pytest.mark.parametrize(
    ("row", "digits"),
    [
        # Numbers of which fewer digits are known, and those that no preset promises.
        (("globox", {}, "cart", "AP", 0.149297630), 1e-9),
        (("padilla", NO_EDGE, "val14", "mAP", 0.695488738), 1e-9),
        (("padilla", {}, "val14", "mAP", 0.695488738), 1e-9),
        (("tidecv-ap", {}, "val14 in file order", "AP", 0.4648125), 5e-8),
        (("voc2012", ZERO, "cart", "mAP", 0.2451135665), 1e-9),
        (("voc2012", ZERO | NOTHING_NEUTRAL, "voc07", "mAP", 0.6825126), 5e-8),
        (("coco", {}, "cart", "AP", 0.1492976308), 1e-9),
        (("coco", {}, "voc07", "AP", 0.3801451786), 1e-9),
        (("coco", {}, "val14 in file order", "AP", 0.5045689092), 5e-9),
        # Beyond the tolerance of tf-pascal.
        (("tf-pascal", NOTHING_NEUTRAL, "voc07", "mAP", 0.6780471387177207), 1.1e-5),
        (("tf-pascal", {"ignore_flags": ("crowd",)}, "val14", "mAP", 0.69738635), 2.6e-5),
        (("tf-pascal", {"ignore_flags": ("crowd",)}, "val14", "mAP", 0.69738644), 2.6e-5),
    ],
    ids=str,
)
def test_a_metric_is_as_close_as_the_docs_state(
    data: dict[str, Tables], row: Row, digits: float
) -> None:
    assert difference(data, row) <= digits


def test_equals_ultralytics_bitwise(data: dict[str, Tables]) -> None:
    """If float32 decides no match and no scores tie, its area under the curve is bit-equal."""
    summary = evaluate(*data["cart"], "ultralytics").summary
    assert (summary["mAP"], summary["mAP50"]) == (0.14762796371358136, 0.30991390744723646)
    summary = evaluate(*data["val14"], "ultralytics").summary
    assert (summary["mAP50"], summary["mAP75"]) == (0.6931903552594636, 0.5675857462965954)


def test_equals_globox_bitwise(data: dict[str, Tables]) -> None:
    assert value(data["val14"], protocol("globox"), "AP") == 0.5023456313181366


def test_detectron2_with_a_stable_sort(data: dict[str, Tables]) -> None:
    """A standard voc_eval of the detections Detectron2 would write: the same to the last sum."""
    truth, detections = data["voc07"]
    written = replace(
        detections,
        score=np.array([float(f"{score:.3f}") for score in detections.score]),
        corners=np.array([[float(f"{c:.1f}") for c in box] for box in detections.corners.tolist()]),
    )
    for name, label in (("aeroplane", 0), ("bottle", 4)):
        result = evaluate(truth, detections, "detectron2-voc")
        assert result.classes[label] == name
        for index, iou in ((0, 0.5), (5, 0.75)):
            expected = voc_eval(truth, written, label, iou=iou, eleven_points=True)[2]
            assert result.average_precision[index, label, 0] == pytest.approx(expected, abs=1e-14)


def test_two_orders_of_images_are_within_the_tie_bounds(data: dict[str, Tables]) -> None:
    """On this data torchmetrics, TIDE and supervision differ only by the order of images."""
    span = tie_range(evaluate(*data["val14"], "torchmetrics"))["AP"]
    assert span.lowest < 0.5034999847 < span.highest
    assert span.lowest < 0.5035117269 < span.highest


def test_tensorflow_and_mmdet_with_crowds_differ_by_one_swap(
    data: dict[str, Tables],
) -> None:
    """Two knives of equal score in one image: matched in one order there, ranked in the other."""
    rules = replace(protocol("tf-pascal"), ignore_flags=("crowd",))
    result = evaluate(*data["val14"], rules)
    assert len(set(tie_range(result)["mAP"])) == 1  # no order of ties is the reason
    knife = result.classes.index("knife")
    (curve,) = (curve for curve in result.curves() if curve.label == knife)
    (tie,) = np.flatnonzero(np.diff(curve.score) == 0)
    hits = np.diff(curve.recall, prepend=0) > 0
    assert hits[tie : tie + 2].tolist() == [True, False]
    hits[tie : tie + 2] = hits[tie : tie + 2][::-1]
    averages = result.average_precision[0, :, 0].copy()
    positives = int(result.ground_truths[knife])
    averages[knife] = curves.average_precision(curves.hits_of(hits), positives)
    assert np.nanmean(averages) == pytest.approx(0.69738635, abs=1e-8)


def test_both_float32_fields_of_torchmetrics_are_needed(data: dict[str, Tables]) -> None:
    """Recall levels as float32 change AP50; thresholds as float32 change AP."""
    rules = protocol("coco")
    grid = evaluate(*data["val14"], replace(rules, recall_grid="float32")).summary["AP50"]
    assert grid == pytest.approx(0.6962399, abs=5e-8)
    thresholds = evaluate(*data["val14"], replace(rules, iou_dtype="float32")).summary["AP"]
    assert thresholds == pytest.approx(0.5040739, abs=5e-8)


# --- the implementations themselves


def random_boxes(seed: int) -> Tables:
    """Return boxes near ground truths and random ones, distinct scores, also as float32."""
    random = np.random.default_rng(seed)
    truths, strays = 60, 120
    start = random.integers(0, 300, (truths, 2)).astype(float)
    boxes = np.hstack([start, start + random.integers(8, 120, (truths, 2))])
    near = boxes[random.integers(0, truths, strays)]
    moved = np.round(near + random.normal(0, 6, near.shape), 1)
    moved[:, 2:] = np.maximum(moved[:, 2:], moved[:, :2] + 1)
    image, label = random.integers(0, 8, truths), random.integers(0, 4, truths)
    source = random.integers(0, truths, 200)
    close = np.round(boxes[source] + random.normal(0, 4, (200, 4)), 1)
    close[:, 2:] = np.maximum(close[:, 2:], close[:, :2] + 1)
    truth = GroundTruth.from_arrays(
        image=image, label=label, boxes=boxes, images=range(9), classes=range(6)
    )
    detections = Detections.from_arrays(
        image=np.concatenate([image[source], random.integers(0, 9, strays)]),
        # The last class is nowhere, the one before it only detected.
        label=np.concatenate([label[source], random.integers(0, 5, strays)]),
        boxes=np.concatenate([close, moved]),
        score=random.permutation(320) / 320,
    ).reindex_like(truth)
    order = np.argsort(detections.image, kind="stable")
    return truth, detections.select(order)


REFERENCES: list[tuple[str, dict[str, Any], Callable[[GroundTruth, Detections], dict[str, float]]]]
REFERENCES = [
    ("torchmetrics", {}, others.torchmetrics),
    ("ultralytics", {}, others.ultralytics),
    ("tidecv-ap", {}, others.tidecv),
    ("globox", {}, others.globox),
    ("padilla", NO_EDGE, others.podm),
    ("coco", {"tolerance": 1e-8}, others.supervision),
    ("voc2012", {"tolerance": 1e-7} | ZERO | NOTHING_NEUTRAL, others.mean_average_precision),
]


def _compare(
    tables: Tables, preset: str, changes: dict[str, Any], theirs: dict[str, float]
) -> None:
    rules = replace(protocol(preset), **changes)
    assert rules.tolerance is not None
    result = evaluate(*tables, rules)
    # Sums in another order are all that is allowed where the bits of arrays are equal.
    expected = {
        name: pytest.approx(v, abs=max(rules.tolerance, 1e-12)) for name, v in theirs.items()
    }
    assert {name: result.metric(name) for name in theirs} == expected


@pytest.mark.parametrize(("preset", "changes", "reference"), REFERENCES)
@pytest.mark.parametrize("seed", range(4))
def test_the_implementation_itself_agrees_on_random_boxes(
    seed: int, preset: str, changes: dict[str, Any], reference: Any
) -> None:
    tables = random_boxes(seed)
    _compare(tables, preset, changes, reference(*tables))


@pytest.mark.parametrize(("preset", "changes", "reference"), REFERENCES)
@pytest.mark.parametrize("where", ["cart", "val14", "val14 in file order"])
def test_the_implementation_itself_agrees_on_real_boxes(
    data: dict[str, Tables], where: str, preset: str, changes: dict[str, Any], reference: Any
) -> None:
    if where != "cart" and reference is others.ultralytics:
        pytest.skip("scores tie, and its sort leaves their order open")
    _compare(data[where], preset, changes, reference(*data[where]))
