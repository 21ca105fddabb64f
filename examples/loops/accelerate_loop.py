"""Evaluate on the processes of Hugging Face's Accelerate.

    accelerate launch --cpu --num_processes 2 examples/loops/accelerate_loop.py

Each process evaluates its images; all gather some 18 bytes per detection, and each has the result.
Accelerate repeats images to fill the last batch: they count once.
"""

import json
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object

import detap

FOLDER = Path("fixtures/quickstart/coco")


def validate() -> detap.Result:
    """Return the result of all processes."""
    accelerator = Accelerator()
    truth = detap.read_ground_truth(FOLDER / "instances.json")
    detections = json.loads((FOLDER / "results.json").read_text())  # instead of a network
    evaluator = detap.Evaluator(truth, images="seen", repeats="identical")
    loader = torch.utils.data.DataLoader(truth.images, batch_size=2)
    for batch in accelerator.prepare(loader):
        images = batch.tolist()
        records = [record for record in detections if record["image_id"] in images]
        evaluator.update_records(images, records)
    blobs = gather_object([evaluator.to_bytes()])
    result = evaluator.merge(blobs).compute()
    accelerator.print(json.dumps(result.metrics()))
    accelerator.end_training()
    return result


if __name__ == "__main__":
    validate()
