"""What became of each detection: a value that is made once, kept, added up and asked again.

Matching never crosses images, and claims fall in one order at every question that is asked later.
So curves, parts of the images, resamples and numbers at other limits need no second matching: of a
detection it is enough to know at which thresholds it was a true positive, and at which it counts
neither way. These are bits of one word for each area range, of the narrowest type that holds them.

Axes: T thresholds, K classes, A area ranges, M max dets, I images, N detections, G ground
truths, C cells of area range and threshold.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core import _ordering
from detap.core.params import MatchParams

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Flags = NDArray[np.bool_]
Words = NDArray[np.unsignedinteger[Any]]
Rows = NDArray[np.integer[Any]]
Cell = tuple[int, int]

MOST_ROWS = int(np.iinfo(np.int32).max)


class Ranking(NamedTuple):
    """The detections within the largest limit, class by class, by falling score.

    Attributes
    ----------
    start : (K + 1,) int32
        Where each class begins in `rows`.
    rows : (n,) int32
        Rows of the evidence.
    """

    start: Integers
    rows: Integers

    def of_class(self, label: int) -> Integers:
        """Return the rows of one class."""
        return self.rows[self.start[label] : self.start[label + 1]]


class MatchFlags(NamedTuple):
    """What became of each of P detections; :class:`MatchTable` says what each column means.

    Attributes
    ----------
    max_dets_index : (P,) uint8
    true_positive, ignored : (A, P) unsigned
    duplicate : (P,) bool
    """

    max_dets_index: NDArray[np.uint8]
    true_positive: Words
    ignored: Words
    duplicate: Flags

    def of(self, columns: Rows) -> "MatchFlags":
        """Return what became of some."""
        return MatchFlags._make(table.take(columns, axis=-1) for table in self)


@dataclass(frozen=True, eq=False, kw_only=True)
class MatchTable:
    """What became of the detections of whole images.

    Attributes
    ----------
    label, image : (N,) int32
        Of each detection.
    score : (N,) float64
    order : (N,) int32
        Where it stands: of equal scores the lower place ranks first, in its image or in all.
    max_dets_index : (N,) uint8
        The first detection limit that admits it; M where it is beyond the largest and so counts
        nowhere.
    true_positive, ignored : (A, N) unsigned
        The thresholds, as bits, at which it is a true positive, and at which it counts neither way.
        Elsewhere it is a false positive.
    duplicate : (N,) bool
        Whether at the first threshold and area range it is a false positive that reaches a ground
        truth which counts and which another detection has taken.
    max_iou : (N,) float64
        Its largest overlap with a ground truth of its class and image; (0,) where it is not kept.
    area_iou_pairs : tuple of C pairs of int
        Area ranges and thresholds at which the ground truth that each matched is kept.
    matched_gt : (C, N) int32
        These: a row from 0 to G - 1, or -1.
    truth_label, truth_image : (G,) int32
        Of each ground truth.
    positive : (A, G) bool
        Whether it is one that detections should find.
    images, classes : int
        How many of each there are.
    params : Rules
        How it was made.

    Notes
    -----
    With the four area ranges and ten thresholds of COCO a detection takes 46 bytes, of which 16 are
    columns of the table that was scored; with those of VOC, 32; their ranking 4. A ground truth
    takes 8 + A.
    """

    label: Integers
    image: Integers
    score: Floats
    order: Integers
    max_dets_index: NDArray[np.uint8]
    true_positive: Words
    ignored: Words
    duplicate: Flags
    max_iou: Floats
    area_iou_pairs: tuple[Cell, ...]
    matched_gt: Integers
    truth_label: Integers
    truth_image: Integers
    positive: Flags
    images: int
    classes: int
    params: MatchParams

    def __len__(self) -> int:
        """How many detections there are."""
        return len(self.label)

    def freeze(self) -> "MatchTable":
        """Let nothing be written to any column from now on; return the evidence itself."""
        for column in vars(self).values():
            if isinstance(column, np.ndarray):
                column.flags.writeable = False
        return self

    @property
    def match_flags(self) -> MatchFlags:
        """What became of each detection, without its score and place."""
        return MatchFlags(self.max_dets_index, self.true_positive, self.ignored, self.duplicate)

    @property
    def counted(self) -> Flags:
        """Whether each detection is within the largest limit, (N,) bool."""
        return self.max_dets_index < len(self.params.max_dets)

    @cached_property
    def ranking(self) -> Ranking:
        """The detections within the largest limit, class by class, by falling score."""
        start = np.zeros(self.classes + 1, np.int32)
        rows = np.zeros(len(self), np.int32)
        _ordering.rank_rows(
            self.label,
            self.image,
            self.order,
            self.score,
            (~self.counted).view(np.uint8),
            self.params.ties_by_image,
            start,
            rows,
        )
        return Ranking(start, rows[: start[-1]])

    @cached_property
    def by_score(self) -> Integers:
        """The detections within the largest limit by falling score over all classes, (n,) int32.

        Equal scores stand as :attr:`params` rank them.
        """
        label = np.zeros_like(self.label)
        return replace(self, label=label, classes=1).ranking.rows

    def set_ranking(self, ranked: Integers, within: NDArray[np.int64]) -> None:
        """Take what matching has ranked already, so that nothing is sorted again.

        Parameters
        ----------
        ranked : (N,) int32
            All detections, class by class, by falling score.
        within : (K,) int64
            How many of each class are within the largest limit.
        """
        start = np.concatenate([[0], np.cumsum(within)]).astype(np.int32)
        rows = ranked if start[-1] == len(ranked) else ranked[self.counted[ranked]]
        rows.flags.writeable = False
        vars(self)["ranking"] = Ranking(start, rows)

    def best_of_groups(self, rows: Integers, group: Integers, groups: int) -> Integers:
        """Return the first by falling score of each group of rows that has any.

        Parameters
        ----------
        rows : (n,) int32
        group : (n,) int32
            From 0 to `groups` - 1.
        """
        start = np.zeros(groups + 1, np.int32)
        ranked = np.zeros(len(rows), np.int32)
        _ordering.rank_rows(
            group,
            self.image[rows],
            self.order[rows],
            self.score[rows],
            np.zeros(len(rows), np.uint8),
            self.params.ties_by_image,
            start,
            ranked,
        )
        return rows[ranked[start[:-1][np.diff(start) > 0]]]

    def rank_positions(self, rows: Integers, labels: Integers) -> Integers:
        """Return where in the ranking some rows stand, or would stand were they of other classes.

        Parameters
        ----------
        rows, labels : (n,) int32

        Returns
        -------
        (n,) int32
            Indices into the rows of :attr:`ranking`.
        """
        out = np.zeros(len(rows), np.int32)
        order = self.image, self.order, self.score, self.params.ties_by_image
        _ordering.find_rank_positions(*order, *self.ranking, rows, labels, out)
        return out

    @property
    def ground_truth_counts(self) -> NDArray[np.int64]:
        """How many ground truths there are to be found, (A, K) int64."""
        labels = [self.truth_label[row] for row in self.positive]
        return np.array([np.bincount(row, minlength=self.classes) for row in labels], np.int64)

    def is_true_positive(self, area: int, threshold: int, rows: Rows | None = None) -> Flags:
        """Return which detections, or which of some rows, are true positives, (N,) bool."""
        return _bit(self.true_positive[area], threshold, rows)

    def is_ignored(self, area: int, threshold: int, rows: Rows | None = None) -> Flags:
        """Return which detections, or which of some rows, count neither way, (N,) bool."""
        return _bit(self.ignored[area], threshold, rows)

    def matched_gt_at(self, area: int, threshold: int) -> Integers:
        """Return the ground truth that each detection matched, (N,) int32, or -1.

        Raises
        ------
        KeyError
            Where that cell was not asked for when the evidence was made.
        """
        if (area, threshold) not in self.area_iou_pairs:
            raise KeyError(f"no matched ground truths of area range {area}, threshold {threshold}")
        matched: Integers = self.matched_gt[self.area_iou_pairs.index((area, threshold))]
        return matched

    def select_images(self, images: Sequence[int]) -> "MatchTable":
        """Return the evidence of some images, which are numbered as listed.

        Parameters
        ----------
        images : sequence of int
            Numbers from 0 to I - 1, each at most once.
        """
        number = np.full(self.images, -1, np.int32)
        number[list(images)] = np.arange(len(images), dtype=np.int32)
        part = self._of(number[self.image] >= 0, number[self.truth_image] >= 0)
        return replace(
            part,
            image=number[part.image],
            truth_image=number[part.truth_image],
            images=len(images),
        ).freeze()

    def select_classes(self, classes: Sequence[int]) -> "MatchTable":
        """Return the evidence of some classes, which are numbered as listed.

        Parameters
        ----------
        classes : sequence of int
            Numbers from 0 to K - 1, each at most once.
        """
        number = np.full(self.classes, -1, np.int32)
        number[list(classes)] = np.arange(len(classes), dtype=np.int32)
        part = self._of(number[self.label] >= 0, number[self.truth_label] >= 0)
        return replace(
            part,
            label=number[part.label],
            truth_label=number[part.truth_label],
            classes=len(classes),
        ).freeze()

    def _of(self, detections: Flags, ground_truths: Flags) -> "MatchTable":
        """Return the evidence of some rows; a match with a ground truth left out becomes -1."""
        rows, truths = np.flatnonzero(detections), np.flatnonzero(ground_truths)
        new_row = np.full(len(self.truth_label) + 1, -1, np.int32)  # the last is that of -1
        new_row[truths] = np.arange(len(truths), dtype=np.int32)
        return replace(
            self,
            label=self.label[rows],
            image=self.image[rows],
            score=self.score[rows],
            order=self.order[rows],
            max_dets_index=self.max_dets_index[rows],
            true_positive=self.true_positive.take(rows, axis=1),
            ignored=self.ignored.take(rows, axis=1),
            duplicate=self.duplicate[rows],
            max_iou=self.max_iou[rows] if len(self.max_iou) else self.max_iou,
            matched_gt=new_row[self.matched_gt.take(rows, axis=1)],
            truth_label=self.truth_label[truths],
            truth_image=self.truth_image[truths],
            positive=self.positive.take(truths, axis=1),
        )

    @classmethod
    def concatenate(cls, parts: Iterable["MatchTable"]) -> "MatchTable":
        """Return the evidence of parts of the images as one.

        What is finished from it has the same bytes as of the whole, whatever images lie in which
        part and in whatever order the parts come.

        Parameters
        ----------
        parts : iterable of MatchTable
            At least one. All number images and classes alike, no image is in two of them, and
            places say how rows of different parts follow each other: where equal scores rank by
            image, places within an image are enough. Ground truths are numbered part by part.

        Raises
        ------
        ValueError
            Where parts were made in different ways, naming what differs; or where there are more
            than 2**31 - 1 detections or ground truths in all.
        """
        parts = tuple(parts)
        first = parts[0]
        for name in ("params", "area_iou_pairs", "images", "classes"):
            if any(getattr(part, name) != getattr(first, name) for part in parts):
                raise ValueError(f"match tables of different {name} cannot be concatenated")
        ends = np.cumsum([len(part.truth_label) for part in parts])
        if max(int(ends[-1]), sum(map(len, parts))) > MOST_ROWS:
            raise ValueError(f"more than {MOST_ROWS} rows cannot be concatenated")
        moved = [
            np.where(part.matched_gt < 0, -1, part.matched_gt + (end - len(part.truth_label)))
            for part, end in zip(parts, ends.tolist(), strict=True)
        ]
        columns = {
            entry.name: np.concatenate([getattr(part, entry.name) for part in parts], axis=-1)
            for entry in fields(cls)
            if isinstance(getattr(first, entry.name), np.ndarray) and entry.name != "matched_gt"
        }
        return cls(
            **columns,
            matched_gt=np.concatenate(moved, axis=1).astype(np.int32),
            area_iou_pairs=first.area_iou_pairs,
            images=first.images,
            classes=first.classes,
            params=first.params,
        ).freeze()


def rank_rows(label: Integers, score: Floats, left_out: NDArray[np.uint8], classes: int) -> Ranking:
    """Rank rows of each class by falling score; of equal ones the first row is the first.

    Parameters
    ----------
    label : (N,) int32
    score : (N,) float64
    left_out : (N,) uint8
        Rows that are not ranked.
    classes : int
    """
    place = np.arange(len(label), dtype=np.int32)
    start, rows = np.zeros(classes + 1, np.int32), np.zeros(len(label), np.int32)
    _ordering.rank_rows(label, place, place, score, left_out, False, start, rows)
    return Ranking(start, rows[: start[-1]])


def empty_bits(params: MatchParams, rows: int) -> Words:
    """Return words of no bits, one for each area range and row, as narrow as can be, (A, N)."""
    size = len(params.thresholds)
    kind = next(f"u{width}" for width in (1, 2, 4, 8) if size <= 8 * width)
    return np.zeros((len(params.area_ranges), rows), kind)


def _bit(words: Words, place: int, rows: Rows | None) -> Flags:
    words = words if rows is None else words[rows]
    flags: Flags = (words & words.dtype.type(1 << place)) != 0
    return flags
