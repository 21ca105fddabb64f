"""The annotations of an evaluator as columns for the core.

Axes: T thresholds, R recall levels, K classes, A area ranges, M max dets, N detections,
G ground truths.
"""

import copy
import itertools
from collections import defaultdict
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from detap.core.arrays import Boxes, Pairs
from detap.core.match_table import MatchTable
from detap.core.matching import match_and_accumulate
from detap.core.params import MatchParams

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Record = dict[str, Any]

_MAX_IOU_THRESHOLD = 1 - 1e-10
"""Maximum IoU threshold, as in pycocotools."""

_MAX_THRESHOLDS = 64
_MAX_EXACT_INTEGER = 2**53


class Groups(NamedTuple):
    """Annotations by image and class.

    Attributes
    ----------
    records : list of dict
        All annotations, group by group.
    image, label : int32
        Indices of each annotation's image and class.
    slices : dict of slice
        The annotations of each index of image and class.
    """

    records: list[Record]
    image: NDArray[np.int32]
    label: NDArray[np.int32]
    slices: dict[tuple[int, int], slice]

    @classmethod
    def of(cls, annotations: dict[Any, list[Record]], params: Any, *, ranked: bool) -> Self:
        """Return the selected annotations, if `ranked` by descending score in each group."""
        images = {name: index for index, name in enumerate(_plain(params.imgIds))}
        categories = {name: index for index, name in enumerate(_plain(params.catIds))}
        chosen: defaultdict[tuple[int, int], list[Record]] = defaultdict(list)
        by_category = sorted(annotations.items(), key=lambda item: categories.get(item[0][1], -1))
        for (image, category), group in by_category:
            if image in images and category in categories:
                chosen[images[image], categories[category] if params.useCats else 0] += group
        records: list[Record] = []
        slices = {}
        for key, group in chosen.items():
            slices[key] = slice(len(records), len(records) + len(group))
            order: Any = range(len(group))
            if ranked:  # in the order of computeIoU and computeOks
                order = np.argsort([-record["score"] for record in group], kind="mergesort")
            records += [group[index] for index in order]
        counts = [each.stop - each.start for each in slices.values()]
        image, label = np.array([*slices], np.int32).reshape(-1, 2).T
        return cls(records, np.repeat(image, counts), np.repeat(label, counts), slices)

    def column(self, key: str) -> Floats:
        """Return a number of each record, if all have one that float64 has."""
        values = np.array([record[key] for record in self.records])
        if len(values) == 0:
            return np.zeros(0)
        if values.ndim != 1 or values.dtype.kind not in "iuf":
            raise TypeError(key)
        if (
            np.isnan(values).any()
            or (np.abs(values[np.isfinite(values)]) > _MAX_EXACT_INTEGER).any()
        ):
            raise ValueError(key)
        return values.astype(np.float64)

    def boxes(self, *, scored: bool, compared: bool) -> Boxes:
        """Return the columns for the core, corners only if boxes are `compared`."""
        corners, box_area = np.zeros((len(self.records), 4)), np.zeros(len(self.records))
        if compared and self.records:
            listed = [record["bbox"] for record in self.records]
            if not {type(box) for box in listed} <= {list, np.ndarray}:
                raise TypeError("bbox")
            given = np.array(listed)
            if given.ndim != 2 or given.shape[1] != 4 or given.dtype.kind not in "iuf":
                raise TypeError("bbox")
            corners = given.astype(np.float64)
            if not np.isfinite(corners).all() or (corners[:, 2:] < 0).any():
                raise ValueError("bbox")
            box_area = corners[:, 2] * corners[:, 3]
            corners[:, 2:] += corners[:, :2]
        score = self.column("score") if scored else np.zeros(len(self.records))
        if not np.isfinite(score).all():
            raise ValueError("score")
        return Boxes(self.image, self.label, corners, box_area, self.column("area"), score)


class CoreInput(NamedTuple):
    """Arguments of :func:`match_and_accumulate`, and pycocotools' parameters, copied."""

    params: Any
    match_params: MatchParams
    detections: Boxes
    ground_truths: Boxes
    ignored: Flags
    crowd: Flags
    unmatchable: Flags
    pairs: Pairs | None

    @classmethod
    def of(cls, evaluator: Any) -> Self | None:
        """Convert prepared annotations; None if the core does not take them."""
        try:
            return cls._converted(evaluator)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return None  # the inherited methods raise the error, if it is one

    @classmethod
    def _converted(cls, evaluator: Any) -> Self | None:
        params = evaluator.params
        match_params = _match_params(params)
        if match_params is None:
            return None
        boxes = params.iouType == "bbox"
        dt = Groups.of(evaluator._dts, params, ranked=not boxes)
        gt = Groups.of(evaluator._gts, params, ranked=False)
        detections = dt.boxes(scored=True, compared=boxes)
        ground_truths = gt.boxes(scored=False, compared=boxes)
        if (dt.column("id") <= 0).any():
            return None  # pycocotools takes their ground truths as not matched
        crowd = np.array([int(record["iscrowd"]) for record in gt.records], np.uint8) > 0
        ignored = np.array([bool(record["ignore"]) for record in gt.records], np.bool_)
        pairs = None if boxes else _pairs(evaluator, dt, gt, match_params.thresholds[0])
        low, high = match_params.area_ranges[-1]
        outside = ignored | (ground_truths.area < low) | (ground_truths.area > high)
        for record, flag in zip(gt.records, outside.tolist(), strict=True):
            record["_ignore"] = int(flag)
        return cls(
            copy.copy(evaluator._paramsEval),
            match_params,
            detections,
            ground_truths._replace(score=np.zeros(0)),
            ignored,
            crowd,
            gt.column("id") == 0,
            pairs,
        )

    def has_params(self, params: Any) -> bool:
        """Return True if parameters give the same evaluation."""
        try:
            return all(
                np.array_equal(getattr(params, name), getattr(self.params, name))
                for name in (
                    *("imgIds", "catIds", "iouThrs", "recThrs", "areaRng", "maxDets"),
                    *("useCats", "iouType"),
                )
            )
        except (AttributeError, ValueError):
            return False

    def accumulate(self) -> tuple[Floats, Floats, Floats]:
        """Return precision (T, R, K, A, M), recall (T, K, A, M) and scores; -1 is undefined."""
        scores = match_and_accumulate(
            self.detections,
            self.ground_truths,
            ignored=self.ignored,
            crowd=self.crowd,
            unmatchable=self.unmatchable,
            images=len(self.params.imgIds),
            classes=len(self.params.catIds) if self.params.useCats else 1,
            params=self.match_params,
            pairs=self.pairs,
            all_max_dets=True,
            match_table=(),
        )
        assert scores.match_table is not None
        precision, recall = scores.precision.transpose(2, 3, 4, 1, 0), scores.recall
        at_levels = _scores_at_levels(scores.match_table, scores.positives)
        for area, positives in enumerate(scores.positives):
            precision[:, :, positives == 0, area] = -1
            recall[:, positives == 0, area] = -1
            at_levels[:, :, positives == 0, area] = -1
        return precision, recall, at_levels


def _plain(names: Any) -> list[Any]:
    """Return ids as Python objects, which compare faster than numpy's."""
    return [name.item() if isinstance(name, np.generic) else name for name in names]


def _match_params(params: Any) -> MatchParams | None:
    """Return parameters for the core; None if it does not take them."""
    thresholds = np.minimum(np.asarray(params.iouThrs, np.float64), _MAX_IOU_THRESHOLD)
    levels = np.asarray(params.recThrs, np.float64)
    limits = [*params.maxDets]
    areas = np.asarray([[*area_range] for area_range in params.areaRng], np.float64)
    regular = (
        thresholds.ndim == levels.ndim == 1
        and 0 < len(thresholds) <= _MAX_THRESHOLDS
        and len(levels) > 0
        and bool((thresholds > 0).all())
        and _is_ascending(thresholds)
        and _is_ascending(levels)
        and areas.ndim == 2
        and areas.shape[1] == 2
        and bool(np.isfinite(areas).all())
        and all(isinstance(limit, int | np.integer) for limit in limits)
        and len(limits) > 0
        and limits[0] >= 1
        and all(low < high for low, high in itertools.pairwise(limits))
        and params.useCats in ((0, 1) if params.iouType == "bbox" else (1,))
        and 0 < len({*params.catIds}) == len(params.catIds)
        and len(params.imgIds) > 0
    )
    if not regular:
        return None
    return MatchParams(
        thresholds=tuple(thresholds.tolist()),
        strict=False,
        best_unmatched=True,
        last_of_equal=True,
        area_ranges=tuple((low, high) for low, high in areas.tolist()),
        max_dets=tuple(int(limit) for limit in limits),
        ties_by_image=True,
        levels=tuple(levels.tolist()),
        summing="pairwise",
        precision_eps=float(np.spacing(1)),
        inclusive_pixels=False,
    )


def _is_ascending(values: Floats) -> bool:
    return bool(np.isfinite(values).all() and (np.diff(values) >= 0).all())


def _pairs(evaluator: Any, dt: Groups, gt: Groups, lowest: float) -> Pairs:
    """Return the similarities by the inherited methods, from `lowest` on."""
    params = evaluator.params
    keypoints = params.iouType == "keypoints"
    compute = evaluator.computeOks if keypoints else evaluator.computeIoU
    rows, truths = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    similarities = [np.zeros(0)]
    for (image, label), detections in dt.slices.items():
        if (image, label) not in gt.slices:
            continue
        similarity = compute(params.imgIds[image], params.catIds[label])
        values = np.asarray(similarity, np.float64)
        if np.isnan(values).any():
            raise ValueError("similarity")
        row, truth = np.nonzero(values >= lowest)
        rows.append(row + detections.start)
        truths.append(truth + gt.slices[image, label].start)
        similarities.append(values[row, truth])
    counts = np.bincount(np.concatenate(rows), minlength=len(dt.records))
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Pairs(start, np.concatenate(truths).astype(np.int32), np.concatenate(similarities))


def _scores_at_levels(table: MatchTable, positives: NDArray[np.int64]) -> Floats:
    """Return the score at which each recall level is reached, (T, R, K, A, M).

    It is that of the first true positive which brings recall there; of the best-scored detection
    for level 0; 0 where the level is not reached.
    """
    params, classes = table.params, table.classes
    levels = np.array(params.levels)
    areas, limits = len(params.area_ranges), len(params.max_dets)
    out = np.zeros((len(params.thresholds), len(levels), classes, areas, limits))
    start, ranked = table.ranking
    detected = np.flatnonzero(start[:-1] < start[1:])
    best = np.zeros(classes)
    best[detected] = table.score[ranked[start[:-1][detected]]]
    for area, threshold in itertools.product(range(areas), range(len(out))):
        hits = ranked[table.is_true_positive(area, threshold, ranked)]
        needed = _needed_hits(levels, positives[area])
        for limit in range(limits):
            rows = hits[table.max_dets_index[hits] <= limit]
            first = np.searchsorted(table.label[rows], np.arange(classes + 1))
            index = first[:-1] + needed - 1
            reached = index < first[1:]
            score = np.append(table.score[rows], 0.0)[np.where(reached, index, len(rows))]
            out[threshold, :, :, area, limit] = np.where(levels[:, None] > 0, score, best)
    return out


def _needed_hits(levels: Floats, positives: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of true positives that reach each recall level, (R, K)."""
    total = np.maximum(positives, 1)
    needed = np.ceil(levels[:, None] * total)
    needed -= (needed - 1) / total >= levels[:, None]
    needed += needed / total < levels[:, None]
    return needed.astype(np.int64)
