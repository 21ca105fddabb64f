"""WIDER FACE's presets against the numbers of its script (measures.md, section 7)."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

import detap
from detap.errors import UsageError
from detap.evaluation.detection import evaluate
from detap.protocols import protocol
from detap.tables.detection import Detections, GroundTruth
from tests.coco import saved, truth_of
from tests.conftest import ROOT
from tests.processes import finished

SUBSETS = ("easy", "medium", "hard")


@pytest.fixture(scope="module")
def made(measures: Path) -> Any:
    return json.loads((measures / "wider_tiny.json").read_text("utf-8"))


def as_coco(made: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the faces with a flag per subset, and the results, as COCO has them."""
    ids = {name: number for number, name in enumerate(made["ground_truth"], 1)}
    faces = [
        (name, index, box)
        for name, boxes in made["ground_truth"].items()
        for index, box in enumerate(boxes, 1)
    ]
    files = {number: f"{name}.jpg" for name, number in ids.items()}
    truth = truth_of([(ids[n], 1, box) for n, _, box in faces], {1: "face"}, files, size=None)
    for record, (name, index, _) in zip(truth["annotations"], faces, strict=True):
        keep = made["keep (1-based)"][name]
        record |= {subset: int(index in keep[subset]) for subset in SUBSETS}
    results = [
        {"image_id": ids[name], "category_id": 1, "bbox": row[:4], "score": row[4]}
        for name, rows in made["predictions (x y w h score, falling)"].items()
        for row in rows
    ]
    return truth, results


@pytest.mark.parametrize("subset", SUBSETS)
def test_the_numbers_of_the_script(made: dict[str, Any], tmp_path: Path, subset: str) -> None:
    result = detap.evaluate(*saved(tmp_path, *as_coco(made)), protocol=f"wider-{subset}")
    assert result.ground_truths.tolist() == [made["faces"][subset]]
    by_script = made["expected by evaluation.py (1000 thresholds)"][subset]
    assert result.summary["AP@thresholds=1000"] == pytest.approx(by_script, abs=1e-12)
    (exact,) = (values for name, values in made.items() if name.startswith("exact thresholds"))
    assert result.summary["mAP"] == pytest.approx(exact[subset], abs=1e-12)


def cells(values: list[Any]) -> Any:
    """Return a column of MATLAB cells."""
    column = np.empty((len(values), 1), object)
    column[:, 0] = values
    return column


def write_files(made: dict[str, Any], folder: Path) -> None:
    """Write WIDER FACE's files: cells of cells in .mat, and a text file per image."""
    by_event: dict[str, list[str]] = {}
    for name in made["ground_truth"]:
        by_event.setdefault(name.split("_")[1], []).append(name)
    events = cells([*by_event])
    names = cells([cells(names) for names in by_event.values()])

    def nested(value_of: Callable[[str], Any]) -> Any:
        return cells([cells([value_of(name) for name in names]) for names in by_event.values()])

    boxes = nested(lambda name: np.reshape(made["ground_truth"][name], (-1, 4)).astype(float))
    record = {"event_list": events, "file_list": names, "face_bbx_list": boxes}
    savemat(folder / "wider_face_val.mat", record)
    keep = made["keep (1-based)"]
    for subset in SUBSETS:
        lists = {name: np.reshape(keep[name][subset], (-1, 1)).astype(int) for name in keep}
        savemat(folder / f"wider_{subset}_val.mat", {"gt_list": nested(lists.__getitem__)})
    for event, files in by_event.items():
        (folder / event).mkdir()
        for name in files:
            rows = made["predictions (x y w h score, falling)"].get(name, [])
            lines = [name, str(len(rows)), *(" ".join(map(str, row)) for row in rows)]
            (folder / event / f"{name}.txt").write_text("\n".join(lines) + "\n")


def test_the_example_reads_the_files_of_the_data_set(made: dict[str, Any], tmp_path: Path) -> None:
    write_files(made, tmp_path)
    command = [sys.executable, *map(str, (ROOT / "examples/wider_face.py", tmp_path, tmp_path))]
    shown = finished(command).stdout
    expected = made["expected by evaluation.py (1000 thresholds)"]
    lines = [f"{subset:6}  {expected[subset]:.4f}" for subset in SUBSETS]
    assert shown.splitlines() == lines


def tables(faces: int, scores: list[float]) -> tuple[GroundTruth, Detections]:
    """Return faces on image 1, each detected, and one detection on image 2, which has none."""
    boxes = [[100.0 * n, 0.0, 100.0 * n + 50, 50.0] for n in range(faces)]
    truth = GroundTruth.from_arrays(
        image=[1] * faces,
        label=[0] * faces,
        boxes=boxes,
        box_format="xyxy",
        images=[1, 2],
        classes=[0],
        extra={"easy": [1.0] * faces},
    )
    detections = Detections.from_arrays(
        image=[1] * faces + [2],
        label=[0] * (faces + 1),
        boxes=[*boxes, [0.0, 0.0, 50.0, 50.0]],
        box_format="xyxy",
        score=scores,
    )
    return truth, detections.reindex_like(truth)


def test_detections_on_images_without_faces_are_ignored_but_scale_the_scores() -> None:
    truth, detections = tables(2, [0.8, 0.4, 1.0])
    rules = protocol("wider-easy")
    result = evaluate(truth, detections, rules)
    assert result.summary == {"mAP": 1.0, "AP@thresholds=1000": 1.0}
    assert result.false_positives.tolist() == [0]
    # From 0.4 to 1 as 0 to 1, 0.8 is 2/3: only the last of two thresholds (1/2 and 0) has 0.4.
    assert result.metric("AP@thresholds=2") == 1.0
    counted = evaluate(truth, detections, rules.with_changes(images_without_ground_truth="count"))
    # By hand: F at 1.0, T at 0.8, T at 0.4: precision 1/2 and 2/3, envelope 2/3.
    assert counted.summary["mAP"] == pytest.approx(2 / 3)


def test_equal_scores_are_one_point() -> None:
    truth, detections = tables(2, [0.5, 0.5, 0.5])
    rules = protocol("wider-easy").with_changes(images_without_ground_truth="count")
    # One threshold has all three detections: precision 2/3 at recall 1.
    assert evaluate(truth, detections, rules).metric("AP@thresholds=9") == pytest.approx(2 / 3)


@pytest.mark.parametrize("count", ["0", "1.5"])
def test_the_number_of_thresholds_is_an_integer(count: str) -> None:
    name = f"AP@thresholds={count}"
    with pytest.raises(UsageError) as caught:
        evaluate(*tables(1, [0.5, 0.4]), "wider-easy").metric(name)
    assert str(caught.value) == f"{name}: the number of thresholds must be a positive integer"
