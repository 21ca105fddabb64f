"""Box formats of COCO's bbox, and boxes of negative width or height."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from detap import read_detections, read_ground_truth
from detap.errors import InputError
from tests.cli.conftest import Run
from tests.formats.coco_files import agreed, result_columns, truth_columns
from tests.raised import raised


def write(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document), "utf-8")
    return path


def annotation(number: int, box: list[float], **more: Any) -> dict[str, Any]:
    record = {"id": number, "image_id": 1, "category_id": 1, "bbox": box, "iscrowd": 0}
    return {**record, "area": box[2] * box[3], **more}


def result(box: list[float], score: float, **more: Any) -> dict[str, Any]:
    return {"image_id": 1, "category_id": 1, "bbox": box, "score": score, **more}


def document(*annotations: dict[str, Any]) -> dict[str, Any]:
    return {
        "images": [{"id": 1, "width": 1100, "height": 600}],
        "categories": [{"id": 1, "name": "face"}],
        "annotations": list(annotations),
    }


# Numbers of which x + (x2 - x) is not x2 in float64.
CORNERS = [[0.1, 0.7, 0.3 + 50, 41.9], [10.1, 20.3, 95.7, 88.8], [3.3, 4.4, 700.1, 500.3]]


def test_both_readers_keep_xyxy_values(tmp_path: Path) -> None:
    gt = write(
        tmp_path / "gt.json",
        document(*(annotation(k, box, area=7.5) for k, box in enumerate(CORNERS, 1))),
    )
    dt = write(tmp_path / "dt.json", [result(box, 0.5) for box in CORNERS])
    truth = read_ground_truth(gt, boxes="xyxy")
    detections = read_detections(dt, truth, boxes="xyxy")
    areas = [(b[2] - b[0]) * (b[3] - b[1]) for b in CORNERS]
    for table in (truth, detections):
        assert table.corners.tolist() == CORNERS
        assert table.box_area.tolist() == areas
    assert agreed(truth_columns, gt.read_bytes(), boxes="xyxy") is not None
    assert agreed(result_columns, dt.read_bytes(), truth, boxes="xyxy") is not None


def test_a_missing_area_is_computed_from_xyxy(tmp_path: Path) -> None:
    record = annotation(1, [10, 20, 40, 60])
    del record["area"]
    truth = read_ground_truth(write(tmp_path / "gt.json", document(record)), boxes="xyxy")
    assert truth.area.tolist() == [1200]


def test_keypoints_use_width_and_height_from_xyxy(tmp_path: Path) -> None:
    record = annotation(1, [10, 20, 40, 60], keypoints=[12, 22, 2], num_keypoints=1, area=9)
    gt = write(tmp_path / "gt.json", document(record))
    points = {"keypoints": [12, 22, 1, 30, 40, 1]}
    boxless = {k: v for k, v in result([0, 0, 0, 0], 0.5, **points).items() if k != "bbox"}
    truth = read_ground_truth(gt, boxes="xyxy", keypoints=True)
    assert agreed(truth_columns, gt.read_bytes(), keypoints=True, boxes="xyxy") is not None
    assert np.asarray(truth.width_height).tolist() == [[30, 40]]
    # A detection without a box has that around its keypoints, whatever boxes are.
    dt = write(tmp_path / "dt.json", [boxless])
    detections = read_detections(dt, read_ground_truth(gt, boxes="xyxy"), boxes="xyxy")
    assert detections.corners.tolist() == [[12, 22, 30, 40]]


@pytest.mark.parametrize(
    ("box", "message"),
    [
        ([1, 2, 3], "bbox has 3 values, expected 4: [x1, y1, x2, y2]"),
        ("x", 'bbox is "x", expected [x1, y1, x2, y2]'),
        ([-1e308, 0, 1e308, 1], "bbox [-1e+308, 0, 1e+308, 1] overflows"),
    ],
)
def test_an_invalid_xyxy_box_is_an_error(tmp_path: Path, box: Any, message: str) -> None:
    gt = write(tmp_path / "gt.json", document(annotation(1, [1, 2, 3, 4]) | {"bbox": box}))
    assert message in str(raised(InputError, read_ground_truth, gt, boxes="xyxy"))


# --- a negative width and the area that it makes, as in WIDER FACE

FACES = [
    *([20.0 * k, 30.0 * k, 25.0, 30.0] for k in range(1, 21)),
    [1026.0, 474.0, -2.0, 23.0],
]
"""The last is from WIDER FACE's validation set."""


def faces(folder: Path) -> tuple[Path, Path]:
    records = [annotation(k, box) for k, box in enumerate(FACES, 1)]
    assert records[-1]["area"] == -46
    moved = [[x + 3, y - 2, w, h] for x, y, w, h in FACES]
    results = [result(box, 0.9 - 0.03 * k) for k, box in enumerate(moved)]
    results += [result([1024.0, 474.0, 2.0, 23.0], 0.95), result([700, 10, 40, 40], 0.6)]
    return write(folder / "gt.json", document(*records)), write(folder / "dt.json", results)


def test_an_area_of_a_negative_size_is_scored_as_by_pycocotools(tmp_path: Path, detap: Run) -> None:
    gt, dt = faces(tmp_path)
    ended = detap("eval", "--gt", gt, "--dt", dt, "--output-format", "json").passed()
    assert "ground truth boxes have negative width or height" in ended.err
    assert "annotations[20]: bbox has a negative width: [1026, 474, -2, 23]" in ended.err
    truth = COCO(str(gt))
    evaluation = COCOeval(truth, truth.loadRes(str(dt)), "bbox")
    for step in (evaluation.evaluate, evaluation.accumulate, evaluation.summarize):
        step()
    expected = dict(zip(("AP", "AP50", "AP75"), evaluation.stats.tolist(), strict=False))
    expected |= dict(zip(("APs", "APm", "APl"), evaluation.stats[3:6].tolist(), strict=True))
    summary = json.loads(ended.out)["summary"]
    for name, value in expected.items():
        assert summary[name] == (None if value == -1 else pytest.approx(value, abs=1e-12)), name
