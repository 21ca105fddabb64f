"""Evaluate image by image in pycocotools' order: slow, but for any input.

Attributes assigned to the evaluator, and results of overridden methods, are used.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.compat.pycocotools.fast_path import MAX_IOU_THRESHOLD, Accumulated

Record = dict[str, Any]
Groups = defaultdict[Any, list[Record]]


def grouped(records: Sequence[Record]) -> Groups:
    """Group annotations by image id and category id."""
    groups: Groups = defaultdict(list)
    for record in records:
        groups[record["image_id"], record["category_id"]].append(record)
    return groups


def overlaps(evaluator: Any) -> dict[tuple[Any, Any], Any]:
    """Call ``computeIoU`` or ``computeOks`` for each image and category."""
    p = evaluator.params
    categories = p.catIds if p.useCats else [-1]
    compute = evaluator.computeOks if p.iouType == "keypoints" else evaluator.computeIoU
    return {
        (image, category): compute(image, category) for image in p.imgIds for category in categories
    }


def images(evaluator: Any) -> list[Record | None]:
    """Call ``evaluateImg`` for each category, area range and image."""
    p = evaluator.params
    return [
        evaluator.evaluateImg(image, category, area, p.maxDets[-1])
        for category in (p.catIds if p.useCats else [-1])
        for area in p.areaRng
        for image in p.imgIds
    ]


def of_image(evaluator: Any, image: Any, category: Any) -> tuple[list[Record], list[Record]]:
    """Return ground truths and detections of an image and category, or all categories."""
    if evaluator.params.useCats:
        return evaluator._gts[image, category], evaluator._dts[image, category]
    categories = evaluator.params.catIds
    ground_truths, detections = (
        [entry for name in categories for entry in groups[image, name]]
        for groups in (evaluator._gts, evaluator._dts)
    )
    return ground_truths, detections


def similarity(truth: Record, detections: Sequence[Record], sigmas: Any) -> NDArray[np.float64]:
    """Compute the OKS of D detections and a ground truth, (D,) float64.

    Without labeled keypoints, distances are to the box enlarged by its size on every side.
    """
    spread = (sigmas * 2) ** 2
    truth_keypoints = np.array(truth["keypoints"])
    x, y, labeled = truth_keypoints[0::3], truth_keypoints[1::3], truth_keypoints[2::3] > 0
    box = truth["bbox"]
    left, right = box[0] - box[2], box[0] + box[2] * 2
    top, bottom = box[1] - box[3], box[1] + box[3] * 2
    result = np.zeros(len(detections))
    for index, detection in enumerate(detections):
        keypoints = np.array(detection["keypoints"])
        dt_x, dt_y = keypoints[0::3], keypoints[1::3]
        if labeled.any():
            dx, dy = dt_x - x, dt_y - y
        else:
            zero = np.zeros(len(sigmas))
            dx = np.max((zero, left - dt_x), axis=0) + np.max((zero, dt_x - right), axis=0)
            dy = np.max((zero, top - dt_y), axis=0) + np.max((zero, dt_y - bottom), axis=0)
        # pycocotools' order of operations, for equal bits.
        exponent = (dx**2 + dy**2) / spread / (truth["area"] + np.spacing(1)) / 2
        if labeled.any():
            exponent = exponent[labeled]
        result[index] = np.sum(np.exp(-exponent)) / exponent.shape[0]
    return result


def match_image(evaluator: Any, image: Any, category: Any, aRng: Any, maxDet: int) -> Record | None:
    """Compute the result of ``evaluateImg``."""
    ground_truths, detections = of_image(evaluator, image, category)
    if not ground_truths and not detections:
        return None
    for entry in ground_truths:
        is_ignored = entry["ignore"] or entry["area"] < aRng[0] or entry["area"] > aRng[1]
        entry["_ignore"] = 1 if is_ignored else 0
    order = np.argsort([entry["_ignore"] for entry in ground_truths], kind="mergesort")
    ground_truths = [ground_truths[row] for row in order]
    ranked = np.argsort([-entry["score"] for entry in detections], kind="mergesort")
    detections = [detections[row] for row in ranked[:maxDet]]
    crowd = [int(entry["iscrowd"]) for entry in ground_truths]
    ignored = np.array([entry["_ignore"] for entry in ground_truths])
    overlaps = evaluator.ious[image, category]
    thresholds = evaluator.params.iouThrs
    truth_matches = np.zeros((len(thresholds), len(ground_truths)))
    matches = np.zeros((len(thresholds), len(detections)))
    dt_ignored = np.zeros((len(thresholds), len(detections)))
    if len(overlaps) > 0:
        match = _Matching(ignored.tolist(), crowd, thresholds)
        match.run(
            overlaps[:, order], ground_truths, detections, (truth_matches, matches, dt_ignored)
        )
    outside = np.array(
        [entry["area"] < aRng[0] or entry["area"] > aRng[1] for entry in detections]
    ).reshape((1, len(detections)))
    unmatched = np.logical_and(matches == 0, np.repeat(outside, len(thresholds), 0))
    return {
        "image_id": image,
        "category_id": category,
        "aRng": aRng,
        "maxDet": maxDet,
        "dtIds": [entry["id"] for entry in detections],
        "gtIds": [entry["id"] for entry in ground_truths],
        "dtMatches": matches,
        "gtMatches": truth_matches,
        "dtScores": [entry["score"] for entry in detections],
        "gtIgnore": ignored,
        "dtIgnore": np.logical_or(dt_ignored, unmatched),
    }


class _Matching:
    """Matching at each threshold, in pycocotools' order of operations."""

    def __init__(self, ignored: list[int], crowd: list[int], thresholds: Any) -> None:
        self.ignored = ignored
        self.crowd = crowd
        self.thresholds = [min(threshold, MAX_IOU_THRESHOLD) for threshold in thresholds]
        self.lowest = min(self.thresholds, default=0)

    def run(
        self,
        overlaps: NDArray[np.float64],
        ground_truths: Sequence[Record],
        detections: Sequence[Record],
        out: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
    ) -> None:
        """Fill in the matched ids and the ignored detections."""
        truth_matches, matches, dt_ignored = out
        indices = range(len(ground_truths))
        for index, detection in enumerate(detections):
            row = overlaps[index].tolist()
            # IoU below every threshold cannot match, except next to NaN.
            has_nan = any(value != value for value in row)  # noqa: PLR0124
            candidates = [g for g in indices if has_nan or row[g] >= self.lowest]
            for t in range(len(self.thresholds)) if candidates else ():
                best = self._best(row, candidates, t, truth_matches[t])
                if best >= 0:
                    dt_ignored[t, index] = self.ignored[best]
                    matches[t, index] = ground_truths[best]["id"]
                    truth_matches[t, best] = detection["id"]

    def _best(
        self, row: list[float], candidates: list[int], t: int, taken: NDArray[np.float64]
    ) -> int:
        """Return the ground truth matched at a threshold, or -1.

        Ignored ones are last and match only if no other does.
        """
        reached, best = self.thresholds[t], -1
        for g in candidates:
            if taken[g] > 0 and not self.crowd[g]:
                continue
            if best > -1 and self.ignored[best] == 0 and self.ignored[g] == 1:
                break
            if row[g] < reached:
                continue
            reached, best = row[g], g
        return best


def accumulate(images: Any, p: Any, evaluated: Any) -> Accumulated:
    """Accumulate the per-image results of a list in pycocotools' order."""
    thresholds, levels = len(p.iouThrs), len(p.recThrs)
    classes = len(p.catIds) if p.useCats else 1
    areas, limits = len(p.areaRng), len(p.maxDets)
    precision = -np.ones((thresholds, levels, classes, areas, limits))
    recall = -np.ones((thresholds, classes, areas, limits))
    scores = -np.ones((thresholds, levels, classes, areas, limits))
    evaluated_values = {
        "class": {*(evaluated.catIds if evaluated.useCats else [-1])},
        "area": {*map(tuple, evaluated.areaRng)},
        "limit": {*evaluated.maxDets},
        "image": {*evaluated.imgIds},
    }
    class_indices = [k for k, name in enumerate(p.catIds) if name in evaluated_values["class"]]
    area_indices = [
        a for a, area_range in enumerate(p.areaRng) if tuple(area_range) in evaluated_values["area"]
    ]
    max_dets = [limit for limit in p.maxDets if limit in evaluated_values["limit"]]
    image_indices = [i for i, name in enumerate(p.imgIds) if name in evaluated_values["image"]]
    all_areas, all_images = len(evaluated.areaRng), len(evaluated.imgIds)
    for k, class_index in enumerate(class_indices):
        for a, area_index in enumerate(area_indices):
            start = (class_index * all_areas + area_index) * all_images
            entries = [images[start + i] for i in image_indices]
            entries = [entry for entry in entries if entry is not None]
            for m, limit in enumerate(max_dets if entries else ()):
                # Row by row: thresholds may have changed since evaluate().
                for t, row in enumerate(_curves(entries, limit, p.recThrs)):
                    recall[t, k, a, m], precision[t, :, k, a, m], scores[t, :, k, a, m] = row
    return Accumulated(precision, recall, scores)


def _curves(
    entries: list[Record], limit: int, levels: Any
) -> Iterable[tuple[Any, NDArray[Any], NDArray[Any]]]:
    """Return recall, precision (R,) and scores (R,) by threshold; empty without positives."""
    score = np.concatenate([entry["dtScores"][0:limit] for entry in entries])
    order = np.argsort(-score, kind="mergesort")
    score = score[order]
    matched = np.concatenate([entry["dtMatches"][:, 0:limit] for entry in entries], axis=1)[
        :, order
    ]
    ignored = np.concatenate([entry["dtIgnore"][:, 0:limit] for entry in entries], axis=1)[:, order]
    positives = np.count_nonzero(np.concatenate([entry["gtIgnore"] for entry in entries]) == 0)
    if positives == 0:
        return ()
    hits = np.cumsum(np.logical_and(matched, np.logical_not(ignored)), axis=1).astype(float)
    wrong = np.logical_and(np.logical_not(matched), np.logical_not(ignored))
    misses = np.cumsum(wrong, axis=1).astype(float)
    recalls = hits / positives
    precisions = hits / (misses + hits + np.spacing(1))
    envelope = np.maximum.accumulate(precisions[:, ::-1], axis=1)[:, ::-1]
    count = len(score)
    at_levels = np.zeros((2, len(hits), len(levels)))
    for t in range(len(hits)):
        ranks = np.searchsorted(recalls[t], levels, side="left")
        # pycocotools stops at the first level that is not reached.
        unreached = np.flatnonzero(ranks >= count)
        reached = ranks[: unreached[0]] if len(unreached) else ranks
        at_levels[0, t, : len(reached)] = envelope[t, reached]
        at_levels[1, t, : len(reached)] = score[reached]
    last = recalls[:, -1] if count else np.zeros(len(hits))
    return zip(last, *at_levels, strict=True)
