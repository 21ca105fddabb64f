"""Evaluation during Ultralytics validation, tested with Ultralytics 8.4.

Callbacks receive the validator, but not the predictions. So ``on_val_start`` wraps the validator's
``update_metrics``, which receives each batch, and ``on_val_end`` computes the result.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from detap.evaluation.detection import Result
from detap.evaluation.loop.evaluator import Evaluator
from detap.protocols import Protocol


class UltralyticsEvaluator:
    """Evaluator for the validations of an Ultralytics model.

    >>> model = ultralytics.YOLO("yolo11n.pt")
    >>> evaluator = UltralyticsEvaluator(model)
    >>> model.val(data="coco8.yaml")
    >>> evaluator.result.summary["AP"]

    Boxes are in pixels of the image files. Ground truths are those of the validator. Images are
    named by the paths of their files.

    Parameters
    ----------
    model : ultralytics.YOLO
        The model, or another object with ``add_callback``.
    protocol : Protocol or str
        A protocol or the name of a preset.

    Attributes
    ----------
    result : Result or None
        Result of the last finished validation; None before, or if it had no images.
    """

    def __init__(self, model: Any, protocol: Protocol | str = "coco") -> None:
        self.result: Result | None = None
        self._protocol = protocol
        self._evaluator: Evaluator | None = None
        self._validator: Any = None
        model.add_callback("on_val_start", self._start)
        model.add_callback("on_val_end", self._end)

    def __repr__(self) -> str:
        return f"UltralyticsEvaluator({self.result!r})"

    def _start(self, validator: Any) -> None:
        """Reset the evaluator and wrap the validator's ``update_metrics``."""
        if self._evaluator is not None:
            self._evaluator.reset()
        if self._validator is validator:  # a trainer uses one validator for all epochs
            return
        self._validator, update_metrics = validator, validator.update_metrics

        def update_both(preds: Sequence[Mapping[str, Any]], batch: Mapping[str, Any]) -> None:
            self._update(validator, preds, batch)
            update_metrics(preds, batch)

        validator.update_metrics = update_both

    def _update(
        self, validator: Any, preds: Sequence[Mapping[str, Any]], batch: Mapping[str, Any]
    ) -> None:
        """Add a batch to the evaluator."""
        if self._evaluator is None:  # the validator's class names are set by the first batch
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
        """Compute the result; None without images."""
        del validator
        seen = self._evaluator is not None and self._evaluator.seen
        self.result = self._evaluator.compute() if self._evaluator and seen else None
