"""Bounds on TP and FP counts over all orders of tied detections.

Tied detections compete if several can match one ground truth, or if max dets splits the tie.
All orders of those of one image and class are followed (core/tie_orders.py); of proposals, those of
one image. The resulting bounds need no boxes.
"""

from collections.abc import Iterator
from itertools import permutations, product
from math import factorial, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core.match_table import MatchTable
from detap.core.matching import max_dets_array
from detap.core.overlap import overlaps
from detap.core.proposals import match_by_iou
from detap.core.tie_orders import HIT, MISS, NEITHER, CountBounds, MatchOptions, Tie, count_bounds
from detap.errors import UsageError
from detap.evaluation.run import EvaluationRun
from detap.evaluation.selection import SelectedClasses
from detap.tables.detection import Flags, Floats

Rows = NDArray[np.int64]

MAX_ORDERS = 720
"""Maximum number of orders of one image's proposals to try."""


class TieBounds(NamedTuple):
    """Bounds of a tie group.

    Attributes
    ----------
    bounds_index : (T, A, M) int32
        Index into `bounds` at each threshold, area range and max dets; -1 if the order of ties
        changes nothing.
    bounds : tuple of tuples of n CountBounds
        After each tie of the group, best scores first. For proposals n is 1, and the counts are
        the minimum and maximum of ground truths gained or lost.
    """

    bounds_index: NDArray[np.int32]
    bounds: tuple[tuple[CountBounds, ...], ...]

    @property
    def can_change(self) -> Flags:
        """True where the order of ties can change the result, (T, M) bool."""
        any_area: Flags = np.any(self.bounds_index >= 0, axis=1)
        return any_area

    def spans(self, a: int, t: int, m: int) -> tuple[CountBounds, ...]:
        """Return the bounds after each tie, if the order can change them."""
        return self.bounds[self.bounds_index[t, a, m]]


class TieGroup(NamedTuple):
    """The detections of one image and class, some of which compete.

    Attributes
    ----------
    label, image : int
    score : (n,) float64
        Scores of its ties, in descending order.
    bounds : TieBounds
    """

    label: int
    image: int
    score: Floats
    bounds: TieBounds


def tie_groups(run: EvaluationRun, match_table: MatchTable | None) -> list[TieGroup]:
    """Return the tie groups of a run, by class and image."""
    if run.protocol.max_dets_scope == "dataset":
        raise UsageError(
            "--max-dets-scope dataset may drop some of the detections of one score, which "
            "--tie-range does not support; omit it or use --max-dets-scope class"
        )
    if run.group.any():
        raise UsageError(
            f"protocol {run.protocol.name} matches group-of boxes in a second stage, which "
            "--tie-range does not support; omit it or use --group-of-weight none"
        )
    if isinstance(run, SelectedClasses):
        index_by_label = {label: index for index, label in enumerate(run.labels)}
        all_groups = tie_groups(run.full, run.full.match_table())
        return [
            group._replace(label=index_by_label[group.label])
            for group in all_groups
            if group.label in index_by_label
        ]
    if match_table is None:
        return [*_ProposalOrders(run).tie_groups()]
    return [*_RankedOrders(run, match_table).tie_groups()]


class _Ranks(NamedTuple):
    """Ranks within the scope of max dets, (N,) each.

    The rank of each, and of the first and last detection of its tie.
    """

    rank: Rows
    first: Rows
    last: Rows


def _ranks(scope: Rows, score: Floats) -> _Ranks:
    """Return the ranks of rows by descending score within each scope."""
    order = np.lexsort((-score, scope))
    starts = np.flatnonzero(np.diff(scope[order], prepend=-1))
    begin = np.repeat(starts, np.diff(starts, append=len(order)))
    rank = np.arange(len(order)) - begin
    changed = np.diff(scope[order], prepend=-1) != 0
    changed[1:] |= np.diff(score[order]) != 0
    tie = np.cumsum(changed) - 1
    first = np.flatnonzero(changed)
    size = np.diff(first, append=len(order))
    columns = (rank, rank[first][tie], (rank[first] + size - 1)[tie]) if len(order) else ()
    ranks = [np.zeros(len(order), np.int64) for _ in range(3)]
    for column, values in zip(ranks, columns, strict=False):
        column[order] = values
    return _Ranks(*ranks)


class _RankedOrders:
    """The orders of detections ranked by score."""

    def __init__(self, run: EvaluationRun, match_table: MatchTable) -> None:
        self.run, self.match_table = run, match_table
        self.protocol = run.protocol
        self.detections, self.ground_truths = run.boxes()
        self.limits = max_dets_array(self.protocol.max_dets_per_image)
        image = self.detections.image.astype(np.int64)
        self.class_and_image = self.detections.label * np.int64(len(run.images)) + image
        scope = self.class_and_image if self.protocol.max_dets_scope == "class" else image
        self.rank = _ranks(scope, self.detections.score)
        self.within = _ranks(self.class_and_image, self.detections.score)

    def tie_groups(self) -> Iterator[TieGroup]:
        """Yield the tie groups, by class and image."""
        images = len(self.run.images)
        pairs = np.unique(self.class_and_image[self._in_tie_groups()])
        by_pair = np.argsort(self.class_and_image, kind="stable")
        by_pair = by_pair[~self.run.not_scored[by_pair]]
        ends = [
            np.searchsorted(self.class_and_image[by_pair], pairs, side=end)
            for end in ("left", "right")
        ]
        ground_truths = self.ground_truths.label * np.int64(images) + self.ground_truths.image
        order = np.argsort(ground_truths, kind="stable")
        truth_ends = [
            np.searchsorted(ground_truths[order], pairs, side=end) for end in ("left", "right")
        ]
        for n, pair in enumerate(pairs.tolist()):
            rows = by_pair[ends[0][n] : ends[1][n]]
            candidates = _ImageClass(self, rows, order[truth_ends[0][n] : truth_ends[1][n]])
            bounds = candidates.bounds()
            if bounds.bounds:
                label, image = divmod(pair, images)
                yield TieGroup(label, image, self.detections.score[candidates.first_rows], bounds)

    def _in_tie_groups(self) -> Flags:
        """Return a mask of detections whose tie may have several outcomes."""
        straddles = np.zeros(len(self.class_and_image), np.bool_)
        for limit in self.limits:
            straddles |= (self.rank.first < limit) & (self.rank.last >= limit)
        # Two of a tie that reach any ground truth may compete for one.
        reaches = np.flatnonzero(self.match_table.max_iou >= self.protocol.search_thresholds[0])
        tie = np.stack([self.class_and_image[reaches], self.within.first[reaches]])
        _, index, count = np.unique(tie, axis=1, return_inverse=True, return_counts=True)
        straddles[reaches[count[index.ravel()] > 1]] = True
        straddles &= ~self.run.not_scored
        return straddles


class _ImageClass:
    """The detections of one image and class, some of which may compete."""

    def __init__(self, orders: _RankedOrders, rows: Rows, ground_truths: Rows) -> None:
        self.orders = orders
        run, protocol = orders.run, orders.protocol
        detections = orders.detections
        self.all_rows = rows
        rows = rows[np.argsort(-detections.score[rows], kind="stable")]
        self.rows = rows[orders.rank.first[rows] < orders.limits[-1]]
        self.ground_truths = ground_truths
        self.starts = np.flatnonzero(np.diff(orders.within.first[self.rows], prepend=-1))
        self.first_rows = self.rows[self.starts]
        self.similarity = run.overlaps((detections, orders.ground_truths), self.rows, ground_truths)
        thresholds = np.array(protocol.search_thresholds)[:, None, None]
        strict = protocol.strict_iou
        self.reached: Flags = np.asarray(
            self.similarity > thresholds if strict else self.similarity >= thresholds
        )
        sharing = np.add.reduceat(self.reached.astype(np.int32), self.starts, axis=1) > 1
        self.compete = np.any(sharing, axis=(1, 2)).reshape(-1)
        first, last = orders.rank.first[self.first_rows], orders.rank.last[self.first_rows]
        limits = orders.limits[:, None]
        self.straddles = np.any((first < limits) & (last >= limits), axis=1)
        self.preferred = [self._preferred(index) for index in range(len(self.rows))]
        area = detections.area[self.rows]
        self.inside = [(area >= low) & (area <= high) for low, high in protocol.area_bounds]
        self.cache: dict[object, tuple[CountBounds, ...]] = {}

    def bounds(self) -> TieBounds:
        """Return the bounds of the group."""
        protocol, bounds = self.orders.protocol, dict[tuple[CountBounds, ...], int]()
        shape = len(protocol.iou_thresholds), len(protocol.area_ranges), len(self.orders.limits)
        bounds_index = np.full(shape, -1, np.int32)
        for t, a, m in product(*map(range, shape)):
            if self.compete[t] or self.straddles[m]:
                bounds_index[t, a, m] = bounds.setdefault(self._spans(a, t, m), len(bounds))
        return TieBounds(bounds_index, tuple(bounds))

    def _spans(self, a: int, t: int, m: int) -> tuple[CountBounds, ...]:
        """Return the bounds after each tie, for an area range, threshold and limit."""
        positive = self.orders.match_table.positive[a, self.ground_truths]
        key = m, self.reached[t].tobytes(), self.inside[a].tobytes(), positive.tobytes()
        if key not in self.cache:
            options = tuple(self._match_options(index, a, t) for index in range(len(self.rows)))
            unmatchable = self.orders.run.unmatchable[self.ground_truths]
            bounds = count_bounds(self._ties(options, m), int((positive & ~unmatchable).sum()))
            self.cache[key] = tuple(bounds)
        return self.cache[key]

    def _preferred(self, index: int) -> list[int]:
        """Return the ground truths that a detection may match, best first."""
        protocol, similarity = self.orders.protocol, self.similarity[index]
        sign = -1 if protocol.equal_iou == "last" else 1
        reached = np.flatnonzero(self.reached[0, index]).tolist()
        ranked = sorted(reached, key=lambda i: (-similarity[i], sign * i))
        return ranked[:1] if protocol.candidate == "best" else ranked

    def _match_options(self, index: int, a: int, t: int) -> MatchOptions:
        """Return the ground truths that a detection can match, ignored ones last.

        Each has the outcome of its match, and True if the match uses it up.
        """
        orders = self.orders
        unmatched = MISS if self.inside[a][index] else NEITHER
        options: tuple[list[tuple[int, str, bool]], list[tuple[int, str, bool]]] = [], []
        for gt in self.preferred[index]:
            if not self.reached[t, index, gt]:
                continue
            row = self.ground_truths[gt]
            ignored = not orders.match_table.positive[a, row]
            outcome = NEITHER if ignored else unmatched if orders.run.unmatchable[row] else HIT
            shared = ignored and orders.protocol.candidate == "best"
            options[ignored].append((gt, outcome, not (shared or orders.run.crowd[row])))
        return MatchOptions((*options[0], *options[1]), unmatched)

    def _ties(self, options: tuple[MatchOptions, ...], m: int) -> Iterator[Tie]:
        """Yield the ties, with the numbers of their detections that may be within max dets."""
        limit = int(self.orders.limits[m])
        stops = [*self.starts[1:], len(self.rows)]
        for start, stop in zip(self.starts, stops, strict=True):
            row = self.rows[start]
            first, last = (int(rank[row]) for rank in self.orders.rank[1:])
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
        self.rank = _ranks(self.detections.image.astype(np.int64), self.detections.score)
        area, ignored = self.ground_truths.area, run.ignored
        self.counted = np.array(
            [(area >= low) & (area <= high) & ~ignored for low, high in self.protocol.area_bounds]
        )

    def tie_groups(self) -> Iterator[TieGroup]:
        """Yield the images in which the order of ties changes which ground truths are matched."""
        tied = self.rank.first < self.rank.last
        for image in np.unique(self.detections.image[tied]).tolist():
            rows = np.flatnonzero(self.detections.image == image)
            ground_truths = np.flatnonzero(self.ground_truths.image == image)
            if not len(ground_truths):
                continue
            reported = self._covered_counts(rows, ground_truths)
            least, most = self._bounds(rows, ground_truths, reported)
            bounds: dict[tuple[CountBounds, ...], int] = {}
            bounds_index = np.full(reported.shape, -1, np.int32)
            for cell in zip(*np.nonzero((least < reported) | (most > reported)), strict=True):
                span = CountBounds(
                    int(reported[cell] - least[cell]), int(most[cell] - reported[cell]), 0, 0, 0
                )
                bounds_index[cell] = bounds.setdefault((span,), len(bounds))
            if bounds:
                yield TieGroup(0, image, np.zeros(1), TieBounds(bounds_index, tuple(bounds)))

    def _reached(self, iou: Floats) -> Flags:
        """Return a mask of the IoUs that reach each threshold, (T, ...)."""
        thresholds = np.array(self.protocol.search_thresholds).reshape(-1, *[1] * iou.ndim)
        return np.asarray(iou > thresholds if self.protocol.strict_iou else iou >= thresholds)

    def _covered_counts(self, rows: Rows, ground_truths: Rows) -> Rows:
        """Return the number of covered ground truths of an image, (T, A, M) int64."""
        covered = match_by_iou(
            self.detections._replace(
                **{
                    name: getattr(self.detections, name)[rows]
                    for name in ("label", "corners", "overlap_area", "area", "score")
                },
                image=np.zeros(len(rows), np.int32),
            ),
            self.ground_truths._replace(
                **{
                    name: getattr(self.ground_truths, name)[ground_truths]
                    for name in ("label", "corners", "overlap_area", "area")
                },
                image=np.zeros(len(ground_truths), np.int32),
            ),
            counted=self.counted[:, ground_truths],
            images=1,
            max_dets=self.protocol.max_dets,
            inclusive_pixels=self.protocol.inclusive_pixels,
        )
        counted = self.counted[:, None, ground_truths]
        return np.asarray((self._reached(covered) & counted).sum(axis=-1))

    def _bounds(self, rows: Rows, ground_truths: Rows, reported: Rows) -> tuple[Rows, Rows]:
        iou = overlaps(
            self.detections.corners[rows],
            self.ground_truths.corners[ground_truths],
            detection_areas=self.detections.overlap_area[rows],
            truth_areas=self.ground_truths.overlap_area[ground_truths],
            inclusive_pixels=self.protocol.inclusive_pixels,
        )
        first, last = self.rank.first[rows], self.rank.last[rows]
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
            certain = self.rank.last[rows] < limit
            low[:, :, m] = -(-self._covered_counts(rows[certain], ground_truths)[:, :, m] // 2)
            reached = np.any(self._reached(iou[self.rank.first[rows] < limit]), axis=1)
            high[:, :, m] = (reached[:, None] & self.counted[:, ground_truths]).sum(axis=-1)
        return low, high
