"""What is true of valid boxes, by the names that files give them, and worth telling their owner."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.errors import Note
from detap.spelling import quoted, some
from detap.tables.detection import Floats, GroundTruth, Integers
from detap.tables.doubts import perhaps_undefined, repeated

_ROUNDED = 0.01
"""In pixels: fractions of six digits put a box so far beyond its image that ends with it."""


def told(*notes: Note) -> tuple[Note, ...]:
    """Return the notes that are true of any record."""
    return tuple(note for note in notes if note.count)


def images_without_objects(images: int, image: NDArray[np.integer[Any]]) -> Note:
    """Note the images that have none of the objects, which are in the images `image` (G,)."""
    filled = int(np.count_nonzero(np.bincount(image, minlength=images)))
    return Note("images-without-objects", "images have no object", images - filled, warning=False)


def left_aside(count: int, what: str, of: str = "the folder") -> Note:
    """Note the entries of a folder that are not `what` is read: annotations, say."""
    return Note("left-aside", f"entries of {of} are no {what}", count, warning=False)


def images_without_file(count: int) -> Note:
    """Note the images of the ground truth that have no file of detections."""
    message = "images of the ground truth have no detections file"
    return Note("images-without-file", message, count, warning=False)


def without_file(truth: GroundTruth, given: Iterable[str]) -> Note:
    """Note the classes of the ground truth that are not `given`: those of detections files."""
    known = set(given)
    absent = [name for name in truth.classes if name not in known]
    message = f"classes of the ground truth have no detections file, their AP is 0: {some(absent)}"
    message += perhaps_undefined(truth, absent)
    return Note("classes-without-file", message, len(absent))


def class_notes(classes: Iterable[str]) -> tuple[Note, ...]:
    """Note classes that differ in case alone."""
    alike: dict[str, list[str]] = {}
    for name in classes:
        alike.setdefault(name.casefold(), []).append(name)
    groups = [names for names in alike.values() if len(names) > 1]
    examples = "; ".join(", ".join(map(quoted, names)) for names in groups[:3])
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
    return told(
        Note(
            "repeated-objects",
            "objects stand in their file twice; both count",
            repeated(image, label, corners),
        ),
        Note(
            "one-pixel-boxes",
            "ground truth boxes begin and end at the same pixel: one wide where pixels are "
            "counted inclusively, without area elsewhere",
            flat if encoding == "xyxy" else 0,
            warning=False,
        ),
        Note(
            "zero-area-ground-truth",
            "ground truth boxes have no area: nothing can find them",
            flat if encoding == "xywh" else 0,
        ),
        Note(
            "ground-truth-beyond-image",
            "ground truth boxes reach beyond their image; none is clipped",
            _beyond(image, corners, sizes),
        ),
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
    beyond = _beyond(image, corners, truth.image_sizes)
    swapped = (
        encoding == "xywh"
        and 2 * beyond > len(image)
        and _fit_as_corners(image, corners, truth.image_sizes)
    )
    return told(
        Note(
            "scores-outside-unit",
            f"scores lie outside 0 to 1 ({low:.6g} to {high:.6g}); only their order counts",
            int(outside),
            warning=False,
        ),
        Note(
            "detections-beyond-image",
            "detections reach beyond their image; none is clipped",
            beyond,
        ),
        Note(
            "detections-look-like-corners",
            "detections reach beyond their image as x, y, width and height, and fit as two "
            "corners, as most do: corners may be meant (--dt-boxes xyxy)",
            beyond if swapped else 0,
        ),
    )


def _fit_as_corners(image: Integers, corners: Floats, sizes: Floats | None) -> bool:
    """Return whether boxes fit their images when x, y, w, h are taken for two corners."""
    taken = corners.copy()
    taken[:, 2:] -= corners[:, :2]
    ordered = np.count_nonzero((taken[:, 2:] >= taken[:, :2]).all(axis=1))
    return bool(10 * ordered >= 9 * len(image)) and 10 * _beyond(image, taken, sizes) < len(image)


def _beyond(image: Integers, corners: Floats, sizes: Floats | None) -> int:
    """Return how many boxes reach beyond their image; none of unknown size (NaN) does.

    Decimals that a writer has rounded are no reach.
    """
    if sizes is None:
        return 0
    width, height = np.where(np.isnan(sizes), np.inf, sizes).T[:, image] + _ROUNDED
    x1, y1, x2, y2 = corners.T
    return int(np.count_nonzero((x1 < -_ROUNDED) | (y1 < -_ROUNDED) | (x2 > width) | (y2 > height)))
