"""``pycocotools.cocoeval``: evaluate boxes, masks and keypoints.

Two paths give identical results. The fast path, for regular input without overridden methods,
evaluates all images in the core; per-image attributes (`evalImgs`, `ious`, `_gts`, `_dts`) are
created on access. Otherwise the methods are called image by image in pycocotools' order. Helpers
are functions of this package, so that subclasses can use any method name.
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

_LAZY = ("evalImgs", "ious", "_gts", "_dts")

_IOU_TYPES = ("segm", "bbox", "keypoints")


class Params:
    """Parameters of an evaluation; all attributes may be assigned.

    Parameters
    ----------
    iouType : {"segm", "bbox", "keypoints"}
        Masks, boxes or keypoints.

    Attributes
    ----------
    imgIds, catIds : list
        Ids of images and categories.
    iouThrs, recThrs : (T,) and (R,) float64
        Thresholds and recall levels.
    maxDets : list of int
        M maximum numbers of detections per image and category.
    areaRng, areaRngLbl : list of pairs, list of str
        A area ranges, both ends included, and their names.
    useCats : int
        Whether categories are evaluated separately.
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
        """Set the defaults of boxes and masks."""
        areas: list[Any] = [[0, 1e5**2], [0, 32**2], [32**2, 96**2], [96**2, 1e5**2]]
        self._set([1, 10, 100], areas, ["all", "small", "medium", "large"])

    def setKpParams(self) -> None:
        """Set the defaults of keypoints."""
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
        Ground truth, and detections from :meth:`COCO.loadRes`; may be assigned later.
    iouType : str
        As in :class:`Params`.

    Attributes
    ----------
    params : Params
    evalImgs : list
        Match results by category, area range and image: a dict of 11 keys, or None without
        detections and ground truths.
    ious : dict
        IoU or OKS of detections and ground truths, by image id and category id.
    eval : dict
        Precision and scores (T, R, K, A, M), recall (T, K, A, M); -1 is undefined.
    stats : (12,) float64
        Summary metrics.
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
        if name in _LAZY and "_detap_state" in vars(self):
            return _compute(self, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _prepare(self) -> None:
        """Group the selected annotations by image and category; encode masks."""
        ground_truths = fast_path.selected_annotations(self.cocoGt, self.params)
        detections = fast_path.selected_annotations(self.cocoDt, self.params)
        if self.params.iouType == "segm":
            for coco, records in ((self.cocoGt, ground_truths), (self.cocoDt, detections)):
                for record in records:
                    record["segmentation"] = coco.annToRLE(record)
        for record in ground_truths:
            record["ignore"] = "iscrowd" in record and record["iscrowd"]
            if self.params.iouType == "keypoints":
                record["ignore"] = record["num_keypoints"] == 0 or record["ignore"]
        self._gts, self._dts = per_image.grouped(ground_truths), per_image.grouped(detections)
        self.evalImgs = defaultdict(list)
        self.eval = {}

    def evaluate(self) -> None:
        """Match detections to ground truths.

        Raises
        ------
        UsageError
            If `iouType` is unknown to pycocotools.
        """
        start = time.time()
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
        state = _fast_state(self)
        if state is None:
            vars(self).pop("_detap_state", None)
            self._prepare()
            self.ious = per_image.overlaps(self)
            self.evalImgs = per_image.images(self)
        else:
            for name in _LAZY:
                vars(self).pop(name, None)
            self.eval = {}
            self._detap_state = state
        self._paramsEval = fast_path.copy_params(self.params)
        print(f"DONE (t={time.time() - start:0.2f}s).")

    def computeIoU(self, imgId: Any, catId: Any) -> Any:
        """Compute the IoU of detections, best scores first, and ground truths of an image.

        Returns
        -------
        (D, G) float64, or an empty list if D or G is 0
        """
        ground_truths, detections = per_image.of_image(self, imgId, catId)
        if not ground_truths and not detections:
            return []
        order = np.argsort([-entry["score"] for entry in detections], kind="mergesort")
        first = [detections[row] for row in order[: self.params.maxDets[-1]]]
        if self.params.iouType not in ("segm", "bbox"):
            raise Exception("unknown iouType for iou computation")
        key = "segmentation" if self.params.iouType == "segm" else "bbox"
        crowd = [int(entry["iscrowd"]) for entry in ground_truths]
        try:
            return maskUtils.iou(
                [entry[key] for entry in first], [entry[key] for entry in ground_truths], crowd
            )
        except MaskError as error:
            raise MaskError(f"image {imgId}, category {catId}: {error}") from None

    def computeOks(self, imgId: Any, catId: Any) -> Any:
        """Compute the OKS of detections, best scores first, and ground truths of an image.

        Returns
        -------
        (D, G) float64, or an empty list if D or G is 0
        """
        ground_truths, detections = self._gts[imgId, catId], self._dts[imgId, catId]
        order = np.argsort([-entry["score"] for entry in detections], kind="mergesort")
        first = [detections[row] for row in order[: self.params.maxDets[-1]]]
        if not ground_truths or not first:
            return []
        sigmas = self.params.kpt_oks_sigmas
        return np.stack(
            [per_image.similarity(truth, first, sigmas) for truth in ground_truths], axis=1
        )

    def evaluateImg(self, imgId: Any, catId: Any, aRng: Any, maxDet: int) -> Record | None:
        """Match the detections of an image and category to its ground truths.

        Parameters
        ----------
        imgId, catId : ids
        aRng : pair of float
            Ground truths with an area outside are ignored.
        maxDet : int
            Maximum number of detections.

        Returns
        -------
        dict or None
            Ids, scores, matches and flags; None without detections and ground truths.
        """
        return per_image.match_image(self, imgId, catId, aRng, maxDet)

    def accumulate(self, p: Any = None) -> None:
        """Compute `eval`: precision, recall and scores.

        Parameters
        ----------
        p : Params, optional
            By default `params`.
        """
        print("Accumulating evaluation results...")
        start = time.time()
        state = _valid_state(self, p)
        if state is None and not self.evalImgs:
            print("Please run evaluate() first")
        if p is None:
            p = self.params
        p.catIds = p.catIds if p.useCats == 1 else [-1]
        if state is None:
            arrays = per_image.accumulate(self.evalImgs, p, self._paramsEval)
        else:
            arrays = fast_path.accumulate(state.evaluated)
        self.eval = {
            "params": p,
            "counts": [*arrays.precision.shape],
            "date": datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S"),
            "precision": arrays.precision,
            "recall": arrays.recall,
            "scores": arrays.scores,
        }
        print(f"DONE (t={time.time() - start:0.2f}s).")

    def summarize(self) -> None:
        """Print the summary metrics and store them as `stats`.

        Raises
        ------
        UsageError
            If `iouType` is unknown to pycocotools.
        """
        if not self.eval:
            raise Exception("Please run accumulate() first")
        _check_type(self.params)
        keypoints = self.params.iouType == "keypoints"
        self.stats = (_summarized_keypoints if keypoints else _summarized_detections)(self)


class _State(NamedTuple):
    """Input of evaluate(), from which the lazy attributes are computed.

    Attributes
    ----------
    evaluated : Evaluated
        Columns for the core.
    ground_truths, detections : COCO
        The ground truths and the detections.
    """

    evaluated: fast_path.Evaluated
    ground_truths: Any
    detections: Any


def _unique(ids: Any) -> list[Any]:
    """Return the sorted unique ids, without the slow import of np.unique."""
    array = np.asarray(ids)
    if array.ndim != 1 or not len(array) or array.dtype.kind not in "iu":
        return list(np.unique(ids))
    array = np.sort(array)
    return list(array[np.append(True, array[1:] != array[:-1])])


def _check_type(params: Params) -> None:
    if params.iouType not in _IOU_TYPES:
        raise UsageError(f"unknown iouType {params.iouType!r}; available: {', '.join(_IOU_TYPES)}")


def _fast_state(evaluator: COCOeval) -> _State | None:
    """Return the input of the fast path; None if it does not apply."""
    steps = "_prepare", "computeIoU", "computeOks", "evaluateImg"
    if fast_path.overridden(evaluator, COCOeval, *steps):
        return None
    ground_truths, detections = evaluator.cocoGt, evaluator.cocoDt
    try:
        evaluated = fast_path.Evaluated.of(ground_truths, detections, evaluator.params)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None  # the per-image path raises the error where pycocotools does
    return None if evaluated is None else _State(evaluated, ground_truths, detections)


def _compute(evaluator: COCOeval, name: str) -> Any:
    """Compute a lazy attribute from the state of evaluate()."""
    state: _State = vars(evaluator)["_detap_state"]
    if name == "evalImgs":
        evaluator.evalImgs = eval_imgs.images(state.evaluated)
    elif name == "ious":
        evaluator.ious = eval_imgs.overlaps_by_image(state.evaluated)
    else:
        params = state.evaluated.params
        of_ground_truths = per_image.grouped(
            fast_path.selected_annotations(state.ground_truths, params)
        )
        of_detections = per_image.grouped(fast_path.selected_annotations(state.detections, params))
        for image in params.imgIds:
            for category in params.catIds:
                of_ground_truths[image, category], of_detections[image, category]
        vars(evaluator).setdefault("_gts", of_ground_truths)
        vars(evaluator).setdefault("_dts", of_detections)
    return vars(evaluator)[name]


def _valid_state(evaluator: COCOeval, p: Any) -> _State | None:
    """Return the state of evaluate(), if nothing was read or changed since."""
    state: _State | None = vars(evaluator).get("_detap_state")
    if state is None or "evalImgs" in vars(evaluator):
        return None
    current = (evaluator.params if p is None else p), evaluator._paramsEval
    return (
        state if all(_same_params(params, state.evaluated.params) for params in current) else None
    )


def _same_params(params: Any, other: Params) -> bool:
    """Return True if two parameters give the same evaluation."""
    try:
        same = all(
            np.array_equal(getattr(params, name), getattr(other, name))
            for name in ("imgIds", "catIds", "iouThrs", "recThrs", "areaRng", "maxDets")
        )
        return same and params.useCats == other.useCats and params.iouType == other.iouType
    except (AttributeError, ValueError):
        return False


def _summarized_detections(evaluator: COCOeval) -> Any:
    """Print and return the twelve metrics of boxes or masks."""
    limits = evaluator.params.maxDets
    stats = np.zeros(12)
    stats[0] = _summarized(evaluator, "precision")
    for index, threshold in ((1, 0.5), (2, 0.75)):
        stats[index] = _summarized(evaluator, "precision", limits[2], threshold=threshold)
    for index, area in ((3, "small"), (4, "medium"), (5, "large")):
        stats[index] = _summarized(evaluator, "precision", limits[2], area=area)
    for index in range(3):
        stats[6 + index] = _summarized(evaluator, "recall", limits[index])
    for index, area in ((9, "small"), (10, "medium"), (11, "large")):
        stats[index] = _summarized(evaluator, "recall", limits[2], area=area)
    return stats


def _summarized_keypoints(evaluator: COCOeval) -> Any:
    """Print and return the ten metrics of keypoints."""
    stats = np.zeros(10)
    for index, name in ((0, "precision"), (5, "recall")):
        stats[index] = _summarized(evaluator, name, 20)
        stats[index + 1] = _summarized(evaluator, name, 20, threshold=0.5)
        stats[index + 2] = _summarized(evaluator, name, 20, threshold=0.75)
        stats[index + 3] = _summarized(evaluator, name, 20, area="medium")
        stats[index + 4] = _summarized(evaluator, name, 20, area="large")
    return stats


def _summarized(
    evaluator: COCOeval,
    name: str,
    limit: int = 100,
    *,
    threshold: float | None = None,
    area: str = "all",
) -> Any:
    """Print and return the mean of the defined values; -1 if there are none."""
    p = evaluator.params
    values = evaluator.eval[name]
    span = f"{p.iouThrs[0]:0.2f}:{p.iouThrs[-1]:0.2f}"
    if threshold is not None:
        span = f"{threshold:0.2f}"
        values = values[np.where(threshold == p.iouThrs)[0]]
    areas = [index for index, label in enumerate(p.areaRngLbl) if label == area]
    limits = [index for index, max_dets in enumerate(p.maxDets) if max_dets == limit]
    values = values[..., areas, limits]
    defined = values[values > -1]
    mean = np.mean(defined) if len(defined) else -1
    short = "AP" if name == "precision" else "AR"
    title = f"Average {name.capitalize()}"
    condition = f"IoU={span:<9} | area={area:>6s} | maxDets={limit:>3d}"
    print(f" {title:<18} ({short}) @[ {condition} ] = {mean:0.3f}")
    return mean
