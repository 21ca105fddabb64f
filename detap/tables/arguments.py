"""Errors for arguments that should be tables or paths."""

import os
from collections.abc import Mapping, Sequence
from typing import NoReturn

from detap.errors import UsageError
from detap.tables.detection import Detections, GroundTruth


def check_table(
    value: object, kind: type[GroundTruth] | type[Detections], *, or_path: bool = False
) -> None:
    """Raise UsageError if an argument is not a table; the hint depends on what it is."""
    if isinstance(value, kind):
        return
    expected = f"{kind.__name__} or a path" if or_path else kind.__name__
    raise UsageError(f"expected {expected}, got {_described(value)}; {_hint(value, kind)}")


def refuse_path(value: object) -> NoReturn:
    """Raise UsageError for an argument that is not a path."""
    if isinstance(value, GroundTruth | Detections):
        hint = "the path comes first"
    elif _is_records(value) or _is_coco(value):
        hint = "pass the path of the JSON file"
    else:
        hint = "pass text, a pathlib.Path or a list of them"
    raise UsageError(f"expected a path, got {_described(value)}; {hint}")


def is_path(value: object) -> bool:
    """Return True for a path, or a sequence of paths that is not empty."""
    if isinstance(value, str | os.PathLike):
        return True
    return isinstance(value, Sequence) and bool(value) and all(map(is_path, value))


def _described(value: object) -> str:
    shape = getattr(value, "shape", None)
    name = type(value).__name__
    return f"{name} of shape {tuple(shape)}" if isinstance(shape, Sequence) else name


def _hint(value: object, kind: type[GroundTruth] | type[Detections]) -> str:
    is_truth = kind is GroundTruth
    read = "read_ground_truth(path)" if is_truth else "read_detections(path, ground_truth)"
    build = f"detap.{kind.__name__}.from_arrays"
    if isinstance(value, GroundTruth | Detections):
        return "pass the ground truth first, then the detections"
    if is_path(value):
        return f"read it with detap.{read}"
    if _is_coco(value):
        return (
            "pass the path of its JSON file, or evaluate COCO objects with "
            "detap.compat.pycocotools.COCOeval"
        )
    if _is_records(value):
        return f"read the JSON file with detap.{read}"
    if type(value).__name__ == "DataFrame":
        score = "" if is_truth else ', score=df["score"]'
        return (
            f'build it with {build}(image=df["image"], label=df["label"], '
            f'boxes=df[["x1", "y1", "x2", "y2"]]{score})'
        )
    return f"read it with detap.{read} or build it with {build}"


def _is_coco(value: object) -> bool:
    return hasattr(value, "getAnnIds")


def _is_records(value: object) -> bool:
    """Return True for content of a JSON file of COCO."""
    if isinstance(value, list):
        return bool(value) and isinstance(value[0], Mapping)
    return isinstance(value, Mapping)
