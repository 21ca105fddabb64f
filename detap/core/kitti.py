"""KITTI matching: ground truths choose detections.

The ground truths of an image choose one after the other among the unmatched detections. First each
takes the one of highest score, which determines the score thresholds. Then, at each of up to 41
thresholds, each takes the one of largest IoU: every point of the curve is a matching of its own.

The order of a ground truth's candidates does not depend on earlier matches. So pairs are sorted
once, by ground truth and preference, and all images and thresholds are matched together, the first
ground truths of the images first.

Axes: K classes, A ranges, N detections, G ground truths, P pairs, S score thresholds.

Source: Geiger et al., Are we ready for autonomous driving?, CVPR 2012; Simonelli et al.,
Disentangling monocular 3D object detection, ICCV 2019, for the 40 points; evaluate_object.cpp of
the development kit.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core.arrays import Boxes, Scores
from detap.core.overlap import overlaps_of
from detap.core.params import MatchParams

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Rows = NDArray[np.intp]

POINTS = 41
"""Recall points: 0, 1/40 ... 1."""

_PAIRS = 1 << 20
"""Pairs per batch."""


class Part(NamedTuple):
    """Flags of the rows for one class."""

    label: int
    threshold: float  # minimum IoU
    chooses: Flags  # (G,) ground truths that match, including ignored neighbor classes
    crowd: Flags  # (G,) regions in which unmatched detections are ignored
    valid: Flags  # (A, G) ground truths that count


class _Inputs(NamedTuple):
    """Inputs shared by all classes; see :func:`match_kitti`."""

    detections: Boxes
    ground_truths: Boxes
    low: Flags
    images: int
    params: MatchParams


class _Pairs(NamedTuple):
    """Overlapping pairs: ground truths, ascending, detections and IoUs."""

    gt: Rows
    dt: Rows
    iou: Floats


class _Counts(NamedTuple):
    """Counts of a class at each of S score thresholds."""

    tp: NDArray[np.int64]  # (S,)
    fp: NDArray[np.int64]  # (S,)
    fn: NDArray[np.int64]  # (S,)
    matched_dt: Rows  # (n,) detections that are matched at the last threshold


def match_kitti(
    detections: Boxes,
    ground_truths: Boxes,
    parts: Sequence[Part],  # scored classes; others are undefined
    low: Flags,  # (A, N) detections outside a range
    *,
    images: int,
    classes: int,
    params: MatchParams,  # with one threshold, which is not used; levels are multiples of 1/40
) -> Scores:
    """Match ground truths to detections and score the classes."""
    # Detections outside a range, `low`, match in any class if no other detection is left; then
    # neither they nor the ground truth count. Recall and counts are over all detections, whatever
    # their score.
    levels = len(params.levels)
    scores = Scores.undefined(params, np.full(classes, levels), all_max_dets=False)
    # One slot per level: here the levels are not tied to hits.
    per_level = scores.interpolated._replace(positives=np.full_like(scores.positives, levels))
    scores = scores._replace(interpolated=per_level)
    scores.counts[1] = np.bincount(ground_truths.label, minlength=classes)
    scores.counts[2] = scores.counts[6] = np.bincount(detections.label, minlength=classes)
    inputs = _Inputs(detections, ground_truths, low, images, params)
    for part in parts:
        _ClassMatcher(inputs, part).score(scores)
    return scores


class _ClassMatcher:
    """Matching of one class."""

    def __init__(self, inputs: _Inputs, part: Part) -> None:
        self.detections, self.ground_truths, self.low, self.images, self.params = inputs
        self.part = part
        self.own = self.detections.label == part.label
        self.pairs = self._overlapping(part.chooses, self.own | self.low.any(axis=0))
        hidden = self._overlapping(part.crowd, self.own, crowd=True)
        self.hidden = np.zeros(len(self.own), np.bool_)
        self.hidden[hidden.dt] = True

    def score(self, scores: Scores) -> None:
        """Write the scores of the class."""
        label = self.part.label
        for a, valid in enumerate(self.part.valid):
            positives = int(valid.sum())
            scores.positives[a, label] = positives
            counted = self.own & ~self.low[a]
            points = sampled(self._matched_scores(valid, counted, self.low[a]), positives)
            counts = self._count(valid, counted, self.low[a], np.append(points, -np.inf))
            if positives:
                self._write(scores, a, counts)
            if a == 0:
                scores.counts[:2, label] += (positives, -positives)
                scores.counts[3:5, label] = counts.tp[-1], counts.fp[-1]
                # False positives on ground truths that others matched.
                dt_rows = self.pairs.dt[valid[self.pairs.gt]]
                dt_rows = dt_rows[(counted & ~self.hidden)[dt_rows]]
                scores.counts[5, label] = len(np.setdiff1d(dt_rows, counts.matched_dt))

    def _write(self, scores: Scores, a: int, counts: _Counts) -> None:
        label = self.part.label
        right, n_detections = counts.tp[:-1], (counts.tp + counts.fp)[:-1]
        precision = np.zeros(POINTS)
        # The devkit divides zero by zero at scores where nothing counts.
        total = n_detections + self.params.precision_eps
        np.divide(right, total, out=precision[: len(right)], where=n_detections > 0)
        envelope = np.maximum.accumulate(precision[::-1])[::-1]
        levels = envelope[np.rint(np.array(self.params.levels) * (POINTS - 1)).astype(np.intp)]
        scores.interpolated.write(label, a, 0, levels)
        scores.average[0, label, a] = np.cumsum(levels)[-1] / len(levels)  # in order, as the kit
        n_positives = counts.tp[-1] + counts.fn[-1]
        scores.recall[0, label, a, 0] = counts.tp[-1] / n_positives if n_positives else 0.0

    def _matched_scores(self, valid: Flags, counted: Flags, low: Flags) -> Floats:
        """Match by score; return the scores of matches whose two boxes count."""
        pairs = self._select_pairs(counted | low)
        score = self.detections.score[pairs.dt]
        chosen = self._match_pairs(pairs, np.lexsort((pairs.dt, -score, pairs.gt)), None)[0]
        right = valid[pairs.gt[chosen]] & counted[pairs.dt[chosen]]
        return score[chosen[right]]

    def _count(self, valid: Flags, counted: Flags, low: Flags, points: Floats) -> _Counts:
        """Match by IoU at score thresholds and count."""
        pairs = self._select_pairs(counted | low)
        better = counted[pairs.dt]
        # Detections outside the range come last, in file order.
        overlap = np.where(better, -pairs.iou, 0.0)
        order = np.lexsort((pairs.dt, overlap, pairs.gt))
        admitted = self.detections.score[pairs.dt][:, None] >= points
        chosen, at = self._match_pairs(pairs, order, admitted)
        is_valid, counts = valid[pairs.gt[chosen]], better[chosen]
        visible = counts & ~self.hidden[pairs.dt[chosen]]
        right, matched_visible, matched_positives = (
            np.bincount(at[mask], minlength=len(points))
            for mask in (is_valid & counts, visible, is_valid)
        )
        visible_scores = np.sort(self.detections.score[counted & ~self.hidden])
        n_visible = len(visible_scores) - np.searchsorted(visible_scores, points)
        last = chosen[at == len(points) - 1]
        return _Counts(
            right, n_visible - matched_visible, int(valid.sum()) - matched_positives, pairs.dt[last]
        )

    def _overlapping(
        self, of_ground_truths: Flags, of_detections: Flags, *, crowd: bool = False
    ) -> _Pairs:
        """Return the pairs of some rows that reach the threshold."""
        min_iou = self.part.threshold
        dt_rows = np.flatnonzero(of_detections)
        dt_rows = dt_rows[np.argsort(self.detections.image[dt_rows], kind="stable")]
        begin = np.searchsorted(self.detections.image[dt_rows], np.arange(self.images + 1))
        chosen = np.flatnonzero(of_ground_truths)
        image = self.ground_truths.image[chosen]
        count = begin[image + 1] - begin[image]
        pairs = [_Pairs(chosen[:0], dt_rows[:0], np.zeros(0))]
        ends = np.cumsum(count)
        steps = np.unique(np.searchsorted(ends, np.arange(_PAIRS, ends[-1:].sum(), _PAIRS)))
        for rows in np.split(np.arange(len(chosen)), steps):
            truth_index = np.repeat(rows, count[rows])
            # The n-th row of each ground truth is the n-th detection of its image.
            nth = np.arange(len(truth_index)) - np.searchsorted(truth_index, truth_index)
            truth, dt = chosen[truth_index], dt_rows[begin[image[truth_index]] + nth]
            boxes, inclusive = (self.detections, self.ground_truths), self.params.inclusive_pixels
            iou = overlaps_of(boxes, dt, truth, inclusive, crowd=crowd, paired=True)
            reached = iou > min_iou if self.params.strict else iou >= min_iou
            pairs.append(_Pairs(truth[reached], dt[reached], iou[reached]))
        return _Pairs(*map(np.concatenate, zip(*pairs, strict=True)))

    def _select_pairs(self, candidates: Flags) -> _Pairs:
        mask = candidates[self.pairs.dt]
        return _Pairs(self.pairs.gt[mask], self.pairs.dt[mask], self.pairs.iou[mask])

    def _match_pairs(self, pairs: _Pairs, order: Rows, admitted: Flags | None) -> tuple[Rows, Rows]:
        """Return the matched pairs and the score threshold of each."""
        if not len(order):
            return order, order
        truth = pairs.gt[order]
        detection = np.unique(pairs.dt, return_inverse=True)[1][order]
        usable = np.ones((len(order), 1), np.bool_) if admitted is None else admitted[order]
        unmatched = np.ones((int(detection.max()) + 1, usable.shape[1]), np.bool_)
        matched_pairs, thresholds = [], []
        for rows in _rounds(truth, self.ground_truths.image):
            allowed = usable[rows] & unmatched[detection[rows]]
            starts = np.flatnonzero(np.diff(truth[rows], prepend=-1))
            # The first allowed pair of each ground truth, at each threshold.
            candidate = np.where(allowed, np.arange(len(rows))[:, None], len(rows))
            first = np.minimum.reduceat(candidate, starts, axis=0)
            truth_index, threshold = np.nonzero(first < len(rows))
            matched = rows[first[truth_index, threshold]]
            unmatched[detection[matched], threshold] = False
            matched_pairs.append(order[matched])
            thresholds.append(threshold)
        return np.concatenate(matched_pairs), np.concatenate(thresholds)


def sampled(scores: Floats, positives: int) -> Floats:
    """Return up to 41 score thresholds, nearest to steps of 1/40 in recall."""
    ordered = np.sort(scores)[::-1].tolist()
    points, recall = [], 0.0
    for number, score in enumerate(ordered, 1):
        current, following = number / positives, (number + 1) / positives
        if number < len(ordered) and following - recall < recall - current:
            continue
        points.append(score)
        recall += 1 / (POINTS - 1)
    return np.array(points, np.float64)


def _rounds(truth: Rows, image: NDArray[np.int32]) -> Iterator[Rows]:
    """Yield the pairs of the first ground truth of each image, of the second, and so on."""
    choosing, of = np.unique(truth, return_inverse=True)
    order = np.argsort(image[choosing], kind="stable")
    sorted_images = image[choosing][order]
    turn = np.empty(len(choosing), np.intp)
    turn[order] = np.arange(len(choosing)) - np.searchsorted(sorted_images, sorted_images)
    of_pairs = turn[of]
    by_turn = np.argsort(of_pairs, kind="stable")
    yield from np.split(by_turn, np.cumsum(np.bincount(of_pairs))[:-1])
