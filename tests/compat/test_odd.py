"""What is odd about files: the same numbers as pycocotools', or the same error."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from detap.compat.pycocotools import results as own_results
from detap.formats.coco._scan import ResultsScan
from detap.formats.coco.prefetch import run_split
from tests.compat.made import Made, made
from tests.compat.patterns import PATTERNS, Case, Package, Seen, loaded, run, seen_of, shown_by
from tests.compat.test_patterns import compare

Truth = dict[str, Any]
Results = list[dict[str, Any]]


def each(place: int, key: str, value: Any) -> Callable[[Truth, Results], None]:
    """Return an edit that sets a key of every third annotation (0) or result (1)."""

    def edit(truth: Truth, results: Results) -> None:
        for record in (truth["annotations"], results)[place][::3]:
            record[key] = copy.deepcopy(value)

    return edit


def without(place: int, key: str) -> Callable[[Truth, Results], None]:
    def edit(truth: Truth, results: Results) -> None:
        del (truth["annotations"], results)[place][4][key]

    return edit


def renamed(kind: Callable[[Any], Any], *keys: str) -> Callable[[Truth, Results], None]:
    """Return an edit that changes the kind of ids everywhere."""

    def edit(truth: Truth, results: Results) -> None:
        parts = {"image_id": "images", "category_id": "categories"}
        for key in keys:
            for record in (*truth["annotations"], *results):
                record[key] = kind(record[key])
            for record in truth[parts[key]]:
                record["id"] = kind(record["id"])

    return edit


def whole_scores(truth: Truth, results: Results) -> None:
    for number, record in enumerate(results):
        record["score"] = number % 3


def large_scores(truth: Truth, results: Results) -> None:
    for number, record in enumerate(results):
        record["score"] = 2**60 + number % 4


def text_ids(truth: Truth, results: Results) -> None:
    for record in truth["annotations"]:
        record["id"] = f"a{record['id']}"


def equal_ids(truth: Truth, results: Results) -> None:
    for record in truth["annotations"][::4]:
        record["id"] = 7


def negative_ids(truth: Truth, results: Results) -> None:
    for record in truth["annotations"]:
        record["id"] = -record["id"]


def ids_far_apart(truth: Truth, results: Results) -> None:
    renamed(lambda name: name * 10**12, "image_id", "category_id")(truth, results)


def ids_beyond_64_bits(truth: Truth, results: Results) -> None:
    renamed(lambda name: name * 10**20, "image_id", "category_id")(truth, results)


def no_results(truth: Truth, results: Results) -> None:
    results.clear()


def own_fields(truth: Truth, results: Results) -> None:
    for number, record in enumerate(results):
        record |= {"id": 1000 - number, "area": 5, "iscrowd": 1, "segmentation": [[0, 0, 1, 1]]}


EDITS = {
    "whole scores": whole_scores,
    "scores beyond float64": large_scores,
    "a score of NaN": each(1, "score", float("nan")),
    "a score in text": each(1, "score", "0.5"),
    "no score": without(1, "score"),
    "no category": without(1, "category_id"),
    "no results": no_results,
    "own fields of results": own_fields,
    "an unknown category": each(1, "category_id", 4711),
    "an unknown image": each(1, "image_id", 4711),
    "whole boxes": each(1, "bbox", [1, 2, 30, 40]),
    "boxes that end before they begin": each(1, "bbox", [40.0, 40.0, -20.0, -20.0]),
    "one negative side": each(0, "bbox", [40.0, 40.0, -20.0, 20.0]),
    "no area": each(0, "bbox", [10.0, 10.0, 0.0, 20.0]),
    "boxes of NaN": each(1, "bbox", [1.0, 2.0, float("nan"), 4.0]),
    "boxes without end": each(0, "bbox", [1.0, 2.0, float("inf"), 4.0]),
    "boxes of five numbers": each(1, "bbox", [1.0, 2.0, 3.0, 4.0, 5.0]),
    "boxes of three numbers": each(0, "bbox", [1.0, 2.0, 3.0]),
    "text annotation ids": text_ids,
    "equal annotation ids": equal_ids,
    "negative annotation ids": negative_ids,
    "no annotation id": without(0, "id"),
    "no annotated area": without(0, "area"),
    "an infinite area": each(0, "area", float("inf")),
    "no iscrowd": without(0, "iscrowd"),
    "iscrowd true": each(0, "iscrowd", True),
    "iscrowd of a half": each(0, "iscrowd", 0.5),
    "iscrowd of two": each(0, "iscrowd", 2),
    "ignore": each(0, "ignore", 1),
    "image ids in text": renamed(str, "image_id"),
    "all ids in text": renamed(str, "image_id", "category_id"),
    "ids as floats": renamed(float, "image_id", "category_id"),
    "ids far apart": ids_far_apart,
    "ids beyond 64 bits": ids_beyond_64_bits,
    "a caption": each(1, "caption", "a cat"),
}


def by_file_and_by_records(package: Package, case: Case) -> Seen:
    """Evaluate twice, from files and from what is in them; the rest is tried after an error."""
    seen: Seen = {"files": PATTERNS["demo"](package, case)}
    truth, found = loaded(package, case)
    evaluator = run(package.COCOeval(truth, found, "bbox"))
    return {**seen, "records": seen_of(evaluator), "truth": shown_by(truth)}


def records_alone(package: Package, case: Case) -> Seen:
    truth, found = loaded(package, case)
    return {"records": seen_of(run(package.COCOeval(truth, found, "bbox")))}


def rows(package: Package, case: Case) -> Seen:
    truth = package.COCO(str(case.truth_file))
    return {"rows": seen_of(run(package.COCOeval(truth, truth.loadRes(case.rows()), "bbox")))}


@pytest.mark.parametrize("way", [by_file_and_by_records, records_alone, rows])
@pytest.mark.parametrize("edit", EDITS)
def test_what_is_odd_gives_the_same_numbers_or_the_same_error(
    edit: str, way: Callable[[Package, Case], Seen], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth, results = copied(made(11))
    EDITS[edit](truth, results)
    monkeypatch.setitem(PATTERNS, "odd", way)
    compare("odd", Case.write((truth, results), tmp_path))


@pytest.mark.parametrize(
    "edit", ["whole scores", "an unknown image", "ids far apart", "a score of NaN"]
)
def test_a_file_is_the_same_read_from_both_ends(
    edit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth, results = copied(made(11))
    EDITS[edit](truth, results)
    begun: list[int] = []

    def seen(scan: ResultsScan, rest: ResultsScan, start: int) -> bool:
        begun.append(start)
        return run_split(scan, rest, start)

    monkeypatch.setattr(own_results, "_SPLIT_FROM", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr(own_results, "run_split", seen)
    compare("demo", Case.write((truth, results), tmp_path))
    assert begun


def copied(data: Made) -> Made:
    truth, results = json.loads(json.dumps(data))
    return truth, results


def test_a_byte_order_mark_is_refused_as_there(tmp_path: Path) -> None:
    case = Case.write(made(2), tmp_path)
    case.results_file.write_bytes(b"\xef\xbb\xbf" + case.results_file.read_bytes())
    assert "JSONDecodeError" in compare("demo", case)["raised"]


def numbered_from_zero(package: Package, case: Case) -> Seen:
    """Detections as a data set of the caller's own, whose first id pycocotools takes for none."""
    truth, found = loaded(package, case)
    own = package.COCO()
    own.dataset = {**truth.dataset, "annotations": found.dataset["annotations"]}
    for number, record in enumerate(own.dataset["annotations"]):
        record["id"] = number
    own.createIndex()
    return seen_of(run(package.COCOeval(truth, own, "bbox")))


@pytest.mark.parametrize("seed", range(4))
def test_detections_numbered_from_zero(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth, results = copied(made(seed, images=2, classes=1))
    crowdless = [{**annotation, "iscrowd": 0} for annotation in truth["annotations"]]
    results[0] |= {"bbox": crowdless[0]["bbox"], "image_id": crowdless[0]["image_id"], "score": 1.0}
    monkeypatch.setitem(PATTERNS, "odd", numbered_from_zero)
    compare("odd", Case.write(({**truth, "annotations": crowdless}, results), tmp_path))
