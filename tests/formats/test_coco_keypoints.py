"""Keypoints of COCO files: accepted equally by both readers, and refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap.analysis.explanation.protocol_search import searched_presets
from detap.errors import InputError, UsageError
from detap.formats import read_detections as read_any_detections
from detap.formats import read_ground_truth as read_any_ground_truth
from detap.formats import read_tables
from detap.formats.catalogue import FORMATS
from detap.formats.coco.format import (
    read_detections,
    read_ground_truth,
)
from detap.formats.read import reader_options
from detap.io.limits import Limits
from detap.io.paths import SourceFile
from detap.protocols import Protocol
from detap.tables.concat import join_detections, join_ground_truths
from detap.tables.detection import Detections, GroundTruth
from fuzz.mutate import Mutator
from tests.cli.conftest import Run
from tests.coco import results_of, saved, truth_of
from tests.formats.coco_files import agreed, result_columns, result_file, truth_columns
from tests.formats.helpers import codes

POSE = [3, 4, 2, 5.5, 6, 1, 0, 0, 0]  # two of three are labeled


def truth_file(folder: Path, name: str = "gt.json", **second: Any) -> Path:
    """Return an instances file of two annotations, the second changed; ... removes a key."""
    path = folder / name
    plain = {"image_id": 1, "category_id": 1, "bbox": [2, 2, 4.1, 5], "area": 16, "iscrowd": 0}
    plain |= {"num_keypoints": 2, "keypoints": POSE}
    changed = {key: value for key, value in (plain | second).items() if value is not ...}
    record = {
        "images": [{"id": 1, "width": 30, "height": 20}, {"id": 2, "width": 30, "height": 20}],
        "categories": [{"id": 1, "name": "a"}],
        "annotations": [{"id": 1, **plain}, {"id": 2, **changed}],
    }
    path.write_text(json.dumps(record))
    return path


def read(folder: Path, *rows: dict[str, Any], **second: Any) -> tuple[GroundTruth, Detections]:
    truth = read_ground_truth(truth_file(folder, **second), keypoints=True)
    return truth, read_detections(result_file(folder, *rows), truth, keypoints=True)


def test_keypoints_are_read(tmp_path: Path) -> None:
    boxed = {"keypoints": POSE, "bbox": [1, 2, 3, 4]}
    truth, detections = read(tmp_path, {"keypoints": POSE}, boxed, num_keypoints=0)
    assert np.asarray(truth.keypoints).tolist() == [[[3, 4, 2], [5.5, 6, 1], [0, 0, 0]]] * 2
    assert np.asarray(truth.no_keypoints).tolist() == [False, True]  # the field decides
    assert np.asarray(truth.width_height).tolist() == [[4.1, 5], [4.1, 5]]
    assert np.asarray(detections.keypoints).tolist() == [[[3, 4], [5.5, 6], [0, 0]]] * 2
    assert detections.corners.tolist() == [[0, 0, 5.5, 6], [1, 2, 4, 6]]
    assert detections.box_area.tolist() == [33, 12]
    assert codes(truth) == {"num-keypoints-disagrees": 1}


def test_num_keypoints_is_counted_if_missing(tmp_path: Path) -> None:
    unlabelled = [1, 2, 0] * 3
    truth, _ = read(tmp_path, num_keypoints=..., keypoints=unlabelled)
    assert np.asarray(truth.no_keypoints).tolist() == [False, True]
    assert codes(truth) == {"missing-num-keypoints": 1}
    occluded = [1, 2, 0, 3, 4, 1, 5, 6, 0]
    truth, _ = read(tmp_path, num_keypoints=..., keypoints=occluded)
    assert np.asarray(truth.no_keypoints).tolist() == [False, False]


def test_a_missing_box_is_taken_around_the_keypoints(tmp_path: Path) -> None:
    """Also when scoring boxes, as in pycocotools; a mask takes precedence."""
    truth = read_ground_truth(truth_file(tmp_path))
    mask = {"segmentation": [[2, 2, 6, 2, 6, 6, 2, 6]], "keypoints": POSE}
    detections = read_detections(result_file(tmp_path, {"keypoints": POSE}, mask), truth)
    assert detections.corners.tolist() == [[0, 0, 5.5, 6], [2, 2, 6, 6]]
    assert detections.keypoints is None
    posed = read_ground_truth(truth_file(tmp_path), keypoints=True)
    detections = read_detections(
        result_file(tmp_path, {"keypoints": POSE}, mask), posed, keypoints=True
    )
    assert detections.corners.tolist() == [[0, 0, 5.5, 6]] * 2
    assert detections.masks is None


ROWS: list[dict[str, Any]] = [{"keypoints": POSE}, {"bbox": [1, 2, 3, 4], "keypoints": POSE}]
ROWS += [{"keypoints": [0.1, 1e2, -1, 7, 8, 2, 9, 9.25, 0.0]}]


def test_no_annotations_have_no_keypoints() -> None:
    content = b'{"images": [], "annotations": [], "categories": []}'
    columns = truth_columns(content, limits=Limits(empty=True), keypoints=True)
    assert np.asarray(columns.table.keypoints).shape == (0, 0, 3)
    assert np.asarray(columns.table.width_height).shape == (0, 2)


@pytest.mark.parametrize("side", ["truth", "results"])
def test_mutated_files_are_their_records_one_by_one(tmp_path: Path, side: str) -> None:
    truth_path = truth_file(tmp_path)
    truth = read_ground_truth(truth_path, keypoints=True)
    mutator, accepted = Mutator("coco-truth", seed=1), 0
    whole = truth_path if side == "truth" else result_file(tmp_path, *ROWS)
    mutator.seeds = [whole.read_bytes()]
    for _ in range(4_000):
        if side == "truth":
            table = agreed(truth_columns, mutator.next(), keypoints=True)
        else:
            table = agreed(result_columns, mutator.next(), truth, keypoints=True)
        accepted += table is not None
    assert accepted > 100


def test_keypoints_of_large_files_are_refused(tmp_path: Path) -> None:
    """The number of keypoints is compared when the spans of earlier rows are gone."""
    long = {"keypoints": POSE, "id": "x" * (9 << 20)}
    with pytest.raises(InputError, match=r"dt.json: \[0\]: keypoints has 2 keypoints, expected 3"):
        read(tmp_path, {"keypoints": POSE[:6], "id": 70}, long, {"keypoints": POSE, "id": 8})


def test_other_formats_have_no_keypoints(fixtures: Path, tmp_path: Path) -> None:
    path = tmp_path / "gt.jsonl"
    path.write_text("{}")
    message = "keypoints are read from COCO and YOLO files; these are read as jsonl"
    with pytest.raises(UsageError, match=message):
        read_any_ground_truth(path, keypoints=True)
    truth = read_any_ground_truth(truth_file(tmp_path), keypoints=True)
    detections = read_any_detections(result_file(tmp_path, *ROWS), truth, keypoints=True)
    assert detections.keypoints is not None


def test_inputs_are_concatenated(tmp_path: Path) -> None:
    """Inputs without rows need not know the number of keypoints."""
    one, detections = read(tmp_path, *ROWS)
    none = one.select(np.zeros(2, np.bool_))
    rest = none.with_columns({**none.columns(), "keypoints": np.zeros((0, 0, 3))})
    both = join_ground_truths([rest, one], merge_images=True)
    assert np.array_equal(np.asarray(both.keypoints), np.asarray(one.keypoints))
    others = detections.with_columns({**detections.columns(), "keypoints": np.zeros((3, 5, 2))})
    others = replace(others, files=(SourceFile("others.json", 3),))
    message = "^others.json: objects have 5 keypoints, but 3 in .*dt.json; use one skeleton in all"
    with pytest.raises(InputError, match=message):
        join_detections([detections, others], merge_images=True)


def test_zero_area_boxes_are_not_noted_for_keypoints(tmp_path: Path) -> None:
    flat = {"bbox": [5, 5, 0, 0], "keypoints": POSE}
    truth, detections = read(tmp_path, flat, bbox=[3, 4, 0, 5])
    assert not codes(truth)
    assert not codes(detections)
    truth = read_ground_truth(truth_file(tmp_path, bbox=[3, 4, 0, 5]))
    assert codes(truth) == {"zero-area-ground-truth": 1}
    detections = read_detections(result_file(tmp_path, flat), truth)
    assert codes(detections) == {"zero-area-detections": 1}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("0", 0), ("2", 2), ("1.0", 1), ("9.0", 9), ("1.00", 1), ("1.05", 1.05), ("10", 10)),
        *(("0.5", 0.5), ("-1", -1), ("2e0", 2), ("1.0e1", 10), ("2 ", 2)),
        *((text, None) for text in ("1.", "01", "00.0", "1.0x", ".0", "", "1.0 1")),
    ],
)
def test_v_may_be_written_as_any_json_number(
    tmp_path: Path, text: str, value: float | None
) -> None:
    path = truth_file(tmp_path)
    for ending in (b"1, 0, 0, 0]", b"0]"):  # amid the list, and at its end
        changed = path.read_bytes().replace(ending, ending.replace(ending[:1], text.encode(), 1))
        (tmp_path / "changed.json").write_bytes(changed)
        data = (tmp_path / "changed.json").read_bytes()
        columns = agreed(truth_columns, data, keypoints=True)
        if value is None:
            assert columns is None
            continue
        assert columns is not None
        where = 1 if len(ending) > 2 else 2
        assert columns.table.keypoints[:, where, 2].tolist() == [value] * 2


@pytest.mark.parametrize("side", ["gt", "dt"])
def test_check_refuses_a_number_of_keypoints_as_eval_does(
    tmp_path: Path, command: Run, side: str
) -> None:

    points: dict[str, Any] = {"keypoints": [10, 10, 2, 30, 30, 2]}
    rows = [(1, 1, [5, 5, 40, 40])]
    truth = truth_of(rows, {1: "hand"}, [1], size=(100, 100), num_keypoints=2, **points)
    saved(tmp_path, truth, [results_of(rows)[0] | points])
    call = ["--gt", str(tmp_path / "gt.json"), "--iou-type", "keypoints"]
    if side == "dt":
        call += ["--dt", str(tmp_path / "dt.json")]
    said = command("check", *call).refused()
    assert "the protocol has 17 sigmas, but rows of the ground truth have 2 keypoints" in said
    # The hint, followed, as cli/test_shapes does in eval.
    assert command("check", *call, "--sigmas", "0.05,0.1").status == 0


# --- several lists of keypoints


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


def read_keys(paths: list[str], protocol: str = TWO) -> tuple[GroundTruth, Detections]:
    truth, detections, _ = read_tables(paths[0], paths[1], Protocol.parse(protocol))
    return truth, detections


def test_keys_are_joined_in_their_order(tmp_path: Path) -> None:
    truth, detections = read_keys(write(tmp_path, [{}], [{}]))
    assert np.asarray(truth.keypoints).tolist() == [[[1, 2, 2], [3, 4, 1], [5, 6, 2]]]
    assert np.asarray(detections.keypoints).tolist() == [[[1, 2], [3, 4], [5, 6]]]
    # The box is that of `keypoints`, whichever keys are compared.
    paths = write(tmp_path, [{}], [{}])
    _, detections = read_keys(paths, "coco-keypoints|keypoint-keys:foot_kpts|sigmas:0.1")
    assert detections.corners.tolist() == [[1, 2, 3, 4]]
    assert np.asarray(detections.keypoints).tolist() == [[[5, 6]]]


def test_unlabeled_objects_are_ignored_and_unlabeled_detections_dropped(tmp_path: Path) -> None:
    paths = write(
        tmp_path,
        [{"foot_kpts": NONE, "num_keypoints": 2}, {"num_keypoints": 0}],
        [{"foot_kpts": NONE, "score": 0.9}, {"score": 0.8}],
    )
    truth, detections = read_keys(paths, "coco-keypoints|keypoint-keys:foot_kpts|sigmas:0.1")
    assert truth.no_keypoints is not None
    assert truth.no_keypoints.tolist() == [True, False]  # num_keypoints counts other ones
    assert detections.score.tolist() == [0.8]
    assert codes(detections)["unlabeled-detections-dropped"] == 1
    truth, detections = read_keys(paths)  # there is a labeled one in `keypoints`
    assert np.asarray(truth.no_keypoints).tolist() == [False, False]
    assert len(detections) == 2


def test_a_score_has_another_key(tmp_path: Path) -> None:
    results: list[dict[str, Any]] = [
        {"foot_score": 0.1},
        {"foot_score": 1},
        {},
        {"foot_score": None},
    ]
    paths = write(tmp_path, [{}], results)
    _, detections = read_keys(paths)
    assert detections.score.tolist() == [0.1, 1.0, 0.5, 0.5]
    assert codes(detections)["missing-score-key"] == 2
    _, detections = read_keys(paths, "coco-keypoints|keypoint-keys:foot_kpts|sigmas:0.1")
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
        read_keys(write(tmp_path, [{}], [{}, wrong]))


def test_a_missing_key(tmp_path: Path) -> None:
    paths = write(tmp_path, [{}, {}], [{}])
    truth = Path(paths[0])
    truth.write_text('"face"'.join(truth.read_text().rsplit('"foot_kpts"', 1)))
    message = r"annotations\[1\] \(id 2\): foot_kpts is missing; add it, or use --iou-type bbox"
    with pytest.raises(InputError, match=message):
        read_keys(paths)


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
    (names,) = [names for reason, names in skipped.items() if "--keypoint-keys" in reason]
    assert len(names) == 6


def test_protocols_that_read_different_keys(tmp_path: Path, detap: Run) -> None:
    paths = write(tmp_path, [{}], [{}])
    sources = ("--gt", paths[0], "--dt", paths[1])
    said = detap("explain", *sources, "--from", "coco-keypoints", "--to", TWO).refused()
    assert "read different keypoints or scores of a record; use one of them at a time" in said
