"""Folders with files of two formats: detected correctly, or refused, and never read wrongly."""

import json
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import detap
from detap.errors import InputError, UsageError
from detap.formats.catalogue import FORMATS
from detap.formats.detection import detect_format
from detap.io.limits import Limits
from tests.cli.conftest import Run
from tests.formats import small_files as small
from tests.formats.small_files import Corners, Make, Stems, below, named, xywh
from tests.formats.voc_files import write
from tests.raised import raised


def scalabel(stems: Stems, label: str, box: Corners) -> dict[str, Any]:
    corners = named(("x1", "y1", "x2", "y2"), (box[0], box[1], box[2] - 1, box[3] - 1))
    labels = [{"category": label, "box2d": corners}]
    return {"det.json": [{"name": f"{stem}.jpg", "labels": labels} for stem in stems]}


def via_3(stems: Stems, label: str, box: Corners) -> dict[str, Any]:
    metadata = {"vid": "1", "z": [], "xy": [2, *xywh(box)], "av": {"kind": label}}
    views = {"view": {"1": {"fid_list": ["1"]}}, "metadata": {"1_a": metadata}}
    return {"via3.json": {"project": {}, "config": {}, "file": {"1": {"fname": stems[0]}}, **views}}


def crowdhuman(stems: Stems, label: str, box: Corners) -> dict[str, Any]:
    people = [{"tag": "person", "fbox": xywh(box)}]
    return {"gt.odgt": json.dumps({"ID": stems[0], "gtboxes": people}) + "\n"}


def sagemaker(stems: Stems, label: str, box: Corners) -> dict[str, Any]:
    sides = named(("left", "top", "width", "height"), xywh(box)) | {"class_id": 0}
    metadata = {"class-map": {"0": label}, "type": "groundtruth/object-detection"}
    record = {"source-ref": f"s3://bucket/{stems[0]}.jpg", "boxes": {"annotations": [sides]}}
    return {"out.manifest": json.dumps({**record, "boxes-metadata": metadata}) + "\n"}


def mot(stems: Stems, label: str, box: Corners) -> dict[str, Any]:
    return {f"{stems[0]}/gt/gt.txt": f"1,-1,{','.join(map(str, xywh(box)))},1,1,1\n"}


def voc_text(stems: Stems, label: str, box: Corners) -> dict[str, Any]:
    return {f"{stems[0]}.txt": f"{label} {' '.join(map(str, box))}\n"}


def yolo_data_set(stems: Stems, label: str, box: Corners) -> dict[str, Any]:
    (stem,) = stems
    row = small.yolo(stems, label, box)[f"{stem}.txt"]
    yaml = f"val: val.txt\nnames: [{label}]\n"
    return {"data.yaml": yaml, "val.txt": f"images/{stem}.jpg\n", f"labels/{stem}.txt": row}


def supervisely_project(stems: Stems, label: str, box: Corners) -> dict[str, Any]:
    files = below("ds/ann", small.supervisely)(stems, label, box)
    return files | {"meta.json": {"classes": [{"title": label, "shape": "rectangle"}]}}


def coco_at(path: str, more: Mapping[str, str] = {}) -> Make:
    return lambda *content: {path: small.coco(*content)["coco.json"]} | {**more}


ROBOFLOW = {"README.roboflow.txt": "exported\n"}
MADE: dict[str, tuple[str, Make]] = {
    "COCO": ("coco", small.coco),
    "VOC": ("voc", small.voc),
    "VOC text": ("voc", voc_text),
    "YOLO": ("yolo", small.yolo),
    "Arrow": ("arrow", small.arrow),
    "JSON Lines": ("jsonl", small.jsonl),
    "CVAT": ("cvat", small.cvat),
    "LabelMe": ("labelme", small.labelme),
    "Open Images": ("openimages", small.open_images),
    "KITTI": ("kitti", small.kitti),
    "DOTA": ("dota", small.dota),
    "TensorFlow CSV": ("tfcsv", small.tfcsv),
    "CreateML": ("createml", small.createml),
    "VIA": ("via", small.via_json),
    "VIA CSV": ("via", small.via_csv),
    "Datumaro": ("datumaro", small.datumaro),
    "Supervisely": ("supervisely", small.supervisely),
    "VOC root": ("voc", below("Annotations", small.voc)),
    "YOLO data set": ("yolo", yolo_data_set),
    "VisDrone": ("visdrone", small.visdrone),
    "Datumaro folder": ("datumaro", below("annotations", small.datumaro)),
    "Supervisely project": ("supervisely", supervisely_project),
    "Label Studio": ("labelstudio", small.label_studio),
    "CVAT's COCO": ("coco", coco_at("annotations/instances_default.json")),
    "Roboflow's COCO": ("coco", coco_at("valid/_annotations.coco.json", ROBOFLOW)),
    "Roboflow's VOC": ("voc", below("valid", small.voc, ROBOFLOW)),
    "CVAT's YOLO 1.1": ("yolo", small.darknet),
    "Scalabel": ("scalabel", scalabel),
    "VIA 3": ("via", via_3),
    "CrowdHuman": ("crowdhuman", crowdhuman),
    "SageMaker": ("sagemaker", sagemaker),
    "MOTChallenge": ("mot", mot),
    "nested LabelMe": ("labelme", below("day/cam", small.labelme)),
    "nested VOC": ("voc", below("Annotations/day", small.voc)),
}
"""The format of each example, and its files."""
ONE_CLASS = {"CrowdHuman": ("p1", "person"), "MOTChallenge": ("m1", "pedestrian")}
"""The image and the class of formats that have one class."""


def content(name: str) -> tuple[str, str, Corners]:
    """Return the image, class and box of an example, which differ from those of all others."""
    number = [*MADE].index(name)
    if name == "VisDrone":  # has its own classes
        return f"i{number}", "car", (1.0, 2.0, 21.0, 30.0)
    if name == "Open Images":
        return f"i{number}", f"c{number}", (0.125, 0.25, 0.5, 0.75)
    image, label = ONE_CLASS.get(name, (f"i{number}", f"c{number}"))
    return image, label, (1.0 + number, 2.0, 21.0 + number, 30.0)


def make(folder: Path, name: str) -> None:
    stem, label, box = content(name)
    write(folder, MADE[name][1]((stem,), label, box))


def read(folder: Path) -> tuple[str, set[tuple[str, str, Corners]]]:
    name = detect_format(folder).name
    options: dict[str, Any] = {"image_size": "50x40"} if name == "yolo" else {}
    truth = detap.read_ground_truth(folder, **options)
    names = FORMATS[name].file_names(truth) if name == "coco" else {}
    rows = zip(truth.image.tolist(), truth.label.tolist(), truth.corners.tolist(), strict=True)
    return name, {
        (
            names.get(truth.images[image], str(truth.images[image]))
            .removesuffix(".jpg")
            .removesuffix("/000001"),
            truth.classes[label],
            tuple(round(value, 9) for value in box),
        )
        for image, label, box in rows
    }


def test_every_format_has_an_example() -> None:
    """Roboflow's responses and answers of models are detections only."""
    only_detections = {"roboflow", "responses", "npz", "predictions"}
    assert {file_format for file_format, _ in MADE.values()} == set(FORMATS) - only_detections


@pytest.mark.parametrize("name", MADE)
def test_one_format(name: str, tmp_path: Path) -> None:
    make(tmp_path, name)
    assert read(tmp_path) == (MADE[name][0], {content(name)})


@pytest.mark.parametrize(("one", "other"), [*combinations(MADE, 2)])
def test_two_formats(one: str, other: str, tmp_path: Path) -> None:
    """An error, or the boxes of one format, all of whose files are one data set."""
    make(tmp_path, one)
    make(tmp_path, other)
    expected = [(MADE[name][0], {content(name)}) for name in (one, other)]
    if MADE[one][0] == MADE[other][0]:
        expected.append((MADE[one][0], {content(one), content(other)}))
    with suppress(InputError, UsageError):
        assert read(tmp_path) in expected


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ("COCO", "CreateML", "may be COCO or CreateML; use --gt-format coco or --gt-format"),
        ("COCO", "VIA", "may be COCO or VIA"),
        ("Open Images", "TensorFlow CSV", "may be Open Images or TensorFlow CSV"),
        ("CreateML", "VIA CSV", "may be CreateML or VIA"),
        ("YOLO", "CreateML", "may be YOLO or CreateML"),
        ("LabelMe", "VOC", "may be LabelMe or VOC"),
        ("YOLO", "VOC", "may be YOLO or VOC"),  # as labelImg leaves them
        ("Supervisely", "VOC", "may be Supervisely or VOC"),
    ],
)
def test_ambiguous_folders(one: str, other: str, said: str, tmp_path: Path) -> None:
    make(tmp_path, one)
    make(tmp_path, other)
    with pytest.raises(UsageError, match=said):
        detect_format(tmp_path)


@pytest.mark.parametrize("name", ["LabelMe", "CVAT"])
def test_other_text_is_no_second_format(name: str, tmp_path: Path) -> None:
    make(tmp_path, name)
    (tmp_path / "labels.txt").write_text("cat")
    (tmp_path / ".hidden.json").write_text("[]")
    assert detect_format(tmp_path).name == MADE[name][0]


def digest_of(path: Path, members: list[str]) -> str:
    if path.is_file():
        return sha256(path.read_bytes()).hexdigest()
    lines = (f"{sha256((path / name).read_bytes()).hexdigest()}  {name}\n" for name in members)
    return sha256("".join(lines).encode()).hexdigest()


@pytest.mark.parametrize("name", MADE)
def test_the_command_check_and_limits(name: str, tmp_path: Path, command: Run) -> None:
    make(tmp_path, name)
    options: dict[str, Any] = {"image_size": "50x40"} if MADE[name][0] == "yolo" else {}
    words = [f"--{option.replace('_', '-')}={value}" for option, value in options.items()]
    report = command("check", "--gt", tmp_path, *words, "--output-format", "json").report()
    assert report["statistics"]["ground_truths"] == 1
    assert [row["ground_truths"] for row in report["classes"] if row["name"] == content(name)[1]]
    members = [*detap.read_ground_truth(tmp_path, **options).files[0].members]
    source = report["inputs"][0]
    assert source["sha256"] == digest_of(Path(source["path"]), members)
    with pytest.raises(InputError, match=r"more than 0 (records|rows|boxes)"):
        detap.read_ground_truth(tmp_path, limits=Limits(records=0), **options)
    with pytest.raises(InputError, match="is larger than 2 bytes; raise the limit with --max-file"):
        detap.read_ground_truth(tmp_path, limits=Limits(file_bytes=2), **options)


# --- copies of annotations in a subfolder, which are not further images


def voc(name: str) -> str:
    box = "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>30</xmax><ymax>40</ymax></bndbox>"
    item = f"<object><name>cat</name>{box}</object>"
    return f"<annotation><filename>{name}</filename>{item}</annotation>"


def shapes_of() -> str:
    shape = {"label": "cat", "points": [[1, 2], [30, 40]], "shape_type": "rectangle"}
    return json.dumps({"imagePath": "a.jpg", "shapes": [shape]})


VOC = {"Annotations/a.xml": voc("a.jpg"), "Annotations/b.xml": voc("b.jpg")}
COPIED = {
    "voc": (
        VOC | {"Annotations/old/a.xml": voc("a.jpg")},
        "Annotations",
        "old/a.xml",
        "a.xml",
    ),
    "voc, a copy in a copied folder": (
        {
            "Annotations/x/a.xml": voc("x/a.jpg"),
            "Annotations/x/old/y/a.xml": voc("x/a.jpg"),
        },
        "Annotations",
        "x/old/y/a.xml",
        "x/a.xml",
    ),
    "labelme": (
        {"a.json": shapes_of(), "old/a.json": shapes_of()},
        "",
        "old/a.json",
        "a.json",
    ),
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
    files = {f"Annotations/{folder}/{n}.xml": voc(f"{n}.jpg") for folder in "ab" for n in range(5)}
    other = voc("0.jpg").replace(">30<", ">31<")
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
        {"Annotations/sub/a.xml": voc("sub/a.jpg")},  # as CVAT writes it
        {"Annotations/sub/a.xml": voc("a.jpg"), "Annotations/sub/a.jpg": "an image"},
        {
            "Annotations/x/c.xml": voc("c.jpg"),
            "Annotations/y/c.xml": voc("c.jpg"),
        },  # two videos
        {"Annotations/sub/c.xml": voc("c.jpg")},
    ],
)
def test_images_of_subfolders_are_images(tmp_path: Path, files: dict[str, str]) -> None:
    write(tmp_path, VOC | files)
    xmls = sum(name.endswith(".xml") for name in files)
    assert len(detap.read_ground_truth(tmp_path, format="voc").images) == len(VOC) + xmls
