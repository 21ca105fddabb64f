"""Notes about valid rows that name their images and classes."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.checks.tables import (
    box_notes,
    perhaps_undefined,
    repeated,
    scores_outside_note,
    zero_area_detections,
    zero_area_ground_truths,
)
from detap.errors import Note
from detap.tables.detection import Detections, Floats, GroundTruth, Integers, Name
from detap.tables.notes import NO_DETECTIONS
from detap.text_input import join_names, quote

ROUNDED = 0.01
"""Tolerance in pixels: rounding error of fractions with six digits."""


def nonzero_notes(*notes: Note) -> tuple[Note, ...]:
    """Return the notes with a nonzero count."""
    return tuple(note for note in notes if note.count)


def images_without_objects(images: int, image: NDArray[np.integer[Any]]) -> Note:
    """Note the images without objects; `image` (G,) is the image of each object."""
    filled = int(np.count_nonzero(np.bincount(image, minlength=images)))
    return Note(
        "images-without-objects", "images without objects", images - filled, severity="info"
    )


def images_copied(
    images: Sequence[Name], image: Integers, label: Integers, corners: Floats
) -> Note:
    """Note the images with the file name and the boxes of one in another folder, if most have."""
    by_file: dict[str, list[int]] = {}
    for row, name in enumerate(images):
        if "/" in str(name):
            by_file.setdefault(str(name).rpartition("/")[2], []).append(row)
    repeated = [rows for rows in by_file.values() if len(rows) > 1]
    order = np.lexsort((*corners.T, label, image)) if repeated else np.zeros(0, np.intp)
    start = np.searchsorted(image[order], np.arange(len(images) + 1))
    boxes = np.column_stack([label, corners])[order]
    contents = [[boxes[start[row] : start[row + 1]].tobytes() for row in rows] for rows in repeated]
    copies = sum(sum(map(bool, of_file)) - len({*filter(None, of_file)}) for of_file in contents)
    is_copy = 2 * copies > sum(len(rows) - 1 for rows in repeated)
    message = "images have the file name and boxes of one in another folder: is a folder a copy?"
    return Note("images-copied", message, copies * is_copy)


def angles_beyond_a_turn(count: int) -> Note:
    """Note the angles of more than 360 degrees, in either direction."""
    message = "angles beyond a full turn read without the turns"
    return Note("angles-beyond-a-turn", message, count, severity="info")


def files_skipped(names: Sequence[str], content: str) -> Note:
    """Note the folder entries without the expected content."""
    message = f"files skipped ({join_names(names)}): not {content}"
    return Note("files-skipped", message, len(names), severity="info")


def images_without_file(count: int) -> Note:
    """Note the images of the ground truth without a detections file."""
    message = "ground-truth images without a detections file"
    return Note("images-without-file", message, count, severity="info")


def classes_without_file(ground_truth: GroundTruth, classes: Iterable[str]) -> Note:
    """Note the classes of the ground truth without a detections file."""
    known = set(classes)
    missing = [name for name in ground_truth.classes if name not in known]
    more = perhaps_undefined(ground_truth, missing)
    message = f"classes without a detections file have AP 0: {join_names(missing)}{more}"
    return Note("classes-without-file", message, len(missing))


def class_notes(classes: Iterable[str]) -> tuple[Note, ...]:
    """Note class names that differ only in case."""
    by_folded_name: dict[str, list[str]] = {}
    for name in classes:
        by_folded_name.setdefault(name.casefold(), []).append(name)
    groups = [names for names in by_folded_name.values() if len(names) > 1]
    examples = "; ".join(", ".join(map(quote, names)) for names in groups[:3])
    message = f"class names differ only in case and stay separate classes: {examples}"
    return nonzero_notes(Note("names-differ-in-case", message, sum(map(len, groups))))


def ground_truth_notes(truth: GroundTruth, box_format: str) -> Iterator[Note]:
    """Yield notes about the boxes of a ground truth."""
    corners = truth.corners
    flat = int(np.count_nonzero((corners[:, :2] == corners[:, 2:]).any(axis=1)))
    duplicates = repeated(truth.image, truth.label, corners)
    if duplicates:
        yield Note("repeated-objects", "duplicate objects in their file; all count", duplicates)
    if flat and box_format == "xywh":
        yield zero_area_ground_truths(flat)
    elif flat:
        message = (
            "ground-truth boxes begin and end at the same pixel: size 1 with inclusive pixels, "
            "else 0"
        )
        yield Note("one-pixel-boxes", message, flat, severity="info")
    yield from box_notes(
        "ground-truth", (corners, truth.image), truth.image_sizes, ROUNDED, corners=False
    )


def detection_notes(
    table: Detections,
    truth: GroundTruth,
    margin: float,
    box_format: str,
    *,
    fixed: bool = False,
    empty: int = 0,
) -> Iterator[Note]:
    """Yield notes about detections, of which `empty` have no area."""
    if not len(table):
        yield NO_DETECTIONS
        return
    outside = int(np.count_nonzero((table.score < 0) | (table.score > 1)))
    if outside:
        yield scores_outside_note(table.score.min(), table.score.max(), outside)
    if empty:
        yield zero_area_detections(empty)
    boxes, corners = (table.corners, table.image), box_format == "xywh"
    yield from box_notes(
        "detections", boxes, truth.image_sizes, margin, corners=corners, fixed=fixed
    )
