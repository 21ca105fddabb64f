"""Agreement of two annotators, neither of whom is right.

F1 pairs boxes of one class. The other figures pair boxes without regard to class: Cohen's kappa is
over the classes of these pairs, and a box without a partner is paired with no class.

References
----------
Cohen, A Coefficient of Agreement for Nominal Scales, Educational and Psychological Measurement 20
(1960).
"""

from math import nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core.arrays import Boxes
from detap.core.assignment import Candidates, assign, candidates
from detap.errors import Note
from detap.io.stream import refuse
from detap.metrics.metric import ratios
from detap.tables.columns import indices_in, ordered
from detap.tables.detection import Floats, GroundTruth, Integers, Name

Counts = NDArray[np.int64]

_PREFERENCE = 0.5e-12  # added to the IoU of a pair of equal classes; totals within 1e-9 are equal


class Agreement(NamedTuple):
    """Agreement of two annotators on I images and K classes; undefined figures are NaN."""

    iou: float
    images: tuple[Name, ...]
    classes: tuple[str, ...]
    class_counts: Counts  # (K, 3) boxes of the first, boxes of the second, pairs of equal class
    image_counts: Counts  # (I, 3)
    matrix: Counts  # (K + 1, K + 1) rows are of the first, columns of the second; the last is none
    mean_iou: float  # of all pairs
    notes: tuple[Note, ...] = ()

    @property
    def summary(self) -> dict[str, float]:
        """The figures by name, the primary one first."""
        return {
            "F1": float(f1(self.class_counts.sum(axis=0, keepdims=True))[0]),
            "mean IoU": self.mean_iou,
            "kappa": _kappa(self.matrix),
            "kappa of matched": _kappa(self.matrix[:-1, :-1]),
        }


def f1(counts: Counts) -> Floats:
    """Return F1 of boxes of the first, of the second, and pairs, (N, 3); NaN without boxes."""
    return ratios(2 * counts[:, 2], counts[:, 0] + counts[:, 1])


def agreement(first: GroundTruth, second: GroundTruth, iou: float = 0.5) -> Agreement:
    """Compare two annotators of the same images."""
    _require_same_images(first, second)
    crowds = int(np.count_nonzero(first.crowd)) + int(np.count_nonzero(second.crowd))
    message = "crowd regions are left out of the agreement"
    notes = (Note("crowds-left-out", message, crowds, severity="info"),) if crowds else ()
    images = tuple(ordered(first.images))
    classes = tuple(dict.fromkeys((*first.classes, *second.classes)))
    ranks = indices_in(classes, ordered(classes))
    sides = []  # without crowds, in an order that the file's does not affect
    for table in (first, second):
        image = indices_in(table.images, images)[table.image]
        label = indices_in(table.classes, classes)[table.label]
        rows = np.lexsort((*table.corners.T[::-1], ranks[label], image))
        rows = rows[~table.crowd[rows]]
        area = table.box_area[rows]
        sides.append(Boxes(image[rows], label[rows], table.corners[rows], area, area, np.zeros(0)))
    one, two = sides
    of_class = _pairs(one, two, iou, by_class=True).detection
    # Where several assignments are equally good, the order of the two files must not choose.
    if _key(two, ranks) < _key(one, ranks):
        of_one, of_two, overlap = _pairs(two, one, iou)
    else:
        of_two, of_one, overlap = _pairs(one, two, iou)
    none = len(classes)
    matrix = np.zeros((none + 1, none + 1), np.int64)
    np.add.at(matrix, (one.label[of_one], two.label[of_two]), 1)
    matrix[:none, none] = np.bincount(np.delete(one.label, of_one), minlength=none)
    matrix[none, :none] = np.bincount(np.delete(two.label, of_two), minlength=none)

    def counts(of_one: Integers, of_two: Integers, size: int) -> Counts:
        columns = of_one, of_two, of_two[of_class]
        return np.stack([np.bincount(column, minlength=size) for column in columns], axis=1)

    return Agreement(
        iou=iou,
        images=images,
        classes=classes,
        class_counts=counts(one.label, two.label, len(classes)),
        image_counts=counts(one.image, two.image, len(images)),
        matrix=matrix,
        mean_iou=float(overlap.mean()) if len(overlap) else nan,
        notes=notes,
    )


def _require_same_images(first: GroundTruth, second: GroundTruth) -> None:
    """Raise InputError if one table lacks images of the other."""
    for table, other in ((first, second), (second, first)):
        missing = ordered(set(other.images).difference(table.images))
        if missing:
            message = (
                f"{len(missing)} of {len(other.images)} images of {other.path} are missing, "
                f"first {missing[0]!r}"
            )
            refuse(table.path, message, "give both files the same images")


def _key(boxes: Boxes, ranks: Integers) -> list[Any]:
    """Return a key that orders two annotators of the same images."""
    return [column.tolist() for column in (boxes.image, ranks[boxes.label], boxes.corners)]


def _pairs(first: Boxes, second: Boxes, iou: float, *, by_class: bool = False) -> Candidates:
    """Pair boxes of a class, or of any; of equal totals the one with more equal classes."""
    sides = second, first
    if not by_class:
        sides = second._replace(label=second.label * 0), first._replace(label=first.label * 0)
    pairs = candidates(sides, False, None, inclusive_pixels=False)
    iou = min(iou, 1 - 1e-10)  # as pycocotools; that of equal boxes may be below 1
    pairs = pairs.reaching(iou, strict=False)
    equal = second.label[pairs.detection] == first.label[pairs.truth]
    partner, _ = assign(
        pairs._replace(iou=pairs.iou + equal * _PREFERENCE),
        counted=np.ones(len(first.image), np.bool_),
        repeatable=np.zeros(len(first.image), np.bool_),
        never_false=np.zeros(len(second.image), np.bool_),
        threshold=iou,
        strict=False,
    )
    chosen = pairs.select(partner[pairs.detection] == pairs.truth)
    return chosen.select(np.argsort(chosen.detection))  # sums are in the order of the second


def _kappa(matrix: Counts) -> float:
    """Return Cohen's kappa; NaN without pairs, or if chance agreement is 1."""
    total = int(matrix.sum())
    # In integers, so that a chance agreement of 1 is exact.
    rows, columns = matrix.sum(axis=1).tolist(), matrix.sum(axis=0).tolist()
    chance = int(sum(row * column for row, column in zip(rows, columns, strict=True)))
    if chance == total * total:
        return nan
    return (total * int(np.trace(matrix)) - chance) / (total * total - chance)
