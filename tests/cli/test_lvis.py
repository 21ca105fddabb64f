"""LVIS on the command line: converted with its image lists, gated by frequency groups."""

import json
from pathlib import Path

import pytest

from detap.formats.coco.format import read_ground_truth
from tests.cli.conftest import Run, written

LVIS = {
    "images": [
        {"id": 7, "width": 20, "height": 20, "neg_category_ids": [3]},
        {"id": 2, "neg_category_ids": [], "not_exhaustive_category_ids": [1, 3]},
    ],
    "annotations": [{"id": 1, "image_id": 2, "category_id": 1, "bbox": [0, 0, 5, 5]}],
    "categories": [{"id": 1, "name": "a", "frequency": "f"}, {"id": 3, "name": "b"}],
}


def test_coco_keeps_the_lists_and_other_formats_report_the_loss(tmp_path: Path, detap: Run) -> None:
    path = tmp_path / "gt.json"
    path.write_text(json.dumps(LVIS), "utf-8")
    assert detap("convert", "--gt", path, "--to", "coco", "-o", tmp_path / "c").status == 0
    truth, again = read_ground_truth(path), read_ground_truth(tmp_path / "c" / "instances.json")
    assert again.groups == truth.groups == {1: "frequent"}
    assert {name: pairs.tolist() for name, pairs in again.listed.items()} == {
        "negative": [[1, 1]],
        "not_exhaustive": [[0, 0], [0, 1]],
    }
    said = detap("convert", "--gt", path, "--to", "voc", "-o", tmp_path / "v").err
    assert "class lists of images (LVIS, Open Images) not supported by voc (3)" in said
    assert "frequency groups of classes not supported by voc" in said


def test_gates_on_frequency_groups(tmp_path: Path, detap: Run) -> None:
    files, report = written(tmp_path, LVIS, []), tmp_path / "r.json"  # an IndexError elsewhere
    ended = detap("eval", *files, "--protocol", "lvis", "-o", report, "--fail-under", "APf=0.5")
    assert ended.status == 1
    assert "APf 0.0000, required >= 0.5" in ended.err
    detections = json.loads(report.read_text("utf-8"))
    assert (detections["summary"]["APf"], detections["summary"]["APr"]) == (0.0, None)
    assert "APf" not in detections["classes"][0]


def test_tidecv_is_rejected_where_images_list_classes(tmp_path: Path, detap: Run) -> None:
    """One TP; a higher score in an unverified image halves AP if it counts."""
    box = {"category_id": 1, "bbox": [0, 0, 5, 5]}
    detections = [{**box, "image_id": 7, "score": 0.9}, {**box, "image_id": 2, "score": 0.8}]
    command = ["eval", *written(tmp_path, LVIS, detections), "--protocol", "lvis"]
    said = detap(*command, "--errors", "tidecv").refused()
    assert said.strip() == (
        "Error: protocol lvis uses the class lists of images, which this analysis ignores; "
        "type the errors by the protocol: --errors, or evaluate every class: "
        "--verified all --not-exhaustive count"
    )
    every = ["--verified", "all", "--not-exhaustive", "count", "--errors", "tidecv"]
    for options, value in ((["--errors"], 1.0), (every, 0.5)):
        report = detap(*command, *options, "--output-format", "json").report()
        assert report["errors"]["AP"] == pytest.approx(value)
        assert report["summary"]["AP50"] == pytest.approx(value)


def test_class_agnostic_has_no_groups(tmp_path: Path, detap: Run) -> None:
    """The box is right and the class wrong: a match only if class-agnostic."""
    detections = [{"image_id": 2, "category_id": 3, "bbox": [0, 0, 5, 5], "score": 0.9}]
    files = written(tmp_path, LVIS, detections)
    command = ["eval", *files, "--class-agnostic", "--output-format", "json"]
    options = ["--verified", "all", "--not-exhaustive", "count"]
    for refused in (
        ["--protocol", "lvis", *options],
        ["--protocol", "coco", "--class-groups", "frequency"],
    ):
        said = detap(*command, *refused).refused()
        assert said == (
            "Error: class_agnostic requires --verified all --not-exhaustive count "
            "--class-groups none: the class lists and groups have no effect without classes\n"
        )
    ended = detap(*command, "--protocol", "lvis", *options, "--class-groups", "none")
    assert json.loads(ended.out)["summary"]["AP"] == pytest.approx(1.0)
