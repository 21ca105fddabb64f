"""What is true of valid boxes, by the names that files give them, and worth telling their owner."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.checks.tables import (
    box_notes,
    perhaps_undefined,
    repeated,
    scores_outside_note,
    zero_area_truths,
)
from detap.errors import Note
from detap.tables.detection import Floats, GroundTruth, Integers
from detap.text_input import join_names, quote

_ROUNDED = 0.01
"""In pixels: fractions of six digits put a box so far beyond its image that ends with it."""


def told(*notes: Note) -> tuple[Note, ...]:
    """Return the notes that are true of any record."""
    return tuple(note for note in notes if note.count)


def images_without_objects(images: int, image: NDArray[np.integer[Any]]) -> Note:
    """Note the images that have none of the objects, which are in the images `image` (G,)."""
    filled = int(np.count_nonzero(np.bincount(image, minlength=images)))
    return Note("images-without-objects", "images have no object", images - filled, severity="info")


def left_aside(count: int, what: str, of: str = "the folder") -> Note:
    """Note the entries of a folder that are not `what` is read: annotations, say."""
    return Note("files-skipped", f"entries of {of} are no {what}", count, severity="info")


def images_without_file(count: int) -> Note:
    """Note the images of the ground truth that have no file of detections."""
    message = "images of the ground truth have no detections file"
    return Note("images-without-file", message, count, severity="info")


def without_file(truth: GroundTruth, given: Iterable[str]) -> Note:
    """Note the classes of the ground truth that are not `given`: those of detections files."""
    known = set(given)
    absent = [name for name in truth.classes if name not in known]
    message = (
        f"classes of the ground truth have no detections file, their AP is 0: {join_names(absent)}"
    )
    message += perhaps_undefined(truth, absent) if absent else ""
    return Note("classes-without-file", message, len(absent))


def class_notes(classes: Iterable[str]) -> tuple[Note, ...]:
    """Note classes that differ in case alone."""
    alike: dict[str, list[str]] = {}
    for name in classes:
        alike.setdefault(name.casefold(), []).append(name)
    groups = [names for names in alike.values() if len(names) > 1]
    examples = "; ".join(", ".join(map(quote, names)) for names in groups[:3])
    return told(
        Note(
            "names-differ-in-case",
            f"class names differ from another's in case only; they are classes apart: {examples}",
            sum(map(len, groups)),
        )
    )


def ground_truth_notes(
    image: Integers, label: Integers, corners: Floats, sizes: Floats | None, encoding: str
) -> tuple[Note, ...]:
    """Note what is odd about the boxes (G, 4) of a ground truth."""
    flat = int(
        np.count_nonzero((corners[:, 0] == corners[:, 2]) | (corners[:, 1] == corners[:, 3]))
    )
    if encoding == "xywh":
        without_area = zero_area_truths(flat)
    else:
        message = (
            "ground truth boxes begin and end at the same pixel: one wide where pixels are "
            "counted inclusively, without area elsewhere"
        )
        without_area = Note("one-pixel-boxes", message, flat, severity="info")
    return told(
        Note(
            "repeated-objects",
            "objects stand in their file twice; both count",
            repeated(image, label, corners),
        ),
        without_area,
        *box_notes("ground-truth", (corners, image), sizes, _ROUNDED, corners=False),
    )


def detection_notes(
    truth: GroundTruth,
    image: Integers,
    corners: Floats,
    score: Floats,
    encoding: str,
) -> tuple[Note, ...]:
    """Note what is odd about detections (N,)."""
    if not len(score):
        return (Note("no-detections", "there is no detection: every AP is 0", 1),)
    low, high = float(score.min()), float(score.max())
    outside = np.count_nonzero((score < 0) | (score > 1)) if low < 0 or high > 1 else 0
    return told(
        scores_outside_note(low, high, int(outside)),
        *box_notes(
            "detections",
            (corners, image),
            truth.image_sizes,
            _ROUNDED,
            corners=encoding == "xywh",
        ),
    )
