"""Names that an export, an upload, a folder or the Unicode form changed."""

import json
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import pytest

import detap
from detap.errors import InputError

BOXES = [[10, 10, 40, 40], [50, 10, 80, 40]]
VELO = {form: normalize(form, "Vélo") for form in ("NFC", "NFD")}
OTHER = {"NFC": "NFD", "NFD": "NFC"}


def coco(images: list[str], label: str = "cat") -> str:
    """Return ground truth with the same two objects in each image."""
    return json.dumps(
        {
            "images": [
                {"id": n, "file_name": name, "width": 100, "height": 100}
                for n, name in enumerate(images, 1)
            ],
            "annotations": [
                {"id": 2 * n + k, "image_id": n, "category_id": 1, "bbox": [x, y, w - x, h - y]}
                for n in range(1, len(images) + 1)
                for k, (x, y, w, h) in enumerate(BOXES)
            ],
            "categories": [{"id": 1, "name": label}],
        }
    )


def write_text(folder: Path, names: list[str], label: str = "cat", score: str = " 0.9") -> Path:
    """Write a text file of both boxes for each name."""
    for name in names:
        path = folder / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = (" ".join(map(str, box)) for box in BOXES)
        path.write_text("".join(f"{label}{score} {row}\n" for row in rows), "utf-8")
    return folder


def assert_perfect(result: detap.Result, *codes: str) -> None:
    assert next(iter(result.summary.values())) == pytest.approx(1)
    assert {*codes} <= {note.code for note in result.notes}


@pytest.mark.parametrize("form", OTHER)
def test_images_in_another_unicode_form(tmp_path: Path, form: str) -> None:
    ours, theirs = VELO[form], VELO[OTHER[form]]
    assert ours != theirs
    (tmp_path / "gt.json").write_text(coco([f"{ours}.jpg", "b.jpg"]), "utf-8")
    results = [
        {"image_id": name, "category_id": 1, "bbox": [x, y, w - x, h - y], "score": 0.9}
        for name in (f"{theirs}.jpg", "b.jpg")
        for x, y, w, h in BOXES
    ]
    (tmp_path / "dt.json").write_text(json.dumps(results))
    assert_perfect(
        detap.evaluate(tmp_path / "gt.json", tmp_path / "dt.json"), "names-in-unicode-form"
    )


@pytest.mark.parametrize("form", OTHER)
def test_classes_in_another_unicode_form(tmp_path: Path, form: str) -> None:
    write_text(tmp_path / "gt", ["a"], VELO[form], "")
    write_text(tmp_path / "dt", ["a"], VELO[OTHER[form]])
    result = detap.evaluate(tmp_path / "gt", tmp_path / "dt", "voc2012")
    assert_perfect(result, "names-in-unicode-form")
    assert result.classes == (VELO[form],)
    assert "unknown-classes" not in {note.code for note in result.notes}


def test_one_class_of_two_in_another_form(tmp_path: Path) -> None:
    write_text(tmp_path / "gt", ["a"], VELO["NFD"], "")
    write_text(tmp_path / "gt", ["b"], "dog", "")
    write_text(tmp_path / "dt", ["a"], VELO["NFC"])
    write_text(tmp_path / "dt", ["b"], "dog")
    assert_perfect(detap.evaluate(tmp_path / "gt", tmp_path / "dt", "voc2012"))


def test_arrays_in_another_form() -> None:
    truth = detap.GroundTruth.from_arrays(
        image=[VELO["NFD"]] * 2, label=[VELO["NFC"]] * 2, boxes=BOXES
    )
    detections = detap.Detections.from_arrays(
        image=[VELO["NFC"]] * 2, label=[VELO["NFD"]] * 2, boxes=BOXES, score=[0.9, 0.8]
    )
    result = detap.evaluate(truth, detections, "voc2012")
    assert_perfect(result, "names-in-unicode-form")
    assert result.classes == (VELO["NFC"],)


def test_both_forms_in_the_ground_truth_stay_apart() -> None:
    truth = detap.GroundTruth.from_arrays(image=["a"] * 2, label=[*VELO.values()], boxes=BOXES)
    detections = detap.Detections.from_arrays(
        image=["a"] * 2, label=[*VELO.values()], boxes=BOXES, score=[0.9, 0.8]
    )
    result = detap.evaluate(truth, detections, "voc2012")
    assert len(result.classes) == 2
    assert "names-in-unicode-form" not in {note.code for note in result.notes}


@pytest.mark.parametrize("uploaded", ["gt", "dt"])
def test_names_of_label_studio_in_either_input(tmp_path: Path, uploaded: str) -> None:
    names = {"gt": ["a", "b"], "dt": ["a", "b"]}
    names[uploaded] = ["0123abcd-a", "89ab0123-b"]
    (tmp_path / "gt.json").write_text(coco([f"{name}.jpg" for name in names["gt"]]))
    write_text(tmp_path / "dt", names["dt"])
    result = detap.evaluate(tmp_path / "gt.json", tmp_path / "dt", "coco")
    assert_perfect(result, "exported-names-matched")


def test_two_uploads_of_one_image_are_not_matched(tmp_path: Path) -> None:
    (tmp_path / "gt.json").write_text(coco(["a.jpg"]))
    write_text(tmp_path / "dt", ["0123abcd-a", "89ab0123-a"])
    with pytest.raises(InputError, match="no image in common with the ground truth"):
        detap.evaluate(tmp_path / "gt.json", tmp_path / "dt", "coco")


VIDEOS = ["v1/000", "v2/000", "v2/001"]


def test_text_in_folders_of_videos(tmp_path: Path) -> None:
    (tmp_path / "gt.json").write_text(coco([f"{name}.jpg" for name in VIDEOS]))
    write_text(tmp_path / "dt", VIDEOS)
    assert_perfect(detap.evaluate(tmp_path / "gt.json", tmp_path / "dt", "coco"))


def test_folders_of_some_videos(tmp_path: Path) -> None:
    """The stems of the detections are unique, those of the ground truth are not."""
    (tmp_path / "gt.json").write_text(coco([f"{name}.jpg" for name in VIDEOS]))
    write_text(tmp_path / "dt", VIDEOS[1:])
    result = detap.evaluate(tmp_path / "gt.json", tmp_path / "dt", "coco")
    assert result.true_positives.tolist() == [4]


def test_ground_truth_in_folders_of_videos(tmp_path: Path) -> None:
    write_text(tmp_path / "gt", VIDEOS, score="")
    write_text(tmp_path / "dt", VIDEOS)
    assert_perfect(detap.evaluate(tmp_path / "gt", tmp_path / "dt", "voc2012"))


def test_yolo_in_folders_of_videos(tmp_path: Path) -> None:
    (tmp_path / "gt.json").write_text(coco([f"{name}.jpg" for name in VIDEOS]))
    for name in VIDEOS:
        path = tmp_path / "dt" / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("0 0.25 0.25 0.3 0.3 0.9\n0 0.65 0.25 0.3 0.3 0.8\n")
    (tmp_path / "names.txt").write_text("cat\n")
    result = detap.evaluate(
        tmp_path / "gt.json",
        tmp_path / "dt",
        "coco",
        class_names=str(tmp_path / "names.txt"),
    )
    assert_perfect(result)


def annotations(ids: list[int], images: list[int]) -> Any:
    truth = json.loads(coco(["a.jpg", "b.jpg"]))
    for row, identifier, image in zip(truth["annotations"], ids, images, strict=True):
        row |= {"id": identifier, "image_id": image}
    return truth


def test_annotation_ids_of_each_image(tmp_path: Path) -> None:
    path = tmp_path / "gt.json"
    path.write_text(json.dumps(annotations([1, 2, 1, 2], [1, 1, 2, 2])))
    truth = detap.read_ground_truth(path)
    assert len(truth) == 4
    (note,) = [note for note in truth.notes if note.code == "annotation-ids-by-image"]
    assert (note.count, note.severity) == (2, "warning")


def test_an_id_twice_in_one_image_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "gt.json"
    path.write_text(json.dumps(annotations([1, 2, 1, 1], [1, 1, 2, 2])))
    with pytest.raises(InputError, match=r"annotations\[3\] \(id 1\): duplicate id 1 \(also at"):
        detap.read_ground_truth(path)


FOLDERS: dict[str, tuple[str, str, str]] = {
    "unicode-form-of-names": ("gt.json", "dt.json", "names-in-unicode-form"),
    "label-studio-uploaded-names": ("gt.json", "dt", "exported-names-matched"),
    "detections-in-folders": ("gt.json", "dt", "detections-beyond-image"),
    "annotation-ids-by-image": ("gt.json", "dt.json", "annotation-ids-by-image"),
}


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.filterwarnings("ignore::detap.DetapWarning")
def test_public_reports(real_data: Path, folder: str) -> None:
    gt, dt, code = FOLDERS[folder]
    path = real_data / "reports4" / folder
    result = detap.evaluate(path / gt, path / dt, "coco")
    assert result.summary["AP"] == pytest.approx(0.451418, abs=1e-6)
    assert code in {note.code for note in result.notes}
    assert np.isfinite(result.summary["AP50"])
