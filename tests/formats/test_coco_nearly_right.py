"""COCO results that are nearly right: read with a note, or refused with the remedy.

The metrics of the results themselves are those of pycocotools, in ``expected_bbox.json``.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ended
from tests.cli.conftest import detap as command

__all__ = ["command"]

Run = Callable[..., Ended]
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
    "text with zeros": (
        lambda record, _: record | {"image_id": f"{record['image_id']:012d}"},
        (),
        "[image-ids-as-text]",
    ),
    "class names": (
        lambda record, truth: record | {"category_id": names(truth)[record["category_id"]]},
        (),
        "info: results have class names instead of category ids; matched by name (75) [categories",
    ),
    "category_name": (named, (), "[categories-matched-by-name]"),
    "centers": (lambda record, _: centered(record), ("--dt-boxes", "cxcywh"), ""),
}
REFUSED: dict[str, tuple[Change, str]] = {
    "position from 0": (
        lambda record, truth: record | {"category_id": positions(truth)[record["category_id"]]},
        "category_id looks like the 0-based position in the list of categories (e.g. ",
    ),
    "position from 1": (
        lambda record, truth: record | {"category_id": positions(truth)[record["category_id"]] + 1},
        "category_id looks like the 1-based position in the list of categories (e.g. ",
    ),
    "centers": (
        lambda record, _: centered(record),
        "boxes look like [center x, center y, width, height] but are read as [x, y, width, "
        "height]: 1% of the top detections per image and class have IoU >= 0.5 with a ground "
        "truth, 99% as centers; pass --dt-boxes cxcywh (dt_boxes='cxcywh'), or pass as_is=True",
    ),
}


def results(real_data: Path, folder: Path, change: Change) -> Path:
    truth = json.loads((real_data / TRUTH).read_text())
    path = real_data / FOLDER / "instances_val2014_fakebbox100_results.json"
    records = [change(record, truth) for record in json.loads(path.read_text())]
    (folder / "dt.json").write_text(json.dumps(records))
    return folder / "dt.json"


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
    change, expected = REFUSED[name]
    path = results(real_data, tmp_path, change)
    ended = command("eval", str(real_data / TRUTH), str(path))
    assert ended.status == 2
    assert expected in ended.err


def test_centers_have_no_remedy_where_the_format_was_given(
    command: Run, real_data: Path, tmp_path: Path
) -> None:
    path = results(real_data, tmp_path, lambda record, _: centered(record))
    ended = command("eval", str(real_data / TRUTH), str(path), "--dt-boxes", "xywh")
    assert "as centers; correct the boxes, or pass as_is=True" in ended.err
