"""Write Supervisely projects: ``annotations`` and ``detections``."""

import json
from collections.abc import Iterator
from typing import Any

from detap.errors import Note
from detap.formats.stem_matching import base_name
from detap.formats.writing.content import (
    Content,
    check_file_names,
    lost_areas,
    lost_flags,
    rounded_areas,
    rows_of_images,
    sizes,
)
from detap.tables.detection import Detections, GroundTruth

TRUTH, DETECTIONS = "annotations", "detections"

_FLAGS = {"crowd": "iscrowd", "difficult": "difficult", "ignore": "ignore"}
_SCORE = "confidence"


def files(content: Content, notes: list[Note]) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of each file; add lost data to `notes`.

    Flags and scores are tags: ``iscrowd``, ``difficult``, ``ignore``, ``confidence``.
    """
    suffixes = [base_name(content.file_name(name)).rpartition(".")[2] for name in content.images]
    names = [f"{stem}.{suffix}" for stem, suffix in zip(content.stems(), suffixes, strict=True)]
    check_file_names(content, names, "image")
    if content.ground_truth is not None:
        truth = content.ground_truth
        notes += lost_flags(truth, ["group_of"], "Supervisely")
        notes += lost_areas(truth, "Supervisely")
        yield from _project(content, truth, names, TRUTH)
    if content.detections is not None:
        yield from _project(content, content.detections, names, DETECTIONS)
    for table in (content.ground_truth, content.detections):
        notes += () if table is None else rounded_areas(table, "boxes")


def _project(
    content: Content, table: GroundTruth | Detections, names: list[str], folder: str
) -> Iterator[tuple[str, bytes]]:
    classes = [{"title": name, "shape": "rectangle"} for name in table.classes]
    yield f"{folder}/meta.json", _text({"classes": classes, "tags": []})
    corners, labels = table.corners.tolist(), table.label.tolist()
    tags = _tags(table)
    for name, size, rows in zip(names, sizes(content), rows_of_images(table), strict=True):
        objects = [
            {
                "classTitle": table.classes[labels[row]],
                "geometryType": "rectangle",
                "tags": tags[row],
                "points": {"exterior": [corners[row][:2], corners[row][2:]], "interior": []},
            }
            for row in rows.tolist()
        ]
        sides = {} if size is None else {"size": {"height": size[1], "width": size[0]}}
        yield f"{folder}/ds0/ann/{name}.json", _text({"tags": [], **sides, "objects": objects})


def _tags(table: GroundTruth | Detections) -> list[list[dict[str, Any]]]:
    """Return the tags of each row."""
    if isinstance(table, Detections):
        return [[{"name": _SCORE, "value": score}] for score in table.score.tolist()]
    columns = [(tag, getattr(table, name).tolist()) for name, tag in _FLAGS.items()]
    return [
        [{"name": tag, "value": None} for tag, values in columns if values[row]]
        for row in range(len(table))
    ]


def _text(record: dict[str, Any]) -> bytes:
    return (json.dumps(record, ensure_ascii=False) + "\n").encode()
