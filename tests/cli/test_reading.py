"""Input options are recorded, compared with those of a baseline, and explained."""

import json
from pathlib import Path
from typing import Any

import pytest

from detap.formats import read_ground_truth
from detap.formats.catalogue import FORMATS, options
from tests.cli.conftest import Files, Run


@pytest.fixture
def yolo(cwd: Path) -> list[str]:
    """Write two images with a box each: one detected exactly, one shifted by half its width."""
    for folder in ("gt", "dt", "shifted"):
        Path(folder).mkdir()
    Path("names.txt").write_text("cat\n")
    for name, left in (("a", 0.3), ("b", 0.3)):
        Path(f"gt/{name}.txt").write_text(f"0 {left} 0.5 0.1 0.1\n")
        Path(f"dt/{name}.txt").write_text(f"0 {left} 0.5 0.1 0.1 0.9\n")
    Path("shifted/a.txt").write_text("0 0.3 0.5 0.1 0.1 0.9\n")
    Path("shifted/b.txt").write_text("0 0.35 0.5 0.1 0.1 0.9\n")
    return ["--format", "yolo", "--class-names", "names.txt", "--gt", "gt"]


def record_of(path: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(Path(path).read_text())
    return record


def test_a_baseline_of_another_image_size_is_rejected(detap: Run, yolo: list[str]) -> None:
    asked = ("eval", *yolo, "--dt", "dt")
    assert detap(*asked, "--image-size", "640x480", "-o", "base.json").status == 0
    (truth, *_), detections = record_of("base.json")["inputs"], record_of("base.json")["inputs"][-1]
    assert truth["reading"] == detections["reading"] == {"image_size": "640x480"}
    gate = ("--baseline", "base.json", "--max-drop", "0")
    assert detap(*asked, "--image-size", "640x480", *gate).status == 0
    said = detap(*asked, "--image-size", "1280x960", *gate).refused()
    assert "reading: --image-size (baseline: 640x480; current: 1280x960)" in said
    assert "pass --allow-mismatch" in said
    assert detap(*asked, "--image-size", "1280x960", *gate, "--allow-mismatch").status == 0


def test_python_records_the_same_options_as_the_command(yolo: list[str]) -> None:
    reading: dict[str, Any] = {"class_names": "names.txt", "image_size": (640, 480)}
    truth = read_ground_truth("gt", format="yolo", **reading)
    assert {file.reading for file in truth.files} == {(("image_size", "640x480"),)}


def test_as_is_is_recorded_and_not_a_difference(detap: Run, yolo: list[str]) -> None:
    asked = ("eval", *yolo, "--dt", "dt", "--image-size", "640x480")
    assert detap(*asked, "--as-is", "-o", "base.json").status == 0
    reading = record_of("base.json")["inputs"][0]["reading"]
    assert reading == {"as_is": "yes", "image_size": "640x480"}
    assert detap(*asked, "--baseline", "base.json", "--max-drop", "0").status == 0


def test_an_explicit_default_is_not_a_difference() -> None:
    shapes = next(option for option in options() if option.name == "shapes")
    assert (shapes.recorded("reject"), shapes.recorded("bbox")) == (None, "bbox")


def test_every_option_is_recorded_except_file_names() -> None:
    for option in options():
        assert (option.recorded("x") is None) == (option.value_kind != "text")
    assert {option for entry in FORMATS.values() for option in entry.options} == {*options()}


def test_explain_attributes_changes_to_input_options(detap: Run, cwd: Path) -> None:
    """The new detector finds one of two cats, half of AP; read as xywh, its corners match none."""
    for folder in ("Annotations", "old", "new"):
        Path(folder).mkdir()
    for image in (1, 2):
        Path(f"Annotations/{image}.xml").write_text(
            "<annotation><size><width>200</width><height>200</height><depth>3</depth></size>"
            "<object><name>cat</name><difficult>0</difficult><bndbox><xmin>60</xmin>"
            "<ymin>60</ymin><xmax>119</xmax><ymax>119</ymax></bndbox></object></annotation>"
        )
    for name, second in (("old", "60 60 119 119"), ("new", "1 1 20 20")):
        rows = f"1 0.9 60 60 119 119\n2 0.8 {second}\n"
        Path(f"{name}/comp4_det_test_cat.txt").write_text(rows)
    gt = ("--gt", "Annotations", "--format", "voc")
    new = (*gt, "--dt", "new", "--dt-boxes", "xywh", "--as-is")
    assert detap("eval", *gt, "--dt", "old", "-o", "a.json").status == 0
    assert detap("eval", *new, "-o", "b.json").status == 0
    assert [record_of(f"{name}.json")["summary"]["mAP"] for name in ("a", "b")] == [1.0, 0.0]
    causes = detap("explain", "a.json", "b.json", "--output-format", "json").report()["causes"]
    assert causes["reading"] == {
        "name": "reading",
        "differs": True,
        "first": "by default",
        "second": "--dt-boxes xywh",
    }
    explained = detap("explain", "a.json", "b.json", *new, "--output-format", "json").passed()
    portions = {row["name"]: row["change"] for row in json.loads(explained.out)["contributions"]}
    assert portions == {"reading": -0.5, "detections": -0.5}
    assert "different input options" in json.loads(explained.out)["conclusion"]


def test_input_options_without_effect_get_no_contribution(detap: Run, cwd: Path) -> None:
    """The new detector finds one of two objects: 51 of 101 levels for any image size."""
    for folder, images in (("gt", "ab"), ("old", "ab"), ("new", "a")):
        Path(folder).mkdir()
        for name in images:
            row = "0 .5 .5 .5 .5" + ("" if folder == "gt" else " .9")
            Path(f"{folder}/{name}.txt").write_text(f"{row}\n")
    for report, dt, size in (("a", "old", "400x400"), ("b", "new", "200x200")):
        asked = ("--gt", "gt", "--dt", dt, "--format", "yolo", "--image-size", size)
        assert detap("eval", *asked, "--protocol", "coco", "-o", f"{report}.json").status == 0
    record = detap("explain", "a.json", "b.json", *asked, "--output-format", "json").report()
    portions = {row["name"]: row["change"] for row in record["contributions"]}
    assert portions == {"reading": 0, "detections": pytest.approx(51 / 101 - 1)}
    assert record["conclusion"] == "Main cause: different detections (100% of the difference)"


@pytest.mark.parametrize("tight", [False, True])
def test_results_are_read_beside_the_ground_truth_in_a_thread_if_memory_allows(
    detap: Run, coco: Files, monkeypatch: pytest.MonkeyPatch, *, tight: bool
) -> None:
    monkeypatch.setattr("detap.formats.json.document.memory_is_tight", lambda: tight)
    assert detap(*coco.arguments).status == 0
    coco.dt.write_text('[{"image_id": 1}')
    said = detap(*coco.arguments).refused()
    assert f"Error: {coco.dt}: line 1, column 17: file is truncated" in said
    coco.gt.write_text('{"images": ')
    said = detap(*coco.arguments).refused()
    assert f"Error: {coco.gt}: line 1" in said
    assert str(coco.dt) not in said
