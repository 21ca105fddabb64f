"""Small COCO files that tests modify, and both ways to read them."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap.errors import InputError, Note
from detap.formats.coco import prefetch
from detap.formats.coco import tables as coco
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.tables.detection import Detections, GroundTruth

TRUTH: dict[str, Any] = {
    "images": [
        {"id": 1, "width": 640, "height": 480, "file_name": "a.jpg"},
        {"id": 2, "width": 640, "height": 480, "file_name": "b.jpg"},
        {"id": 3, "width": 640, "height": 480, "file_name": "c.jpg"},
    ],
    "annotations": [
        {
            "id": 11,
            "image_id": 1,
            "category_id": 1,
            "bbox": [10, 20, 30, 40],
            "area": 700.5,
            "iscrowd": 0,
            "segmentation": [[10, 20, 40.5, 20, 40, 60, 10, 60]],
        },
        {
            "id": 12,
            "image_id": 2,
            "category_id": 2,
            "bbox": [100, 100, 50, 50],
            "area": 2500,
            "iscrowd": 0,
            "segmentation": [],
        },
        {
            "id": 13,
            "image_id": 2,
            "category_id": 3,
            "bbox": [200, 100, 60, 70],
            "area": 4000,
            "iscrowd": 1,
            "segmentation": {"counts": [1, 2, 3], "size": [480, 640]},
        },
    ],
    "categories": [
        {"id": 1, "name": "cat"},
        {"id": 2, "name": "dog"},
        {"id": 3, "name": "bird"},
    ],
}

RESULTS: list[dict[str, Any]] = [
    {"image_id": 1, "category_id": 1, "bbox": [10, 20, 30, 40], "score": 0.9},
    {"image_id": 2, "category_id": 2, "bbox": [101, 99, 50, 50], "score": 0.8},
    {"image_id": 2, "category_id": 3, "bbox": [300.5, 100, 20, 30.25], "score": 0.75},
]


def truth(**changes: Any) -> dict[str, Any]:
    """Return the ground truth with some of its parts replaced."""
    return deepcopy(TRUTH) | changes


def with_record(part: str, number: int, *without: str, **changes: Any) -> dict[str, Any]:
    """Return the ground truth with one record changed."""
    document = deepcopy(TRUTH)
    record = document[part][number]
    record.update(changes)
    for key in without:
        del record[key]
    return document


def result(number: int, *without: str, **changes: Any) -> list[dict[str, Any]]:
    """Return the results with one record changed."""
    document = deepcopy(RESULTS)
    document[number].update(changes)
    for key in without:
        del document[number][key]
    return document


def as_bytes(document: Any) -> bytes:
    return document if isinstance(document, bytes) else json.dumps(document).encode()


class Files:
    """Writes a pair of files and reads it, with the fast or only the fallback reader."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, fallback: bool) -> None:
        self.truth_path = folder / "truth.json"
        self.results_path = folder / "results.json"
        self.fallback = fallback
        if fallback:
            monkeypatch.setattr(prefetch.Handle, "result", _nothing)

    def read_truth(self, document: Any, limits: Limits = DEFAULT_LIMITS) -> GroundTruth:
        self.truth_path.write_bytes(as_bytes(document))
        return coco.read_ground_truth(self.truth_path, limits=limits)

    def read_results(
        self, document: Any, truth: Any = TRUTH, limits: Limits = DEFAULT_LIMITS
    ) -> Detections:
        table = self.read_truth(truth)
        self.results_path.write_bytes(as_bytes(document))
        return coco.read_detections(self.results_path, table, limits=limits)

    def truth_error(self, document: Any, limits: Limits = DEFAULT_LIMITS) -> InputError:
        with pytest.raises(InputError) as caught:
            self.read_truth(document, limits)
        return caught.value

    def results_error(
        self, document: Any, truth: Any = TRUTH, limits: Limits = DEFAULT_LIMITS
    ) -> InputError:
        with pytest.raises(InputError) as caught:
            self.read_results(document, truth, limits)
        return caught.value


def _nothing(_: object) -> None:
    return None


def counted(notes: tuple[Note, ...]) -> dict[str, int]:
    return {note.code: note.count for note in notes}


def assert_equal_columns(one: Any, other: Any) -> None:
    """Compare two tables or sets of columns: arrays bit for bit, all else by value."""
    for name in getattr(one, "_fields", None) or one.__dataclass_fields__:
        left, right = getattr(one, name), getattr(other, name)
        if isinstance(left, np.ndarray):
            assert left.dtype == right.dtype, name
            assert left.shape == right.shape, name
            assert left.tobytes() == right.tobytes(), name
        elif name == "listed":
            assert {k: v.tolist() for k, v in left.items()} == {
                k: v.tolist() for k, v in right.items()
            }
        elif name in ("counts", "repeated"):
            assert {k: v for k, v in left.items() if v} == {k: v for k, v in right.items() if v}
        else:
            assert left == right, name
