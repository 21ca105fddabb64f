"""boundary-iou-api 37d2558, from a checkout on PYTHONPATH."""

import contextlib
import io
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from detap.evaluation.detection import evaluate
from detap.protocols import protocol
from tests.coco import read, saved
from tests.parity.compare import assert_same_arrays
from tests.parity.sweep.shapes import case


def check(random: np.random.Generator, folder: Path) -> None:
    """Compare precision and recall of masks and their boundaries."""
    pytest.importorskip("cv2")
    name = "boundary_iou.coco_instance_api"
    api = pytest.importorskip(f"{name}.coco", exc_type=ImportError)
    drawing = import_module("boundary_iou.utils.boundary_utils")
    alone = drawing.augment_annotations_with_boundary_single_core
    ratio = float(random.choice([0.02, 0.008, 0.05]))
    truth, results = case(random, "segm")
    files = saved(folder, truth, results)
    with (
        contextlib.redirect_stdout(io.StringIO()),
        patch.object(np, "float", float, create=True),  # removed in NumPy 1.24
        patch.object(  # it would start processes
            api,
            "augment_annotations_with_boundary_multi_core",
            lambda records, draw, dilation_ratio: alone(0, records, draw, dilation_ratio),
        ),
    ):
        gold = api.COCO(get_boundary=True, dilation_ratio=ratio)  # given a path, it leaves it open
        gold.dataset = truth
        gold.createIndex()
        detections = gold.loadRes(results)
        evaluator = import_module(f"{name}.cocoeval").COCOeval(
            gold, detections, "boundary", dilation_ratio=ratio
        )
        evaluator.evaluate()
        evaluator.accumulate()
    rules = protocol("coco-boundary").with_changes(dilation_ratio=ratio)
    result = evaluate(*read(files, masks=True, as_is=True), rules)
    assert_same_arrays(result, evaluator)
