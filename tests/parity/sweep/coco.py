"""pycocotools: boxes, masks and keypoints, with its own max dets and others."""

import contextlib
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from detap.evaluation.detection import evaluate
from detap.formats.coco.format import read_detections, read_ground_truth
from detap.protocols import protocol
from tests.parity.compare import assert_same_bits
from tests.parity.sweep.shapes import case

PRESETS = {"bbox": "coco", "segm": "coco-segm", "keypoints": "coco-keypoints"}


def check_boxes(random: np.random.Generator, folder: Path) -> None:
    """Compare precision, recall and the summary of boxes."""
    _check(random, folder, "bbox")


def check_masks(random: np.random.Generator, folder: Path) -> None:
    """Compare precision, recall and the summary of masks."""
    _check(random, folder, "segm")


def check_keypoints(random: np.random.Generator, folder: Path) -> None:
    """Compare precision, recall and the summary of keypoints."""
    _check(random, folder, "keypoints")


def _check(random: np.random.Generator, folder: Path, kind: str) -> None:
    truth, results = case(random, kind)
    rules = protocol(PRESETS[kind])
    usual = kind == "keypoints" or random.random() < 0.5
    one = kind != "keypoints" and random.random() < 0.2
    if not usual:
        limits = sorted(random.choice(12, random.integers(1, 4), replace=False).tolist())
        rules = replace(rules, max_dets=tuple(limit + 1 for limit in limits))
    rules = replace(rules, class_agnostic=one)
    paths = folder / "gt.json", folder / "dt.json"
    for path, content in zip(paths, (truth, results), strict=True):
        path.write_text(json.dumps(content), "utf-8")
    with contextlib.redirect_stdout(io.StringIO()):
        gold = COCO(str(paths[0]))
        evaluator = COCOeval(gold, gold.loadRes(str(paths[1])), kind)
        evaluator.params.maxDets = list(rules.max_dets)
        evaluator.params.useCats = int(not one)
        evaluator.evaluate()
        evaluator.accumulate()
        if usual:
            evaluator.summarize()

    options: Any = rules.reading
    table = read_ground_truth(paths[0], as_is=True, **options)
    result = evaluate(table, read_detections(paths[1], table, as_is=True, **options), rules)
    for name, ours in (("precision", result.full_precision()), ("recall", result.recall)):
        theirs = evaluator.eval[name]
        assert_same_bits(ours, np.where(theirs == -1, np.nan, theirs), name)
    if usual:
        theirs = np.where(evaluator.stats == -1, np.nan, evaluator.stats)
        assert_same_bits(list(result.summary.values()), theirs, ", ".join(result.summary))
