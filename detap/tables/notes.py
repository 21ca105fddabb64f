"""Notes shared by tables, and boxes of negative width or height."""

import json
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from detap.errors import Note, Problem

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

INSIST = "as_is=True (--as-is)"
"""Option that turns plausibility checks off."""

CLASS_IDS = "use the ground truth's ids, or pass --dt-class-names FILE (the detector's classes)"
"""Hint for wrong class ids of a file."""

BOX_LAYOUTS = {
    "xywh": "[x, y, width, height]",
    "xyxy": "[x1, y1, x2, y2]",
    "cxcywh": "[center x, center y, width, height]",
}
"""Text of each box format in messages."""

BOX_OPTIONS = {"ground-truth": "--gt-boxes", "detections": "--dt-boxes"}
"""Options for the box format, by role."""

AS_IS = Note("as-is", "plausibility checks are off", severity="info")
"""Note of a table read with ``as_is=True``."""

FRACTIONS = Note(
    "normalized-boxes-unknown-size",
    "boxes are normalized and image sizes are unknown: IoU is valid, areas are not; use "
    "--image-sizes FILE",
    severity="info",
)
"""Note of a table of normalized boxes without image sizes."""

NO_DETECTIONS = Note("no-detections", "no detections: every AP is 0")
"""Note that applies to several inputs only if it applies to each."""

UNICODE_FORM = Note(
    "names-in-unicode-form",
    "names of the two inputs that differ only in Unicode form (NFC, NFD) are the same",
    severity="info",
)
"""Note of names that print alike."""

INTERLEAVED = Note(
    "interleaved-inputs",
    "images of the inputs interleave: tied scores are ordered by image, not by file position; one "
    "file in another order may have another AP",
    severity="info",
)
"""Note of several inputs under a protocol that orders ties by file position."""

PER_INPUT = frozenset({AS_IS.code, FRACTIONS.code, NO_DETECTIONS.code, INTERLEAVED.code})
"""Codes of notes on whole inputs, whose counts are not added when merging."""

KEYPOINT_AREAS = "keypoint-areas"
"""Code of the note on objects with keypoints and without area, which OKS takes from their box."""

POLYGONS_BOUNDED = "polygons-bounded"
"""Code of the note that polygons are replaced by their bounding boxes."""

ORIENTED_BOXES = "oriented-boxes"
"""Code of the note that rows are oriented boxes, judging by their columns alone."""

EXTRA_IMAGES = "extra-images"
"""Code of the note on detections of images that the ground truth lacks, which are left out."""

SAME_IMAGES = "use results for the same images"
LEAVE_OUT = 'leave such detections out by --extra-images drop (extra_images="drop" in Python)'

_FEW = 20
_LISTED = 10

# The ends of a side rise together, position and size do not: over both axes, the correlations in
# 40 real files add up to at least 0.7 for corners, and to at most 0.2 for x, y, width, height.
_RISE, _FEWEST_ROWS = 0.5, 10
_OFTEN = 5
"""One box in this many suggests exchanged corners; fewer may be wrong for another reason."""


def extra_images_note(rows: int, images: int) -> Note:
    """Return the note of detections that are left out."""
    subject = "an image" if images == 1 else f"{images} images"
    message = f"detections of {subject} that the ground truth lacks are left out"
    return Note(EXTRA_IMAGES, message, rows, severity="info")


def extra_images_problem(
    location: tuple[str, str], message: str, rows: int, images: int, hint: str = SAME_IMAGES
) -> Problem:
    """Return the problem of detections of unknown images; another `hint`: names are wrong."""
    if rows > 1:
        message += f" ({rows} detections of {images} such image{'s' * (images > 1)})"
    return Problem(*location, message, f"{hint}, or {LEAVE_OUT}" if hint == SAME_IMAGES else hint)


def class_map_hint(unknown: Iterable[object], known: Iterable[str]) -> str:
    """Return the hint for class names that differ in case or white space only; "" if none do."""
    by_folded = {"".join(name.casefold().split()): name for name in known}
    rules = {name: by_folded.get("".join(str(name).casefold().split())) for name in unknown}
    lines = [
        f"{json.dumps(name, ensure_ascii=False)} = {json.dumps(to, ensure_ascii=False)}"
        for name, to in rules.items()
        if to is not None
    ]
    if not lines:
        return ""
    if len(lines) > _LISTED:
        return f"pass --class-map FILE with {len(lines)} lines such as dt.{lines[0]}"
    return f"pass --class-map FILE with the line dt = {{ {', '.join(lines)} }}"


def backward(corners: Floats, box_area: Floats) -> Rows:
    """Return the rows of boxes with negative width, height or area."""
    x1, y1, x2, y2 = corners.T
    return np.flatnonzero((x2 < x1) | (y2 < y1) | (box_area < 0))


def exchanged(boxes: Floats, names: Sequence[str] = ("x1", "y1", "x2", "y2")) -> tuple[str, Floats]:
    """Describe corners (N, 4) in another order, and put them in order; "" if they may be xywh."""
    if len(boxes) < _FEWEST_ROWS:
        return "", boxes
    low, high = boxes[:, :2], boxes[:, 2:]
    with np.errstate(all="ignore"):
        correlation = np.corrcoef(boxes, rowvar=False)
    rise = np.where(np.isfinite(correlation), correlation, 0.0)  # undefined of a constant column
    if rise[0, 1] + rise[2, 3] > _RISE and (boxes[:, [0, 2]] <= boxes[:, [1, 3]]).all():
        x1, y1, x2, y2 = names
        looks = f"they look like {x1}, {x2}, {y1}, {y2} or {y1}, {y2}, {x1}, {x2}"
        return f"{looks} (in all {len(boxes)})", boxes[:, [0, 2, 1, 3]]
    if rise[0, 2] + rise[1, 3] <= _RISE:
        return "", boxes
    counts = np.count_nonzero(low > high, axis=0)
    pairs = [(names[k], names[k + 2], int(counts[k])) for k in range(2)]
    often = ", ".join(f"{a} and {b}" for a, b, n in pairs if n * _OFTEN >= len(boxes))
    looks = f"{often} look exchanged" if often else "they look like corners"
    of_each = ", ".join(f"{a} > {b} in {n} of {len(boxes)}" for a, b, n in pairs)
    return f"{looks} ({of_each})", np.hstack((np.minimum(low, high), np.maximum(low, high)))


def too_many(count: int, total: int) -> bool:
    """Return True if one box in twenty or more is backward, which suggests another format."""
    return count * _FEW >= total


def backward_note(kind: str, count: int, first: str) -> Note:
    """Return the warning of boxes with negative width or height."""
    subject, effect = {
        "detections": ("detections", "are false positives"),
        "ground-truth": ("ground truth boxes", "can never be matched"),
    }[kind]
    message = (
        f"{subject} have negative width or height (first: {first}): they overlap nothing and "
        f"{effect}; with area ranges, as in coco, a negative area is in none"
    )
    return Note(f"{kind}-negative-size", message, count)
