"""torchvision and torchmetrics, even if torchvision's compiled operators do not fit PyTorch.

The torchvision wheel may be built for CUDA only. With a PyTorch without CUDA its operators cannot
be loaded, and importing it fails because their names are unknown. The tests need only its Python
code and one operator, ``nms``: the names are defined here, and ``nms`` is implemented here.
"""

import importlib.util
import re
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

_KEPT: list[Any] = []
"""Operator libraries; they are unregistered when the object is deleted."""


def torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is absent: it is the extra detap[torch]")


def torchvision() -> ModuleType:
    """Import torchvision, or skip the test."""
    torch()
    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None:
        pytest.skip("torchvision is absent")
    try:
        return importlib.import_module("torchvision")
    except RuntimeError as error:
        if "operator torchvision::" not in str(error):
            raise
    _name_operators(Path(spec.origin).parent)
    module = importlib.import_module("torchvision")
    extension = importlib.import_module("torchvision.extension")
    extension._has_ops = lambda: True  # type: ignore[attr-defined]
    return module


def torchmetrics_map() -> Any:
    """Return torchmetrics' MeanAveragePrecision, or skip the test."""
    torchvision()
    pytest.importorskip("torchmetrics", reason="torchmetrics is absent")
    pytest.importorskip("pycocotools", reason="pycocotools is absent")
    if int(version("torchmetrics").partition(".")[0]) != 1:
        pytest.skip("torchmetrics 1 is what is compared with")
    return importlib.import_module("torchmetrics.detection").MeanAveragePrecision


def _name_operators(package: Path) -> None:
    names = set(
        re.findall(r"torchvision::(\w+)", (package / "_meta_registrations.py").read_text("utf-8"))
    )
    library = torch().library.Library("torchvision", "DEF")
    for name in sorted(names - {"nms"}):
        library.define(f"{name}(Tensor x) -> Tensor")
    library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.impl("nms", _nms, "CPU")
    _KEPT.append(library)


def _nms(boxes: Any, scores: Any, threshold: float) -> Any:
    """Return the rows that no kept box of a higher score overlaps by more than the threshold."""
    box_iou = importlib.import_module("torchvision.ops").box_iou
    left, kept = scores.argsort(descending=True), []
    while len(left):
        kept.append(int(left[0]))
        left = left[box_iou(boxes[left[:1]], boxes[left])[0] <= threshold]
    return torch().tensor(kept, dtype=torch().int64)
