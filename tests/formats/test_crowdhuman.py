"""CrowdHuman's odgt: valid and invalid input."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detap
from detap.formats.detection import detect_format
from detap.tables.detection import GroundTruth
from tests.formats.exports import write

FULL, VISIBLE, HEAD = [-10, 10, 40, 80], [0, 10, 30, 60], [5, 12, 10, 10]


def person(full: Any, **more: Any) -> dict[str, Any]:
    return {"tag": "person", "fbox": full, "vbox": VISIBLE, "hbox": HEAD, **more}


def lines(*records: Any) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


A = {
    "ID": "a7,1a.0",
    "gtboxes": [
        person(FULL, extra={"box_id": 0, "occ": 0}, head_attr={"ignore": 1, "unsure": 0}),
        person([50, 10, 20, 40], extra={"ignore": 1}),
        person([80, 10, 20, 40], tag="mask"),
    ],
}
TRUTH = (
    A,
    {"ID": "b", "gtboxes": [person([60, 50, 20, 40])]},
)
SCORED = (
    {
        "ID": "a7,1a.0",
        "height": 100,
        "width": 120,
        "dtboxes": [
            {"box": [-9, 10, 40, 80], "score": 0.9, "tag": 1},
            {"box": [52, 10, 20, 40], "score": 0.8, "tag": 1},
            {"box": [110, 60, 20, 20], "score": 0.7, "tag": 1},
        ],
    },
    {"ID": "b", "dtboxes": [{"box": [60, 52, 20, 40], "score": 0.6, "tag": 1}]},
)


def read(folder: Path, **options: Any) -> GroundTruth:
    return detap.read_ground_truth(write(folder / "gt.odgt", lines(*TRUTH)), **options)


@pytest.mark.parametrize(
    ("box", "first", "ignored"),
    [
        ("full", [-10, 10, 30, 90], [False, True, True, False]),
        ("visible", [0, 10, 30, 70], [False, True, True, False]),
        ("head", [5, 12, 15, 22], [True, True, True, False]),
    ],
)
def test_the_box_is_chosen(box: str, first: Any, ignored: Any, tmp_path: Path) -> None:
    truth = read(tmp_path, box=box)
    assert truth.format == "crowdhuman"
    assert truth.images == ("a7,1a.0", "b")
    assert truth.classes == ("person",)
    assert truth.corners[0].tolist() == first
    assert truth.ignore.tolist() == ignored


def test_boxes_end_at_the_border_of_images_of_known_size(tmp_path: Path) -> None:
    """CrowdDet's clip_all_boader: x1 in 0 to width - 1, x2 in 0 to width."""
    truth = read(tmp_path)
    detections = detap.read_detections(write(tmp_path / "dt.odgt", lines(*SCORED)), truth)
    assert detections.corners.tolist() == [
        [0, 10, 31, 90],
        [52, 10, 72, 50],
        [110, 60, 120, 80],
        [60, 52, 80, 92],
    ]
    clipped = detap.read_ground_truth(
        write(tmp_path / "sized.odgt", lines({**TRUTH[0], "width": 120, "height": 100}))
    )
    assert clipped.corners[0].tolist() == [0, 10, 30, 90]


def test_figures_by_hand(tmp_path: Path) -> None:
    """Two persons are found, one box is a false positive, one ground truth is ignored.

    The precision is 1 at the 51 recall levels up to 0.5, and 2/3 at the other 50.
    """
    truth = read(tmp_path)
    detections = detap.read_detections(write(tmp_path / "dt.odgt", lines(*SCORED)), truth)
    summary = detap.evaluate(truth, detections).summary
    assert summary["AP"] == pytest.approx((51 + 50 * 2 / 3) / 101)
    assert np.isfinite(summary["MR-2"])


BAD = {
    "not JSON": (lines(TRUTH[0]) + "{'ID'}\n", "line 2, column 2: invalid JSON"),
    "a list": (lines(TRUTH[0], []), "line 2: is []"),
    "no boxes": (lines({"ID": "a"}), "line 1: gtboxes is missing"),
    "detections": (lines(TRUTH[0], SCORED[1]), "line 2: has dtboxes (detections?)"),
    "three numbers": (
        lines({"ID": "a", "gtboxes": [person([1, 2, 3])]}),
        "line 1: gtboxes[0]: fbox has 3 numbers",
    ),
    "no box": (
        lines({"ID": "a", "gtboxes": [{"tag": "person"}]}),
        "line 1: gtboxes[0]: fbox is missing",
    ),
    "width 0": (
        lines({"ID": "a", "width": 0, "height": 9, "gtboxes": []}),
        "line 1: width is 0; write pixels",
    ),
    "no ID": (lines({"gtboxes": []}), "line 1: image name is missing"),
}


def test_other_names_of_the_file(tmp_path: Path) -> None:
    assert detect_format(write(tmp_path / "a.jsonl", lines(*TRUTH))).name == "crowdhuman"
    assert detect_format(None, write(tmp_path / "b.json", lines(SCORED[0]))).name == "crowdhuman"
