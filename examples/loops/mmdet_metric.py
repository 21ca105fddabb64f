"""A metric for mmdetection, in place of CocoMetric.

In a configuration, with this file's name in ``custom_imports``:

    val_evaluator = dict(type="DetapMetric", ann_file="annotations/instances_val2017.json")

mmengine gathers the results of the processes of a distributed run: one entry of bytes per process.
Images that its sampler repeats count once.
"""

from collections.abc import Sequence
from typing import Any

from mmengine.evaluator import BaseMetric
from mmengine.registry import METRICS

import detap


@METRICS.register_module()
class DetapMetric(BaseMetric):
    """COCO metrics, under ``coco/``."""

    default_prefix = "coco"

    def __init__(self, ann_file: str, protocol: str = "coco", **given: Any) -> None:
        super().__init__(**given)
        self.truth = detap.read_ground_truth(ann_file)
        self.evaluator = detap.Evaluator(self.truth, protocol, "xyxy", repeats="identical")

    def process(self, data_batch: Any, data_samples: Sequence[dict[str, Any]]) -> None:
        """Add the samples of a batch, each with an ``img_id`` and ``pred_instances``."""
        names = self.dataset_meta["classes"]
        predictions = [sample["pred_instances"] for sample in data_samples]
        self.evaluator.update(
            [sample["img_id"] for sample in data_samples],
            [item["bboxes"] for item in predictions],
            [item["scores"] for item in predictions],
            [[names[label] for label in item["labels"].tolist()] for item in predictions],
        )

    def evaluate(self, size: int) -> dict[str, float]:
        """Gather the results and return the metrics."""
        self.results = [self.evaluator.to_bytes()]
        self.evaluator.reset()
        return super().evaluate(size)

    def compute_metrics(self, results: list[bytes]) -> dict[str, float]:
        """Return the metrics of all processes, in the first process."""
        return self.evaluator.merge(results).compute().summary
