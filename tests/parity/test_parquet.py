"""Real data as Parquet of float64 gives the metrics of the original files, bit for bit."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap.evaluation.detection import Result, evaluate
from detap.evaluation.selection import select
from detap.formats import read_detections, read_ground_truth
from detap.tables.detection import Detections, GroundTruth

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

NUMBERS = ("precision", "recall", "average_precision")
COUNTS = ("ground_truths", "true_positives", "false_positives", "duplicates", "ignored")


def written(path: Path, table: GroundTruth | Detections, rows: dict[str, Any], names: bool) -> Path:
    """Write a table as users would: images without objects are rows of their own."""
    columns = {
        "image_id": [table.images[i] for i in table.image.tolist()],
        ("category" if names else "category_id"): [
            (table.classes if names else table.class_ids)[k] for k in table.label.tolist()
        ],
        **rows,
    }
    bare: list[Any] = []
    if isinstance(table, GroundTruth):
        seen = set(columns["image_id"])
        bare = [name for name in table.images if name not in seen]
        if not names:
            columns["category"] = [table.classes[k] for k in table.label.tolist()]
    content = {
        name: [*list(values), *(bare if name == "image_id" else [None] * len(bare))]
        for name, values in columns.items()
    }
    parquet.write_table(pa.table(content), path, row_group_size=1000)
    return path


def assert_same(mine: Result, theirs: Result) -> None:
    for name in NUMBERS:
        assert getattr(mine, name).tobytes() == getattr(theirs, name).tobytes(), name
    for name in COUNTS:
        assert getattr(mine, name).tolist() == getattr(theirs, name).tolist(), name
    assert mine.classes == theirs.classes
    assert repr(mine.summary) == repr(theirs.summary)


def test_coco_val2014_100(real_data: Path, tmp_path: Path) -> None:
    folder = real_data / "coco-val2014-100"
    gt = folder / "instances_val2014_100.json"
    dt = folder / "instances_val2014_fakebbox100_results.json"
    truth = read_ground_truth(gt)
    detections = read_detections(dt, truth)
    records = json.loads(gt.read_bytes())["annotations"]
    box = np.array([record["bbox"] for record in records], np.float64)
    flags = {"iscrowd": truth.crowd, "area": truth.area, "id": [r["id"] for r in records]}
    sides = dict(zip(("x", "y", "width", "height"), box.T, strict=True))
    gt_parquet = written(tmp_path / "gt.parquet", truth, {**sides, **flags}, names=False)
    box = np.array([record["bbox"] for record in json.loads(dt.read_bytes())], np.float64)
    sides = dict(zip(("x", "y", "width", "height"), box.T, strict=True))
    rows = {**sides, "score": detections.score}
    dt_parquet = written(tmp_path / "dt.parquet", detections, rows, names=False)
    expected = evaluate(truth, detections, "coco")
    mine = read_ground_truth(gt_parquet)
    assert len(mine.images) == len(truth.images)
    assert_same(evaluate(mine, read_detections(dt_parquet, mine), "coco"), _only(expected, mine))
    assert_same(evaluate(truth, read_detections(dt_parquet, truth), "coco"), expected)


def _only(result: Result, truth: GroundTruth) -> Result:
    """Return the result for classes with ground truth: a table of boxes has no others."""
    assert result.ground_truth is not None
    names = list(truth.classes)
    tables = select(result.ground_truth, result.detections, classes=names)
    return evaluate(*tables, "coco")


@pytest.mark.parametrize("protocol", ["voc2007", "voc2012", "coco"])
def test_voc2007_test(protocol: str, real_data: Path, tmp_path: Path) -> None:
    folder = real_data / "voc2007-test"
    truth = read_ground_truth(folder, image_set="test")
    detections = read_detections(folder / "detections", truth)
    corners = ("x1", "y1", "x2", "y2")
    rows = dict(zip(corners, truth.corners.T, strict=True)) | {"difficult": truth.difficult}
    gt = written(tmp_path / "gt.parquet", truth, rows, names=True)
    rows = dict(zip(corners, detections.corners.T, strict=True)) | {"score": detections.score}
    dt = written(tmp_path / "dt.parquet", detections, rows, names=True)
    expected = evaluate(truth, detections, protocol)
    mine = read_ground_truth(gt)
    assert mine.images == truth.images
    assert_same(evaluate(mine, read_detections(dt, mine), protocol), expected)
    assert_same(evaluate(truth, read_detections(dt, truth), protocol), expected)
