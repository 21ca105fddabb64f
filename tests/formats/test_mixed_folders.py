"""Folders with files of two formats: detected correctly, or refused, and never read wrongly."""

import json
from collections.abc import Callable, Iterable
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
from tests.formats import test_via as via
from tests.formats.exports import write
from tests.formats.voc_files import item, xml

SIZE = 50, 40
Corners = tuple[float, float, float, float]
Make = Callable[[str, str, Corners], dict[str, Any]]


def xywh(box: Corners) -> list[float]:
    return [box[0], box[1], box[2] - box[0], box[3] - box[1]]


def named(keys: Iterable[str], values: Iterable[float]) -> dict[str, Any]:
    return dict(zip(keys, values, strict=True))


def coco(stem: str, label: str, box: Corners) -> dict[str, Any]:
    image = {"id": 1, "file_name": f"{stem}.jpg", "width": SIZE[0], "height": SIZE[1]}
    sides = xywh(box)
    record = {"id": 1, "image_id": 1, "category_id": 1, "bbox": sides, "iscrowd": 0}
    categories = [{"id": 1, "name": label}]
    annotations = [{**record, "area": sides[2] * sides[3]}]
    return {"coco.json": {"images": [image], "categories": categories, "annotations": annotations}}


def jsonl(stem: str, label: str, box: Corners) -> dict[str, Any]:
    objects = {"bbox": [xywh(box)], "category": [label]}
    record = {"file_name": f"{stem}.jpg", "width": SIZE[0], "height": SIZE[1], "objects": objects}
    return {"lines.jsonl": json.dumps(record) + "\n"}


def arrow(stem: str, label: str, box: Corners) -> dict[str, Any]:
    pyarrow = pytest.importorskip("pyarrow", reason="the extra detap[arrow] is not installed")
    from io import BytesIO

    from pyarrow import parquet

    columns = named(("x1", "y1", "x2", "y2"), box) | {"image_id": stem, "category": label}
    file = BytesIO()
    parquet.write_table(pyarrow.table({name: [value] for name, value in columns.items()}), file)
    return {"table.parquet": file.getvalue()}


def cvat(stem: str, label: str, box: Corners) -> dict[str, Any]:
    corners = " ".join(f'{k}="{v}"' for k, v in zip(("xtl", "ytl", "xbr", "ybr"), box, strict=True))
    head = f'<image id="0" name="{stem}.jpg" width="{SIZE[0]}" height="{SIZE[1]}">'
    return {
        "annotations.xml": f"<annotations><version>1.1</version>{head}"
        f'<box label="{label}" {corners}></box></image></annotations>'
    }


def labelme(stem: str, label: str, box: Corners) -> dict[str, Any]:
    shape = {"label": label, "shape_type": "rectangle", "points": [box[:2], box[2:]]}
    sizes = {"imageWidth": SIZE[0], "imageHeight": SIZE[1]}
    return {f"{stem}.json": {"imagePath": f"{stem}.jpg", "shapes": [shape], **sizes}}


def open_images(stem: str, label: str, box: Corners) -> dict[str, Any]:
    x1, y1, x2, y2 = box
    return {
        "oi.csv": f"ImageID,LabelName,XMin,XMax,YMin,YMax\n{stem},{label},{x1},{x2},{y1},{y2}\n"
    }


def yolo(stem: str, label: str, box: Corners) -> dict[str, Any]:
    x, y, width, height = xywh(box)
    row = [(x + width / 2) / 50, (y + height / 2) / 40, width / 50, height / 40]
    return {"classes.txt": f"{label}\n", f"{stem}.txt": f"0 {' '.join(map(str, row))}\n"}


def kitti(stem: str, label: str, box: Corners) -> dict[str, Any]:
    return {f"{stem}.txt": f"{label} 0 0 0 {' '.join(map(str, box))} 1 1 1 1 1 1 1\n"}


def dota(stem: str, label: str, box: Corners) -> dict[str, Any]:
    x1, y1, x2, y2 = box
    return {f"{stem}.txt": f"{x1} {y1} {x2} {y1} {x2} {y2} {x1} {y2} {label} 0\n"}


def visdrone(stem: str, label: str, box: Corners) -> dict[str, Any]:
    assert label == "car"
    return {f"{stem}.txt": f"{','.join(map(str, xywh(box)))},1,4,0,0\n"}


def tfcsv(stem: str, label: str, box: Corners) -> dict[str, Any]:
    numbers = ",".join(map(str, box))
    return {"tf.csv": f"filename,class,xmin,ymin,xmax,ymax\n{stem}.jpg,{label},{numbers}\n"}


def createml(stem: str, label: str, box: Corners) -> dict[str, Any]:
    x, y, width, height = xywh(box)
    sides = named(("x", "y", "width", "height"), (x + width / 2, y + height / 2, width, height))
    annotations = [{"label": label, "coordinates": sides}]
    return {"createml.json": [{"image": f"{stem}.jpg", "annotations": annotations}]}


def _region(label: str, box: Corners) -> dict[str, Any]:
    return via.region(label, **named(("x", "y", "width", "height"), xywh(box)))


def via_json(stem: str, label: str, box: Corners) -> dict[str, Any]:
    image = {"filename": f"{stem}.jpg", "size": 7, "regions": [_region(label, box)]}
    return {"via.json": {f"{stem}.jpg7": image | {"file_attributes": {}}}}


def via_csv(stem: str, label: str, box: Corners) -> dict[str, Any]:
    return {"via.csv": f"{via.HEADER}\n{via.row(f'{stem}.jpg', 1, 0, _region(label, box))}"}


def datumaro(stem: str, label: str, box: Corners) -> dict[str, Any]:
    item = {"id": 1, "type": "bbox", "label_id": 0, "bbox": xywh(box), "attributes": {}}
    categories = {"label": {"labels": [{"name": label}]}}
    return {
        "default.json": {"categories": categories, "items": [{"id": stem, "annotations": [item]}]}
    }


def supervisely(stem: str, label: str, box: Corners) -> dict[str, Any]:
    points = {"exterior": [box[:2], box[2:]], "interior": []}
    thing = {"classTitle": label, "geometryType": "rectangle", "tags": [], "points": points}
    size = {"height": SIZE[1], "width": SIZE[0]}
    return {f"{stem}.jpg.json": {"tags": [], "size": size, "objects": [thing]}}


def label_studio(stem: str, label: str, box: Corners) -> dict[str, Any]:
    sides = zip(xywh(box), SIZE * 2, strict=True)
    percent = [100 * length / side for length, side in sides]
    value = named(("x", "y", "width", "height"), percent) | {"rectanglelabels": [label]}
    size = named(("original_width", "original_height"), SIZE)
    region = {"type": "rectanglelabels", "value": value, **size}
    image = f"/data/upload/1/0a1b2c3d-{stem}.jpg"
    return {"tasks.json": [{"data": {"image": image}, "annotations": [{"result": [region]}]}]}


def scalabel(stem: str, label: str, box: Corners) -> dict[str, Any]:
    corners = named(("x1", "y1", "x2", "y2"), (box[0], box[1], box[2] - 1, box[3] - 1))
    return {
        "det.json": [{"name": f"{stem}.jpg", "labels": [{"category": label, "box2d": corners}]}]
    }


def via_3(stem: str, label: str, box: Corners) -> dict[str, Any]:
    metadata = {"vid": "1", "z": [], "xy": [2, *xywh(box)], "av": {"kind": label}}
    views = {"view": {"1": {"fid_list": ["1"]}}, "metadata": {"1_a": metadata}}
    return {"via3.json": {"project": {}, "config": {}, "file": {"1": {"fname": stem}}, **views}}


def crowdhuman(stem: str, label: str, box: Corners) -> dict[str, Any]:
    people = [{"tag": "person", "fbox": xywh(box)}]
    return {"gt.odgt": json.dumps({"ID": stem, "gtboxes": people}) + "\n"}


def sagemaker(stem: str, label: str, box: Corners) -> dict[str, Any]:
    sides = named(("left", "top", "width", "height"), xywh(box)) | {"class_id": 0}
    metadata = {"class-map": {"0": label}, "type": "groundtruth/object-detection"}
    record = {"source-ref": f"s3://bucket/{stem}.jpg", "boxes": {"annotations": [sides]}}
    return {"out.manifest": json.dumps({**record, "boxes-metadata": metadata}) + "\n"}


def mot(stem: str, label: str, box: Corners) -> dict[str, Any]:
    return {f"{stem}/gt/gt.txt": f"1,-1,{','.join(map(str, xywh(box)))},1,1,1\n"}


def cvat_coco(stem: str, label: str, box: Corners) -> dict[str, Any]:
    (document,) = coco(stem, label, box).values()
    return {"annotations/instances_default.json": document}


def roboflow_coco(stem: str, label: str, box: Corners) -> dict[str, Any]:
    (document,) = coco(stem, label, box).values()
    return {"valid/_annotations.coco.json": document, "README.roboflow.txt": "exported\n"}


def roboflow_voc(stem: str, label: str, box: Corners) -> dict[str, Any]:
    return {f"valid/{stem}.xml": xml(item(label, box)), "README.roboflow.txt": "exported\n"}


def darknet(stem: str, label: str, box: Corners) -> dict[str, Any]:
    return {
        "obj.data": "names = data/obj.names\nvalid = data/valid.txt\n",
        "obj.names": f"{label}\n",
        "valid.txt": f"data/obj_valid_data/{stem}.jpg\n",
        f"obj_valid_data/{stem}.txt": yolo(stem, label, box)[f"{stem}.txt"],
    }


def nested_labelme(stem: str, label: str, box: Corners) -> dict[str, Any]:
    return {f"day/cam/{name}": text for name, text in labelme(stem, label, box).items()}


def nested_voc(stem: str, label: str, box: Corners) -> dict[str, Any]:
    return {f"Annotations/day/{stem}.xml": xml(item(label, box))}


def voc(stem: str, label: str, box: Corners) -> dict[str, Any]:
    return {f"{stem}.xml": xml(item(label, box))}


def voc_text(stem: str, label: str, box: Corners) -> dict[str, Any]:
    return {f"{stem}.txt": f"{label} {' '.join(map(str, box))}\n"}


def voc_root(stem: str, label: str, box: Corners) -> dict[str, Any]:
    return {f"Annotations/{stem}.xml": xml(item(label, box))}


def yolo_data_set(stem: str, label: str, box: Corners) -> dict[str, Any]:
    row = yolo(stem, label, box)[f"{stem}.txt"]
    yaml = f"val: val.txt\nnames: [{label}]\n"
    return {"data.yaml": yaml, "val.txt": f"images/{stem}.jpg\n", f"labels/{stem}.txt": row}


def datumaro_folder(stem: str, label: str, box: Corners) -> dict[str, Any]:
    return {f"annotations/{name}": text for name, text in datumaro(stem, label, box).items()}


def supervisely_project(stem: str, label: str, box: Corners) -> dict[str, Any]:
    files = {f"ds/ann/{name}": text for name, text in supervisely(stem, label, box).items()}
    return files | {"meta.json": {"classes": [{"title": label, "shape": "rectangle"}]}}


MADE: dict[str, tuple[str, Make]] = {
    "COCO": ("coco", coco),
    "VOC": ("voc", voc),
    "VOC text": ("voc", voc_text),
    "YOLO": ("yolo", yolo),
    "Arrow": ("arrow", arrow),
    "JSON Lines": ("jsonl", jsonl),
    "CVAT": ("cvat", cvat),
    "LabelMe": ("labelme", labelme),
    "Open Images": ("openimages", open_images),
    "KITTI": ("kitti", kitti),
    "DOTA": ("dota", dota),
    "TensorFlow CSV": ("tfcsv", tfcsv),
    "CreateML": ("createml", createml),
    "VIA": ("via", via_json),
    "VIA CSV": ("via", via_csv),
    "Datumaro": ("datumaro", datumaro),
    "Supervisely": ("supervisely", supervisely),
    "VOC root": ("voc", voc_root),
    "YOLO data set": ("yolo", yolo_data_set),
    "VisDrone": ("visdrone", visdrone),
    "Datumaro folder": ("datumaro", datumaro_folder),
    "Supervisely project": ("supervisely", supervisely_project),
    "Label Studio": ("labelstudio", label_studio),
    "CVAT's COCO": ("coco", cvat_coco),
    "Roboflow's COCO": ("coco", roboflow_coco),
    "Roboflow's VOC": ("voc", roboflow_voc),
    "CVAT's YOLO 1.1": ("yolo", darknet),
    "Scalabel": ("scalabel", scalabel),
    "VIA 3": ("via", via_3),
    "CrowdHuman": ("crowdhuman", crowdhuman),
    "SageMaker": ("sagemaker", sagemaker),
    "MOTChallenge": ("mot", mot),
    "nested LabelMe": ("labelme", nested_labelme),
    "nested VOC": ("voc", nested_voc),
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
    if name in ONE_CLASS:
        return ONE_CLASS[name][0], ONE_CLASS[name][1], (1.0 + number, 2.0, 21.0 + number, 30.0)
    return f"i{number}", f"c{number}", (1.0 + number, 2.0, 21.0 + number, 30.0)


def make(folder: Path, name: str) -> None:
    for file, text in MADE[name][1](*content(name)).items():
        write(folder / file, text)


def read(folder: Path) -> tuple[str, set[tuple[str, str, Corners]]]:
    """Return the detected format of a folder, and its boxes."""
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
    """The boxes are those of one format, and its name is right; or an error.

    All files of one format are one data set.
    """
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
    """Return the digest of a file, or of the listing of a folder's members."""
    if path.is_file():
        return sha256(path.read_bytes()).hexdigest()
    lines = (f"{sha256((path / name).read_bytes()).hexdigest()}  {name}\n" for name in members)
    return sha256("".join(lines).encode()).hexdigest()


@pytest.mark.parametrize("name", MADE)
def test_the_command_check_and_limits(name: str, tmp_path: Path, command: Run) -> None:
    make(tmp_path, name)
    options: dict[str, Any] = {"image_size": "50x40"} if MADE[name][0] == "yolo" else {}
    words = [f"--{option.replace('_', '-')}={value}" for option, value in options.items()]
    ended = command("check", "--gt", tmp_path, *words, "--output-format", "json")
    assert ended.status == 0, ended.err
    report = json.loads(ended.out)
    assert report["statistics"]["ground_truths"] == 1
    assert [row["ground_truths"] for row in report["classes"] if row["name"] == content(name)[1]]
    members = [*detap.read_ground_truth(tmp_path, **options).files[0].members]
    source = report["inputs"][0]
    assert source["sha256"] == digest_of(Path(source["path"]), members)
    with pytest.raises(InputError, match=r"more than 0 (records|rows|boxes)"):
        detap.read_ground_truth(tmp_path, limits=Limits(records=0), **options)
    with pytest.raises(InputError, match="is larger than 2 bytes; raise the limit with --max-file"):
        detap.read_ground_truth(tmp_path, limits=Limits(file_bytes=2), **options)
