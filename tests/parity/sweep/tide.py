"""tidecv: average precision, and error types with their dAP."""

import math
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap.evaluation.detection import evaluate
from tests.analysis.data import raw_tables
from tests.parity.sweep.shapes import case

NAMES = ("Class", "Box", "Other", "Duplicate", "Background", "Missed")


def check(random: np.random.Generator, folder: Path) -> None:
    """Compare AP of `tidecv-ap`, and the counts and dAP of `--errors tidecv`."""
    del folder
    package = pytest.importorskip("tidecv")
    truth, results = _case(random)
    tables = raw_tables(truth, results)
    threshold = float(random.choice([0.5, 0.5, 0.75]))
    data = _truth(package, truth), _results(package, results)
    tide = package.TIDE()
    run = tide.evaluate(*data, mode=package.TIDE.BOX, pos_threshold=threshold)

    detections = evaluate(*tables, "coco").errors("tidecv", iou=threshold)
    assert 100 * detections.average_precision == pytest.approx(run.ap, abs=1e-9)
    counts = {kind.__name__: count for kind, count in run.count_errors().items()}
    assert detections.count[:6].tolist() == [counts[f"{name}Error"] for name in NAMES]
    changes = [_change(run, kind) for kind in package.TIDE._error_types]
    by_name = dict(zip(counts, changes, strict=True))
    theirs = [by_name[f"{name}Error"] for name in NAMES]
    theirs += [
        _or_nan(lambda: run.fix_errors(transform=_without_false_positives).get_mAP() - run.ap),
        _or_nan(lambda: run.fix_errors(false_neg_dict=run.false_negatives).get_mAP() - run.ap),
    ]
    assert (100 * detections.delta_ap).tolist() == pytest.approx(theirs, abs=1e-9, nan_ok=True)

    tide = package.TIDE()
    tide.evaluate_range(_truth(package, truth), _results(package, results), mode=package.TIDE.BOX)
    averages = [run.ap / 100 for run in tide.run_thresholds["found"]]
    summary = evaluate(*tables, "tidecv-ap").summary
    numbers = [summary[name] for name in ("AP", "AP50", "AP75")]
    assert numbers == pytest.approx([np.mean(averages), averages[0], averages[5]], abs=1e-12)


def _case(random: np.random.Generator) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a case without anything that tidecv treats differently (docs/presets.md).

    Scores are above 0, for which it has a rule. There are crowds only if no IoU equals a threshold,
    and only of classes with other ground truths.
    """
    truth, results = case(random, "bbox")
    truth["images"].sort(key=lambda image: image["id"])
    inexact = random.random() < 0.5
    for row in (*truth["annotations"], *results):
        if inexact:
            row["bbox"] = (np.array(row["bbox"]) + random.uniform(0, 0.01, 4)).tolist()
        else:
            row.pop("iscrowd", None)
        if "score" in row:
            row["score"] = abs(row["score"]) / 12
    single = {row["category_id"] for row in truth["annotations"] if not row.get("iscrowd")}
    for row in truth["annotations"]:
        row["iscrowd"] = row.get("iscrowd", 0) and int(row["category_id"] in single)
    return truth, results


def _truth(package: Any, truth: dict[str, Any]) -> Any:
    data = package.Data("truth")
    for image in truth["images"]:
        data.add_image(image["id"], str(image["id"]))
    for row in truth["annotations"]:
        add = data.add_ignore_region if row["iscrowd"] else data.add_ground_truth
        add(row["image_id"], row["category_id"], box=row["bbox"])
    return data


def _results(package: Any, results: list[dict[str, Any]]) -> Any:
    data = package.Data("found")
    for row in results:
        data.add_detection(row["image_id"], row["category_id"], row["score"], box=row["bbox"])
    return data


def _change(run: Any, kind: Any) -> float:
    return _or_nan(lambda: run.fix_main_errors(error_types=[kind])[kind])


def _without_false_positives(score: float, correct: bool, info: Any) -> Any:
    kind = import_module("tidecv.errors.main_errors").FalsePositiveError
    return kind.fix(score, correct, info)


def _or_nan(value: Callable[[], float]) -> float:
    """Return NaN if a fix leaves no class: tidecv divides by zero."""
    try:
        return value()
    except ZeroDivisionError:
        return math.nan
