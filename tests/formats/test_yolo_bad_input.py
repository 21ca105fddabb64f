"""Invalid YOLO files: each message has file, line and hint."""

import os
from pathlib import Path
from typing import Any

import pytest

import detap
from detap.errors import InputError, UsageError
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
        "has 6 columns, one more than a box: a confidence (detections?)", LABEL,
    ),
    "0 .1 .1 .2 .2 .3 .3 .4": (
        "has 8 columns: polygons have an even number of coordinates", f"write {POLYGON}",
    ),
    "0.7 .5 .5 .5 .5": ("class '0.7' is not a whole number >= 0", "write the class number"),
    "-1 .5 .5 .5 .5": ("class '-1' is not a whole number >= 0", "write the class number"),
    "cat .5 .5 .5 .5": ("class 'cat' is not a whole number >= 0", "write the class number"),
    "2 .5 .5 .5 .5": (
        "class '2' is not in data.yaml, which has 2 classes",
        "check the list; classes are numbered from 0",
    ),
    "0 .5 .5 .5 nan": ("h 'nan' is not a finite number", DECIMAL),
    "0 inf .5 .5 .5": ("xc 'inf' is not a finite number", DECIMAL),
    "0 .5 .5 1e999 .5": ("w '1e999' is too large for a number", DECIMAL),
    "0 .5 0,5 .5 .5": ("yc '0,5' is not a number (use a decimal point, not a comma)", DECIMAL),
    "0 .5 .5 .5 1_0": ("h '1_0' is not a number", DECIMAL),
    "0 .5 .5 .5 0x1": ("h '0x1' is not a number", DECIMAL),
    "0 .5 .5 .5 \N{FULLWIDTH DIGIT ONE}": ("h '\N{FULLWIDTH DIGIT ONE}' is not a number", DECIMAL),
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
    detections = detap.read_detections(tmp_path / "run", truth, image_sizes=_sizes(tmp_path))
    assert detections.corners.tolist() == [[3.75, 2.5, 6.25, 7.5]]


def _sizes(folder: Path) -> Path:
    return write(folder, {"sizes.csv": "image,width,height\nc,10,10\n"}) / "sizes.csv"


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


def test_label_files_without_objects(tmp_path: Path) -> None:
    data = dataset(tmp_path)
    for labels in (tmp_path / "labels/val").iterdir():
        labels.write_text("")
    (problem,) = raised(InputError, detap.read_ground_truth, data).problems
    assert problem.message.startswith("no objects in the 2 label files of its images")
    assert problem.hint == "use the labels that belong to these detections"
