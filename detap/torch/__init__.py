"""PyTorch integrations: ``pip install detap[torch]``.

>>> from detap.torch import MeanAveragePrecision   # replaces torchmetrics'
>>> from detap.torch import UltralyticsEvaluator   # uses Ultralytics' callbacks

:class:`detap.Evaluator` accepts tensors without this package.
"""

from detap.torch.mean_ap import MeanAveragePrecision
from detap.torch.ultralytics import UltralyticsEvaluator

__all__ = ["MeanAveragePrecision", "UltralyticsEvaluator"]
