"""Agreement of two annotators, neither of whom is right.

F1 pairs boxes of one class. The other figures pair boxes without regard to class: Cohen's kappa is
over the classes of these pairs, and a box without a partner is paired with no class.

References
----------
Cohen, A Coefficient of Agreement for Nominal Scales, Educational and Psychological Measurement 20
(1960).
"""

from dataclasses import dataclass
from math import nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.analysis.match_results import ratios
from detap.core.assignment import Assignment, candidates
from detap.core.matching import Boxes
from detap.core.overlap import paired_overlaps
from detap.errors import InputError, Note, Problem
from detap.evaluation.detection import score_tables
from detap.protocols import protocol
from detap.tables.columns import indices_in, ordered
from detap.tables.detection import Detections, Flags, Floats, GroundTruth, Integers, Name

Counts = NDArray[np.int64]

_PREFERENCE = 0.5e-9
"""Added to the total IoU if all pairs have equal classes; totals closer than 1e-9 are equal."""


class _Paired(NamedTuple):
    """Pairs of P boxes without regard to class, in the order of the first."""

    first: Integers  # (P,)
    second: Integers  # (P,)
    iou: Floats  # (P,)


@dataclass(frozen=True, eq=False, kw_only=True)
class Agreement:
    """Agreement of two annotators on I images and K classes; undefined figures are NaN."""

    iou: float
    images: tuple[Name, ...]
    classes: tuple[str, ...]
    class_boxes: tuple[Counts, Counts]  # (K,) boxes of the first and of the second
    class_matches: Counts  # (K,) pairs of equal class
    image_boxes: tuple[Counts, Counts]  # (I,)
    image_matches: Counts  # (I,)
    matrix: Counts  # (K + 1, K + 1) rows are of the first, columns of the second; the last is none
    mean_iou: float  # of all pairs
    notes: tuple[Note, ...] = ()

    @property
    def f1(self) -> float:
        """F1 of all classes together."""
        matches = self.class_matches.sum(keepdims=True)
        first, second = (boxes.sum(keepdims=True) for boxes in self.class_boxes)
        return float(_f1(matches, (first, second))[0])

    @property
    def class_f1(self) -> Floats:
        """F1 of each class, (K,) float64."""
        return _f1(self.class_matches, self.class_boxes)

    @property
    def image_f1(self) -> Floats:
        """F1 of each image, (I,) float64."""
        return _f1(self.image_matches, self.image_boxes)

    @property
    def kappa(self) -> float:
        """Cohen's kappa of all boxes."""
        return _kappa(self.matrix)

    @property
    def kappa_of_matched(self) -> float:
        """Cohen's kappa of the boxes with a partner."""
        return _kappa(self.matrix[:-1, :-1])

    @property
    def summary(self) -> dict[str, float]:
        """The figures by name, the primary one first."""
        return {
            "F1": self.f1,
            "mean IoU": self.mean_iou,
            "kappa": self.kappa,
            "kappa of matched": self.kappa_of_matched,
        }


def agreement(first: GroundTruth, second: GroundTruth, iou: float = 0.5) -> Agreement:
    """Compare two annotators of the same images.

    Raises
    ------
    InputError
        If the images differ, or the boxes of one look like another unit or format.
    """
    _require_same_images(first, second)
    notes = _crowd_notes(first, second)
    images = tuple(ordered(first.images))
    classes = tuple(dict.fromkeys((*first.classes, *second.classes)))
    first, second = (_aligned(table, images, classes) for table in (first, second))
    is_true = _matched_by_class(first, second, iou)
    boxes = (first, second)
    # Where several assignments are equally good, the order of the two files must not choose.
    exchanged = _key(second) < _key(first)
    pairs = _pairs(*(boxes[::-1] if exchanged else boxes), iou)
    if exchanged:
        pairs = _Paired(pairs.second, pairs.first, pairs.iou)
    return Agreement(
        iou=iou,
        images=images,
        classes=classes,
        class_boxes=_both(boxes, "label", len(classes)),
        class_matches=np.bincount(second.label[is_true], minlength=len(classes)),
        image_boxes=_both(boxes, "image", len(images)),
        image_matches=np.bincount(second.image[is_true], minlength=len(images)),
        matrix=_matrix(first, second, pairs),
        mean_iou=float(pairs.iou.mean()) if len(pairs.iou) else nan,
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


def _crowd_notes(*tables: GroundTruth) -> tuple[Note, ...]:
    """Return a note on crowd regions, if there are any."""
    count = sum(int(np.count_nonzero(table.crowd)) for table in tables)
    message = "crowd regions are left out of the agreement"
    return (Note("crowds-left-out", message, count, severity="info"),) if count else ()


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


def _matched_by_class(first: GroundTruth, second: GroundTruth, iou: float) -> Flags:
    """Return the boxes of the second that match one of the first of their class, (N,) bool."""
    detections = Detections(
        image=second.image,
        label=second.label,
        corners=second.corners,
        box_area=second.box_area,
        images=second.images,
        classes=second.classes,
        class_ids=second.class_ids,
        files=second.files,
        notes=second.notes,
        score=np.full(len(second), nan),
    )
    by_class = protocol("coco").with_changes(iou_thresholds=(iou,), ignore_flags=())
    result = score_tables(first, detections, by_class, match_table=True)
    return result.match_table.is_true_positive(0, 0)


def _pairs(first: GroundTruth, second: GroundTruth, iou: float) -> _Paired:
    """Pair boxes without regard to class; of equal totals the one with more equal classes."""
    pairs = candidates(
        (_boxes(second), _boxes(first)),
        np.zeros(len(first), np.bool_),
        None,
        inclusive_pixels=False,
    )
    pairs = pairs.select(pairs.reaching(iou, strict=False))
    largest = int(np.bincount(first.image).max(initial=0))
    equal = second.label[pairs.detection] == first.label[pairs.truth]
    assignment = Assignment(
        pairs._replace(iou=pairs.iou + equal * (_PREFERENCE / (largest + 1))),
        counted=np.ones(len(first), np.bool_),
        repeatable=np.zeros(len(first), np.bool_),
        never_false=np.zeros(len(second), np.bool_),
        largest=largest,
        strict=False,
    )
    partner, _ = assignment.at(iou)
    of_second = np.flatnonzero(partner >= 0).astype(np.int32)
    of_first = partner[of_second]
    overlap = paired_overlaps(
        second.corners[of_second],
        first.corners[of_first],
        detection_areas=second.box_area[of_second],
        truth_areas=first.box_area[of_first],
    )
    return _Paired(of_first, of_second, overlap)


def _boxes(table: GroundTruth) -> Boxes:
    """Return the boxes of a table, all of one class."""
    label, area = np.zeros(len(table), np.int32), table.box_area
    return Boxes(table.image, label, table.corners, area, area, np.zeros(0))


def _both(tables: tuple[GroundTruth, GroundTruth], column: str, size: int) -> tuple[Counts, Counts]:
    """Count the boxes of both by image or class."""
    first, second = (np.bincount(getattr(one, column), minlength=size) for one in tables)
    return first, second


def _matrix(first: GroundTruth, second: GroundTruth, pairs: _Paired) -> Counts:
    """Return the table of classes by classes; the last row and column are of no class."""
    none = len(first.classes)
    lone_first = np.delete(first.label, pairs.first)
    lone_second = np.delete(second.label, pairs.second)
    rows = np.concatenate([first.label[pairs.first], lone_first, np.full(len(lone_second), none)])
    columns = np.concatenate(
        [second.label[pairs.second], np.full(len(lone_first), none), lone_second]
    )
    cells = rows.astype(np.int64) * (none + 1) + columns
    return np.bincount(cells, minlength=(none + 1) ** 2).reshape(none + 1, none + 1)


def _f1(matches: Counts, boxes: tuple[Counts, Counts]) -> Floats:
    """Return F1 of matches and the boxes of both; NaN without boxes."""
    return ratios(2 * matches, boxes[0] + boxes[1])


def _kappa(matrix: Counts) -> float:
    """Return Cohen's kappa; NaN without pairs, or if chance agreement is 1."""
    total = int(matrix.sum())
    # In integers, so that a chance agreement of 1 is exact.
    rows, columns = matrix.sum(axis=1).tolist(), matrix.sum(axis=0).tolist()
    chance = int(sum(row * column for row, column in zip(rows, columns, strict=True)))
    if chance == total * total:
        return nan
    return (total * int(np.trace(matrix)) - chance) / (total * total - chance)
