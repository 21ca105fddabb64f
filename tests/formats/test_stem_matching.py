"""Inputs of two formats: images match by file stem, classes by name."""

import json
from pathlib import Path

import numpy as np
import pytest

from detap import read_detections, read_ground_truth
from detap.errors import InputError
from detap.formats.stem_matching import by_stem, without_suffix
from detap.tables.detection import GroundTruth
from tests.cli.conftest import Run

BOX = {"bbox": [0, 0, 10, 10], "area": 100, "iscrowd": 0}


def truth_file(folder: Path, names: list[str]) -> Path:
    """Write COCO ground truth: a cat on each image, with ids unrelated to the files."""
    document = {
        "images": [{"id": 70 - n, "file_name": name} for n, name in enumerate(names)],
        "categories": [{"id": 3, "name": "dog"}, {"id": 9, "name": "cat"}],
        "annotations": [
            {"id": n + 1, "image_id": 70 - n, "category_id": 9, **BOX} for n in range(len(names))
        ],
    }
    path = folder / "instances.json"
    path.write_text(json.dumps(document))
    return path


def text_folder(folder: Path, files: dict[str, str]) -> Path:
    detections = folder / "dt"
    detections.mkdir()
    for name, text in files.items():
        (detections / f"{name}.txt").write_text(text)
    return detections


def test_text_files_of_images_against_coco(tmp_path: Path, detap: Run) -> None:
    gt = truth_file(tmp_path, ["val/a.jpg", "val/b.v2.PNG", "c"])
    # a is matched, b is displaced, c has none: one of three by the first of two, AP 1/3.
    dt = text_folder(tmp_path, {"a": "cat .9 0 0 10 10\n", "b.v2": "cat .8 50 50 60 60\n"})
    call = ("--gt", str(gt), "--dt", str(dt), "--protocol", "voc2012", "--no-inclusive-pixels")
    record = detap("eval", *call, "--output-format", "json").report()
    assert record["summary"]["mAP"] == pytest.approx(1 / 3, abs=1e-15)
    assert {entry["name"] for entry in record["classes"]} == {"cat", "dog"}


def test_metrics_and_names_are_reported(tmp_path: Path) -> None:
    gt = read_ground_truth(truth_file(tmp_path, ["a.jpg", "b.jpg"]))
    dt = text_folder(tmp_path, {"b": "bird .5 0 0 9 9\ncat .9 0 0 10 10\n"})
    detections = read_detections(dt, gt)
    assert detections.images == gt.images == (69, 70)
    assert [detections.images[n] for n in detections.image.tolist()] == [69, 69]
    assert detections.class_ids == (3, 9, "bird")
    assert detections.label.tolist() == [2, 1]


def test_another_image_is_refused_by_its_stem(tmp_path: Path, detap: Run) -> None:
    gt = truth_file(tmp_path, ["a.jpg"])
    dt = text_folder(tmp_path, {"a": "cat .9 0 0 10 10\n", "70": "cat .9 0 0 10 10\n"})
    said = detap("eval", "--gt", str(gt), "--dt", str(dt)).refused()
    assert "70.txt: line 1: image '70' is not in the ground truth" in said


@pytest.mark.parametrize(
    ("files", "stems"),
    [
        (["x/a.jpg", "x/b.jpg"], ("a", "b")),
        (["x\\a.jpg", "y\\b.jpg"], ("a", "b")),  # as Windows writes them
        (["x/a.jpg", "y/a.jpg"], ("x/a", "y/a")),  # folders count where they must
        (["a.jpg", "a.png"], ("a.jpg", "a.png")),
        (["a_jpg.rf.0b1c", "b"], ("a_jpg.rf.0b1c", "b")),  # no suffix of an image
    ],
)
def test_names_of_images(files: list[str], stems: tuple[str, ...]) -> None:
    truth = GroundTruth.from_arrays(image=[1], label=["k"], boxes=np.ones((1, 4)), images=[1, 2])
    assert by_stem(truth, {1: files[0], 2: files[1]}).images == stems


def test_images_of_one_file_are_ambiguous(tmp_path: Path, detap: Run) -> None:
    gt = truth_file(tmp_path, ["a.jpg", "a.jpg"])
    dt = text_folder(tmp_path, {"a": "cat .9 0 0 10 10\n"})
    said = detap("eval", "--gt", str(gt), "--dt", str(dt)).refused()
    assert "instances.json: several images have the file 'a.jpg'" in said
    with pytest.raises(InputError, match="give each image a unique file_name"):
        detap_read(gt, dt)


def detap_read(gt: Path, dt: Path) -> None:
    read_detections(dt, read_ground_truth(gt))


def test_only_image_suffixes_are_removed() -> None:
    assert [without_suffix(n) for n in ("a.JPEG", "a.tif", "a.b", "a")] == ["a", "a", "a.b", "a"]
