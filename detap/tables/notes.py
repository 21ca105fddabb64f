"""Notes shared by tables, and boxes of negative width or height."""

import numpy as np
from numpy.typing import NDArray

from detap.errors import Note

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

INSIST = "as_is=True (--as-is)"
"""Option that turns plausibility checks off."""

BOX_LAYOUTS = {"xywh": "[x, y, width, height]", "xyxy": "[x1, y1, x2, y2]"}
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

_FEW = 20


def backward(corners: Floats, box_area: Floats) -> Rows:
    """Return the rows of boxes with negative width, height or area."""
    x1, y1, x2, y2 = corners.T
    return np.flatnonzero((x2 < x1) | (y2 < y1) | (box_area < 0))


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
