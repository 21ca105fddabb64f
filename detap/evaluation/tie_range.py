"""How far the numbers move with the order of equally scored detections.

Scores that tie leave their order open: the file decides, or the image, and no tool says so. Here
each number gets bounds that no order of equal scores goes beyond.

Tied detections that do not compete keep what they are in every order, and the bounds are reached:
by the true positives of each tie first, and last. Where some compete, for a ground truth or for a
place within a detection limit, all their orders in that image and class are followed
(core/tie_orders.py), and the worst of each image is put together: a bound still, though perhaps of
an order that does not exist.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product
from math import factorial, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core import curves
from detap.core.matching import detection_limits
from detap.core.overlap import overlaps
from detap.core.proposals import coverage
from detap.core.tie_orders import HIT, MISS, NEITHER, Claim, Span, Tie, spans
from detap.evaluation.results import Result
from detap.evaluation.scene import Scene
from detap.tables.detection import Flags, Floats

Rows = NDArray[np.int64]

MOST_ORDERS = 720
"""How many orders of one image's proposals are tried."""


class TieRange(NamedTuple):
    """A number as it is, and what it is at least and at most in any order of equal scores."""

    lowest: float
    value: float
    highest: float


def tie_range(result: Result) -> dict[str, TieRange]:
    """Return how far each number of the summary moves with the order of equal scores.

    Parameters
    ----------
    result : Result
        Of any protocol.

    Returns
    -------
    dict of str to TieRange
        Bounds that no order goes beyond.
    """
    proposals = result.protocol.pairing == "coverage"
    ends = _ProposalOrders(result).ends() if proposals else _Orders(result).ends()
    low, high = (end.summary for end in ends)
    return {
        name: TieRange(min(low[name], value), value, max(high[name], value))
        for name, value in result.summary.items()
    }


class _Ranks(NamedTuple):
    """Where detections and their ties stand within what a limit counts; all (N,).

    The place of each in the protocol's order, and of the first and the last of its tie.
    """

    own: Rows
    first: Rows
    last: Rows


def _ranks(scope: Rows, score: Floats) -> _Ranks:
    """Return the ranks of rows by falling score within each scope."""
    order = np.lexsort((-score, scope))
    starts = np.flatnonzero(np.diff(scope[order], prepend=-1))
    begin = np.repeat(starts, np.diff(starts, append=len(order)))
    place = np.arange(len(order)) - begin
    changed = np.diff(scope[order], prepend=-1) != 0
    changed[1:] |= np.diff(score[order]) != 0
    tie = np.cumsum(changed) - 1
    first = np.flatnonzero(changed)
    size = np.diff(first, append=len(order))
    columns = (place, place[first][tie], (place[first] + size - 1)[tie]) if len(order) else ()
    found = [np.zeros(len(order), np.int64) for _ in range(3)]
    for column, values in zip(found, columns, strict=False):
        column[order] = values
    return _Ranks(*found)


class _Totals(NamedTuple):
    """Over the levels (different scores) of a class, L of them: what stands there or above."""

    hits: Rows
    misses: Rows


class _Orders:
    """The orders of detections that rank by score."""

    def __init__(self, result: Result) -> None:
        self.result = result
        self.scene: Scene = result._scene
        self.rules = result.protocol
        self.detections, self.truths = self.scene.boxes()
        self.limits = detection_limits(self.rules.detection_limits)
        self.evidence = result.evidence
        self.positives = result.evidence.positives
        image = self.detections.image.astype(np.int64)
        self.pair = image * len(self.scene.classes) + self.detections.label
        scope = self.pair if self.rules.limit_scope == "class" else image
        self.rank = _ranks(scope, self.detections.score)
        self.within = _ranks(self.pair, self.detections.score)
        self.place = np.zeros(len(self.pair), np.int64)

    def ends(self) -> tuple[Result, Result]:
        """Return the result with the least numbers, and with the greatest."""
        empty = self.result
        ends = tuple(
            replace(
                empty,
                average_precision=empty.average_precision.copy(),
                recall=empty.recall.copy(),
                precision=empty.precision.copy(),
            )
            for _ in range(2)
        )
        classes = len(self.scene.classes)
        pairs = np.unique(self.pair[self._contested()])
        label = self.detections.label
        order = np.lexsort((-self.detections.score, label))
        bounds = np.searchsorted(label[order], np.arange(classes + 1))
        by_pair = np.argsort(self.pair, kind="stable")
        starts = np.searchsorted(self.pair[by_pair], pairs)
        stops = np.searchsorted(self.pair[by_pair], pairs, side="right")
        truths = self.truths.image.astype(np.int64) * classes + self.truths.label
        truth_order = np.argsort(truths, kind="stable")
        near = [np.searchsorted(truths[truth_order], pairs, side=end) for end in ("left", "right")]
        for k in range(classes):
            moving = [
                _Pair(self, by_pair[starts[n] : stops[n]], truth_order[near[0][n] : near[1][n]])
                for n in np.flatnonzero(pairs % classes == k)
            ]
            self._bound_class(k, order[bounds[k] : bounds[k + 1]], moving, ends)
        return ends[0], ends[1]

    def _contested(self) -> Flags:
        """Return the detections whose tie may have more than one outcome in its image and class."""
        straddles = np.zeros(len(self.pair), np.bool_)
        for limit in self.limits:
            straddles |= (self.rank.first < limit) & (self.rank.last >= limit)
        # Two of a tie that reach any ground truth may want the same one.
        reaches = np.flatnonzero(self.evidence.overlap >= self.rules.search_thresholds[0])
        tie = np.stack([self.pair[reaches], self.within.first[reaches]])
        _, place, count = np.unique(tie, axis=1, return_inverse=True, return_counts=True)
        straddles[reaches[count[place.ravel()] > 1]] = True
        return straddles

    def _bound_class(
        self, k: int, rows: Rows, moving: "list[_Pair]", ends: tuple[Result, ...]
    ) -> None:
        changed = np.diff(self.detections.score[rows], prepend=np.nan) != 0
        first = np.flatnonzero(changed)
        level = np.cumsum(changed) - 1
        self.place[rows] = np.arange(len(rows))
        positives = self.positives[:, k]
        last = len(self.limits) - 1
        for t, m in product(range(len(self.rules.iou_thresholds)), range(len(self.limits))):
            pairs = [pair for pair in moving if pair.moves(t, m)]
            counted = self.rank.own[rows] < self.limits[m]
            for pair in pairs:
                counted[self.place[pair.all]] = False
            steady = np.flatnonzero(counted)
            steady_rows = rows[steady]
            for a in np.flatnonzero(positives).tolist():
                hit = self.evidence.is_found(a, t, steady_rows)
                miss = ~hit & ~self.evidence.is_neutral(a, t, steady_rows)
                known = [pair.spans(a, t, m) for pair in pairs]
                found = int(np.count_nonzero(hit))
                least = found + sum(each[-1].hits_least for each in known)
                most = found + sum(each[-1].hits_most for each in known)
                ends[0].recall[t, k, a, m] = least / positives[a]
                ends[1].recall[t, k, a, m] = most / positives[a]
                if m < last:
                    continue
                totals = [
                    np.bincount(level[steady[flags]], minlength=len(first)).cumsum()
                    for flags in (hit, miss)
                ]
                placed = [
                    (level[self.place[pair.tops]], each)
                    for pair, each in zip(pairs, known, strict=True)
                ]
                for end, find in zip(ends, (_last, _first), strict=True):
                    hits = find(_Totals(*totals), placed)
                    self._write(end, (t, k, a), hits, int(positives[a]))

    def _write(
        self, end: Result, at: tuple[int, int, int], hits: NDArray[np.int32], positives: int
    ) -> None:
        t, k, a = at
        levels = self.result.recall_levels
        guard = self.rules.precision_guard
        end.average_precision[at] = curves.average_precision(
            hits,
            positives,
            levels=levels if len(levels) else None,
            one_by_one=self.rules.interpolation == "11-point",
            guard=guard,
        )
        if len(levels):
            end.precision[t, :, k, a] = curves.interpolated_precision(
                hits, positives, levels, guard=guard
            )


_Known = list[tuple[Rows, list[Span]]]


def _summed(base: Rows, known: _Known, name: str) -> Rows:
    """Return totals by level with those of contested images added."""
    steps = np.zeros(len(base), np.int64)
    for levels, found in known:
        np.add.at(steps, levels, np.diff([getattr(span, name) for span in found], prepend=0))
    return np.asarray(base + steps.cumsum())


def _first(totals: _Totals, known: _Known) -> NDArray[np.int32]:
    """Return the hits with as many true positives as possible, as early as possible."""
    found = _summed(totals.hits, known, "hits_most")
    above = np.concatenate([[0], _summed(totals.misses, known, "misses_least")])[:-1]
    return np.repeat(above, np.diff(found, prepend=0)).astype(np.int32)


def _last(totals: _Totals, known: _Known) -> NDArray[np.int32]:
    """Return the hits with as few true positives as possible, as late as possible.

    A false positive that is one because its rival was first stands behind that one. So many of
    them at most are before a hit as there are hits of its level before it.
    """
    found = _summed(totals.hits, known, "hits_least")
    before = _summed(totals.misses, known, "misses_most")
    behind: dict[int, list[int]] = {}
    for levels, spans_of in known:
        for level, span in zip(levels.tolist(), spans_of, strict=True):
            if span.misses_most > span.misses_ahead:
                behind.setdefault(level, []).append(span.misses_most - span.misses_ahead)
    hits = np.repeat(before, np.diff(found, prepend=0))
    for level, counts in behind.items():
        start = int(found[level - 1]) if level else 0
        stop = int(found[level])
        sums = np.concatenate([[0], np.cumsum(sorted(counts, reverse=True))])
        place = np.minimum(np.arange(stop - start), len(counts))
        hits[start:stop] += sums[place] - sums[-1]
    return hits.astype(np.int32)


class _Pair:
    """The detections of one image and class, some of which may compete."""

    def __init__(self, orders: _Orders, rows: Rows, truths: Rows) -> None:
        self.orders = orders
        scene, rules = orders.scene, orders.rules
        detections = orders.detections
        self.all = rows
        rows = rows[np.argsort(-detections.score[rows], kind="stable")]
        self.rows = rows[orders.rank.first[rows] < orders.limits[-1]]
        self.truths = truths
        self.starts = np.flatnonzero(np.diff(orders.within.first[self.rows], prepend=-1))
        self.tops = self.rows[self.starts]
        self.overlap = overlaps(
            detections.corners[self.rows],
            orders.truths.corners[truths],
            detection_areas=detections.overlap_area[self.rows],
            truth_areas=orders.truths.overlap_area[truths],
            absorbing=scene.absorbing[truths],
            pixel_edge=rules.pixel_edge,
        )
        thresholds = np.array(rules.search_thresholds)[:, None, None]
        strict = rules.strict_iou
        self.reached: Flags = np.asarray(
            self.overlap > thresholds if strict else self.overlap >= thresholds
        )
        sharing = np.add.reduceat(self.reached.astype(np.int32), self.starts, axis=1) > 1
        self.rivals = np.any(sharing, axis=(1, 2)).reshape(-1)
        first, last = orders.rank.first[self.tops], orders.rank.last[self.tops]
        limits = orders.limits[:, None]
        self.straddles = np.any((first < limits) & (last >= limits), axis=1)
        self.preferred = [self._preferred(place) for place in range(len(self.rows))]
        area = detections.area[self.rows]
        self.inside = [(area >= band.low) & (area <= band.high) for band in rules.area_ranges]
        self.known: dict[object, list[Span]] = {}

    def moves(self, t: int, m: int) -> bool:
        """Tell whether orders may differ in what becomes of a detection."""
        return bool(self.rivals[t] or self.straddles[m])

    def spans(self, a: int, t: int, m: int) -> list[Span]:
        """Return the bounds after each tie, in one area range, at one threshold and limit."""
        positive = self.orders.evidence.positive[a, self.truths]
        key = m, self.reached[t].tobytes(), self.inside[a].tobytes(), positive.tobytes()
        if key not in self.known:
            claims = tuple(self._claim(place, a, t) for place in range(len(self.rows)))
            void = self.orders.scene.void[self.truths]
            self.known[key] = spans(self._ties(claims, m), int((positive & ~void).sum()))
        return self.known[key]

    def _preferred(self, place: int) -> list[int]:
        """Return the ground truths that a detection may be matched to, the best first."""
        rules, overlap = self.orders.rules, self.overlap[place]
        sign = -1 if rules.equal_iou == "last" else 1
        reached = np.flatnonzero(self.reached[0, place]).tolist()
        ranked = sorted(reached, key=lambda i: (-overlap[i], sign * i))
        return ranked[:1] if rules.candidate == "best" else ranked

    def _claim(self, place: int, a: int, t: int) -> Claim:
        orders = self.orders
        otherwise = MISS if self.inside[a][place] else NEITHER
        tries: tuple[list[tuple[int, str, bool]], list[tuple[int, str, bool]]] = [], []
        for number in self.preferred[place]:
            if not self.reached[t, place, number]:
                continue
            row = self.truths[number]
            neutral = not orders.evidence.positive[a, row]
            becomes = NEITHER if neutral else otherwise if orders.scene.void[row] else HIT
            shared = neutral and orders.rules.candidate == "best"
            tries[neutral].append((number, becomes, not (shared or orders.scene.absorbing[row])))
        return Claim((*tries[0], *tries[1]), otherwise)

    def _ties(self, claims: tuple[Claim, ...], m: int) -> Iterator[Tie]:
        """Give the ties with how many of each are within the limit."""
        limit = int(self.orders.limits[m])
        stops = [*self.starts[1:], len(self.rows)]
        for start, stop in zip(self.starts, stops, strict=True):
            row = self.rows[start]
            first, last = (int(rank[row]) for rank in self.orders.rank[1:])
            size, whole = int(stop - start), last - first + 1
            room = min(max(limit - first, 0), whole)
            yield Tie(claims[start:stop], max(0, size - (whole - room)), min(size, room))


class _ProposalOrders:
    """The orders of proposals, whose scores decide what is within a limit, and equal overlaps."""

    def __init__(self, result: Result) -> None:
        self.result = result
        self.rules = result.protocol
        self.detections, self.truths = result._scene.boxes()
        self.limits = detection_limits(self.rules.detection_limits)
        self.rank = _ranks(self.detections.image.astype(np.int64), self.detections.score)
        area, neutral = self.truths.area, result._scene.neutral
        self.counted = np.array(
            [(area >= band.low) & (area <= band.high) & ~neutral for band in self.rules.area_ranges]
        )
        if self.rules.empty_images == "left-out":
            self.counted &= np.isin(self.truths.image, self.detections.image)

    def ends(self) -> tuple[Result, Result]:
        """Return the result with the least numbers, and with the greatest."""
        positives = self.counted.sum(axis=1).astype(float)
        positives[positives == 0] = np.nan
        recall = self.result.recall[:, 0]
        total = np.nan_to_num(np.round(recall * positives[:, None]))
        low, high = total.copy(), total.copy()
        tied = self.rank.first < self.rank.last
        for image in np.unique(self.detections.image[tied]):
            rows = np.flatnonzero(self.detections.image == image)
            truths = np.flatnonzero(self.truths.image == image)
            if not len(truths):
                continue
            own = self._found(rows, truths)
            ends = self._bounds(rows, truths, own)
            low += ends[0] - own
            high += ends[1] - own
        return self._result(low / positives[:, None]), self._result(high / positives[:, None])

    def _result(self, recall: Floats) -> Result:
        return replace(self.result, recall=recall[:, None])

    def _overlap(self, rows: Rows, truths: Rows) -> Floats:
        return overlaps(
            self.detections.corners[rows],
            self.truths.corners[truths],
            detection_areas=self.detections.overlap_area[rows],
            truth_areas=self.truths.overlap_area[truths],
            pixel_edge=self.rules.pixel_edge,
        )

    def _reached(self, overlap: Floats) -> Flags:
        """Return which overlaps reach which threshold, (T, ...)."""
        at = np.array(self.rules.search_thresholds).reshape(-1, *[1] * overlap.ndim)
        return np.asarray(overlap > at if self.rules.strict_iou else overlap >= at)

    def _found(self, rows: Rows, truths: Rows) -> Rows:
        """Return how many ground truths of one image its proposals cover, (T, A, M) int64."""
        covered = coverage(
            self.detections._replace(
                **{
                    name: getattr(self.detections, name)[rows]
                    for name in ("label", "corners", "overlap_area", "area", "score")
                },
                image=np.zeros(len(rows), np.int32),
            ),
            self.truths._replace(
                **{
                    name: getattr(self.truths, name)[truths]
                    for name in ("label", "corners", "overlap_area", "area")
                },
                image=np.zeros(len(truths), np.int32),
            ),
            counted=self.counted[:, truths],
            images=1,
            limits=self.rules.detection_limits,
            pixel_edge=self.rules.pixel_edge,
        )
        counted = self.counted[:, None, truths]
        return np.asarray((self._reached(covered) & counted).sum(axis=-1))

    def _bounds(self, rows: Rows, truths: Rows, own: Rows) -> tuple[Rows, Rows]:
        overlap = self._overlap(rows, truths)
        first, last = self.rank.first[rows], self.rank.last[rows]
        groups = []
        for place in np.unique(first[last > first]):
            members = np.flatnonzero(first == place)
            stop = last[members[0]]
            straddles = ((place < self.limits) & (stop >= self.limits)).any()
            # Of pairs of equal overlap with a ground truth the better-ranked proposal is taken.
            part = np.sort(overlap[members], axis=0)
            equal = ((part[1:] == part[:-1]) & (part[1:] > 0)).any()
            if straddles or (equal and place < self.limits[-1]):
                groups.append(members)
        if not groups:
            return own, own
        if prod(factorial(min(len(members), 20)) for members in groups) > MOST_ORDERS:
            return self._loosely(rows, truths, overlap)
        found = []
        for orders in product(*(permutations(members) for members in groups)):
            moved = rows.copy()
            for members, order in zip(groups, orders, strict=True):
                moved[members] = rows[list(order)]
            found.append(self._found(moved, truths))
        return np.min(found, axis=0), np.max(found, axis=0)

    def _loosely(self, rows: Rows, truths: Rows, overlap: Floats) -> tuple[Rows, Rows]:
        """Return bounds where orders are too many to be tried.

        Pairing off by falling overlap ends, at each threshold, where no two that reach it are left:
        that pairs half as many as any other pairing at least. And no more ground truths are covered
        than some proposal reaches that may be within the limit.
        """
        low = np.empty((len(self.rules.iou_thresholds), len(self.counted), len(self.limits)), int)
        high = low.copy()
        for m, limit in enumerate(self.limits):
            sure = self.rank.last[rows] < limit
            low[:, :, m] = (self._found(rows[sure], truths)[:, :, m] + 1) // 2
            reached = np.any(self._reached(overlap[self.rank.first[rows] < limit]), axis=1)
            high[:, :, m] = (reached[:, None] & self.counted[:, truths]).sum(axis=-1)
        return low, high
