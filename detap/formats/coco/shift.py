"""Whether the category ids of a results file mean other classes than the ground truth's.

A file whose ids are all one off, or count from 0 where the ground truth has gaps, is well formed,
and every tool gives it an AP of about 0 without a word. But its boxes lie where the objects are,
and its ids differ from theirs in always the same way: that is looked for, in some images.
"""

from collections.abc import Sequence

import numpy as np

from detap.formats.coco.columns import DetectionColumns
from detap.formats.reading._surveys import found_classes
from detap.tables.detection import GroundTruth, Name

_IMAGES = 16
_TRUTHS = 64
_OVERLAP = 0.5
_SURE = 0.8
_STRAY = 0.05
_ENOUGH = 10
"""Objects that must bear it out where every id is listed: fewer may be a detector's mistakes."""


def category_shift(
    columns: DetectionColumns, truth: GroundTruth, sample: Sequence[tuple[int, int]]
) -> str:
    """Return what is wrong with the category ids, or an empty string.

    Of each ground truth in a sample of images, the class of the detection that overlaps it most
    is compared with its own, unless one of its own class overlaps it as well.

    Parameters
    ----------
    columns : DetectionColumns
        Not yet rid of unknown categories.
    truth : GroundTruth
        What they are for.
    sample : sequence of (int, int)
        What :func:`sampled_classes` gives of them.
    """
    ids: tuple[Name, ...] = (*truth.class_ids, *columns.unknown)
    if not len(columns.label) or any(isinstance(name, str) for name in ids):
        return ""
    pairs = np.array(sample, np.int64).reshape(-1, 2)
    wrong = pairs[pairs[:, 0] != pairs[:, 1]]
    few = len(wrong) < _ENOUGH
    if (
        (few and not columns.unknown)
        or len(set(wrong[:, 0].tolist())) < 2
        or (len(pairs) - len(wrong)) > _STRAY * len(pairs)
    ):
        return ""
    due = [ids[number] for number in wrong[:, 0]]
    got = [ids[number] for number in wrong[:, 1]]
    steps = [int(g) - int(d) for g, d in zip(got, due, strict=True)]
    shift = max(set(steps), key=steps.count)
    enough = 1.0 if few else _SURE
    if steps.count(shift) >= enough * len(pairs):
        return (
            f"every category_id looks {abs(shift)} too {'high' if shift > 0 else 'low'}: the boxes "
            f"lie on objects of another class, such as {got[0]} on {due[0]}"
        )
    indices = sum(int(g) == d for g, d in zip(got, wrong[:, 0].tolist(), strict=True))
    if indices >= enough * len(pairs):
        return (
            "category_id looks like the position in the list of categories, counted from 0: the "
            f"boxes lie on objects of another class, such as {got[0]} on {due[0]}"
        )
    return ""


def sampled_classes(
    columns: DetectionColumns, truth: GroundTruth
) -> tuple[list[tuple[int, int]], int]:
    """Return the class numbers of some ground truths and of what was found in their place.

    A ground truth without a detection in its place is left out; the second value counts them all.
    """
    present = np.flatnonzero(truth.filled)
    chosen = present[:: max(1, len(present) // _IMAGES)]
    wanted = np.zeros(len(truth.images), np.uint8)
    wanted[chosen] = 1
    rows = np.flatnonzero((wanted[truth.image] > 0) & ~truth.crowd)
    rows = rows[:: max(1, len(rows) // _TRUTHS)]
    found = found_classes(
        truth.corners[rows],
        truth.image[rows],
        truth.label[rows],
        columns.corners,
        columns.image,
        columns.label,
        wanted,
        _OVERLAP,
    )
    return found, len(rows)
