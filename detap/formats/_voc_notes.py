"""What is true of valid VOC files and worth telling their owner."""

from collections.abc import Iterable, Iterator
from typing import SupportsInt

import numpy as np

from detap.errors import Note
from detap.formats._voc_folder import Folder, Selection
from detap.formats._voc_lines import shown
from detap.tables import Floats, GroundTruth, Integers


def note(code: str, message: str, count: SupportsInt, *, warning: bool = True) -> tuple[Note, ...]:
    """Return the note, or nothing where it is true of no record."""
    return (Note(code, message, int(count), warning),) if count else ()


def folder_notes(
    folder: Folder, selection: Selection, image: Integers, nested: int
) -> Iterator[Note]:
    """Note what was left aside; `image` (G,) is the image of each object."""
    yield from note(
        "image-listed-twice",
        "images stand in the image set again; counted once",
        selection.repeated,
    )
    yield from note("left-aside", "folder entries are no annotations", folder.aside, warning=False)
    yield from note("nested-object", "object elements inside others are left aside", nested)
    filled = np.count_nonzero(np.bincount(image, minlength=len(selection.images)))
    empty = len(selection.images) - filled
    yield from note("image-without-object", "images have no object", empty, warning=False)


def class_notes(classes: Iterable[str]) -> Iterator[Note]:
    """Note classes that differ in case alone."""
    alike: dict[str, list[str]] = {}
    for name in classes:
        alike.setdefault(name.casefold(), []).append(name)
    groups = [names for names in alike.values() if len(names) > 1]
    examples = "; ".join(", ".join(map(shown, names)) for names in groups[:3])
    yield from note(
        "class-names-differ-in-case",
        f"class names differ in case alone, and are distinct classes: {examples}",
        len(groups),
    )


def ground_truth_notes(
    image: Integers, label: Integers, corners: Floats, sizes: Floats | None, encoding: str
) -> Iterator[Note]:
    """Note what is odd about the boxes (G, 4) of a ground truth."""
    yield from note(
        "repeated-object",
        "objects stand in their file twice; both count",
        _repeated(image, label, corners),
    )
    flat = (corners[:, 0] == corners[:, 2]) | (corners[:, 1] == corners[:, 3])
    if encoding == "corners":
        yield from note(
            "one-pixel-box",
            "ground truth boxes begin and end at the same pixel: one wide where pixels are "
            "counted inclusively, without area elsewhere",
            np.count_nonzero(flat),
            warning=False,
        )
    else:
        yield from note(
            "zero-area-ground-truth",
            "ground truth boxes have no area, so that nothing can find them",
            np.count_nonzero(flat),
        )
    if sizes is not None:
        yield from note(
            "box-beyond-image",
            "ground truth boxes reach beyond their image; none is clipped",
            _beyond(image, corners, sizes),
        )


def detection_notes(
    truth: GroundTruth,
    image: Integers,
    corners: Floats,
    score: Floats,
    encoding: str,
) -> Iterator[Note]:
    """Note what is odd about detections (N,)."""
    if not len(score):
        yield Note("no-detections", "there is no detection: every AP is 0", 1)
        return
    if score.min() < 0 or score.max() > 1:
        yield from note(
            "score-outside-unit",
            "scores are outside [0, 1]: fine where they are no probabilities",
            np.count_nonzero((score < 0) | (score > 1)),
            warning=False,
        )
    if truth.image_sizes is not None:
        beyond = _beyond(image, corners, truth.image_sizes)
        yield from note(
            "box-beyond-image", "detections reach beyond their image; none is clipped", beyond
        )
        if encoding == "xywh" and 2 * beyond > len(image):
            yield from _corners_note(image, corners, truth.image_sizes)
    if _in_unit_square(corners, encoding) and truth.corners.max() > 2:
        yield Note(
            "relative-boxes",
            "no detection leaves the first pixel: they look like shares of the image's size, where "
            "pixels are due",
            len(image),
        )


def _corners_note(image: Integers, corners: Floats, sizes: Floats) -> Iterator[Note]:
    """Note boxes that fit their images only when taken for two corners."""
    as_corners = corners.copy()
    as_corners[:, 2:] -= corners[:, :2]
    ordered = (as_corners[:, 2:] >= as_corners[:, :2]).all(axis=1)
    if 10 * np.count_nonzero(ordered) >= 9 * len(image) and 10 * _beyond(
        image, as_corners, sizes
    ) < len(image):
        yield Note(
            "looks-like-corners",
            "most detections reach beyond their image as x, y, width and height, and fit as two "
            "corners: boxes='corners' may be meant",
            len(image),
        )


def _in_unit_square(corners: Floats, encoding: str) -> bool:
    # From xc, yc, w, h in shares, x2 = x + w stays below 2.
    high = 1.0 if encoding == "corners" else 2.0
    return bool(corners[0].max() <= high and corners.max() <= high and corners.min() >= 0)


def _beyond(image: Integers, corners: Floats, sizes: Floats) -> int:
    """Return how many boxes reach beyond their image; none of unknown size (NaN) does."""
    width, height = np.where(np.isnan(sizes), np.inf, sizes).T[:, image]
    x1, y1, x2, y2 = corners.T
    return int(np.count_nonzero((x1 < 0) | (y1 < 0) | (x2 > width) | (y2 > height)))


def _repeated(image: Integers, label: Integers, corners: Floats) -> int:
    """Return how many rows are equal to an earlier one of their image."""
    # A hash that misses no equal pair is enough to rule them out, and far cheaper than the rows.
    mixed = (image.astype(np.uint64) << np.uint64(20)) ^ label.astype(np.uint64)
    bits = (corners + 0.0).view(np.uint64)
    for column, odd in zip(bits.T, (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F) * 2, strict=True):
        mixed = (mixed ^ (column >> np.uint64(29)) ^ column) * np.uint64(odd)
    ordered = np.sort(mixed)
    if not (ordered[1:] == ordered[:-1]).any():
        return 0
    table = zip(image.tolist(), label.tolist(), map(tuple, corners.tolist()), strict=True)
    return len(image) - len(set(table))
