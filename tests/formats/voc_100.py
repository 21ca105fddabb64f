"""The hundred images of voc-100 in any format, and their known metrics."""

import csv
import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from detap import evaluate
from detap.tables.detection import Detections, GroundTruth


def ultralytics(real_data: Path) -> Detections:
    """Return the detections of yolo-voc-100, decoded as its owner describes."""
    folder = real_data / "yolo-voc-100"
    with (folder / "sizes.csv").open() as file:
        sizes = {
            row["image"]: (int(row["width"]), int(row["height"])) for row in csv.DictReader(file)
        }
    named = [
        line.strip().partition(": ") for line in (folder / "data.yaml").read_text().split("\n")
    ]
    classes = {number: name for number, _, name in named if number.isdigit()}
    columns: dict[str, Any] = {"image": [], "label": [], "boxes": [], "score": []}
    for path in sorted((folder / "predictions" / "labels").glob("*.txt")):
        width, height = sizes[path.stem]
        for line in path.read_text().splitlines():
            label, *numbers = line.split()
            x, y, w, h, score = map(float, numbers)
            x, y, w, h = x * width, y * height, w * width, h * height
            columns["image"].append(path.stem)
            columns["label"].append(classes[label])
            columns["boxes"].append([x - w / 2, y - h / 2, w, h])
            columns["score"].append(score)
    return Detections.from_arrays(**columns | {"box_format": "xywh"})


def same_as_known(real_data: Path, truth: GroundTruth) -> None:
    """Compare all twelve COCO metrics with the published ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = evaluate(truth, ultralytics(real_data), "coco")
    known = json.loads((real_data / "voc-100/expected_coco_all_encodings.json").read_text())
    assert result.summary == pytest.approx(known, rel=0, abs=1e-12)
