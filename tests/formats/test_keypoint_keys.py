"""COCO records with several lists of keypoints, and other keys of the score."""

import json
from pathlib import Path
from typing import Any

import pytest

from detap.analysis.explanation.protocol_search import searched_presets
from detap.errors import InputError, UsageError
from detap.formats import read_tables
from detap.formats.catalogue import FORMATS
from detap.formats.read import reader_options
from detap.protocols import Protocol
from detap.tables.detection import Detections, GroundTruth
from tests.cli.conftest import Run
from tests.formats.helpers import codes

TWO = (
    "coco-keypoints|keypoint-keys:keypoints,foot_kpts|sigmas:0.1,0.2,0.3"
    "|result-score-key:foot_score"
)
BODY, FOOT, NONE = [1, 2, 2, 3, 4, 1], [5, 6, 2], [5, 6, 0]


def write(folder: Path, truths: list[dict[str, Any]], results: list[dict[str, Any]]) -> list[str]:
    """Write both files; every record is of image 1 and category 1, and has three keypoints."""
    common = {"image_id": 1, "category_id": 1, "keypoints": BODY, "foot_kpts": FOOT}
    annotations = [
        {"id": number, "bbox": [0, 0, 40, 40], "area": 1600, "iscrowd": 0, "num_keypoints": 2}
        | common
        | record
        for number, record in enumerate(truths, 1)
    ]
    truth = {"images": [{"id": 1}], "categories": [{"id": 1, "name": "person"}]}
    contents = truth | {"annotations": annotations}, [common | {"score": 0.5} | r for r in results]
    for name, content in zip(("gt.json", "dt.json"), contents, strict=True):
        (folder / name).write_text(json.dumps(content))
    return [str(folder / "gt.json"), str(folder / "dt.json")]


def read(paths: list[str], protocol: str = TWO) -> tuple[GroundTruth, Detections]:
    truth, detections, _ = read_tables(paths[0], paths[1], Protocol.parse(protocol))
    return truth, detections


def test_keys_are_joined_in_their_order(tmp_path: Path) -> None:
    truth, detections = read(write(tmp_path, [{}], [{}]))
    assert truth.keypoints is not None
    assert detections.keypoints is not None
    assert truth.keypoints.tolist() == [[[1, 2, 2], [3, 4, 1], [5, 6, 2]]]
    assert detections.keypoints.tolist() == [[[1, 2], [3, 4], [5, 6]]]
    # The box is that of `keypoints`, whichever keys are compared.
    paths = write(tmp_path, [{}], [{}])
    _, detections = read(paths, "coco-keypoints|keypoint-keys:foot_kpts|sigmas:0.1")
    assert detections.corners.tolist() == [[1, 2, 3, 4]]
    assert detections.keypoints is not None
    assert detections.keypoints.tolist() == [[[5, 6]]]


def test_unlabeled_objects_are_ignored_and_unlabeled_detections_dropped(tmp_path: Path) -> None:
    paths = write(
        tmp_path,
        [{"foot_kpts": NONE, "num_keypoints": 2}, {"num_keypoints": 0}],
        [{"foot_kpts": NONE, "score": 0.9}, {"score": 0.8}],
    )
    truth, detections = read(paths, "coco-keypoints|keypoint-keys:foot_kpts|sigmas:0.1")
    assert truth.no_keypoints is not None
    assert truth.no_keypoints.tolist() == [True, False]  # num_keypoints counts other ones
    assert detections.score.tolist() == [0.8]
    assert codes(detections)["unlabeled-detections-dropped"] == 1
    truth, detections = read(paths)  # there is a labeled one in `keypoints`
    assert truth.no_keypoints is not None
    assert truth.no_keypoints.tolist() == [False, False]
    assert len(detections) == 2


def test_a_score_has_another_key(tmp_path: Path) -> None:
    results: list[dict[str, Any]] = [
        {"foot_score": 0.1},
        {"foot_score": 1},
        {},
        {"foot_score": None},
    ]
    paths = write(tmp_path, [{}], results)
    _, detections = read(paths)
    assert detections.score.tolist() == [0.1, 1.0, 0.5, 0.5]
    assert codes(detections)["missing-score-key"] == 2
    _, detections = read(paths, "coco-keypoints|keypoint-keys:foot_kpts|sigmas:0.1")
    assert detections.score.tolist() == [0.5] * 4


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"foot_kpts": None}, r"\[1\]: foot_kpts is null, expected \[x, y, v, x, y, v, \.\.\.\]"),
        ({"foot_kpts": [1, 2]}, r"\[1\]: foot_kpts has 2 values, expected \[x, y, v"),
        ({"foot_kpts": [1, "x", 2]}, r'\[1\]: foot_kpts\[1\] is "x", expected a number'),
        ({"foot_kpts": FOOT * 2}, r"\[1\]: foot_kpts has 2 keypoints, expected 1 in earlier"),
        ({"foot_score": "high"}, r'\[1\]: foot_score is "high", expected a number'),
    ],
    ids=str,
)
def test_bad_results(tmp_path: Path, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(write(tmp_path, [{}], [{}, wrong]))


def test_a_missing_key(tmp_path: Path) -> None:
    paths = write(tmp_path, [{}, {}], [{}])
    truth = Path(paths[0])
    truth.write_text('"face"'.join(truth.read_text().rsplit('"foot_kpts"', 1)))
    message = r"annotations\[1\] \(id 2\): foot_kpts is missing; add it, or use --iou-type bbox"
    with pytest.raises(InputError, match=message):
        read(paths)


def test_other_formats_have_no_keys(tmp_path: Path, detap: Run) -> None:
    labels = tmp_path / "labels.jsonl"
    labels.write_text('{"image": "1", "boxes": []}\n')
    paths = write(tmp_path, [{}], [{}])
    said = detap("eval", paths[0], labels, "--result-score-key", "foot_score").refused()
    assert "result_score_key applies to COCO files; these are read as jsonl" in said
    message = "keypoint_keys applies to COCO files; these are read as yolo"
    with pytest.raises(UsageError, match=message):
        reader_options(FORMATS["yolo"], "ground truth", Protocol.parse(TWO).reader_options)


def test_a_search_leaves_out_presets_of_other_keys() -> None:
    searched, skipped = searched_presets({"iou_type": "keypoints"})
    assert {protocol.name for protocol in searched} >= {"coco-keypoints", "crowdpose"}
    assert not any(protocol.keys for protocol in searched)
    (group,) = [group for group in skipped if "--keypoint-keys" in group.reason]
    assert len(group.presets) == 6


def test_protocols_that_read_different_keys(tmp_path: Path, detap: Run) -> None:
    paths = write(tmp_path, [{}], [{}])
    sources = ("--gt", paths[0], "--dt", paths[1])
    said = detap("explain", *sources, "--from", "coco-keypoints", "--to", TWO).refused()
    assert "read different keypoints or scores of a record; use one of them at a time" in said
