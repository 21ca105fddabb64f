"""Bounds on metrics over all orders of equally scored detections.

Equal scores have no defined order: files or images decide it. The bounds hold for every order.

Tied detections that do not compete are true or false positives in every order. The bounds are then
attained: the true positives of each tie come first or last. If tied detections compete for a ground
truth, or if max dets splits the tie, all their orders in that image and class are followed
(core/tie_orders.py). The extremes of all images are combined; this is still a bound, but perhaps no
single order attains it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations, product
from math import factorial, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap import metrics
from detap.core import curves
from detap.core.arrays import Boxes
from detap.core.match_table import MatchTable
from detap.core.matching import max_dets_array
from detap.core.overlap import overlaps_of
from detap.core.params import inside_ranges
from detap.core.proposals import match_by_iou
from detap.core.tie_orders import HIT, MISS, NEITHER, CountBounds, MatchOptions, Tie, count_bounds
from detap.errors import UsageError
from detap.evaluation.prepare import rows_by_key
from detap.evaluation.results import Result
from detap.evaluation.run import EvaluationRun
from detap.evaluation.selection import SelectedClasses
from detap.protocols import Protocol
from detap.tables.detection import Flags, Floats

Rows = NDArray[np.int64]

MAX_ORDERS = 720
"""Maximum number of orders of one image's proposals to try."""


class TieRange(NamedTuple):
    """A metric with its bounds over all orders of equal scores."""

    lowest: float
    value: float
    highest: float


class TieGroup(NamedTuple):
    """The detections of one image and class, some of which compete."""

    label: int
    image: int
    score: Floats  # of its n ties, in descending order
    # after each tie, by threshold, area range and max dets, where the order of ties matters
    bounds: dict[tuple[int, int, int], tuple[CountBounds, ...]]


def tie_range(result: Result) -> dict[str, TieRange]:
    """Return bounds on AP and AR over all orders of equal scores."""
    run = result._run
    if run.protocol.max_dets_scope == "dataset":
        raise UsageError(
            "--max-dets-scope dataset may drop some of the detections of one score, which "
            "--tie-range does not support; omit it or use --max-dets-scope class"
        )
    if run.protocol.max_dets_order == "file":
        raise UsageError(
            "--max-dets-order file matches each limit again, which --tie-range does not support; "
            "omit it or use --max-dets-order score"
        )
    if run.group.any():
        raise UsageError(
            f"protocol {run.protocol.name} matches group-of boxes in a second stage, which "
            "--tie-range does not support; omit it or use --group-of-weight none"
        )
    if run.protocol.matching == "by-iou":
        ends = _ProposalOrders(run).ends(result)
    else:
        ends = _ends(result, _tie_groups(run, result.match_table))
    low, high = (end.summary for end in ends)
    entries = metrics.summary(result.protocol)
    # Only accumulated metrics have bounds.
    values = {e.name: result.summary[e.name] for e in entries if e.metric.accumulated is not None}
    return {
        name: TieRange(min(low[name], value), value, max(high[name], value))
        for name, value in values.items()
    }


def _tie_groups(run: EvaluationRun, match_table: MatchTable) -> list[TieGroup]:
    """Return the tie groups of detections ranked by score."""
    if not isinstance(run, SelectedClasses):
        return [*_ScoreOrders(run, match_table).tie_groups()]
    groups = _tie_groups(run.full, run.full.match_table())
    new = run.new_labels.tolist()
    return [group._replace(label=new[group.label]) for group in groups if new[group.label] >= 0]


def _ends(result: Result, tie_groups: Sequence[TieGroup]) -> tuple[Result, Result]:
    """Return the results with the lowest and highest metrics of detections ranked by score."""
    low, high = (
        replace(
            result,
            average_precision=result.average_precision.copy(),
            recall=result.recall.copy(),
            _interpolated=result._interpolated.copy(),
        )
        for _ in range(2)
    )
    label, score = result.match_table.label, result.match_table.score
    order = np.lexsort((-score, label))
    bounds = np.searchsorted(label[order], np.arange(len(result.classes) + 1))
    of_class: list[list[TieGroup]] = [[] for _ in result.classes]
    for group in tie_groups:
        of_class[group.label].append(group)
    for k, groups in enumerate(of_class):
        _bound_class(result, k, order[bounds[k] : bounds[k + 1]], groups, (low, high))
    return low, high


def _bound_class(
    result: Result, k: int, rows: Rows, groups: Sequence[TieGroup], ends: Sequence[Result]
) -> None:
    """Write the bounds of a class, whose detections are some rows of the match table."""
    match_table, protocol = result.match_table, result.protocol
    score = match_table.score[rows]
    changed = np.diff(score, prepend=np.nan) != 0
    level, scores = np.cumsum(changed) - 1, score[changed]
    levels = [np.searchsorted(-scores, -tie_group.score) for tie_group in groups]
    positives = match_table.ground_truth_counts[:, k]
    last = len(protocol.max_dets) - 1
    for t, m in product(range(len(protocol.iou_thresholds)), range(last + 1)):
        changing = [n for n, group in enumerate(groups) if (t, 0, m) in group.bounds]
        is_steady = np.ones(match_table.images, np.bool_)
        is_steady[[groups[n].image for n in changing]] = False
        counted = match_table.max_dets_index[rows] <= m
        steady = np.flatnonzero(counted & is_steady[match_table.image[rows]])
        steady_rows = rows[steady]
        for a in np.flatnonzero(positives).tolist():
            hit = match_table.is_true_positive(a, t, steady_rows)
            miss = ~hit & ~match_table.is_ignored(a, t, steady_rows)
            tie_bounds = [(levels[n], groups[n].bounds[t, a, m]) for n in changing]
            hit_count = int(np.count_nonzero(hit))
            least = hit_count + sum(each[-1].min_hits for _, each in tie_bounds)
            most = hit_count + sum(each[-1].max_hits for _, each in tie_bounds)
            ends[0].recall[t, k, a, m] = least / positives[a]
            ends[1].recall[t, k, a, m] = most / positives[a]
            if m < last:
                continue
            hits, misses = (
                np.bincount(level[steady[flags]], minlength=len(scores)).cumsum()
                for flags in (hit, miss)
            )
            for end, hits_of in zip(ends, (_late_hits, _early_hits), strict=True):
                ranked = hits_of(hits, misses, tie_bounds)
                _write(end, (t, k, a), ranked, int(positives[a]))


def _write(
    end: Result, index: tuple[int, int, int], hits: NDArray[np.int32], positives: int
) -> None:
    t, k, a = index
    levels, summing = end.recall_levels, end.protocol.summing
    guard = end.protocol.precision_eps
    if end.protocol.interpolation == "101-point":  # AP is the mean of the precision
        precision = curves.interpolated_precision(
            hits, positives, levels, summing=summing, precision_eps=guard
        )
        end._interpolated.write(k, a, t, precision)
    else:
        end.average_precision[index] = curves.average_precision(
            hits,
            positives,
            levels=levels if len(levels) else None,
            summing=summing,
            precision_eps=guard,
        )


_BoundsByLevel = list[tuple[Rows, tuple[CountBounds, ...]]]
"""Per tie group: the level of each of its ties, and the bounds after it."""


def _add_tie_groups(base: Rows, tie_bounds: _BoundsByLevel, name: str) -> Rows:
    """Return cumulative counts by level, with one bound (`name`) of all tie groups added."""
    steps = np.zeros(len(base), np.int64)
    for levels, bounds in tie_bounds:
        np.add.at(steps, levels, np.diff([getattr(span, name) for span in bounds], prepend=0))
    return np.asarray(base + steps.cumsum())


def _early_hits(hits: Rows, misses: Rows, tie_bounds: _BoundsByLevel) -> NDArray[np.int32]:
    """Return the hits (core/curves.py) with the most true positives, ranked highest."""
    hits_by_level = _add_tie_groups(hits, tie_bounds, "max_hits")
    above = np.concatenate([[0], _add_tie_groups(misses, tie_bounds, "min_misses")])[:-1]
    return np.repeat(above, np.diff(hits_by_level, prepend=0)).astype(np.int32)


def _late_hits(hits: Rows, misses: Rows, tie_bounds: _BoundsByLevel) -> NDArray[np.int32]:
    """Return the hits (core/curves.py) with the fewest true positives, ranked lowest.

    In a tie group, ``max_misses - misses_ahead`` false positives can only follow the first true
    positive: it took their ground truth. At most i groups have their first true positive before
    the i-th hit (from 0) of a level, so the false positives of i groups count, the largest first.
    """
    hits_by_level = _add_tie_groups(hits, tie_bounds, "min_hits")
    before = _add_tie_groups(misses, tie_bounds, "max_misses")
    behind: dict[int, list[int]] = {}
    for levels, spans_of in tie_bounds:
        for level, span in zip(levels.tolist(), spans_of, strict=True):
            if span.max_misses > span.misses_ahead:
                behind.setdefault(level, []).append(span.max_misses - span.misses_ahead)
    late_hits = np.repeat(before, np.diff(hits_by_level, prepend=0))
    for level, counts in behind.items():
        start = int(hits_by_level[level - 1]) if level else 0
        stop = int(hits_by_level[level])
        sums = np.concatenate([[0], np.cumsum(sorted(counts, reverse=True))])
        index = np.minimum(np.arange(stop - start), len(counts))
        late_hits[start:stop] += sums[index] - sums[-1]
    return late_hits.astype(np.int32)


def _ranks(scope: Rows, score: Floats) -> Rows:
    """Return the first and last rank of each row's tie, by score in its scope, (2, N)."""
    order = np.lexsort((-score, scope))
    scope, score = scope[order], score[order]
    begin = np.searchsorted(scope, scope, side="left")
    starts_tie = np.diff(scope, prepend=-1) != 0
    starts_tie[1:] |= np.diff(score) != 0
    tie = np.cumsum(starts_tie) - 1
    first = np.flatnonzero(starts_tie)[tie] - begin
    ranks = np.empty((2, len(order)), np.int64)
    ranks[:, order] = first, first + np.bincount(tie)[tie] - 1
    return ranks


class _ScoreOrders:
    """The orders of detections ranked by score."""

    def __init__(self, run: EvaluationRun, match_table: MatchTable) -> None:
        self.run, self.match_table = run, match_table
        self.protocol = run.protocol
        self.detections, self.ground_truths = run.boxes()
        self.limits = max_dets_array(self.protocol.max_dets_per_image)
        image = self.detections.image.astype(np.int64)
        self.class_and_image = self.detections.label * np.int64(len(run.images)) + image
        scope = self.class_and_image if self.protocol.max_dets_scope == "class" else image
        self.first, self.last = _ranks(scope, self.detections.score)
        self.tie = _ranks(self.class_and_image, self.detections.score)[0]

    def tie_groups(self) -> Iterator[TieGroup]:
        """Yield the tie groups, by class and image."""
        images, truth = len(self.run.images), self.ground_truths
        pairs = np.unique(self.class_and_image[self._in_tie_groups()])
        truth_key = truth.label * np.int64(images) + truth.image
        for pair, rows, truth_rows in zip(
            pairs.tolist(),
            rows_by_key(self.class_and_image, ~self.run.not_scored, pairs),
            rows_by_key(truth_key, np.ones(len(truth_key), np.bool_), pairs),
            strict=True,
        ):
            candidates = _ImageClass(self, rows, truth_rows)
            if bounds := candidates.bounds():
                score = self.detections.score[candidates.first_rows]
                label, image = divmod(pair, images)
                yield TieGroup(label, image, score, bounds)

    def _in_tie_groups(self) -> Flags:
        """Return a mask of detections whose tie may have several outcomes."""
        straddles = np.zeros(len(self.class_and_image), np.bool_)
        for limit in self.limits:
            straddles |= (self.first < limit) & (self.last >= limit)
        # Two of a tie that reach any ground truth may compete for one.
        reaches = np.flatnonzero(self.match_table.max_iou >= self.protocol.search_thresholds[0])
        tie = np.stack([self.class_and_image[reaches], self.tie[reaches]])
        _, index, count = np.unique(tie, axis=1, return_inverse=True, return_counts=True)
        straddles[reaches[count[index.ravel()] > 1]] = True
        straddles &= ~self.run.not_scored
        return straddles


class _ImageClass:
    """The detections of one image and class, some of which may compete."""

    def __init__(self, orders: _ScoreOrders, rows: Rows, ground_truths: Rows) -> None:
        self.orders = orders
        run, protocol = orders.run, orders.protocol
        detections = orders.detections
        rows = rows[np.argsort(-detections.score[rows], kind="stable")]
        self.rows = rows[orders.first[rows] < orders.limits[-1]]
        self.ground_truths = ground_truths
        self.starts = np.flatnonzero(np.diff(orders.tie[self.rows], prepend=-1))
        self.first_rows = self.rows[self.starts]
        self.similarity = run.overlaps((detections, orders.ground_truths), self.rows, ground_truths)
        self.reached = _reached(self.similarity, protocol)
        sharing = np.add.reduceat(self.reached.astype(np.int32), self.starts, axis=1) > 1
        self.compete = np.any(sharing, axis=(1, 2)).reshape(-1)
        first, last = orders.first[self.first_rows], orders.last[self.first_rows]
        limits = orders.limits[:, None]
        self.straddles = np.any((first < limits) & (last >= limits), axis=1)
        self.inside = inside_ranges(detections.area[self.rows], protocol.area_bounds)

    def bounds(self) -> dict[tuple[int, int, int], tuple[CountBounds, ...]]:
        """Return the `bounds` of the group."""
        bounds, cache = {}, dict[object, tuple[CountBounds, ...]]()
        unmatchable = self.orders.run.unmatchable[self.ground_truths]
        for t, a, m in np.ndindex(len(self.compete), len(self.inside), len(self.straddles)):
            if not (self.compete[t] or self.straddles[m]):
                continue
            positive = self.orders.match_table.positive[a, self.ground_truths]
            key = m, self.reached[t].tobytes(), self.inside[a].tobytes(), positive.tobytes()
            if key not in cache:
                options = tuple(self._match_options(index, a, t) for index in range(len(self.rows)))
                matchable = int((positive & ~unmatchable).sum())
                cache[key] = tuple(count_bounds(self._ties(options, m), matchable))
            bounds[t, a, m] = cache[key]
        return bounds

    def _match_options(self, index: int, a: int, t: int) -> MatchOptions:
        """Return the ground truths that a detection can match, best first, ignored ones last."""
        orders, similarity = self.orders, self.similarity[index]
        best_only = orders.protocol.candidate == "best"
        sign = -1 if orders.protocol.equal_iou == "last" else 1
        reached = np.flatnonzero(self.reached[t, index]).tolist()
        ranked = sorted(reached, key=lambda gt: (-similarity[gt], sign * gt))
        unmatched = MISS if self.inside[a][index] else NEITHER
        options: tuple[list[tuple[int, str, bool]], list[tuple[int, str, bool]]] = [], []
        for gt in ranked[:1] if best_only else ranked:
            row = self.ground_truths[gt]
            ignored = not orders.match_table.positive[a, row]
            outcome = NEITHER if ignored else unmatched if orders.run.unmatchable[row] else HIT
            shared = (ignored and best_only) or orders.run.crowd[row]
            options[ignored].append((gt, outcome, not shared))
        return MatchOptions((*options[0], *options[1]), unmatched)

    def _ties(self, options: tuple[MatchOptions, ...], m: int) -> Iterator[Tie]:
        """Yield the ties, with the numbers of their detections that may be within max dets."""
        limit = int(self.orders.limits[m])
        stops = [*self.starts[1:], len(self.rows)]
        for start, stop in zip(self.starts, stops, strict=True):
            row = self.rows[start]
            first, last = int(self.orders.first[row]), int(self.orders.last[row])
            size, tie_size = int(stop - start), last - first + 1
            admitted = min(max(limit - first, 0), tie_size)
            yield Tie(
                options[start:stop], max(0, size - (tie_size - admitted)), min(size, admitted)
            )


class _ProposalOrders:
    """The orders of proposals, whose scores decide max dets and equal IoUs."""

    def __init__(self, run: EvaluationRun) -> None:
        self.protocol = run.protocol
        self.detections, self.ground_truths = run.boxes()
        self.limits = max_dets_array(self.protocol.max_dets)
        image = self.detections.image.astype(np.int64)
        self.first, self.last = _ranks(image, self.detections.score)
        inside = inside_ranges(self.ground_truths.area, self.protocol.area_bounds)
        self.counted = inside & ~run.ignored

    def ends(self, result: Result) -> tuple[Result, Result]:
        """Return the results with the fewest and the most covered ground truths."""
        positives = result._positives[:, 0].astype(float)
        positives[positives == 0] = np.nan
        low = np.nan_to_num(np.round(result.recall[:, 0] * positives[:, None]))
        high = low.copy()
        for image in np.unique(self.detections.image[self.first < self.last]).tolist():
            rows = np.flatnonzero(self.detections.image == image)
            ground_truths = np.flatnonzero(self.ground_truths.image == image)
            if len(ground_truths):
                reported = self._covered_counts(rows, ground_truths)
                least, most = self._bounds(rows, ground_truths, reported)
                low += least - reported
                high += most - reported
        low, high = low / positives[:, None], high / positives[:, None]
        return replace(result, recall=low[:, None]), replace(result, recall=high[:, None])

    def _covered_counts(self, rows: Rows, ground_truths: Rows) -> Rows:
        """Return the number of covered ground truths of an image, (T, A, M) int64."""
        covered = match_by_iou(
            _one_image(self.detections, rows),
            _one_image(self.ground_truths, ground_truths),
            counted=self.counted[:, ground_truths],
            images=1,
            max_dets=self.protocol.max_dets,
            inclusive_pixels=self.protocol.inclusive_pixels,
        )
        counted = self.counted[:, None, ground_truths]
        return np.asarray((_reached(covered, self.protocol) & counted).sum(axis=-1))

    def _bounds(self, rows: Rows, ground_truths: Rows, reported: Rows) -> tuple[Rows, Rows]:
        boxes, inclusive = (self.detections, self.ground_truths), self.protocol.inclusive_pixels
        iou = overlaps_of(boxes, rows, ground_truths, inclusive)
        first, last = self.first[rows], self.last[rows]
        groups = []
        for rank in np.unique(first[last > first]):
            members = np.flatnonzero(first == rank)
            stop = last[members[0]]
            straddles = ((rank < self.limits) & (stop >= self.limits)).any()
            # Equal IoUs with a ground truth are matched in rank order.
            ious = np.sort(iou[members], axis=0)
            equal = ((ious[1:] == ious[:-1]) & (ious[1:] > 0)).any()
            if straddles or (equal and rank < self.limits[-1]):
                groups.append(members)
        if not groups:
            return reported, reported
        if prod(factorial(min(len(members), 20)) for members in groups) > MAX_ORDERS:
            return self._wide_bounds(rows, ground_truths, iou)
        counts = []
        for orders in product(*(permutations(members) for members in groups)):
            moved = rows.copy()
            for members, order in zip(groups, orders, strict=True):
                moved[members] = rows[list(order)]
            counts.append(self._covered_counts(moved, ground_truths))
        return np.min(counts, axis=0), np.max(counts, axis=0)

    def _wide_bounds(self, rows: Rows, ground_truths: Rows, iou: Floats) -> tuple[Rows, Rows]:
        """Return loose bounds if there are too many orders to try.

        Low: greedy matching by IoU finds at least half as many pairs as any other matching of the
        proposals that are within max dets in every order. High: the ground truths that reach the
        threshold with any proposal that may be within max dets.
        """
        low = np.empty(
            (len(self.protocol.iou_thresholds), len(self.counted), len(self.limits)), int
        )
        high = low.copy()
        for m, limit in enumerate(self.limits):
            certain = self.last[rows] < limit
            low[:, :, m] = -(-self._covered_counts(rows[certain], ground_truths)[:, :, m] // 2)
            within = iou[self.first[rows] < limit]
            reached = np.any(_reached(within, self.protocol), axis=1)
            high[:, :, m] = (reached[:, None] & self.counted[:, ground_truths]).sum(axis=-1)
        return low, high


def _reached(iou: Floats, protocol: Protocol) -> Flags:
    """Return a mask of the IoUs that reach each threshold, (T, ...)."""
    thresholds = np.array(protocol.search_thresholds).reshape(-1, *[1] * iou.ndim)
    return np.asarray(iou > thresholds if protocol.strict_iou else iou >= thresholds)


def _one_image(boxes: Boxes, rows: Rows) -> Boxes:
    """Return some rows as those of one image."""
    return boxes.select(rows)._replace(image=np.zeros(len(rows), np.int32))
