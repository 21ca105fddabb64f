"""Unusual files: the same metrics as pycocotools', or the same error."""

import contextlib
import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycocotools import mask

from tests.compat.made import SIDE, Made, made, made_of
from tests.compat.patterns import PATTERNS, Case, Package, Seen, loaded, run, seen_of, shown_by
from tests.compat.test_patterns import compare

Truth = dict[str, Any]
Results = list[dict[str, Any]]

POLYGON, SECOND = [9, 9, 9, 50, 50, 50], [60.5, 60, 60.5, 90, 90, 90]
WIDE = SIDE + 16
"""Image width for masks."""


def each(side: int, key: str, value: Any) -> Callable[[Truth, Results], None]:
    """Return an edit that sets a key of every third annotation (0) or result (1)."""

    def edit(truth: Truth, results: Results) -> None:
        for record in (truth["annotations"], results)[side][::3]:
            record[key] = copy.deepcopy(value)

    return edit


def all_of(side: int, change: Callable[[int, Any], Any]) -> Callable[[Truth, Results], None]:
    """Return an edit that updates each annotation (0) or result (1) from its number and itself."""

    def edit(truth: Truth, results: Results) -> None:
        for number, record in enumerate((truth["annotations"], results)[side]):
            record.update(change(number, record))

    return edit


def without(side: int, key: str) -> Callable[[Truth, Results], None]:
    def edit(truth: Truth, results: Results) -> None:
        del (truth["annotations"], results)[side][4][key]

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


EDITS: dict[str, Callable[[Truth, Results], Any]] = {
    "whole scores": all_of(1, lambda n, _: {"score": n % 3}),
    "scores beyond float64": all_of(1, lambda n, _: {"score": 2**60 + n % 4}),
    "a score of NaN": each(1, "score", float("nan")),
    "a score in text": each(1, "score", "0.5"),
    "no score": without(1, "score"),
    "no category": without(1, "category_id"),
    "no results": lambda _, results: results.clear(),
    "own fields of results": all_of(
        1, lambda n, _: {"id": 1000 - n, "area": 5, "iscrowd": 1, "segmentation": [[0, 0, 1, 1]]}
    ),
    "ids far apart": renamed(lambda name: name * 10**12, "image_id", "category_id"),
    "ids beyond 64 bits": renamed(lambda name: name * 10**20, "image_id", "category_id"),
    "an unknown image": each(1, "image_id", 4711),
    "boxes of three numbers": each(0, "bbox", [1.0, 2.0, 3.0]),
    "an unknown category": each(1, "category_id", 4711),
    "whole boxes": each(1, "bbox", [1, 2, 30, 40]),
    "boxes that end before they begin": each(1, "bbox", [40.0, 40.0, -20.0, -20.0]),
    "one negative side": each(0, "bbox", [40.0, 40.0, -20.0, 20.0]),
    "no area": each(0, "bbox", [10.0, 10.0, 0.0, 20.0]),
    "boxes of NaN": each(1, "bbox", [1.0, 2.0, float("nan"), 4.0]),
    "boxes without end": each(0, "bbox", [1.0, 2.0, float("inf"), 4.0]),
    "boxes of five numbers": each(1, "bbox", [1.0, 2.0, 3.0, 4.0, 5.0]),
    "boxes of three numbers in results": each(1, "bbox", [1.0, 2.0, 3.0]),
    "empty boxes": each(0, "bbox", []),
    "empty boxes in results": each(1, "bbox", []),
    "text annotation ids": all_of(0, lambda _, record: {"id": f"a{record['id']}"}),
    "equal annotation ids": all_of(0, lambda n, _: {} if n % 4 else {"id": 7}),
    "negative annotation ids": all_of(0, lambda _, record: {"id": -record["id"]}),
    "annotation ids as floats": all_of(0, lambda _, record: {"id": float(record["id"])}),
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
}


def some_size(height: int, width: int) -> Callable[[Truth, Results], None]:
    """Return an edit that gives results another size, and a mask of all its pixels."""

    def edit(truth: Truth, results: Results) -> None:
        runs = mask.encode(np.ones((height, width), np.uint8, order="F"))
        for record in results[::3]:
            record["segmentation"] = {**runs, "counts": runs["counts"].decode()}

    return edit


def boxes_of_some(truth: Truth, results: Results) -> None:
    for record in results:
        record.pop("bbox", None)
    for record in results[1::2]:
        record["bbox"] = [8.0, 8.0, 300.0, 0.5]


EDITS_OF_MASKS: dict[str, Callable[[Truth, Results], Any]] = {
    "no segmentation": without(0, "segmentation"),
    "no segmentation of a result": without(1, "segmentation"),
    "no box anywhere": lambda truth, results: [
        record.pop("bbox", None) for record in [*truth["annotations"], *results]
    ],
    "boxes of some results": boxes_of_some,
    "masks of another size": some_size(30, 30),
    "no pixel": each(0, "segmentation", {"size": [SIDE, WIDE], "counts": [SIDE * WIDE, 0]}),
    "polygons in results": each(1, "segmentation", [[0, 0, 9, 0, 9, 9]]),
    "no iscrowd": without(0, "iscrowd"),
    "no category": without(1, "category_id"),
    "a score of NaN": each(1, "score", float("nan")),
}

EDITS_OF_KEYPOINTS = {
    "no keypoints": without(0, "keypoints"),
    "no keypoints of a result": without(1, "keypoints"),
    "no num_keypoints": without(0, "num_keypoints"),
    "large numbers": each(1, "keypoints", [2**40 + 1, 2, 2] * 17),
    "none counted": each(0, "num_keypoints", 0),
    "a keypoint of NaN": each(1, "keypoints", [float("nan"), 2.0, 2.0] * 17),
    "no boxes of annotations": without(0, "bbox"),
    "no area": each(0, "area", 0),
}


def records_alone(package: Package, case: Case) -> Seen:
    truth, detections = loaded(package, case)
    return {"records": seen_of(run(package.COCOeval(truth, detections, case.kind)))}


@pytest.mark.parametrize("way", [PATTERNS["demo"], records_alone])
@pytest.mark.parametrize("edit", EDITS)
def test_unusual_files_give_the_same_metrics_or_the_same_error(
    edit: str, way: Callable[[Package, Case], Seen], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth, results = copied(made(11))
    EDITS[edit](truth, results)
    monkeypatch.setitem(PATTERNS, "odd", way)
    compare("odd", Case.write((truth, results), tmp_path))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("way", [PATTERNS["demo"], records_alone])
@pytest.mark.parametrize("edit", [*EDITS_OF_MASKS, *EDITS_OF_KEYPOINTS])
def test_unusual_masks_and_keypoints(
    edit: str,
    way: Callable[[Package, Case], Seen],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kind = "segm" if edit in EDITS_OF_MASKS else "keypoints"
    truth, results = copied(made_of(kind, 11))
    {**EDITS_OF_MASKS, **EDITS_OF_KEYPOINTS}[edit](truth, results)
    monkeypatch.setitem(PATTERNS, "odd", way)
    compare("odd", Case.write((truth, results), tmp_path, kind))


def copied(data: Made) -> Made:
    truth, results = json.loads(json.dumps(data))
    return truth, results


def test_a_byte_order_mark_is_refused_as_by_pycocotools(tmp_path: Path) -> None:
    case = Case.write(made(2), tmp_path)
    case.results_file.write_bytes(b"\xef\xbb\xbf" + case.results_file.read_bytes())
    assert "JSONDecodeError" in compare("demo", case)["raised"]


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        (b"{", b"\xef\xbb\xbf{"),
        (b"}]}", b"}]} {}"),
        (b'"annotations"', b'"annotations": [], "annotations"'),
        (b'"annotations"', b'"annotations": 3, "annotated"'),
        (b'"annotations": [', b'"annotations": [7, '),
        (b'"iscrowd"', b'"said": "\xff", "iscrowd"'),
        (b'"iscrowd"', b'"said": "\n", "iscrowd"'),
        (b'"iscrowd"', b'"said": 01, "iscrowd"'),
        (b'"iscrowd"', b'"said": NaN, "iscrowd"'),
        (b'"iscrowd"', b'"said": "caf\xc3\xa9 \\u00e9 \\ud83d", "iscrowd"'),
        (b'"iscrowd"', b'"iscrowd": 1, "iscrowd"'),
        (b'"iscrowd"', b'"said": ' + 70 * b"[" + 70 * b"]" + b', "iscrowd"'),
        (b'"area": ', b'"area": 1, "area": -'),
        (b'"area": ', b'"area": 1e400, "larger": '),
        (b'"categories"', b'"kinds"'),
    ],
)
def test_unusual_text_is_read_as_by_pycocotools(
    written: bytes, instead: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case.write(made(2), tmp_path)
    text = case.truth_file.read_bytes()
    assert written in text
    case.truth_file.write_bytes(text.replace(written, instead, 1))
    monkeypatch.setitem(PATTERNS, "shown", lambda p, c: shown_by(p.COCO(str(c.truth_file))))
    compare("shown", case)
    compare("demo", case)


def numbered_from_zero(package: Package, case: Case) -> Seen:
    """Evaluate detections whose first id is 0, which pycocotools takes for no match."""
    truth, detections = loaded(package, case)
    own = package.COCO()
    own.dataset = {**truth.dataset, "annotations": detections.dataset["annotations"]}
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


def thresholds_changed(count: int, *, read: bool) -> Callable[[Package, Case], Seen]:
    """Return a pattern that sets that many thresholds between evaluate() and accumulate()."""

    def pattern(package: Package, case: Case) -> Seen:
        evaluator = package.COCOeval(*loaded(package, case), case.kind)
        evaluator.evaluate()
        if read:
            assert evaluator.evalImgs
        evaluator.params.iouThrs = np.linspace(0.5, 0.95, count)
        error = None
        try:
            evaluator.accumulate()
            evaluator.summarize()
        except IndexError as raised:
            error = str(raised)
        return {"error": error, **seen_of(evaluator)}

    return pattern


@pytest.mark.parametrize("read", [False, True])
@pytest.mark.parametrize("count", [1, 2, 9, 11, 12, 20])
@pytest.mark.parametrize("kind", ["bbox", "segm", "keypoints"])
def test_thresholds_added_or_removed_after_evaluate(
    kind: str, count: int, read: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evaluated rows are filled in, others stay -1; a removed one is an IndexError."""
    monkeypatch.setitem(PATTERNS, "odd", thresholds_changed(count, read=read))
    outcome = compare("odd", Case.write(made_of(kind, 3), tmp_path, kind))
    error = outcome["seen"]["error"]
    assert error == (
        f"index {count} is out of bounds for axis 0 with size {count}" if count < 10 else None
    )


def one_threshold_and_two(package: Package, case: Case) -> Seen:
    """Evaluate at IoU 0.5, and summarize at 0.5 and 0.75, of which 0.75 is unknown."""
    evaluator = package.COCOeval(*loaded(package, case), case.kind)
    evaluator.params.iouThrs = np.array([0.5])
    evaluator.evaluate()
    evaluator.params.iouThrs = np.array([0.5, 0.75])
    evaluator.accumulate()
    evaluator.summarize()
    assert evaluator.stats[1] > 0
    assert evaluator.stats[2] == -1
    return seen_of(evaluator)


def failing_summary(package: Package, case: Case) -> Seen:
    """Evaluate a summary that raises: the values of the previous one stay."""
    evaluator = run(package.COCOeval(*loaded(package, case), case.kind))
    before = evaluator.stats.copy()
    evaluator.eval = {"precision": evaluator.eval["precision"]}
    with pytest.raises(KeyError, match="recall"):
        evaluator.summarize()
    assert evaluator.stats.tobytes() == before.tobytes()
    evaluator.params.maxDets = evaluator.params.maxDets[:2]
    evaluator.stats = "as it was"
    with contextlib.suppress(IndexError, KeyError):
        evaluator.summarize()
    return {"stats": evaluator.stats, "before": before}


@pytest.mark.parametrize("kind", ["bbox", "segm", "keypoints"])
@pytest.mark.parametrize("way", [one_threshold_and_two, failing_summary])
def test_summaries_after_a_change(
    way: Callable[[Package, Case], Seen],
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(PATTERNS, "odd", way)
    assert "seen" in compare("odd", Case.write(made_of(kind, 3), tmp_path, kind))
