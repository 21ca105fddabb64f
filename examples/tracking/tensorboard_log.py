"""Log each epoch and its curves to TensorBoard.

python examples/tracking/tensorboard_log.py runs
"""

import sys

from torch.utils.tensorboard import SummaryWriter

import detap

FOLDER = "fixtures/quickstart/coco"

truth = detap.read_ground_truth(f"{FOLDER}/instances.json")
with SummaryWriter(sys.argv[1]) as writer:
    for epoch, results in enumerate(("results-worse.json", "results.json")):
        result = detap.evaluate(truth, f"{FOLDER}/{results}")
        for name, value in result.metrics("val/", by_class=True).items():
            writer.add_scalar(name, value, epoch)
        writer.add_figure("val/precision-recall", result.plot("precision-recall").figure, epoch)
