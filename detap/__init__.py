"""Evaluate object detectors and gate regressions.

>>> import detap
>>> result = detap.evaluate("instances.json", "results.json")
>>> print(result)
>>> result.summary["AP50"]

The names below are the public API, imported on first use to keep ``import detap`` fast.
"""

from detap._version import __version__

TYPE_CHECKING = False  # importing typing takes half of a command's start-up time

if TYPE_CHECKING:
    from typing import Any

    from detap.analysis.detectors import compare
    from detap.core.match_table import MatchTable
    from detap.errors import DetapError, DetapWarning, InputError, Note, UsageError
    from detap.evaluation.detection import Result, evaluate
    from detap.evaluation.loop.evaluator import Evaluator
    from detap.evaluation.results import Matches
    from detap.evaluation.selection import select
    from detap.formats import read_detections, read_ground_truth
    from detap.formats.convert import convert
    from detap.protocols import PRESETS, Protocol, protocol
    from detap.tables.detection import Detections, GroundTruth

__all__ = [
    "PRESETS",
    "DetapError",
    "DetapWarning",
    "Detections",
    "Evaluator",
    "GroundTruth",
    "InputError",
    "MatchTable",
    "Matches",
    "Note",
    "Protocol",
    "Result",
    "UsageError",
    "__version__",
    "compare",
    "convert",
    "evaluate",
    "protocol",
    "read_detections",
    "read_ground_truth",
    "select",
]

_HOME = {
    "detap.analysis.detectors": ("compare",),
    "detap.core.match_table": ("MatchTable",),
    "detap.evaluation.detection": ("Result", "evaluate"),
    "detap.evaluation.loop.evaluator": ("Evaluator",),
    "detap.evaluation.results": ("Matches",),
    "detap.evaluation.selection": ("select",),
    "detap.errors": ("DetapError", "DetapWarning", "InputError", "Note", "UsageError"),
    "detap.formats.convert": ("convert",),
    "detap.formats": ("read_detections", "read_ground_truth"),
    "detap.protocols": ("PRESETS", "Protocol", "protocol"),
    "detap.tables.detection": ("Detections", "GroundTruth"),
}


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    for module, names in _HOME.items():
        if name in names:
            return getattr(import_module(module), name)
    if name == "torch":  # requires PyTorch
        return import_module("detap.torch")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
