"""Datumaro's JSON: valid and invalid input."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detap
from detap.errors import InputError, UsageError
from detap.formats.detection import detect_format
from tests.formats.exports import Bad, changed, write


def box(label: int, *numbers: float, **more: Any) -> dict[str, Any]:
    return {"id": 1, "type": "bbox", "label_id": label, "bbox": [*numbers], "attributes": more}


BOXES = [box(1, 1, 2, 10.5, 20, rotation=0.0), box(2, 20, 5, 10, 10, occluded=False)]
LABELS: list[dict[str, Any]] = [
    {"name": name, "parent": "", "attributes": []} for name in ("cow", "dog", "cat")
]
TRUTH: dict[str, Any] = {
    "info": {},
    "categories": {"label": {"labels": LABELS, "attributes": []}},
    "items": [
        {"id": "a", "annotations": BOXES, "image": {"path": "a.jpg", "size": [40, 50]}},
        {"id": "b", "annotations": [], "attr": {"frame": 3}},
    ],
}
SCORED = {**TRUTH, "items": [{"id": "a", "annotations": [box(1, 1, 2, 10.5, 20, score=0.9)]}]}


def valid(folder: Path) -> Path:
    return write(folder / "gt.json", TRUTH)


def test_a_folder_of_subsets(tmp_path: Path) -> None:
    for name in ("val", "train"):
        write(tmp_path / f"annotations/{name}.json", TRUTH)
    for path in (tmp_path, tmp_path / "annotations"):
        assert detect_format(path).name == "datumaro"
        with pytest.raises(
            InputError, match=r"several subsets: 'train', 'val'; choose one with --split"
        ):
            detap.read_ground_truth(path)
        truth = detap.read_ground_truth(path, split="train")
        assert truth.files[0].path == str(tmp_path / "annotations/train.json")
        absent = r"no subset 'test' \(available: 'train', 'val'\); use another --split"
        with pytest.raises(InputError, match=absent):
            detap.read_ground_truth(path, split="test")
    with pytest.raises(UsageError, match="--split requires a Datumaro folder"):
        detap.read_ground_truth(tmp_path / "annotations/val.json", split="val")
    (tmp_path / "annotations/val.json").unlink()
    assert len(detap.read_ground_truth(tmp_path)) == 2


def test_attributes_are_flags_and_scores(tmp_path: Path) -> None:
    flagged = changed(TRUTH, "items", 0, "annotations", 0, "attributes", to={"is_crowd": True})
    path = write(tmp_path / "gt.json", flagged)
    assert "flags-not-mapped" in {note.code for note in detap.read_ground_truth(path).notes}
    assert detap.read_ground_truth(path, attribute_flags="is_crowd").crowd.tolist() == [True, False]
    truth = detap.read_ground_truth(valid(tmp_path))
    detections = detap.read_detections(write(tmp_path / "dt.json", SCORED), truth)
    assert detections.score.tolist() == [0.9]
    other = changed(SCORED, "items", 0, "annotations", 0, "attributes", to={"p": 0.7})
    path = write(tmp_path / "dt.json", other)
    assert detap.read_detections(path, truth, score_attribute="p").score.tolist() == [0.7]


def test_rotated_boxes_and_other_shapes_are_read_as_their_bounds(tmp_path: Path) -> None:
    items = [
        box(1, 10, 20, 8, 4, rotation=90.0),
        {"type": "polygon", "label_id": 1, "points": [3.5, 4, 1, 9, 8, 2]},
        {"type": "label", "label_id": 1},
    ]
    path = write(tmp_path / "gt.json", changed(TRUTH, "items", 0, "annotations", to=items))
    with pytest.raises(InputError, match=r"is a polygon, not a box; pass shapes='bbox'"):
        detap.read_ground_truth(path)
    truth = detap.read_ground_truth(path, shapes="bbox")
    expected = [[12, 18, 16, 26], [1, 2, 8, 9]]
    assert truth.corners.tolist() == [pytest.approx(corners) for corners in expected]
    assert {note.code: note.count for note in truth.notes}["tags-skipped"] == 1


def test_a_rotated_box_is_a_quadrilateral(tmp_path: Path) -> None:
    """Clockwise about its center, (14, 22)."""
    rotated = [box(1, 10, 20, 8, 4, rotation=90.0), box(1, 10, 20, 8, 4)]
    path = write(tmp_path / "gt.json", changed(TRUTH, "items", 0, "annotations", to=rotated))
    truth = detap.read_ground_truth(path)
    assert np.asarray(truth.polygons)[0].tolist() == pytest.approx([16, 18, 16, 26, 12, 26, 12, 18])
    assert np.asarray(truth.polygons)[1].tolist() == [10, 20, 18, 20, 18, 24, 10, 24]


FIRST = "items[0].annotations[0]"
ITEM = ("items", 0)
AT = (*ITEM, "annotations", 0)


def made(**item: Any) -> Any:
    return changed(TRUTH, *AT, to={"label_id": 1, **item})


BBOX = ("--shapes", "bbox")
BAD = {
    "a list": Bad([], "is []; expected {"),
    "no categories": Bad({"items": []}, "categories is missing"),
    "COCO": Bad({"categories": [], "images": [], "annotations": []}, "categories is []"),
    "no items": Bad(changed(TRUTH, without="items"), "items is missing"),
    "labels are an object": Bad(
        changed(TRUTH, "categories", "label", "labels", to={}), "labels is {}"
    ),
    "a label is text": Bad(
        changed(TRUTH, "categories", "label", "labels", 0, to="a"), 'labels[0]: is "a"'
    ),
    "a label without name": Bad(
        changed(TRUTH, "categories", "label", "labels", 0, without="name"), "labels[0]: name is"
    ),
    "an item is null": Bad(changed(TRUTH, *ITEM), "items[0]: is null"),
    "no id": Bad(changed(TRUTH, *ITEM, without="id"), "items[0]: image name is missing"),
    "a number as id": Bad(changed(TRUTH, *ITEM, "id", to=5), "items[0]: image name is 5"),
    "no annotations": Bad(changed(TRUTH, *ITEM, without="annotations"), "items[0]: annotations is"),
    "an image is text": Bad(changed(TRUTH, *ITEM, "image", to="a.jpg"), 'items[0]: is "a.jpg"'),
    "a size of one": Bad(changed(TRUTH, *ITEM, "image", "size", to=[4]), "items[0]: size is [4]"),
    "NaN as size": Bad(
        changed(TRUTH, *ITEM, "image", "size", to=[math.nan, 50]), "items[0]: height is NaN"
    ),
    "an unknown type": Bad(made(type="star"), f'{FIRST}: type is "star"'),
    "a type that is a list": Bad(made(type=[]), f"{FIRST}: type is []"),
    "a mask": Bad(made(type="mask"), f'{FIRST}: type is "mask"; use bbox or polygon'),
    "a polygon": Bad(made(type="polygon"), f"{FIRST}: is a polygon, not a box"),
    "an odd polygon": Bad(
        made(type="polygon", points=[1, 2, 3, 4, 5, 6, 7]), "points has 7 numbers", options=BBOX
    ),
    "no points": Bad(made(type="polygon"), "points is missing", options=BBOX),
    "no label_id": Bad(changed(TRUTH, *AT, without="label_id"), f"{FIRST}: label_id is missing"),
    "a label_id beyond": Bad(
        changed(TRUTH, *AT, "label_id", to=3), "label_id is 3; expected 0 to 2"
    ),
    "a negative label_id": Bad(changed(TRUTH, *AT, "label_id", to=-1), f"{FIRST}: label_id is -1"),
    "true as label_id": Bad(changed(TRUTH, *AT, "label_id", to=True), "label_id is true"),
    "no bbox": Bad(changed(TRUTH, *AT, without="bbox"), f"{FIRST}: bbox is missing"),
    "three numbers": Bad(changed(TRUTH, *AT, "bbox", to=[1, 2, 3]), f"{FIRST}: bbox has 3 numbers"),
    "an overflow of a rotated box": Bad(
        changed(TRUTH, *AT, to=box(1, 0, 0, 1e300, 1e300, rotation=30)), "area overflows"
    ),
    "text as rotation": Bad(
        changed(TRUTH, *AT, "attributes", "rotation", to="30"), f'{FIRST}: rotation is "30"'
    ),
    "attributes are a list": Bad(changed(TRUTH, *AT, "attributes", to=[1]), f"{FIRST}: is [1]"),
}
