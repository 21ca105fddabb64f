"""Files equal their records one by one, read by `json.loads`: to the bit, or the same error."""

import gc
import json
import weakref
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.errors import InputError
from detap.formats.coco import format as coco
from detap.formats.coco.results import ResultsFile
from detap.io.stream import read_bytes
from detap.tables.detection import GroundTruth
from tests.formats.coco_files import (
    RESULTS,
    TRUTH,
    agreed,
    as_bytes,
    result_columns,
    truth_columns,
)


def some_truth() -> GroundTruth:
    return GroundTruth.from_arrays(
        image=[0], label=[1], boxes=[[0, 0, 1, 1]], images=[0, 1], classes=[1]
    )


def results_with(long: str) -> list[bytes]:
    """Return valid results with one long gap or string at each kind of position."""
    record = '{"image_id": 0, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 1%s}'
    plain = record % ""
    value = f"{long} 7" if long.isspace() else f'"{long}"'
    gap = long if long.isspace() else ""
    extra = f', "x": {value}'
    texts = [
        f"[{gap}{record % extra}{gap}]",
        f'{{{gap}"x": {value}, "annotations": [{plain}]}}',
        f'{{"x": [{value}{gap}], "annotations": [{plain}]}}',
    ]
    return [text.encode() for text in texts]


@pytest.mark.parametrize("letter", [" ", "\n", "a", "\u00e9"])
def test_a_long_gap_or_string_is_read_in_blocks(letter: str) -> None:
    """A block that ends within it is continued, in the file and in a record."""
    truth = some_truth()
    for data in results_with(letter * (5 << 20)):
        assert len(result_columns(data, truth).score) == 1


def test_an_exception_of_the_reader_is_raised() -> None:
    """Above all an interrupt while the scan waits for standard input."""

    def read(_: int) -> bytes:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        result_columns(b"[]", some_truth(), feed=read)
    with pytest.raises(KeyboardInterrupt):
        truth_columns(b"{}", feed=read)


@given(st.lists(st.integers(-(10**18) + 1, 10**18 - 1), unique=True, min_size=1, max_size=40))
def test_ids_of_any_size_are_indexed(ids: list[int]) -> None:
    truth = GroundTruth.from_arrays(
        image=ids[:1], label=[1], boxes=[[0, 0, 1, 1]], images=sorted(ids), classes=[1]
    )
    records = [{"image_id": n, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 1} for n in ids]
    columns = result_columns(as_bytes(records), truth)
    assert [truth.images[number] for number in columns.image] == ids
    records[-1]["image_id"] = max(ids) + 1
    with pytest.raises(InputError, match=r"ground truth"):
        result_columns(as_bytes(records), truth)


def test_the_columns_of_results_are_freed_without_the_garbage_collector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Else many detectors that are read one after the other need the memory of several.
    path = tmp_path / "results.json"
    path.write_bytes(as_bytes(RESULTS))
    (tmp_path / "truth.json").write_bytes(as_bytes(TRUTH))
    truth = coco.read_ground_truth(tmp_path / "truth.json")
    read: list[weakref.ref[ResultsFile]] = []

    class Watched(ResultsFile):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            read.append(weakref.ref(self))

    monkeypatch.setattr(coco, "ResultsFile", Watched)
    gc.collect()
    gc.disable()
    try:
        assert len(coco.read_detections(path, truth)) == len(RESULTS)
        assert [reference() for reference in read] == [None]
    finally:
        gc.enable()


def test_the_box_format_holds_for_results_of_which_some_have_no_box(tmp_path: Path) -> None:
    document = json.loads(as_bytes(TRUTH))
    path = tmp_path / "truth.json"
    path.write_bytes(as_bytes(document))
    truth = coco.read_ground_truth(path)
    common = {"image_id": 1, "category_id": 1, "score": 0.5}
    square = [[2, 2, 6, 2, 6, 6, 2, 6]]
    records = [{**common, "bbox": [10, 20, 40, 60]}, {**common, "segmentation": square}]
    path = tmp_path / "results.json"
    path.write_bytes(as_bytes(records))
    table = coco.read_detections(path, truth, boxes="xyxy")
    assert table.corners.tolist() == [[10, 20, 40, 60], [2, 2, 6, 6]]


REAL = (
    ("coco-val2014-100/instances_val2014_100.json",
     "coco-val2014-100/instances_val2014_fakebbox100_results.json"),
    ("voc-100/gt/coco_v1/instances_default.json", "voc-100/dt/coco_aligned_to_gt_v1.json"),
    ("voc-100/gt/coco_v2/instances_v2.json", None),
    ("cartucho-85/groundtruths_coco.json", "cartucho-85/detections_coco.json"),
    ("lvis-val-100/lvis_val_100.json", None),
    ("coco-val2017-boxes/val2017_boxes_coco.json.gz", None),
)  # fmt: skip


@pytest.mark.parametrize(("truth_file", "results_file"), REAL)
def test_real_files_are_their_records_one_by_one(
    real_data: Path, truth_file: str, results_file: str | None
) -> None:
    path = real_data / truth_file
    assert agreed(truth_columns, read_bytes(path)) is not None
    if results_file is not None:
        truth = coco.read_ground_truth(path)
        assert agreed(result_columns, read_bytes(real_data / results_file), truth) is not None
