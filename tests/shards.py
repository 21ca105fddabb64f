"""Inputs of several files, for tests of the command line and of engines."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.coco import Row, Scored, results_of, truth_of

IMAGES, CLASSES = 24, 3


def boxes(random: np.random.Generator, count: int) -> list[list[float]]:
    corners, sizes = random.integers(0, 120, (count, 2)), random.integers(4, 60, (count, 2))
    rows: list[list[float]] = np.hstack([corners, sizes]).astype(float).tolist()
    return rows


def case(seed: int = 5) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return ground truth and detections with many tied scores and some empty images."""
    random = np.random.default_rng(seed)
    rows: list[Row] = []
    crowds: list[int] = []
    detections: list[Scored] = []
    for image in range(1, IMAGES + 1):
        for box in boxes(random, int(random.integers(0, 5))):
            label = int(random.integers(1, CLASSES + 1))
            rows.append((image, label, box))
            crowds.append(int(random.random() < 0.1))
            if image % 7:  # no detections on every seventh image
                shift = random.integers(-4, 5, 4).tolist()
                near = [max(side + by, 1.0) for side, by in zip(box, shift, strict=True)]
                detections.append((image, label, near, float(random.integers(1, 5)) / 5))
        if image % 7:
            for box in boxes(random, 3):
                label = int(random.integers(1, CLASSES + 1))
                detections.append((image, label, box, float(random.integers(1, 5)) / 5))
    names = {label: f"class {label}" for label in range(1, CLASSES + 1)}
    truth = truth_of(rows, names, range(1, IMAGES + 1), size=(200, 200))
    for annotation, crowd in zip(truth["annotations"], crowds, strict=True):
        annotation["iscrowd"] = crowd
    for entry in truth["images"]:
        entry["light"] = "night" if entry["id"] % 3 else "day"
    return truth, results_of(detections)


@pytest.fixture
def shards(cwd: Path) -> Path:
    """Write the case as a whole and in five pairs of shards, one without detections."""
    truth, detections = case()
    Path("gt.json").write_text(json.dumps(truth))
    # The file is sorted by image; images go to the shards in turn.
    part_of = {image: (image * 7) % 4 for image in range(1, IMAGES + 1)}
    Path("dt.json").write_text(json.dumps(detections))
    for part in range(5):
        ours = {image for image, of in part_of.items() if of == part}
        own = {
            **truth,
            "images": [entry for entry in truth["images"] if entry["id"] in ours],
            "annotations": [a for a in truth["annotations"] if a["image_id"] in ours],
        }
        for folder in ("gts", "dts"):
            Path(folder).mkdir(exist_ok=True)
        if ours:
            Path(f"gts/{part}.json").write_text(json.dumps(own))
        rows = [record for record in detections if record["image_id"] in ours]
        Path(f"dts/{part}.json").write_text(json.dumps(rows))
    return cwd


JSON = ("--output-format", "json")
WHOLE = ("--gt", "gt.json", "--dt", "dt.json")
SHARDS = ("--gt", "gt.json", "--dt", "dts/*.json")
PAIRS = ("--gt", "gts/*.json", "--dt", "dts/[0-3].json")
