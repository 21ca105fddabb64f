"""The fast reader equals the fallback reader bit for bit, or falls back."""

import gzip
import json
import os
import random
import re
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.errors import InputError
from detap.formats.coco import fallback_reader, prefetch
from detap.formats.coco import tables as coco
from detap.formats.coco._scan import ResultsScan, TruthScan, class_names
from detap.formats.coco.values import size_of
from detap.io.limits import DEFAULT_LIMITS
from detap.io.stream import Stream, read_bytes
from detap.tables.detection import GroundTruth
from tests.depth import sampled
from tests.formats import fuzz_coco as fuzz
from tests.formats.coco_files import RESULTS, TRUTH, as_bytes, assert_equal_columns

SEEDS = st.integers(0, 2**64)


def test_sides_of_images_are_exact_whole_numbers_or_unknown() -> None:
    """From 2^53 on, not every whole number is a float64."""
    assert size_of(2**53 - 1) == 2.0**53 - 1
    assert [repr(size_of(side)) for side in (2**53, 0, True, "9")] == ["nan"] * 4


@given(SEEDS)
def test_both_readers_agree_on_valid_ground_truth(seed: int) -> None:
    chance = random.Random(seed)
    data = fuzz.write_truth(fuzz.Writer(chance)).encode()
    _, columns = fuzz.check_truth(chance, data)
    assert columns is not None


@given(SEEDS)
def test_both_readers_agree_on_valid_results(seed: int) -> None:
    chance = random.Random(seed)
    write = fuzz.Writer(chance)
    data = fuzz.write_results(write).encode()
    _, columns = fuzz.check_results(chance, data, fuzz.some_truth(write.form))
    assert columns is not None


@given(SEEDS)
def test_the_fast_reader_accepts_every_plain_file(seed: int) -> None:
    chance = random.Random(seed)
    data = fuzz.write_truth(fuzz.Writer(chance, plain=True)).encode()
    assert fuzz.check_truth(chance, data)[0]
    write = fuzz.Writer(chance, plain=True)
    data = fuzz.write_results(write).encode()
    assert fuzz.check_results(chance, data, fuzz.some_truth(write.form))[0]


def test_no_mutation_is_accepted_by_the_fast_reader_only() -> None:
    count = int(os.environ.get("DETAP_MUTATIONS", sampled(4000)))
    taken = fuzz.run(count, seed=1)
    # The check is worth something only if files of each kind occur.
    assert taken["fast"] > count // 50
    assert taken["valid"] > taken["fast"]
    assert taken["valid"] < count // 2


def test_the_comparison_can_fail() -> None:
    truth = fuzz.some_truth()
    one = fallback_reader.read_results(b"[]", "file", DEFAULT_LIMITS, truth)
    record = b'[{"image_id": 0, "category_id": 1, "bbox": [0, 0, 1, %s], "score": 1}]'
    two = fallback_reader.read_results(record % b"1", "file", DEFAULT_LIMITS, truth)
    three = fallback_reader.read_results(
        record % b"1.0000000000000002", "file", DEFAULT_LIMITS, truth
    )
    with pytest.raises(AssertionError):
        assert_equal_columns(one, two)
    with pytest.raises(AssertionError):
        assert_equal_columns(two, three)


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
def test_a_long_gap_or_string_is_skipped_in_linear_time(letter: str) -> None:
    """Counted in bytes read again: 10 times the file if each block started anew."""
    for data in results_with(letter * (5 << 20)):
        rest = memoryview(data)

        def read(count: int) -> bytes:
            nonlocal rest
            part, rest = rest[:count], rest[count:]
            return bytes(part)

        scanned = ResultsScan(-1, read, 1 << 40, 1 << 40, 100)
        assert scanned.run()
        assert scanned.count == 1
        assert scanned.repeated < 2 * len(data), data[:40]


def test_an_exception_of_the_reader_is_raised_by_the_scan() -> None:
    """Above all an interrupt while the scan waits for standard input."""

    def read(_: int) -> bytes:
        raise KeyboardInterrupt

    for scanner in (ResultsScan, TruthScan):
        with pytest.raises(KeyboardInterrupt):
            scanner(-1, read, 1 << 40, 1 << 40, 100).run()


IDS: dict[str, Any] = {
    "whole": float,
    "large": lambda n: 2**60 + n,
    "largest": lambda n: 2**63 - 5 + n,
    "string": lambda n: f"{n:012}.jpg",
    "escaped": lambda n: f"a\\\u00e9/{n}",
}


@pytest.mark.parametrize("form", IDS)
def test_ids_that_real_tools_write_stay_on_the_fast_path(form: str) -> None:
    spell = IDS[form]
    document = deepcopy(TRUTH)
    records = deepcopy(RESULTS)
    for name in ("images", "categories"):
        for record in document[name]:
            record["id"] = spell(record["id"])
    for record in [*document["annotations"], *records]:
        record["image_id"] = spell(record["image_id"])
        record["category_id"] = spell(record["category_id"])
    for number, record in enumerate(document["annotations"]):
        record["id"] = float(number) if form == "whole" else f"annotation {number}"
    chance = random.Random(1)
    fast, slow = fuzz.check_truth(chance, as_bytes(document))
    assert fast
    assert slow is not None
    assert slow.image_ids == tuple(spell(n) for n in (1, 2, 3))
    truth = GroundTruth.from_arrays(
        image=[spell(1)],
        label=[spell(1)],
        boxes=[[0, 0, 1, 1]],
        images=[spell(n) for n in (1, 2, 3)],
        classes=[spell(n) for n in (1, 2, 3)],
    )
    if form == "whole":
        truth = fuzz_truth_of([1, 2, 3])
    fast, _ = fuzz.check_results(chance, as_bytes(records), truth)
    assert fast
    listed = {"info": {"a": [1]}, "images": document["images"], "annotations": records}
    fast, detections = fuzz.check_results(chance, as_bytes(listed), truth)
    assert fast
    assert detections is not None
    if form != "whole":  # whole floats name no files: neither reader looks them up
        assert list(detections.file_names.values()) == ["a.jpg", "b.jpg", "c.jpg"]


def fuzz_truth_of(ids: list[int]) -> GroundTruth:
    return GroundTruth.from_arrays(
        image=[1], label=[1], boxes=[[0, 0, 1, 1]], images=ids, classes=ids
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"image_id": "1"}, 'image_id "1" is not in the ground truth (ids are numbers)'),
        ({"category_id": "1"}, 'category_id is "1", expected a number'),
        ({"image_id": 1.5}, "image_id is 1.5"),
        ({"image_id": 2.0**53}, "image_id is 9007199254740992.0"),
        ({"image_id": 2**63}, "image_id 9223372036854775808 is not in the ground truth"),
        ({"image_id": "\ud800"}, "image_id has an unpaired surrogate"),
    ],
)
def test_other_ids_go_to_the_fallback_reader(changes: dict[str, Any], says: str) -> None:
    records = [*deepcopy(RESULTS), RESULTS[0] | changes]
    truth = fuzz_truth_of([1, 2, 3])
    scanned = fuzz.scan(ResultsScan, random.Random(1), as_bytes(records))
    assert coco.scanned_detections(scanned, truth) is None
    with pytest.raises(InputError, match=re.escape(says)):
        fallback_reader.read_results(as_bytes(records), "file", DEFAULT_LIMITS, truth)


@pytest.mark.parametrize("mixed", ["images", "annotations", "twice"])
def test_ground_truth_with_mixed_or_repeated_ids(mixed: str) -> None:
    document = deepcopy(TRUTH)
    for record in document["images"]:
        record["id"] = str(record["id"])
    for record in document["annotations"]:
        record["image_id"] = str(record["image_id"])
    assert fuzz.check_truth(random.Random(1), as_bytes(document))[0]
    if mixed == "images":
        document["images"][2]["id"] = 3
    elif mixed == "annotations":
        document["annotations"][0]["image_id"] = 1
    else:
        document["images"][2]["id"] = "1"
    assert fuzz.check_truth(random.Random(1), as_bytes(document)) == (False, None)


def truncations(content: bytes) -> list[bytes]:
    return [content[:length] for length in range(len(content))]


def test_the_fast_reader_accepts_no_truncated_file() -> None:
    chance = random.Random(0)
    for data in truncations(as_bytes(TRUTH)):
        assert fuzz.scan(TruthScan, chance, data) is None, data
    for data in truncations(as_bytes(RESULTS)):
        assert fuzz.scan(ResultsScan, chance, data) is None, data


@given(st.lists(st.integers(-(10**18) + 1, 10**18 - 1), unique=True, min_size=1, max_size=40))
def test_ids_of_any_size_are_indexed(ids: list[int]) -> None:
    truth = GroundTruth.from_arrays(
        image=ids[:1], label=[1], boxes=[[0, 0, 1, 1]], images=sorted(ids), classes=[1]
    )
    records = [{"image_id": n, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 1} for n in ids]
    scan = fuzz.scan(ResultsScan, random.Random(1), as_bytes(records))
    columns = coco.scanned_detections(scan, truth)
    assert columns is not None
    assert [truth.images[number] for number in columns.image] == ids
    records[-1]["image_id"] = max(ids) + 1
    scan = fuzz.scan(ResultsScan, random.Random(1), as_bytes(records))
    assert coco.scanned_detections(scan, truth) is None


@given(SEEDS)
def test_two_threads_read_the_same_as_one(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """The guessed start of the second half may be inside a nested list or a string."""
    chance = random.Random(seed)
    write = fuzz.Writer(chance, plain=True)
    data = fuzz.write_results(write).encode()
    if chance.random() < 0.5:
        data = fuzz.mutated(chance, data)
    path = tmp_path_factory.mktemp("split") / "results.json"
    path.write_bytes(data)
    truth = fuzz.some_truth(write.form)
    whole = coco.scanned_detections(fuzz.scan(ResultsScan, chance, data), truth)
    with Stream(path) as stream:
        start = prefetch._middle(stream)
        scan = prefetch.new_scan(ResultsScan, stream)
        regular = prefetch._run_split(scan, stream, start) if start else scan.run()
    split = coco.scanned_detections(scan if regular else None, truth)
    assert (split is None) == (whole is None), data
    if split is not None:
        assert_equal_columns(split, whole)


@pytest.mark.parametrize(
    ("listed", "names"),
    [
        ("[]", {}),
        ('[{"id": 3, "name": "b"}, {"name": "a", "id": -1, "x": [{"id": 5}]}]', {-1: "a", 3: "b"}),
        ('[ {"id":1} , {"x":"y","id":2,"name":"\u00e9"} ]', {1: None, 2: "\u00e9"}),
        ('[{"id": 1, "name": ""}]', {1: ""}),
        ('[{"id": 1.0}, {"id": 1234567890123456789}]', {1: None, 1234567890123456789: None}),
    ],
)  # fmt: skip
def test_plain_categories_are_read_as_by_the_fallback_reader(
    listed: str, names: dict[int, str | None]
) -> None:
    for read in (class_names, fallback_reader.read_categories):
        detections = read(listed.encode())
        assert detections == names
        assert list(detections or {}) == sorted(names)


@pytest.mark.parametrize(
    "category",
    [
        *('{"name": "a"}', '{"id": "1"}', '{"id": 1.5}', '{"id": 1, "name": null}', '{"id": 0}, 5'),
        *('{"id": 1, "name": "\\n"}', '{"id": 0}', '{"id": 1, "id": 1}', '{"\\u0069d": 1}', "[]"),
        '{"id": 12345678901234567890}',
    ],
)
def test_other_categories_go_to_the_fallback_reader(category: str) -> None:
    assert class_names(f'[{{"id": 0}}, {category}]'.encode()) is None


def split_scan(path: Path) -> ResultsScan:
    with Stream(path) as stream:
        scan = prefetch.new_scan(ResultsScan, stream)
        assert prefetch._run_split(scan, stream, prefetch._middle(stream))
    return scan


RECORD = '{"image_id": 1, "category_id": 2, "bbox": [1, 2, 3, 4], "score": 0.5%s}'


@pytest.mark.parametrize("extra", ["", ', "x": "}, {"', ', "x": [{}, {}]', ', "x": [{"a": 1}, {}]'])
def test_a_large_file_is_split(tmp_path: Path, extra: str) -> None:
    path = tmp_path / "results.json"
    records = ",\n".join(RECORD % extra for _ in range(20_001))
    path.write_text(f"[{records}]")
    assert split_scan(path).count == 20_001


def test_a_file_without_records_in_its_middle_is_not_split(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(f"[{RECORD % ''}{' ' * 100_000}]")
    with Stream(path) as stream:
        assert prefetch._middle(stream) == 0


def test_the_fraction_of_a_file_that_is_read(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(f"[{RECORD % ''}]")
    handle = prefetch.detections(path)
    assert handle.result() is not None
    assert handle.fraction() == 1.0
    for count, size, fraction in ((0, 8, 0.0), (2, 8, 0.25), (9, 8, 1.0), (5, 0, 0.0)):
        running: Any = SimpleNamespace(given=count), size
        handle._scan, handle._running = None, running
        assert handle.fraction() == fraction
    handle._running = None
    assert handle.fraction() == 0.0


def test_no_thread_is_started_if_memory_is_tight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor are the blocks of a file kept, which can be read again."""
    monkeypatch.setattr(prefetch, "memory_is_tight", lambda: True)
    path = tmp_path / "results.json.gz"
    path.write_bytes(gzip.compress(f"[{RECORD % ''}]".encode()))
    handle = prefetch.detections(path)
    assert handle._thread is None
    scan = handle.result()
    assert scan is not None
    assert scan.count == 1
    assert handle._blocks == []


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


def test_large_files_are_read_by_two_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above the size from which threads pay off, through the public functions."""
    monkeypatch.setattr(prefetch, "SPLIT_FROM", 1000)
    monkeypatch.setattr(prefetch, "SPLIT_CORES", 1)
    path = tmp_path / "truth.json"
    path.write_bytes(as_bytes(TRUTH))
    truth = coco.read_ground_truth(path)
    path = tmp_path / "results.json"
    for last in ("", ', "x": "\\u0041"'):
        path.write_text(f"[{','.join([RECORD % ''] * 300 + [RECORD % last])}]")
        table = coco.read_detections(path, truth)
        assert len(table) == 301
        assert set(table.label.tolist()) == {1}
        assert table.score.tolist() == [0.5] * 301


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
def test_both_readers_agree_on_real_files(
    real_data: Path, truth_file: str, results_file: str | None
) -> None:
    path = real_data / truth_file
    fast = coco.scanned_truth(prefetch.ground_truth(path).result())
    assert fast is not None
    assert_equal_columns(fast, fallback_reader.read_truth(read_bytes(path), "file", DEFAULT_LIMITS))
    if results_file is None:
        return
    truth = coco.read_ground_truth(path)
    path = real_data / results_file
    detections = coco.scanned_detections(prefetch.detections(path).result(), truth)
    assert detections is not None
    assert_equal_columns(
        detections, fallback_reader.read_results(read_bytes(path), "file", DEFAULT_LIMITS, truth)
    )


def test_the_counts_of_real_files(real_data: Path) -> None:
    """The counts that the data's README and license files state."""
    truth = coco.read_ground_truth(real_data / "coco-val2014-100/instances_val2014_100.json")
    assert (len(truth), int(truth.crowd.sum()), len(truth.images)) == (839, 9, 100)
    truth = coco.read_ground_truth(real_data / "lvis-val-100/lvis_val_100.json")
    assert (len(truth), len(truth.classes)) == (977, 1230)
    truth = coco.read_ground_truth(real_data / "coco-val2017-boxes/val2017_boxes_coco.json.gz")
    assert (len(truth), len(truth.images), len(truth.classes)) == (36781, 4952, 80)
