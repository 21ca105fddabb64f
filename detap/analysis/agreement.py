"""Agreement of two annotators, neither of whom is right.

F1 pairs boxes of one class. The other figures pair boxes without regard to class: Cohen's kappa is
over the classes of these pairs, and a box without a partner is paired with no class.

References
----------
Cohen, A Coefficient of Agreement for Nominal Scales, Educational and Psychological Measurement 20
(1960).
"""

from math import nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.analysis.match_results import ratios
from detap.core.assignment import Candidates, assign, candidates
from detap.core.matching import Boxes
from detap.errors import InputError, Note, Problem
from detap.tables.columns import indices_in, ordered
from detap.tables.detection import Floats, GroundTruth, Integers, Name

Counts = NDArray[np.int64]

_PREFERENCE = 0.5e-12
"""Added to the IoU of a pair of equal classes; totals within 1e-9 are equal."""


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
    first, second = (_aligned(table, images, classes) for table in (first, second))
    of_class = _pairs(first, second, iou, by_class=True).detection
    # Where several assignments are equally good, the order of the two files must not choose.
    if _key(second) < _key(first):
        of_first, of_second, overlap = _pairs(second, first, iou)
    else:
        of_second, of_first, overlap = _pairs(first, second, iou)
    none = len(classes)
    matrix = np.zeros((none + 1, none + 1), np.int64)
    np.add.at(matrix, (first.label[of_first], second.label[of_second]), 1)
    matrix[:none, none] = np.bincount(np.delete(first.label, of_first), minlength=none)
    matrix[none, :none] = np.bincount(np.delete(second.label, of_second), minlength=none)

    def counts(of_first: Integers, of_second: Integers, size: int) -> Counts:
        columns = of_first, of_second, of_second[of_class]
        return np.stack([np.bincount(column, minlength=size) for column in columns], axis=1)

    return Agreement(
        iou=iou,
        images=images,
        classes=classes,
        class_counts=counts(first.label, second.label, len(classes)),
        image_counts=counts(first.image, second.image, len(images)),
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
            hint = "give both files the same images"
            raise InputError(Problem(table.path, "", message, hint))


def _aligned(table: GroundTruth, images: tuple[Name, ...], classes: tuple[str, ...]) -> GroundTruth:
    """Return the boxes without crowds, in an order that the file's does not affect."""
    image = indices_in(table.images, images)[table.image]
    label = indices_in(table.classes, classes)[table.label]
    rank = indices_in(ordered(classes), classes).argsort()[label]  # by name
    rows = np.lexsort((*table.corners.T[::-1], rank, image))
    rows = rows[~table.crowd[rows]]
    columns = {**table.columns(), "image": image, "label": label}
    return table.with_columns(
        {name: column[rows] for name, column in columns.items()},
        images=images,
        classes=classes,
        class_ids=classes,
        image_sizes=None,
        listed={},
        groups={},
    )


def _key(table: GroundTruth) -> tuple[list[int], list[str], list[list[float]]]:
    """Return a key that orders two tables of the same images."""
    names = [table.classes[label] for label in table.label.tolist()]
    return table.image.tolist(), names, table.corners.tolist()


def _pairs(
    first: GroundTruth, second: GroundTruth, iou: float, *, by_class: bool = False
) -> Candidates:
    """Pair boxes of a class, or of any; of equal totals the one with more equal classes."""
    no_crowd = np.zeros(len(first), np.bool_)
    boxes = _boxes(second, by_class), _boxes(first, by_class)
    pairs = candidates(boxes, no_crowd, None, inclusive_pixels=False)
    iou = min(iou, 1 - 1e-10)  # as pycocotools; that of equal boxes may be below 1
    pairs = pairs.select(pairs.reaching(iou, strict=False))
    equal = second.label[pairs.detection] == first.label[pairs.truth]
    partner, _ = assign(
        pairs._replace(iou=pairs.iou + equal * _PREFERENCE),
        counted=~no_crowd,
        repeatable=no_crowd,
        never_false=np.zeros(len(second), np.bool_),
        threshold=iou,
        strict=False,
    )
    chosen = pairs.select(partner[pairs.detection] == pairs.truth)
    return chosen.select(np.argsort(chosen.detection))  # sums are in the order of the second


def _boxes(table: GroundTruth, by_class: bool) -> Boxes:
    """Return the boxes of a table, by their class or all of one."""
    label, area = table.label if by_class else np.zeros_like(table.label), table.box_area
    return Boxes(table.image, label, table.corners, area, area, np.zeros(0))


def _kappa(matrix: Counts) -> float:
    """Return Cohen's kappa; NaN without pairs, or if chance agreement is 1."""
    total = int(matrix.sum())
    # In integers, so that a chance agreement of 1 is exact.
    rows, columns = matrix.sum(axis=1).tolist(), matrix.sum(axis=0).tolist()
    chance = int(sum(row * column for row, column in zip(rows, columns, strict=True)))
    if chance == total * total:
        return nan
    return (total * int(np.trace(matrix)) - chance) / (total * total - chance)
