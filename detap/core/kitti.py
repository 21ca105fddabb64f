"""Ground truths that choose detections: the pairing of the KITTI benchmark.

Detections claim nothing here. The ground truths of an image choose, one after the other, among the
detections that are left: first the one of the highest score, which tells at which scores to look;
then, at each of these scores alone, the one of the largest overlap. Precision is taken at 41 points
so, each a matching of its own.

What a ground truth would choose does not depend on what is left, only whether it can have it. So
pairs are sorted once, by ground truth and preference, and all images and points go through them
together, the first ground truths of the images first.

Axes: K classes, A ranges, N detections, G ground truths, P pairs, S scores.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core.accumulate import Scores
from detap.core.matching import Boxes
from detap.core.overlap import paired_overlaps
from detap.core.params import MatchParams

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Rows = NDArray[np.intp]

POINTS = 41
"""At so many points of recall is precision taken: 0, 1/40 ... 1."""

_PAIRS = 1 << 20
"""So many pairs are looked at at once."""


class Part(NamedTuple):
    """What rows are to the scoring of a class.

    Attributes
    ----------
    label : int
    threshold : float
        The overlap that pairs must reach.
    chooses, crowd : (G,) bool
        Ground truths that choose, neutral neighbours among them; and regions in which detections
        that are left over count neither way.
    due : (A, G) bool
        Those that should be found.
    """

    label: int
    threshold: float
    chooses: Flags
    crowd: Flags
    due: Flags


class _Given(NamedTuple):
    """What all classes share; :func:`match_kitti` has it."""

    detections: Boxes
    truths: Boxes
    low: Flags
    images: int
    params: MatchParams


class _Pairs(NamedTuple):
    """Overlapping pairs: rows of ground truths, ascending, and of detections, and how far."""

    gt: Rows
    dt: Rows
    iou: Floats


class _Tally(NamedTuple):
    """What a class comes to where detections of less than each of S scores are not looked at.

    Attributes
    ----------
    right, wrong, missed : (S,) int64
    taken : (n,) intp
        The detections that are chosen at the last score.
    """

    right: NDArray[np.int64]
    wrong: NDArray[np.int64]
    missed: NDArray[np.int64]
    taken: Rows


def match_kitti(
    detections: Boxes,
    truths: Boxes,
    parts: Sequence[Part],
    low: Flags,
    *,
    images: int,
    classes: int,
    params: MatchParams,
) -> Scores:
    """Let ground truths choose detections, and score the classes.

    Parameters
    ----------
    detections, truths : Boxes
        N and G rows, in file order.
    parts : sequence of Part
        The classes that are scored; of others nothing is defined.
    low : (A, N) bool
        Detections outside a range. They are taken, of whatever class, where nothing better is
        left, and then neither they nor the ground truth count.
    images, classes : int
        How many of each there are.
    params : Rules
        One threshold, whose value is not looked at; levels that are multiples of 1/40.

    Returns
    -------
    Scores
        Recall is that of all detections, whatever their score; and so are the counts.

    References
    ----------
    Geiger et al., Are we ready for autonomous driving? The KITTI vision benchmark suite, CVPR
    2012; Simonelli et al., Disentangling monocular 3D object detection, ICCV 2019, for the 40
    points; evaluate_object.cpp of the development kit.
    """
    levels = len(params.levels)
    scores = Scores.undefined(params, np.full(classes, levels), all_max_dets=False)
    # Levels are not those of hits here: each has its own value, whatever the ground truths.
    one_each = scores.interpolated._replace(positives=np.full_like(scores.positives, levels))
    scores = scores._replace(interpolated=one_each)
    scores.counts[1] = np.bincount(truths.label, minlength=classes)
    scores.counts[2] = scores.counts[6] = np.bincount(detections.label, minlength=classes)
    given = _Given(detections, truths, low, images, params)
    for part in parts:
        _Choices(given, part).score(scores)
    return scores


class _Choices:
    """One class being scored."""

    def __init__(self, given: _Given, part: Part) -> None:
        self.detections, self.truths, self.low, self.images, self.params = given
        self.part = part
        self.own = self.detections.label == part.label
        self.pairs = self._overlapping(part.chooses, self.own | self.low.any(axis=0))
        hidden = self._overlapping(part.crowd, self.own, crowd=True)
        self.hidden = np.zeros(len(self.own), np.bool_)
        self.hidden[hidden.dt] = True

    def score(self, scores: Scores) -> None:
        """Write what the class comes to."""
        label = self.part.label
        for a, due in enumerate(self.part.due):
            positives = int(due.sum())
            scores.positives[a, label] = positives
            counted = self.own & ~self.low[a]
            points = sampled(self._scores_found(due, counted, self.low[a]), positives)
            tally = self._tally(due, counted, self.low[a], np.append(points, -np.inf))
            if positives:
                self._write(scores, a, tally)
            if a == 0:
                scores.counts[:2, label] += (positives, -positives)
                scores.counts[3:5, label] = tally.right[-1], tally.wrong[-1]
                scores.counts[5, label] = self._duplicates(due, counted, tally.taken)

    def _write(self, scores: Scores, a: int, tally: _Tally) -> None:
        label = self.part.label
        right, looked = tally.right[:-1], (tally.right + tally.wrong)[:-1]
        found = np.zeros(POINTS)
        # Where nothing counts at a score, the kit divides zero by zero.
        total = looked + self.params.precision_eps
        np.divide(right, total, out=found[: len(right)], where=looked > 0)
        envelope = np.maximum.accumulate(found[::-1])[::-1]
        levels = envelope[np.rint(np.array(self.params.levels) * (POINTS - 1)).astype(np.intp)]
        scores.interpolated.write(label, a, 0, levels)
        scores.average[0, label, a] = sum(levels.tolist()) / len(levels)
        due = tally.right[-1] + tally.missed[-1]
        scores.recall[0, label, a, 0] = tally.right[-1] / due if due else 0.0

    def _scores_found(self, due: Flags, counted: Flags, low: Flags) -> Floats:
        """Return the scores of the detections that are chosen by score, where both count."""
        pairs = self._among(counted | low)
        score = self.detections.score[pairs.dt]
        chosen = self._chosen(pairs, np.lexsort((pairs.dt, -score, pairs.gt)), None)[0]
        right = due[pairs.gt[chosen]] & counted[pairs.dt[chosen]]
        return score[chosen[right]]

    def _tally(self, due: Flags, counted: Flags, low: Flags, points: Floats) -> _Tally:
        """Return what becomes of all at some scores: choices are now by overlap."""
        pairs = self._among(counted | low)
        better = counted[pairs.dt]
        # Low ones come behind all others, the first of them first.
        overlap = np.where(better, -pairs.iou, 0.0)
        order = np.lexsort((pairs.dt, overlap, pairs.gt))
        admitted = self.detections.score[pairs.dt][:, None] >= points
        chosen, at = self._chosen(pairs, order, admitted)
        is_due, counts = due[pairs.gt[chosen]], better[chosen]
        visible = counts & ~self.hidden[pairs.dt[chosen]]
        right, claimed, met = (
            np.bincount(at[which], minlength=len(points))
            for which in (is_due & counts, visible, is_due)
        )
        rest = np.sort(self.detections.score[counted & ~self.hidden])
        admitted_in_all = len(rest) - np.searchsorted(rest, points)
        last = chosen[at == len(points) - 1]
        return _Tally(right, admitted_in_all - claimed, int(due.sum()) - met, pairs.dt[last])

    def _duplicates(self, due: Flags, counted: Flags, taken: Rows) -> int:
        """Return how many false positives there are on ground truths that are found otherwise."""
        again = self.pairs.dt[due[self.pairs.gt]]
        again = again[(counted & ~self.hidden)[again]]
        return len(np.setdiff1d(again, taken))

    def _overlapping(
        self, of_truths: Flags, of_detections: Flags, *, crowd: bool = False
    ) -> _Pairs:
        """Return the pairs of some ground truths and detections that reach the threshold."""
        least = self.part.threshold
        claims = np.flatnonzero(of_detections)
        claims = claims[np.argsort(self.detections.image[claims], kind="stable")]
        begin = np.searchsorted(self.detections.image[claims], np.arange(self.images + 1))
        chosen = np.flatnonzero(of_truths)
        image = self.truths.image[chosen]
        count = begin[image + 1] - begin[image]
        found = [_Pairs(chosen[:0], claims[:0], np.zeros(0))]
        ends = np.cumsum(count)
        steps = np.unique(np.searchsorted(ends, np.arange(_PAIRS, ends[-1:].sum(), _PAIRS)))
        for rows in np.split(np.arange(len(chosen)), steps):
            each = np.repeat(rows, count[rows])
            # The n-th row of each ground truth is the n-th detection of its image.
            nth = np.arange(len(each)) - np.searchsorted(each, each)
            truth, claim = chosen[each], claims[begin[image[each]] + nth]
            overlap = paired_overlaps(
                self.detections.corners[claim],
                self.truths.corners[truth],
                detection_areas=self.detections.overlap_area[claim],
                truth_areas=self.truths.overlap_area[truth],
                crowd=np.full(len(each), crowd),
                inclusive_pixels=self.params.inclusive_pixels,
            )
            reached = overlap > least if self.params.strict else overlap >= least
            found.append(_Pairs(truth[reached], claim[reached], overlap[reached]))
        return _Pairs(*map(np.concatenate, zip(*found, strict=True)))

    def _among(self, candidates: Flags) -> _Pairs:
        kept = candidates[self.pairs.dt]
        return _Pairs(self.pairs.gt[kept], self.pairs.dt[kept], self.pairs.iou[kept])

    def _chosen(self, pairs: _Pairs, order: Rows, admitted: Flags | None) -> tuple[Rows, Rows]:
        """Return which pairs are chosen, and at which of the scores.

        Parameters
        ----------
        pairs : _Pairs
        order : (P,) intp
            By ground truth, the best first.
        admitted : (P, S) bool or None
            Which detections are looked at, at each score; None for all at one.
        """
        if not len(order):
            return order, order
        truth = pairs.gt[order]
        claim = np.unique(pairs.dt, return_inverse=True)[1][order]
        open_pairs = np.ones((len(order), 1), np.bool_) if admitted is None else admitted[order]
        free = np.ones((int(claim.max()) + 1, open_pairs.shape[1]), np.bool_)
        chosen, at = [], []
        for rows in _turns(truth, self.truths.image):
            able = open_pairs[rows] & free[claim[rows]]
            begins = np.flatnonzero(np.diff(truth[rows], prepend=-1))
            place = np.where(able, np.arange(len(rows))[:, None], len(rows))
            first = np.minimum.reduceat(place, begins, axis=0)
            which, score = np.nonzero(first < len(rows))
            taken = rows[first[which, score]]
            free[claim[taken], score] = False
            chosen.append(order[taken])
            at.append(score)
        return np.concatenate(chosen), np.concatenate(at)


def sampled(scores: Floats, positives: int) -> Floats:
    """Return the scores at which to look: nearest to steps of 1/40 in recall, at most 41.

    Parameters
    ----------
    scores : (n,) float64
        Of what is found, n at most `positives`.
    positives : int
        How many there are to be found.
    """
    ordered = np.sort(scores)[::-1].tolist()
    points, recall = [], 0.0
    for number, score in enumerate(ordered, 1):
        here, behind = number / positives, (number + 1) / positives
        if number < len(ordered) and behind - recall < recall - here:
            continue
        points.append(score)
        recall += 1 / (POINTS - 1)
    return np.array(points, np.float64)


def _turns(truth: Rows, image: NDArray[np.int32]) -> Iterator[Rows]:
    """Yield the pairs of the first ground truth of each image, of the second, and so on.

    Parameters
    ----------
    truth : (P,) intp
        Ascending: of each pair.
    image : (G,) int32
    """
    choosing, of = np.unique(truth, return_inverse=True)
    order = np.argsort(image[choosing], kind="stable")
    sorted_images = image[choosing][order]
    turn = np.empty(len(choosing), np.intp)
    turn[order] = np.arange(len(choosing)) - np.searchsorted(sorted_images, sorted_images)
    of_pairs = turn[of]
    by_turn = np.argsort(of_pairs, kind="stable")
    yield from np.split(by_turn, np.cumsum(np.bincount(of_pairs))[:-1])
