"""Notes on ground truth written twice, and on detections of one score, in files and arrays."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detap
from detap.errors import DetapWarning
from tests.cli.conftest import Run
from tests.coco import results_of, saved, truth_of

BOXES = [[10 * n, 10, 8, 8] for n in range(8)]


def coco(rows: int, score: Any) -> tuple[str, str]:
    """Return COCO files of eight objects, written so often, and detections of some scores."""
    objects = [(1, 1, box) for box in BOXES * rows]
    moved = [(1, 1, [x + 2 * (n % 3), y, w, h]) for n, (x, y, w, h) in enumerate(BOXES)]
    results = [row | {"score": score(n)} for n, row in enumerate(results_of(moved))]
    return json.dumps(truth_of(objects, {1: "cat"}, [1], size=(100, 100))), json.dumps(results)


def evaluated(folder: Path, rows: int, score: Any) -> detap.Result:
    for name, content in zip(("gt", "dt"), coco(rows, score), strict=True):
        (folder / f"{name}.json").write_text(content)
    return detap.evaluate(folder / "gt.json", folder / "dt.json", "coco")


def notes(result: detap.Result, code: str) -> list[str]:
    return [str(note) for note in result.notes if note.code == code]


def test_ground_truth_written_twice(tmp_path: Path) -> None:
    with pytest.warns(DetapWarning, match=r"duplicate .* all count.*\(8\) \[repeated-objects\]"):
        evaluated(tmp_path, 2, lambda n: 0.9 - n / 100)
    with pytest.warns(DetapWarning, match=r"file written twice\? \(8\) \[repeated-objects\]"):
        detap.evaluate(*arrays(2, lambda n: n / 10))
    assert not notes(evaluated(tmp_path, 1, lambda n: 0.9 - n / 100), "repeated-objects")


def arrays(rows: int, score: Any) -> tuple[detap.GroundTruth, detap.Detections]:
    corners = np.array([(x, y, x + w, y + h) for x, y, w, h in BOXES], float)
    shifted = corners + 2 * (np.arange(8) % 3)[:, None] * [1, 0, 1, 0]
    truth = detap.GroundTruth.from_arrays(
        image=["a"] * 8 * rows, label=["cat"] * 8 * rows, boxes=np.tile(corners, (rows, 1))
    )
    scores = [score(n) for n in range(8)]
    return truth, detap.Detections.from_arrays(
        image=["a"] * 8, label=["cat"] * 8, boxes=shifted, score=scores
    )


def test_boxes_without_area_are_no_duplicates(tmp_path: Path) -> None:
    # Exports of keypoints can lack boxes and write [0, 0, 0, 0] instead.
    def pose(n: int) -> list[int]:
        return [value for k in range(17) for value in (10 + 40 * n + 3 * k, 10 + 2 * k, 2)]

    truth = truth_of([(1, 1, [0] * 4)] * 4, {1: "person"}, [1], size=(500, 100))
    for n, annotation in enumerate(truth["annotations"]):
        annotation.update({"area": 900 + n, "num_keypoints": 17, "keypoints": pose(n)})
    results = [
        {"image_id": 1, "category_id": 1, "keypoints": pose(n), "score": 0.9 - n / 10}
        for n in range(4)
    ]
    result = detap.evaluate(*saved(tmp_path, truth, results), "coco-keypoints")
    assert result.summary["AP"] == pytest.approx(1)
    assert not notes(result, "repeated-objects")


def test_objects_of_one_box_and_two_areas_are_no_duplicates() -> None:
    """As two masks in one box, of one class."""
    truth, detections = arrays(2, lambda n: n / 10)
    assert notes(detap.evaluate(truth, detections), "repeated-objects")
    area = np.array(truth.area)
    area[: len(area) // 2] *= 0.7
    masks = truth.with_columns({**truth.columns(), "area": area})
    pairs = {*zip(truth.corners[:, 0].tolist(), area.tolist(), strict=True)}
    assert len(pairs) == len(truth)
    assert not notes(detap.evaluate(masks, detections), "repeated-objects")


def test_a_few_objects_at_one_place_are_not_noted() -> None:
    truth, detections = arrays(1, lambda n: n / 10)
    columns = {name: column[[*range(8), 0]] for name, column in truth.columns().items()}
    assert not notes(detap.evaluate(truth.with_columns(columns), detections), "repeated-objects")


@pytest.mark.parametrize("score", [1, 0.5, 0.05])
def test_detections_of_one_score(tmp_path: Path, score: float) -> None:
    with pytest.warns(DetapWarning) as caught:
        result = evaluated(tmp_path, 1, lambda _: score)
    (text,) = notes(result, "one-score")
    assert text in map(str, (warning.message for warning in caught))
    assert not notes(result, "scores-cut")
    # By hand: three detections have IoU 1, three .6 and two 1/3; the bounds of precision-recall
    # over all orders enclose the value in the order of the file.
    low, high = (float(word) for word in text.partition("from ")[2].split()[:3:2])
    assert low < result.summary["AP"] < high
    descending = {n: 0.9 - (n % 3) / 10 for n in range(8)}
    best = detap.evaluate(*arrays(1, descending.get)).summary["AP"]
    worst = detap.evaluate(*arrays(1, lambda n: (n % 3) / 10)).summary["AP"]
    assert (low, high) == pytest.approx((worst, best), abs=5e-5)


def test_two_scores_are_not_one() -> None:
    assert not notes(detap.evaluate(*arrays(1, lambda n: 0.5 + (n == 3) / 10)), "one-score")


def test_a_protocol_without_bounds_names_none() -> None:
    rules = detap.protocol("coco").with_changes(max_dets=(100,), max_dets_scope="dataset")
    with pytest.warns(DetapWarning, match=r"file order decides AP; remove .* evaluation \(8\)"):
        detap.evaluate(*arrays(1, lambda _: 1.0), rules)


def test_check_says_once_what_to_do(command: Run) -> None:
    folder = Path(__file__).parents[2] / "fixtures/iou-at-threshold/coco"
    ended = command("check", folder / "instances.json", folder / "results.json").passed()
    assert ended.err.count("remove the score for a score-free evaluation") == 1
