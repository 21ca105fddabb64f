"""``pycocotools.cocoeval``: the evaluator of boxes, and its parameters.

Two ways lead to the same bits. Where nothing was overridden and nothing unusual was given, the
core scores all at once, and what pycocotools holds of each image (`evalImgs`, `ious`, `_gts`,
`_dts`) is made when it is read. Otherwise the methods below go image by image in the order in
which pycocotools calls them, so that what is overridden is called.
"""

import datetime
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.compat.pycocotools import entries, scoring
from detap.compat.pycocotools import mask as maskUtils
from detap.errors import UsageError

Record = dict[str, Any]
Groups = defaultdict[Any, list[Record]]

_MADE_WHEN_READ = ("evalImgs", "ious", "_gts", "_dts")


class Params:
    """What is evaluated, and how; every attribute may be changed.

    Parameters
    ----------
    iouType : {"segm", "bbox", "keypoints"}
        Only boxes can be evaluated.

    Attributes
    ----------
    imgIds, catIds : list
        Ids of images and categories.
    iouThrs, recThrs : (T,) and (R,) float64
        Thresholds and recall levels.
    maxDets : list of int
        Detection limits, M of them, for each image and category.
    areaRng, areaRngLbl : list of pairs, list of str
        Area ranges, A of them, both ends included; and their names.
    useCats : int
        Whether categories are told apart.
    """

    def __init__(self, iouType: str = "segm") -> None:
        if iouType in ("segm", "bbox"):
            self.setDetParams()
        elif iouType == "keypoints":
            self.setKpParams()
        else:
            raise Exception("iouType not supported")
        self.iouType = iouType
        self.useSegm: int | None = None

    def setDetParams(self) -> None:
        """Set what boxes and masks are evaluated by."""
        areas: list[Any] = [[0, 1e5**2], [0, 32**2], [32**2, 96**2], [96**2, 1e5**2]]
        self._set([1, 10, 100], areas, ["all", "small", "medium", "large"])

    def setKpParams(self) -> None:
        """Set what keypoints are evaluated by."""
        areas: list[Any] = [[0, 1e5**2], [32**2, 96**2], [96**2, 1e5**2]]
        self._set([20], areas, ["all", "medium", "large"])
        face_and_arms = [0.26, 0.25, 0.25, 0.35, 0.35, 0.79, 0.79, 0.72, 0.72, 0.62, 0.62]
        legs = [1.07, 1.07, 0.87, 0.87, 0.89, 0.89]
        self.kpt_oks_sigmas = np.array([*face_and_arms, *legs]) / 10.0

    def _set(self, limits: list[int], areas: list[Any], labels: list[str]) -> None:
        self.imgIds: list[Any] = []
        self.catIds: list[Any] = []
        self.iouThrs: Any = np.linspace(0.5, 0.95, 10)
        self.recThrs: Any = np.linspace(0.0, 1.0, 101)
        self.maxDets = limits
        self.areaRng = areas
        self.areaRngLbl = labels
        self.useCats = 1


class COCOeval:
    """An evaluator: :meth:`evaluate`, :meth:`accumulate`, :meth:`summarize`, in this order.

    Parameters
    ----------
    cocoGt, cocoDt : COCO, optional
        Ground truth, and detections as :meth:`COCO.loadRes` gives them; may be assigned later.
    iouType : str
        As :class:`Params` takes it.

    Attributes
    ----------
    params : Params
    evalImgs : list
        For each category, area range and image, in this order of loops, what became of each
        detection and ground truth, as a dict of 11 keys; None where there is neither.
    ious : dict
        From image id and category id to the overlaps of detections and ground truths.
    eval : dict
        What was accumulated: precision and scores (T, R, K, A, M), recall (T, K, A, M); -1 is
        undefined.
    stats : (12,) float64
        What was summarized.
    """

    def __init__(self, cocoGt: Any = None, cocoDt: Any = None, iouType: str = "segm") -> None:
        if not iouType:
            print("iouType not specified. use default iouType segm")
        self.cocoGt = cocoGt
        self.cocoDt = cocoDt
        self.evalImgs: Any = defaultdict(list)
        self.eval: dict[str, Any] = {}
        self._gts: Groups = defaultdict(list)
        self._dts: Groups = defaultdict(list)
        self.params = Params(iouType=iouType)
        self._paramsEval: Any = {}
        self.stats: Any = []
        self.ious: Any = {}
        if cocoGt is not None:
            self.params.imgIds = sorted(cocoGt.getImgIds())
            self.params.catIds = sorted(cocoGt.getCatIds())

    def __getattr__(self, name: str) -> Any:
        # Only what the instance has not: what evaluate() left to be made when it is read.
        if name in _MADE_WHEN_READ and "_left" in vars(self):
            return self._make(name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _make(self, name: str) -> Any:
        """Make what is read, as it would be had it been made then."""
        left: _Left = vars(self)["_left"]
        if name == "evalImgs":
            self.evalImgs = entries.images(left.evaluated)
        elif name == "ious":
            self.ious = entries.overlaps_by_image(left.evaluated)
        else:
            params = left.evaluated.params
            of_truths = _grouped(scoring.chosen(left.truths, params))
            of_detections = _grouped(scoring.chosen(left.found, params))
            for image in params.imgIds:
                for category in params.catIds:
                    of_truths[image, category], of_detections[image, category]
            vars(self).setdefault("_gts", of_truths)
            vars(self).setdefault("_dts", of_detections)
        return vars(self)[name]

    def _prepare(self) -> None:
        """Group the annotations that are evaluated by image and category."""
        self._check_type()
        truths = scoring.chosen(self.cocoGt, self.params)
        detections = scoring.chosen(self.cocoDt, self.params)
        for record in truths:
            record["ignore"] = "iscrowd" in record and record["iscrowd"]
        self._gts, self._dts = _grouped(truths), _grouped(detections)
        self.evalImgs = defaultdict(list)
        self.eval = {}

    def _check_type(self) -> None:
        kind = self.params.iouType
        if kind != "bbox":
            raise UsageError(
                f"detap.compat.pycocotools evaluates boxes; for iouType {kind!r} use pycocotools "
                "itself, or iouType='bbox'"
            )

    def evaluate(self) -> None:
        """Match detections to ground truths.

        Raises
        ------
        UsageError
            Where the type is not "bbox".
        """
        begun = time.time()
        p = self.params
        print("Running per image evaluation...")
        if p.useSegm is not None:
            p.iouType = "segm" if p.useSegm == 1 else "bbox"
            print(f"useSegm (deprecated) is not None. Running {p.iouType} evaluation")
        print(f"Evaluate annotation type *{p.iouType}*")
        self._check_type()
        p.imgIds = list(np.unique(p.imgIds))
        if p.useCats:
            p.catIds = list(np.unique(p.catIds))
        p.maxDets = sorted(p.maxDets)
        self.params = p
        left = self._at_once()
        if left is None:
            vars(self).pop("_left", None)
            self._prepare()
            self.ious = self._overlaps()
            self.evalImgs = self._images()
        else:
            self._leave(left)
        self._paramsEval = scoring.copied(self.params)
        print(f"DONE (t={time.time() - begun:0.2f}s).")

    def _overlaps(self) -> dict[tuple[Any, Any], Any]:
        p = self.params
        categories = p.catIds if p.useCats else [-1]
        return {
            (image, category): self.computeIoU(image, category)
            for image in p.imgIds
            for category in categories
        }

    def _images(self) -> list[Record | None]:
        p = self.params
        return [
            self.evaluateImg(image, category, area, p.maxDets[-1])
            for category in (p.catIds if p.useCats else [-1])
            for area in p.areaRng
            for image in p.imgIds
        ]

    def _at_once(self) -> "_Left | None":
        """Return all as the core takes it; None where it has to go image by image."""
        if scoring.overridden(self, COCOeval, "_prepare", "computeIoU", "evaluateImg"):
            return None
        try:
            evaluated = scoring.Evaluated.of(self.cocoGt, self.cocoDt, self.params)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return None  # going image by image, the error comes where pycocotools has it
        return None if evaluated is None else _Left(evaluated, self.cocoGt, self.cocoDt)

    def _leave(self, left: "_Left") -> None:
        """Leave what is seldom read until it is."""
        for name in _MADE_WHEN_READ:
            vars(self).pop(name, None)
        self.eval = {}
        self._left = left

    def computeIoU(self, imgId: Any, catId: Any) -> Any:
        """Return the overlaps of an image's detections, by falling score, with its ground truths.

        Returns
        -------
        (D, G) float64, or an empty list where D or G is 0
        """
        self._check_type()
        truths, detections = self._of(imgId, catId)
        if not truths and not detections:
            return []
        order = np.argsort([-entry["score"] for entry in detections], kind="mergesort")
        first = [detections[row] for row in order[: self.params.maxDets[-1]]]
        crowd = [int(entry["iscrowd"]) for entry in truths]
        return maskUtils.iou(
            [entry["bbox"] for entry in first], [entry["bbox"] for entry in truths], crowd
        )

    def _of(self, image: Any, category: Any) -> tuple[list[Record], list[Record]]:
        """Return the ground truths and the detections of an image and category, or of all."""
        if self.params.useCats:
            return self._gts[image, category], self._dts[image, category]
        categories = self.params.catIds
        truths, detections = (
            [entry for name in categories for entry in groups[image, name]]
            for groups in (self._gts, self._dts)
        )
        return truths, detections

    def evaluateImg(self, imgId: Any, catId: Any, aRng: Any, maxDet: int) -> Record | None:
        """Match the detections of an image and category to its ground truths.

        Parameters
        ----------
        imgId, catId : ids
        aRng : pair of float
            Ground truths of an area outside it need not be found.
        maxDet : int
            So many of the best-scored detections are matched.

        Returns
        -------
        dict or None
            The ids, scores, matches and flags of D detections and G ground truths; None where
            there is neither.
        """
        truths, detections = self._of(imgId, catId)
        if not truths and not detections:
            return None
        for entry in truths:
            outside = entry["area"] < aRng[0] or entry["area"] > aRng[1]
            entry["_ignore"] = 1 if entry["ignore"] or outside else 0
        order = np.argsort([entry["_ignore"] for entry in truths], kind="mergesort")
        truths = [truths[row] for row in order]
        ranked = np.argsort([-entry["score"] for entry in detections], kind="mergesort")
        detections = [detections[row] for row in ranked[:maxDet]]
        crowd = [int(entry["iscrowd"]) for entry in truths]
        neutral = np.array([entry["_ignore"] for entry in truths])
        overlaps = self.ious[imgId, catId]
        thresholds = self.params.iouThrs
        truth_matches = np.zeros((len(thresholds), len(truths)))
        matches = np.zeros((len(thresholds), len(detections)))
        excused = np.zeros((len(thresholds), len(detections)))
        if len(overlaps) > 0:
            match = _Matching(neutral.tolist(), crowd, thresholds)
            match.run(overlaps[:, order], truths, detections, (truth_matches, matches, excused))
        outside = np.array(
            [entry["area"] < aRng[0] or entry["area"] > aRng[1] for entry in detections]
        ).reshape((1, len(detections)))
        unmatched = np.logical_and(matches == 0, np.repeat(outside, len(thresholds), 0))
        return {
            "image_id": imgId,
            "category_id": catId,
            "aRng": aRng,
            "maxDet": maxDet,
            "dtIds": [entry["id"] for entry in detections],
            "gtIds": [entry["id"] for entry in truths],
            "dtMatches": matches,
            "gtMatches": truth_matches,
            "dtScores": [entry["score"] for entry in detections],
            "gtIgnore": neutral,
            "dtIgnore": np.logical_or(excused, unmatched),
        }

    def accumulate(self, p: Any = None) -> None:
        """Make precision, recall and scores of what was matched, as `eval`.

        Parameters
        ----------
        p : Params, optional
            By default `params`.
        """
        print("Accumulating evaluation results...")
        begun = time.time()
        left = self._untouched(p)
        if left is None and not self.evalImgs:
            print("Please run evaluate() first")
        if p is None:
            p = self.params
        p.catIds = p.catIds if p.useCats == 1 else [-1]
        if left is None:
            arrays = _accumulate(self.evalImgs, p, self._paramsEval)
        else:
            arrays = scoring.accumulate(left.evaluated)
        self.eval = {
            "params": p,
            "counts": [*arrays.precision.shape],
            "date": datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S"),
            "precision": arrays.precision,
            "recall": arrays.recall,
            "scores": arrays.scores,
        }
        print(f"DONE (t={time.time() - begun:0.2f}s).")

    def _untouched(self, p: Any) -> "_Left | None":
        """Return what evaluate() left, where nothing was read, assigned or changed since."""
        left: _Left | None = vars(self).get("_left")
        if left is None or "evalImgs" in vars(self):
            return None
        now = (self.params if p is None else p), self._paramsEval
        return left if all(_alike(params, left.evaluated.params) for params in now) else None

    def summarize(self) -> None:
        """Print the twelve numbers, and keep them as `stats`.

        Raises
        ------
        UsageError
            Where the type is not "bbox".
        """
        if not self.eval:
            raise Exception("Please run accumulate() first")
        self._check_type()
        limits = self.params.maxDets
        self.stats = np.zeros(12)
        self.stats[0] = self._summarize("precision")
        for place, threshold in ((1, 0.5), (2, 0.75)):
            self.stats[place] = self._summarize("precision", limits[2], threshold=threshold)
        for place, area in ((3, "small"), (4, "medium"), (5, "large")):
            self.stats[place] = self._summarize("precision", limits[2], area=area)
        for place in range(3):
            self.stats[6 + place] = self._summarize("recall", limits[place])
        for place, area in ((9, "small"), (10, "medium"), (11, "large")):
            self.stats[place] = self._summarize("recall", limits[2], area=area)

    def _summarize(
        self, name: str, limit: int = 100, *, threshold: float | None = None, area: str = "all"
    ) -> Any:
        """Print and return a mean of what is defined of an array; -1 where nothing is."""
        p = self.params
        values = self.eval[name]
        span = f"{p.iouThrs[0]:0.2f}:{p.iouThrs[-1]:0.2f}"
        if threshold is not None:
            span = f"{threshold:0.2f}"
            values = values[np.where(threshold == p.iouThrs)[0]]
        areas = [place for place, label in enumerate(p.areaRngLbl) if label == area]
        limits = [place for place, most in enumerate(p.maxDets) if most == limit]
        values = values[..., areas, limits]
        defined = values[values > -1]
        mean = np.mean(defined) if len(defined) else -1
        short = "AP" if name == "precision" else "AR"
        title = f"Average {name.capitalize()}"
        where = f"IoU={span:<9} | area={area:>6s} | maxDets={limit:>3d}"
        print(f" {title:<18} ({short}) @[ {where} ] = {mean:0.3f}")
        return mean


class _Left(NamedTuple):
    """What evaluate() took, of which all else can be made.

    Attributes
    ----------
    evaluated : Evaluated
        As the core takes it.
    truths, found : COCO
        The ground truths and the detections.
    """

    evaluated: scoring.Evaluated
    truths: Any
    found: Any


class _Matching:
    """How detections claim ground truths at each threshold, in pycocotools' order of steps."""

    def __init__(self, neutral: list[int], crowd: list[int], thresholds: Any) -> None:
        self.neutral = neutral
        self.crowd = crowd
        self.thresholds = [min(threshold, scoring.HIGHEST) for threshold in thresholds]
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


def _accumulate(images: Any, p: Any, evaluated: Any) -> scoring.Accumulated:
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
                curves = _curves(found, most, p.recThrs)
                if curves is not None:
                    recall[:, k, a, m], precision[:, :, k, a, m], scores[:, :, k, a, m] = curves
    return scoring.Accumulated(precision, recall, scores)


def _curves(
    found: list[Record], most: int, levels: Any
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | None:
    """Return recall (T,), precision and scores (T, R) of the images of a class and area range."""
    score = np.concatenate([entry["dtScores"][0:most] for entry in found])
    order = np.argsort(-score, kind="mergesort")
    score = score[order]
    matched = np.concatenate([entry["dtMatches"][:, 0:most] for entry in found], axis=1)[:, order]
    excused = np.concatenate([entry["dtIgnore"][:, 0:most] for entry in found], axis=1)[:, order]
    positives = np.count_nonzero(np.concatenate([entry["gtIgnore"] for entry in found]) == 0)
    if positives == 0:
        return None
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
    return last, at_levels[0], at_levels[1]


def _grouped(records: Sequence[Record]) -> Groups:
    groups: Groups = defaultdict(list)
    for record in records:
        groups[record["image_id"], record["category_id"]].append(record)
    return groups


def _alike(params: Any, others: Params) -> bool:
    """Tell whether parameters come to the same evaluation."""
    try:
        same = all(
            np.array_equal(getattr(params, name), getattr(others, name))
            for name in ("imgIds", "catIds", "iouThrs", "recThrs", "areaRng", "maxDets")
        )
        return same and params.useCats == others.useCats and params.iouType == others.iouType
    except (AttributeError, ValueError):
        return False
