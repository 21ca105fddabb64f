"""PyTorch integrations: ``pip install detap[torch]``.

>>> from detap.torch import MeanAveragePrecision   # as torchmetrics has it
>>> from detap.torch import UltralyticsEvaluator   # by Ultralytics' callbacks

Nothing else of detap imports torch; :class:`detap.Evaluator` takes tensors without it.
"""

from detap.torch.mean_ap import MeanAveragePrecision
from detap.torch.ultralytics import UltralyticsEvaluator

__all__ = ["MeanAveragePrecision", "UltralyticsEvaluator"]
