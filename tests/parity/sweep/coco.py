"""pycocotools: boxes, masks and keypoints, with its own max dets and others."""

import contextlib
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from detap.evaluation.detection import evaluate
from detap.protocols import protocol
from tests.coco import read, saved
from tests.parity.compare import assert_same_arrays, assert_same_bits
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
    files = saved(folder, truth, results)
    with contextlib.redirect_stdout(io.StringIO()):
        gold = COCO(str(files[0]))
        evaluator = COCOeval(gold, gold.loadRes(str(files[1])), kind)
        evaluator.params.maxDets = list(rules.max_dets)
        evaluator.params.useCats = int(not one)
        evaluator.evaluate()
        evaluator.accumulate()
        if usual:
            evaluator.summarize()

    result = evaluate(*read(files, as_is=True, **rules.reading), rules)
    assert_same_arrays(result, evaluator)
    if usual:
        theirs = np.where(evaluator.stats == -1, np.nan, evaluator.stats)
        assert_same_bits(list(result.summary.values()), theirs, ", ".join(result.summary))
