"""Create pycocotools' per-image results, `evalImgs` and `ious`, from the match table.

Axes: T thresholds, K classes, A area ranges, I images, N detections and G ground truths; D and G
within one image and class.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.compat.pycocotools.fast_path import Evaluated, compute_match_table
from detap.core.matching import Boxes, Pairs
from detap.core.overlap import overlaps

Rows = NDArray[np.intp]
Record = dict[str, Any]


class _Groups:
    """Rows sorted by class, image and a key.

    Attributes
    ----------
    rows : (n,) int
        Sorted rows.
    start : (K * I + 1,) int
        First position of each class and image.
    """

    def __init__(self, boxes: Boxes, rows: Rows, key: NDArray[Any], shape: tuple[int, int]) -> None:
        classes, images = shape
        group = boxes.label[rows].astype(np.int64) * images + boxes.image[rows]
        order = np.lexsort((key[rows], group))
        self.rows = rows[order]
        self.start = np.searchsorted(group[order], np.arange(classes * images + 1))

    def of(self, group: int) -> slice:
        """Return the positions of a group in `rows`."""
        return slice(self.start[group], self.start[group + 1])


def _ranked(evaluated: Evaluated) -> _Groups:
    """Return detections within max dets by class and image, best scores first."""
    detections, limit = evaluated.detections.boxes, evaluated.match_params.max_dets[-1]
    assert limit is not None
    groups = _Groups(
        detections, np.arange(len(detections.score)), -detections.score, evaluated.shape
    )
    rank = np.arange(len(groups.rows)) - np.repeat(groups.start[:-1], np.diff(groups.start))
    return _Groups(detections, groups.rows[rank < limit], -detections.score, evaluated.shape)


def images(evaluated: Evaluated) -> list[Record | None]:
    """Return ``COCOeval.evalImgs``: K * A * I entries, None without boxes."""
    params, match_table = evaluated.params, compute_match_table(evaluated)
    ranked = _ranked(evaluated)
    result: list[Record | None] = [None] * (np.prod(evaluated.shape).item() * len(params.areaRng))
    by_area = np.split(match_table.matched_gt, len(params.areaRng))
    for a, matched_gt in enumerate(by_area):
        for group, entry in _entries(evaluated, ranked, matched_gt[:, ranked.rows], a):
            label, image = divmod(group, evaluated.shape[1])
            result[(label * len(params.areaRng) + a) * evaluated.shape[1] + image] = entry
    return result


def _entries(
    evaluated: Evaluated, ranked: _Groups, matched_gt: NDArray[np.int32], a: int
) -> Iterator[tuple[int, Record]]:
    """Yield the index of a class and image, and its entry, in an area range.

    Parameters
    ----------
    matched_gt : (T, n) int32
        Matched ground truth of each ranked detection, or -1.
    """
    params, ground_truths = evaluated.params, evaluated.ground_truths
    low, high = evaluated.match_params.area_ranges[a]
    ignored = (
        ground_truths.ignored | (ground_truths.boxes.area < low) | (ground_truths.boxes.area > high)
    )
    gt_groups = _Groups(ground_truths.boxes, np.arange(len(ignored)), ignored, evaluated.shape)
    area = evaluated.detections.boxes.area[ranked.rows]
    outside = (area < low) | (area > high)
    ids, rows = evaluated.detections.ids, evaluated.detections.rows[ranked.rows]
    dt_ids = [ids[row] for row in rows.tolist()]
    gt_ids = ground_truths.ids[gt_groups.rows].tolist()
    scores = [evaluated.scores[row] for row in ranked.rows.tolist()]
    flags = ignored[gt_groups.rows].astype(np.int64)
    position = np.empty(len(ignored) + 1, np.intp)  # the last is for unmatched
    position[gt_groups.rows], position[-1] = np.arange(len(ignored)), len(ignored)
    matched = position[matched_gt]
    matches = np.array([*gt_ids, 0], np.float64)[matched]
    dt_ignored = np.append(ignored[gt_groups.rows], False)[matched] | ((matches == 0) & outside)
    gt_matches = np.zeros((len(matched_gt), len(ignored) + 1))
    for t, columns in enumerate(matched):
        gt_matches[t, columns] = dt_ids  # several may match a crowd: the last counts
    for group in np.flatnonzero(np.diff(ranked.start) + np.diff(gt_groups.start)).tolist():
        dt, gt = ranked.of(group), gt_groups.of(group)
        label, image = divmod(group, evaluated.shape[1])
        yield (
            group,
            {
                "image_id": params.imgIds[image],
                "category_id": params.catIds[label] if params.useCats else -1,
                "aRng": params.areaRng[a],
                "maxDet": params.maxDets[-1],
                "dtIds": dt_ids[dt],
                "gtIds": gt_ids[gt],
                "dtMatches": matches[:, dt].copy(),
                "gtMatches": gt_matches[:, gt].copy(),
                "dtScores": scores[dt],
                "gtIgnore": flags[gt].copy() if gt_ids[gt] else np.array([]),
                "dtIgnore": dt_ignored[:, dt].copy(),
            },
        )


def overlaps_by_image(evaluated: Evaluated) -> dict[tuple[Any, Any], Any]:
    """Return ``COCOeval.ious``: (D, G) IoU or OKS by image id and category id.

    It is an empty list without detections or ground truths.
    """
    params, count = evaluated.params, evaluated.shape[1]
    names = params.catIds if params.useCats else [-1]
    ranked = _ranked(evaluated)
    order = np.arange(len(evaluated.ground_truths.ignored))
    gt_groups = _Groups(evaluated.ground_truths.boxes, order, np.zeros(len(order)), evaluated.shape)
    pairs = evaluated.overlaps()
    result: dict[tuple[Any, Any], Any] = {}
    for image, image_id in enumerate(params.imgIds):
        for label, category_id in enumerate(names):
            group = label * count + image
            dt, gt = ranked.rows[ranked.of(group)], gt_groups.rows[gt_groups.of(group)]
            result[image_id, category_id] = (
                []
                if len(dt) == 0 or len(gt) == 0
                else _box_overlaps(evaluated, dt, gt)
                if pairs is None
                else _pair_overlaps(pairs, dt, gt)
            )
    return result


def _box_overlaps(evaluated: Evaluated, dt: Rows, gt: Rows) -> NDArray[np.float64]:
    ground_truths, detections = evaluated.ground_truths, evaluated.detections.boxes
    return np.asfortranarray(
        overlaps(
            detections.corners[dt],
            ground_truths.boxes.corners[gt],
            detection_areas=detections.overlap_area[dt],
            truth_areas=ground_truths.boxes.overlap_area[gt],
            crowd=ground_truths.crowd[gt],
        )
    )


def _pair_overlaps(pairs: Pairs, dt: Rows, gt: Rows) -> NDArray[np.float64]:
    """Return the IoU or OKS of detections and ground truths of an image and class."""
    result = np.zeros((len(dt), len(gt)), order="F")
    for index, row in enumerate(dt.tolist()):
        span = slice(pairs.start[row], pairs.start[row + 1])
        result[index, np.searchsorted(gt, pairs.truth[span])] = pairs.similarity[span]
    return result
