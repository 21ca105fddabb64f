"""The fast reader gives what the careful one gives, bit for bit, or declines."""

import os
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.errors import InputError
from detap.formats import _coco_careful as careful
from detap.formats import coco, prefetch
from detap.formats._json_columns import ResultsScan, TruthScan, class_names
from detap.formats.files import DEFAULT_LIMITS, Stream, read_bytes
from detap.tables import GroundTruth
from tests.formats import fuzz_coco as fuzz
from tests.formats.coco_files import RESULTS, TRUTH, as_bytes, assert_equal_columns

SEEDS = st.integers(0, 2**64)


@given(SEEDS)
def test_both_readers_agree_on_valid_ground_truth(seed: int) -> None:
    chance = random.Random(seed)
    data = fuzz.write_truth(fuzz.Writer(chance)).encode()
    _, columns = fuzz.check_truth(chance, data)
    assert columns is not None


@given(SEEDS)
def test_both_readers_agree_on_valid_results(seed: int) -> None:
    chance = random.Random(seed)
    data = fuzz.write_results(fuzz.Writer(chance)).encode()
    _, columns = fuzz.check_results(chance, data, fuzz.some_truth())
    assert columns is not None


@given(SEEDS)
def test_the_fast_reader_takes_every_plain_file(seed: int) -> None:
    chance = random.Random(seed)
    data = fuzz.write_truth(fuzz.Writer(chance, plain=True)).encode()
    assert fuzz.check_truth(chance, data)[0]
    data = fuzz.write_results(fuzz.Writer(chance, plain=True)).encode()
    assert fuzz.check_results(chance, data, fuzz.some_truth())[0]


def test_no_mutation_is_taken_by_the_fast_reader_alone() -> None:
    count = int(os.environ.get("DETAP_MUTATIONS", "4000"))
    taken = fuzz.run(count, seed=1)
    # The check is worth something only if files of each kind occur.
    assert taken["fast"] > count // 50
    assert taken["valid"] > taken["fast"]
    assert taken["valid"] < count // 2


def test_the_comparison_can_fail() -> None:
    truth = fuzz.some_truth()
    one = careful.read_results(b"[]", "file", DEFAULT_LIMITS, truth)
    record = b'[{"image_id": 0, "category_id": 1, "bbox": [0, 0, 1, %s], "score": 1}]'
    two = careful.read_results(record % b"1", "file", DEFAULT_LIMITS, truth)
    three = careful.read_results(record % b"1.0000000000000002", "file", DEFAULT_LIMITS, truth)
    with pytest.raises(AssertionError):
        assert_equal_columns(one, two)
    with pytest.raises(AssertionError):
        assert_equal_columns(two, three)


def truncations(content: bytes) -> list[bytes]:
    return [content[:length] for length in range(len(content))]


def test_the_fast_reader_takes_no_truncated_file() -> None:
    chance = random.Random(0)
    for data in truncations(as_bytes(TRUTH)):
        assert fuzz.scan(TruthScan, chance, data) is None, data
    for data in truncations(as_bytes(RESULTS)):
        assert fuzz.scan(ResultsScan, chance, data) is None, data


@given(st.lists(st.integers(-(10**18) + 1, 10**18 - 1), unique=True, min_size=1, max_size=40))
def test_ids_of_any_size_are_numbered(ids: list[int]) -> None:
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
def test_two_threads_read_what_one_does(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """The guess at where the second half begins may fall into a nested list, or a string."""
    chance = random.Random(seed)
    data = fuzz.write_results(fuzz.Writer(chance, plain=True)).encode()
    if chance.random() < 0.5:
        data = fuzz.mutated(chance, data)
    path = tmp_path_factory.mktemp("split") / "results.json"
    path.write_bytes(data)
    truth = fuzz.some_truth()
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
    ],
)  # fmt: skip
def test_plain_categories_are_read_as_the_careful_reader_does(
    listed: str, names: dict[int, str | None]
) -> None:
    for read in (class_names, careful.read_categories):
        found = read(listed.encode())
        assert found == names
        assert list(found or {}) == sorted(names)


@pytest.mark.parametrize(
    "category",
    [
        *('{"name": "a"}', '{"id": "1"}', '{"id": 1.0}', '{"id": 1, "name": null}', '{"id": 0}, 5'),
        *('{"id": 1, "name": "\\n"}', '{"id": 0}', '{"id": 1, "id": 1}', '{"\\u0069d": 1}', "[]"),
        '{"id": 1234567890123456789}',
    ],
)
def test_other_categories_are_left_to_the_careful_reader(category: str) -> None:
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


def test_large_files_are_read_by_two_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above the size from which it pays, the way through the public functions is the same."""
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
    assert_equal_columns(fast, careful.read_truth(read_bytes(path), "file", DEFAULT_LIMITS))
    if results_file is None:
        return
    truth = coco.read_ground_truth(path)
    path = real_data / results_file
    found = coco.scanned_detections(prefetch.detections(path).result(), truth)
    assert found is not None
    assert_equal_columns(
        found, careful.read_results(read_bytes(path), "file", DEFAULT_LIMITS, truth)
    )


def test_the_counts_of_real_files(real_data: Path) -> None:
    """The counts that the data's README and its licence files state."""
    truth = coco.read_ground_truth(real_data / "coco-val2014-100/instances_val2014_100.json")
    assert (len(truth), int(truth.crowd.sum()), len(truth.images)) == (839, 9, 100)
    truth = coco.read_ground_truth(real_data / "lvis-val-100/lvis_val_100.json")
    assert (len(truth), len(truth.classes)) == (977, 1230)
    truth = coco.read_ground_truth(real_data / "coco-val2017-boxes/val2017_boxes_coco.json.gz")
    assert (len(truth), len(truth.images), len(truth.classes)) == (36781, 4952, 80)


def test_results_numbered_otherwise_than_the_ground_truth(real_data: Path) -> None:
    truth = coco.read_ground_truth(real_data / "voc-100/gt/coco_v1/instances_default.json")
    with pytest.raises(InputError, match='category 1 is "aeroplane" here, "person" in the ground'):
        coco.read_detections(real_data / "voc-100/dt/coco_dets.json", truth)
