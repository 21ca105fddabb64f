"""Segmentations of COCO files: accepted equally by both readers, and refused."""

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycocotools import mask
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

import detap
from detap.core.masks import runs_of
from detap.errors import InputError
from detap.evaluation.detection import evaluate
from detap.formats.coco.format import (
    read_detections,
    read_ground_truth,
)
from detap.tables.detection import Detections, GroundTruth
from fuzz import targets
from fuzz.mutate import Mutator
from tests.coco import truth_of
from tests.formats.coco_files import agreed, result_columns, result_file, truth_columns
from tests.raised import raised

SQUARE = [[2, 2, 6, 2, 6, 6, 2, 6]]  # 16 pixels
LISTED = {"size": [20, 30], "counts": [42, 4, 16, 4, 16, 4, 16, 4, 494]}  # the same, 30 wide
STRING = {"size": [20, 30], "counts": "Z14`000000n>"}
WITH_SHORT_PARTS = [*SQUARE, [9, 9], [1, 2, 25, 18], [20, 4, 26, 4, 26, 9]]
"""Parts of one and two points have no pixels."""


def truth_file(folder: Path, segmentation: Any = SQUARE, **image: Any) -> Path:
    path = folder / "gt.json"
    record = truth_of([(1, 1, [2, 2, 4, 4])] * 2, {1: "a"}, [1], size=None)
    sizes = {"width": 30, "height": 20} | image
    record["images"][0] |= {name: side for name, side in sizes.items() if side is not None}
    record["annotations"][0]["segmentation"] = SQUARE
    if segmentation is not ...:
        record["annotations"][1]["segmentation"] = segmentation
    path.write_text(json.dumps(record))
    return path


def read(folder: Path, *rows: dict[str, Any]) -> tuple[GroundTruth, Detections]:
    truth = read_ground_truth(truth_file(folder), masks=True)
    return truth, read_detections(result_file(folder, *rows), truth, masks=True)


def drawn(table: GroundTruth | Detections, row: int) -> list[int]:
    assert table.masks is not None
    runs: list[int] = runs_of(table.masks.arrays, int(np.asarray(table.mask)[row])).tolist()
    return runs


def test_every_segmentation_form_gives_the_same_mask(tmp_path: Path) -> None:
    truth, detections = read(
        tmp_path,
        {"segmentation": STRING},
        {"segmentation": LISTED},
        {"segmentation": SQUARE},
        {"bbox": [2, 2, 4, 4]},
    )
    assert [drawn(detections, row) for row in range(4)] == [LISTED["counts"]] * 4
    assert drawn(truth, 0) == LISTED["counts"]
    assert detections.corners.tolist() == [[2, 2, 6, 6]] * 4
    assert np.asarray(detections.area).tolist() == [16] * 4
    assert {note.code: note.count for note in detections.notes} == {
        "boxes-as-masks": 1,
        "results-not-compressed": 2,
    }


def test_a_missing_mask_is_the_box_and_the_others_stay(tmp_path: Path) -> None:
    triangle = [[2, 2, 6, 2, 6, 6]]
    _, detections = read(tmp_path, {"segmentation": triangle}, {"bbox": [2, 2, 4, 4]})
    [by_pycocotools] = mask.frPyObjects(triangle, 20, 30)
    assert np.asarray(detections.area).tolist() == [mask.area(by_pycocotools), 16]
    assert drawn(detections, 1) == LISTED["counts"]


def test_mutated_results_for_boxes_are_their_records_one_by_one() -> None:
    """Masks give missing boxes. Those that are scored are in `fuzz.targets`, as ground truths."""
    mutator = Mutator("coco-result-masks", seed=1)
    read = [agreed(result_columns, mutator.next(), targets.TRUTH) for _ in range(4_000)]
    assert sum(table is not None for table in read) > 100


def test_blocks_end_anywhere(tmp_path: Path) -> None:
    """A record across two blocks is read once."""
    path = tmp_path / "dt.json"
    row = {"image_id": 1, "category_id": 1, "score": 0.5, "segmentation": STRING}
    path.write_text("[" + ",".join(json.dumps(row, indent=n % 3) for n in range(6000)) + "]")
    assert path.stat().st_size > 2 * 262144
    truth = read_ground_truth(truth_file(tmp_path), masks=True)
    detections = result_columns(path.read_bytes(), truth, masks=True)
    assert detections.masks is not None
    assert len(detections.masks) == 6000
    assert detections.masks.runs.tolist() == LISTED["counts"] * 6000


def test_masks_are_not_kept_when_scoring_boxes(tmp_path: Path) -> None:
    truth = read_ground_truth(truth_file(tmp_path, []))  # not even looked at
    detections = read_detections(
        result_file(tmp_path, {"segmentation": 5, "bbox": [1, 1, 2, 2]}), truth
    )
    kept = truth.masks, detections.masks, truth.mask, detections.mask, detections.area
    assert all(column is None for column in kept)


def test_rows_without_boxes_are_read_by_the_fast_reader(tmp_path: Path) -> None:
    """It scans again for them; of rows with a box it keeps no mask."""
    truth = read_ground_truth(truth_file(tmp_path))
    path = result_file(
        tmp_path,
        {"segmentation": STRING},
        {"segmentation": {"size": [7, 7], "counts": [49]}, "bbox": [1, 2, 3, 4]},
        {"bbox": [1, 1, 2, 2]},
        {"segmentation": SQUARE},
    )
    detections = agreed(result_columns, path.read_bytes(), truth)
    assert (detections.mask >= 0).tolist() == [True, False, False, True]
    table = read_detections(path, truth)
    assert table.corners.tolist() == [[2, 2, 6, 6], [1, 2, 4, 6], [1, 1, 3, 3], [2, 2, 6, 6]]
    assert table.box_area.tolist() == np.asarray(table.area).tolist() == [16, 12, 4, 16]
    assert table.masks is None
    # With masks it is an error.
    with pytest.raises(InputError, match=r"has size \[7, 7\]"):
        read_detections(path, truth, masks=True)


def test_annotations_without_a_box_have_the_bounds_of_their_mask(tmp_path: Path) -> None:
    path = truth_file(tmp_path, [[1, 1, 9, 1, 9, 5, 1, 5]])
    record = json.loads(path.read_text())
    for row in record["annotations"]:
        del row["bbox"]
    del record["annotations"][0]["area"]
    path.write_text(json.dumps(record))
    assert agreed(truth_columns, path.read_bytes(), masks=True) is not None
    truth = read_ground_truth(path, masks=True)
    assert truth.corners.tolist() == [[2, 2, 6, 6], [1, 1, 9, 5]]
    assert truth.box_area.tolist() == [16, 32]
    assert truth.area.tolist() == [16, 16]  # the box's, and as annotated
    assert {note.code: note.count for note in truth.notes} == {"missing-area": 1}
    detections = read_detections(result_file(tmp_path, {"segmentation": STRING}), truth, masks=True)
    assert evaluate(truth, detections, "coco-segm").summary["AP"] > 0.5
    with pytest.raises(InputError, match="bbox is missing"):
        read_ground_truth(path)


@pytest.mark.parametrize("empty", [False, True])
def test_parts_without_pixels_and_empty_boxes_are_scored_as_by_pycocotools(
    tmp_path: Path, empty: bool
) -> None:
    """Two objects of several parts, and masks that overlap each in some pixels."""
    parts = [*WITH_SHORT_PARTS, []] if empty else WITH_SHORT_PARTS  # [] is read with care only
    path = truth_file(tmp_path, parts)
    record = json.loads(path.read_text())
    record["annotations"][0]["bbox"] = []  # which masks do without
    path.write_text(json.dumps(record))
    runs = [mask.frPyObjects([ring], 20, 30)[0] for ring in (SQUARE[0], WITH_SHORT_PARTS[-1])]
    masks = [runs[1], mask.merge(runs), runs[0]]
    strings = [{**one, "counts": one["counts"].decode()} for one in masks]
    rows = [
        {"segmentation": one, "bbox": [], "score": 0.5 - 0.1 * number}
        for number, one in enumerate(strings)
    ]
    results = result_file(tmp_path, *rows)
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO(str(path))
        evaluator = COCOeval(coco, coco.loadRes(str(results)), "segm")
        evaluator.evaluate()
        evaluator.accumulate()
        evaluator.summarize()
    truth = read_ground_truth(path, masks=True)
    detections = read_detections(results, truth, masks=True)
    numbers = evaluate(truth, detections, "coco-segm").summary
    assert 0 < evaluator.stats[0] < 1
    assert numbers["AP"] == pytest.approx(evaluator.stats[0], rel=1e-12)
    assert numbers["APs"] == pytest.approx(evaluator.stats[3], rel=1e-12)
    boxes = read_detections(results, read_ground_truth(truth_file(tmp_path)))
    expected = mask.toBbox(masks)
    expected[:, 2:] += expected[:, :2]
    assert boxes.corners.tolist() == expected.tolist()


def test_an_empty_box_without_a_mask_is_an_error(tmp_path: Path) -> None:
    truth = read_ground_truth(truth_file(tmp_path), masks=True)
    path = result_file(tmp_path, {"segmentation": STRING}, {"bbox": []})
    expected = ("bbox has 0 values", "[x, y, width, height]"), ("segmentation is missing", "add")
    for masks, (message, hint) in enumerate(expected):
        error = raised(InputError, read_detections, path, truth, masks=bool(masks))
        refused(error, path, "[1]", message, hint)


def test_an_invalid_mask_is_an_error_if_it_gives_the_box(tmp_path: Path) -> None:
    """Masks that are scored are in tests/reliability/mask_cases.py."""
    truth = read_ground_truth(truth_file(tmp_path))
    path = result_file(tmp_path, {"segmentation": STRING}, {"segmentation": []})
    error = raised(InputError, read_detections, path, truth)
    refused(error, path, "[1]", "segmentation is empty", "expected polygons")


def refused(error: InputError, path: Path, location: str, message: str, hint: str) -> None:
    (problem,) = error.problems
    assert problem.file == str(path)
    assert problem.location.startswith(location)
    assert problem.message.startswith(message)
    assert hint in str(problem)


@pytest.mark.parametrize("names", [("dt", "none"), ("none", "dt")], ids=" ".join)
def test_an_empty_file_changes_no_areas_of_masks(tmp_path: Path, names: tuple[str, str]) -> None:
    """A false positive of 464 pixels is small, though its bounding box of 3600 is medium."""
    truth = truth_file(tmp_path, width=200, height=200)
    frame = np.ones((200, 200), np.uint8, order="F")
    frame[:50] = frame[110:] = frame[52:108, 52:108] = 0
    frame[:, :50] = frame[:, 110:] = 0
    encoded = mask.encode(frame)
    counts = encoded["counts"].decode()
    wrong = {"segmentation": {"size": [200, 200], "counts": counts}, "score": 0.9}
    result_file(tmp_path, wrong, {"segmentation": SQUARE}, {"segmentation": SQUARE})
    (tmp_path / "none.json").write_text("[]")
    one = detap.evaluate(truth, tmp_path / "dt.json", protocol="coco-segm")
    both = [tmp_path / f"{name}.json" for name in names]
    result = detap.evaluate(truth, both, protocol="coco-segm")
    assert int(frame.sum()) == 464
    assert result.summary["APs"] == pytest.approx(2 / 3)
    assert repr(result.summary) == repr(one.summary)


@pytest.mark.parametrize("before", range(9))
def test_an_escaped_backslash_at_any_position_is_decoded(tmp_path: Path, before: int) -> None:
    """A difference of 44 is a backslash and 1; the runs before take one digit each."""
    lengths = [5] * (3 + before) + [5 + 44, 5, 5 + 88, 5 + 44] + [7] * 20
    wide = sum(lengths)
    counts = mask.frPyObjects({"counts": lengths, "size": [1, wide]}, 1, wide)["counts"].decode()
    assert counts.count("\\") >= 3
    row = {"image_id": 1, "category_id": 1, "score": 0.5}
    (tmp_path / "dt.json").write_text(
        json.dumps([row | {"segmentation": {"size": [1, wide], "counts": counts}}])
    )
    data = (tmp_path / "dt.json").read_bytes()
    truth = read_ground_truth(truth_file(tmp_path))
    masks = result_columns(data, truth, masks=True).masks
    assert masks is not None
    assert masks.runs.tolist() == lengths


def test_another_escape_is_no_digit(tmp_path: Path) -> None:
    """The letter of the escape is a digit, and the number that of the pixels."""
    truth = read_ground_truth(truth_file(tmp_path), masks=True)
    spoilt = {"size": [1, 18], "counts": "\b0"}
    with pytest.raises(InputError, match="counts holds a character that is no digit"):
        read_detections(result_file(tmp_path, {"segmentation": spoilt}), truth, masks=True)
