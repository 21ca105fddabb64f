"""Small ground truths of each format: in each of some images, one object of a class and a box.

Each function returns contents by path: text, bytes or JSON, as
:func:`tests.formats.exports.write` takes it. A `picture` is the name that a format gives an image.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest

from tests.coco import truth_of
from tests.formats import test_via as via
from tests.formats.voc_files import item, xml

SIZE = WIDTH, HEIGHT = 50, 40
Corners = tuple[float, float, float, float]
Stems = Sequence[str]
Make = Callable[[Stems, str, Corners], dict[str, Any]]


def xywh(box: Corners) -> list[float]:
    return [box[0], box[1], box[2] - box[0], box[3] - box[1]]


def named(keys: Iterable[str], values: Iterable[float]) -> dict[str, Any]:
    return dict(zip(keys, values, strict=True))


def coco(stems: Stems, label: str, box: Corners, picture: str = "{}.jpg") -> dict[str, Any]:
    files = {number: picture.format(stem) for number, stem in enumerate(stems, 1)}
    return {"coco.json": truth_of([(n, 1, xywh(box)) for n in files], {1: label}, files, size=SIZE)}


def jsonl(stems: Stems, label: str, box: Corners) -> dict[str, Any]:
    objects = {"bbox": [xywh(box)], "category": [label]}
    record = {"width": WIDTH, "height": HEIGHT, "objects": objects}
    lines = (json.dumps({"file_name": f"{stem}.jpg", **record}) + "\n" for stem in stems)
    return {"lines.jsonl": "".join(lines)}


def arrow(stems: Stems, label: str, box: Corners) -> dict[str, Any]:
    pyarrow = pytest.importorskip("pyarrow", reason="the extra detap[arrow] is not installed")
    from io import BytesIO

    from pyarrow import parquet

    columns = named(("x1", "y1", "x2", "y2"), box) | {"category": label}
    rows = [{"image_id": stem, **columns} for stem in stems]
    file = BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    return {"table.parquet": file.getvalue()}


def cvat(stems: Stems, label: str, box: Corners, picture: str = "{}.jpg") -> dict[str, Any]:
    corners = " ".join(f'{k}="{v}"' for k, v in zip(("xtl", "ytl", "xbr", "ybr"), box, strict=True))
    images = "".join(
        f'<image id="{number}" name="{picture.format(stem)}" width="{WIDTH}" height="{HEIGHT}">'
        f'<box label="{label}" {corners}></box></image>'
        for number, stem in enumerate(stems)
    )
    return {"annotations.xml": f"<annotations><version>1.1</version>{images}</annotations>"}


def labelme(stems: Stems, label: str, box: Corners, picture: str = "{}.jpg") -> dict[str, Any]:
    shape = {"label": label, "shape_type": "rectangle", "points": [box[:2], box[2:]]}
    content = {"shapes": [shape], "imageWidth": WIDTH, "imageHeight": HEIGHT}
    return {f"{stem}.json": {"imagePath": picture.format(stem), **content} for stem in stems}


def open_images(stems: Stems, label: str, box: Corners) -> dict[str, Any]:
    x1, y1, x2, y2 = box
    rows = "".join(f"{stem},{label},{x1},{x2},{y1},{y2}\n" for stem in stems)
    return {"oi.csv": f"ImageID,LabelName,XMin,XMax,YMin,YMax\n{rows}"}


def yolo(stems: Stems, label: str, box: Corners) -> dict[str, Any]:
    x, y, width, height = xywh(box)
    row = [(x + width / 2) / 50, (y + height / 2) / 40, width / 50, height / 40]
    text = f"0 {' '.join(map(str, row))}\n"
    return {"classes.txt": f"{label}\n"} | {f"{stem}.txt": text for stem in stems}


def _texts(stems: Stems, line: str) -> dict[str, Any]:
    return {f"{stem}.txt": f"{line}\n" for stem in stems}


def kitti(stems: Stems, label: str, box: Corners) -> dict[str, Any]:
    return _texts(stems, f"{label} 0 0 0 {' '.join(map(str, box))} 1 1 1 1 1 1 1")


def dota(stems: Stems, label: str, box: Corners) -> dict[str, Any]:
    x1, y1, x2, y2 = box
    return _texts(stems, f"{x1} {y1} {x2} {y1} {x2} {y2} {x1} {y2} {label} 0")


def visdrone(stems: Stems, label: str, box: Corners) -> dict[str, Any]:
    assert label == "car"
    return _texts(stems, f"{','.join(map(str, xywh(box)))},1,4,0,0")


def tfcsv(stems: Stems, label: str, box: Corners) -> dict[str, Any]:
    rows = "".join(f"{stem}.jpg,{label},{','.join(map(str, box))}\n" for stem in stems)
    return {"tf.csv": f"filename,class,xmin,ymin,xmax,ymax\n{rows}"}


def createml(stems: Stems, label: str, box: Corners, picture: str = "{}.jpg") -> dict[str, Any]:
    x, y, width, height = xywh(box)
    sides = named(("x", "y", "width", "height"), (x + width / 2, y + height / 2, width, height))
    items = [{"label": label, "coordinates": sides}]
    document = [{"image": picture.format(stem), "annotations": items} for stem in stems]
    return {"createml.json": document}


def _region(label: str, box: Corners) -> dict[str, Any]:
    return via.region(label, **named(("x", "y", "width", "height"), xywh(box)))


def via_json(stems: Stems, label: str, box: Corners) -> dict[str, Any]:
    image = {"size": 7, "regions": [_region(label, box)], "file_attributes": {}}
    return {"via.json": {f"{stem}.jpg7": {"filename": f"{stem}.jpg", **image} for stem in stems}}


def via_csv(stems: Stems, label: str, box: Corners) -> dict[str, Any]:
    rows = "".join(via.row(f"{stem}.jpg", 1, 0, _region(label, box)) for stem in stems)
    return {"via.csv": f"{via.HEADER}\n{rows}"}


def datumaro(stems: Stems, label: str, box: Corners) -> dict[str, Any]:
    thing = {"id": 1, "type": "bbox", "label_id": 0, "bbox": xywh(box), "attributes": {}}
    image = {"annotations": [thing], "image": {"size": SIZE[::-1]}}
    categories = {"label": {"labels": [{"name": label}]}}
    items = [{"id": stem, **image} for stem in stems]
    return {"default.json": {"categories": categories, "items": items}}


def supervisely(stems: Stems, label: str, box: Corners) -> dict[str, Any]:
    points = {"exterior": [box[:2], box[2:]], "interior": []}
    thing = {"classTitle": label, "geometryType": "rectangle", "tags": [], "points": points}
    document = {"tags": [], "size": {"height": HEIGHT, "width": WIDTH}, "objects": [thing]}
    return {f"{stem}.jpg.json": document for stem in stems}


def label_studio(stems: Stems, label: str, box: Corners) -> dict[str, Any]:
    sides = zip(xywh(box), SIZE * 2, strict=True)
    percent = [100 * length / side for length, side in sides]
    value = named(("x", "y", "width", "height"), percent) | {"rectanglelabels": [label]}
    size = named(("original_width", "original_height"), SIZE)
    annotations = [{"result": [{"type": "rectanglelabels", "value": value, **size}]}]
    images = [{"image": f"/data/upload/1/0a1b2c3d-{stem}.jpg"} for stem in stems]
    return {"tasks.json": [{"data": image, "annotations": annotations} for image in images]}


def darknet(stems: Stems, label: str, box: Corners, subset: str = "valid") -> dict[str, Any]:
    labels = yolo(stems, label, box)
    return {
        "obj.data": f"names = data/obj.names\n{subset} = data/{subset}.txt\n",
        "obj.names": labels.pop("classes.txt"),
        f"{subset}.txt": "".join(f"data/obj_{subset}_data/{stem}.jpg\n" for stem in stems),
        **{f"obj_{subset}_data/{name}": text for name, text in labels.items()},
    }


def voc(stems: Stems, label: str, box: Corners) -> dict[str, Any]:
    return {
        f"{stem}.xml": xml(f"<filename>{stem}.jpg</filename>", item(label, box), size=SIZE)
        for stem in stems
    }


def below(folder: str, made: Make, more: Mapping[str, str] = {}) -> Make:
    """Return a function that makes these files in a folder, and more."""
    return lambda *content: {f"{folder}/{k}": v for k, v in made(*content).items()} | {**more}
