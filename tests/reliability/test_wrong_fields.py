"""Reports with one field of a wrong type: refused by name, or handled."""

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from detap.formats.text.class_names import ClassNames
from detap.io.problems import FaultError
from tests.cli.conftest import Run
from tests.conftest import ROOT

Place = tuple[str | int, ...]

SAMPLE = 60
"""Number of mutated reports, each run with every command."""

QUICKSTART = ROOT / "fixtures" / "quickstart" / "coco"
SIDES = ["--gt", QUICKSTART / "instances.json", "--dt", QUICKSTART / "results.json"]
HALF = "\ud800"
WRONG: list[Any] = [
    None, True, 0, 1, -1, 1.5, 10**400, float("nan"), "", "x", HALF, "\udcff", [], [[]], {},
    {"a": [HALF]},
]  # fmt: skip


def locations(record: Any, location: Place = ()) -> Iterator[Place]:
    """Yield the location of every value of a JSON record; of a list, of the first two."""
    if location:
        yield location
    if isinstance(record, dict):
        for key, value in record.items():
            yield from locations(value, (*location, key))
    elif isinstance(record, list):
        for at, value in enumerate(record[:2]):
            yield from locations(value, (*location, at))


def replaced(record: Any, location: Place, value: Any) -> Any:
    """Return a copy of a record with another value at a location."""
    actual = copy.deepcopy(record)
    target = actual
    for key in location[:-1]:
        target = target[key]
    target[location[-1]] = value
    return actual


def mutants(record: Any, count: int, seed: int) -> list[tuple[Place, Any]]:
    """Return a sample of replacements."""
    pairs = [(location, value) for location in locations(record) for value in WRONG]
    return random.Random(seed).sample(pairs, min(count, len(pairs)))


@pytest.fixture
def good(tmp_path: Path, detap: Run) -> Path:
    """Return a report with every part that commands read again."""
    path, tags = tmp_path / "good.json", tmp_path / "tags.csv"
    tags.write_text("image,tag\n1,night\n2,day\n")
    asked = ["--slices", tags, "--score-threshold", "0.5", "--fail-under", "AP50=0.1"]
    ended = detap("eval", *SIDES, *asked, "--classes", "cat", "-o", path)
    assert ended.status == 0, ended.err
    assert json.loads(path.read_text()).keys() >= {"gates", "slices", "operating_point"}
    return path


def commands(wrong: Path, good: Path, spare: Path) -> Iterator[list[Any]]:
    """Yield the command lines that read a report; `spare` is their output."""
    yield ["explain", wrong, good]
    yield ["explain", good, wrong]
    yield ["badge", wrong]
    yield ["history", wrong, good]
    yield ["baseline", "update", "--allow-mismatch", spare, wrong]
    yield ["baseline", "update", wrong, good]
    yield ["eval", *SIDES, "--classes", "cat", "--baseline", wrong, "--max-drop", "0.5"]


def test_reports_with_a_field_of_a_wrong_type(good: Path, detap: Run) -> None:
    wrong, spare = good.with_name("wrong.json"), good.with_name("spare.json")
    report = json.loads(good.read_text())
    refused = 0
    for location, value in mutants(report, SAMPLE, 24):
        text = json.dumps(replaced(report, location, value))
        for line in commands(wrong, good, spare):
            wrong.write_text(text)
            spare.write_text(good.read_text())
            ended = detap(*line)
            assert ended.status in (0, 1, 2), (location, value, line, ended.err)
            assert "Traceback" not in ended.err
            refused += ended.status == 2
    assert refused > SAMPLE


@pytest.mark.parametrize(
    ("location", "value", "message"),
    [
        (("inputs", 0, "sha256"), [[]], "report with missing or invalid values"),
        (("classes", 0, "name"), HALF, "surrogates not allowed"),
        (("gates", "passed"), "no", "report with missing or invalid values"),
        (("slices", "day", "images"), [], "report with missing or invalid values"),
    ],
)
def test_such_a_report_is_refused_by_name(
    location: Place, value: Any, message: str, good: Path, detap: Run
) -> None:
    wrong = good.with_name("wrong.json")
    wrong.write_text(json.dumps(replaced(json.loads(good.read_text()), location, value)))
    ended = detap("explain", wrong, good)
    assert ended.status == 2
    said = " ".join(ended.err.split())
    assert "wrong.json: " in said
    assert message in said
    assert "create it with detap eval -o FILE.json" in said
    assert detap("explain", good, good).status == 0  # the hint was followed


LONG = "9" * 5000
"""An integer of more digits than Python converts."""


@pytest.mark.parametrize("kind", ["coco", "jsonl"])
def test_an_integer_of_many_digits_in_an_unused_field(
    kind: str, tmp_path: Path, detap: Run
) -> None:
    gt = tmp_path / f"gt.{kind}"
    box = '"bbox": [0, 0, 9, 9]'
    if kind == "coco":
        gt = tmp_path / "gt.json"
        gt.write_text(
            f'{{"info": {LONG}, "images": [{{"id": 1, "width": 9, "height": 9, "tag": "day"}}], '
            '"categories": [{"id": 1, "name": "cat"}], "annotations": [{"id": 1, "image_id": 1, '
            f'"category_id": 1, "area": 81, "iscrowd": 0, {box}}}]}}'
        )
        detections = f'[{{"image_id": 1, "category_id": 1, "score": 0.9, {box}}}]'
    else:
        text = (
            '{{"file_name": "a.jpg", "tag": "day", "info": {}, '
            '"objects": [{{"category": "cat", {}}}]}}'
        )
        gt.write_text(text.format(LONG, box))
        detections = text.format(LONG, f'"score": 0.9, {box}')
    dt = gt.with_name(f"dt{gt.suffix}")
    dt.write_text(detections)
    line = ["eval", "--gt", gt, "--dt", dt, *(["--boxes", "xywh"] if kind == "jsonl" else [])]
    ended = detap(*line, "--slice-by", "tag", "--fail-under", "slice:tag=day.AP=0.9")
    assert ended.status == 0, ended.err


@pytest.mark.parametrize("zeros", [18, 5000])
def test_a_class_number_of_many_zeros(zeros: int) -> None:
    names = ClassNames("names.txt", ("cat", "dog"))
    assert names.resolve("0" * zeros + "1") == "dog"
    with pytest.raises(FaultError, match=r"is not in names\.txt"):
        names.resolve("0" * zeros + "2")
