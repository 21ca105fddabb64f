"""Polygon IoU of files without polygons is rejected; the hint leads to the right value."""

import json
from pathlib import Path

import pytest

import detap
from detap.errors import UsageError
from tests.cli.conftest import Run, written
from tests.cli.conftest import detap as command_fixture
from tests.coco import results_of, truth_of
from tests.formats.voc_files import write

command = command_fixture

SQUARE = [20, 20, 80, 20, 80, 80, 20, 80]
DIAMOND = [50, 20, 80, 50, 50, 80, 20, 50]


def files(folder: Path) -> tuple[str, str]:
    """Write a square as ground truth and the diamond in it as a detection, as COCO files."""
    rows = [(1, 1, [20, 20, 60, 60])]
    truth, detections = truth_of(rows, {1: "thing"}, [1], size=(100, 100)), results_of(rows)
    truth["annotations"][0]["segmentation"] = [SQUARE]
    detections[0]["segmentation"] = [DIAMOND]
    files = written(folder, truth, detections)
    return files[1], files[3]


@pytest.mark.parametrize("asked", [("--iou-type", "polygon"), ("--protocol", "dota")])
def test_a_diamond_in_a_square_of_coco_files(
    asked: tuple[str, str], command: Run, tmp_path: Path
) -> None:
    """Their IoU is .5; at 97fee23 they matched at .6, as boxes."""
    truth, dt = files(tmp_path)
    words = ("eval", "--gt", truth, "--dt", dt, "--output-format", "json")
    said = command(*words, *asked).refused()
    for hint in ("--iou-type bbox", "--protocol coco-segm"):
        assert hint in said
    # Pixels: an overlap of .5 reaches the first of ten thresholds alone.
    masks = json.loads(command(*words, "--protocol", "coco-segm").out)
    assert masks["summary"]["AP"] == pytest.approx(0.1)
    boxes = json.loads(command(*words, "--iou-type", "bbox").out)
    assert boxes["summary"]["AP"] == pytest.approx(1)
    table = detap.read_ground_truth(truth)
    detections = detap.read_detections(dt, table)
    protocol = detap.protocol("coco").with_changes(iou_type="polygon")
    with pytest.raises(UsageError, match="COCO files are read as boxes or masks"):
        detap.evaluate(table, detections, protocol=protocol)


def test_coco_results_for_quadrilaterals(tmp_path: Path) -> None:
    _, detections = files(tmp_path)
    write(tmp_path, {"labelTxt/a.txt": " ".join(map(str, DIAMOND)) + " thing 0\n"})
    truth = detap.read_ground_truth(tmp_path / "labelTxt")
    (tmp_path / "names.txt").write_text("thing\n")
    record = {"image_id": "a", "category_id": 1, "bbox": [20, 20, 60, 60], "score": 0.9}
    for segmentation, refused in (({"segmentation": [SQUARE]}, True), ({}, False)):
        Path(detections).write_text(json.dumps([record | segmentation]))
        table = detap.read_detections(detections, truth, class_names=tmp_path / "names.txt")
        if refused:
            with pytest.raises(UsageError, match="1 segmentations of the detections are replaced"):
                detap.evaluate(truth, table, protocol="dota")
        else:
            assert (
                detap.evaluate(truth, table, protocol="dota").summary["mAP"] == 0
            )  # .5, not above
