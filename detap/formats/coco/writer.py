"""Write COCO JSON: ``instances.json`` and ``results.json``."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from detap.errors import Note
from detap.formats.by_name.notes import nonzero_notes
from detap.formats.coco.records import LISTS
from detap.formats.content import Content, exact_number, lost, lost_flags, scores_of, sizes
from detap.formats.stem_matching import base_name, without_suffix
from detap.formats.xywh import to_xywh
from detap.protocols.summary import FREQUENCIES
from detap.tables.detection import Detections, Flags, GroundTruth, Integers, Name

TRUTH, DETECTIONS = "instances.json", "results.json"

_FLAGS = {"crowd": "iscrowd", "ignore": "ignore", "group_of": "isgroupof"}


def files(content: Content, notes: list[Note]) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of each file; add lost data to `notes`.

    Existing ids are kept. Otherwise ids count from 1 in table order, and names become file names.
    Boxes are written so that they read as the same bits.
    """
    images, categories = _image_ids(content, notes), _category_ids(content, notes)
    if content.ground_truth is not None:
        yield TRUTH, _instances(content, content.ground_truth, images, categories, notes)
    if content.detections is not None:
        yield DETECTIONS, _results(content, content.detections, images, categories, notes)


def _image_ids(content: Content, notes: list[Note]) -> list[Name]:
    """Return the image ids, or numbers from 1 for images with names."""
    names = content.images
    ids = [
        name
        for name in names
        if isinstance(name, int) or without_suffix(base_name(content.file_name(name))) != name
    ]
    if len(ids) == len(names) or content.ground_truth is None:
        return list(names)
    message = "images have names; ids count from 1, names are written as file_name"
    notes.append(Note("numbered-images", message, len(names), severity="info"))
    return list(range(1, len(names) + 1))


def _category_ids(content: Content, notes: list[Note]) -> list[Name]:
    """Return the class ids; unknown classes of detections get the next ones."""
    known = len(content.table.class_ids)
    ids, names = content.class_ids, content.classes
    if ids[:known] == names[:known] and known:
        message = "classes have names; ids count from 1"
        notes.append(Note("numbered-classes", message, known, severity="info"))
        return list(range(1, len(ids) + 1))
    numbers = [identifier for identifier in ids[:known] if isinstance(identifier, int)]
    if known and not numbers:
        return list(ids)
    following = count(max(numbers, default=0) + 1)
    is_kept = [k < known and isinstance(identifier, int) for k, identifier in enumerate(ids)]
    return [one if kept else next(following) for one, kept in zip(ids, is_kept, strict=True)]


def _instances(
    content: Content,
    truth: GroundTruth,
    images: list[Name],
    categories: list[Name],
    notes: list[Note],
) -> bytes:
    boxes, exact = to_xywh(truth.corners, truth.box_area)
    notes += _rounded_notes(exact, "objects")
    notes += lost_flags(truth, ["difficult"], "COCO")
    positive = np.ones(len(truth.listed.get("positive", ())), np.bool_)
    notes += lost("positive image labels not supported by COCO", positive)
    used = (name for name in _FLAGS if getattr(truth, name).any())
    flags = dict.fromkeys((*used, "crowd"))
    identifiers = np.arange(1, len(truth) + 1)
    identifiers[truth.zero_id] = 0  # which pycocotools treats specially
    columns = {
        "id": identifiers.tolist(),
        "image_id": _chosen(images, truth.image),
        "category_id": _chosen(categories, truth.label),
        "bbox": map(_exact, boxes.tolist()),
        "area": [exact_number(area) if area >= 0 else None for area in truth.area.tolist()],
        **{_FLAGS[name]: getattr(truth, name).astype(int).tolist() for name in flags},
    }
    letters = {group: letter for letter, group in FREQUENCIES.items()}
    groups = [letters.get(truth.groups.get(identifier, "")) for identifier in truth.class_ids]
    sides = [(None, None) if size is None else _exact(size) for size in sizes(content)]
    return _object(
        images={
            "id": images,
            "file_name": map(content.file_name, content.images),
            "width": [width for width, _ in sides],
            "height": [height for _, height in sides],
            **_lists(truth, categories),
        },
        annotations=columns,
        categories={
            "id": categories[: len(groups)],
            "name": truth.classes,
            "frequency": groups,
        },
    )


def _lists(truth: GroundTruth, categories: list[Name]) -> dict[str, list[list[Name]]]:
    """Return the class lists of each image, by key."""
    lists = {}
    for name, key in LISTS.items():
        if name in truth.listed:
            by_image: list[list[Name]] = [[] for _ in truth.images]
            for image, label in truth.listed[name].tolist():
                by_image[image].append(categories[label])
            lists[key] = by_image
    return lists


def _results(
    content: Content,
    table: Detections,
    images: list[Name],
    categories: list[Name],
    notes: list[Note],
) -> bytes:
    boxes, exact = to_xywh(table.corners, table.box_area)
    notes += _rounded_notes(exact, "detections")
    if content.ground_truth is not None:
        message = "detections of unknown classes get new category ids; readers ignore them"
        unknown = table.label >= len(content.ground_truth.classes)
        notes += lost(message, unknown) if table.has_scores else ()
    scores = scores_of(table)
    records = {
        "image_id": _chosen(images, table.image),
        "category_id": _chosen(categories, table.label),
        "bbox": map(_exact, boxes.tolist()),
        **({} if scores is None else {"score": map(exact_number, scores)}),
    }
    by_id = content.ground_truth is not None or content.class_ids != content.classes
    # Without scores, labels that the ground truth lacks count, so that they need names.
    kinds = {isinstance(name, str) for name in content.class_ids}
    has_unknown = len(kinds) > 1 or len(content.classes) > len(content.table.classes)
    if by_id and (table.has_scores or not has_unknown):
        return f"{_list(records)}\n".encode()
    return _object(annotations=records, categories={"id": categories, "name": content.classes})


def _rounded_notes(exact: Flags, rows: str) -> tuple[Note, ...]:
    message = f"{rows}: corners or areas change in the last bits as x, y, width, height"
    return nonzero_notes(
        Note("values-rounded", message, int(np.count_nonzero(~exact)), severity="info")
    )


def _exact(numbers: Iterable[float]) -> list[int | float]:
    return [*map(exact_number, numbers)]


def _chosen(names: Sequence[Name], numbers: Integers) -> Iterator[Name]:
    """Yield the name of each number."""
    return map(names.__getitem__, numbers.tolist())


def _list(columns: Mapping[str, Iterable[Any]]) -> str:
    """Return a record a line, without keys of None."""
    encode = json.JSONEncoder(ensure_ascii=False).encode
    rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    records = ({key: value for key, value in row.items() if value is not None} for row in rows)
    return "[\n" + ",\n".join(map(encode, records)) + "\n]"


def _object(**parts: Mapping[str, Iterable[Any]]) -> bytes:
    """Return an object of lists."""
    lists = ",\n".join(f'"{key}": {_list(part)}' for key, part in parts.items())
    return f"{{{lists}}}\n".encode()
