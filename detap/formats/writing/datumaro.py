"""Write Datumaro: ``annotations/default.json`` and ``detections/default.json``."""

import json
from collections.abc import Iterator
from typing import Any

from detap.errors import Note
from detap.formats.writing.content import Content, lost_areas, lost_flags, rows_of_images, sizes
from detap.formats.writing.xywh import to_xywh
from detap.tables.detection import Detections, GroundTruth

TRUTH, DETECTIONS = "annotations/default.json", "detections/default.json"


def files(content: Content, notes: list[Note]) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of each file; add lost data to `notes`.

    Flags are attributes: ``is_crowd``, ``difficult``, ``ignore``.
    """
    if content.ground_truth is not None:
        truth = content.ground_truth
        notes += lost_flags(truth, ["group_of"], "Datumaro")
        notes += lost_areas(truth, "Datumaro")
        yield TRUTH, _text(content, truth)
    if content.detections is not None:
        yield DETECTIONS, _text(content, content.detections)


def _text(content: Content, table: GroundTruth | Detections) -> bytes:
    boxes = to_xywh(table.corners, table.box_area)[0].tolist()
    labels, flags = table.label.tolist(), _attributes(table)

    def annotation(row: int) -> dict[str, Any]:
        attributes = {name: values[row] for name, values in flags.items()}
        known = {"id": row + 1, "type": "bbox", "label_id": labels[row], "bbox": boxes[row]}
        return {**known, "group": 0, "z_order": 0, "attributes": attributes}

    items = []
    for (stem, name), size, rows in zip(
        zip(content.stems(), content.images, strict=True),
        sizes(content),
        rows_of_images(table),
        strict=True,
    ):
        image: dict[str, Any] = {"path": content.file_name(name)}
        if size is not None:
            image["size"] = [size[1], size[0]]
        item = {"id": stem, "annotations": [*map(annotation, rows.tolist())], "image": image}
        items.append(json.dumps(item, ensure_ascii=False))
    classes = [{"name": name, "parent": "", "attributes": []} for name in table.classes]
    categories = {"label": {"labels": classes, "attributes": []}}
    head = f'{{"info": {{}}, "categories": {json.dumps(categories, ensure_ascii=False)}'
    return (f'{head},\n"items": [\n' + ",\n".join(items) + "\n]}\n").encode()


def _attributes(table: GroundTruth | Detections) -> dict[str, list[Any]]:
    if isinstance(table, Detections):
        return {"score": table.score.tolist()}
    flags = {"is_crowd": table.crowd, "difficult": table.difficult, "ignore": table.ignore}
    return {name: values.tolist() for name, values in flags.items() if values.any()}
