"""Invalid pose, segmentation and oriented-box files: status 2, the place, and no number."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ended, Run
from tests.formats.helpers import png
from tests.formats.voc_files import write

POSE = "0 .5 .5 .6 .6 .3 .4 2 .5 .5 1"
"""A box with two keypoints."""
POSED = "0 .5 .5 .6 .6 .3 .4 .8 .5 .5 .7 .9"
HEXAGON = "0 .2 .5 .35 .2 .65 .2 .8 .5 .65 .8 .35 .8"
TRIANGLE = "0 .2 .2 .6 .2 .4 .6"
DIAMOND = "0 .5 .2 .8 .5 .5 .8 .2 .5"


def run(
    folder: Path,
    command: Run,
    labels: Any,
    predictions: Any,
    yaml: str = "",
    *options: str,
) -> Ended:
    """Evaluate an image of 100 x 100 pixels; predictions are text, or results as JSON."""
    files: dict[str, str | bytes] = {
        "data.yaml": f"val: images\nnames: [thing, other]\n{yaml}\n",
        "images/a.png": png(100, 100),
        "labels/a.txt": labels if isinstance(labels, bytes) else f"{labels}\n",
    }
    if isinstance(predictions, str | bytes):
        given = predictions if isinstance(predictions, bytes) else f"{predictions}\n"
        write(folder, {**files, "run/a.txt": given})
        arguments = (str(folder / "data.yaml"), str(folder / "run"), "--dt-format", "yolo")
        return command("eval", *arguments, *options)
    write(folder, {**files, "run/predictions.json": json.dumps(predictions)})
    results = str(folder / "run" / "predictions.json")
    return command("eval", str(folder / "data.yaml"), results, *options)


def check(done: Ended, message: str) -> None:
    assert done.status == 2, done.out
    assert not done.out
    assert message in done.err, done.err
    assert "Traceback" not in done.err


SHAPE = "kpt_shape: [2, 3]"
MASKS = ("--iou-type", "segm")
SEGM = (*MASKS, "--task", "segment")
POSE_LABELS = {
    "0 .5 .5 .6 .6 .3 .4 2 .5 .5": "line 2: has 10 columns, expected 11 for kpt_shape [2, 3]",
    "0 .5 .5 .6 .6 .3 .4 2 .5 .5 1 7": "line 2: has 12 columns, expected 11",
    "0 .5 .5 .6 .6": "line 2: has 5 columns, expected 11",
    "0": "line 2: has 1 column, expected 11",
    "0 .5 .5 .6 .6 .3 .4 3 .5 .5 1": "line 2: keypoint 1 has visibility 3, expected 0, 1 or 2",
    "0 .5 .5 .6 .6 1.3 .4 2 .5 .5 1": "line 2: keypoint 1 1.3 0.4 is outside [0, 1]",
    "0 .5 .5 .6 .6 .3 .4 2 .5 -.5 1": "line 2: keypoint 2 0.5 -0.5 is outside [0, 1]",
    "0 .5 .5 .6 .6 nan .4 2 .5 .5 1": "line 2: x1 'nan' is not a finite number",
    "0 .5 .5 .6 .6 .3 .4 x .5 .5 1": "line 2: v1 'x' is not a number",
    "0 5 .5 .6 .6 .3 .4 2 .5 .5 1": "line 2: xc 5 is outside [0, 1]",
    "0 .5 .5 -.6 .6 .3 .4 2 .5 .5 1": "line 2: w -0.6 is outside [0, 1]",
}


POSE_PREDICTIONS = {
    "0 .5 .5 .6 .6 .3 .4 .8 .5 .5 .7": "line 2: score is missing; 1 of 2 records has none",
    "0 .5 .5 .6 .6 .9": "line 2: has 6 columns, expected 12",
    "0 .5 .5 .6 .6 .3 .4 .8 .5 .5 .7 .9 1.5": "is the last column a track id?",
    "0 .5 .5 .6 .6 .3 .4 .8 .5 .5 .7 .9 1 2": "line 2: has 14 columns, expected 12",
    "0 .5 .5 .6 .6 .3 .4 .8 .5 .5 .7 nan": "line 2: conf 'nan' is not a finite number",
    "0 .5 .5 .6 .6 3 .4 .8 .5 .5 .7 .9": "line 2: keypoint 1 3 0.4 is outside [0, 1]",
    "0 .5 .5 .6 .6 .3 -2 .8 .5 .5 .7 .9": "line 2: keypoint 1 0.3 -2 is outside [0, 1]",
    "0 .5 .5 .6 .6 .3 .4 .8 .5 .5 o .9": "line 2: v2 'o' is not a number",
    "0 .5 .5 6 .6 .3 .4 .8 .5 .5 .7 .9": "line 2: w 6 is outside [0, 1]",
    "thing .5 .5 .6 .6 .3 .4 .8 .5 .5": "line 2: has 10 columns, expected 12 for kpt_shape [2, 3]",
}


@pytest.mark.parametrize(
    ("yaml", "options", "message"),
    [
        (f"{SHAPE}\nkpt_oks_sigmas: [.1]", (), "kpt_oks_sigmas has 1 numbers for 2 keypoints"),
        (f"{SHAPE}\nkpt_oks_sigmas: [.1, 0]", (), "line 4: kpt_oks_sigmas has '0'"),
        (f"{SHAPE}\nkpt_oks_sigmas: [.1, -1]", (), "which is not a number above 0"),
        (f"{SHAPE}\nkpt_oks_sigmas: [.1, nan]", (), "which is not a number above 0"),
        (f"{SHAPE}\nkpt_oks_sigmas: {{a: 1}}", (), "is a mapping"),
        ("kpt_shape: [2]", (), "is not [K, 2] or [K, 3]"),
        ("kpt_shape: [2, 4]", (), "is not [K, 2] or [K, 3]"),
        ("kpt_shape: [3, 2]", (), "keypoint 2 2 0.5 is outside [0, 1]"),
        (SHAPE, ("--task", "obb"), "means keypoints, but the task is obb"),
        (SHAPE, ("--task", "segment"), "means keypoints, but the task is segment"),
        (SHAPE, ("--protocol", "coco-keypoints"), "has 17 sigmas, but rows of the"),
        (SHAPE, ("--iou-type", "segm"), "masks need polygons, but rows are keypoints"),
        (SHAPE, ("--columns", "conf-first"), "--columns conf-first is for boxes"),
        ("", ("--task", "pose"), "unknown number of keypoints; write `kpt_shape"),
        ("", (), "every row has 11 columns"),
    ],
)
def test_a_description_of_poses(
    yaml: str,
    options: tuple[str, ...],
    message: str,
    tmp_path: Path,
    command: Run,
) -> None:
    check(run(tmp_path, command, POSE, POSED, yaml, *options), message)


# --- oriented boxes

OBB_LABELS = {
    "0 .5 .2 .8 .5 .5 .8 .2": "line 2: has 8 columns: polygons have an even number",
    "0 .5 .5 .6 .6": "line 2: is a box, but the line above is a polygon",
    "0 .5 .2 .8 .5 .5 .8 .2 nan": "line 2: y4 'nan' is not a finite number",
    "0 .5 .2 .8 .5 .5 1.8 .2 .5": "line 2: the highest y 1.8 is outside [0, 1]",
    "0 50 20 80 50 50 80 20 50": "line 2: the lowest x 20 is outside [0, 1]",
    "0 .5 .2 .8 .5 .5 .8 .2 .5 .9": "line 2: has 10 columns: polygons have an even number",
    "0 .2 .2 .8 .8 .8 .2 .2 .8": "line 2: 1 of 2 rows of 9 columns cross themselves",
}


OBB_PREDICTIONS = {
    "0 .5 .2 .8 .5 .5 .8 .2 .5": "line 2: score is missing; 1 of 2 records has none",
    "0 .5 .2 .8 .5 .5 .8 .2 .5 nan": "line 2: conf 'nan' is not a finite number",
    "0 .5 .5 .6 .6 .9": "line 2: is a box, but the line above is a polygon",
    "0 .5 -1.2 .8 .5 .5 .8 .2 .5 .9": "line 2: the lowest y -1.2 is outside [0, 1]",
    "0 .5 .2 2.8 .5 .5 .8 .2 .5 .9": "line 2: the highest x 2.8 is outside [0, 1]",
    "0 .5 .2 .9 .5 .5 .8 .2 .5 .9": "line 2: 1 of 2 rows of 10 columns are not rectangles",
}


# --- segments

MASK_LABELS = {
    "0 .2 .2 .6 .2": "line 2: masks need polygons, but rows are boxes",
    "0 .2 .2 .6 .2 .4": "line 2: has 6 columns",
    "0 .2 .2 .6 .2 .4 .6 .5": "line 2: has 8 columns: polygons have an even number of coordinates",
    "0 .2 .2 .6 .2 .4 nan": "line 2: y3 'nan' is not a finite number",
    "0 .2 .2 1.6 .2 .4 .6": "line 2: the highest x 1.6 is outside [0, 1]",
    "0 .2 -.2 .6 .2 .4 .6": "line 2: the lowest y -0.2 is outside [0, 1]",
}
MASK_PREDICTIONS = {
    "0 .2 .2 .6 .2 .4 .6": "line 2: score is missing; 1 of 2 records has none",
    "0 .2 .2 .6 .2 .4 .6 nan": "line 2: conf 'nan' is not a finite number",
    "0 .2013 .2 .6 .2 .9": "line 2: is a box or a line among polygons",
    "0 .2013 .2 .9": "line 2: is a box or a line among polygons",
    "0 .2 .2 1.6 .2 .4 .6 .9": "line 2: the highest x 1.6 is outside [0, 1]",
    "0 .9": "line 2: has 2 columns, expected 6",
}


LABELS = {POSE: POSE_LABELS, DIAMOND: OBB_LABELS, HEXAGON: MASK_LABELS}
PREDICTIONS = {POSE: POSE_PREDICTIONS, DIAMOND: OBB_PREDICTIONS, HEXAGON: MASK_PREDICTIONS}
GIVEN: dict[str, tuple[str, tuple[str, ...]]] = {
    POSE: (SHAPE, ()),
    DIAMOND: ("", ()),
    HEXAGON: ("", SEGM),
}
"""The rest of data.yaml and the options, by the labels' first line."""


def predicted(labels: str) -> str:
    return POSED if labels == POSE else f"{labels} .9"


@pytest.mark.parametrize(
    ("first", "line"), [(first, line) for first, lines in LABELS.items() for line in lines]
)
def test_a_line_of_labels(first: str, line: str, tmp_path: Path, command: Run) -> None:
    yaml, options = GIVEN[first]
    done = run(tmp_path, command, f"{first}\n{line}", predicted(first), yaml, *options)
    check(done, f"labels/a.txt: {LABELS[first][line]}")


@pytest.mark.parametrize(
    ("first", "line"), [(first, line) for first, lines in PREDICTIONS.items() for line in lines]
)
def test_a_line_of_predictions(first: str, line: str, tmp_path: Path, command: Run) -> None:
    yaml, options = GIVEN[first]
    done = run(tmp_path, command, first, f"{predicted(first)}\n{line}", yaml, *options)
    message = PREDICTIONS[first][line]
    check(done, message if message.startswith("is the") else f"run/a.txt: {message}")


RECORD = {"image_id": "a", "category_id": 1, "score": 0.9}
BOX = {"bbox": [20, 20, 60, 60]}
RECORDS: dict[str, dict[str, Any]] = {
    POSE: RECORD | BOX | {"keypoints": [30, 40, 0.8, 50, 50, 0.7], "file_name": "a.jpg"},
    DIAMOND: RECORD | {"poly": [50, 20, 80, 50, 50, 80, 20, 50], "rbox": [50, 50, 42, 42, 0.785]},
    HEXAGON: RECORD | BOX | {"segmentation": {"size": [100, 100], "counts": [10000]}},
}
"""A prediction, by the labels' first line."""
WRONG_RECORDS: dict[str, list[tuple[dict[str, Any], str]]] = {
    POSE: [
        ({"keypoints": [30, 40, 0.8, 50, 50]}, "keypoints has 5 values"),
        ({"keypoints": [30, 40, 1] * 3}, "keypoints has 3 keypoints, expected 2 as in the ground"),
        ({"image_id": "b", "file_name": "b.jpg"}, "no image_id of the results"),
        ({"category_id": -1}, "category_id ranges from -1 to -1, but"),
    ],
    DIAMOND: [
        ({"poly": [50, 20, 80, 50, 50, 80, 20]}, "[0]: poly has 7 values, expected [x1"),
        ({"poly": [[50, 20], [80, 50], [50, 80], [20, 50]]}, "[0]: poly[0] is [50, 20], expected"),
        ({"poly": None}, "[0]: poly is null, expected [x1, y1, x2, y2, ..., y4]"),
        ({"poly": [50, 20, 80, 50, 50, 80, 20, "x"]}, '[0]: poly[7] is "x", expected a number'),
        ({"poly": [50, 20, 80, 50, 50, 80, 20, 1e300]}, "expected pixels"),
        (
            {"poly": [50, 20, 80, 50, 50, 80, 20, float("inf")]},
            "poly[7] is infinite, expected a finite",
        ),
    ],
    HEXAGON: [
        ({"segmentation": {"size": [50, 50], "counts": [2500]}}, "size [50, 50], expected"),
        ({"category_id": 9}, "category_id ranges from 9 to 9, but"),
    ],
}


@pytest.mark.parametrize(
    ("labels", "changes", "message"),
    [(labels, *case) for labels, cases in WRONG_RECORDS.items() for case in cases],
)
def test_a_record(
    labels: str,
    changes: dict[str, Any],
    message: str,
    tmp_path: Path,
    command: Run,
) -> None:
    yaml, options = GIVEN[labels]
    check(run(tmp_path, command, labels, [RECORDS[labels] | changes], yaml, *options), message)


def test_a_record_without_corners(tmp_path: Path, command: Run) -> None:
    record = {key: value for key, value in RECORDS[DIAMOND].items() if key != "poly"}
    check(run(tmp_path, command, DIAMOND, [record]), "[0]: bbox is missing")


@pytest.mark.parametrize(
    "case",
    [
        ("0 .5 .5 .6 .6", f"{HEXAGON} .9", SEGM, "labels/a.txt: line 1: masks need polygons"),
        (HEXAGON, "0 .5 .5 .6 .6 .9", SEGM, "run/a.txt: line 1: masks need polygons"),
        (HEXAGON, f"{HEXAGON} .9", (), "every row has 13 columns"),
        (HEXAGON, f"{HEXAGON} .9", MASKS, "every row has 13 columns: rows look like"),
        (
            f"{HEXAGON}\n{TRIANGLE}",
            f"{HEXAGON} .9\n{TRIANGLE} .8",
            ("--iou-type", "polygon"),
            "2 polygons of the detections are read as their bounding boxes, but",
        ),
        (HEXAGON, f"{HEXAGON} .9", (*SEGM, "--max-mask-runs", "3"), "above the limit of 3"),
        (b"\xff\xfe\x00", f"{HEXAGON} .9", SEGM, "labels/a.txt"),
        (HEXAGON, b"\x00\x01\x02", SEGM, "run/a.txt"),
        (HEXAGON, b"<html>", SEGM, "run/a.txt"),
    ],
)
def test_other_rows_than_segments(
    case: tuple[Any, Any, tuple[str, ...], str], tmp_path: Path, command: Run
) -> None:
    labels, predictions, options, message = case
    check(run(tmp_path, command, labels, predictions, "", *options), message)


# --- the task of a run


@pytest.mark.parametrize(
    "case",
    [
        ("task: segment\n", SHAPE, POSE, (), "run/args.yaml: task is segment, but data.yaml has"),
        ("task: obb\n", SHAPE, POSE, (), "task is obb, but data.yaml has kpt_shape [2, 3]: pose"),
        ("mode: val\ntask: detect\r\n", SHAPE, POSE, (), "pass --task detect to evaluate boxes"),
        ("task: obb\n", "", DIAMOND, ("--task", "segment"), "task is obb, but --task is segment"),
        ("task: pose\n", "", DIAMOND, (), "unknown number of keypoints"),
    ],
)
def test_a_run_of_another_task(
    case: tuple[str, str, str, tuple[str, ...], str], tmp_path: Path, command: Run
) -> None:
    args, yaml, labels, options, message = case
    write(tmp_path, {"run/args.yaml": args})
    check(run(tmp_path, command, labels, predicted(labels), yaml, *options), message)
