"""Output of inference tools: the results of one data set in each form.

The forms hold the results of pycocotools' example, whose AP is its own.
"""

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detap
from detap import GroundTruth, InputError
from detap.formats.detection import detect_format, matching_formats
from tests.cli.conftest import Run
from tests.coco import truth_of
from tests.formats.voc_files import write

TRUTH = "coco-val2014-100/instances_val2014_100.json"
AP = 0.504580699
TOOLS = ("tfcsv", "createml", "via", "datumaro", "supervisely")
FORMS = ("darknet.json", "mmdet/preds", "ultralytics", "hf.jsonl", "torchvision.json")
POSITIONS = (
    "info: class numbers are positions, from 0, in the classes of the ground truth (734) "
    "[classes-by-position]"
)


@pytest.mark.parametrize("name", FORMS)
def test_every_form_has_the_ap_of_the_results(
    command: Run, real_data: Path, formats3: Path, name: str
) -> None:
    path = formats3 / "inference" / name
    ended = command("eval", str(real_data / TRUTH), str(path), "--output-format", "json")
    assert ended.status == 0, ended.err
    assert json.loads(ended.out)["summary"]["AP"] == pytest.approx(AP, abs=1e-9)
    assert (POSITIONS in ended.err) == (name == "mmdet/preds")
    assert detect_format(None, path).name == "predictions"


def test_all_other_data_is_of_its_format(real_data: Path, formats3: Path) -> None:
    """No file or folder of the real data is taken for inference output or a labelling tool's."""
    own = str(formats3 / "inference")
    tools = ("other-layouts", "datumaro", "supervision")
    checked = 0
    for folder, _, files in os.walk(real_data):
        if not folder.startswith(own):
            of_tools = "formats2" in folder and any(part in folder for part in tools)
            for path in (folder, *(os.path.join(folder, name) for name in sorted(files)[:20])):
                others = {"predictions"} if of_tools else {"predictions", *TOOLS}
                assert others.isdisjoint(matching_formats(path)), path
                checked += 1
    assert checked > 500


# --- made by hand: two images, of 100 x 50 and 10 x 10, and the classes with ids 3 and 8

IMAGES = [
    {"id": 7, "file_name": "a.jpg", "width": 100, "height": 50},
    {"id": 9, "file_name": "b.jpg", "width": 10, "height": 10},
]
BOX = [10, 20, 30, 40]
ITEM = {"score": 0.5, "label": "dog", "box": {"xmin": 10, "ymin": 20, "xmax": 30, "ymax": 40}}
LISTS = {"labels": [1], "scores": [0.5], "bboxes": [BOX]}
ULTRALYTICS = {"name": "dog", "class": 1, "confidence": 0.5, "box": {"x1": 10, "y1": 20}}
CENTER = {"center_x": 0.2, "center_y": 0.6, "width": 0.2, "height": 0.4}
DARKNET = {"class_id": 1, "name": "dog", "relative_coordinates": CENTER, "confidence": 0.5}


def truth(folder: Path) -> GroundTruth:
    document = truth_of([(7, 8, [10, 20, 20, 20])], {3: "cat", 8: "dog"}, ()) | {"images": IMAGES}
    (folder / "gt.json").write_text(json.dumps(document))
    return detap.read_ground_truth(folder / "gt.json")


MADE: dict[str, tuple[str, Any]] = {
    "darknet": ("dt.json", [{"frame_id": 1, "filename": "x/a.jpg", "objects": [DARKNET]}]),
    "MMDetection": ("dt/a.json", LISTS),
    "MMDetection, a name": ("dt/a.json", LISTS | {"labels": ["dog"]}),
    "Ultralytics": (
        "dt/a.json",
        [ULTRALYTICS | {"box": {"x1": 10, "y1": 20, "x2": 30, "y2": 40}, "track_id": 4}],
    ),
    "Ultralytics, normalized": (
        "dt/a.json",
        [ULTRALYTICS | {"box": {"x1": 0.1, "y1": 0.4, "x2": 0.3, "y2": 0.8}}],
    ),
    "transformers": ("dt.jsonl", {"image": "a.jpg", "predictions": [ITEM]}),
    "transformers, a file an image": ("dt/a.json", [ITEM]),
    "torchvision": ("dt.json", {"7": {"boxes": [BOX], "labels": [8], "scores": [0.5]}}),
    "torchvision, by file": (
        "dt.json",
        {"a.jpg": {"boxes": [BOX], "labels": [8], "scores": [0.5]}},
    ),
    "torchvision, a list": (
        "dt.json",
        [{"image_id": 7, "boxes": [BOX], "labels": [8], "scores": [0.5]}],
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_one_box_in_each_form(tmp_path: Path, name: str) -> None:
    file, content = MADE[name]
    write(tmp_path, {file: json.dumps(content)})
    table = detap.read_detections(tmp_path / file.split("/")[0], truth(tmp_path))
    assert np.round(table.corners, 9).tolist() == [BOX]
    assert (table.image.tolist(), table.label.tolist()) == ([0], [1])
    assert (table.images, table.classes, table.score.tolist()) == ((7, 9), ("cat", "dog"), [0.5])
    notes = {note.code: note.count for note in table.notes}
    positions = {"classes-by-position": 1} if name == "MMDetection" else {}
    assert notes == {"images-without-file": 1} | positions


@pytest.mark.parametrize("name", ["MMDetection", "torchvision"])
def test_the_class_list_of_the_detector_decides(tmp_path: Path, name: str) -> None:
    file, content = MADE[name]
    names = "\n".join("abcdefgh") + "\ndog\n" if name == "torchvision" else "cow\ndog\n"
    write(tmp_path, {file: json.dumps(content), "names.txt": names})
    path = tmp_path / file.split("/")[0]
    table = detap.read_detections(path, truth(tmp_path), dt_class_names=tmp_path / "names.txt")
    assert (table.label.tolist(), [note.code for note in table.notes]) == (
        [1],
        ["images-without-file"],
    )


def test_empty_lists_and_files_without_a_detection(tmp_path: Path) -> None:
    write(tmp_path, {"dt/a.json": json.dumps([ITEM]), "dt/b.json": "[]", "c/a.json": "[]"})
    table = detap.read_detections(tmp_path / "dt", truth(tmp_path))
    assert (len(table), table.notes) == (1, ())
    empty: dict[str, list[Any]] = {name: [] for name in LISTS}
    write(tmp_path, {"none/a.json": json.dumps(empty), "none/b.json": json.dumps(empty)})
    table = detap.read_detections(tmp_path / "none", truth(tmp_path))
    assert [note.code for note in table.notes] == ["no-detections"]


def test_darknet_needs_sizes(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"dt.json": json.dumps(MADE["darknet"][1]), "s.csv": "image,width,height\na,100,50\n"},
    )
    table = GroundTruth.from_arrays(image=["a"], label=["dog"], boxes=[BOX])
    with pytest.raises(
        InputError, match=r"relative to images of unknown size: 'x/a'; pass --image-"
    ):
        detap.read_detections(tmp_path / "dt.json", table)
    read = detap.read_detections(tmp_path / "dt.json", table, image_sizes=tmp_path / "s.csv")
    assert np.round(read.corners, 9).tolist() == [BOX]


def test_a_nan_in_any_line(tmp_path: Path) -> None:
    line = {"image": "a.jpg", "predictions": [ITEM]}
    text = f"{json.dumps(line | {'time': math.nan})}\n{json.dumps(line | {'image': 'b.jpg'})}\n"
    write(tmp_path, {"dt.jsonl": text})
    with pytest.raises(InputError, match="contains NaN or Infinity"):
        detap.read_detections(tmp_path / "dt.jsonl", truth(tmp_path))


def in_lists(**changes: Any) -> tuple[str, Any]:
    return "dt/a.json", LISTS | changes


BAD: dict[str, tuple[str, Any, str]] = {
    "lists of different length": (
        *in_lists(labels=[1, 1]),
        "dt/a.json: has 1 bboxes, 2 labels, 1 scores; write one of each per detection",
    ),
    "no scores": (
        "dt/a.json",
        {"labels": [], "bboxes": []},
        "scores is missing; expected the JSON",
    ),
    "a score as text": (
        *in_lists(scores=["0.5"]),
        'bboxes[0]: score is "0.5", expected a number',
    ),
    "three numbers": (
        *in_lists(bboxes=[[1, 2, 3]]),
        "bboxes[0]: box is [1, 2, 3]; expected x1, y1",
    ),
    "a class beyond the list": (
        *in_lists(labels=[2]),
        "bboxes[0]: class 2 is not one of the 2 classes of the ground truth; pass --dt-class-names",
    ),
    "a class that is no integer": (
        *in_lists(labels=[1.5]),
        "class is 1.5; write its name or number",
    ),
    "an unknown image": (
        "dt/c.json",
        LISTS,
        "image 'c' is not in the ground truth; use results for",
    ),
    "an empty file": ("dt/a.json", b"", "dt/a.json: is empty"),
    "a list of numbers": ("dt.json", [1], "is [1]; expected the JSON of darknet, MMDetection"),
    "no center": (
        "dt.json",
        [{"filename": "a.jpg", "objects": [DARKNET | {"relative_coordinates": {}}]}],
        "[0].objects[0]: center_x is missing; use a finite number",
    ),
    "four corners": (
        "dt/a.json",
        [ULTRALYTICS | {"box": {f"{axis}{k}": k for axis in "xy" for k in range(1, 5)}}],
        "[0]: box has four corners; use a model that detects upright boxes",
    ),
    "an image twice": (
        "dt.json",
        [{"filename": "a.jpg", "objects": []}, {"filename": "a.jpg", "objects": []}],
        "[1]: duplicate image 'a.jpg' (also at [0]); keep one of them",
    ),
    "a line without a list": (
        "dt.jsonl",
        b'{"image": "a.jpg", "predictions": []}\n\n{"image": "b.jpg", "predictions": 3}\n',
        "dt.jsonl: line 3: predictions is 3; expected a list",
    ),
    "an item of a line": (
        "dt.jsonl",
        b'{"image": "a.jpg", "predictions": [{"label": "dog", "score": 1}]}\n',
        "dt.jsonl: line 1: predictions[0]: box is null; expected x1, y1, x2, y2",
    ),
    "a line that is cut off": (
        "dt.jsonl",
        b'{"image": "a.jpg", "predictions": []}\n{"image": "b.jpg", "predi',
        "dt.jsonl: line 2, column 20",
    ),
    "another class id": (
        "dt.json",
        {"7": {"boxes": [BOX], "labels": [4], "scores": [0.5]}},
        "no class in common with the ground truth (here: '4'; ground truth: 'cat', 'dog')",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_output_is_refused(tmp_path: Path, name: str) -> None:
    file, content, expected = BAD[name]
    write(tmp_path, {file: content if isinstance(content, bytes) else json.dumps(content)})
    with pytest.raises(InputError) as caught:
        detap.read_detections(tmp_path / file.split("/")[0], truth(tmp_path), format="predictions")
    assert expected in str(caught.value)


def test_labels_without_ids_in_the_ground_truth(tmp_path: Path) -> None:
    file, content = MADE["torchvision, by file"]
    write(tmp_path, {file: json.dumps(content)})
    table = GroundTruth.from_arrays(image=["a"], label=["dog"], boxes=[BOX])
    with pytest.raises(InputError, match="class is 8, but the ground truth has class names; pass"):
        detap.read_detections(tmp_path / file, table, format="predictions")


def test_predictions_are_not_ground_truth(tmp_path: Path, command: Run) -> None:
    write(tmp_path, {"dt/a.json": json.dumps(LISTS)})
    assert (
        "holds predictions of a model; give it as detections (--dt)"
        in command("eval", str(tmp_path / "dt"), str(tmp_path / "dt")).err
    )
    assert command("check", "--dt", str(tmp_path / "dt")).status == 0
