"""Matching detections to ground truths, and the counts and curves that follow.

Axes: T thresholds, R recall levels, K classes, A area ranges, M max dets, N detections,
G ground truths, P candidate pairs, C cells of area range and threshold. Undefined is NaN.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core import _matching
from detap.core.accumulate import Scores, accumulate_class
from detap.core.params import MatchParams
from detap.core.threads import fair_share, share, thread_count

if TYPE_CHECKING:  # a plain run keeps none
    from detap.core.match_table import Cell, MatchTable

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Flags = NDArray[np.bool_]

UNLIMITED = np.iinfo(np.int32).max
"""More than any count of rows; what has this very rank is beyond every limit."""

CHUNK_SIZE = 1 << 15
"""So many rows of a class that is split out are matched at once: a core's own cache holds them."""


class Boxes(NamedTuple):
    """Columns of boxes, all of one length.

    Attributes
    ----------
    image, label : int32
        Dense numbers from 0.
    corners : (n, 4) float64
        x1, y1, x2, y2. Not looked at where candidate pairs are given.
    overlap_area : float64
        The area that enters the union; likewise.
    area : float64
        The area that decides the range.
    score : float64
        Detections only; empty for ground truths.
    """

    image: Integers
    label: Integers
    corners: Floats
    overlap_area: Floats
    area: Floats
    score: Floats


class Pairs(NamedTuple):
    """Candidate pairs: what a kernel that is not that of boxes found to overlap.

    Attributes
    ----------
    start : (N + 1,) int64
        The pairs of detection n are ``start[n]`` to ``start[n + 1]``.
    truth : (P,) int32
        Rows of ground truths of the detection's image and class, ascending for each detection:
        where overlaps are equal their order decides. What is not listed does not overlap.
    similarity : (P,) float64
        The overlap of each pair; with a ground truth that absorbs, what the protocol has there.
    """

    start: NDArray[np.int64]
    truth: Integers
    similarity: Floats

    def between(self, rows: NDArray[Any], found: NDArray[Any]) -> Floats:
        """Return the overlap of each detection with a ground truth of its own; 0 where unlisted.

        Parameters
        ----------
        rows, found : (n,) integer
            Of the detections and of the ground truths.
        """
        if not len(self.truth):
            return np.zeros(len(rows))
        at, end = self.start[rows], self.start[rows + 1]
        last, stop = np.maximum(end - 1, 0), end
        # A binary search among the pairs of each detection, of all at once.
        while (at < stop).any():
            middle = (at + stop) // 2
            less = (at < stop) & (self.truth[np.minimum(middle, last)] < found)
            stop = np.where(less, stop, np.minimum(middle, stop))
            at = np.where(less, middle + 1, at)
        listed = (at < end) & (self.truth[np.minimum(at, last)] == found)
        return np.where(listed, self.similarity[np.minimum(at, last)], 0.0)

    def check(self, detections: Boxes, truths: Boxes) -> None:
        """Raise ValueError where these are no pairs of these detections and ground truths."""
        counts = np.diff(self.start)
        if (
            len(self.start) != len(detections.image) + 1
            or self.start[0] != 0
            or (counts < 0).any()
            or not self.start[-1] == len(self.truth) == len(self.similarity)
        ):
            raise ValueError("pairs do not start detection by detection, from 0 to their number")
        if len(self.truth) and not 0 <= self.truth.min() <= self.truth.max() < len(truths.image):
            raise ValueError(f"pairs name ground truths beyond the {len(truths.image)} that exist")
        claims = np.repeat(np.arange(len(counts)), counts)
        if (detections.image[claims] != truths.image[self.truth]).any() or (
            detections.label[claims] != truths.label[self.truth]
        ).any():
            raise ValueError("pairs of different images or classes")
        if ((np.diff(self.truth) <= 0) & (np.diff(claims) == 0)).any():
            raise ValueError("pairs of a detection do not ascend by ground truth")


def max_dets_array(limits: tuple[int | None, ...]) -> NDArray[np.int64]:
    """Return the limits as an array, the absent one as :data:`UNLIMITED`."""
    return np.array([UNLIMITED if limit is None else limit for limit in limits], np.int64)


def match_and_accumulate(
    detections: Boxes,
    truths: Boxes,
    *,
    ignored: Flags,
    crowd: Flags,
    unmatchable: Flags,
    images: int,
    classes: int,
    params: MatchParams,
    pairs: Pairs | None = None,
    threads: int | None = None,
    all_max_dets: bool = False,
    match_table: "Iterable[Cell] | None" = None,
    rank: Integers | None = None,
    curves: bool = True,
) -> Scores:
    """Match detections to ground truths, class by class, and score them.

    A class of more than a thread's share is split out in stretches of its images, and finished from
    the evidence of these.

    Parameters
    ----------
    detections, truths : Boxes
        N and G rows, in file order.
    ignored, crowd : (G,) bool
        Ground truths that need not be found; and those that take any number of detections.
    unmatchable : (G,) bool
        Ground truths that can be taken but never found: a match with one is none.
    images, classes : int
        How many of each there are.
    params : Rules
        How to do it.
    pairs : Pairs, optional
        The overlaps; by default those of the boxes.
    threads : int, optional
        The result does not depend on it.
    all_max_dets : bool
        Whether precision is wanted at every detection limit, not only the largest.
    match_table : iterable of pairs of int, optional
        Keep what became of each detection, and for these area ranges and thresholds the ground
        truth that it matched.
    rank : (N,) int32, optional
        The place of each detection, from 0, that the limits apply to, or :data:`UNLIMITED`; by
        default its place among those of its class and image.
    curves : bool
        Whether precision is wanted. Otherwise no more than its first level is taken: for parts of
        the images, of which only the evidence is kept.

    Returns
    -------
    Scores

    Raises
    ------
    ValueError
        Where the pairs are not what :class:`Pairs` says.
    """
    if pairs is not None:
        pairs.check(detections, truths)
    taken = params if curves else params._replace(levels=params.levels[:1])
    truth_counts = np.bincount(truths.label, minlength=classes)
    scores = Scores.undefined(taken, truth_counts, all_max_dets=all_max_dets)
    rows = len(detections.image) + len(truths.image)
    wanted = threads or thread_count(rows)
    ranked = np.zeros(len(detections.image), np.int32)
    matcher = _matching.Matcher(
        detections,
        truths,
        (ignored.view(np.uint8), crowd.view(np.uint8), unmatchable.view(np.uint8)),
        pairs,
        np.zeros(0, np.int32) if rank is None else rank,
        taken,
        max_dets_array(params.max_dets),
        images,
        scores,
        all_max_dets,
        ranked,
        fair_share(rows, wanted),
        CHUNK_SIZE,
    )
    split = np.asarray(matcher.split).tolist()
    if match_table is None and not split:
        share(matcher.work, min(wanted, max(classes, 1)))
        return scores
    kept = _nothing_yet(detections, truths, ignored, params, tuple(match_table or ()))
    kept = replace(kept, images=images, classes=classes)
    matcher.keep_matches(kept, match_table is not None)
    share(matcher.work, min(wanted, max(matcher.jobs, 1)))
    kept.freeze()
    for label, begin, end in split:
        accumulate_class(
            kept,
            label,
            ranked[begin:end],
            scores=scores,
            params=taken,
            threads=wanted,
            all_max_dets=all_max_dets,
        )
    if match_table is None:
        return scores
    kept.set_ranking(ranked, within=scores.counts[6])
    return scores._replace(match_table=kept)


def _nothing_yet(
    detections: Boxes, truths: Boxes, ignored: Flags, params: MatchParams, cells: "tuple[Cell, ...]"
) -> "MatchTable":
    """Return room for evidence, where every detection is beyond the largest limit."""
    from detap.core.match_table import MatchTable, empty_bits  # noqa: PLC0415 - only there

    count = len(detections.image)
    inside = [(truths.area >= low) & (truths.area <= high) for low, high in params.area_ranges]
    return MatchTable(
        label=detections.label,
        image=detections.image,
        score=detections.score,
        order=np.arange(count, dtype=np.int32),
        max_dets_index=np.full(count, len(params.max_dets), np.uint8),
        true_positive=empty_bits(params, count),
        ignored=empty_bits(params, count),
        duplicate=np.zeros(count, np.bool_),
        max_iou=np.zeros(count),
        area_iou_pairs=cells,
        matched_gt=np.full((len(cells), count), -1, np.int32),
        truth_label=truths.label,
        truth_image=truths.image,
        positive=np.array(inside) & ~ignored,
        images=0,
        classes=0,
        params=params,
    )
