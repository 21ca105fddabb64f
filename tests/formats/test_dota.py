"""DOTA labels and Task1 results: valid and invalid input."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from detap import formats
from detap.analysis.errors import TYPES
from detap.errors import InputError, UsageError
from detap.evaluation.detection import evaluate
from detap.formats.catalogue import FORMATS
from detap.formats.detection import detect_format
from detap.formats.dota import (
    read_detections,
    read_ground_truth,
)
from detap.tables.concat import join_detections, join_ground_truths
from detap.tables.detection import Detections, GroundTruth
from tests.cli.conftest import Run
from tests.formats.text_files import written
from tests.raised import raised

HEAD = "imagesource:GoogleEarth\ngsd:0.146"
SHIP = "0 0 10 0 10 10 0 10"
DIAMOND = "100 95 105 100 100 105 95 100"
BOW_TIE = "0 0 10 10 10 0 0 10"


def labels_of(folder: Path, *lines: str) -> Path:
    return written(folder, {"P1.txt": "\n".join(lines)})


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    first = f"{HEAD}\n{SHIP} ship 0\n{DIAMOND} plane 1"
    return written(tmp_path / "data", {"labelTxt/P1.txt": first, "labelTxt/P2.txt": HEAD}) / (
        "labelTxt"
    )


@pytest.fixture
def truth(labels: Path) -> GroundTruth:
    return read_ground_truth(labels)


def results(folder: Path, **classes: str) -> Path:
    return written(folder / "task1", {f"Task1_{name}.txt": text for name, text in classes.items()})


def refused(read: Callable[[], Any]) -> str:
    error = raised(InputError, read)
    return "\n".join(str(problem) for problem in error.problems)


def test_a_label_is_a_quadrilateral_and_the_box_around_it(truth: GroundTruth) -> None:
    assert truth.images == ("P1", "P2")
    assert truth.classes == ("plane", "ship")
    assert truth.label.tolist() == [1, 0]
    assert np.asarray(truth.polygons).tolist() == [
        [0, 0, 10, 0, 10, 10, 0, 10],
        [100, 95, 105, 100, 100, 105, 95, 100],
    ]
    assert truth.corners.tolist() == [[0, 0, 10, 10], [95, 95, 105, 105]]
    assert truth.area.tolist() == [100, 50]
    assert truth.box_area.tolist() == [100, 100]
    assert truth.difficult.tolist() == [False, True]
    assert {note.code: note.count for note in truth.notes} == {"images-without-objects": 1}


def test_the_parent_folder_of_labels_is_accepted(labels: Path, truth: GroundTruth) -> None:
    around = read_ground_truth(labels.parent)
    assert_array_equal(around.polygons, truth.polygons)
    assert around.files[0].members == ("labelTxt/P1.txt", "labelTxt/P2.txt")


def test_a_result_is_a_quadrilateral_with_a_score(truth: GroundTruth, tmp_path: Path) -> None:
    folder = results(tmp_path, ship=f"P1 0.9 {SHIP}\nP2 .5 {DIAMOND}", plane="")
    detections = read_detections(folder, truth)
    assert detections.score.tolist() == [0.9, 0.5]
    assert detections.image.tolist() == [0, 1]
    assert detections.label.tolist() == [1, 1]
    assert np.asarray(detections.polygons)[1].tolist() == [100, 95, 105, 100, 100, 105, 95, 100]
    assert detections.corners[1].tolist() == [95, 95, 105, 105]
    assert not detections.notes


def test_difficult_and_the_header_are_optional(tmp_path: Path) -> None:
    truth = read_ground_truth(labels_of(tmp_path, f"{SHIP} ship"))
    assert truth.difficult.tolist() == [False]


def test_an_image_set_selects_images(labels: Path, tmp_path: Path) -> None:
    chosen = written(tmp_path, {"set.txt": "P1"})
    assert read_ground_truth(labels, image_set=chosen / "set.txt").images == ("P1",)


def test_rotated_boxes_of_five_numbers(tmp_path: Path) -> None:
    folder = labels_of(tmp_path / "gt", HEAD, "5 5 20 10 90 ship 0", "5 5 20 10 0 ship 1")
    truth = read_ground_truth(folder, angle_unit="degrees")
    assert np.asarray(truth.polygons)[0] == pytest.approx([10, -5, 10, 15, 0, 15, 0, -5])
    assert np.asarray(truth.polygons)[1].tolist() == [-5, 0, 15, 0, 15, 10, -5, 10]
    detections = results(tmp_path, ship=f"P1 .9 5 5 20 10 {np.pi / 2 - 4 * np.pi}")
    table = read_detections(detections, truth, angle_unit="radians")
    assert {note.code: note.count for note in table.notes}["angles-beyond-a-turn"] == 1
    assert np.asarray(table.polygons)[0] == pytest.approx(np.asarray(truth.polygons)[0])
    negative = labels_of(tmp_path / "negative", "5 5 -20 10 90 ship 0")
    assert "line 1: width or height is negative" in refused(
        lambda: read_ground_truth(negative, angle_unit="radians")
    )
    with pytest.raises(UsageError, match="angle_unit 'turns' is unknown; use one of degrees, rad"):
        formats.read_ground_truth(folder, format="dota", angle_unit="turns")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"{SHIP}", "has 8 columns, expected 9; write `x1 y1 x2 y2 x3 y3 x4 y4 class [difficult]`"),
        ("0 0 10 0 10 10 0 ship 0", "y4 'ship' is not a number"),
        (f"{SHIP} ship 0 1", "has 11 columns"),
        (f"{SHIP} ship 2", "difficult is '2', expected 0 or 1"),
        ("0 0 nan 0 10 10 0 10 ship 0", "x2 'nan' is not a finite number"),
        ("0 0 1,5 0 10 10 0 10 ship 0", "use a decimal point, not a comma"),
        ("0,0,10,0,10,10,0,10,ship,0", "separated by spaces"),
        ("5 5 20 10 90 ship 0", "rotated boxes of five numbers"),
        ("0 0 1e200 0 1e200 1e200 0 1e200 ship 0", "box area overflows"),
        (f"{SHIP} ship 0\ngsd:0.1", "line 2: has 1 column"),
    ],
)
def test_invalid_labels(tmp_path: Path, line: str, expected: str) -> None:
    text = refused(lambda: read_ground_truth(labels_of(tmp_path, line)))
    assert expected in text
    assert "P1.txt, line" in text or "P1.txt: line" in text


def test_an_area_of_infinity_by_zero_overflows(tmp_path: Path) -> None:
    """As any other; where invalid operations are errors, too."""
    far = labels_of(tmp_path, "-1e308 5 1e308 5 1e308 5 -1e308 5 ship 0")
    with np.errstate(all="raise"):
        assert "box area overflows" in refused(lambda: read_ground_truth(far))


def test_a_class_that_is_a_number_is_a_class(tmp_path: Path) -> None:
    truth = read_ground_truth(labels_of(tmp_path, f"{SHIP} 1 0", f"{DIAMOND} 0 1"))
    assert truth.classes == ("0", "1")
    assert truth.difficult.tolist() == [False, True]


def test_missing_labels(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "no file ends with .txt" in refused(lambda: read_ground_truth(tmp_path / "empty"))
    assert "file names are needed" in refused(lambda: read_ground_truth("-"))
    only_head = labels_of(tmp_path / "head", HEAD)
    assert "no objects in its 1 label files" in refused(lambda: read_ground_truth(only_head))
    binary = labels_of(tmp_path / "binary", "\x80\x04pickle")
    assert "P1.txt" in refused(lambda: read_ground_truth(binary))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("P1 5 5 20 10 .5", "rotated boxes of five numbers"),
        (f"P1 .9 {SHIP} 1", "has 11 columns"),
        ("P1 .9 5 5 20 10 .5", "rotated boxes of five numbers"),
        (f"P1 high {SHIP}", "score 'high' is not a number"),
        ("P1 .9 0 0 1e200 0 1e200 1e200 0 1e200", "box area overflows"),
    ],
)
def test_invalid_results(truth: GroundTruth, tmp_path: Path, line: str, expected: str) -> None:
    folder = results(tmp_path, ship=line)
    text = refused(lambda: read_detections(folder, truth))
    assert expected in text
    assert "Task1_ship.txt" in text


def test_two_files_of_a_class_are_refused(truth: GroundTruth, tmp_path: Path) -> None:
    folder = results(tmp_path, ship=f"P1 .9 {SHIP}")
    written(folder, {"Task2_ship.txt": f"P1 .9 {SHIP}"})
    text = refused(lambda: read_detections(folder, truth))
    assert "duplicate file of class 'ship' (also" in text


def test_notes(truth: GroundTruth, tmp_path: Path) -> None:
    flat = "0 0 10 0 5 0 7 0"
    folder = results(tmp_path, ship=f"P1 .9 {BOW_TIE}\nP1 .8 {flat}", boat=f"P1 .9 {SHIP}")
    notes = {note.code: note for note in read_detections(folder, truth).notes}
    assert notes["detections-crossed"].count == 1
    assert "corners are not in order" in notes["detections-crossed"].message
    assert notes["zero-area-detections"].count == 1
    assert notes["unknown-classes"].count == 1
    assert "plane" in notes["classes-without-file"].message
    odd = read_ground_truth(labels_of(tmp_path / "odd", f"{BOW_TIE} ship", f"{flat} ship"))
    codes = {note.code: note.severity for note in odd.notes}
    assert codes["ground-truth-crossed"] == "warning"
    assert codes["zero-area-ground-truth"] == "warning"


def test_tables_keep_their_quadrilaterals(truth: GroundTruth, tmp_path: Path) -> None:
    one = truth.select(np.array([1]))
    assert np.asarray(one.polygons).tolist() == [[100, 95, 105, 100, 100, 105, 95, 100]]
    other = read_ground_truth(labels_of(tmp_path / "more", f"{SHIP} ship 0"))
    renamed = GroundTruth(**{**vars(other), "images": ("P3",)})
    joined = join_ground_truths([truth, renamed])
    assert np.asarray(joined.polygons).shape == (3, 8)
    boxes = GroundTruth.from_arrays(image=["P4"], label=["ship"], boxes=[[0, 0, 1, 1]])
    assert join_ground_truths([truth, boxes]).polygons is None
    detections = read_detections(results(tmp_path, ship=f"P1 .9 {SHIP}"), truth)
    plain = Detections.from_arrays(image=["P2"], label=["ship"], boxes=[[0, 0, 1, 1]], score=[1])
    assert join_detections([detections, plain.reindex_like(truth)], truth).polygons is None


def test_the_format_is_detected_by_the_content_of_lines(labels: Path, tmp_path: Path) -> None:
    assert detect_format(labels).name == "dota"
    assert detect_format(labels.parent).name == "dota"
    assert FORMATS["dota"].fits(str(written(tmp_path / "nine columns", {"1.txt": f"{SHIP} ship"})))
    assert detect_format(None, results(tmp_path, ship=f"P1 .9 {SHIP}")).name == "dota"
    for text in (
        "car 1 2 3 4",
        "0 .1 .2 .3 .4",
        "0 " + ".5 " * 8,
        "0 .5 " + ".5 " * 8,
        "P1 0.9 1 2 3 4",
        "",
    ):
        other = written(tmp_path / "other", {"1.txt": text})
        assert not FORMATS["dota"].fits(str(other)), text
    assert not FORMATS["dota"].fits(str(tmp_path / "absent"))


def test_protocols_of_boxes_require_bounding_boxes(labels: Path, tmp_path: Path) -> None:
    # A square of which the diamond is half: as boxes they are the same.
    path = labels_of(tmp_path, f"{DIAMOND} plane 0")
    task1 = results(tmp_path, plane="P1 .9 95 95 105 95 105 105 95 105")
    truth = read_ground_truth(path)
    detections = read_detections(task1, truth)
    assert evaluate(truth, detections, "dota").true_positives[0] == 0
    for preset, hint in (("voc2012", "--iou-type polygon"), ("kitti", "--protocol dota")):
        assert str(raised(UsageError, evaluate, truth, detections, preset)) == (
            f"protocol {preset} compares boxes, but there are oriented boxes in the ground truth "
            f"and detections; use {hint} for their IoU, or --shapes bbox for their bounding boxes"
        )
    truth = read_ground_truth(path, shapes="bbox")
    detections = read_detections(task1, truth, shapes="bbox")
    assert truth.polygons is detections.polygons is None
    assert truth.area.tolist() == [100]
    for preset in ("coco", "voc2012", "dota"):
        assert evaluate(truth, detections, preset).true_positives[0] == 1
    with pytest.raises(UsageError, match="shapes 'box' is unknown; use one of reject, bbox"):
        formats.read_ground_truth(path, format="dota", shapes="box")
    with pytest.raises(UsageError, match="shapes 'box' is unknown"):
        formats.read_detections(task1, truth, format="dota", shapes="box")


def test_the_command_selects_the_preset(detap: Run, labels: Path, tmp_path: Path) -> None:
    detections = results(tmp_path, ship=f"P1 .9 {SHIP}", plane=f"P1 .9 {DIAMOND}")
    out = tmp_path / "report.json"
    given = ("--gt", str(labels), "--dt", str(detections))
    detap("eval", *given, "-o", str(out)).passed()
    report = json.loads(out.read_text())
    assert report["signature"].startswith("protocol:dota|")
    # The plane is difficult: its class has nothing to find, and 0 in the mean.
    assert report["summary"] == {"mAP": 0.5}
    for option in ("--errors", "--confusion", "--calibration", "--examples"):
        assert detap("eval", *given, option).status == 0
    said = detap("eval", *given, "--errors", "tidecv").refused()
    assert "has iou_type polygon, this requires bbox; type the errors" in said
    assert detap("eval", *given, "--errors").status == 0  # as it says
    detap("eval", *given, "--tie-range", "--curves", str(tmp_path / "curves.csv")).passed()
    for command in (["check", *given], ["check", "--dt", str(detections)]):
        assert detap(*command).status == 0


def test_the_protocol_search_includes_quadrilaterals(
    detap: Run, labels: Path, tmp_path: Path
) -> None:
    """The mean over quadrilaterals: ship without plane; plane without ship is 0."""
    detections = results(tmp_path, ship=f"P1 .9 {SHIP}", plane=f"P1 .9 {DIAMOND}")
    ended = detap("explain", "--gt", str(labels), "--dt", str(detections), "--value", "0.500")
    assert ended.out.startswith("dota gives mAP 0.5, equal in all 3 digits"), ended.out
    assert "dota" not in ended.out.partition("Not searched")[2]


def test_errors_use_the_iou_of_quadrilaterals(tmp_path: Path) -> None:
    """The square around a diamond has IoU one half, which is not above the threshold."""
    labels_of(tmp_path / "labels", "5 0 10 5 5 10 0 5 ship 0")
    truth = read_ground_truth(tmp_path / "labels")
    detections = read_detections(results(tmp_path, ship=f"P1 .9 {SHIP}"), truth)
    types = evaluate(truth, detections, "dota").errors()
    assert [TYPES[kind] for kind in types.kind] == ["localization"]
    assert types.similarity.tolist() == [0.5]
    truth = read_ground_truth(tmp_path / "labels", shapes="bbox")
    detections = read_detections(tmp_path / "task1", truth, shapes="bbox")
    assert evaluate(truth, detections, "voc2012").errors().kind.tolist() == [-1]
