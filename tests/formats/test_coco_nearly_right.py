"""COCO results that are nearly right: read with a note, or refused with the remedy.

The metrics of the results themselves are those of pycocotools, in ``expected_bbox.json``.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import detap
from tests.cli.conftest import Run
from tests.formats.exports import write

Record = dict[str, Any]
FOLDER = "coco-val2014-100"
TRUTH = f"{FOLDER}/instances_val2014_100.json"
AP = 0.504580699
"""By pycocotools."""


def positions(truth: Any) -> dict[int, int]:
    return {number: k for k, number in enumerate(sorted(c["id"] for c in truth["categories"]))}


def names(truth: Any) -> dict[int, str]:
    return {category["id"]: category["name"] for category in truth["categories"]}


def centered(record: Record) -> Record:
    x, y, w, h = record["bbox"]
    return record | {"bbox": [x + w / 2, y + h / 2, w, h]}


def named(record: Record, truth: Any) -> Record:
    rest = {key: value for key, value in record.items() if key != "category_id"}
    return rest | {"category_name": names(truth)[record["category_id"]]}


Change = Callable[[Record, Any], Record]
READ: dict[str, tuple[Change, tuple[str, ...], str]] = {
    "text": (
        lambda record, _: record | {"image_id": str(record["image_id"])},
        (),
        "info: image ids are text; read as the numbers of the ground truth (99) [image-ids-as",
    ),
    "class names": (
        lambda record, truth: record | {"category_id": names(truth)[record["category_id"]]},
        (),
        "info: results have class names instead of category ids; matched by name (75) [categories",
    ),
    "category_name": (named, (), "[categories-matched-by-name]"),
    "centers": (lambda record, _: centered(record), ("--dt-boxes", "cxcywh"), ""),
}
REFUSED: dict[str, tuple[Change, tuple[str, ...], str]] = {
    "position from 0": (
        lambda record, truth: record | {"category_id": positions(truth)[record["category_id"]]},
        (),
        "category_id looks like the 0-based position in the list of categories (e.g. ",
    ),
    "position from 1": (
        lambda record, truth: record | {"category_id": positions(truth)[record["category_id"]] + 1},
        (),
        "category_id looks like the 1-based position in the list of categories (e.g. ",
    ),
    "centers": (
        lambda record, _: centered(record),
        (),
        "boxes look like [center x, center y, width, height] but are read as [x, y, width, "
        "height]: 1% of the top detections per image and class have IoU >= 0.5 with a ground "
        "truth, 99% as centers; pass --dt-boxes cxcywh (dt_boxes='cxcywh'), or pass as_is=True",
    ),
    "centers of a given format": (
        lambda record, _: centered(record),
        ("--dt-boxes", "xywh"),
        "as centers; correct the boxes, or pass as_is=True",
    ),
}


def results(real_data: Path, folder: Path, change: Change) -> Path:
    truth = json.loads((real_data / TRUTH).read_text())
    path = real_data / FOLDER / "instances_val2014_fakebbox100_results.json"
    records = [change(record, truth) for record in json.loads(path.read_text())]
    return write(folder / "dt.json", records)


@pytest.mark.parametrize("name", READ)
def test_results_in_another_form_are_read(
    command: Run, real_data: Path, tmp_path: Path, name: str
) -> None:
    change, options, expected = READ[name]
    path = results(real_data, tmp_path, change)
    call = ("eval", str(real_data / TRUTH), str(path), *options)
    ended = command(*call, "--output-format", "json")
    assert json.loads(ended.out)["summary"]["AP"] == pytest.approx(AP, abs=1e-9)
    assert expected in ended.err


@pytest.mark.parametrize("name", REFUSED)
def test_results_in_another_form_are_refused(
    command: Run, real_data: Path, tmp_path: Path, name: str
) -> None:
    change, options, expected = REFUSED[name]
    path = results(real_data, tmp_path, change)
    assert expected in command("eval", str(real_data / TRUTH), str(path), *options).refused()


SHAPES = {
    "masks": (
        TRUTH,
        f"{FOLDER}/instances_val2014_fakesegm100_results.json",
        ("segm", 0.3195, 0.4829),
    ),
    "keypoints": (
        "keypoints/coco79_gt.json",
        "keypoints/coco79_dt.json",
        ("keypoints", 0.2778, 0.2855),
    ),
}
"""AP of the shapes by pycocotools, and of the boxes around them, from the issue."""


@pytest.mark.parametrize("shapes", SHAPES)
def test_results_without_boxes_have_the_preset_of_their_shapes(
    command: Run, real_data: Path, shapes: str
) -> None:
    truth, detected, (iou_type, ap, ap_of_boxes) = SHAPES[shapes]
    call = ("eval", str(real_data / truth), str(real_data / detected), "--output-format", "json")
    by_default = command(*call)
    report = json.loads(by_default.out)
    assert report["protocol"]["name"] == f"coco-{iou_type}"
    assert round(report["summary"]["AP"], 4) == ap
    assert (
        f"info: results have {shapes} and no bbox, so the preset is coco-{iou_type}; "
        "--iou-type bbox scores the boxes around them [preset-of-results]"
    ) in by_default.err
    for choice in ("--iou-type=bbox", "--protocol=coco"):
        ended = command(*call, choice)
        assert round(json.loads(ended.out)["summary"]["AP"], 4) == ap_of_boxes
        assert f"warning: boxes are those around the {shapes}, as results have no bbox" in ended.err
    paths = str(real_data / truth), str(real_data / detected)
    assert round(detap.evaluate(*paths).summary["AP"], 4) == ap


def test_masks_beside_boxes_are_not_scored_by_default(
    command: Run, real_data: Path, tmp_path: Path
) -> None:
    """The boxes are those of `fakebbox`, whose AP pycocotools has; the masks are `fakesegm`'s."""
    masks = json.loads((real_data / SHAPES["masks"][1]).read_text())
    boxes = json.loads(
        (real_data / FOLDER / "instances_val2014_fakebbox100_results.json").read_text()
    )
    both = [
        box | {"segmentation": mask["segmentation"]} for box, mask in zip(boxes, masks, strict=True)
    ]
    path = write(tmp_path / "dt.json", {"info": {}, "annotations": both})
    call = ("eval", str(real_data / TRUTH), str(path), "--output-format", "json")
    ended = command(*call)
    assert json.loads(ended.out)["summary"]["AP"] == pytest.approx(AP, abs=1e-9)
    assert (
        "info: masks are not scored; --iou-type segm scores them [shapes-not-scored]" in ended.err
    )
    scored = command(*call, "--iou-type", "segm")
    assert "shapes-not-scored" not in scored.err
    assert round(json.loads(scored.out)["summary"]["AP"], 4) == 0.3195


def test_results_of_which_one_has_a_box_are_boxes(
    command: Run, real_data: Path, tmp_path: Path
) -> None:
    records = json.loads((real_data / SHAPES["masks"][1]).read_text())
    records[1]["bbox"] = [0, 0, 9, 9]
    (tmp_path / "dt.json").write_text(json.dumps(records))
    call = ("eval", str(real_data / TRUTH), str(tmp_path / "dt.json"), "--output-format", "json")
    ended = command(*call)
    assert json.loads(ended.out)["protocol"]["name"] == "coco"
    assert "boxes-of-shapes" not in ended.err
