"""``pycocotools.cocoeval``: the evaluator of boxes, masks and keypoints, and its parameters.

Two ways lead to the same bits. Where nothing was overridden and nothing unusual was given, the
core scores all at once, and what pycocotools holds of each image (`evalImgs`, `ious`, `_gts`,
`_dts`) is made when it is read. Otherwise the methods below go image by image in the order in
which pycocotools calls them, so that what is overridden is called. Whatever pycocotools has no name
for is a function of this package: subclasses may use any name.
"""

import datetime
import time
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np

from detap.compat.pycocotools import eval_imgs, fast_path, per_image
from detap.compat.pycocotools import mask as maskUtils
from detap.errors import MaskError, UsageError

Record = dict[str, Any]
Groups = defaultdict[Any, list[Record]]

_MADE_WHEN_READ = ("evalImgs", "ious", "_gts", "_dts")

_KINDS = ("segm", "bbox", "keypoints")


class Params:
    """What is evaluated, and how; every attribute may be changed.

    Parameters
    ----------
    iouType : {"segm", "bbox", "keypoints"}
        What is compared: masks, boxes or keypoints.

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
        if name in _MADE_WHEN_READ and "_detap_left" in vars(self):
            return _make(self, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _prepare(self) -> None:
        """Group the annotations that are evaluated by image and category.

        Their masks become run-length strings, where masks are compared.
        """
        truths = fast_path.chosen(self.cocoGt, self.params)
        detections = fast_path.chosen(self.cocoDt, self.params)
        if self.params.iouType == "segm":
            for coco, records in ((self.cocoGt, truths), (self.cocoDt, detections)):
                for record in records:
                    record["segmentation"] = coco.annToRLE(record)
        for record in truths:
            record["ignore"] = "iscrowd" in record and record["iscrowd"]
            if self.params.iouType == "keypoints":
                record["ignore"] = record["num_keypoints"] == 0 or record["ignore"]
        self._gts, self._dts = per_image.grouped(truths), per_image.grouped(detections)
        self.evalImgs = defaultdict(list)
        self.eval = {}

    def evaluate(self) -> None:
        """Match detections to ground truths.

        Raises
        ------
        UsageError
            Where the type is none that pycocotools knows.
        """
        begun = time.time()
        p = self.params
        print("Running per image evaluation...")
        if p.useSegm is not None:
            p.iouType = "segm" if p.useSegm == 1 else "bbox"
            print(f"useSegm (deprecated) is not None. Running {p.iouType} evaluation")
        print(f"Evaluate annotation type *{p.iouType}*")
        _check_type(self.params)
        p.imgIds = _unique(p.imgIds)
        if p.useCats:
            p.catIds = _unique(p.catIds)
        p.maxDets = sorted(p.maxDets)
        self.params = p
        left = _at_once(self)
        if left is None:
            vars(self).pop("_detap_left", None)
            self._prepare()
            self.ious = per_image.overlaps(self)
            self.evalImgs = per_image.images(self)
        else:
            for name in _MADE_WHEN_READ:
                vars(self).pop(name, None)
            self.eval = {}
            self._detap_left = left
        self._paramsEval = fast_path.copied(self.params)
        print(f"DONE (t={time.time() - begun:0.2f}s).")

    def computeIoU(self, imgId: Any, catId: Any) -> Any:
        """Return the overlaps of an image's detections, by falling score, with its ground truths.

        Returns
        -------
        (D, G) float64, or an empty list where D or G is 0
        """
        truths, detections = per_image.of_image(self, imgId, catId)
        if not truths and not detections:
            return []
        order = np.argsort([-entry["score"] for entry in detections], kind="mergesort")
        first = [detections[row] for row in order[: self.params.maxDets[-1]]]
        if self.params.iouType not in ("segm", "bbox"):
            raise Exception("unknown iouType for iou computation")
        key = "segmentation" if self.params.iouType == "segm" else "bbox"
        crowd = [int(entry["iscrowd"]) for entry in truths]
        try:
            return maskUtils.iou(
                [entry[key] for entry in first], [entry[key] for entry in truths], crowd
            )
        except MaskError as error:
            raise MaskError(f"image {imgId}, category {catId}: {error}") from None

    def computeOks(self, imgId: Any, catId: Any) -> Any:
        """Return the similarity of an image's detections, by falling score, to its ground truths.

        Returns
        -------
        (D, G) float64, or an empty list where D or G is 0
        """
        truths, detections = self._gts[imgId, catId], self._dts[imgId, catId]
        order = np.argsort([-entry["score"] for entry in detections], kind="mergesort")
        first = [detections[row] for row in order[: self.params.maxDets[-1]]]
        if not truths or not first:
            return []
        sigmas = self.params.kpt_oks_sigmas
        return np.stack([per_image.similarity(truth, first, sigmas) for truth in truths], axis=1)

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
        return per_image.match_image(self, imgId, catId, aRng, maxDet)

    def accumulate(self, p: Any = None) -> None:
        """Make precision, recall and scores of what was matched, as `eval`.

        Parameters
        ----------
        p : Params, optional
            By default `params`.
        """
        print("Accumulating evaluation results...")
        begun = time.time()
        left = _untouched(self, p)
        if left is None and not self.evalImgs:
            print("Please run evaluate() first")
        if p is None:
            p = self.params
        p.catIds = p.catIds if p.useCats == 1 else [-1]
        if left is None:
            arrays = per_image.accumulate(self.evalImgs, p, self._paramsEval)
        else:
            arrays = fast_path.accumulate(left.evaluated)
        self.eval = {
            "params": p,
            "counts": [*arrays.precision.shape],
            "date": datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S"),
            "precision": arrays.precision,
            "recall": arrays.recall,
            "scores": arrays.scores,
        }
        print(f"DONE (t={time.time() - begun:0.2f}s).")

    def summarize(self) -> None:
        """Print the twelve numbers, of keypoints ten, and keep them as `stats`.

        Raises
        ------
        UsageError
            Where the type is none that pycocotools knows.
        """
        if not self.eval:
            raise Exception("Please run accumulate() first")
        _check_type(self.params)
        keypoints = self.params.iouType == "keypoints"
        self.stats = (_summarized_keypoints if keypoints else _summarized_detections)(self)


class _Left(NamedTuple):
    """What evaluate() took, of which all else can be made.

    Attributes
    ----------
    evaluated : Evaluated
        As the core takes it.
    truths, found : COCO
        The ground truths and the detections.
    """

    evaluated: fast_path.Evaluated
    truths: Any
    found: Any


def _unique(ids: Any) -> list[Any]:
    """Return each id once, in order, as numpy has it: without numpy.ma, which np.unique imports."""
    array = np.asarray(ids)
    if array.ndim != 1 or not len(array) or array.dtype.kind not in "iu":
        return list(np.unique(ids))
    array = np.sort(array)
    return list(array[np.append(True, array[1:] != array[:-1])])


def _check_type(params: Params) -> None:
    if params.iouType not in _KINDS:
        raise UsageError(f"iouType is {params.iouType!r}; it can be {', '.join(_KINDS)}")


def _at_once(evaluator: COCOeval) -> _Left | None:
    """Return all as the core takes it; None where it has to go image by image."""
    steps = "_prepare", "computeIoU", "computeOks", "evaluateImg"
    if fast_path.overridden(evaluator, COCOeval, *steps):
        return None
    truths, found = evaluator.cocoGt, evaluator.cocoDt
    try:
        evaluated = fast_path.Evaluated.of(truths, found, evaluator.params)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None  # going image by image, the error comes where pycocotools has it
    return None if evaluated is None else _Left(evaluated, truths, found)


def _make(evaluator: COCOeval, name: str) -> Any:
    """Make what is read, as it would be had it been made then."""
    left: _Left = vars(evaluator)["_detap_left"]
    if name == "evalImgs":
        evaluator.evalImgs = eval_imgs.images(left.evaluated)
    elif name == "ious":
        evaluator.ious = eval_imgs.overlaps_by_image(left.evaluated)
    else:
        params = left.evaluated.params
        of_truths = per_image.grouped(fast_path.chosen(left.truths, params))
        of_detections = per_image.grouped(fast_path.chosen(left.found, params))
        for image in params.imgIds:
            for category in params.catIds:
                of_truths[image, category], of_detections[image, category]
        vars(evaluator).setdefault("_gts", of_truths)
        vars(evaluator).setdefault("_dts", of_detections)
    return vars(evaluator)[name]


def _untouched(evaluator: COCOeval, p: Any) -> _Left | None:
    """Return what evaluate() left, where nothing was read, assigned or changed since."""
    left: _Left | None = vars(evaluator).get("_detap_left")
    if left is None or "evalImgs" in vars(evaluator):
        return None
    now = (evaluator.params if p is None else p), evaluator._paramsEval
    return left if all(_alike(params, left.evaluated.params) for params in now) else None


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


def _summarized_detections(evaluator: COCOeval) -> Any:
    """Print and return the twelve numbers of boxes or masks."""
    limits = evaluator.params.maxDets
    stats = np.zeros(12)
    stats[0] = _summarized(evaluator, "precision")
    for place, threshold in ((1, 0.5), (2, 0.75)):
        stats[place] = _summarized(evaluator, "precision", limits[2], threshold=threshold)
    for place, area in ((3, "small"), (4, "medium"), (5, "large")):
        stats[place] = _summarized(evaluator, "precision", limits[2], area=area)
    for place in range(3):
        stats[6 + place] = _summarized(evaluator, "recall", limits[place])
    for place, area in ((9, "small"), (10, "medium"), (11, "large")):
        stats[place] = _summarized(evaluator, "recall", limits[2], area=area)
    return stats


def _summarized_keypoints(evaluator: COCOeval) -> Any:
    """Print and return the ten numbers of keypoints."""
    stats = np.zeros(10)
    for place, name in ((0, "precision"), (5, "recall")):
        stats[place] = _summarized(evaluator, name, 20)
        stats[place + 1] = _summarized(evaluator, name, 20, threshold=0.5)
        stats[place + 2] = _summarized(evaluator, name, 20, threshold=0.75)
        stats[place + 3] = _summarized(evaluator, name, 20, area="medium")
        stats[place + 4] = _summarized(evaluator, name, 20, area="large")
    return stats


def _summarized(
    evaluator: COCOeval,
    name: str,
    limit: int = 100,
    *,
    threshold: float | None = None,
    area: str = "all",
) -> Any:
    """Print and return a mean of what is defined of an array; -1 where nothing is."""
    p = evaluator.params
    values = evaluator.eval[name]
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
