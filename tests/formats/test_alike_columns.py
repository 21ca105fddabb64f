"""Columns that look like others: track ids, whole floats, names with spaces, rotated boxes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detap
from detap.cli import main
from detap.errors import DetapWarning, InputError
from detap.io.limits import Limits
from tests.formats.helpers import png

BOX = "0.25 0.25 0.3 0.3"
CORNERS = "0.1 0.1 0.4 0.1 0.4 0.4 0.1 0.4"
TRIANGLE = "0.1 0.1 0.4 0.1 0.4 0.4"


def data_set(folder: Path, shape: str, rows: list[str], *, label: str = "0") -> Any:
    """Write one image with an object of a shape, and predictions; return both paths."""
    for name, lines in (("labels", [f"{label} {shape}"]), ("pred", rows)):
        (folder / name).mkdir()
        (folder / name / "a.txt").write_text("".join(f"{line}\n" for line in lines))
    (folder / "images").mkdir()
    (folder / "images" / "a.png").write_bytes(png(100, 100))
    (folder / "data.yaml").write_text("path: .\nval: images\nnames: [cat, dog]\n")
    return folder / "data.yaml", folder / "pred"


@pytest.mark.parametrize(
    ("shape", "task"), [(BOX, "detect"), (CORNERS, "obb"), (TRIANGLE, "segment")]
)
def test_ids_in_place_of_confidences(tmp_path: Path, shape: str, task: str) -> None:
    gt, dt = data_set(tmp_path, shape, [f"0 {shape} 1", f"0 {shape} 2"])
    truth = detap.read_ground_truth(gt, task=task)
    detections = detap.read_detections(dt, truth, task=task)
    assert not detections.has_scores
    (note,) = [note for note in detections.notes if note.code == "track-ids"]
    assert (note.count, note.severity) == (2, "warning")
    assert note.message == (
        "the last column of the detections is a track id, not a confidence: no AP; for AP, run "
        "the detector again with save_txt=True save_conf=True, into a new folder"
    )


def test_boxes_without_id_among_tracked_ones(tmp_path: Path) -> None:
    """Boxes of an image in which nothing is tracked have no id."""
    gt, dt = data_set(tmp_path, BOX, [f"0 {BOX}", f"0 {BOX} 3", f"0 {BOX}", f"0 {BOX} 4"])
    detections = detap.read_detections(dt, detap.read_ground_truth(gt), format="yolo")
    assert not detections.has_scores
    assert len(detections) == 4
    assert np.ptp(detections.corners, axis=0).tolist() == [0, 0, 0, 0]
    (count,) = [note.count for note in detections.notes if note.code == "track-ids"]
    assert count == 2


def test_one_confidence_among_rows_without(tmp_path: Path) -> None:
    gt, dt = data_set(tmp_path, BOX, [f"0 {BOX}", f"0 {BOX} 1", f"0 {BOX}"])
    with pytest.raises(InputError, match=r"score is missing; 2 of 3 records have none"):
        detap.read_detections(dt, detap.read_ground_truth(gt), format="yolo")


@pytest.mark.parametrize("values", [("1", "1"), ("1", "0.5"), ("0", "1"), ("1.5", "2")])
def test_confidences_are_not_ids(tmp_path: Path, values: tuple[str, str]) -> None:
    gt, dt = data_set(tmp_path, BOX, [f"0 {BOX} {value}" for value in values])
    truth = detap.read_ground_truth(gt)
    detections = detap.read_detections(dt, truth, format="yolo")
    assert detections.score.tolist() == [*map(float, values)]


@pytest.mark.parametrize(
    ("shape", "task"), [(BOX, "detect"), (CORNERS, "obb"), (TRIANGLE, "segment")]
)
def test_classes_as_whole_floats(tmp_path: Path, shape: str, task: str) -> None:
    gt, dt = data_set(tmp_path, shape, [f"1.0 {shape} 0.9", f"1. {shape} 0.8"], label="1.000")
    truth = detap.read_ground_truth(gt, task=task)
    detections = detap.read_detections(dt, truth, task=task)
    for table in (truth, detections):
        assert {table.classes[k] for k in table.label.tolist()} == {"dog"}


def test_files_of_savetxt(tmp_path: Path) -> None:
    """Its default format has 18 decimals and an exponent; the format is detected."""
    gt, dt = data_set(tmp_path, BOX, [])
    np.savetxt(tmp_path / "labels" / "a.txt", [[1, 0.25, 0.25, 0.3, 0.3]])
    np.savetxt(dt / "a.txt", [[1, 0.25, 0.25, 0.3, 0.3, 0.9]])
    result = detap.evaluate(gt, dt)
    assert result.summary["AP"] == pytest.approx(1)
    assert result.detections.score.tolist() == [0.9]


@pytest.mark.parametrize("word", ["1.5", "1.5e0", "-1.0", "1.0e99", "nan", "1e-1", "1.0.0"])
def test_other_numbers_are_no_class(tmp_path: Path, word: str) -> None:
    gt, dt = data_set(tmp_path, BOX, [f"{word} {BOX} 0.9"])
    truth = detap.read_ground_truth(gt)
    with pytest.raises(InputError, match=r"is not a whole number >= 0|which has 2 classes"):
        detap.read_detections(dt, truth, format="yolo")


@pytest.mark.parametrize("name", ["v1.0", "2.0", "r2."])
def test_names_that_end_like_floats(tmp_path: Path, name: str) -> None:
    _, dt = data_set(tmp_path, BOX, [f"{name} {BOX} 0.9"])
    (tmp_path / "gt").mkdir()
    (tmp_path / "gt" / "a.txt").write_text(f"{name} 10 10 40 40\n")
    truth = detap.read_ground_truth(tmp_path / "gt", format="voc")
    detections = detap.read_detections(dt, truth, format="yolo", image_size=(100, 100))
    assert detections.classes == (name,)


def test_detections_alone_with_classes_as_floats(tmp_path: Path) -> None:
    _, dt = data_set(tmp_path, BOX, [f"1.0 {BOX} 0.9", f"0.0 {BOX} 0.8"])
    out = tmp_path / "out.json"
    arguments = ["convert", "--dt", str(dt), "--format", "yolo", "--to", "coco", "-o", str(out)]
    assert main([*arguments, "--image-size", "100x100"]) == 0
    assert sorted(d["score"] for d in json.loads(out.read_text())["annotations"]) == [0.8, 0.9]


SPACED = "the class 'traffic light' has spaces, which separate the columns; write traffic_light in"


@pytest.mark.parametrize(
    ("truth", "detected"),
    [
        ("traffic light 1 1 9 9", "cat 0.9 1 1 9 9"),
        ("cat 1 1 9 9", "traffic light 0.9 1 1 9 9"),
        ("cat 1 1 9 9", "traffic light 1 1 9 9"),
    ],
)
def test_class_names_with_spaces(tmp_path: Path, truth: str, detected: str) -> None:
    for name, line in (("gt", truth), ("dt", detected)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(f"{line}\n")
    with pytest.raises(InputError, match=SPACED):
        detap.evaluate(tmp_path / "gt", tmp_path / "dt", "voc2012")
    # Both remedies of the message.
    (tmp_path / "names.txt").write_text("cat\ntraffic light\n")
    for name, line in (("gt", "1 1 1 9 9"), ("dt", "1 0.9 1 1 9 9")):
        (tmp_path / name / "a.txt").write_text(f"{line}\n")
    gt, names = tmp_path / "gt", tmp_path / "names.txt"
    ground_truth = detap.read_ground_truth(gt, class_names=names)
    assert ground_truth.classes == ("traffic light",)
    detections = detap.read_detections(tmp_path / "dt", ground_truth, class_names=names)
    assert detap.evaluate(ground_truth, detections, "voc2012").summary["mAP"] == 1
    for name, line in (("gt", "traffic_light 1 1 9 9"), ("dt", "traffic_light 0.9 1 1 9 9")):
        (tmp_path / name / "a.txt").write_text(f"{line}\n")
    assert detap.evaluate(tmp_path / "gt", tmp_path / "dt", "voc2012").summary["mAP"] == 1


@pytest.mark.parametrize("most", [1, 20])
def test_names_with_spaces_in_one_line(tmp_path: Path, most: int) -> None:
    for name in "ab":
        lines = "traffic light 1 1 9 9\nfire hydrant 1 1 9 9 difficult\ncat 1 1 9 9\n"
        (tmp_path / f"{name}.txt").write_text(lines)
    limits = Limits(problems=most)
    with pytest.raises(InputError, match=r"columns \(4 times, in several files\); write") as caught:
        detap.read_ground_truth(tmp_path, format="voc", limits=limits)
    (problem,) = caught.value.problems
    assert problem.location == "line 1"
    assert not caught.value.omitted


ROTATED = "<robndbox><cx>50</cx><cy>40</cy><w>20</w><h>10</h><angle>0.5</angle></robndbox>"


def test_rotated_boxes_of_rolabelimg(tmp_path: Path) -> None:
    """The remedy of the message, DOTA text, is read as the same rectangle."""
    (tmp_path / "a.xml").write_text(
        f"<annotation>{2 * f'<object><name>ship</name>{ROTATED}</object>'}</annotation>"
    )
    (tmp_path / "b.xml").write_text((tmp_path / "a.xml").read_text())
    message = r"a rotated box of roLabelImg, which VOC lacks \(4 times, in several files\)"
    with pytest.raises(InputError, match=message) as caught:
        detap.read_ground_truth(tmp_path, format="voc")
    assert len(caught.value.problems) == 1
    assert not caught.value.omitted
    (tmp_path / "dota").mkdir()
    (tmp_path / "dota" / "a.txt").write_text("50 40 20 10 0.5 ship 0\n")
    table = detap.read_ground_truth(tmp_path / "dota", format="dota", angle_unit="radians")
    cos, sin = np.cos(0.5), np.sin(0.5)  # as in roLabelImg, from the x axis towards the y axis
    upright = np.array([[-10, -5], [10, -5], [10, 5], [-10, 5]])
    corners = upright @ [[cos, sin], [-sin, cos]] + [50, 40]
    assert np.asarray(table.polygons).reshape(4, 2) == pytest.approx(corners)


def test_the_warning_of_made_up_scores_is_one(tmp_path: Path) -> None:
    gt, dt = data_set(tmp_path, BOX, [f"0 {BOX} 3", f"0 {BOX} 4"])
    with pytest.warns(DetapWarning, match="made-up-scores"):
        detap.evaluate(gt, dt, missing_scores="area")
