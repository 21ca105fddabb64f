"""Notes that tables have, and boxes of negative width or height, which make one of them."""

import numpy as np
from numpy.typing import NDArray

from detap.errors import Note
from detap.tables._boxes import mark_backward

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

INSIST = "as_is=True (--as-is)"
"""What overrides a refusal that rests on a suspicion."""

BOX_OPTIONS = {"ground-truth": "--gt-boxes", "detections": "--dt-boxes"}
"""What says how the boxes of either side are encoded."""

AS_IS = Note("as-is", "input is taken at its word, whatever it looks like", severity="info")
"""What a table bears whose reader was told so."""

FRACTIONS = Note(
    "normalized-boxes-unknown-size",
    "boxes are in fractions of images whose sizes are not known: overlaps are right, areas are "
    "nothing to go by (--image-sizes makes them pixels)",
    severity="info",
)
"""What a table bears whose format has fractions, and whose images have no known size."""

NO_DETECTIONS, NOTHING_SAID = "no-detections", "there is no detection: every AP is 0"
"""The note that is true of inputs together only where it is of each."""

INTERLEAVED = Note(
    "interleaved-inputs",
    "images of the inputs interleave: equal scores rank by image, in the order of the ground truth,"
    " and not by place in the file; one file in another order may have another number",
    severity="info",
)
"""What is true of inputs together, where equal scores rank by place in the file."""

PER_INPUT = frozenset({AS_IS.code, FRACTIONS.code, NO_DETECTIONS, INTERLEAVED.code})
"""Codes of notes about inputs, not records: merging does not add their counts."""

POLYGONS_BOUNDED = "polygons-bounded"
"""The code of the note that a table has boxes around polygons that it does not hold."""

_FEW = 20


def backward(corners: Floats, box_area: Floats) -> Rows:
    """Return the rows whose box has a negative width or height."""
    wrong = np.empty(len(corners), np.uint8)
    return np.flatnonzero(wrong if mark_backward(corners, box_area, wrong) else ())


def too_many(count: int, total: int) -> bool:
    """Return whether so many backward boxes are another encoding: one in twenty, or more."""
    return count * _FEW >= total


def backward_note(kind: str, count: int, first: str) -> Note:
    """Return the warning of boxes that end before they begin.

    Parameters
    ----------
    kind : {"detections", "ground-truth"}
    count : int
    first : str
        Where the first of them stands, and what it is.
    """
    what, fate = {
        "detections": ("detections", "are false positives"),
        "ground-truth": ("ground truth boxes", "cannot be found"),
    }[kind]
    message = (
        f"{what} have a negative width or height (the first: {first}); they overlap nothing and "
        f"{fate}, but where area ranges count, as in coco, one of negative area is left out"
    )
    return Note(f"{kind}-negative-size", message, count)
