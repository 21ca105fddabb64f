"""The table of detections and missed ground truths."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detap
from detap.errors import UsageError
from detap.evaluation.detection import evaluate
from detap.protocols import protocol
from tests.analysis.data import fixture
from tests.cases import Case, Detection, Truth
from tests.coco import results_of, saved, truth_of
from tests.tables import dt_table, gt_table

INSTANCES = truth_of(
    [
        *((7, 1, [0, 0, 10, 10]), (7, 2, [20, 0, 10, 10]), (7, 1, [50, 0, 40, 10])),
        *((7, 1, [100, 0, 10, 10]), (7, 2, [200, 0, 10, 10])),
    ],
    {1: "=cat", 2: "dog"},
    {7: "street.jpg", 9: None},
    size=None,
)
for _annotation in INSTANCES["annotations"]:
    _annotation["id"] *= 10
INSTANCES["annotations"][2]["iscrowd"] = 1
RESULTS = results_of(
    [
        *((7, 1, [0, 0, 10, 10], 0.5), (9, 2, [5, 5, 10, 10], 0.8), (7, 1, [0, 0, 10, 8], 0.9)),
        *((7, 1, [50, 0, 10, 10], 0.7), (7, 2, [205, 0, 10, 10], 0.6)),
    ]
)
KEYS = (
    *("image", "file_name", "class", "score", "x1", "y1", "x2", "y2"),
    *("result", "error", "iou", "ground_truth"),
)
ROWS: list[tuple[Any, ...]] = [
    # 10 x 8 of 10 x 10
    (7, "street.jpg", "=cat", 0.9, 0, 0, 10, 8, "true-positive", None, 0.8, 1),
    # in a crowd: the overlap is divided by the area of the detection
    (7, "street.jpg", "=cat", 0.7, 50, 0, 60, 10, "ignored", None, 1, 3),
    # 5 x 10 are common to two boxes of 10 x 10
    (7, "street.jpg", "dog", 0.6, 205, 0, 215, 10, "false-positive", "localization", 1 / 3, 5),
    (7, "street.jpg", "=cat", 0.5, 0, 0, 10, 10, "false-positive", "duplicate", 1, 1),
    (7, "street.jpg", "dog", None, 20, 0, 30, 10, "false-negative", "missed", None, 2),
    (7, "street.jpg", "=cat", None, 100, 0, 110, 10, "false-negative", "missed", None, 4),
    (7, "street.jpg", "dog", None, 200, 0, 210, 10, "false-negative", "near-miss", None, 5),
    (9, None, "dog", 0.8, 5, 5, 15, 15, "false-positive", "background", None, None),
]
"""The table, worked out by hand; undefined is None."""


def write_case(folder: Path) -> list[str]:
    """Write the case as COCO files and return their paths."""
    return [str(path) for path in saved(folder, INSTANCES, RESULTS)]


def rows_of(table: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the rows of a table, with None for undefined."""
    undefined = {"file_name": "''", "error": "''", "ground_truth": "0"}
    columns = [
        [None if repr(value) in ("nan", undefined.get(key)) else value for value in column.tolist()]
        for key, column in table.items()
    ]
    return list(zip(*columns, strict=True))


def test_the_case_worked_out_by_hand(tmp_path: Path) -> None:
    truth_path, results_path = write_case(tmp_path)
    truth = detap.read_ground_truth(truth_path)
    result = detap.evaluate(truth, detap.read_detections(results_path, truth))
    table = result.matches_table()
    assert tuple(table) == KEYS
    assert rows_of(table) == ROWS
    assert {key: column.dtype.kind for key, column in table.items()} == {
        **dict.fromkeys(KEYS, "f"),
        **dict.fromkeys(("file_name", "class", "result", "error"), "O"),
        **dict.fromkeys(("image", "ground_truth"), "i"),
    }


def test_ground_truths_keep_their_numbers_if_classes_are_selected(tmp_path: Path) -> None:
    truth_path, results_path = write_case(tmp_path)
    truth = detap.read_ground_truth(truth_path)
    detections = detap.read_detections(results_path, truth)
    result = detap.evaluate(truth, detections, classes=["dog"])
    assert rows_of(result.matches_table()) == [row for row in ROWS if row[2] == "dog"]


def test_another_threshold(tmp_path: Path) -> None:
    """IoU 0.8 is below 0.85: the best detection no longer matches, the next one does."""
    truth_path, results_path = write_case(tmp_path)
    truth = detap.read_ground_truth(truth_path)
    result = detap.evaluate(truth, detap.read_detections(results_path, truth))
    rows = rows_of(result.matches_table(iou=0.85))
    assert rows[0] == (*ROWS[0][:8], "false-positive", "localization", 0.8, 1)
    assert rows[3] == (*ROWS[3][:8], "true-positive", None, 1, 1)


def test_arrays_have_no_file_names_and_may_name_images() -> None:
    truth = gt_table([[0, 0, 9, 9]] * 2, image=["b", "a"], label="x", images=["b", "a"])
    detections = dt_table([[0, 0, 9, 9]], [0.5], image="a", label="x")
    table = detap.evaluate(truth, detections).matches_table()
    assert table["image"].tolist() == ["b", "a"]
    assert table["file_name"].tolist() == ["", ""]
    assert table["result"].tolist() == ["false-negative", "true-positive"]


def test_ground_truth_from_stdin_is_not_read_again(tmp_path: Path) -> None:
    truth_path, results_path = write_case(tmp_path)
    truth = detap.read_ground_truth(truth_path)
    detections = detap.read_detections(results_path, truth)
    from_stdin = replace(truth, files=(truth.files[0]._replace(path="-"),))
    result = detap.evaluate(from_stdin, detections)
    assert set(result.matches_table()["file_name"].tolist()) == {""}


def test_no_rows() -> None:
    truth = detap.GroundTruth.from_arrays(image=[], label=[], boxes=np.zeros((0, 4)))
    detections = detap.Detections.from_arrays(image=[], label=[], boxes=np.zeros((0, 4)), score=[])
    table = detap.evaluate(truth, detections).matches_table()
    assert tuple(table) == KEYS
    assert all(len(column) == 0 for column in table.values())


def test_refusals() -> None:
    case = Case(truths=(Truth(1, 1, (0, 0, 9, 9)),), dt=(Detection(1, 1, (0, 0, 9, 9), 0.5),))
    with pytest.raises(UsageError, match=r"IoU 0\.51 is not among the thresholds"):
        fixture().matches_table(iou=0.51)
    with pytest.raises(UsageError, match=r"matching by-iou, .*; analyze with another protocol"):
        evaluate(*case.tables(), protocol("proposals")).matches_table()
