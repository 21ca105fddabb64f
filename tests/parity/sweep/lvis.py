"""lvis: boxes and masks, with lists of classes, zero areas and negative sizes."""

import json
import logging
import sys
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from pycocotools import mask as mask_api

from detap.evaluation.detection import evaluate
from detap.formats.coco.format import read_detections, read_ground_truth
from detap.protocols import protocol
from tests.parity.compare import assert_same_bits

Random = np.random.Generator

HEIGHT, WIDTH = 60, 80
CLASSES = (1, 2, 5, 9)


@cache
def reference() -> Any:
    """Return the package `lvis`; it imports cv2 only to draw."""
    missing = find_spec("cv2") is None
    if missing:
        sys.modules["cv2"] = ModuleType("cv2")
    package = pytest.importorskip("lvis", exc_type=ImportError)
    if missing:
        del sys.modules["cv2"]
    logging.getLogger("lvis").setLevel(logging.ERROR)
    return package


def check(random: Random, folder: Path) -> None:
    """Draw a case, score it by both, and compare precision, recall and the summary."""
    package = reference()
    kind = str(random.choice(["bbox", "segm"]))
    limit = int(random.choice([1, 3, 300]))
    truth, results = case(random, kind)
    paths = folder / "gt.json", folder / "dt.json"
    for path, content in zip(paths, (truth, results), strict=True):
        path.write_text(json.dumps(content), "utf-8")
    gold = package.LVIS(str(paths[0]))
    loaded = package.LVISResults(gold, str(paths[1]), max_dets=limit)
    evaluator = import_module("lvis.eval").LVISEval(gold, loaded, kind)
    with patch.object(np, "float", float, create=True):  # removed in NumPy 1.24
        evaluator.run()

    rules = protocol("lvis" if kind == "bbox" else "lvis-segm")
    rules = replace(rules, max_dets=(limit,))
    masks = kind == "segm"
    table = read_ground_truth(paths[0], masks=masks, as_is=True)
    detections = read_detections(paths[1], table, masks=masks, as_is=True)
    result = evaluate(table, detections, rules)
    for name, ours in (("precision", result.precision), ("recall", result.recall[..., 0])):
        theirs = evaluator.eval[name]
        assert_same_bits(ours, np.where(theirs == -1, np.nan, theirs), name)
    for name, value in evaluator.get_results().items():
        short = name.partition("@")[0]
        number = result.metric(f"AR{limit}" if short == "AR" else short)
        assert_same_bits(number, np.nan if value == -1 else value, name)


def case(random: Random, kind: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the contents of a ground truth and a results file."""
    images = random.choice(40, random.integers(1, 4), replace=False).tolist()
    scale = float(random.choice([1.0, 6.0, 31 / 3]))
    truth = {
        "images": [
            {
                "id": image,
                "width": WIDTH,
                "height": HEIGHT,
                "neg_category_ids": _some(random, CLASSES),
                "not_exhaustive_category_ids": _some(random, CLASSES),
            }
            for image in images
        ],
        "categories": [
            {"id": label, "name": f"c{label}", "frequency": str(random.choice(["r", "c", "f"]))}
            for label in CLASSES
        ],
        "annotations": [
            _annotation(random, number, images, scale, kind)
            for number in range(1, random.integers(2, 12))
        ],
    }
    boxed = kind == "bbox" or random.random() < 0.3
    results = [
        _detection(random, truth["annotations"], images, scale, (kind, boxed))
        for _ in range(random.integers(1, 25))
    ]
    return truth, results


def _annotation(
    random: Random, number: int, images: list[int], scale: float, kind: str
) -> dict[str, Any]:
    box = _box(random, scale)
    drawn = [0.0, abs(box[2] * box[3]), 1024.0, 1024.5, 9216.0, 1e4]
    record = {
        "id": number,
        "image_id": int(random.choice(images)),
        "category_id": int(random.choice(CLASSES)),
        "bbox": box,
        "area": float(random.choice(drawn, p=[0.2, 0.4, 0.1, 0.1, 0.1, 0.1])),
        "segmentation": _mask(random),
        "iscrowd": 0,
    }
    if random.random() < 0.15:
        record["ignore"] = 1
    if kind == "bbox":
        del record["segmentation"]
    return record


def _detection(
    random: Random,
    annotations: list[dict[str, Any]],
    images: list[int],
    scale: float,
    kind: tuple[str, bool],
) -> dict[str, Any]:
    record = {
        "image_id": int(random.choice(images)),
        "category_id": int(random.choice(CLASSES)),
        "bbox": _box(random, scale, negative=kind[0] == "bbox"),
        "segmentation": _mask(random),
        "score": float(random.choice([0.1, 0.3, 0.3, 0.5, 0.7, 0.9])),
    }
    if annotations and random.random() < 0.6:
        truth = annotations[random.integers(len(annotations))]
        record |= {name: truth[name] for name in ("image_id", "category_id")}
        x, y, w, h = truth["bbox"]
        record["bbox"] = [x, y, w * float(random.choice([1, 1, 0.8, 0.6])), h]
        record["segmentation"] = truth.get("segmentation", record["segmentation"])
    for name, kept in (("bbox", kind[1]), ("segmentation", kind[0] == "segm")):
        if not kept:
            del record[name]
    return record


def _box(random: Random, scale: float, *, negative: bool = False) -> list[float]:
    """Return x, y, width, height; one in five has zero area, and some have negative sizes."""
    x, y = (random.integers(0, 6, 2) * scale).tolist()
    w, h = (random.choice([1.0, 2.0, 3.0, 4 / 3, 0.1], 2) * scale).tolist()
    if random.random() < 0.2:
        w, h = (0.0, h) if random.random() < 0.5 else (w, 0.0)
    if negative and random.random() < 0.1:
        w, h = -w, h * float(random.choice([1, -1]))
    return [x, y, w, h]


def _mask(random: Random) -> dict[str, Any]:
    """Return a mask of up to three rectangles as compressed run lengths; one in six is empty."""
    bitmap = np.zeros((HEIGHT, WIDTH), np.uint8, order="F")
    for _ in range(random.choice([0, 1, 1, 1, 2, 3])):
        top, left = random.integers(0, HEIGHT, 1)[0], random.integers(0, WIDTH, 1)[0]
        height, width = random.integers(1, 50, 2)
        bitmap[top : top + height, left : left + width] = 1
    runs = mask_api.encode(bitmap)
    return {"size": list(runs["size"]), "counts": runs["counts"].decode("ascii")}


def _some(random: Random, labels: tuple[int, ...]) -> list[int]:
    return [label for label in labels if random.random() < 0.3]
