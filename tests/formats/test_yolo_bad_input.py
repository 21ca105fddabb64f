"""Invalid YOLO files: each message has file, line and hint."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

import detap
from detap.errors import InputError, UsageError
from tests.cli.conftest import Ended, Run
from tests.formats.helpers import png
from tests.formats.test_yolo import BOX, FOUND, dataset
from tests.formats.voc_files import problems_of, write
from tests.raised import raised

DECIMAL = "use a decimal number"
LABEL = "write `class xc yc w h`"
POLYGON = "`class x1 y1 x2 y2 x3 y3 ...`"
SCORED = "write `class xc yc w h conf`"
REACH = "correct it; if boxes do extend beyond their images, pass as_is=True (--as-is)"

LABELS: dict[str, tuple[str, str]] = {
    "0 .5 .5 .5": ("has 4 columns, expected 5", f"{LABEL}, or {POLYGON}"),
    "0": ("has 1 column, expected 5", f"{LABEL}, or {POLYGON}"),
    "0 .5 .5 .5 .5 .9": (
        "has 6 columns, one more than a box: a confidence (detections?)", f"{LABEL}, or {POLYGON}",
    ),
    "0 .1 .1 .2 .2 .3 .3 .4": (
        "has 8 columns: polygons have an even number of coordinates", f"{LABEL}, or {POLYGON}",
    ),
    "0.7 .5 .5 .5 .5": ("class '0.7' is not a whole number >= 0", "write the class number"),
    "-1 .5 .5 .5 .5": ("class '-1' is not a whole number >= 0", "write the class number"),
    "cat .5 .5 .5 .5": ("class 'cat' is not a whole number >= 0", "write the class number"),
    "2 .5 .5 .5 .5": (
        "class '2' is not in data.yaml, which has 2 classes",
        "check the list; classes are numbered from 0",
    ),
    "0 .5 .5 .5 nan": ("h 'nan' is not a finite number", DECIMAL),
    "0 .5 .5 1e999 .5": ("w '1e999' is too large for a number", DECIMAL),
    "0 .5 0,5 .5 .5": ("yc '0,5' is not a number (use a decimal point, not a comma)", DECIMAL),
    "0,.5,.5,.5,.5": ("has 1 column, expected 5", f"{LABEL}, or {POLYGON}"),
    "0 1.02 .5 .5 .5": ("xc 1.02 is outside [0, 1]", REACH),
    "0 .5 -.02 .5 .5": ("yc -0.02 is outside [0, 1]", REACH),
    "0 .1 .1 .2 .2 .3 1.5": ("the highest y 1.5 is outside [0, 1]", REACH),
    "0 .1 .1 .2 .2 .3 x": ("y3 'x' is not a number", DECIMAL),
    "0 .5 .5 .5 .5\x0b": ("contains control character '\\x0b'", "remove it"),
}  # fmt: skip


@pytest.mark.parametrize("line", LABELS)
def test_a_line_of_labels(line: str, tmp_path: Path) -> None:
    data = dataset(tmp_path)
    good = BOX if len(line.split()) != 7 else "0 .1 .1 .2 .2 .3 .3\n"
    write(tmp_path, {"labels/val/a.txt": f"{good}\n{line}\n{good}"})
    error = raised(InputError, detap.read_ground_truth, data)
    message, hint = LABELS[line]
    assert problems_of(error, tmp_path) == [f"labels/val/a.txt: line 3: {message}; {hint}"]


WITHOUT_SCORE = (
    "score is missing", "1 of 22 records has none: give all records a score, or none",
)  # fmt: skip
PREDICTIONS: dict[str, tuple[str, str]] = {
    "0 .5 .5 .5 .5": WITHOUT_SCORE,
    "0 .1 .1 .2 .2 .3 .3 .4 .4": WITHOUT_SCORE,
    "0 .9": ("has 2 columns, expected 6", f"{SCORED}, or `class x1 y1 x2 y2 x3 y3 ... conf`"),
    "0 .5 .5 .5 .5 nan": ("conf 'nan' is not a finite number", DECIMAL),
    "0 .5 .5 .5 .5 90%": ("conf '90%' is not a number", DECIMAL),
    "0 .1 .1 .2 .2 .3 .3 x": ("conf 'x' is not a number", DECIMAL),
    "0 2 .5 .5 .5 .9": ("xc 2 is outside [0, 1]", REACH),
    "0.5 .5 .5 .5 .5 .9": (
        "class '0.5' is not a whole number >= 0", "write the class number",
    ),
}  # fmt: skip


@pytest.mark.parametrize("line", PREDICTIONS)
def test_a_line_of_predictions(line: str, tmp_path: Path) -> None:
    truth = detap.read_ground_truth(dataset(tmp_path))
    write(tmp_path, {"run/a.txt": f"{FOUND}{line}\n{FOUND * 20}"})
    error = raised(InputError, detap.read_detections, tmp_path / "run", truth, columns="conf-last")
    message, hint = PREDICTIONS[line]
    assert problems_of(error, tmp_path) == [f"run/a.txt: line 2: {message}; {hint}"]


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("0 .5 .5 .5 .5", "0 .1 .1 .2 .2 .3 .3", "is a polygon, but the line above is a box"),
        ("0 .1 .1 .2 .2 .3 .3", "0 .5 .5 .5 .5", "is a box, but the line above is a polygon"),
    ],
)
def test_boxes_and_polygons_in_one_file(
    first: str, second: str, message: str, tmp_path: Path
) -> None:
    data = dataset(tmp_path)
    write(tmp_path, {"labels/val/a.txt": f"{first}\n\n{second}\n{first}\n"})
    assert problems_of(raised(InputError, detap.read_ground_truth, data), tmp_path) == [
        f"labels/val/a.txt: line 3: {message}: a file has one kind of shape; write all objects of "
        f"an image as one kind"
    ]


def test_pixels(tmp_path: Path) -> None:
    data = dataset(tmp_path)
    write(tmp_path, {"labels/val/a.txt": "0 30 40 50 60\n" * 2 + "1 5 6 70 80\n"})
    write(tmp_path, {"labels/val/b.txt": "1 .5 .5 .5 .5\n"})
    first, *others = problems_of(raised(InputError, detap.read_ground_truth, data), tmp_path)
    assert first == (
        "labels/val/a.txt: line 1: xc 30 is outside [0, 1]; boxes look like pixels: divide x and "
        "width by the image's width, y and height by its height; for lines `class x1 y1 x2 y2` or "
        "`class conf x1 y1 x2 y2` use --format voc"
    )
    assert len(others) == 2
    truth = detap.read_ground_truth(dataset(tmp_path))
    write(tmp_path, {"run/a.txt": "0 30 40 50 60 .5\n"})
    with pytest.raises(InputError, match="boxes look like pixels"):
        detap.read_detections(tmp_path / "run", truth, format="yolo")


def test_the_hint_for_boxes_beyond_the_image(tmp_path: Path) -> None:
    data = dataset(tmp_path)
    write(tmp_path, {"labels/val/a.txt": "0 1.25 .5 .5 .5\n"})
    with pytest.raises(InputError, match="pass as_is=True"):
        detap.read_ground_truth(data)
    assert detap.read_ground_truth(data, as_is=True).corners[0].tolist() == [200, 25, 300, 75]
    write(tmp_path, {"labels/val/a.txt": "0 1e308 1e308 1e308 1e308\n"})
    with pytest.raises(InputError, match="line 1: box area overflows"):
        detap.read_ground_truth(data, as_is=True)


def test_negative_sizes(tmp_path: Path) -> None:
    data = dataset(tmp_path)
    write(tmp_path, {"labels/val/a.txt": "0 .5 .5 -.005 .5\n"})
    with pytest.raises(InputError, match=r"a\.txt: line 1: width -1 is negative"):
        detap.read_ground_truth(data)
    boxes = "".join(f"0 .5 .5 .5 .{at}\n" for at in range(10, 40))
    write(tmp_path, {"labels/val/a.txt": f"{boxes}0 .5 .5 -.005 .5\n"})
    notes = {note.code: note for note in detap.read_ground_truth(data).notes}
    assert "line 31: width -1 is negative" in notes["ground-truth-negative-size"].message


def test_files_that_are_not_text(tmp_path: Path) -> None:
    data = dataset(tmp_path)
    write(tmp_path, {"labels/val/a.txt": png(1, 1), "labels/val/b.txt": b"\xff\xfe0\0"})
    assert problems_of(raised(InputError, detap.read_ground_truth, data), tmp_path) == [
        "labels/val/a.txt: looks like an image; expected lines `class xc yc w h`",
        "labels/val/b.txt: looks like UTF-16 text (expected UTF-8); expected lines `class xc yc w "
        "h`",
    ]


def test_images_that_cannot_be_read(tmp_path: Path) -> None:
    data = dataset(tmp_path)
    write(tmp_path, {"images/val/a.png": b"", "images/val/c.png": b""})
    with pytest.raises(InputError, match=r"a\.png: not a JPEG, PNG, BMP, GIF or WebP image"):
        detap.read_ground_truth(data)
    write(tmp_path, {"images/val/a.png": png(200, 100)})
    truth = detap.read_ground_truth(data)  # c has no object, and no size is needed
    write(tmp_path, {"run/c.txt": FOUND})
    with pytest.raises(InputError, match="unknown size of image 'c'"):
        detap.read_detections(tmp_path / "run", truth)
    sizes = write(tmp_path, {"sizes.csv": "image,width,height\nc,10,10\n"}) / "sizes.csv"
    detections = detap.read_detections(tmp_path / "run", truth, image_sizes=sizes)
    assert detections.corners.tolist() == [[3.75, 2.5, 6.25, 7.5]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"image_size": "640"}, "--image-size '640' is not a size; use WIDTHxHEIGHT"),
        ({"image_size": "0x10"}, "--image-size '0x10' is not a size"),
        ({"image_size": (0, 1)}, "is not a width and height in pixels"),
        ({"image_size": (1e9, 1)}, "is not a width and height in pixels"),
        ({"image_size": (1, 1e9)}, "is not a width and height in pixels"),
        ({"image_size": "1x1", "image_sizes": "x"}, "use either --image-size or --image-sizes"),
        ({"split": "test"}, "--split requires a data.yaml"),
    ],
)
def test_incompatible_options(options: Any, message: str, tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": BOX})
    with pytest.raises(UsageError, match=message):
        detap.read_ground_truth(tmp_path, **options)


def test_a_data_yaml_is_refused_as_predictions(tmp_path: Path) -> None:
    data = dataset(tmp_path)
    with pytest.raises(InputError, match=r"is a data\.yaml, expected predictions"):
        detap.read_detections(data, detap.read_ground_truth(data))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs here")
@pytest.mark.parametrize("name", ["labels/val/a.txt", "images/val/a.png"])
def test_pipes_and_devices_are_refused(name: str, tmp_path: Path) -> None:
    data = dataset(tmp_path)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    os.mkfifo(tmp_path / "classes.txt")
    with pytest.raises(InputError, match="is a FIFO, expected a file"):
        detap.read_ground_truth(data)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent", "absent: no such file or directory"),
        ("absent.yaml", "absent.yaml: no such file or directory"),
        ("labels/val/a.txt", "a.txt: not a data.yaml; use one, or a folder of label files"),
        ("images", "images: no label files: no file ends with .txt; use one of its folders"),
        ("data.yaml\0", "invalid path: contains a NUL character"),
    ],
)
def test_invalid_data_sets(name: str, message: str, tmp_path: Path) -> None:
    dataset(tmp_path)
    error = raised(InputError, detap.read_ground_truth, f"{tmp_path}/{name}", format="yolo")
    assert message in str(error)


def test_ground_truths_of_several_class_lists(tmp_path: Path) -> None:
    for name, classes in (("one", "[cat, dog]"), ("two", "[dog, cat]")):
        folder = tmp_path / name
        write(folder, {"data.yaml": f"val: images\nnames: {classes}\n"})
        write(folder, {f"images/{name}.png": png(9, 9), f"labels/{name}.txt": BOX})
    truth = detap.read_ground_truth([tmp_path / "one/data.yaml", tmp_path / "two/data.yaml"])
    assert [truth.classes[label] for label in truth.label.tolist()] == ["cat", "dog"]
    write(tmp_path, {"run/one.txt": FOUND})
    with pytest.raises(InputError, match="class order differs"):
        detap.read_detections(tmp_path / "run", truth)


# --- poses, segments and oriented boxes: status 2, the location, and no number


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
    "0 .5 .5 .6 .6": "line 2: has 5 columns, expected 11",
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
        (f"{SHAPE}\nkpt_oks_sigmas: [.1, nan]", (), "which is not a number above 0"),
        (f"{SHAPE}\nkpt_oks_sigmas: {{a: 1}}", (), "is a mapping"),
        ("kpt_shape: [2, 4]", (), "is not [K, 2] or [K, 3]"),
        ("kpt_shape: [3, 2]", (), "keypoint 2 2 0.5 is outside [0, 1]"),
        (SHAPE, ("--task", "obb"), "means keypoints, but the task is obb"),
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


LABELED = {POSE: POSE_LABELS, DIAMOND: OBB_LABELS, HEXAGON: MASK_LABELS}
PREDICTED = {POSE: POSE_PREDICTIONS, DIAMOND: OBB_PREDICTIONS, HEXAGON: MASK_PREDICTIONS}
GIVEN: dict[str, tuple[str, tuple[str, ...]]] = {
    POSE: (SHAPE, ()),
    DIAMOND: ("", ()),
    HEXAGON: ("", SEGM),
}
"""The rest of data.yaml and the options, by the labels' first line."""


def predicted(labels: str) -> str:
    return POSED if labels == POSE else f"{labels} .9"


ROWS = [
    (side, first, line, message)
    for side, given in (("labels", LABELED), ("run", PREDICTED))
    for first, lines in given.items()
    for line, message in lines.items()
]


@pytest.mark.parametrize("case", ROWS)
def test_a_row_of_a_task(case: tuple[str, str, str, str], tmp_path: Path, command: Run) -> None:
    side, first, line, message = case
    yaml, options = GIVEN[first]
    rows = {"labels": first, "run": predicted(first)}
    rows[side] += f"\n{line}"
    done = run(tmp_path, command, rows["labels"], rows["run"], yaml, *options)
    check(done, message if message.startswith("is the") else f"{side}/a.txt: {message}")


RECORD = {"image_id": "a", "category_id": 1, "score": 0.9}
BOXED = {"bbox": [20, 20, 60, 60]}
RECORDS: dict[str, dict[str, Any]] = {
    POSE: RECORD | BOXED | {"keypoints": [30, 40, 0.8, 50, 50, 0.7], "file_name": "a.jpg"},
    DIAMOND: RECORD | {"poly": [50, 20, 80, 50, 50, 80, 20, 50], "rbox": [50, 50, 42, 42, 0.785]},
    HEXAGON: RECORD | BOXED | {"segmentation": {"size": [100, 100], "counts": [10000]}},
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
        ("0 .5 .5 .6 .6", "0 .5 .5 .6 .6 .9", ("--iou-type", "keypoints"), "pass --iou-type bbox"),
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
