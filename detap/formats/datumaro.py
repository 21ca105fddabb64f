"""Datumaro: a JSON file per subset.

Reference: the format "datumaro" of datumaro 1.13 and of CVAT's exports.
"""

from collections.abc import Iterator
from typing import Any

from detap.errors import Note
from detap.formats.content import Content, scores_of
from detap.formats.reading.sniffing import json_paths
from detap.formats.shapes.document import (
    Document,
    DocumentFormat,
    Image,
    Item,
    json_with_list,
    written_images,
)
from detap.formats.shapes.values import (
    class_name,
    finite_number,
    four_numbers,
    list_of_numbers,
    located,
    object_of,
    required,
    value_text,
)
from detap.formats.xywh import to_xywh
from detap.io.json_text import short_json
from detap.io.problems import FaultError
from detap.tables.detection import Detections, GroundTruth

_POINTS = {"polygon": 3, "polyline": 2, "points": 1}


class Items(Document):
    """The items of a subset; the name of an image is the ``id`` of its item."""

    box_format = "xywh"
    expected = 'expected {"categories": {"label": {"labels": [...]}}, "items": [...]}'
    noted = (Note("tags-skipped", "annotations without a box skipped: {}", severity="info"),)

    _labels_by_id: list[str]

    def images_of(self, content: Any, file: str) -> Iterator[tuple[str, Any]]:
        """Yield the location and record of each image."""
        categories = required(object_of(content, self.expected), "categories", dict, self.expected)
        items = required(content, "items", list, self.expected)
        category = object_of(categories.get("label", {}))
        labels = required({"labels": [], **category}, "labels", list, self.expected)
        self._labels_by_id = [""] * len(labels)
        for number, label in enumerate(labels):
            with self.problems.collected(f"categories.label.labels[{number}]"):
                self._labels_by_id[number] = class_name(object_of(label), "name")
        self.classes |= dict.fromkeys(self._labels_by_id)
        yield from located("items", items)

    def image_of(self, location: str, record: Any, file: str) -> Image:
        """Return the image of an item."""
        items = required(object_of(record), "annotations", list, "expected a list")
        image = object_of(record.get("image") or {})
        size = [None, None] if image.get("size") is None else image["size"]
        if not isinstance(size, list) or len(size) != 2:
            raise FaultError(f"size is {short_json(size)}", "write [height, width]")
        height, width = size
        path = image.get("path")
        return Image(
            record.get("id"),
            located(f"{location}.annotations", items),
            width,
            height,
            object_of(record.get("attr") or {}),
            file=path if isinstance(path, str) else "",
        )

    def item_of(self, record: Any) -> Item | None:
        """Return the object of an annotation; None if it has no box."""
        kind = record.get("type")
        if kind in ("label", "caption"):
            self.counts["tags-skipped"] += 1
            self.kinds[kind] = None
            return None
        number = record.get("label_id")
        if type(number) is not int or not 0 <= number < len(self._labels_by_id):
            message = f"label_id is {value_text(record, 'label_id')}"
            raise FaultError(message, f"expected 0 to {len(self._labels_by_id) - 1}")
        attributes = object_of(record.get("attributes") or {})
        if kind == "bbox":
            box = x, y, width, height = four_numbers(record, "bbox")
            measures = x + width / 2, y + height / 2, width, height
            angle = finite_number("rotation", attributes.get("rotation") or 0.0)
            return Item(self._labels_by_id[number], self.rotated(box, measures, angle), attributes)
        if kind not in (*_POINTS,):  # any JSON value
            raise FaultError(f"type is {value_text(record, 'type')}", "use bbox or polygon")
        self.refuse_shape(kind)
        flat = list_of_numbers(record, "points")
        if len(flat) % 2 or len(flat) < 2 * _POINTS[kind]:
            raise FaultError(f"points has {len(flat)} numbers", "write x1, y1, x2, y2, ...")
        points = [*zip(flat[::2], flat[1::2], strict=True)]
        return Item(self._labels_by_id[number], points, attributes)


class Datumaro(DocumentFormat):
    """Datumaro's JSON, also as CVAT exports it."""

    document = Items
    has_attributes = True
    boxes = ("xywh",)
    coordinates = "bbox"
    written = ("annotations/default.json", "detections/default.json")
    lost_flags = ("group_of",)
    writes_unused_classes = True

    def fits(self, path: str) -> bool:
        """Return True if a file has Datumaro's keys; COCO's categories are a list."""
        paths = json_paths(path)
        is_object = ".categories" in paths and ".categories[]" not in paths
        return is_object and (".categories.label" in paths or ".items[]" in paths)

    def text(self, content: Content, table: GroundTruth | Detections, notes: list[Note]) -> bytes:
        """Return the file of a table; flags are attributes."""
        boxes = to_xywh(table.corners, table.box_area)[0].tolist()
        labels, columns = table.label.tolist(), dict[str, list[Any]]()
        if isinstance(table, GroundTruth):
            flags = {"is_crowd": table.crowd, "difficult": table.difficult, "ignore": table.ignore}
            columns = {name: values.tolist() for name, values in flags.items() if values.any()}
        elif (scores := scores_of(table)) is not None:
            columns["score"] = scores

        def annotation(row: int) -> dict[str, Any]:
            attributes = {name: values[row] for name, values in columns.items()}
            known = {"id": row + 1, "type": "bbox", "label_id": labels[row], "bbox": boxes[row]}
            return {**known, "group": 0, "z_order": 0, "attributes": attributes}

        items = []
        images = written_images(content, table)
        for stem, (file, size, rows) in zip(content.stems(), images, strict=True):
            sides = {} if size is None else {"size": [size[1], size[0]]}
            image = {"path": file, **sides}
            items.append({"id": stem, "annotations": [*map(annotation, rows)], "image": image})
        classes = [{"name": name, "parent": "", "attributes": []} for name in table.classes]
        categories = {"label": {"labels": classes, "attributes": []}}
        return json_with_list({"info": {}, "categories": categories}, "items", items)
