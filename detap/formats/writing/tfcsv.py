"""Write TensorFlow's CSV: ``annotations.csv`` and ``detections.csv``."""

import csv
from collections.abc import Iterator
from io import StringIO

import numpy as np

from detap.checks.tables import pair_key, repeats
from detap.errors import Note
from detap.formats.writing.content import (
    Content,
    check_words,
    lost,
    lost_areas,
    lost_flags,
    lost_unused,
    number_text,
    rounded_areas,
    sizes,
)
from detap.tables.detection import Detections, GroundTruth

TRUTH, DETECTIONS = "annotations.csv", "detections.csv"

_COLUMNS = ("filename", "width", "height", "class", "xmin", "ymin", "xmax", "ymax")


def files(content: Content, notes: list[Note]) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of each file; add lost data to `notes`.

    An image without boxes has a row with an empty class and box.
    """
    check_words(content, content.classes, "class")
    check_words(content, [*map(content.file_name, content.images)], "image")
    if content.ground_truth is not None:
        truth = content.ground_truth
        notes += lost_flags(truth, ["crowd", "difficult", "ignore", "group_of"], "TensorFlow CSV")
        notes += lost_areas(truth, "TensorFlow CSV")
        notes += lost_unused(truth, "TensorFlow CSV")
        repeated = repeats(pair_key(truth.image, truth.label), truth.corners)
        notes += lost("duplicate objects; readers drop them", repeated)
        yield TRUTH, _table(content, truth)
    if content.detections is not None:
        yield DETECTIONS, _table(content, content.detections)
    for table in (content.ground_truth, content.detections):
        notes += () if table is None else rounded_areas(table, "boxes")


def _table(content: Content, table: GroundTruth | Detections) -> bytes:
    text = StringIO()
    rows = csv.writer(text, lineterminator="\n")
    scored = isinstance(table, Detections)
    rows.writerow((*_COLUMNS, *(("score",) if scored else ())))
    images = [
        (content.file_name(name), *(map(number_text, size) if size else ("", "")))
        for name, size in zip(content.images, sizes(content), strict=True)
    ]
    columns = table.image.tolist(), table.label.tolist(), table.corners.tolist()
    scores = table.score.tolist() if isinstance(table, Detections) else [None] * len(table)
    for image, label, corners, score in zip(*columns, scores, strict=True):
        numbers = [*corners, *([] if score is None else [score])]
        rows.writerow((*images[image], table.classes[label], *map(number_text, numbers)))
    for number in np.flatnonzero(~table.images_with_rows).tolist() if not scored else ():
        rows.writerow((*images[number], *[""] * 5))
    return text.getvalue().encode()
