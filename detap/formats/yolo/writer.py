"""Write YOLO: ``data.yaml``, a list of images, labels and predictions."""

import csv
import json
import os
from collections.abc import Iterator
from io import StringIO
from itertools import product
from math import isnan

import numpy as np

from detap.checks.tables import pair_key, repeats
from detap.core.polygons import box_polygons
from detap.errors import Note
from detap.formats.by_name.notes import nonzero_notes
from detap.formats.content import (
    Content,
    check_file_names,
    check_words,
    known_sizes,
    lost,
    lost_areas,
    lost_flags,
    number_text,
    rows_of_images,
    scores_of,
)
from detap.formats.yolo.shapes import (
    HIGHEST,
    LABELS_REACH,
    LOWEST,
    PREDICTIONS_REACH,
    in_pixels,
)
from detap.protocols.fields import default_sigmas
from detap.tables.detection import Detections, Floats, GroundTruth, encode_boxes

_DECIMALS = range(3, 17)
_STEPS = (0, -1, 1, -2, 2)
_IMAGES, _LABELS, _PREDICTIONS = "images/val", "labels/val", "predictions/labels"


def files(content: Content, notes: list[Note]) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of each file; add lost data to `notes`."""
    stems = content.stems()
    check_file_names(content, stems, "image")
    check_words(content, content.classes, "class")
    sides = known_sizes(content)
    shape = _shape_of(content, notes)
    yield "data.yaml", _data_yaml(content, shape)
    if content.ground_truth is not None:
        suffixes = (os.path.splitext(content.file_name(image))[1] for image in content.images)
        images = zip(stems, suffixes, strict=True)
        listed = (f"./{_IMAGES}/{stem}{suffix or '.jpg'}\n" for stem, suffix in images)
        yield "val.txt", "".join(listed).encode()
    sizes = StringIO()
    table = csv.writer(sizes, lineterminator="\n")
    table.writerow(("image", "width", "height"))
    for stem, (width, height) in zip(stems, sides.tolist(), strict=True):
        if not isnan(width):
            table.writerow((stem, number_text(width), number_text(height)))
    yield "sizes.csv", sizes.getvalue().encode()
    if content.ground_truth is not None:
        truth = content.ground_truth
        notes += lost_flags(truth, ["crowd", "difficult", "ignore", "group_of"], "YOLO")
        if shape != "polygons":
            notes += lost_areas(truth, "YOLO")
        yield from _texts(content, shape, truth, sides, notes)
    if content.detections is not None:
        yield from _texts(content, shape, content.detections, sides, notes)


def _shape_of(content: Content, notes: list[Note]) -> str:
    """Return the shape of all rows: "polygons", "keypoints", or "" for boxes."""
    tables = [table for table in (content.ground_truth, content.detections) if table is not None]
    if any(table.polygons is not None for table in tables):
        return "polygons"
    posed = [table.keypoints is not None for table in tables]
    if not any(posed):
        return ""
    if content.ground_truth is None or not all(posed):
        count = sum(len(table) for table in tables if table.keypoints is not None)
        message = "keypoints of one side only, without kpt_shape for YOLO"
        notes += lost(message, np.ones(count, np.bool_))
        return ""
    return "keypoints"


def _data_yaml(content: Content, shape: str) -> bytes:
    # A JSON string is a valid YAML string.
    names = "".join(
        f"  {k}: {json.dumps(name, ensure_ascii=False)}\n" for k, name in enumerate(content.classes)
    )
    truth = content.ground_truth
    val = "" if truth is None else "val: val.txt\n"
    if shape == "keypoints" and truth is not None and truth.keypoints is not None:
        count = truth.keypoints.shape[1]
        val += f"kpt_shape: [{count}, 3]\n"
        if truth.sigmas and truth.sigmas != default_sigmas(count):
            val += f"kpt_oks_sigmas: [{', '.join(map(repr, truth.sigmas))}]\n"
    return f"path: .\n{val}nc: {len(content.classes)}\nnames:\n{names}".encode()


def _texts(
    content: Content,
    shape: str,
    table: GroundTruth | Detections,
    sides: Floats,
    notes: list[Note],
) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a table, whose images have these sides (I, 2)."""
    is_truth = isinstance(table, GroundTruth)
    rows, size = "objects" if is_truth else "detections", sides[table.image]
    if shape == "polygons":
        corners = box_polygons(table.corners) if table.polygons is None else table.polygons
        fractions = _fractions_of(corners, np.tile(size, 4), notes, rows)
        reach = LABELS_REACH if is_truth else PREDICTIONS_REACH
        how_far, low, high = "far beyond", -reach, 1 + reach
    else:
        fractions = _box_fractions(table, size, notes, rows)
        how_far, low, high = "beyond", LOWEST, HIGHEST
    beyond = ((fractions < low) | (fractions > high)).any(axis=1)
    message = f"{rows} extend {how_far} the image; YOLO readers reject them"
    notes += lost(message, np.asarray(beyond))
    if is_truth:
        repeated = repeats(pair_key(table.image, table.label), fractions)
        notes += lost("duplicate objects; YOLO readers ignore them", repeated)
    if shape == "keypoints":
        fractions = np.hstack([fractions, _keypoint_fractions(table, size, notes, rows)])
    lines = [" ".join(map(number_text, row)) for row in fractions.tolist()]
    if (scores := scores_of(table)) is not None:
        texts = map(number_text, scores)
        lines = [f"{line} {score}" for line, score in zip(lines, texts, strict=True)]
    labels, folder = table.label.tolist(), _LABELS if is_truth else _PREDICTIONS
    for stem, of_image in zip(content.stems(), rows_of_images(table), strict=True):
        text = "".join(f"{labels[row]} {lines[row]}\n" for row in of_image)
        yield f"{folder}/{stem}.txt", text.encode()


def _keypoint_fractions(
    table: GroundTruth | Detections, size: Floats, notes: list[Note], rows: str
) -> Floats:
    """Return x, y and visibility of keypoints, (N, 3 K); 1 for detections."""
    assert table.keypoints is not None
    points, count = table.keypoints[:, :, :2], table.keypoints.shape[1]
    labeled = np.ones(points.shape[:2])
    high = 1 + PREDICTIONS_REACH
    if isinstance(table, GroundTruth):
        labeled = np.clip(np.ceil(table.keypoints[:, :, 2]), 0, 2)
        points = np.where(labeled[:, :, None] > 0, points, 0.0)
        high = HIGHEST
    fractions = _fractions_of(points, size[:, None], notes, rows)
    beyond = ((fractions < 1 - high) | (fractions > high)).any(axis=(1, 2))
    message = f"keypoints of {rows} are beyond the image; YOLO readers reject them"
    notes += lost(message, np.asarray(beyond))
    return np.concatenate([fractions, labeled[:, :, None]], axis=2).reshape(len(points), 3 * count)


def _fractions_of(pixels: Floats, sides: Floats, notes: list[Note], rows: str) -> Floats:
    """Return coordinates (N, ...) as fractions of sides, bit-exact if possible."""
    fractions = pixels / sides
    nearest, missing = fractions.copy(), fractions * sides != pixels
    tried = [np.round(fractions, d) for d in _DECIMALS]
    for candidate in tried + [fractions + k * np.spacing(fractions) for k in _STEPS]:
        exact = missing & (candidate * sides == pixels)
        nearest[exact] = candidate[exact]
        missing &= ~exact
    count = int(np.count_nonzero(missing.any(axis=tuple(range(1, missing.ndim)))))
    message = f"{rows}: coordinates change in the last bits as fractions"
    notes += nonzero_notes(Note("values-rounded", message, count, severity="info"))
    return nearest


def _box_fractions(
    table: GroundTruth | Detections, size: Floats, notes: list[Note], rows: str
) -> Floats:
    """Return xc, yc, w, h (N, 4) as fractions of the image size (N, 2), bit-exact if possible.

    Short decimals are tried first, as in most files, then adjacent floats.
    """
    low, high = table.corners[:, :2], table.corners[:, 2:]
    middle, length = (low + high) / 2 / size, (high - low) / size
    center, sides = middle.copy(), length.copy()
    missing = np.ones(low.shape, np.bool_)
    tried = [(np.round(middle, d), np.round(length, d)) for d in _DECIMALS]
    near = [[value + k * np.spacing(np.abs(value)) for k in _STEPS] for value in (middle, length)]
    for one, other in [*tried, *product(*near)]:
        first, half = one * size, other * size / 2
        start = first - half
        exact = missing & (start == low) & (start + (first + half - start) == high)
        center[exact], sides[exact] = one[exact], other[exact]
        missing &= ~exact
    fractions = np.hstack([center, sides])
    pixels = in_pixels(fractions, np.zeros(len(table), np.bool_), size)
    corners, area = encode_boxes(pixels, "xywh")
    off = np.abs(corners - table.corners).max(axis=1, initial=0.0)
    count = int(np.count_nonzero((off > 0) | (area != table.box_area)))
    message = f"{rows}: corners or areas are rounded as fractions, corners by up to "
    message += f"{off.max(initial=0):.1g} pixels"
    notes += nonzero_notes(Note("values-rounded", message, count, severity="info"))
    return fractions
