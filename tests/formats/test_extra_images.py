"""Detections of images that the ground truth lacks: an error, or left out on request."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import detap
from tests.cli.conftest import Run
from tests.coco import truth_of
from tests.formats.text_files import written
from tests.raised import raised

# Two cats in images 1 and 2 (a and b). One is detected, the other is not: AP is the part of the 101
# recall levels up to 1/2. Images 3 and 4 (c and d) are not annotated.
BOX = (10, 20, 30, 40)
AP = 51 / 101
ROWS = [
    *(("a", BOX, 0.9), ("b", (100, 100, 140, 140), 0.8)),
    *(("c", BOX, 0.95), ("c", (50, 60, 70, 80), 0.7), ("d", BOX, 0.6)),
]
COUNTS = "(3 detections of 2 such images)"
REMEDY = 'or leave such detections out by --extra-images drop (extra_images="drop" in Python)'
NOTE = "detections of 2 images that the ground truth lacks are left out (3) [extra-images]"
JSON = ("--output-format", "json")
NUMBERS = {"a": 1, "b": 2, "c": 3, "d": 4}
WIDTH, HEIGHT = 640, 480


def xywh(box: tuple[int, ...]) -> list[int]:
    return [box[0], box[1], box[2] - box[0], box[3] - box[1]]


def normalized(box: tuple[int, ...]) -> list[float]:
    return [box[0] / WIDTH, box[1] / HEIGHT, box[2] / WIDTH, box[3] / HEIGHT]


def ground_truth(folder: Path) -> Path:
    files = {n: f"{name}.jpg" for name, n in NUMBERS.items() if n < 3}
    truth = truth_of([(n, 7, xywh(BOX)) for n in files], {7: "cat"}, files, size=(WIDTH, HEIGHT))
    (folder / "gt.json").write_text(json.dumps(truth))
    return folder / "gt.json"


class Case(NamedTuple):
    """Detections of a format and the options that read them."""

    write: Callable[[Path, list[Any]], Path]
    options: dict[str, Any]


def coco(folder: Path, rows: list[Any], *, stems: bool = False) -> Path:
    records = [
        {"image_id": image if stems else NUMBERS[image], "category_id": 7, "bbox": xywh(box)}
        | {"score": score}
        for image, box, score in rows
    ]
    (folder / "dt.json").write_text(json.dumps(records))
    return folder / "dt.json"


def json_lines(folder: Path, rows: list[Any]) -> Path:
    lines = {image: {"image_id": NUMBERS[image], "objects": []} for image, _, _ in rows}
    for image, box, score in rows:
        item = {"bbox": xywh(box), "category_id": 7, "score": score}
        lines[image]["objects"].append(item)  # type: ignore[attr-defined]
    (folder / "dt.jsonl").write_text("\n".join(map(json.dumps, lines.values())))
    return folder / "dt.jsonl"


def texts(folder: Path, lines: dict[str, list[str]]) -> Path:
    files = {f"{name}.txt": "\n".join(content) for name, content in lines.items()}
    return written(folder / "dt", files)


def class_files(folder: Path, rows: list[Any]) -> Path:
    lines = [f"{image} {score} {' '.join(map(str, box))}" for image, box, score in rows]
    return texts(folder, {"det_test_cat": lines})


def image_files(folder: Path, rows: list[Any]) -> Path:
    files: dict[str, list[str]] = {}
    for image, box, score in rows:
        files.setdefault(image, []).append(f"cat {score} {' '.join(map(str, box))}")
    return texts(folder, files)


def yolo(folder: Path, rows: list[Any]) -> Path:
    (folder / "names.txt").write_text("cat\n")
    files: dict[str, list[str]] = {}
    for image, box, score in rows:
        x1, y1, x2, y2 = normalized(box)
        centered = (x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1
        files.setdefault(image, []).append(f"0 {' '.join(map(str, centered))} {score}")
    return texts(folder, files)


def create_ml(folder: Path, rows: list[Any]) -> Path:
    images: dict[str, Any] = {
        image: {"image": f"{image}.jpg", "annotations": []} for image, *_ in rows
    }
    for image, (x1, y1, x2, y2), score in rows:
        center = {"x": (x1 + x2) / 2, "y": (y1 + y2) / 2, "width": x2 - x1, "height": y2 - y1}
        item = {"label": "cat", "coordinates": center, "confidence": score}
        images[image]["annotations"].append(item)
    (folder / "dt.json").write_text(json.dumps([*images.values()]))
    return folder / "dt.json"


def open_images(folder: Path, rows: list[Any]) -> Path:
    lines = ["ImageID,LabelName,Score,XMin,XMax,YMin,YMax"]
    for image, box, score in rows:
        x1, y1, x2, y2 = normalized(box)
        lines.append(f"{image},cat,{score},{x1!r},{x2!r},{y1!r},{y2!r}")
    (folder / "dt.csv").write_text("\n".join(lines) + "\n")
    return folder / "dt.csv"


def arrays(rows: list[Any]) -> detap.Detections:
    images, boxes, scores = zip(*rows, strict=True)
    labels = [7] * len(rows)
    numbers = [NUMBERS[image] for image in images]
    return detap.Detections.from_arrays(image=numbers, label=labels, boxes=boxes, score=scores)


def saved(folder: Path, rows: list[Any]) -> Path:
    arrays(rows).save(folder / "dt.npz")
    return folder / "dt.npz"


def parquet(folder: Path, rows: list[Any]) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    columns: dict[str, list[Any]] = {
        "image_id": [NUMBERS[image] for image, *_ in rows],
        "category_id": [7] * len(rows),
        "score": [score for *_, score in rows],
    }
    for at, name in enumerate(("x1", "y1", "x2", "y2")):
        columns[name] = [float(box[at]) for _, box, _ in rows]
    pq.write_table(pyarrow.table(columns), folder / "dt.parquet")
    return folder / "dt.parquet"


CASES = {
    "COCO": Case(coco, {}),
    "COCO, stems": Case(partial(coco, stems=True), {}),
    "JSON Lines": Case(json_lines, {"dt_boxes": "xywh"}),
    "class files": Case(class_files, {}),
    "image files": Case(image_files, {}),
    "YOLO": Case(yolo, {"dt_format": "yolo"}),
    "CreateML": Case(create_ml, {}),
    "Open Images": Case(open_images, {}),
    "saved": Case(saved, {}),
    "Parquet": Case(parquet, {}),
}


@pytest.fixture(params=list(CASES.values()), ids=list(CASES))
def case(request: pytest.FixtureRequest) -> Case:
    kind: Case = request.param
    return kind


def read(
    folder: Path, case: Case, rows: list[Any], **options: Any
) -> tuple[detap.GroundTruth, detap.Detections]:
    """Read ground truth and rows; the images of a YOLO folder are named by a list of classes."""
    given = dict(case.options)
    truth = detap.read_ground_truth(ground_truth(folder))
    path = case.write(folder, rows)
    if "dt_format" in given:
        given["format"] = given.pop("dt_format")
        given["dt_class_names"] = folder / "names.txt"
    return truth, detap.read_detections(path, truth, **given, **options)


def notes(result: Any) -> list[str]:
    return [str(note) for note in result.notes if note.code == "extra-images"]


def test_they_are_an_error_of_one_line_with_the_remedy(tmp_path: Path, case: Case) -> None:
    error = raised(detap.InputError, read, tmp_path, case, ROWS)
    [problem] = error.problems
    assert not error.omitted
    assert "is not in the ground truth" in str(problem)
    if case.write is not saved:
        assert COUNTS in problem.message
    assert problem.hint.endswith(REMEDY)


def test_the_remedy_leaves_them_out(tmp_path: Path, case: Case) -> None:
    truth, detections = read(tmp_path, case, ROWS, extra_images="drop")
    assert (len(detections), detections.images) == (2, truth.images)
    result = detap.evaluate(truth, detections)
    assert result.summary["AP"] == pytest.approx(AP)
    assert notes(result) == [NOTE]
    assert "|extra-images:drop|" in result.signature


def test_without_extra_images_nothing_is_noted(tmp_path: Path, case: Case) -> None:
    for options in ({}, {"extra_images": "drop"}, {"extra_images": "error"}):
        result = detap.evaluate(*read(tmp_path, case, ROWS[:2], **options))
        assert result.summary["AP"] == pytest.approx(AP)
        assert not notes(result)
        assert "extra" not in result.signature


def test_results_of_other_images_only_stay_an_error(tmp_path: Path, case: Case) -> None:
    error = raised(detap.InputError, read, tmp_path, case, ROWS[2:], extra_images="drop")
    assert "--extra-images" not in str(error) or case.write is saved


# --- the command line


CHOICES = [["--extra-images", "drop"], ["--images", "1,2"], ["--images", "1", "--images", "2"]]


@pytest.mark.parametrize("choice", CHOICES, ids=" ".join)
def test_options(tmp_path: Path, command: Run, choice: list[str]) -> None:
    paths = ground_truth(tmp_path), coco(tmp_path, ROWS)
    record = command("eval", *paths, *choice, *JSON).report()
    assert record["summary"]["AP"] == pytest.approx(AP)
    [note] = [note for note in record["notes"] if note["code"] == "extra-images"]
    assert (note["count"], note["severity"]) == (3, "info")
    assert "|extra-images:drop|" in record["signature"]
    reading = [source.get("reading") for source in record["inputs"]]
    assert reading == [None, {"extra_images": "drop"} if "drop" in choice else None]


@pytest.mark.parametrize("choice", [[], ["--images", "seen"], ["--as-is"]], ids=" ".join)
def test_others_stay_an_error(tmp_path: Path, command: Run, choice: list[str]) -> None:
    paths = map(str, (ground_truth(tmp_path), coco(tmp_path, ROWS)))
    said = command("eval", *paths, *choice).refused()
    assert said.count("\n") == 1
    assert f"[2]: image_id 3 is not in the ground truth {COUNTS}; use results for the same" in said
    assert said.endswith(f"{REMEDY}\n")


def test_several_inputs_of_which_one_has_extra_images_only(tmp_path: Path, command: Run) -> None:
    truth = ground_truth(tmp_path)
    parts = tmp_path / "parts"
    parts.mkdir()
    for number, rows in enumerate((ROWS[:2], ROWS[2:])):
        coco(tmp_path, rows).rename(parts / f"{number}.json")
    record = command("eval", truth, parts, "--extra-images", "drop", *JSON).report()
    assert record["summary"]["AP"] == pytest.approx(AP)
    assert [note["count"] for note in record["notes"] if note["code"] == "extra-images"] == [3]


def test_a_baseline_without_the_option_is_not_comparable(tmp_path: Path, command: Run) -> None:
    """The gate does not become weaker without a word."""
    truth, detections = ground_truth(tmp_path), coco(tmp_path, ROWS[:2])
    earlier = tmp_path / "earlier.json"
    assert command("eval", str(truth), str(detections), "-o", str(earlier)).status == 0
    coco(tmp_path, ROWS)
    gate = ["--baseline", str(earlier), "--max-drop", "0.1"]
    said = command("eval", str(truth), str(detections), "--extra-images", "drop", *gate).refused()
    assert "reading: --extra-images (baseline: not given; current: drop)" in said


@pytest.mark.parametrize("name", ["compare", "check", "report", "convert"])
def test_other_commands(tmp_path: Path, command: Run, name: str) -> None:
    truth, detections = map(str, (ground_truth(tmp_path), coco(tmp_path, ROWS)))
    arguments = {
        "compare": ["--gt", truth, detections, detections, "--resamples", "10"],
        "check": [truth, detections],
        "report": [truth, detections, "-o", str(tmp_path / "r.html"), "--images", "none"],
        "convert": [truth, detections, "--to", "voc", "-o", str(tmp_path / "voc")],
    }[name]
    assert REMEDY in command(name, *arguments).refused(shown=name == "check")
    ended = command(name, *arguments, "--extra-images", "drop").passed()
    assert NOTE in ended.err + ended.out


# --- Python


def test_paths(tmp_path: Path) -> None:
    paths = ground_truth(tmp_path), coco(tmp_path, ROWS)
    options: list[dict[str, Any]] = [{"extra_images": "drop"}, {"images": [1, 2]}]
    for option in options:
        result = detap.evaluate(*paths, **option)
        assert result.summary["AP"] == pytest.approx(AP)
        assert notes(result) == [NOTE]
    with pytest.raises(detap.UsageError, match="extra_images 'all' is unknown; use one of error"):
        detap.evaluate(*paths, extra_images="all")


def test_tables(tmp_path: Path) -> None:
    truth, detections = detap.read_ground_truth(ground_truth(tmp_path)), arrays(ROWS)
    error = raised(detap.InputError, detap.evaluate, truth, detections)
    assert "image 3 is not in the ground truth, nor are 1 others" in str(error)
    assert "to evaluate the other images only, pass images=ground_truth.images" in str(error)
    result = detap.evaluate(truth, detections, images=truth.images)
    assert result.summary["AP"] == pytest.approx(AP)
    assert notes(result) == [NOTE]
    assert detap.evaluate(truth, detections, images=np.array([1])).summary["AP"] == pytest.approx(1)
    _, selected = detap.select(truth, detections, images=truth.images)
    assert len(selected) == 2
    assert len(detections.reindex_like(truth, extra_images="drop")) == 2
    with pytest.raises(detap.InputError, match="image 3 is not in the ground truth"):
        detap.evaluate(truth, arrays(ROWS[2:]), images=[1, 2])


def test_masks_keypoints_and_classes_of_the_others(tmp_path: Path) -> None:
    """An unknown category of an extra image is not warned of; shapes stay with their rows."""
    truth = json.loads(ground_truth(tmp_path).read_text())
    square = [[10, 20, 30, 20, 30, 40, 10, 40]]
    for annotation in truth["annotations"]:
        annotation |= {"segmentation": square, "keypoints": [10, 20, 2, 30, 40, 2]}
    (tmp_path / "gt.json").write_text(json.dumps(truth))
    other = [[100, 100, 140, 100, 140, 140, 100, 140]]
    records = json.loads(coco(tmp_path, [*ROWS[2:], *ROWS[:2]]).read_text())
    for record, shape in zip(records, [square, other, other, square, other], strict=True):
        record |= {"segmentation": shape, "keypoints": [*shape[0][:2], 1, *shape[0][4:6], 1]}
    records[0]["category_id"] = 99
    (tmp_path / "dt.json").write_text(json.dumps(records))
    for protocol in ("coco", "coco-segm"):
        result = detap.evaluate(
            tmp_path / "gt.json", tmp_path / "dt.json", protocol, extra_images="drop"
        )
        assert result.summary["AP"] == pytest.approx(AP)
        assert "unknown-categories" not in [note.code for note in result.notes]
    table = detap.read_ground_truth(tmp_path / "gt.json", keypoints=True)
    detections = detap.read_detections(
        tmp_path / "dt.json", table, keypoints=True, extra_images="drop"
    )
    assert detections.keypoints is not None
    assert detections.keypoints.tolist() == [[[10, 20], [30, 40]], [[100, 100], [140, 140]]]


def test_an_image_of_another_unicode_form_is_not_extra(tmp_path: Path) -> None:
    names = {1: "ve\u0301lo", 2: "b"}
    truth = json.loads(ground_truth(tmp_path).read_text())
    for image in truth["images"]:
        image["file_name"] = f"{names[image['id']]}.jpg"
    (tmp_path / "gt.json").write_text(json.dumps(truth))
    composed = [("v\u00e9lo" if image == "a" else image, *row) for image, *row in ROWS]
    path = class_files(tmp_path, composed)
    result = detap.evaluate(tmp_path / "gt.json", path, "coco", extra_images="drop")
    assert result.summary["AP"] == pytest.approx(AP)
    assert notes(result) == [NOTE]


def test_records_are_located_in_the_file(tmp_path: Path) -> None:
    negative = ("a", (30, 20, 10, 40), 0.5)
    ground_truth(tmp_path)
    coco(tmp_path, [*ROWS[2:], *ROWS[:1], negative])
    with pytest.raises(detap.InputError, match=r"\[4\]: bbox has a negative width"):
        detap.evaluate(tmp_path / "gt.json", tmp_path / "dt.json", extra_images="drop")
