"""Write PASCAL VOC: ``Annotations``, an image set, and text files of detections."""

from collections.abc import Iterator
from xml.sax.saxutils import escape

import numpy as np

from detap.errors import Note
from detap.formats.content import (
    Content,
    check_file_names,
    check_words,
    lost_areas,
    lost_flags,
    lost_unused,
    number_text,
    rounded_areas,
    rows_of,
    rows_of_images,
    scores_of,
    sizes,
)
from detap.formats.stem_matching import base_name
from detap.formats.text.detections import classes_of_stems
from detap.tables.detection import Detections, GroundTruth

IMAGE_SET, DETECTIONS = "default", "detections"
_START = f"comp4_det_{IMAGE_SET}_"


def files(content: Content, notes: list[Note]) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of each file; add lost data to `notes`.

    Corners do not change: VOC counts pixels from 1 and COCO from 0, but ground truth and detections
    are converted alike.
    """
    stems = content.stems()
    check_file_names(content, stems, "image")
    if content.ground_truth is not None:
        yield from _tree(content, content.ground_truth, stems, notes)
    if content.detections is not None:
        yield from _detections(content, content.detections, stems, notes)


def _tree(
    content: Content, truth: GroundTruth, stems: tuple[str, ...], notes: list[Note]
) -> Iterator[tuple[str, bytes]]:
    check_words(content, truth.classes, "class")
    notes += lost_flags(truth, ["crowd", "ignore", "group_of"], "VOC")
    notes += lost_areas(truth, "VOC")
    notes += rounded_areas(truth, "objects")
    notes += lost_unused(truth, "VOC")
    used = [truth.classes[k] for k in np.unique(truth.label).tolist()]
    if used != sorted(used):
        message = "class order not supported by VOC; readers sort classes by name"
        notes.append(Note("classes-sorted", message, len(used), severity="info"))
    yield f"ImageSets/Main/{IMAGE_SET}.txt", "".join(f"{name}\n" for name in stems).encode()
    names = [escape(name) for name in truth.classes]
    labels = [names[label] for label in truth.label.tolist()]
    columns = labels, truth.difficult.tolist(), truth.corners.tolist()
    objects = []
    for label, difficult, corners in zip(*columns, strict=True):
        pairs = zip(("xmin", "ymin", "xmax", "ymax"), map(number_text, corners), strict=True)
        box = "".join(f"<{tag}>{text}</{tag}>" for tag, text in pairs)
        objects.append(
            f"<object>\n<name>{label}</name>\n<pose>Unspecified</pose>\n<truncated>0</truncated>\n"
            f"<difficult>{difficult:d}</difficult>\n<bndbox>{box}</bndbox>\n</object>\n"
        )
    for stem, image, size, rows in zip(
        stems, content.images, sizes(content), rows_of_images(truth), strict=True
    ):
        sides = ""
        if size is not None:
            width, height = map(number_text, size)
            sides = f"<width>{width}</width><height>{height}</height><depth>3</depth>"
            sides = f"<size>{sides}</size>\n"
        body = "".join(objects[row] for row in rows)
        name = escape(base_name(content.file_name(image)))
        text = f"<annotation>\n<filename>{name}</filename>\n{sides}{body}</annotation>\n"
        yield f"Annotations/{stem}.xml", text.encode()


def _detections(
    content: Content, table: Detections, stems: tuple[str, ...], notes: list[Note]
) -> Iterator[tuple[str, bytes]]:
    corners = table.corners
    notes += rounded_areas(table, "detections")
    scores = scores_of(table)
    rows = corners if scores is None else np.column_stack([scores, corners])
    lines = [" ".join(map(number_text, row)) for row in rows.tolist()]
    known = len(content.table.classes)
    used = set(table.label.tolist())
    written = [k for k in range(len(table.classes)) if k < known or k in used]
    by_class = _by_class(content, [table.classes[k] for k in written], stems)
    if by_class:
        words, indices = stems, table.image
        parts = rows_of(table.label, len(table.classes))
        named = {f"{_START}{table.classes[k]}": parts[k] for k in written}
    else:
        words, indices = table.classes, table.label
        named = dict(zip(stems, rows_of_images(table), strict=True))
    index = indices.tolist()
    for name, rows in named.items():
        text = "".join(f"{words[index[row]]} {lines[row]}\n" for row in rows)
        yield f"{DETECTIONS}/{name}.txt", text.encode()


def _by_class(content: Content, classes: list[str], stems: tuple[str, ...]) -> bool:
    """Return True for a file per class, as in the VOC devkit; False for one per image."""
    known = frozenset(content.table.classes)
    layouts = classes_of_stems([_START + name for name in classes], known)
    if all(len(stem.split()) == 1 for stem in stems) and all(
        layout.name == name and len(layout.known) < 2 and "/" not in name
        for name, layout in zip(classes, layouts.values(), strict=True)
    ):
        check_file_names(content, classes, "class")
        return True
    for name in classes:
        if len(name.split()) != 1:
            raise content.refuse(
                f"class {name!r} and image names contain blanks, so neither can be a text column",
                "rename them, or convert to coco",
            )
    return False
