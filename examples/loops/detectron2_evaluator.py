"""An evaluator for Detectron2, in place of COCOEvaluator.

    evaluator = DetapEvaluator("coco_2017_val")
    inference_on_dataset(model, loader, evaluator)

``pred_classes`` count the classes of the dataset from 0; its metadata says which category ids those
are.
"""

from typing import Any

import numpy as np
from detectron2.data import MetadataCatalog
from detectron2.evaluation import DatasetEvaluator
from detectron2.utils import comm

import detap


class DetapEvaluator(DatasetEvaluator):
    """The numbers of COCO's protocol, times a hundred as Detectron2 has them."""

    def __init__(self, dataset_name: str, protocol: str = "coco") -> None:
        metadata = MetadataCatalog.get(dataset_name)
        self.truth = detap.read_ground_truth(metadata.json_file)
        contiguous = metadata.thing_dataset_id_to_contiguous_id
        self.ids = np.array(sorted(contiguous, key=contiguous.get))
        self.evaluator = detap.Evaluator(self.truth, protocol, "xyxy", repeats="identical")

    def reset(self) -> None:
        """Begin anew."""
        self.evaluator.reset()

    def process(self, inputs: list[dict[str, Any]], outputs: list[dict[str, Any]]) -> None:
        """Take the images of a batch and what was found on them."""
        predictions = [output["instances"] for output in outputs]
        self.evaluator.update(
            [image["image_id"] for image in inputs],
            [instances.pred_boxes.tensor for instances in predictions],
            [instances.scores for instances in predictions],
            [self.ids[instances.pred_classes.cpu().numpy()] for instances in predictions],
        )

    def evaluate(self) -> dict[str, dict[str, float]] | None:
        """Return the numbers in the first process, and nothing in the others."""
        blobs = comm.gather(self.evaluator.to_bytes())
        if not comm.is_main_process():
            return None
        result = detap.merge(blobs, self.truth, repeats="identical").compute()
        return {"bbox": {name: 100 * value for name, value in result.summary.items()}}
