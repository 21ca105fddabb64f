"""Write CreateML: ``annotations.json`` and ``detections.json``."""

import json
from collections.abc import Iterator

import numpy as np

from detap.errors import Note
from detap.formats.by_name.notes import nonzero_notes
from detap.formats.writing.content import (
    Content,
    lost_areas,
    lost_flags,
    lost_unused,
    number_text,
    rows_of_images,
)
from detap.formats.writing.xywh import to_xywh
from detap.tables.detection import Detections, GroundTruth, encode_boxes

TRUTH, DETECTIONS = "annotations.json", "detections.json"


def files(content: Content, notes: list[Note]) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of each file; add lost data to `notes`."""
    if content.ground_truth is not None:
        truth = content.ground_truth
        notes += lost_flags(truth, ["crowd", "difficult", "ignore", "group_of"], "CreateML")
        notes += lost_areas(truth, "CreateML")
        notes += lost_unused(truth, "CreateML")
        yield TRUTH, _text(content, truth, notes)
    if content.detections is not None:
        yield DETECTIONS, _text(content, content.detections, notes)


def _text(content: Content, table: GroundTruth | Detections, notes: list[Note]) -> bytes:
    boxes = to_xywh(table.corners, table.box_area)[0]
    boxes[:, :2] += boxes[:, 2:] / 2
    read = np.hstack([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, 2:]])
    off = (encode_boxes(read, "xywh")[0] != table.corners).any(axis=1)
    message = "corners change in the last bits as center, width, height"
    notes += nonzero_notes(
        Note("values-rounded", message, int(np.count_nonzero(off)), severity="info")
    )
    names = [json.dumps(name, ensure_ascii=False) for name in table.classes]
    scores = table.score.tolist() if isinstance(table, Detections) else None
    labels, values = table.label.tolist(), boxes.tolist()

    def annotation(row: int) -> str:
        pairs = zip(("x", "y", "width", "height"), map(number_text, values[row]), strict=True)
        box = ", ".join(f'"{key}": {text}' for key, text in pairs)
        score = "" if scores is None else f', "confidence": {number_text(scores[row])}'
        return f'{{"label": {names[labels[row]]}, "coordinates": {{{box}}}{score}}}'

    images = [
        f'{{"image": {json.dumps(content.file_name(name), ensure_ascii=False)}, "annotations": ['
        + ", ".join(map(annotation, rows.tolist()))
        + "]}"
        for name, rows in zip(content.images, rows_of_images(table), strict=True)
    ]
    return ("[\n" + ",\n".join(images) + "\n]\n").encode()
