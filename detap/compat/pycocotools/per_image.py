"""Evaluation step by step, image by image, in pycocotools' own order: slow, and of anything.

Whatever was assigned to the evaluator, or returned by its overridden methods, is what counts.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.compat.pycocotools.fast_path import HIGHEST, Accumulated

Record = dict[str, Any]
Groups = defaultdict[Any, list[Record]]


def grouped(records: Sequence[Record]) -> Groups:
    """Return annotations by the ids of their image and category."""
    groups: Groups = defaultdict(list)
    for record in records:
        groups[record["image_id"], record["category_id"]].append(record)
    return groups


def overlaps(evaluator: Any) -> dict[tuple[Any, Any], Any]:
    """Return what ``computeIoU`` or ``computeOks`` gives, by the ids of image and category."""
    p = evaluator.params
    categories = p.catIds if p.useCats else [-1]
    compute = evaluator.computeOks if p.iouType == "keypoints" else evaluator.computeIoU
    return {
        (image, category): compute(image, category) for image in p.imgIds for category in categories
    }


def images(evaluator: Any) -> list[Record | None]:
    """Return what ``evaluateImg`` gives, for each category, area range and image."""
    p = evaluator.params
    return [
        evaluator.evaluateImg(image, category, area, p.maxDets[-1])
        for category in (p.catIds if p.useCats else [-1])
        for area in p.areaRng
        for image in p.imgIds
    ]


def of_image(evaluator: Any, image: Any, category: Any) -> tuple[list[Record], list[Record]]:
    """Return the ground truths and the detections of an image and category, or of all."""
    if evaluator.params.useCats:
        return evaluator._gts[image, category], evaluator._dts[image, category]
    categories = evaluator.params.catIds
    truths, detections = (
        [entry for name in categories for entry in groups[image, name]]
        for groups in (evaluator._gts, evaluator._dts)
    )
    return truths, detections


def similarity(truth: Record, detections: Sequence[Record], sigmas: Any) -> NDArray[np.float64]:
    """Return the object keypoint similarity of D detections with a ground truth, (D,) float64.

    Of a ground truth none of whose keypoints is labelled it is the distance to the box, enlarged
    by its own size on every side, that counts.
    """
    spread = (sigmas * 2) ** 2
    given = np.array(truth["keypoints"])
    x, y, labelled = given[0::3], given[1::3], given[2::3] > 0
    box = truth["bbox"]
    left, right = box[0] - box[2], box[0] + box[2] * 2
    top, bottom = box[1] - box[3], box[1] + box[3] * 2
    found = np.zeros(len(detections))
    for place, detection in enumerate(detections):
        own = np.array(detection["keypoints"])
        across, along = own[0::3], own[1::3]
        if labelled.any():
            dx, dy = across - x, along - y
        else:
            none = np.zeros(len(sigmas))
            dx = np.max((none, left - across), axis=0) + np.max((none, across - right), axis=0)
            dy = np.max((none, top - along), axis=0) + np.max((none, along - bottom), axis=0)
        # In this order, to the last bit.
        far = (dx**2 + dy**2) / spread / (truth["area"] + np.spacing(1)) / 2
        if labelled.any():
            far = far[labelled]
        found[place] = np.sum(np.exp(-far)) / far.shape[0]
    return found


def match_image(evaluator: Any, image: Any, category: Any, aRng: Any, maxDet: int) -> Record | None:
    """Return what ``evaluateImg`` does."""
    truths, detections = of_image(evaluator, image, category)
    if not truths and not detections:
        return None
    for entry in truths:
        is_ignored = entry["ignore"] or entry["area"] < aRng[0] or entry["area"] > aRng[1]
        entry["_ignore"] = 1 if is_ignored else 0
    order = np.argsort([entry["_ignore"] for entry in truths], kind="mergesort")
    truths = [truths[row] for row in order]
    ranked = np.argsort([-entry["score"] for entry in detections], kind="mergesort")
    detections = [detections[row] for row in ranked[:maxDet]]
    crowd = [int(entry["iscrowd"]) for entry in truths]
    ignored = np.array([entry["_ignore"] for entry in truths])
    overlaps = evaluator.ious[image, category]
    thresholds = evaluator.params.iouThrs
    truth_matches = np.zeros((len(thresholds), len(truths)))
    matches = np.zeros((len(thresholds), len(detections)))
    excused = np.zeros((len(thresholds), len(detections)))
    if len(overlaps) > 0:
        match = _Matching(ignored.tolist(), crowd, thresholds)
        match.run(overlaps[:, order], truths, detections, (truth_matches, matches, excused))
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
        "gtIds": [entry["id"] for entry in truths],
        "dtMatches": matches,
        "gtMatches": truth_matches,
        "dtScores": [entry["score"] for entry in detections],
        "gtIgnore": ignored,
        "dtIgnore": np.logical_or(excused, unmatched),
    }


class _Matching:
    """How detections claim ground truths at each threshold, in pycocotools' order of steps."""

    def __init__(self, ignored: list[int], crowd: list[int], thresholds: Any) -> None:
        self.neutral = ignored
        self.crowd = crowd
        self.thresholds = [min(threshold, HIGHEST) for threshold in thresholds]
        self.lowest = min(self.thresholds, default=0)

    def run(
        self,
        overlaps: NDArray[np.float64],
        truths: Sequence[Record],
        detections: Sequence[Record],
        out: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
    ) -> None:
        """Fill in who matched whom, by id, and which detections are excused."""
        truth_matches, matches, excused = out
        everyone = range(len(truths))
        for place, detection in enumerate(detections):
            row = overlaps[place].tolist()
            # What is below every threshold is never looked at, unless NaN makes it reachable.
            odd = any(value != value for value in row)  # noqa: PLR0124
            near = [g for g in everyone if odd or row[g] >= self.lowest]
            for t in range(len(self.thresholds)) if near else ():
                best = self._best(row, near, t, truth_matches[t])
                if best >= 0:
                    excused[t, place] = self.neutral[best]
                    matches[t, place] = truths[best]["id"]
                    truth_matches[t, best] = detection["id"]

    def _best(self, row: list[float], near: list[int], t: int, taken: NDArray[np.float64]) -> int:
        """Return the ground truth that a detection takes at a threshold, or -1.

        Neutral ones stand last, and are taken only where no other will do.
        """
        reached, best = self.thresholds[t], -1
        for g in near:
            if taken[g] > 0 and not self.crowd[g]:
                continue
            if best > -1 and self.neutral[best] == 0 and self.neutral[g] == 1:
                break
            if row[g] < reached:
                continue
            reached, best = row[g], g
        return best


def accumulate(images: Any, p: Any, evaluated: Any) -> Accumulated:
    """Make the arrays of what became of each image, as pycocotools finds it in the list."""
    thresholds, levels = len(p.iouThrs), len(p.recThrs)
    classes = len(p.catIds) if p.useCats else 1
    areas, limits = len(p.areaRng), len(p.maxDets)
    precision = -np.ones((thresholds, levels, classes, areas, limits))
    recall = -np.ones((thresholds, classes, areas, limits))
    scores = -np.ones((thresholds, levels, classes, areas, limits))
    known = {
        "class": {*(evaluated.catIds if evaluated.useCats else [-1])},
        "area": {*map(tuple, evaluated.areaRng)},
        "limit": {*evaluated.maxDets},
        "image": {*evaluated.imgIds},
    }
    class_places = [k for k, name in enumerate(p.catIds) if name in known["class"]]
    area_places = [a for a, band in enumerate(p.areaRng) if tuple(band) in known["area"]]
    wanted = [most for most in p.maxDets if most in known["limit"]]
    image_places = [i for i, name in enumerate(p.imgIds) if name in known["image"]]
    all_areas, all_images = len(evaluated.areaRng), len(evaluated.imgIds)
    for k, class_place in enumerate(class_places):
        for a, area_place in enumerate(area_places):
            start = (class_place * all_areas + area_place) * all_images
            found = [images[start + i] for i in image_places]
            found = [entry for entry in found if entry is not None]
            for m, most in enumerate(wanted if found else ()):
                # Not as one block: thresholds may have been added or removed since evaluate().
                for t, row in enumerate(_curves(found, most, p.recThrs)):
                    recall[t, k, a, m], precision[t, :, k, a, m], scores[t, :, k, a, m] = row
    return Accumulated(precision, recall, scores)


def _curves(
    found: list[Record], most: int, levels: Any
) -> Iterable[tuple[Any, NDArray[Any], NDArray[Any]]]:
    """Return recall, precision (R,) and scores (R,) at each threshold; none without positives.

    Of the images of a class and area range.
    """
    score = np.concatenate([entry["dtScores"][0:most] for entry in found])
    order = np.argsort(-score, kind="mergesort")
    score = score[order]
    matched = np.concatenate([entry["dtMatches"][:, 0:most] for entry in found], axis=1)[:, order]
    excused = np.concatenate([entry["dtIgnore"][:, 0:most] for entry in found], axis=1)[:, order]
    positives = np.count_nonzero(np.concatenate([entry["gtIgnore"] for entry in found]) == 0)
    if positives == 0:
        return ()
    hits = np.cumsum(np.logical_and(matched, np.logical_not(excused)), axis=1).astype(float)
    wrong = np.logical_and(np.logical_not(matched), np.logical_not(excused))
    misses = np.cumsum(wrong, axis=1).astype(float)
    recalls = hits / positives
    precisions = hits / (misses + hits + np.spacing(1))
    envelope = np.maximum.accumulate(precisions[:, ::-1], axis=1)[:, ::-1]
    count = len(score)
    at_levels = np.zeros((2, len(hits), len(levels)))
    for t in range(len(hits)):
        places = np.searchsorted(recalls[t], levels, side="left")
        # Where a level is not reached, pycocotools reads no further.
        unreached = np.flatnonzero(places >= count)
        reached = places[: unreached[0]] if len(unreached) else places
        at_levels[0, t, : len(reached)] = envelope[t, reached]
        at_levels[1, t, : len(reached)] = score[reached]
    last = recalls[:, -1] if count else np.zeros(len(hits))
    return zip(last, *at_levels, strict=True)
