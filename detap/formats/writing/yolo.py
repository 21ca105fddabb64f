"""Tables as YOLO's text files: ``data.yaml``, a list of images, their labels and predictions."""

import csv
import json
import os
from collections.abc import Iterator
from io import StringIO
from math import isnan

import numpy as np

from detap.checks.tables import pair_key, repeats
from detap.errors import Note
from detap.formats.writing.content import (
    Content,
    check_file_names,
    check_words,
    lost,
    lost_areas,
    lost_flags,
    rows_of_images,
    sizes,
    spelt,
)
from detap.formats.yolo.boxes import HIGHEST, LOWEST, in_pixels
from detap.tables.detection import Detections, Floats, GroundTruth, encode_boxes

_DECIMALS = range(3, 17)
_STEPS = (0, -1, 1, -2, 2)
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
    if content.ground_truth is not None:
        listed = (f"./{_IMAGES}/{_file(content, k, stem)}\n" for k, stem in enumerate(stems))
        yield "val.txt", "".join(listed).encode()
    yield "sizes.csv", _size_table(stems, sides)
    if content.ground_truth is not None:
        truth = content.ground_truth
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
    val = "" if content.ground_truth is None else "val: val.txt\n"
    return f"path: .\n{val}nc: {len(content.classes)}\nnames:\n{names}".encode()


def _known_sizes(content: Content) -> Floats:
    """Return the sizes (I, 2) of the images; NaN where no box needs them."""
    known = [(np.nan, np.nan) if size is None else size for size in sizes(content)]
    found = np.array(known, np.float64).reshape(-1, 2)
    for table in (content.ground_truth, content.detections):
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
    table = StringIO()
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow(("image", "width", "height"))
    for stem, (width, height) in zip(stems, sides.tolist(), strict=True):
        if not isnan(width):
            rows.writerow((stem, spelt(width), spelt(height)))
    return table.getvalue().encode()


def _texts(
    content: Content,
    table: GroundTruth | Detections,
    folder: str,
    sides: Floats,
    notes: list[Note],
) -> Iterator[tuple[str, bytes]]:
    fractions = _fractions(table, sides[table.image], notes)
    lines = [" ".join(map(spelt, box)) for box in fractions.tolist()]
    if isinstance(table, Detections):
        scores = map(spelt, table.score.tolist())
        lines = [f"{line} {score}" for line, score in zip(lines, scores, strict=True)]
    labels = table.label.tolist()
    for stem, rows in zip(content.stems(), rows_of_images(table), strict=True):
        text = "".join(f"{labels[row]} {lines[row]}\n" for row in rows)
        yield f"{folder}/{stem}.txt", text.encode()


def _fractions(table: GroundTruth | Detections, sides: Floats, notes: list[Note]) -> Floats:
    """Return xc, yc, w, h (N, 4) as shares of the image's sides (N, 2)."""
    what = "detections" if isinstance(table, Detections) else "objects"
    found = np.empty((len(table), 4))
    for axis in (0, 1):
        found[:, axis], found[:, axis + 2] = _shares(
            table.corners[:, axis], table.corners[:, axis + 2], sides[:, axis]
        )
    pixels = in_pixels(found, np.zeros(len(table), np.bool_), sides)
    corners, area = encode_boxes(pixels, "xywh")
    off = np.abs(corners - table.corners).max(axis=1, initial=0.0)
    if (off.any() or (area != table.box_area).any()) and len(table):
        message = (
            f"{what} have corners or areas that fractions do not lead back to: corners are off by "
            f"up to {off.max():.1g} pixels"
        )
        count = int(np.count_nonzero((off > 0) | (area != table.box_area)))
        notes.append(Note("values-rounded", message, count, severity="info"))
    beyond = np.flatnonzero(((found < LOWEST) | (found > HIGHEST)).any(axis=1))
    if len(beyond):
        message = f"{what} lie beyond their image, where readers of YOLO refuse them"
        notes.append(Note("data-lost", message, len(beyond)))
    if isinstance(table, GroundTruth):
        again = repeats(pair_key(table.image, table.label), found)
        notes += lost("objects repeat another, which readers of YOLO leave out", again)
    return found


def _shares(low: Floats, high: Floats, side: Floats) -> tuple[Floats, Floats]:
    """Return middle and length (N,) as shares of a side that lead back to both ends, if any do.

    The shortest decimals are tried first, which is what files have, then the floats around.
    """
    middle, length = (low + high) / 2 / side, (high - low) / side
    found = middle.copy(), length.copy()
    missing = np.ones(len(low), np.bool_)
    tried = [(np.round(middle, places), np.round(length, places)) for places in _DECIMALS]
    steps = [at * np.spacing(np.abs(share)) for share in (middle, length) for at in _STEPS]
    tried += [(middle + a, length + b) for a in steps[: len(_STEPS)] for b in steps[len(_STEPS) :]]
    for one, other in tried:
        first, half = one * side, other * side / 2
        start = first - half
        good = missing & (start == low) & (start + (first + half - start) == high)
        found[0][good], found[1][good] = one[good], other[good]
        missing &= ~good
    return found
