"""Workload generator: requested sizes, reproducible bytes, valid files."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from pycocotools import mask
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from benchmarks.coco_workload import run_lengths, scene
from benchmarks.shapes import COCO_SHAPES, CocoShape, VocShape
from benchmarks.workloads import make_coco, make_voc

TINY = CocoShape("tiny", 30, 220, 9, 500)
TINY_VOC = VocShape("tiny", 25, 80, 3, 300)


def load(path: Path) -> Any:
    return json.loads(path.read_text())


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    one = make_coco(TINY, tmp_path / "one", 1)
    again = make_coco(TINY, tmp_path / "again", 1)
    other = make_coco(TINY, tmp_path / "other", 2)
    for role in ("ground_truth", "detections"):
        text = getattr(one, role).read_bytes()
        assert text == getattr(again, role).read_bytes()
        assert text != getattr(other, role).read_bytes()
    assert one.files == again.files
    assert one.files["detections"]["sha256"] == hashlib.sha256(text).hexdigest()
    assert one.files["detections"]["bytes"] == len(text)


def test_a_coco_workload_has_the_requested_counts(tmp_path: Path) -> None:
    made = make_coco(TINY, tmp_path)
    truth, results = load(made.ground_truth), load(made.detections)
    assert [len(truth[key]) for key in ("images", "annotations", "categories")] == [30, 220, 9]
    assert len(results) == 500
    images = {record["id"]: record for record in truth["images"]}
    classes = {record["id"] for record in truth["categories"]}
    assert len(images) == 30
    assert len({record["id"] for record in truth["annotations"]}) == 220
    for record in truth["annotations"] + results:
        x, y, width, height = record["bbox"]
        frame = images[record["image_id"]]
        assert record["category_id"] in classes
        assert 0 <= x < x + width <= frame["width"] + 0.01
        assert 0 <= y < y + height <= frame["height"] + 0.01
    assert all(0 < record["score"] < 1 for record in results)


def test_pycocotools_reads_the_rle() -> None:
    box, frame = np.array([3.0, 5.0, 20.0, 30.0]), np.array([64, 48])
    counts, area = run_lengths(np.random.default_rng(0), box, frame)
    assert sum(counts) == 64 * 48
    encoded = mask.frPyObjects({"counts": counts, "size": [48, 64]}, 48, 64)
    assert mask.area(encoded) == area
    x, y, width, height = mask.toBbox(encoded).tolist()
    assert (x, width) == (3.0, 20.0)
    assert 5.0 <= y < y + height <= 48.0


def test_a_workload_has_the_statistics_of_coco() -> None:
    layout = scene(COCO_SHAPES["48k"])
    per_image = np.bincount(layout.image, minlength=5_000)
    assert np.median(per_image) == pytest.approx(4, abs=1)
    assert (per_image == 0).mean() == pytest.approx(0.01, abs=0.005)
    assert np.bincount(layout.label).max() / len(layout.label) == pytest.approx(0.3, abs=0.05)
    side = np.sqrt(layout.box[:, 2] * layout.box[:, 3])
    # COCO's own shares of small and large objects are about 0.41 and 0.24 by mask area.
    assert np.mean(side < 32) == pytest.approx(0.3, abs=0.1)
    assert np.mean(side > 96) == pytest.approx(0.3, abs=0.1)
    assert layout.crowd.mean() == pytest.approx(0.012, abs=0.003)


def test_a_voc_workload_has_the_requested_counts(tmp_path: Path) -> None:
    made = make_voc(TINY_VOC, tmp_path)
    again = make_voc(TINY_VOC, tmp_path / "again")
    assert made.files == again.files
    assert make_voc(TINY_VOC, tmp_path).files == made.files
    names = (made.ground_truth / "ImageSets/Main/test.txt").read_text().split()
    assert len(names) == 25
    objects = 0
    for name in names:
        root = ElementTree.parse(made.ground_truth / "Annotations" / f"{name}.xml").getroot()
        for element in root.findall("object"):
            objects += 1
            corners = [int(part.text or "") for part in element.findall("bndbox/*")]
            assert 1 <= corners[0] <= corners[2]
            assert 1 <= corners[1] <= corners[3]
    assert objects == 80
    files = sorted(made.detections.iterdir())
    assert [path.name for path in files] == [f"comp4_det_test_class0{n}.txt" for n in range(3)]
    lines = [line.split() for path in files for line in path.read_text().splitlines()]
    assert len(lines) == 300
    assert {len(line) for line in lines} == {6}
    assert {line[0] for line in lines} <= set(names)


MASKS = replace(TINY, iou_type="segm")


def test_pycocotools_reads_masks_which_fit_their_boxes(tmp_path: Path) -> None:
    made = make_coco(MASKS, tmp_path)
    alone = load(make_coco(replace(MASKS, boxed=False), tmp_path).detections)
    boxed = load(made.detections)
    assert len(boxed) == 500
    assert made.format == "coco-segm"
    for record, other in zip(boxed, alone, strict=True):
        assert {**other, "bbox": record["bbox"]} == record
        box = mask.toBbox(record["segmentation"])
        x, y, width, height = record["bbox"]
        if width > 3 and height > 8:  # edges are ragged by a pixel
            assert np.abs(box[:2] - (x, y)).max() < 8
            assert x - 2 <= box[0] <= box[0] + box[2] <= x + width + 2


def test_people_have_keypoints_with_detections_nearby(tmp_path: Path) -> None:
    made = make_coco(CocoShape("tiny", 30, 120, 1, 400, iou_type="keypoints"), tmp_path)
    truth, results = load(made.ground_truth), load(made.detections)
    assert [len(truth[key]) for key in ("images", "annotations")] == [30, 120]
    assert len(truth["categories"][0]["keypoints"]) == 17
    seen = [np.reshape(record["keypoints"], (17, 3)) for record in truth["annotations"]]
    for points, record in zip(seen, truth["annotations"], strict=True):
        assert record["num_keypoints"] == (points[:, 2] > 0).sum()
        assert (points[points[:, 2] == 0] == 0).all()
    assert 0.3 < np.mean([points.any() for points in seen]) < 0.8
    assert len(results) == 400
    assert {len(record["keypoints"]) for record in results} == {51}
    near = COCOeval(COCO(str(made.ground_truth)), None, "keypoints")
    near.cocoDt = near.cocoGt.loadRes(str(made.detections))
    near.params.imgIds = sorted(near.cocoGt.getImgIds())
    near.evaluate()
    near.accumulate()
    near.summarize()
    assert 0.2 < near.stats[0] < 0.9
