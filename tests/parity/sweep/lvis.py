"""lvis: boxes and masks, with lists of classes, zero areas and negative sizes."""

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

from detap.evaluation.detection import evaluate
from detap.protocols import protocol
from tests.coco import read, saved
from tests.parity.compare import assert_same_arrays, assert_same_bits
from tests.parity.sweep.shapes import CLASSES, Record, case


@cache
def reference() -> Any:
    """Return the package `lvis`; it imports cv2 only to draw."""
    missing = find_spec("cv2") is None
    if missing:
        sys.modules["cv2"] = ModuleType("cv2")
    try:
        package = pytest.importorskip("lvis", exc_type=ImportError)
    finally:
        if missing:
            del sys.modules["cv2"]
    logging.getLogger("lvis").setLevel(logging.ERROR)
    return package


def check(random: np.random.Generator, folder: Path) -> None:
    """Draw a case, score it by both, and compare precision, recall and the summary."""
    package = reference()
    kind = str(random.choice(["bbox", "segm"]))
    limit = int(random.choice([1, 3, 300]))
    files = saved(folder, *_listed(random, *case(random, kind)))
    gold = package.LVIS(str(files[0]))
    loaded = package.LVISResults(gold, str(files[1]), max_dets=limit)
    evaluator = import_module("lvis.eval").LVISEval(gold, loaded, kind)
    with patch.object(np, "float", float, create=True):  # removed in NumPy 1.24
        evaluator.run()

    rules = replace(protocol("lvis" if kind == "bbox" else "lvis-segm"), max_dets=(limit,))
    result = evaluate(*read(files, masks=kind == "segm", as_is=True), rules)
    assert_same_arrays(result, evaluator)
    for name, value in evaluator.get_results().items():
        short = name.partition("@")[0]
        number = result.metric(f"AR{limit}" if short == "AR" else short)
        assert_same_bits(number, np.nan if value == -1 else value, name)


def _listed(random: np.random.Generator, truth: Record, results: Any) -> tuple[Record, Any]:
    """Return a case with lists of classes, frequencies, and more zero areas."""
    for image in truth["images"]:
        for name in ("neg_category_ids", "not_exhaustive_category_ids"):
            image[name] = [label for label in CLASSES if random.random() < 0.3]
    for category in truth["categories"]:
        category["frequency"] = str(random.choice(["r", "c", "f"]))
    for annotation in truth["annotations"]:
        annotation["area"] *= int(random.random() < 0.9)
    return truth, results
