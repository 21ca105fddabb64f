"""Names of detections that differ from the ground truth's in form: Unicode, exports, folders."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import pytest

import detap
from detap import read_detections, read_ground_truth
from detap.errors import InputError
from detap.formats.stem_matching import by_stem
from detap.tables.detection import GroundTruth
from tests.cli.conftest import Run
from tests.coco import truth_of
from tests.formats.exports import write
from tests.formats.helpers import codes
from tests.formats.text_files import written as write_texts

NFC, NFD = (normalize(form, "é") for form in ("NFC", "NFD"))
UNICODE, EXPORTED = "names-in-unicode-form", "exported-names-matched"
BOX = [0, 0, 10, 10]


def coco_truth(folder: Path, files: Sequence[str], label: str = "dog") -> detap.GroundTruth:
    """Read COCO ground truth with an object of the label on each image."""
    ids = dict(enumerate(files, 5))
    document = truth_of([(n, 1, BOX) for n in ids], {1: label}, ids, size=(100, 100))
    path = write(folder / "gt.json", document)
    return detap.read_ground_truth(path)


def text_folder(folder: Path, rows: dict[str, str]) -> Path:
    return write_texts(folder / "dt", {f"{name}.txt": text for name, text in rows.items()})


def read(path: Path, truth: detap.GroundTruth) -> detap.Detections:
    """Read detections, class 0 of YOLO as the only class."""
    names = path.parent / "names.txt"
    names.write_text(f"{truth.classes[0]}\n")
    is_yolo = any(" 0.05 " in file.read_text() for file in path.rglob("*.txt"))
    options: dict[str, Any] = {"class_names": names} if is_yolo else {}
    if (path / "run").exists():  # too deep to detect the format
        options["format"] = "yolo" if is_yolo else "voc"
    return detap.read_detections(path, truth, **options)


def written(folder: Path, kind: str, images: Sequence[str], label: str = "dog") -> Path:
    """Write a true positive on each image."""
    if kind == "text":
        return text_folder(folder, dict.fromkeys(images, f"{label} 0.9 0 0 10 10"))
    if kind == "class files":
        rows = "\n".join(f"{name} 0.9 0 0 10 10" for name in images)
        return text_folder(folder, {f"comp4_det_test_{label}": rows})
    if kind == "yolo":
        return text_folder(folder, dict.fromkeys(images, "0 0.05 0.05 0.1 0.1 0.9"))
    if kind == "jsonl":
        boxes = {"category": [label], "bbox": [BOX], "score": [0.9]}
        lines = [json.dumps({"file_name": name, "objects": boxes}) for name in images]
        path = folder / "dt.jsonl"
        path.write_text("\n".join(lines))
        return path
    record = {"category_id": 1, "bbox": BOX, "score": 0.9}
    return write(folder / "dt.json", [{"image_id": name, **record} for name in images])


KINDS = ("text", "class files", "yolo", "jsonl", "coco")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("form", "other"), [(NFC, NFD), (NFD, NFC)], ids=["NFC", "NFD"])
def test_images_in_another_unicode_form(tmp_path: Path, kind: str, form: str, other: str) -> None:
    truth = coco_truth(tmp_path, [f"{form}1.jpg", "b.jpg"])
    detections = read(written(tmp_path, kind, [f"{other}1", "b"]), truth)
    assert UNICODE in codes(detections)
    assert sorted(detections.image.tolist()) == [0, 1]
    assert (detections.images, detections.classes) == (truth.images, truth.classes)
    assert detap.evaluate(truth, detections, protocol="coco").summary["AP"] == pytest.approx(1)


@pytest.mark.parametrize("kind", ["text", "class files", "jsonl"])
def test_classes_in_another_unicode_form(tmp_path: Path, kind: str) -> None:
    truth = coco_truth(tmp_path, ["a.jpg", "b.jpg"], f"V{NFD}lo")
    detections = read(written(tmp_path, kind, ["a", "b"], f"V{NFC}lo"), truth)
    assert UNICODE in codes(detections)
    assert "unknown-classes" not in codes(detections)
    assert detections.classes == truth.classes
    assert detap.evaluate(truth, detections, protocol="coco").summary["AP"] == pytest.approx(1)


@pytest.mark.filterwarnings("ignore::detap.DetapWarning")
def test_a_class_among_others_in_another_unicode_form(tmp_path: Path) -> None:
    """The file is valid without it, and the class would be unknown."""
    truth = detap.GroundTruth.from_arrays(
        image=["a", "a"], label=["dog", NFD], boxes=[BOX, [20, 20, 40, 40]]
    )
    rows = f"dog 0.9 0 0 10 10\n{NFC} 0.8 20 20 40 40\ncat 0.1 50 50 60 60"
    detections = detap.read_detections(text_folder(tmp_path, {"a": rows}), truth, format="voc")
    result = detap.evaluate(truth, detections, protocol="coco")
    assert result.summary["AP"] == pytest.approx(1)
    notes = {note.code for note in result.notes}
    assert UNICODE in notes
    assert "unknown-classes" not in notes


def test_arrays_in_another_unicode_form() -> None:
    boxes = [BOX, [20, 20, 40, 40]]
    truth = detap.GroundTruth.from_arrays(image=[NFD] * 2, label=[NFC] * 2, boxes=boxes)
    detections = detap.Detections.from_arrays(
        image=[NFC] * 2, label=[NFD] * 2, boxes=boxes, score=[0.9, 0.8]
    )
    result = detap.evaluate(truth, detections, "voc2012")
    assert result.summary["mAP"] == 1
    assert result.classes == (NFC,)
    assert UNICODE in {note.code for note in result.notes}


def test_listed_categories_in_another_unicode_form(tmp_path: Path) -> None:
    truth = coco_truth(tmp_path, ["a.jpg"], NFD)
    path = tmp_path / "dt.json"
    record = {"image_id": 5, "category_id": 7, "bbox": BOX, "score": 0.9}
    categories = [{"id": 7, "name": NFC}]
    path.write_text(json.dumps({"annotations": [record], "categories": categories}))
    assert read(path, truth).label.tolist() == [0]


@pytest.mark.parametrize("kind", KINDS)
def test_ambiguous_unicode_forms_are_refused(tmp_path: Path, kind: str) -> None:
    truth = coco_truth(tmp_path, [f"{NFC}.jpg"])
    path = written(tmp_path, kind, [NFC, NFD])
    with pytest.raises(InputError, match="is not in the ground truth"):
        read(path, truth)


def test_names_in_both_forms_in_both_inputs_stay_apart(tmp_path: Path) -> None:
    truth = coco_truth(tmp_path, [f"{NFC}.jpg", f"{NFD}.jpg"])
    detections = detap.read_detections(written(tmp_path, "text", [NFD, NFC]), truth)
    assert sorted(detections.image.tolist()) == [0, 1]
    assert UNICODE not in codes(detections)
    boxes = [BOX, [20, 20, 40, 40]]
    labels = detap.GroundTruth.from_arrays(image=["a"] * 2, label=[NFC, NFD], boxes=boxes)
    assert len(labels.classes) == 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("uploaded", ["ground truth", "detections"])
def test_uploaded_names_of_label_studio(tmp_path: Path, kind: str, uploaded: str) -> None:
    names = ["a", "b"]
    longer = ["0a1b2c3d-a", "deadbeef-b"]
    files, images = (longer, names) if uploaded == "ground truth" else (names, longer)
    truth = coco_truth(tmp_path, [f"{name}.jpg" for name in files])
    detections = read(written(tmp_path, kind, images), truth)
    assert codes(detections)[EXPORTED] == 2
    assert detections.image.tolist() == [0, 1]
    assert detap.evaluate(truth, detections, protocol="coco").summary["AP"] == pytest.approx(1)


def test_uploaded_names_with_folders_and_suffixes_in_results(tmp_path: Path) -> None:
    truth = coco_truth(tmp_path, ["a.jpg", "b.jpg"])
    names = ["images/0a1b2c3d-a.png", "images/deadbeef-b.png"]
    detections = detap.read_detections(written(tmp_path, "coco", names), truth)
    assert detections.image.tolist() == [0, 1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "images", [["0a1b2c3d-a", "deadbeef-a"], ["a", "deadbeef-a"]], ids=["twice", "also original"]
)
def test_ambiguous_uploaded_names_are_refused(tmp_path: Path, kind: str, images: list[str]) -> None:
    truth = coco_truth(tmp_path, ["a.jpg", "b.jpg"])
    with pytest.raises(InputError, match="deadbeef-a"):
        read(written(tmp_path, kind, images), truth)


# --- folders


@pytest.mark.parametrize("kind", ["text", "yolo"])
@pytest.mark.parametrize(
    ("above", "below"), [("", ""), ("", "run/"), ("frames/", "")], ids=["same", "below", "above"]
)
def test_detections_in_folders(tmp_path: Path, kind: str, above: str, below: str) -> None:
    files = [f"{above}{video}/0.jpg" for video in ("v1", "v2", "v3")]
    truth = coco_truth(tmp_path, files)
    path = written(tmp_path, kind, [f"{below}v3/0", f"{below}v1/0"])
    detections = read(path, truth)
    assert sorted(detections.image.tolist()) == [0, 2]
    # Two of three objects are found: precision 1 up to recall 0.66, 67 of 101 points.
    ap = detap.evaluate(truth, detections, protocol="coco").summary["AP"]
    assert ap == pytest.approx(67 / 101)


def test_ground_truth_in_folders(tmp_path: Path) -> None:
    names = ["v1/000", "v2/000", "v2/001"]
    labels = text_folder(tmp_path / "gt", dict.fromkeys(names, "dog 0 0 10 10"))
    detections = text_folder(tmp_path, dict.fromkeys(names, "dog 0.9 0 0 10 10"))
    assert detap.evaluate(labels, detections, "voc2012").summary["mAP"] == 1


def test_one_folder_of_several_in_detections(tmp_path: Path) -> None:
    """The stem is unique among the files, but not among the images."""
    truth = coco_truth(tmp_path, ["v1/0.jpg", "v2/0.jpg"])
    detections = detap.read_detections(written(tmp_path, "text", ["v2/0"]), truth)
    assert detections.image.tolist() == [1]


def test_an_image_of_another_folder_is_refused(tmp_path: Path) -> None:
    """Its stem is that of an image at the top, and of one in another folder."""
    for files in (["0.jpg", "v1/0.jpg"], ["v1/0.jpg", "v1/1.jpg", "v2/0.jpg"]):
        truth = coco_truth(tmp_path, files)
        path = written(tmp_path, "text", ["v1/0", "v2/1"])
        with pytest.raises(InputError, match=r"image '(v2/)?1' is not in the ground truth"):
            read(path, truth)


def test_lists_of_names_beside_folders(tmp_path: Path) -> None:
    truth = coco_truth(tmp_path, ["v1/0.jpg", "v2/0.jpg"])
    path = written(tmp_path, "yolo", ["v1/0", "v2/0"])
    (path / "classes.txt").write_text("dog\n")
    detections = detap.read_detections(path, truth, format="yolo")
    assert detections.image.tolist() == [0, 1]


def test_two_runs_in_folders_are_refused(tmp_path: Path) -> None:
    truth = coco_truth(tmp_path, ["a.jpg", "b.jpg"])
    path = written(tmp_path, "text", ["run1/a", "run2/a"])
    with pytest.raises(InputError, match="image 'run1/a' is not in the ground truth"):
        read(path, truth)


# --- annotation ids


def ids_by_image(folder: Path, first: int) -> Path:
    """Write two objects on each of two images, with ids from `first` in each."""
    coco_truth(folder, ["a.jpg", "b.jpg"])
    path = folder / "gt.json"
    document = json.loads(path.read_text())
    other = [{**record, "bbox": [50, 50, 10, 10]} for record in document["annotations"]]
    for number, records in enumerate((document["annotations"], other)):
        for record in records:
            record["id"] = first + number
    document["annotations"] += other
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("first", [0, 1])
def test_annotation_ids_that_restart_in_each_image(tmp_path: Path, first: int) -> None:
    truth = detap.read_ground_truth(ids_by_image(tmp_path, first))
    assert codes(truth) == {"annotation-ids-by-image": 2}
    assert len(truth) == 4
    assert not truth.zero_id.any()
    results = written(tmp_path, "coco", [])
    record = {"category_id": 1, "score": 0.9}
    boxes = [(5, BOX), (6, BOX), (5, [50, 50, 10, 10]), (6, [50, 50, 10, 10])]
    results.write_text(json.dumps([{"image_id": i, "bbox": b, **record} for i, b in boxes]))
    result = detap.evaluate(truth, detap.read_detections(results, truth), protocol="coco-strict")
    assert result.summary["AP"] == pytest.approx(1)


def test_identical_records_in_an_image_count_once(tmp_path: Path) -> None:
    path = ids_by_image(tmp_path, 1)
    document = json.loads(path.read_text())
    document["annotations"].append(document["annotations"][1])
    path.write_text(json.dumps(document))
    truth = detap.read_ground_truth(path)
    assert codes(truth) == {"annotation-ids-by-image": 2, "repeated-annotations": 1}
    assert len(truth) == 4


def test_ids_repeated_in_an_image_are_refused(tmp_path: Path) -> None:
    path = ids_by_image(tmp_path, 1)
    document = json.loads(path.read_text())
    document["annotations"][3]["id"] = 1
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"duplicate id 1 \(also at annotations\[1\]\)"):
        detap.read_ground_truth(path)


# --- stems of files


def truth_file(folder: Path, names: list[str]) -> Path:
    """Write COCO ground truth: a cat on each image, with ids unrelated to the files."""
    files = {70 - n: name for n, name in enumerate(names)}
    document = truth_of([(n, 9, BOX) for n in files], {3: "dog", 9: "cat"}, files, size=None)
    return write(folder / "instances.json", document)


def test_metrics_and_names_are_reported(tmp_path: Path) -> None:
    gt = read_ground_truth(truth_file(tmp_path, ["a.jpg", "b.jpg"]))
    dt = text_folder(tmp_path, {"b": "bird .5 0 0 9 9\ncat .9 0 0 10 10"})
    detections = read_detections(dt, gt)
    assert detections.images == gt.images == (69, 70)
    assert [detections.images[n] for n in detections.image.tolist()] == [69, 69]
    assert detections.class_ids == (3, 9, "bird")
    assert detections.label.tolist() == [2, 1]


def test_another_image_is_refused_by_its_stem(tmp_path: Path, detap: Run) -> None:
    gt = truth_file(tmp_path, ["a.jpg"])
    dt = text_folder(tmp_path, {"a": "cat .9 0 0 10 10", "70": "cat .9 0 0 10 10"})
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
    dt = text_folder(tmp_path, {"a": "cat .9 0 0 10 10"})
    said = detap("eval", "--gt", str(gt), "--dt", str(dt)).refused()
    assert "instances.json: several images have the file 'a.jpg'" in said
    with pytest.raises(InputError, match="give each image a unique file_name"):
        read_detections(dt, read_ground_truth(gt))
