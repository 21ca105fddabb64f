"""Optional values of ground truth and detections that are empty, null or without effect."""

import json
from pathlib import Path
from typing import Any

import pytest

import detap
from detap.evaluation.conditions import ignored_by_condition
from tests.formats.voc_files import item, same, tree, xml

# --- VOC


@pytest.mark.parametrize("plain", [True, False], ids=["scanner", "lxml"])
@pytest.mark.parametrize(
    "more",
    [
        "<truncated>0.0597</truncated><occluded>2</occluded>",
        "<truncated/><occluded></occluded>",
        "<truncated>Unspecified</truncated>",
        "<occluded>False</occluded><occluded>1</occluded>",
        "<truncated><value>1</value></truncated>",
    ],
)
def test_truncated_and_occluded_have_no_effect(tmp_path: Path, more: str, plain: bool) -> None:
    comment = "" if plain else "<!-- not plain -->"
    tree(tmp_path, {"a": xml(item(difficult="1", more=more), item("cat")) + comment})
    truth = detap.read_ground_truth(tmp_path, format="voc")
    assert truth.corners.tolist() == [[10, 20, 30, 40]] * 2
    assert truth.difficult.tolist() == [True, False]
    assert truth.notes == ()


def test_truncated_as_an_attribute_keeps_its_value(tmp_path: Path) -> None:
    more = "<truncated>{}</truncated>"
    objects = item(more=more.format("0.0597")), item(more=more.format(1))
    tree(tmp_path, {"a": xml(*objects)})
    truth = detap.read_ground_truth(tmp_path, format="voc", attributes=("truncated",))
    assert truth.extra["truncated"].tolist() == [0.0597, 1]
    protocol = detap.Protocol.of("voc2012").with_changes(ignore_where="truncated>0.5")
    assert ignored_by_condition(truth, protocol).tolist() == [False, True]


@pytest.mark.parametrize(
    "empty", ["<difficult/>", "<difficult></difficult>", "<difficult> \n</difficult>"]
)
def test_an_empty_difficult_is_0_and_noted(tmp_path: Path, empty: str) -> None:
    objects = item(difficult=None, more=empty), item(difficult="1"), item(difficult=None)
    tree(tmp_path, {"a": xml(*objects), "b": xml(item(difficult=None, more=empty))})
    truth = detap.read_ground_truth(tmp_path, format="voc")
    assert truth.difficult.tolist() == [False, True, False, False]
    [note] = [note for note in truth.notes if note.code == "empty-difficult"]
    assert str(note) == "empty <difficult/> read as 0 (2) [empty-difficult]"
    assert note.severity == "info"


# --- COCO and JSON Lines

NULLS = {"id": None, "area": None, "iscrowd": None, "ignore": None, "isgroupof": None}


def annotations(**changes: Any) -> list[dict[str, Any]]:
    """Return an object of 20 by 20 pixels and one of 100 by 100, both with `changes`."""
    return [
        {"image_id": 1, "category_id": 1, "bbox": [side, 10, side, side], **changes}
        for side in (20, 100)
    ]


def read_coco(folder: Path, records: list[dict[str, Any]], **options: Any) -> detap.GroundTruth:
    image = {"id": 1, "width": 640, "height": 480}
    truth = {"images": [image], "annotations": records, "categories": [{"id": 1, "name": "cat"}]}
    (folder / "gt.json").write_text(json.dumps(truth))
    return detap.read_ground_truth(folder / "gt.json", format="coco", **options)


def without_nulls(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in r.items() if value is not None} for r in records]


def odd(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return records that Python reads, one by one: an escaped key is unusual."""
    return [{**record, "\u00e9": 10**30} for record in records]


@pytest.mark.parametrize("by_python", [False, True])
@pytest.mark.parametrize(
    "nulls",
    [NULLS, *({key: None} for key in NULLS), {"attributes": None, "score": None}],
    ids=",".join,
)
def test_null_of_coco_ground_truth_is_absent(
    tmp_path: Path, nulls: dict[str, Any], by_python: bool
) -> None:
    records = annotations(**nulls)
    records = odd(records) if by_python else records
    read, absent = read_coco(tmp_path, records), read_coco(tmp_path, without_nulls(records))
    same(read, absent)
    assert read.area.tolist() == [400, 10000]


def test_null_of_one_object_only(tmp_path: Path) -> None:
    first, second = annotations(area=30, iscrowd=1, id=7)
    read = read_coco(tmp_path, [first, second | {"area": None, "iscrowd": None, "id": None}])
    assert (read.area.tolist(), read.crowd.tolist()) == ([30, 10000], [True, False])
    counts = {note.code: note.count for note in read.notes}
    assert counts == {"missing-area": 1, "missing-iscrowd": 1, "missing-annotation-ids": 1}


def test_null_of_masks_keypoints_and_lists_of_coco(tmp_path: Path) -> None:
    square = [[0, 0, 20, 0, 20, 20, 0, 20]]
    records = annotations(segmentation=square, bbox=None, area=None)
    read = read_coco(tmp_path, records, masks=True)
    same(read, read_coco(tmp_path, without_nulls(records), masks=True))
    assert read.corners.tolist() == [[0, 0, 20, 20]] * 2
    records = annotations(keypoints=[1, 2, 2, 3, 4, 0], num_keypoints=None)
    read = read_coco(tmp_path, records, keypoints=True)
    same(read, read_coco(tmp_path, without_nulls(records), keypoints=True))
    assert [note.code for note in read.notes].count("missing-num-keypoints") == 1


@pytest.mark.parametrize("by_python", [False, True])
def test_null_of_coco_results_is_absent(tmp_path: Path, by_python: bool) -> None:
    truth = read_coco(tmp_path, annotations(segmentation=[[0, 0, 20, 0, 20, 20, 0, 20]]))
    nulls = dict.fromkeys(("id", "area", "iscrowd", "segmentation", "keypoints", "poly"))
    records = annotations(score=0.5, **nulls)
    for masks in (False, True):
        tables = []
        for written in (records, without_nulls(records)):
            text = json.dumps(odd(written) if by_python else written)
            (tmp_path / "dt.json").write_text(text)
            tables.append(detap.read_detections(tmp_path / "dt.json", truth, masks=masks))
        same(*tables)
        assert tables[0].corners.tolist() == [[20, 10, 40, 30], [100, 10, 200, 110]]


def test_null_of_json_lines_is_absent(tmp_path: Path) -> None:
    image = {"image_id": 1, "width": None, "height": None}
    flags = dict.fromkeys(("area", "iscrowd", "ignore", "isgroupof", "difficult"))
    objects = {"bbox": [[1, 2, 30, 40]], "category": ["cat"]}
    (tmp_path / "a.jsonl").write_text(json.dumps({"image_id": 1, "objects": objects}))
    objects |= {key: [None] for key in flags}
    (tmp_path / "b.jsonl").write_text(json.dumps({**image, "objects": objects}))
    one, other = (detap.read_ground_truth(tmp_path / f"{n}.jsonl", boxes="xywh") for n in "ab")
    assert (one.area.tolist(), other.area.tolist()) == ([1200], [1200])
    for name, column in one.columns().items():
        assert column.tobytes() == other.columns()[name].tobytes(), name


def test_none_in_the_ground_truth_of_an_evaluator_is_absent() -> None:
    evaluator = detap.Evaluator(boxes="xyxy")
    boxes = [[[0, 0, 20, 20]]]
    absent = dict.fromkeys(("area", "crowd", "difficult", "ignore", "group_of", "image_sizes"))
    truth = {"boxes": boxes, "labels": [[1]], **absent}
    evaluator.update([0], boxes, [[0.9]], [[1]], ground_truth=truth)
    result = evaluator.compute()
    assert result.summary["APs"] == pytest.approx(1)  # 400 square pixels are small


@pytest.mark.parametrize("nulls", [{"area": None}, {"iscrowd": None}])
def test_null_of_pycocotools_is_an_error_as_there(nulls: dict[str, Any]) -> None:
    [record] = annotations(id=1, area=400, iscrowd=0)[:1]
    errors = []
    for package in ("pycocotools", "detap.compat.pycocotools"):
        coco = pytest.importorskip(f"{package}.coco").COCO()
        coco.dataset = {"images": [{"id": 1}], "categories": [{"id": 1, "name": "cat"}]}
        coco.dataset["annotations"] = [record | nulls]
        coco.createIndex()
        detections = coco.loadRes(annotations(score=0.5)[:1])
        with pytest.raises(TypeError) as caught:
            pytest.importorskip(f"{package}.cocoeval").COCOeval(coco, detections, "bbox").evaluate()
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
