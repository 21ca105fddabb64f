"""Errors for arguments that should be tables or paths."""

import os
from collections.abc import Sequence
from typing import NoReturn

from detap.errors import UsageError
from detap.tables.detection import Detections, GroundTruth


def check_table(
    value: object, kind: type[GroundTruth] | type[Detections], *, or_path: bool = False
) -> None:
    """Raise UsageError if an argument is not a table."""
    if isinstance(value, kind):
        return
    call = (
        "read_ground_truth(path)" if kind is GroundTruth else "read_detections(path, ground_truth)"
    )
    hint = f"read it with detap.{call} or build it with detap.{kind.__name__}.from_arrays"
    if isinstance(value, GroundTruth | Detections):
        hint = "pass the ground truth first, then the detections"
    expected = f"{kind.__name__} or a path" if or_path else kind.__name__
    raise UsageError(f"expected {expected}, got {type(value).__name__}; {hint}")


def refuse_path(value: object) -> NoReturn:
    """Raise UsageError for an argument that is not a path."""
    hint = "pass text, a pathlib.Path or a list of them"
    raise UsageError(f"expected a path, got {type(value).__name__}; {hint}")


def is_path(value: object) -> bool:
    """Return True for a path, or a sequence of paths that is not empty."""
    if isinstance(value, str | os.PathLike):
        return True
    return isinstance(value, Sequence) and bool(value) and all(map(is_path, value))
