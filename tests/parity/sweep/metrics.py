"""torchmetrics: MeanAveragePrecision of boxes in float32."""

import math
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from detap.evaluation.detection import evaluate
from tests.analysis.data import raw_tables
from tests.parity.sweep.shapes import case
from tests.torch.references import torchmetrics_map

NAMES = {
    "AP": "map",
    "AP50": "map_50",
    "AP75": "map_75",
    "APs": "map_small",
    "APm": "map_medium",
    "APl": "map_large",
    "AR1": "mar_1",
    "AR10": "mar_10",
    "AR100": "mar_100",
    "ARs": "mar_small",
    "ARm": "mar_medium",
    "ARl": "mar_large",
}


def check(random: np.random.Generator, folder: Path) -> None:
    """Compare the summary; boxes are whole numbers, which float32 holds exactly."""
    del folder
    metric = torchmetrics_map()(box_format="xywh")
    torch = pytest.importorskip("torch")
    truth, results = case(random, "bbox")
    truth["images"].sort(key=lambda image: image["id"])
    for row in (*truth["annotations"], *results):
        row["bbox"] = [float(round(abs(value))) for value in row["bbox"]]
        row["score"] = float(np.float32(row.get("score", 0)))
    for image in truth["images"]:
        there, here = (
            [row for row in rows if row["image_id"] == image["id"]]
            for rows in (truth["annotations"], results)
        )
        target = {
            "boxes": torch.tensor([row["bbox"] for row in there]).reshape(-1, 4),
            "labels": torch.tensor([row["category_id"] for row in there], dtype=torch.long),
            "iscrowd": torch.tensor([row["iscrowd"] for row in there], dtype=torch.long),
            "area": torch.tensor([row["area"] for row in there]),
        }
        prediction = {
            "boxes": torch.tensor([row["bbox"] for row in here]).reshape(-1, 4),
            "labels": torch.tensor([row["category_id"] for row in here], dtype=torch.long),
            "scores": torch.tensor([row["score"] for row in here]),
        }
        metric.update([prediction], [target])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = metric.compute()
    table, detections = raw_tables(truth, results)
    # There an area of 0 means that of the box.
    area = np.where(table.area > 0, table.area, table.box_area)
    summary = evaluate(replace(table, area=area), detections, "torchmetrics").summary
    for name, key in NAMES.items():
        value = theirs[key].item()
        expected = math.nan if value == -1 else value
        assert summary[name] == pytest.approx(expected, abs=1e-6, nan_ok=True), name
