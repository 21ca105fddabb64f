"""Quadrilaterals as arrays: tables, the evaluator, and the files with the same polygons."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import detap
from detap.errors import InputError, UsageError
from detap.tables.detection import Detections, GroundTruth
from tests.raised import raised

SQUARE = [20.0, 20, 80, 20, 80, 80, 20, 80]
DIAMOND = [50.0, 20, 80, 50, 50, 80, 20, 50]
"""Half of the square; their bounding boxes are equal."""


def truth(polygons: Any, **columns: Any) -> GroundTruth:
    names: dict[str, Any] = {"image": ["a"] * len(polygons), "label": ["thing"] * len(polygons)}
    return GroundTruth.from_arrays(**names, polygons=polygons, **columns)


def detections(polygons: Any, **columns: Any) -> Detections:
    names: dict[str, Any] = {"image": ["a"] * len(polygons), "label": ["thing"] * len(polygons)}
    score = np.linspace(0.9, 0.1, len(polygons))
    return Detections.from_arrays(**names, score=score, polygons=polygons, **columns)


def test_a_diamond_in_a_square() -> None:
    """IoU is .5, reached at one of COCO's ten thresholds; that of the boxes is 1."""
    tables = truth([DIAMOND]), detections([SQUARE])
    assert detap.evaluate(*tables, "coco-polygon").summary["AP"] == pytest.approx(0.1)
    assert detap.evaluate(*tables, "dota").summary["mAP"] == 0  # above .5, not at .5
    message = (
        "protocol coco compares boxes, but there are oriented boxes in the ground truth and "
        "detections; use --iou-type polygon for their IoU, or boxes= instead of polygons= for "
        "their bounding boxes"
    )
    assert str(raised(UsageError, detap.evaluate, *tables)) == message
    names: dict[str, Any] = {"image": ["a"], "label": ["thing"], "boxes": tables[0].corners}
    boxes = GroundTruth.from_arrays(**names, box_format="xyxy")
    with pytest.raises(UsageError, match="oriented boxes in the detections; use"):
        detap.evaluate(boxes, tables[1])
    boxed = Detections.from_arrays(**names, box_format="xyxy", score=[0.9])
    assert detap.evaluate(boxes, boxed).summary["AP"] == pytest.approx(1)


def test_boxes_and_areas_are_those_of_polygons() -> None:
    table = truth(np.reshape([DIAMOND, SQUARE], (2, 4, 2)))
    assert table.corners.tolist() == [[20, 20, 80, 80]] * 2
    assert table.area.tolist() == [1800, 3600]
    assert table.polygons is not None
    assert table.polygons.tolist() == [DIAMOND, SQUARE]
    assert truth([DIAMOND], area=[7.0]).area.tolist() == [7]


def test_the_direction_of_corners_does_not_matter() -> None:
    turned = np.reshape(DIAMOND, (4, 2))[::-1].reshape(1, 8)
    assert detap.evaluate(truth(turned), detections([DIAMOND]), "coco-polygon").summary["AP"] > 0.99


@pytest.mark.parametrize("table", [truth, detections])
@pytest.mark.parametrize(
    ("polygons", "columns", "message"),
    [
        ([DIAMOND[:6]], {}, r"polygons has shape \(1, 6\); expected \(1, 8\) or \(1, 4, 2\)"),
        ([[DIAMOND]], {}, r"polygons has shape \(1, 1, 8\)"),
        ([[[1, 2, 3, 4], [5, 6, 7, 8]]], {}, r"polygons has shape \(1, 2, 4\)"),
        ([[*DIAMOND[:7], np.nan]], {}, "row 0: polygons has nan; expected coordinates in pixels"),
        ([[*DIAMOND[:7], np.inf]], {}, "row 0: polygons has inf"),
        ([[*DIAMOND[:7], 1e300]], {}, r"row 0: polygons has 1e\+300"),
        ([["x"] * 8], {}, "polygons"),
        ([DIAMOND], {"boxes": [[1, 2, 3, 4]]}, "both polygons and boxes are given; pass one"),
        ([DIAMOND], {"masks": np.ones((1, 4, 4), bool)}, "both polygons and masks"),
    ],
)
def test_invalid_polygons(table: Any, polygons: Any, columns: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        table(polygons, **columns)


def test_as_many_polygons_as_images() -> None:
    with pytest.raises(InputError, match="polygons has 1 rows; expected 2, as many as image"):
        GroundTruth.from_arrays(image=["a", "b"], label=["x", "x"], polygons=[DIAMOND])


# --- evaluator


def test_an_evaluator_of_boxes_rejects_polygons() -> None:
    message = "coco compares boxes, but there are oriented boxes in the ground truth; use --iou-ty"
    with pytest.raises(UsageError, match=message):
        detap.Evaluator(truth([DIAMOND]), "coco")


def test_polygons_and_boxes_in_batches() -> None:
    """As one table; a box is a quadrilateral."""
    evaluator = detap.Evaluator(protocol="coco-polygon", boxes="xyxy")
    annotated = {"polygons": [[DIAMOND]], "labels": [["thing"]]}
    evaluator.update(["a"], None, [[0.9]], [["thing"]], polygons=[[SQUARE]], ground_truth=annotated)
    annotated = {"boxes": [[[20, 20, 80, 80]]], "labels": [["thing"]]}
    evaluator.update(["b"], None, [[0.8]], [["thing"]], polygons=[[SQUARE]], ground_truth=annotated)
    names: dict[str, Any] = {"image": ["a", "b"], "label": ["thing"] * 2}
    expected = detap.evaluate(
        GroundTruth.from_arrays(**names, polygons=[DIAMOND, SQUARE]),
        Detections.from_arrays(**names, polygons=[SQUARE, SQUARE], score=[0.9, 0.8]),
        "coco-polygon",
    )
    assert evaluator.compute().summary == pytest.approx(expected.summary, nan_ok=True)
    merged = evaluator.merge([evaluator.to_bytes()]).compute()
    assert merged.summary == pytest.approx(expected.summary, nan_ok=True)


@pytest.mark.parametrize(
    ("protocol", "arguments", "message"),
    [
        ("coco", {"boxes": None, "polygons": [[SQUARE]]}, "coco does not compare polygons; omit"),
        (
            "coco-polygon",
            {"boxes": [[[0, 0, 1, 1]]], "polygons": [[SQUARE]]},
            "both polygons and boxes are given",
        ),
        ("coco-polygon", {"boxes": None, "polygons": None}, "boxes: expected a list"),
        ("coco-polygon", {"boxes": None, "polygons": [[SQUARE[:6]]]}, "image 'a': polygons has"),
        (
            "coco-polygon",
            {"boxes": None, "polygons": [[SQUARE]], "sizes": [[100, 100]]},
            "sizes does not apply to polygons",
        ),
        (
            "coco-polygon",
            {"boxes": None, "polygons": [[SQUARE, SQUARE]]},
            "2 polygons and 1 labels",
        ),
    ],
)
def test_invalid_updates(protocol: str, arguments: Any, message: str) -> None:
    table = truth([DIAMOND])
    if protocol == "coco":
        table = replace(table, polygons=None)
    evaluator = detap.Evaluator(table, protocol)
    with pytest.raises((InputError, UsageError), match=message):
        evaluator.update(["a"], scores=[[0.9]], labels=[["thing"]], **arguments)
