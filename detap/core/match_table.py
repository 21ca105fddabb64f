"""Per-detection match results, computed once and reused.

Images are matched independently, and detections are ranked once. So curves, subsets of images,
resamples and metrics at other max dets need no second matching: per detection and area range, the
thresholds at which it is a true positive or ignored suffice. They are bits of the narrowest
unsigned integer that holds them.

Axes: T thresholds, K classes, A area ranges, M max dets, I images, N detections, G ground
truths, C pairs of area range and threshold.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core import _ordering
from detap.core.params import MatchParams

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Flags = NDArray[np.bool_]
BitArray = NDArray[np.unsignedinteger[Any]]
Rows = NDArray[np.integer[Any]]
AreaIouPair = tuple[int, int]


class Ranking(NamedTuple):
    """Detections within the largest max dets, by class and descending score.

    Attributes
    ----------
    start : (K + 1,) int32
        First index of each class in `rows`.
    rows : (n,) int32
        Rows of the match table.
    """

    start: Integers
    rows: Integers

    def of_class(self, label: int) -> Integers:
        """Return the rows of a class."""
        return self.rows[self.start[label] : self.start[label + 1]]


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class MatchTable:
    """Match results of the detections of whole images.

    Attributes
    ----------
    label, image : (N,) int32
    score : (N,) float64
    max_dets_index : (N,) uint8
        Index of the first max dets that admits the detection; M if none does. It is then not
        counted.
    true_positive, ignored : (A, N) unsigned
        Thresholds, as bits, at which it is a true positive or ignored. At the others it is a false
        positive.
    duplicate : (N,) bool
        True if, at the first threshold and area range, it is a false positive that reaches a
        counted ground truth matched by another detection.
    max_iou : (N,) float64
        Largest IoU with a ground truth of its class and image; (0,) if not stored.
    area_iou_pairs : tuple of C pairs of int
        Area range and threshold of each row of `matched_gt`.
    matched_gt : (C, N) int32
        Matched ground truth, 0 to G - 1, or -1.
    truth_label, truth_image : (G,) int32
    positive : (A, G) bool
        Ground truths that count.
    images, classes : int
        Number of images and classes.
    params : MatchParams

    Notes
    -----
    With COCO's four area ranges and ten thresholds a detection takes 42 bytes, of which 16 are
    columns of its input; with VOC's, 28. The ranking adds 4. A ground truth takes 8 + A.
    """

    label: Integers
    image: Integers
    score: Floats
    max_dets_index: NDArray[np.uint8]
    true_positive: BitArray
    ignored: BitArray
    duplicate: Flags
    max_iou: Floats
    area_iou_pairs: tuple[AreaIouPair, ...]
    matched_gt: Integers
    truth_label: Integers
    truth_image: Integers
    positive: Flags
    images: int
    classes: int
    params: MatchParams

    def __len__(self) -> int:
        """Return the number of detections."""
        return len(self.label)

    def __repr__(self) -> str:
        rows = f"{len(self)} detections, {len(self.truth_label)} ground truths"
        return f"MatchTable({rows}, {self.images} images, {self.classes} classes)"

    def freeze(self) -> "MatchTable":
        """Make all arrays read-only and return self."""
        for column in vars(self).values():
            if isinstance(column, np.ndarray):
                column.flags.writeable = False
        return self

    @property
    def within_max_dets(self) -> Flags:
        """Mask of detections within the largest max dets, (N,) bool."""
        return self.max_dets_index < len(self.params.max_dets)

    @cached_property
    def ranking(self) -> Ranking:
        """The detections within the largest max dets, by class and descending score."""
        rows = np.flatnonzero(self.within_max_dets).astype(np.int32)
        return self._rank(rows, self.label[rows], self.classes)

    @cached_property
    def by_score(self) -> Integers:
        """The detections within the largest max dets by descending score, (n,) int32.

        Ties are ranked by :attr:`params`.
        """
        rows = np.flatnonzero(self.within_max_dets).astype(np.int32)
        return self._rank(rows, np.zeros_like(rows), 1).rows

    def _rank(self, rows: Integers, group: Integers, groups: int) -> Ranking:
        """Rank ascending rows of each group by descending score."""
        start, ranked = _ordering.rank_rows(
            group, self.image[rows], self.score[rows], groups, self.params.ties_by_image
        )
        return Ranking(start, rows[ranked])

    def set_ranking(self, ranked: Integers, within: NDArray[np.int64]) -> None:
        """Reuse the ranking computed by matching.

        Parameters
        ----------
        ranked : (n,) int32
            At least the detections within the largest max dets, by class and descending score.
        within : (K,) int64
            Detections of each class within the largest max dets.
        """
        start = np.concatenate([[0], np.cumsum(within)]).astype(np.int32)
        rows = (
            ranked
            if start[-1] == len(ranked)
            else ranked.compress(self.within_max_dets.take(ranked))
        )
        rows.flags.writeable = False
        vars(self)["ranking"] = Ranking(start, rows)

    def best_of_groups(self, rows: Integers, group: Integers, groups: int) -> Integers:
        """Return the top-ranked row of each group that is not empty.

        Parameters
        ----------
        rows : (n,) int32
        group : (n,) int32
            From 0 to `groups` - 1.
        """
        by_row = np.argsort(rows, kind="stable")  # the order of ties
        start, ranked = self._rank(rows[by_row], group[by_row], groups)
        return ranked[start[:-1][np.diff(start) > 0]]

    def rank_positions(self, rows: Integers, labels: Integers) -> Integers:
        """Return the rank of some rows, as if they had the given labels.

        Parameters
        ----------
        rows, labels : (n,) int32

        Returns
        -------
        (n,) int32
            Indices into the rows of :attr:`ranking`.
        """
        out = np.zeros(len(rows), np.int32)
        keys = self.image, self.score, self.params.ties_by_image
        _ordering.find_rank_positions(*keys, *self.ranking, rows, labels, out)
        return out

    @property
    def ground_truth_counts(self) -> NDArray[np.int64]:
        """Number of counted ground truths, (A, K) int64."""
        labels = [self.truth_label[positive] for positive in self.positive]
        return np.array([np.bincount(label, minlength=self.classes) for label in labels], np.int64)

    def is_true_positive(self, area: int, threshold: int, rows: Rows | None = None) -> Flags:
        """Return the mask of true positives, of all or some rows, (N,) bool."""
        return _test_bit(self.true_positive[area], threshold, rows)

    def is_ignored(self, area: int, threshold: int, rows: Rows | None = None) -> Flags:
        """Return the mask of ignored detections, of all or some rows, (N,) bool."""
        return _test_bit(self.ignored[area], threshold, rows)

    def matched_gt_at(self, area: int, threshold: int) -> Integers:
        """Return the ground truth that each detection matched, (N,) int32, or -1.

        Raises
        ------
        KeyError
            If the match table does not store this pair of area range and threshold.
        """
        if (area, threshold) not in self.area_iou_pairs:
            raise KeyError(f"no matched ground truths of area range {area}, threshold {threshold}")
        matched: Integers = self.matched_gt[self.area_iou_pairs.index((area, threshold))]
        return matched

    def select_images(self, images: Sequence[int]) -> "MatchTable":
        """Select images; they are renumbered in the order listed.

        Parameters
        ----------
        images : sequence of int
            Unique, from 0 to I - 1.
        """
        index = new_indices(self.images, images)
        selected = self._select(index[self.image] >= 0, index[self.truth_image] >= 0)
        image, truth_image = index[selected.image], index[selected.truth_image]
        return replace(selected, image=image, truth_image=truth_image, images=len(images)).freeze()

    def select_classes(self, classes: Sequence[int]) -> "MatchTable":
        """Select classes; they are renumbered in the order listed.

        Parameters
        ----------
        classes : sequence of int
            Unique, from 0 to K - 1.
        """
        index = new_indices(self.classes, classes)
        selected = self._select(index[self.label] >= 0, index[self.truth_label] >= 0)
        label, truth_label = index[selected.label], index[selected.truth_label]
        return replace(
            selected, label=label, truth_label=truth_label, classes=len(classes)
        ).freeze()

    def with_ties(self, *, by_image: bool) -> "MatchTable":
        """Return the table with equal scores ranked by image, or in file order."""
        if by_image == self.params.ties_by_image:
            return self
        return replace(self, params=self.params._replace(ties_by_image=by_image))

    def select_max_dets(self, indices: Sequence[int]) -> "MatchTable":
        """Select max dets, by ascending indices."""
        count = len(self.params.max_dets)
        if tuple(indices) == tuple(range(count)):
            return self
        index = np.searchsorted(indices, np.arange(count + 1)).astype(np.uint8)
        selected = replace(
            self,
            max_dets_index=index.take(self.max_dets_index),
            params=self.params._replace(max_dets=tuple(self.params.max_dets[i] for i in indices)),
        )
        labels = self.label.compress(selected.within_max_dets)  # faster than by index
        within = np.bincount(labels, minlength=self.classes)
        selected.set_ranking(self.ranking.rows, within)
        return selected

    def select_areas(self, areas: Sequence[int]) -> "MatchTable":
        """Select area ranges; matched ground truths are left out.

        The duplicates stay those of the first area range of this table.
        """
        ranges = tuple(self.params.area_ranges[area] for area in areas)
        selected = replace(
            self,
            true_positive=self.true_positive[list(areas)],
            ignored=self.ignored[list(areas)],
            positive=self.positive[list(areas)],
            area_iou_pairs=(),
            matched_gt=np.zeros((0, len(self)), np.int32),
            params=self.params._replace(area_ranges=ranges),
        )
        vars(selected)["ranking"] = self.ranking
        return selected

    def equal_areas(self) -> list[int]:
        """Return the first area range with the same match results, for each area range."""
        columns = (self.true_positive, self.ignored, self.positive)
        return [
            next(
                first
                for first in range(area + 1)
                if all(np.array_equal(column[first], column[area]) for column in columns)
            )
            for area in range(len(self.positive))
        ]

    def _select(self, detections: Flags, ground_truths: Flags) -> "MatchTable":
        """Select rows; a match with a removed ground truth becomes -1."""
        rows, gt_rows = np.flatnonzero(detections), np.flatnonzero(ground_truths)
        new_row = new_indices(len(self.truth_label) + 1, gt_rows)  # index -1 stays -1
        return replace(
            self,
            label=self.label[rows],
            image=self.image[rows],
            score=self.score[rows],
            max_dets_index=self.max_dets_index[rows],
            true_positive=self.true_positive.take(rows, axis=1),
            ignored=self.ignored.take(rows, axis=1),
            duplicate=self.duplicate[rows],
            max_iou=self.max_iou[rows] if len(self.max_iou) else self.max_iou,
            matched_gt=new_row[self.matched_gt.take(rows, axis=1)],
            truth_label=self.truth_label[gt_rows],
            truth_image=self.truth_image[gt_rows],
            positive=self.positive.take(gt_rows, axis=1),
        )


def empty_bits(params: MatchParams, rows: int) -> BitArray:
    """Return zero bits (A, N) of the narrowest type that holds the thresholds."""
    size = len(params.thresholds)
    dtype = next(f"u{width}" for width in (1, 2, 4, 8) if size <= 8 * width)
    return np.zeros((len(params.area_ranges), rows), dtype)


def new_indices(count: int, selected: Sequence[int] | Rows) -> Integers:
    """Return the position of each index in a selection, or -1."""
    index = np.full(count, -1, np.int32)
    index[np.asarray(selected, np.intp)] = np.arange(len(selected), dtype=np.int32)
    return index


def _test_bit(bits: BitArray, threshold: int, rows: Rows | None) -> Flags:
    bits = bits if rows is None else bits[rows]
    flags: Flags = (bits & bits.dtype.type(1 << threshold)) != 0
    return flags
