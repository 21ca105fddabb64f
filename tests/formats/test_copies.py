"""Copies of annotations in a subfolder, which are not further images."""

import json
from pathlib import Path
from typing import Any

import pytest

import detap
from detap import InputError, UsageError
from detap.formats.catalogue import FORMATS
from tests.formats.voc_files import write
from tests.raised import raised


def xml(name: str) -> str:
    box = "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>30</xmax><ymax>40</ymax></bndbox>"
    item = f"<object><name>cat</name>{box}</object>"
    return f"<annotation><filename>{name}</filename>{item}</annotation>"


def labelme() -> str:
    shape = {"label": "cat", "points": [[1, 2], [30, 40]], "shape_type": "rectangle"}
    return json.dumps({"imagePath": "a.jpg", "shapes": [shape]})


VOC = {"Annotations/a.xml": xml("a.jpg"), "Annotations/b.xml": xml("b.jpg")}
COPIED = {
    "voc": (VOC | {"Annotations/old/a.xml": xml("a.jpg")}, "Annotations", "old/a.xml", "a.xml"),
    "voc, a copy in a copied folder": (
        {"Annotations/x/a.xml": xml("x/a.jpg"), "Annotations/x/old/y/a.xml": xml("x/a.jpg")},
        "Annotations",
        "x/old/y/a.xml",
        "x/a.xml",
    ),
    "labelme": ({"a.json": labelme(), "old/a.json": labelme()}, "", "old/a.json", "a.json"),
}


@pytest.mark.parametrize("name", COPIED)
def test_a_copy_in_a_subfolder_is_refused(tmp_path: Path, name: str) -> None:
    files, inside, copy, other = COPIED[name]
    write(tmp_path, files)
    error = raised(InputError, detap.read_ground_truth, tmp_path, format=name.partition(",")[0])
    assert str(error) == (
        f"{tmp_path / inside}: '{copy}' has the name of '{other}': is it a copy?; remove it, or "
        "pass subfolders='skip' (--subfolders skip) for ground truth"
    )


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("yolo", "0 .5 .5 .2 .2\n"),
        ("dota", "1 1 9 1 9 9 1 9 ship 0\n"),
        ("kitti", "Car 0 0 0 1 2 30 40 1 1 1 1 1 1 1\n"),
    ],
)
def test_a_copy_of_labels_in_a_subfolder_is_refused(tmp_path: Path, name: str, line: str) -> None:
    inside = "" if name == "yolo" else "set/"
    write(tmp_path, {f"{inside}{path}.txt": line for path in ("a", "b", "old/a", "old/c")})
    options: Any = {"image_size": "100x100"} if name == "yolo" else {}
    error = raised(InputError, detap.read_ground_truth, tmp_path, format=name, **options)
    copy, other = (f"'{inside}{path}.txt'" for path in ("old/a", "a"))
    expected = f"{tmp_path}: {copy} has the name of {other}: is it a copy?; remove it"
    assert str(error) == expected
    (tmp_path / inside / "old/a.txt").unlink()
    assert len(detap.read_ground_truth(tmp_path, format=name, **options)) == 3


def test_folders_that_are_copies(tmp_path: Path) -> None:
    files = {f"Annotations/{folder}/{n}.xml": xml(f"{n}.jpg") for folder in "ab" for n in range(5)}
    other = xml("0.jpg").replace(">30<", ">31<")
    for changed, count in (
        ({}, 5),
        ({"a/0": other, "a/1": other}, 3),
        (dict.fromkeys(("a/0", "a/1", "a/2"), other), 0),
    ):
        write(tmp_path, files | {f"Annotations/{name}.xml": text for name, text in changed.items()})
        notes = detap.read_ground_truth(tmp_path, format="voc").notes
        copied = [note for note in notes if note.code == "images-copied"]
        assert [note.count for note in copied] == [count] * bool(count)
    expected = "images have the file name and boxes of one in another folder: is a folder a copy?"
    write(tmp_path, files)
    assert (
        str(detap.read_ground_truth(tmp_path, format="voc").notes[-1])
        == f"{expected} (5) [images-copied]"
    )


@pytest.mark.parametrize("name", ["voc", "labelme"])
def test_subfolders_may_be_skipped(tmp_path: Path, name: str) -> None:
    files, inside, copy, _ = COPIED[name]
    write(tmp_path, files)
    skipped = detap.read_ground_truth(tmp_path, format=name, subfolders="skip")
    assert FORMATS[name].file_names(skipped)["a"] == "a.jpg"
    (tmp_path / inside / copy).unlink()
    (tmp_path / inside / copy).parent.rmdir()
    alone = detap.read_ground_truth(tmp_path, format=name)
    assert (skipped.images, len(skipped)) == (alone.images, len(alone))
    with pytest.raises(UsageError, match="subfolders 'no' is unknown; use one of read, skip"):
        detap.read_ground_truth(tmp_path, format=name, subfolders="no")


@pytest.mark.parametrize(
    "files",
    [
        {"Annotations/sub/a.xml": xml("sub/a.jpg")},  # as CVAT writes it
        {"Annotations/sub/a.xml": xml("a.jpg"), "Annotations/sub/a.jpg": "an image"},
        {"Annotations/x/c.xml": xml("c.jpg"), "Annotations/y/c.xml": xml("c.jpg")},  # two videos
        {"Annotations/sub/c.xml": xml("c.jpg")},
    ],
)
def test_images_of_subfolders_are_images(tmp_path: Path, files: dict[str, str]) -> None:
    write(tmp_path, VOC | files)
    xmls = sum(name.endswith(".xml") for name in files)
    assert len(detap.read_ground_truth(tmp_path, format="voc").images) == len(VOC) + xmls
