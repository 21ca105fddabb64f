"""Errors for arguments of a wrong kind name the function that helps, and it does."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import detap
from detap import UsageError
from detap.analysis.comparison import compare
from tests.conftest import ROOT

COCO = ROOT / "fixtures/quickstart/coco"
GT, DT = COCO / "instances.json", COCO / "results.json"


def tables() -> tuple[detap.GroundTruth, detap.Detections]:
    ground_truth = detap.read_ground_truth(GT)
    return ground_truth, detap.read_detections(DT, ground_truth)


def refused(call: Callable[[], Any], message: str) -> None:
    """Check the whole text of a UsageError."""
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        call()


READ_GT = "read it with detap.read_ground_truth(path)"
READ_DT = "read it with detap.read_detections(path, ground_truth)"
BUILD_GT = f"{READ_GT} or build it with detap.GroundTruth.from_arrays"
BUILD_DT = f"{READ_DT} or build it with detap.Detections.from_arrays"


def test_swapped_tables() -> None:
    ground_truth, detections = tables()
    hint = "pass the ground truth first, then the detections"
    swapped: Any = (detections, ground_truth)
    refused(
        lambda: detap.evaluate(*swapped),
        f"expected GroundTruth or a path, got Detections; {hint}",
    )
    refused(lambda: detap.select(*swapped), f"expected GroundTruth, got Detections; {hint}")
    refused(
        lambda: detap.evaluate(GT, ground_truth),  # type: ignore[arg-type]
        f"expected Detections or a path, got GroundTruth; {hint}",
    )
    assert detap.evaluate(*reversed(swapped)).summary["AP"] > 0
    wrong: Any = 3
    message = "protocol 3 is not a Protocol or the name of a preset"
    with pytest.raises(detap.UsageError, match=message):
        detap.evaluate(GT, DT, wrong)


@pytest.mark.parametrize(
    ("value", "described"),
    [
        (np.zeros((3, 4)), "ndarray"),
        ([[1, 2, 3, 4]], "list"),
        ([], "list"),
        ({"images": []}, "dict"),
        (None, "NoneType"),
    ],
)
def test_other_objects(value: Any, described: str) -> None:
    refused(
        lambda: detap.evaluate(value, DT),
        f"expected GroundTruth or a path, got {described}; {BUILD_GT}",
    )
    refused(
        lambda: detap.evaluate(GT, value),
        f"expected Detections or a path, got {described}; {BUILD_DT}",
    )
    # The hint.
    ground_truth, detections = tables()
    result = detap.evaluate(ground_truth, detections)
    assert result.summary == detap.evaluate(GT, DT).summary


def test_a_path_where_a_table_is_needed() -> None:
    message = f"expected GroundTruth, got str; {BUILD_GT}"
    path: Any = str(GT)
    refused(lambda: detap.read_detections(DT, path), message)
    refused(lambda: detap.Evaluator(path), message)
    refused(lambda: detap.convert("new", path, to="voc"), message)
    refused(
        lambda: detap.convert("new", detections=path, to="voc"),
        f"expected Detections, got str; {BUILD_DT}",
    )


def test_an_object_where_a_path_is_needed() -> None:
    ground_truth, _ = tables()
    table: Any = ground_truth
    path: Any = DT
    hint = "pass text, a pathlib.Path or a list of them"
    refused(lambda: detap.read_detections(table, path), f"expected a path, got GroundTruth; {hint}")
    refused(
        lambda: detap.read_ground_truth({"images": []}),  # type: ignore[arg-type]
        f"expected a path, got dict; {hint}",
    )
    refused(lambda: detap.read_ground_truth([]), "no path given")


def test_tables_where_results_are_needed() -> None:
    ground_truth, _ = tables()
    table: Any = ground_truth
    refused(
        lambda: compare(table, table), "expected Result, got GroundTruth; detap.evaluate returns it"
    )


@pytest.mark.parametrize("shape", ["masks", "keypoints"])
@pytest.mark.parametrize("role", ["ground truth", "detections"])
def test_missing_shapes_name_the_function_and_keyword(role: str, shape: str) -> None:
    read, build = {
        "ground truth": ("read_ground_truth", "GroundTruth"),
        "detections": ("read_detections", "Detections"),
    }[role]
    rows: dict[str, Any] = {"image": ["a"], "label": ["cat"], "boxes": [[0, 0, 9, 9]]}
    shapes = {"masks": np.ones((1, 9, 9), np.bool_), "keypoints": [[[5, 5, 2]] * 17]}
    given: dict[str, Any] = {shape: shapes[shape]}
    of_truth, of_detections = ({}, given) if role == "ground truth" else (given, {})
    ground_truth = detap.GroundTruth.from_arrays(**rows, **of_truth)
    detections = detap.Detections.from_arrays(**rows, **of_detections, score=[1])
    refused(
        lambda: detap.evaluate(
            ground_truth, detections, {"masks": "coco-segm", "keypoints": "coco-keypoints"}[shape]
        ),
        f"no {shape} in the {role}; pass {shape}=True to {read} or {shape}= to {build}.from_arrays",
    )
