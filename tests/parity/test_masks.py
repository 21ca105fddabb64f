"""coco-segm against pycocotools: published numbers, worked cases, and every array bit for bit."""

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

from detap.analysis.crosscheck import cross_check
from detap.core.masks import areas_and_boxes, runs_of
from detap.evaluation.detection import evaluate
from detap.evaluation.results import Result
from detap.formats import read_ground_truth
from detap.protocols import protocol
from tests.coco import read, saved
from tests.parity.compare import (
    assert_numbers,
    assert_same_arrays,
    assert_same_matches,
    cells_of_coco,
)

pytestmark = pytest.mark.filterwarnings("ignore::detap.errors.DetapWarning")


@pytest.fixture(scope="module")
def files(real_data: Path) -> dict[str, Path]:
    folder = real_data / "coco-val2014-100"
    return {
        "truth": folder / "instances_val2014_100.json",
        "masks": folder / "instances_val2014_fakesegm100_results.json",
        "boxes": folder / "instances_val2014_fakebbox100_results.json",
    }


@pytest.fixture(scope="module")
def expected(real_data: Path) -> dict[str, Any]:
    text = (real_data / "coco-val2014-100-masks" / "expected.json").read_text()
    values: dict[str, Any] = json.loads(text)
    return values


def scored(truth: Path, results: Path, protocol: Any = "coco-segm", **more: Any) -> Result:
    masks = not isinstance(protocol, str) or protocol != "coco"
    return evaluate(*read((truth, results), masks=masks), protocol, **more)


SEGM = "segm (pycocotools 2.0.11)"
WITH_BOXES = "segm, each row given a bbox = that of its mask (pycocotools 2.0.11)"
MASKS_AS_BOXES = "bbox of the same mask results (pycocotools 2.0.11)"
BOXES_AS_MASKS = "segm of the box results fakebbox100 (pycocotools 2.0.11: boxes rasterised)"


@pytest.mark.parametrize(
    "case",
    [
        (SEGM, "masks", "coco-segm"),
        (MASKS_AS_BOXES, "masks", "coco"),
        (BOXES_AS_MASKS, "boxes", "coco-segm"),
    ],
)
@pytest.mark.parametrize("match_table", [False, True])
def test_published_numbers(
    files: dict[str, Path],
    expected: dict[str, Any],
    case: tuple[str, str, str],
    match_table: bool,
) -> None:
    name, results, protocol = case
    result = scored(files["truth"], files[results], protocol, match_table=match_table)
    assert_numbers(result, expected[name]["stats"])
    ids = [str(identifier) for identifier in result.ground_truth.class_ids]
    values = np.mean(result.average_precision[:, :, 0], axis=0)
    ours = dict(zip(ids, values, strict=True))
    for category, value in expected[name]["per_category_AP"].items():
        required = np.nan if value is None else value
        assert ours[category] == pytest.approx(required, abs=1e-12, nan_ok=True)


def test_the_bbox_of_a_mask_decides_its_area_range(
    files: dict[str, Path], expected: dict[str, Any], tmp_path: Path
) -> None:
    rows = json.loads(files["masks"].read_text())
    for row in rows:
        row["bbox"] = mask.toBbox(row["segmentation"]).tolist()
    path = tmp_path / "dt.json"
    path.write_text(json.dumps(rows))
    result = scored(files["truth"], path)
    assert_numbers(result, expected[WITH_BOXES]["stats"])
    (note,) = [note for note in result.notes if note.code == "detection-area-of-box"]
    assert note.count == 141
    pixels = protocol("coco-segm").with_changes(detection_area="pixels")
    result = scored(files["truth"], path, pixels)
    assert_numbers(result, expected[SEGM]["stats"])
    assert "detection-area-of-box" not in {note.code for note in result.notes}


def test_bbox_or_mask_area_is_chosen_row_by_row(files: dict[str, Path], tmp_path: Path) -> None:
    """If only some rows have a bbox, pycocotools raises KeyError."""
    rows = json.loads(files["masks"].read_text())
    for row in rows[::2]:
        row["bbox"] = mask.toBbox(row["segmentation"]).tolist()
    path = tmp_path / "dt.json"
    path.write_text(json.dumps(rows))
    result = scored(files["truth"], path)
    assert result.summary["AP"] == 0.3195452758576433
    table = result.detections
    assert table.area is not None
    assert (table.area[::2] == table.box_area[::2]).all()
    assert table.area[1::2].tolist() == [mask.area(row["segmentation"]) for row in rows[1::2]]


def test_rle_of_ground_truth(files: dict[str, Path], real_data: Path) -> None:
    text = (real_data / "coco-val2014-100-masks" / "rle_of_ground_truth.json").read_text()
    table = read_ground_truth(files["truth"], masks=True)
    assert table.masks is not None
    areas, boxes = areas_and_boxes(table.masks.arrays)
    ids = [row["id"] for row in json.loads(files["truth"].read_text())["annotations"]]
    rows = {row[0]: row[1:] for row in json.loads(text)["rows"]}
    assert len(rows) == len(ids) == 839
    for number, identifier in enumerate(ids):
        size = table.masks.sizes[number].tolist()
        runs = {"size": size, "counts": runs_of(table.masks.arrays, number).tolist()}
        ours = mask.frPyObjects(runs, *size)["counts"].decode()
        assert [areas[number], ours, boxes[number].tolist()] == rows[identifier]


def cases() -> list[str]:
    return [
        "detection area from the mask",
        "detection area from bbox where the rows have one",
        "boxes rasterised",
        "two parts are a union",
        "no holes",
        "crowd",
        "shift by 2 pixels, mask",
    ]


@pytest.mark.parametrize("name", cases())
def test_worked_cases(real_data: Path, tmp_path: Path, name: str) -> None:
    listed = json.loads((real_data / "iou-types-cases" / "cases.json").read_text())
    known = {case["name"]: case for case in listed if case["protocol"] == "coco-segm"}
    assert [*known] == cases()
    case = known[name]
    files = saved(tmp_path, case["ground_truth"], case["detections"])
    assert_numbers(scored(*files), case["expected"])


def test_every_array_and_match_equals_pycocotools(files: dict[str, Path]) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        truths = COCO(str(files["truth"]))
        reference = COCOeval(truths, truths.loadRes(str(files["masks"])), "segm")
        reference.evaluate()
        reference.accumulate()
    result = scored(files["truth"], files["masks"], matches=True)
    assert_same_arrays(result, reference)
    annotations = [each["id"] for each in truths.dataset["annotations"]]
    assert_same_matches(result, cells_of_coco(reference), annotations)


def test_annotations_do_not_need_bbox(
    files: dict[str, Path], expected: dict[str, Any], tmp_path: Path
) -> None:
    record = json.loads(files["truth"].read_text())
    for row in record["annotations"]:
        del row["bbox"]
    (tmp_path / "gt.json").write_text(json.dumps(record))
    assert_numbers(scored(tmp_path / "gt.json", files["masks"]), expected[SEGM]["stats"])


@pytest.mark.parametrize("area", ["box", "pixels"])
@pytest.mark.parametrize("results", ["masks", "boxes"])
def test_cross_check(files: dict[str, Path], results: str, area: str) -> None:
    rules = protocol("coco-segm").with_changes(detection_area=area, iou_thresholds=(0.5, 0.75))
    check = cross_check(scored(files["truth"], files[results], rules))
    assert check.equal
    assert check.metrics["AP50"][0] > 0.3
