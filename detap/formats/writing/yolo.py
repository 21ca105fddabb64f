"""Tables as YOLO's text files: ``data.yaml``, a list of images, their labels and predictions."""

import json
import os
from collections.abc import Iterator
from math import isnan

import numpy as np

from detap.errors import Note
from detap.formats.writing.content import (
    Content,
    check_file_names,
    check_words,
    lost_areas,
    lost_flags,
    rows_of_images,
    sizes,
    spelt,
)
from detap.tables.detection import Detections, Floats, GroundTruth

_IMAGES, _LABELS, _PREDICTIONS = "images/val", "labels/val", "predictions/labels"


def files(content: Content, notes: list[Note]) -> Iterator[tuple[str, bytes]]:
    """Give each file's name and what it holds; what it cannot hold is put into `notes`.

    Raises
    ------
    InputError
        Where the size of an image with boxes is not known: fractions are of it.
    """
    stems = content.stems()
    check_file_names(content, stems, "image")
    check_words(content, content.classes, "class")
    sides = _known_sizes(content)
    yield "data.yaml", _data_yaml(content)
    if content.truth is not None:
        listed = (f"./{_IMAGES}/{_file(content, k, stem)}\n" for k, stem in enumerate(stems))
        yield "val.txt", "".join(listed).encode()
    yield "sizes.csv", _size_table(stems, sides)
    if content.truth is not None:
        truth = content.truth
        notes += lost_flags(truth, ["crowd", "difficult", "ignore", "group_of"], "YOLO")
        notes += lost_areas(truth, "YOLO")
        yield from _texts(content, truth, _LABELS, sides, notes)
    if content.detections is not None:
        yield from _texts(content, content.detections, _PREDICTIONS, sides, notes)


def _file(content: Content, image: int, stem: str) -> str:
    suffix = os.path.splitext(content.file_name(content.images[image]))[1]
    return stem + (suffix or ".jpg")


def _data_yaml(content: Content) -> bytes:
    # A string of JSON is one of YAML, whatever the name holds.
    names = "".join(
        f"  {k}: {json.dumps(name, ensure_ascii=False)}\n" for k, name in enumerate(content.classes)
    )
    val = "" if content.truth is None else "val: val.txt\n"
    return f"path: .\n{val}nc: {len(content.classes)}\nnames:\n{names}".encode()


def _known_sizes(content: Content) -> Floats:
    """Return the sizes (I, 2) of the images; NaN where no box needs them."""
    known = [(np.nan, np.nan) if size is None else size for size in sizes(content)]
    found = np.array(known, np.float64).reshape(-1, 2)
    for table in (content.truth, content.detections):
        lacking = np.isnan(found).any(axis=1) & table.filled if table is not None else np.zeros(1)
        if lacking.any():
            name = content.images[int(np.flatnonzero(lacking)[0])]
            more = int(np.count_nonzero(lacking)) - 1
            raise content.refuse(
                f"the size of image {name!r} is not known, as YOLO's fractions need"
                + (f", nor those of {more} others" if more else ""),
                "give ground truth that has the sizes of its images",
            )
    return found


def _size_table(stems: tuple[str, ...], sides: Floats) -> bytes:
    lines = (
        f"{_field(stem)},{spelt(width)},{spelt(height)}\n"
        for stem, (width, height) in zip(stems, sides.tolist(), strict=True)
        if not isnan(width)
    )
    return ("image,width,height\n" + "".join(lines)).encode()


def _field(text: str) -> str:
    quoted = text.replace('"', '""')
    return f'"{quoted}"' if any(mark in text for mark in ',"') else text


def _texts(
    content: Content,
    table: GroundTruth | Detections,
    folder: str,
    sides: Floats,
    notes: list[Note],
) -> Iterator[tuple[str, bytes]]:
    fractions = _fractions(
        table.corners, sides[table.image], notes, table._title.replace("ground truth", "objects")
    )
    lines = [" ".join(map(spelt, box)) for box in fractions.tolist()]
    if isinstance(table, Detections):
        scores = map(spelt, table.score.tolist())
        lines = [f"{line} {score}" for line, score in zip(lines, scores, strict=True)]
    labels = table.label.tolist()
    for stem, rows in zip(content.stems(), rows_of_images(table), strict=True):
        text = "".join(f"{labels[row]} {lines[row]}\n" for row in rows)
        yield f"{folder}/{stem}.txt", text.encode()


def _fractions(corners: Floats, sides: Floats, notes: list[Note], what: str) -> Floats:
    """Return xc, yc, w, h (N, 4) as shares of the image's sides (N, 2)."""
    middle, length = (corners[:, :2] + corners[:, 2:]) / 2, corners[:, 2:] - corners[:, :2]
    found = np.hstack([middle / sides, length / sides])
    read = as_pixels(found, sides)
    off = np.abs(read - corners).max(axis=1, initial=0.0)
    if off.any():
        message = (
            f"{what} have corners that fractions do not lead back to: they are off by up to "
            f"{off.max():.1g} pixels"
        )
        notes.append(Note("last-bits", message, int(np.count_nonzero(off)), warning=False))
    return found


def as_pixels(boxes: Floats, sides: Floats) -> Floats:
    """Return the corners of xc, yc, w, h in fractions, as a reader computes them."""
    middle, half = boxes[:, :2] * sides, boxes[:, 2:] * sides / 2
    return np.hstack([middle - half, middle + half])
