"""Files of labelling tools, each read by detap and by a few lines with the standard library."""

import csv
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from io import StringIO
from typing import Any

from detap.formats.createml import Annotations as CreateML
from detap.formats.datumaro import Items
from detap.formats.label_studio import Tasks
from detap.formats.roboflow import Responses
from detap.formats.shapes.document import Document
from detap.formats.supervisely import Annotations as Supervisely
from detap.formats.tfcsv import Rows
from detap.formats.via import Regions

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
                rotated = float((record.get("attributes") or {}).get("rotation") or 0) % 360
                yield names[record["label_id"]], [] if rotated else [*map(float, record["bbox"])]


def _supervisely(data: bytes) -> Boxes:
    for item in json.loads(data)["objects"]:
        across, down = zip(*item["points"]["exterior"], strict=True)
        box = [min(across), min(down), max(across), max(down)]
        yield item["classTitle"], [*map(float, box)]


def _roboflow(data: bytes) -> Boxes:
    for item in json.loads(data)["predictions"]:
        x, y, w, h = (float(item[key]) for key in ("x", "y", "width", "height"))
        yield item["class"], [x - w / 2, y - h / 2, w, h]


def _label_studio(data: bytes) -> Boxes:
    """Yield boxes in pixels, of the newest annotation of each task."""
    for task in json.loads(data):
        listed = task["annotations"] if "annotations" in task else task.get("completions", [])
        kept = [annotation for annotation in listed if not annotation.get("was_cancelled")]
        if not kept:
            continue
        newest = kept[-1]
        if len(kept) > 1:
            times = [str(one.get("updated_at") or one.get("created_at")) for one in kept]
            latest = max(map(_time, times))
            newest = [one for one, text in zip(kept, times, strict=True) if _time(text) == latest][
                -1
            ]
        results = newest["result"]
        labeled = [one.get("id") for one in results if one.get("type") in LABELED]
        for result in results:
            value = result.get("value", {})
            kind = result.get("type")
            if kind not in LABELED and (
                not value.keys() & {"x", "points", "rle"}
                or result.get("id") in filter(None, labeled)
            ):
                continue
            sides = (float(result["original_width"]), float(result["original_height"])) * 2
            keys = ("x", "y", "width", "height")
            box = [value[k] * s / 100 for k, s in zip(keys, sides, strict=True)]
            yield value[kind][0], [] if float(value.get("rotation", 0)) % 360 else box


LABELED = ("rectanglelabels", "polygonlabels", "ellipselabels", "brushlabels", "labels")


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


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


def unrotated(reader: Document, boxes: list[list[float]]) -> list[list[float]]:
    """Return the boxes, empty ones for the rotated boxes."""
    return [[] if row in reader._corners else box for row, box in enumerate(boxes)]


READERS: dict[str, tuple[type[Document], Callable[[bytes], Boxes]]] = {
    "createml": (CreateML, _createml),
    "via": (Regions, _via),
    "datumaro": (Items, _datumaro),
    "supervisely": (Supervisely, _supervisely),
    "tfcsv": (Rows, _tfcsv),
    "label-studio": (Tasks, _label_studio),
    "roboflow": (Responses, _roboflow),
}


def both(name: str, data: bytes) -> tuple[list[Any], list[Any] | None, list[Any]]:
    """Return the problems of detap's reader, or its boxes and those of the plain one, sorted.

    Rotated boxes have no numbers.
    """
    kind, plain = READERS[name]
    reader = kind("x")
    reader.read_data(data, "x", "x")
    if reader.problems.count:
        return reader.problems.listed, None, []
    objects = reader.objects()
    labels = [objects.classes[k] for k in objects.label]
    boxes = sorted(zip(labels, unrotated(reader, objects.boxes.tolist()), strict=True))
    return [], boxes, sorted(plain(data.removeprefix(b"\xef\xbb\xbf")))
