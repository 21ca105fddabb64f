"""Manifests of SageMaker Ground Truth: valid and invalid input."""

import json
from pathlib import Path
from typing import Any

import pytest

import detap
from detap.errors import InputError
from tests.formats.exports import changed, write

BOXES = [
    {"class_id": 1, "left": 1, "top": 2, "width": 10.5, "height": 20},
    {"class_id": 0, "left": 20, "top": 5, "width": 10, "height": 10},
]
METADATA: dict[str, Any] = {
    "objects": [{"confidence": 0.9}, {"confidence": 0.8}],
    "class-map": {"0": "cat", "1": "dog"},
    "type": "groundtruth/object-detection",
    "job-name": "labeling-job/1",
}
A: dict[str, Any] = {
    "source-ref": "s3://bucket/images/a.jpg",
    "boxes": {"image_size": [{"width": 50, "height": 40, "depth": 3}], "annotations": BOXES},
    "boxes-metadata": METADATA,
}
B: dict[str, Any] = {
    "source-ref": "s3://bucket/images/b.jpg",
    "boxes": {"image_size": [{"width": 50, "height": 40, "depth": 3}], "annotations": []},
    "boxes-metadata": {**METADATA, "objects": []},
}


def lines(*records: Any) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def valid(folder: Path) -> Path:
    return write(folder / "gt.manifest", lines(A, B))


def test_confidences_are_scores_of_detections(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", lines(A, B))
    truth = detap.read_ground_truth(path)
    assert detap.read_detections(path, truth).score.tolist() == [0.9, 0.8]


def test_lines_without_labels_are_no_images(tmp_path: Path) -> None:
    unlabeled = {"source-ref": "s3://bucket/images/c.jpg"}
    truth = detap.read_ground_truth(write(tmp_path / "gt.manifest", lines(A, unlabeled)))
    assert truth.images == ("a",)
    (note,) = truth.notes
    assert str(note) == "lines without 'boxes' are left out [images-not-labeled]"


def test_one_of_several_attributes_is_named(tmp_path: Path) -> None:
    both = {**A, "old": {**A["boxes"], "annotations": []}, "old-metadata": B["boxes-metadata"]}
    path = write(tmp_path / "gt.manifest", lines(both))
    message = "label attributes of type groundtruth/object-detection: 'boxes', 'old'; choose one"
    with pytest.raises(InputError, match=message):
        detap.read_ground_truth(path)
    assert len(detap.read_ground_truth(path, label_attribute="boxes")) == 2
    with pytest.raises(InputError, match=message):
        detap.read_ground_truth(path, label_attribute="new")


AT = ("boxes", "annotations", 0)
FIRST = "line 1: boxes.annotations[0]"
BAD = {
    "one object": (
        lines(changed(A, "boxes-metadata", "objects", to=[{}])),
        "line 1: has 2 annotations and 1 objects in its metadata",
    ),
    "objects": (
        lines(changed(A, "boxes-metadata", "objects", to=3)),
        "line 1: objects is 3; expected a list",
    ),
    "class": (
        lines(changed(A, *AT, "class_id", to=7)),
        f"{FIRST}: class_id is 7; expected one of class-map: '0', '1'",
    ),
    "no width": (lines(changed(A, *AT, without="width")), f"{FIRST}: width is missing"),
    "no name": (lines(changed(A, without="source-ref")), "line 1: image name is missing"),
    "other jobs": (
        lines(changed(A, "boxes-metadata", "type", to="groundtruth/image-classification")),
        "label attributes of type groundtruth/object-detection: none; expected {",
    ),
}
