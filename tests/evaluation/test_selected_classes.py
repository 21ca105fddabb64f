"""Classes selected by integers: labels of arrays, category ids, numbers in settings."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detap
from detap.testing import assert_detections
from tests.cli.conftest import Run, written
from tests.coco import results_of, truth_of
from tests.processes import finished
from tests.tables import dt_table, gt_table

# The box of class 2 has IoU 400 / 480 = .8333: 7 of 10 thresholds match. Class 1 has AP 1.
BOXES = [[0, 0, 10, 10], [20, 20, 40, 40]]
FOUND = [[0, 0, 10, 10], [20, 20, 40, 44]]


def arrays(labels: Any) -> tuple[detap.GroundTruth, detap.Detections]:
    truth = gt_table(BOXES, image=0, label=labels, images=[0, 1])
    detections = dt_table(FOUND, [0.9, 0.8], image=0, label=labels)
    return truth, detections


def coco(folder: Path) -> tuple[Path, Path]:
    """Write the same boxes with the categories 1 "cat" and 2 "dog"."""
    truths, detections = (
        [(1, n, [x, y, right - x, bottom - y]) for n, (x, y, right, bottom) in enumerate(boxes, 1)]
        for boxes in (BOXES, FOUND)
    )
    written(folder, truth_of(truths, {1: "cat", 2: "dog"}, [1]), results_of(detections))
    return folder / "gt.json", folder / "dt.json"


CHOSEN: dict[str, Any] = {
    "integers": [2],
    "NumPy integers": [np.int64(2)],
    "an array": np.array([2], np.uint8),
    "a set": {2},
    "text": ["2"],
}


@pytest.mark.parametrize("chosen", CHOSEN.values(), ids=CHOSEN)
def test_classes_of_arrays(chosen: Any) -> None:
    truth, detections = arrays([1, 2])
    assert detap.evaluate(truth, detections, classes=chosen).summary["AP"] == pytest.approx(0.7)
    assert detap.evaluate(*detap.select(truth, detections, classes=chosen)).summary[
        "AP"
    ] == pytest.approx(0.7)
    with pytest.raises(AssertionError, match="AP"):
        assert_detections(truth, detections, fail_under={"AP": 0.71}, classes=chosen)
    assert_detections(truth, detections, fail_under={"AP": 0.69}, classes=chosen)


def test_a_reported_script(real_data: Path) -> None:
    script = real_data / "reports4" / "classes-as-numbers" / "run.py"
    if not script.is_file():
        pytest.skip(f"the rebuilt reports are absent: no file {script}")
    run = finished([sys.executable, script])
    assert [round(float(line), 9) for line in run.stdout.split()] == [0.7, 0.7]


def test_category_ids(tmp_path: Path) -> None:
    paths = coco(tmp_path)
    choices: list[Any] = [[2], ["dog"], [np.int32(2)], [2, "dog"]]
    for chosen in choices:
        result = detap.evaluate(*paths, classes=chosen)
        assert result.classes == ("dog",)
        assert result.summary["AP"] == pytest.approx(0.7)
    assert detap.evaluate(*paths, classes=[2, "cat"]).summary["AP"] == pytest.approx(0.85)


def test_an_id_comes_before_a_name() -> None:
    labels: dict[str, Any] = {"label": [7, 2], "classes": {7: "2", 2: "7"}}
    truth = detap.GroundTruth.from_arrays(image=[0, 0], boxes=BOXES, **labels)
    detections = dt_table(FOUND, [0.9, 0.8], image=0, label=[7, 2])
    assert detap.evaluate(truth, detections, classes=[2]).summary["AP"] == pytest.approx(0.7)
    assert detap.evaluate(truth, detections, classes=["2"]).summary["AP"] == pytest.approx(1)


def test_numbers_that_are_names() -> None:
    truth, detections = arrays(["1", "2"])
    assert detap.evaluate(truth, detections, classes=[2]).summary["AP"] == pytest.approx(0.7)


@pytest.mark.parametrize("chosen", [[3], [np.int64(3)], ["3"]])
def test_an_unknown_integer(chosen: Any) -> None:
    with pytest.raises(detap.UsageError, match=r"class '3' is not in the ground truth$"):
        detap.evaluate(*arrays([1, 2]), classes=chosen)


def test_an_evaluator() -> None:
    evaluator = detap.Evaluator(arrays([1, 2])[0], boxes="xyxy")
    evaluator.update([0, 1], [FOUND, []], [[0.9, 0.8], []], [[1, 2], []])
    assert evaluator.compute(classes=[2]).summary["AP"] == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("setting", "ap"),
    [("[2]", 0.7), ("2", 0.7), ('["dog"]', 0.7), ('"2,cat"', 0.85), ("[1, 2]", 0.85), ("[1]", 1.0)],
)
def test_settings_and_options(cwd: Path, command: Run, setting: str, ap: float) -> None:
    coco(cwd)
    (cwd / "detap.toml").write_text(f"classes = {setting}\n")
    values = setting.strip('["]').replace(" ", "")
    for option in ([], ["--isolated", "--classes", values]):
        report = command("eval", "gt.json", "dt.json", *option, "--output-format", "json").report()
        assert report["summary"]["AP"] == pytest.approx(ap)
