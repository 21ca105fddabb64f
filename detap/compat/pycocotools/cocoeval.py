"""``pycocotools.cocoeval``: pycocotools' own evaluator, matching and accumulating in the core.

The inherited methods prepare the annotations and compute the similarities of masks and keypoints.
They also evaluate image by image: where `evalImgs` or `ious` is read, where a method is overridden,
and for input that the core does not take.
"""

import copy
import datetime
import time
from typing import Any

import numpy as np
import pycocotools.cocoeval
from pycocotools.cocoeval import Params

from detap.compat.pycocotools.core_input import CoreInput

__all__ = ["COCOeval", "Params"]

_LAZY = ("evalImgs", "ious")
_STEPS = ("_prepare", "computeIoU", "computeOks", "evaluateImg")
_IOU_TYPES = ("segm", "bbox", "keypoints")


class COCOeval(pycocotools.cocoeval.COCOeval):  # type: ignore[misc]
    """An evaluator, as in pycocotools: `evaluate`, `accumulate`, `summarize`, in this order.

    Parameters
    ----------
    cocoGt, cocoDt : COCO, optional
        Ground truth, and detections from :meth:`COCO.loadRes`; may be assigned later.
    iouType : {"segm", "bbox", "keypoints"}
        Masks, boxes or keypoints.
    """

    def __getattr__(self, name: str) -> Any:
        if name in _LAZY and "_detap_input" in vars(self):
            _evaluate_images(self, self._detap_input.params)
            return vars(self)[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def evaluate(self) -> None:
        """Collect the annotations for :meth:`accumulate`; `evalImgs` and `ious` when read."""
        p = self.params
        self.__dict__.pop("_detap_input", None)
        is_overridden = any(
            name in vars(self) or getattr(type(self), name) is not getattr(COCOeval, name)
            for name in _STEPS
        )
        if is_overridden or p.useSegm is not None or p.iouType not in _IOU_TYPES:
            super().evaluate()
            return
        start = time.time()
        print("Running per image evaluation...")
        print(f"Evaluate annotation type *{p.iouType}*")
        p.imgIds = list(np.unique(p.imgIds))
        if p.useCats:
            p.catIds = list(np.unique(p.catIds))
        p.maxDets = sorted(p.maxDets)
        self._prepare()
        self._paramsEval = copy.deepcopy(p)
        core_input = CoreInput.of(self)
        if core_input is None:
            _evaluate_images(self, p)
        else:
            for name in _LAZY:
                self.__dict__.pop(name, None)
            self._detap_input = core_input
        print(f"DONE (t={time.time() - start:0.2f}s).")

    def accumulate(self, p: Any = None) -> None:
        """Compute `eval`: precision, recall and scores.

        Parameters
        ----------
        p : Params, optional
            By default `params`.
        """
        p_given = self.params if p is None else p
        core_input = vars(self).get("_detap_input")
        if (
            core_input is None
            or "evalImgs" in vars(self)
            or not (core_input.has_params(p_given) and core_input.has_params(self._paramsEval))
        ):
            super().accumulate(p)
            return
        print("Accumulating evaluation results...")
        start = time.time()
        p_given.catIds = p_given.catIds if p_given.useCats == 1 else [-1]
        precision, recall, scores = core_input.accumulate()
        self.eval = {
            "params": p_given,
            "counts": [*precision.shape],
            "date": datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S"),
            "precision": precision,
            "recall": recall,
            "scores": scores,
        }
        print(f"DONE (t={time.time() - start:0.2f}s).")


def _evaluate_images(evaluator: COCOeval, params: Any) -> None:
    """Set `ious` and `evalImgs` by the inherited methods, as pycocotools' evaluate does."""
    current, evaluator.params = evaluator.params, params
    try:
        categories = params.catIds if params.useCats else [-1]
        keypoints = params.iouType == "keypoints"
        similarity = evaluator.computeOks if keypoints else evaluator.computeIoU
        evaluator.ious = {
            (image, category): similarity(image, category)
            for image in params.imgIds
            for category in categories
        }
        evaluator.evalImgs = [
            evaluator.evaluateImg(image, category, area_range, params.maxDets[-1])
            for category in categories
            for area_range in params.areaRng
            for image in params.imgIds
        ]
    finally:
        evaluator.params = current
