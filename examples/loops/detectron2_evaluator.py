"""An evaluator for Detectron2, in place of COCOEvaluator.

    evaluator = DetapEvaluator("coco_2017_val")
    inference_on_dataset(model, loader, evaluator)

``pred_classes`` are indices of the dataset's classes; its metadata maps them to category ids.
"""

from typing import Any

import numpy as np
from detectron2.data import MetadataCatalog
from detectron2.evaluation import DatasetEvaluator
from detectron2.utils import comm

import detap


class DetapEvaluator(DatasetEvaluator):
    """COCO metrics, times 100 as in Detectron2."""

    def __init__(self, dataset_name: str, protocol: str = "coco") -> None:
        metadata = MetadataCatalog.get(dataset_name)
        self.truth = detap.read_ground_truth(metadata.json_file)
        contiguous = metadata.thing_dataset_id_to_contiguous_id
        self.ids = np.array(sorted(contiguous, key=contiguous.get))
        self.evaluator = detap.Evaluator(self.truth, protocol, "xyxy", repeats="identical")

    def reset(self) -> None:
        """Drop all detections."""
        self.evaluator.reset()

    def process(self, inputs: list[dict[str, Any]], outputs: list[dict[str, Any]]) -> None:
        """Add the images of a batch and their detections."""
        predictions = [output["instances"] for output in outputs]
        self.evaluator.update(
            [image["image_id"] for image in inputs],
            [instances.pred_boxes.tensor for instances in predictions],
            [instances.scores for instances in predictions],
            [self.ids[instances.pred_classes.cpu().numpy()] for instances in predictions],
        )

    def evaluate(self) -> dict[str, dict[str, float]] | None:
        """Return the metrics in the first process, and an empty dict in the others."""
        blobs = comm.gather(self.evaluator.to_bytes())
        if not comm.is_main_process():
            return None
        result = self.evaluator.merge(blobs).compute()
        return {"bbox": {name: 100 * value for name, value in result.summary.items()}}
