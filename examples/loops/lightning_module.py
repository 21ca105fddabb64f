"""Log the metrics of a detector's validation epochs with Lightning.

    Trainer().validate(Detector(network), loader)

The batches are images and targets of torchvision's form. Lightning moves and resets the metric with
the module. The logged names are torchmetrics': ``val/map``, ``val/map_50``, ...
"""

from typing import Any

import lightning
import torch

from detap.torch import MeanAveragePrecision


class Detector(lightning.LightningModule):
    """A detector that returns boxes, scores and labels per image."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network
        self.metric = MeanAveragePrecision(image_key="image_id")

    def validation_step(self, batch: Any, index: int) -> None:
        """Add a batch to the metric."""
        images, targets = batch
        self.metric.update(self.network(images), targets)

    def on_validation_epoch_end(self) -> None:
        """Log the metrics of all processes."""
        values = self.metric.compute()
        scalars = {key: value for key, value in values.items() if key.startswith("ma")}
        self.log_dict({f"val/{key}": value for key, value in scalars.items() if value.ndim == 0})
        self.metric.reset()
