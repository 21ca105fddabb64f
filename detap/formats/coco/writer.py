"""Write COCO JSON: ``instances.json`` and ``results.json``."""

import json
from collections.abc import Iterable, Iterator
from itertools import count

import numpy as np

from detap.errors import Note
from detap.formats.by_name.notes import nonzero_notes
from detap.formats.coco.records import LISTS
from detap.formats.content import Content, lost, lost_flags, number_text, scores_of, sizes
from detap.formats.stem_matching import base_name, without_suffix
from detap.formats.xywh import to_xywh
from detap.protocols.summary import FREQUENCIES
from detap.tables.detection import Detections, Flags, Floats, GroundTruth, Name

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
    flag_keys = {name: key for name, key in _FLAGS.items() if getattr(truth, name).any()} | {
        "crowd": "iscrowd"
    }
    flags = [(f', "{key}": ', getattr(truth, name).tolist()) for name, key in flag_keys.items()]
    rows = zip(truth.image.tolist(), truth.label.tolist(), truth.area.tolist(), strict=True)
    image_ids, category_ids = _json_ids(images), _json_ids(categories)
    ids = _annotation_ids(truth)
    annotations = (
        f'{{"id": {ids[row]}, "image_id": {image_ids[image]}, '
        f'"category_id": {category_ids[label]}, "bbox": {box}'
        + (f', "area": {number_text(area)}' if area >= 0 else "")
        + "".join(f"{key}{value[row]:d}" for key, value in flags)
        + "}"
        for row, ((image, label, area), box) in enumerate(zip(rows, _boxes(boxes), strict=True))
    )
    names = (json.dumps(name, ensure_ascii=False) for name in truth.classes)
    letters = {group: letter for letter, group in FREQUENCIES.items()}
    groups = [letters.get(truth.groups.get(identifier, "")) for identifier in truth.class_ids]
    category_records = (
        f'{{"id": {category_ids[k]}, "name": {name}'
        + (f', "frequency": "{groups[k]}"}}' if groups[k] else "}")
        for k, name in enumerate(names)
    )
    parts = {
        "images": _images(content, image_ids, _lists(truth, category_ids)),
        "annotations": annotations,
        "categories": category_records,
    }
    return _text("{", ",\n".join(f'"{key}": {_list(part)}' for key, part in parts.items()), "}")


def _annotation_ids(truth: GroundTruth) -> list[int]:
    """Return numbers from 1, keeping id 0, which pycocotools treats specially."""
    ids = np.arange(1, len(truth) + 1)
    ids[truth.zero_id] = 0
    numbers: list[int] = ids.tolist()
    return numbers


def _lists(truth: GroundTruth, category_ids: list[str]) -> list[str]:
    """Return the class lists of each image, as JSON members."""
    members = [""] * len(truth.images)
    for name, key in LISTS.items():
        if name not in truth.listed:
            continue
        by_image: list[list[str]] = [[] for _ in members]
        for image, label in truth.listed[name].tolist():
            by_image[image].append(category_ids[label])
        for image, ids in enumerate(by_image):
            members[image] += f', "{key}": [{", ".join(ids)}]'
    return members


def _images(content: Content, image_ids: list[str], lists: list[str]) -> Iterator[str]:
    images = zip(content.images, image_ids, sizes(content), lists, strict=True)
    for name, identifier, size, listed in images:
        file_name = json.dumps(content.file_name(name), ensure_ascii=False)
        width_height = (
            ""
            if size is None
            else f', "width": {number_text(size[0])}, "height": {number_text(size[1])}'
        )
        yield f'{{"id": {identifier}, "file_name": {file_name}{width_height}{listed}}}'


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
    image_ids, category_ids = _json_ids(images), _json_ids(categories)
    scores = scores_of(table)
    ends = [""] * len(table)
    if scores is not None:
        ends = [f', "score": {number_text(score)}' for score in scores]
    rows = zip(table.image.tolist(), table.label.tolist(), _boxes(boxes), ends, strict=True)
    records = (
        f'{{"image_id": {image_ids[image]}, "category_id": {category_ids[label]}, '
        f'"bbox": {box}{end}}}'
        for image, label, box, end in rows
    )
    by_id = content.ground_truth is not None or content.class_ids != content.classes
    # Without scores, labels that the ground truth lacks count, so that they need names.
    kinds = {isinstance(name, str) for name in content.class_ids}
    has_unknown = len(kinds) > 1 or len(content.classes) > len(content.table.classes)
    if by_id and (table.has_scores or not has_unknown):
        return _text("", _list(records), "")
    category_records = (
        f'{{"id": {identifier}, "name": {json.dumps(name, ensure_ascii=False)}}}'
        for identifier, name in zip(category_ids, content.classes, strict=True)
    )
    return _text(
        "{", f'"annotations": {_list(records)},\n"categories": {_list(category_records)}', "}"
    )


def _rounded_notes(exact: Flags, rows: str) -> tuple[Note, ...]:
    message = f"{rows}: corners or areas change in the last bits as x, y, width, height"
    return nonzero_notes(
        Note("values-rounded", message, int(np.count_nonzero(~exact)), severity="info")
    )


def _boxes(boxes: Floats) -> Iterator[str]:
    for x, y, width, height in boxes.tolist():
        yield f"[{number_text(x)}, {number_text(y)}, {number_text(width)}, {number_text(height)}]"


def _json_ids(ids: list[Name]) -> list[str]:
    return [json.dumps(identifier, ensure_ascii=False) for identifier in ids]


def _list(records: Iterable[str]) -> str:
    return "[\n" + ",\n".join(records) + "\n]"


def _text(begin: str, middle: str, end: str) -> bytes:
    return f"{begin}{middle}{end}\n".encode()
