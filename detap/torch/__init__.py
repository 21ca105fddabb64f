"""detap in the terms of PyTorch's world: ``pip install detap[torch]``.

>>> from detap.torch import MeanAveragePrecision   # as torchmetrics has it

Nothing else of detap imports torch; :class:`detap.Evaluator` takes tensors without it.
"""

from detap.torch.mean_ap import MeanAveragePrecision

__all__ = ["MeanAveragePrecision"]
