"""Small COCO files that tests modify, and both ways to read their records."""

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from detap.errors import InputError
from detap.formats.coco import format as coco
from detap.formats.coco import results
from detap.formats.coco import truth as instances
from detap.formats.coco.columns import TruthColumns
from detap.formats.json._fields import Fields, Reader
from detap.formats.json.document import Document
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.tables.detection import Detections, GroundTruth
from tests.coco import truth_of
from tests.raised import raised

TRUTH = truth_of(
    [(1, 1, [10, 20, 30, 40]), (2, 2, [100, 100, 50, 50]), (2, 3, [200, 100, 60, 70])],
    {1: "cat", 2: "dog", 3: "bird"},
    {1: "a.jpg", 2: "b.jpg", 3: "c.jpg"},
)
_CHANGES: tuple[dict[str, Any], ...] = (
    {"id": 11, "area": 700.5, "segmentation": [[10, 20, 40.5, 20, 40, 60, 10, 60]]},
    {"id": 12, "segmentation": []},
    {"id": 13, "area": 4000, "iscrowd": 1}
    | {"segmentation": {"counts": [1, 2, 3], "size": [480, 640]}},
)
for _annotation, _values in zip(TRUTH["annotations"], _CHANGES, strict=True):
    _annotation |= _values

RESULTS: list[dict[str, Any]] = [
    {"image_id": 1, "category_id": 1, "bbox": [10, 20, 30, 40], "score": 0.9},
    {"image_id": 2, "category_id": 2, "bbox": [101, 99, 50, 50], "score": 0.8},
    {"image_id": 2, "category_id": 3, "bbox": [300.5, 100, 20, 30.25], "score": 0.75},
]


def truth(**changes: Any) -> dict[str, Any]:
    return deepcopy(TRUTH) | changes


def with_record(part: str, number: int, *without: str, **changes: Any) -> dict[str, Any]:
    document = deepcopy(TRUTH)
    record = document[part][number]
    record.update(changes)
    for key in without:
        del record[key]
    return document


def result(number: int, *without: str, **changes: Any) -> list[dict[str, Any]]:
    document = deepcopy(RESULTS)
    document[number].update(changes)
    for key in without:
        del document[number][key]
    return document


def as_bytes(document: Any) -> bytes:
    return document if isinstance(document, bytes) else json.dumps(document).encode()


class Files:
    """Writes a pair of files and reads it."""

    def __init__(self, folder: Path) -> None:
        self.truth_path = folder / "truth.json"
        self.results_path = folder / "results.json"

    def read_truth(self, document: Any, limits: Limits = DEFAULT_LIMITS) -> GroundTruth:
        self.truth_path.write_bytes(as_bytes(document))
        table = coco.read_ground_truth(self.truth_path, limits=limits)
        return replace(table, format="coco")

    def read_results(
        self, document: Any, truth: Any = TRUTH, limits: Limits = DEFAULT_LIMITS
    ) -> Detections:
        table = self.read_truth(truth)
        self.results_path.write_bytes(as_bytes(document))
        return coco.read_detections(self.results_path, table, limits=limits)

    def truth_error(self, document: Any, limits: Limits = DEFAULT_LIMITS) -> InputError:
        return raised(InputError, self.read_truth, document, limits)

    def results_error(
        self, document: Any, truth: Any = TRUTH, limits: Limits = DEFAULT_LIMITS
    ) -> InputError:
        return raised(InputError, self.read_results, document, truth, limits)


def odd_fields(*arguments: Any, **options: Any) -> Fields:
    """Return columns that take every record from Python, which parses it by `json.loads`."""
    fields = Fields(*arguments, **options)
    fields.each = True
    return fields


def feeder(data: bytes, block: int) -> Callable[[int], bytes]:
    """Return a reader that returns at most so many bytes at a time."""
    rest = memoryview(data)

    def read_block(count: int) -> bytes:
        nonlocal rest
        part, rest = rest[: min(count, block)], rest[min(count, block) :]
        return bytes(part)

    return read_block


def document_of(
    data: bytes, limits: Limits = DEFAULT_LIMITS, feed: Callable[[int], bytes] | None = None
) -> Document:
    reader = Reader(feed or feeder(data, 1 << 20), limits.file_bytes, limits.nesting)
    return Document(reader, lambda: data, "file", limits)


def truth_columns(
    data: bytes,
    *,
    one_by_one: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    feed: Callable[[int], bytes] | None = None,
    **options: Any,
) -> TruthColumns:
    """Read ground truth, each record by `json.loads` if `one_by_one`."""
    file = instances.TruthFile(**options)
    for fields in file.fields:
        fields.each |= one_by_one
    file.read(document_of(data, limits, feed))
    return file.columns()


def result_columns(
    data: bytes,
    truth: GroundTruth,
    *,
    one_by_one: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    feed: Callable[[int], bytes] | None = None,
    **options: Any,
) -> Detections:
    """Read results, each record by `json.loads` if `one_by_one`."""
    file = results.ResultsFile(**options)
    for fields in file.fields:
        fields.each |= one_by_one
    file.read(document_of(data, limits, feed))
    return file.columns(truth)


def agreed(reading: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Read both ways; return the columns, or None if both raise the same error."""
    outcomes: list[Any] = []
    for one_by_one in (False, True):
        try:
            outcomes.append(reading(*arguments, one_by_one=one_by_one, **options))
        except InputError as error:
            outcomes.append(str(error))
        options.pop("feed", None)
    one, other = outcomes
    assert type(one) is type(other), (arguments, outcomes)
    if isinstance(one, str):
        assert one == other, (outcomes, arguments)
        return None
    assert_equal_columns(one, other)
    return one


def assert_equal_columns(one: Any, other: Any) -> None:
    """Compare two tables or sets of columns: arrays bit for bit, all else by value."""
    for name in getattr(one, "_fields", None) or one.__dataclass_fields__:
        left, right = getattr(one, name), getattr(other, name)
        if isinstance(left, np.ndarray):
            assert left.dtype == right.dtype, name
            assert left.shape == right.shape, name
            assert left.tobytes() == right.tobytes(), name
        elif name in ("listed", "extra") and isinstance(left, dict):
            assert {k: v.tolist() for k, v in left.items()} == {
                k: v.tolist() for k, v in right.items()
            }
        elif name in ("table", "masks") and left is not None:
            assert_equal_columns(left, right)
        elif name in ("counts", "repeated"):
            assert {k: v for k, v in left.items() if v} == {k: v for k, v in right.items() if v}
        else:
            assert left == right, name


def result_file(folder: Path, *rows: dict[str, Any]) -> Path:
    """Write results of image 1 and class 1 with the values of the rows."""
    path = folder / "dt.json"
    common = {"image_id": 1, "category_id": 1, "score": 0.5}
    path.write_text(json.dumps([common | row for row in rows]))
    return path
