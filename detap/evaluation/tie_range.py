"""Bounds on metrics over all orders of equally scored detections.

Equal scores have no defined order: files or images decide it. The bounds hold for every order.

Tied detections that do not compete are true or false positives in every order. The bounds are then
attained: the true positives of each tie come first or last. If tied detections compete for a ground
truth, or if max dets splits the tie, all their orders in that image and class are followed
(core/tie_orders.py). The extremes of all images are combined; this is still a bound, but perhaps no
single order attains it.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap import metrics
from detap.core import curves
from detap.core.tie_orders import CountBounds
from detap.evaluation.results import Result
from detap.evaluation.tie_groups import TieGroup, tie_groups
from detap.tables.detection import Floats

Rows = NDArray[np.int64]


class TieRange(NamedTuple):
    """A metric with its bounds over all orders of equal scores."""

    lowest: float
    value: float
    highest: float


def tie_range(result: Result) -> dict[str, TieRange]:
    """Return bounds on AP and AR over all orders of equal scores."""
    proposals = result.protocol.matching == "by-iou"
    source = result._source
    groups = tie_groups(source, None if proposals else result.match_table)
    ends = _by_iou_bounds(result, groups) if proposals else _Bounds(result, groups).ends()
    low, high = (end.summary for end in ends)
    entries = metrics.summary(result.protocol)
    # Only accumulated metrics have bounds.
    values = {e.name: result.summary[e.name] for e in entries if e.metric.accumulated is not None}
    return {
        name: TieRange(min(low[name], value), value, max(high[name], value))
        for name, value in values.items()
    }


class _Totals(NamedTuple):
    """Cumulative counts per level (distinct score) of a class, L of them."""

    hits: Rows
    misses: Rows


class _Bounds:
    """The bounds of detections ranked by score."""

    def __init__(self, result: Result, tie_groups: Sequence[TieGroup]) -> None:
        self.result = result
        self.protocol = result.protocol
        self.match_table = result.match_table
        self.positives = result.match_table.ground_truth_counts
        self.tie_groups: list[list[TieGroup]] = [[] for _ in result.classes]
        for tie_group in tie_groups:
            self.tie_groups[tie_group.label].append(tie_group)

    def ends(self) -> tuple[Result, Result]:
        """Return the result with the lowest metrics and that with the highest."""
        base = self.result
        ends = tuple(
            replace(
                base,
                average_precision=base.average_precision.copy(),
                recall=base.recall.copy(),
                _interpolated=base._interpolated.copy(),
            )
            for _ in range(2)
        )
        label, score = self.match_table.label, self.match_table.score
        order = np.lexsort((-score, label))
        bounds = np.searchsorted(label[order], np.arange(len(self.tie_groups) + 1))
        for k in range(len(self.tie_groups)):
            self._bound_class(k, order[bounds[k] : bounds[k + 1]], ends)
        return ends[0], ends[1]

    def _bound_class(self, k: int, rows: Rows, ends: tuple[Result, ...]) -> None:
        score = self.match_table.score[rows]
        changed = np.diff(score, prepend=np.nan) != 0
        level, scores = np.cumsum(changed) - 1, score[changed]
        levels = [_levels(scores, tie_group.score) for tie_group in self.tie_groups[k]]
        tie_group_of = np.full(self.match_table.images, -1)
        tie_group_of[[tie_group.image for tie_group in self.tie_groups[k]]] = np.arange(len(levels))
        group_index = tie_group_of[self.match_table.image[rows]]
        can_change = np.array(
            [tie_group.bounds.can_change for tie_group in self.tie_groups[k]], np.bool_
        )
        positives = self.positives[:, k]
        last = len(self.protocol.max_dets) - 1
        for t, m in product(range(len(self.protocol.iou_thresholds)), range(last + 1)):
            counted = self.match_table.max_dets_index[rows] <= m
            changing: list[int] = []
            if len(can_change):
                counted &= ~((group_index >= 0) & can_change[group_index, t, m])
                changing = np.flatnonzero(can_change[:, t, m]).tolist()
            steady = np.flatnonzero(counted)
            steady_rows = rows[steady]
            for a in np.flatnonzero(positives).tolist():
                hit = self.match_table.is_true_positive(a, t, steady_rows)
                miss = ~hit & ~self.match_table.is_ignored(a, t, steady_rows)
                tie_bounds = [
                    (levels[n], self.tie_groups[k][n].bounds.spans(a, t, m)) for n in changing
                ]
                hit_count = int(np.count_nonzero(hit))
                least = hit_count + sum(each[-1].min_hits for _, each in tie_bounds)
                most = hit_count + sum(each[-1].max_hits for _, each in tie_bounds)
                ends[0].recall[t, k, a, m] = least / positives[a]
                ends[1].recall[t, k, a, m] = most / positives[a]
                if m < last:
                    continue
                totals = [
                    np.bincount(level[steady[flags]], minlength=len(scores)).cumsum()
                    for flags in (hit, miss)
                ]
                for end, hits_of in zip(ends, (_late_hits, _early_hits), strict=True):
                    hits = hits_of(_Totals(*totals), tie_bounds)
                    self._write(end, (t, k, a), hits, int(positives[a]))

    def _write(
        self, end: Result, index: tuple[int, int, int], hits: NDArray[np.int32], positives: int
    ) -> None:
        t, k, a = index
        levels = self.result.recall_levels
        guard = self.protocol.precision_eps
        end.average_precision[index] = curves.average_precision(
            hits,
            positives,
            levels=levels if len(levels) else None,
            summing=self.protocol.summing,
            precision_eps=guard,
        )
        if len(levels):
            precision = curves.interpolated_precision(
                hits, positives, levels, summing=self.protocol.summing, precision_eps=guard
            )
            end._interpolated.write(k, a, t, precision)


def _levels(scores: Floats, ties: Floats) -> Rows:
    """Return the levels of the ties' scores."""
    return np.searchsorted(-scores, -ties)


def _by_iou_bounds(result: Result, tie_groups: Sequence[TieGroup]) -> tuple[Result, Result]:
    """Return the results with the fewest and most covered ground truths."""
    positives = result._positives[:, 0].astype(float)
    positives[positives == 0] = np.nan
    total = np.nan_to_num(np.round(result.recall[:, 0] * positives[:, None]))
    low, high = total.copy(), total.copy()
    for tie_group in tie_groups:
        bounds_index = tie_group.bounds.bounds_index
        for t, a, m in zip(*np.nonzero(bounds_index >= 0), strict=True):
            (span,) = tie_group.bounds.spans(a, t, m)
            low[t, a, m] -= span.min_hits
            high[t, a, m] += span.max_hits
    ends = (low / positives[:, None], high / positives[:, None])
    least, most = (replace(result, recall=recall[:, None]) for recall in ends)
    return least, most


_BoundsByLevel = list[tuple[Rows, tuple[CountBounds, ...]]]
"""Per tie group: the level of each of its ties, and the bounds after it."""


def _add_tie_groups(base: Rows, tie_bounds: _BoundsByLevel, name: str) -> Rows:
    """Return cumulative counts by level, with one bound (`name`) of all tie groups added."""
    steps = np.zeros(len(base), np.int64)
    for levels, bounds in tie_bounds:
        np.add.at(steps, levels, np.diff([getattr(span, name) for span in bounds], prepend=0))
    return np.asarray(base + steps.cumsum())


def _early_hits(totals: _Totals, tie_bounds: _BoundsByLevel) -> NDArray[np.int32]:
    """Return the hits (core/curves.py) with the most true positives, ranked highest."""
    hits_by_level = _add_tie_groups(totals.hits, tie_bounds, "max_hits")
    above = np.concatenate([[0], _add_tie_groups(totals.misses, tie_bounds, "min_misses")])[:-1]
    return np.repeat(above, np.diff(hits_by_level, prepend=0)).astype(np.int32)


def _late_hits(totals: _Totals, tie_bounds: _BoundsByLevel) -> NDArray[np.int32]:
    """Return the hits (core/curves.py) with the fewest true positives, ranked lowest.

    In a tie group, ``max_misses - misses_ahead`` false positives can only follow the first true
    positive: it took their ground truth. At most i groups have their first true positive before
    the i-th hit (from 0) of a level, so the false positives of i groups count, the largest first.
    """
    hits_by_level = _add_tie_groups(totals.hits, tie_bounds, "min_hits")
    before = _add_tie_groups(totals.misses, tie_bounds, "max_misses")
    behind: dict[int, list[int]] = {}
    for levels, spans_of in tie_bounds:
        for level, span in zip(levels.tolist(), spans_of, strict=True):
            if span.max_misses > span.misses_ahead:
                behind.setdefault(level, []).append(span.max_misses - span.misses_ahead)
    hits = np.repeat(before, np.diff(hits_by_level, prepend=0))
    for level, counts in behind.items():
        start = int(hits_by_level[level - 1]) if level else 0
        stop = int(hits_by_level[level])
        sums = np.concatenate([[0], np.cumsum(sorted(counts, reverse=True))])
        index = np.minimum(np.arange(stop - start), len(counts))
        hits[start:stop] += sums[index] - sums[-1]
    return hits.astype(np.int32)
