"""Keypoints on the command line."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ended, instances, results, summary, written

Detap = Callable[..., Ended]

SHIFT = 8
"""Pixels by which the first pose is off, on both axes: an OKS of .5952 in a box of 100 by 100."""


def pose(box: list[float], shift: float = 0) -> list[float]:
    """Return 17 keypoints on the diagonal of a box, all labeled."""
    x, y, w, h = box
    return [
        value for n in range(17) for value in (x + w * n / 16 + shift, y + h * n / 16 + shift, 2)
    ]


@pytest.fixture
def poses(tmp_path: Path) -> list[str]:
    """Write files with keypoints in every box, the first detection's shifted; return arguments."""
    truth, detections = instances(), results()
    for row in (*truth["annotations"], *detections):
        row["keypoints"] = pose(row["bbox"])
    for row in truth["annotations"]:
        row["num_keypoints"] = 17
    detections[0]["keypoints"] = pose(detections[0]["bbox"], SHIFT)
    return written(tmp_path, truth, detections)


KEYPOINTS = ["--iou-type", "keypoints"]


@pytest.mark.parametrize("how", [KEYPOINTS, ["--protocol", "coco-keypoints"]])
def test_keypoints_are_scored(detap: Detap, poses: list[str], how: list[str]) -> None:
    ended = detap("eval", *poses, *how, "-o", "json=-")
    assert "protocol:coco-keypoints|" in json.loads(ended.out)["signature"]
    report = summary(ended)
    names = ["AP", "AP50", "AP75", "APm", "APl", "AR20", "AR50", "AR75", "ARm", "ARl"]
    assert [*report] == names
    assert report["AP75"] < report["AP50"]


def test_the_text_distinguishes_recalls(detap: Detap, poses: list[str]) -> None:
    ended = detap("eval", *poses, *KEYPOINTS)
    assert ended.status == 0, ended.err
    assert "AR75  " in ended.out
    assert re.search(r"metric +value +OKS +area", ended.out)
    assert "AR50" in ended.out.splitlines()[0]


def test_the_sibling_of_a_preset(detap: Detap, poses: list[str]) -> None:
    same = ["--protocol", "coco-keypoints", "--iou-type", "bbox", "-o", "json=-"]
    assert summary(detap("eval", *poses, *same)) == summary(detap("eval", *poses, "-o", "json=-"))
    ended = detap(
        "eval", *poses, "--protocol", "voc2012", "--iou-type", "keypoints", "-o", "json=-"
    )
    assert "|iou-type:keypoints|" in json.loads(ended.out)["signature"]


def test_another_skeleton_needs_sigmas(detap: Detap, poses: list[str], tmp_path: Path) -> None:
    """Follow the hint of the message."""
    truth, detections = (json.loads(Path(path).read_text()) for path in poses[1::2])
    for row in (*truth["annotations"], *detections):
        row["keypoints"] = row["keypoints"][:6]
    arguments = written(tmp_path, truth, detections)
    ended = detap("eval", *arguments, *KEYPOINTS)
    assert ended.status == 2
    assert "the protocol has 17 sigmas, but rows of the ground truth have 2 keypoints" in (
        ended.err
    )
    ended = detap("eval", *arguments, *KEYPOINTS, "--sigmas", "0.05,0.1", "-o", "json=-")
    assert "coco-keypoints|sigmas:0.05,0.1|" in json.loads(ended.out)["signature"]
    ended = detap("eval", *arguments, *KEYPOINTS, "--sigmas", "0.05,0")
    assert ended.status == 2
    assert "'0' is outside" in ended.err


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["--class-agnostic"], "class_agnostic has no effect with iou_type keypoints"),
        (["--inclusive-pixels"], "inclusive_pixels has no effect with iou_type keypoints"),
        (["--detection-area", "pixels"], "detection_area has no effect with iou_type keypoints"),
        (
            ["--errors", "tidecv"],
            "has iou_type keypoints, this requires bbox; type the errors by",
        ),
    ],
)
def test_options_rejected_for_keypoints(
    detap: Detap, poses: list[str], asked: list[str], message: str
) -> None:
    ended = detap("eval", *poses, *KEYPOINTS, *asked)
    assert ended.status == 2
    assert message in ended.err


def test_no_keypoints_is_a_flag_of_keypoints_only(detap: Detap, poses: list[str]) -> None:
    ended = detap("eval", *poses, "--ignore-flags", "crowd,no-keypoints")
    assert ended.status == 2
    assert (
        "no_keypoints has no effect with iou_type bbox; remove it from --ignore-flags" in ended.err
    )


def test_annotations_with_ignore_set_are_ignored(
    detap: Detap, poses: list[str], tmp_path: Path
) -> None:
    """Unless the protocol does not ignore that flag."""
    truth, detections = (json.loads(Path(path).read_text()) for path in poses[1::2])
    truth["annotations"][0]["num_keypoints"] = 0
    arguments = [*written(tmp_path, truth, detections), *KEYPOINTS, "-o", "json=-"]
    ignored, counted = (
        sum(row["ground_truths"] for row in json.loads(detap("eval", *how).out)["classes"])
        for how in (arguments, [*arguments, "--ignore-flags", "crowd"])
    )
    assert ignored == counted - 1


def test_several_inputs_of_keypoints(detap: Detap, poses: list[str], tmp_path: Path) -> None:
    """Two results files of one image each."""
    how = [*KEYPOINTS, "-o", "json=-"]
    expected = summary(detap("eval", *poses, *how))
    detections = json.loads(Path(poses[3]).read_text())
    for image in (1, 2):
        rows = [row for row in detections if row["image_id"] == image]
        (tmp_path / f"dt{image}.json").write_text(json.dumps(rows))
    parts = [part for n in (1, 2) for part in ("--dt", str(tmp_path / f"dt{n}.json"))]
    assert summary(detap("eval", *poses[:2], *parts, *how)) == expected


@pytest.mark.parametrize(
    "asked",
    [
        ["--errors"],
        ["--confusion"],
        ["--tie-range"],
        ["--cross-check"],
        ["--calibration"],
        ["--fail-under", "AP50=0.2"],
        ["--fail-under", "AR75=0.01"],
    ],
)
def test_analyses_work(detap: Detap, poses: list[str], asked: list[str]) -> None:
    ended = detap("eval", *poses, *KEYPOINTS, *asked)
    assert ended.status == 0, ended.err


def test_gates_and_a_comparison(detap: Detap, poses: list[str], tmp_path: Path) -> None:
    ended = detap("eval", *poses, *KEYPOINTS, "--fail-under", "AP75=1")
    assert ended.status == 1
    before = tmp_path / "before.json"
    assert detap("eval", *poses, *KEYPOINTS, "-o", str(before)).status == 0
    detections = json.loads(Path(poses[3]).read_text())
    for row in detections:
        row["keypoints"] = pose(row["bbox"], 60)
    worse = tmp_path / "worse.json"
    worse.write_text(json.dumps(detections))
    arguments = ["eval", *poses[:2], "--dt", str(worse), *KEYPOINTS, "--max-drop", "AP=0.01"]
    ended = detap(*arguments, "--baseline", str(before))
    assert ended.status == 1, ended.err
    noise = "--confidence", "0.9", "--resamples", "100", "--min-ground-truths", "0"
    ended = detap(*arguments, "--baseline-detections", poses[3], *noise)
    assert ended.status in (0, 1), ended.err
    assert "90%" in ended.out + ended.err
    ended = detap("compare", poses[3], str(worse), *poses[:2], *KEYPOINTS, "--resamples", "100")
    assert ended.status == 0, ended.err
    assert "AR75" in ended.out


def test_explaining_reads_keypoints(detap: Detap, poses: list[str]) -> None:
    ended = detap("explain", *poses, "--from", "coco", "--to", "coco-keypoints")
    assert ended.status == 0, ended.err
    assert "iou type" in ended.out


def test_an_image_and_the_page(detap: Detap, poses: list[str], tmp_path: Path) -> None:
    ended = detap("show", "1", *poses, *KEYPOINTS)
    assert ended.status == 0, ended.err
    assert "0.5952" in ended.out
    page = tmp_path / "page.html"
    ended = detap("eval", *poses, *KEYPOINTS, "-o", str(page))
    assert ended.status == 0, ended.err
    assert page.stat().st_size > 1000


def test_a_keypoint_value_is_searched_if_requested(detap: Detap, poses: list[str]) -> None:
    value = summary(detap("eval", *poses, *KEYPOINTS, "-o", "json=-"))["AP"]
    number = ["--value", repr(value), "--metric", "AP"]
    ended = detap("explain", *poses, *number)
    hint = "coco-keypoints, ultralytics-pose (compare keypoints: --iou-type keypoints)"
    assert hint in " ".join(ended.out.split())
    ended = detap("explain", *poses, *number, "--iou-type", "keypoints")
    assert ended.out.startswith(f"coco-keypoints gives AP {value!r}"[:-3]), ended.err
