"""KITTI labels and results: valid and invalid input."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from numpy.testing import assert_array_equal

from detap.errors import InputError, UsageError
from detap.evaluation.detection import evaluate
from detap.formats.catalogue import FORMATS
from detap.formats.detection import detect_format
from detap.formats.kitti import read_detections, read_ground_truth
from detap.tables.concat import join_ground_truths
from detap.tables.detection import GroundTruth
from tests.cli.conftest import Run
from tests.formats.text_files import written

TAIL = "-1 -1 -1 -1000 -1000 -1000 -10"
CAR = f"Car 0.10 1 -1.57 10.5 20 60.5 70 {TAIL}"
REGION = f"DontCare -1 -1 -10 100 0 200 50 {TAIL}"
FOUND = f"Car -1 -1 -10 10 20 60 70 {TAIL} 0.9"


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    return written(tmp_path / "label_2", {"000001.txt": f"{CAR}\n{REGION}", "000002.txt": ""})


@pytest.fixture
def truth(labels: Path) -> GroundTruth:
    return read_ground_truth(labels)


def results(folder: Path, first: str = FOUND, second: str = "") -> Path:
    return written(folder / "results", {"000001.txt": first, "000002.txt": second})


def refused(read: Callable[[], Any]) -> list[str]:
    with pytest.raises(InputError) as caught:
        read()
    return [str(problem) for problem in caught.value.problems]


def test_a_label_becomes_a_box_with_extra_columns(truth: GroundTruth) -> None:
    assert truth.images == ("000001", "000002")
    assert truth.classes == ("Car", "DontCare")
    assert_array_equal(truth.corners, [[10.5, 20, 60.5, 70], [100, 0, 200, 50]])
    assert_array_equal(truth.difficult, [False, True])
    assert {name: column.tolist() for name, column in truth.extra.items()} == {
        "truncated": [0.1, -1],
        "occluded": [1, -1],
        "alpha": [-1.57, -10],
    }
    assert {note.code: note.count for note in truth.notes} == {"images-without-objects": 1}


def test_a_result_becomes_a_box_with_a_score(truth: GroundTruth, tmp_path: Path) -> None:
    detections = read_detections(results(tmp_path), truth)
    assert detections.score.tolist() == [0.9]
    assert detections.image.tolist() == [0]
    assert detections.classes == truth.classes
    assert_array_equal(detections.corners, [[10, 20, 60, 70]])


def test_types_ignore_case(tmp_path: Path) -> None:
    lines = [CAR, CAR.replace("Car", "car"), CAR.replace("Car", "bus"), CAR.replace("Car", "Bus")]
    truth = read_ground_truth(written(tmp_path / "a", {"1.txt": "\n".join(lines)}))
    assert [truth.classes[label] for label in truth.label] == ["Car", "Car", "Bus", "Bus"]
    shouted = "\n".join(FOUND.replace("Car", word) for word in ("CAR", "BUS", "DOG", "dog"))
    detections = read_detections(written(tmp_path / "b", {"1.txt": shouted}), truth)
    assert [detections.classes[label] for label in detections.label] == ["Car", "Bus", "DOG", "DOG"]


def test_parent_folders_are_accepted(tmp_path: Path) -> None:
    root = written(tmp_path, {"training/label_2/1.txt": CAR, "run/data/1.txt": FOUND})
    for path in (root, root / "training", root / "training/label_2"):
        truth = read_ground_truth(path)
        assert truth.images == ("1",)
    for path in (root / "run", root / "run/data"):
        assert len(read_detections(path, truth)) == 1


def test_an_image_set_selects_images(labels: Path, tmp_path: Path) -> None:
    chosen = tmp_path / "val.txt"
    chosen.write_text("000001\n")
    truth = read_ground_truth(labels, image_set=chosen)
    assert truth.images == ("000001",)
    detections = written(tmp_path / "results", {"000001.txt": FOUND})
    assert len(read_detections(detections, truth)) == 1


def test_several_folders_keep_the_extra_columns(tmp_path: Path) -> None:
    parts = [written(tmp_path / n, {f"{n}.txt": CAR.replace(" 1 ", f" {n} ")}) for n in "02"]
    joined = join_ground_truths([read_ground_truth(part) for part in parts])
    assert joined.extra["occluded"].tolist() == [0, 2]


def test_concatenating_with_tables_without_extra_columns_drops_them(tmp_path: Path) -> None:
    read = read_ground_truth(written(tmp_path, {"1.txt": CAR}))
    other = GroundTruth.from_arrays(image=["2"], label=["Car"], boxes=[[0.0, 0, 1, 1]])
    assert join_ground_truths([read, other]).extra == {}


# --- problems_of_run


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            CAR.rsplit(" ", 1)[0],
            "has 14 columns, expected 15; write `type truncated occluded",
        ),
        (f"{CAR} 0.9", "has 16 columns, expected 15: has a score (detections?); write"),
        (CAR.replace("Car", "Big car"), "has 16 columns, expected 15; write `type truncated"),
        (CAR.replace("0.10", "nan"), "truncated 'nan' is not a finite number; use a decimal"),
        (CAR.replace("0.10", "2"), "truncated is not from 0 to 1, or -1; correct the line"),
        (CAR.replace(" 1 ", " 4 ", 1), "occluded is not 0, 1, 2, 3 or -1; correct the line"),
        (CAR.replace("60.5 70", "1e300 1e300"), "box area overflows; correct the line"),
        (CAR.replace("-1000", "2_63", 1), "x '2_63' is not a number; use a decimal number"),
        (CAR.replace("Car", "C\x1bar"), "contains control character '\\x1b'; remove it"),
        (CAR.replace(" ", ","), "has 1 column, expected 15; write `type truncated"),
    ],
)
def test_an_invalid_label_is_named_with_file_and_line(
    tmp_path: Path, line: str, message: str
) -> None:
    folder = written(tmp_path / "labels", {"a.txt": f"{CAR}\n\n{line}", "b.txt": CAR})
    (problem,) = refused(lambda: read_ground_truth(folder))
    assert problem.startswith(f"{folder / 'a.txt'}: line 3: {message}")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (CAR, "score is missing; 1 of 2 records has none: give all records a score, or none"),
        (f"{FOUND} 7", "has 17 columns, expected 16; write `type truncated occluded"),
        (FOUND.replace("0.9", "inf"), "score 'inf' is not a finite number; use a decimal"),
        (FOUND.replace("60 70", "1e300 1e300"), "box area overflows"),
    ],
)
def test_an_invalid_result_is_named_with_file_and_line(
    truth: GroundTruth, tmp_path: Path, line: str, message: str
) -> None:
    folder = results(tmp_path, f"{FOUND}\n{line}")
    (problem,) = refused(lambda: read_detections(folder, truth))
    assert problem.startswith(f"{folder / '000001.txt'}: line 2: {message}")


def test_a_missing_results_file_is_an_error_and_an_empty_one_no_detections(
    truth: GroundTruth, tmp_path: Path
) -> None:
    folder = written(tmp_path / "results", {"000001.txt": FOUND})
    assert refused(lambda: read_detections(folder, truth)) == [
        f"{folder / '000002.txt'}: no such file or directory: image '000002' has no results; "
        f"write an empty file "
        "if nothing was detected, or exclude the image with --image-set"
    ]
    written(folder, {"000002.txt": ""})
    assert len(read_detections(folder, truth)) == 1
    others = written(tmp_path / "others", {"7.txt": FOUND})
    first = refused(lambda: read_detections(others, truth))[0]
    assert "no image in common with the ground truth (here: '7'; ground" in first


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.xml": "<a/>"}, "no labels: no file ends with .txt; use the folder with the files"),
        ({"1.txt": ""}, "no objects in its 1 label files"),
        ({"1.txt": '{"a": 1}'}, "looks like JSON"),
        ({"1.txt": "version https://git-lfs.github.com/spec/v1\noid"}, "Git LFS pointer"),
    ],
)
def test_folders_without_labels(tmp_path: Path, files: dict[str, str], message: str) -> None:
    folder = written(tmp_path / "x", files)
    assert message in refused(lambda: read_ground_truth(folder))[0]


def test_standard_input_is_refused(truth: GroundTruth) -> None:
    with pytest.raises(InputError, match="cannot provide KITTI's results: file names are needed"):
        read_detections("-", truth)


# --- telling it, and scoring it


def test_the_format_is_detected_by_the_content_of_lines(labels: Path, tmp_path: Path) -> None:
    assert detect_format(labels).name == "kitti"
    assert detect_format(labels.parent).name == "kitti"
    assert detect_format(None, results(tmp_path)).name == "kitti"
    for text in ("car 1 2 3 4", "0 .1 .2 .3 .4", "0 " + ".5 " * 14, "car red" + " 1" * 13, ""):
        other = written(tmp_path / "other", {"1.txt": text})
        assert not FORMATS["kitti"].fits(str(other))
    assert not FORMATS["kitti"].fits(str(tmp_path / "absent"))


def test_other_presets_read_boxes_and_difficult_flags(truth: GroundTruth, tmp_path: Path) -> None:
    detections = read_detections(results(tmp_path), truth)
    result = evaluate(truth, detections, "voc2012")
    assert result.true_positives.tolist() == [1, 0]
    assert result.ignored.tolist() == [0, 1]


def test_boxes_that_overflow_are_named_by_their_line(truth: GroundTruth, tmp_path: Path) -> None:
    far = FOUND.replace("10 20 60 70", "1e308 20 1e308 70")
    path = results(tmp_path, f"{FOUND}\n{far}")
    message = f"{path}/000001.txt: line 2: box area overflows; correct the line"
    assert refused(lambda: read_detections(path, truth, boxes="xywh")) == [message]
    assert len(read_detections(path, truth)) == 2


def test_the_command_selects_the_preset(detap: Run, labels: Path, tmp_path: Path) -> None:
    detections = results(tmp_path)
    out = tmp_path / "report.json"
    assert detap("eval", "--gt", str(labels), "--dt", str(detections), "-o", str(out)).status == 0
    report = json.loads(out.read_text())
    assert report["signature"].startswith("protocol:kitti|")
    assert list(report["summary"]) == ["mAP-moderate", "mAP-easy", "mAP-hard"]
    rows = {row["name"]: row for row in report["classes"]}
    assert (rows["Car"]["true_positives"], rows["Car"]["false_positives"]) == (1, 0)
    for option in ("--tie-range", "--errors", f"--curves={out}.csv"):
        said = detap("eval", "--gt", str(labels), "--dt", str(detections), option).refused()
        assert "protocol kitti uses matching kitti, which labels no detection" in said
    assert detap("check", "--gt", str(labels), "--dt", str(detections)).status == 0
    assert detap("check", "--dt", str(detections)).status == 0


def test_convert_reports_lost_data(detap: Run, labels: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "voc")
    ended = detap("convert", "--gt", str(labels), "--to", "voc", "-o", out).passed()
    assert "columns not supported by voc: truncated, occluded, alpha" in ended.err


def test_values_of_the_kit_from_its_files(real_data: Path) -> None:
    folder = real_data / "kitti-from-voc"
    expected = json.loads((folder / "expected.json").read_text("utf-8"))["numbers"]
    truth = read_ground_truth(folder / "label_2")
    result = evaluate(truth, read_detections(folder / "results", truth), "kitti")
    for what, numbers in expected.items():
        name, level = what.split(".")
        where = result.classes.index(name), result.area_ranges.index(level)
        values = result.average_precision[0][where]
        assert values == pytest.approx(numbers["AP_R40"], abs=1e-12), what


def test_images_have_no_attributes(labels: Path) -> None:
    with pytest.raises((InputError, UsageError), match="no image has an attribute 'weather'"):
        detect_format(labels).image_attribute(read_ground_truth(labels), "weather")
