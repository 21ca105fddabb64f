"""Evaluation during Ultralytics validation.

Its callbacks are given the validator and not what was predicted. So the one of the start puts a
listener before ``update_metrics``, which every batch passes; the one of the end has the result
made.
Written for, and tested with, Ultralytics 8.4.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from detap.evaluation.loop.evaluator import Evaluator
from detap.evaluation.results import Result
from detap.protocols import Protocol


class UltralyticsEvaluator:
    """Evaluator of an Ultralytics model's validations.

    >>> model = ultralytics.YOLO("yolo11n.pt")
    >>> evaluator = UltralyticsEvaluator(model)
    >>> model.val(data="coco8.yaml")
    >>> evaluator.result.summary["AP"]

    Boxes are scored in the pixels of the images as they are on disk, ground truths as the validator
    has them, images by the paths of their files.

    Parameters
    ----------
    model : ultralytics.YOLO
        Or whatever else has ``add_callback``.
    protocol : Protocol or str
        A protocol or the name of a preset.

    Attributes
    ----------
    result : Result or None
        Of the last validation that ended.
    """

    def __init__(self, model: Any, protocol: Protocol | str = "coco") -> None:
        self.result: Result | None = None
        self._protocol = protocol
        self._evaluator: Evaluator | None = None
        self._validator: Any = None
        model.add_callback("on_val_start", self._start)
        model.add_callback("on_val_end", self._end)

    def _start(self, validator: Any) -> None:
        if self._evaluator is not None:
            self._evaluator.reset()
        if self._validator is validator:  # a trainer has one for all its epochs
            return
        self._validator, update_metrics = validator, validator.update_metrics

        def listen(preds: Sequence[Mapping[str, Any]], batch: Mapping[str, Any]) -> None:
            self._update(validator, preds, batch)
            update_metrics(preds, batch)

        validator.update_metrics = listen

    def _update(
        self, validator: Any, preds: Sequence[Mapping[str, Any]], batch: Mapping[str, Any]
    ) -> None:
        if self._evaluator is None:  # the classes are known from the first batch on
            names = validator.names
            classes = names if isinstance(names, Mapping) else dict(enumerate(names))
            self._evaluator = Evaluator(protocol=self._protocol, boxes="xyxy", classes=classes)
        images = [validator._prepare_batch(index, batch) for index in range(len(preds))]
        detections = [
            validator.scale_preds(validator._prepare_pred(pred), image)
            for pred, image in zip(preds, images, strict=True)
        ]
        self._evaluator.update(
            [str(image["im_file"]) for image in images],
            [pred["bboxes"] for pred in detections],
            [pred["conf"] for pred in detections],
            [pred["cls"] for pred in detections],
            ground_truth={
                "boxes": [validator.scale_preds(image, image)["bboxes"] for image in images],
                "labels": [image["cls"] for image in images],
            },
        )

    def _end(self, validator: Any) -> None:
        del validator
        seen = self._evaluator is not None and self._evaluator.seen
        self.result = self._evaluator.compute() if self._evaluator and seen else None
