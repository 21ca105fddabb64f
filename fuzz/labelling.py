"""Files of labelling tools, each read by detap and by a few lines with the standard library."""

import csv
import json
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any

from detap.formats.createml.tables import Annotations as CreateML
from detap.formats.datumaro.items import Items
from detap.formats.shapes.documents import DocumentReader
from detap.formats.supervisely.annotations import Annotations as Supervisely
from detap.formats.tfcsv.rows import Rows
from detap.formats.via.regions import Regions

Boxes = Iterator[tuple[str, list[float]]]


def _createml(data: bytes) -> Boxes:
    for image in json.loads(data):
        for item in image["annotations"]:
            x, y, w, h = (float(item["coordinates"][k]) for k in ("x", "y", "width", "height"))
            yield item["label"], [x - w / 2, y - h / 2, w, h]


def _via(data: bytes) -> Boxes:
    images = json.loads(data)
    for image in images.get("_via_img_metadata", images).values():
        regions = image["regions"]
        for region in regions.values() if isinstance(regions, dict) else regions:
            shape = region["shape_attributes"]
            [label] = region["region_attributes"].values()
            name = (
                next(k for k, v in label.items() if v is True) if isinstance(label, dict) else label
            )
            yield name, [float(shape[key]) for key in ("x", "y", "width", "height")]


def _datumaro(data: bytes) -> Boxes:
    document = json.loads(data)
    labels = document["categories"].get("label", {}).get("labels", [])
    names = [label["name"] for label in labels]
    for item in document["items"]:
        for record in item["annotations"]:
            if record["type"] == "bbox":
                yield names[record["label_id"]], [*map(float, record["bbox"])]


def _supervisely(data: bytes) -> Boxes:
    for item in json.loads(data)["objects"]:
        across, down = zip(*item["points"]["exterior"], strict=True)
        box = [min(across), min(down), max(across), max(down)]
        yield item["classTitle"], [*map(float, box)]


def _tfcsv(data: bytes) -> Boxes:
    lines = StringIO(data.decode().removeprefix("#"), newline="")
    rows = csv.reader(lines, skipinitialspace=True)
    header = next(row for row in rows if any(row))
    keys = [name.strip() for name in header]
    known = set()
    for row in rows:
        record = {key: value.strip() for key, value in zip(keys, row, strict=False)}
        box = [record.get(key, "") for key in ("xmin", "ymin", "xmax", "ymax")]
        if any(box):
            entry = record["filename"], record["class"], *map(float, box)
            if entry not in known:
                known.add(entry)
                yield record["class"], [*map(float, box)]


READERS: dict[str, tuple[type[DocumentReader], Callable[[bytes], Boxes]]] = {
    "createml": (CreateML, _createml),
    "via": (Regions, _via),
    "datumaro": (Items, _datumaro),
    "supervisely": (Supervisely, _supervisely),
    "tfcsv": (Rows, _tfcsv),
}


def both(name: str, data: bytes) -> tuple[list[Any], list[Any] | None, list[Any]]:
    """Return the problems of detap's reader, or its boxes and those of the plain one, sorted."""
    kind, plain = READERS[name]
    reader = kind("x")
    reader.read_data(data, "x")
    if reader.problems.count:
        return reader.problems.listed, None, []
    objects = reader.objects()
    labels = [objects.classes[k] for k in objects.label]
    boxes = sorted(zip(labels, objects.boxes.tolist(), strict=True))
    return [], boxes, sorted(plain(data.removeprefix(b"\xef\xbb\xbf")))
