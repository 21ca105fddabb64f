"""Metrics of few ground truths, and detectors that differ on few images."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ended, Run, write_coco
from tests.coco import Row, results_of, truth_of
from tests.schemas import saved

CALL = ("--gt", "instances.json", "--baseline-detections", "results.json")
SURE = ("--confidence", "0.95")


def write(folder: Path, *, small: int, missed: Collection[int]) -> None:
    """Write 100 images with one object each, some small, and a detector that misses some."""
    side = {image: 10 if image <= small else 100 for image in range(1, 101)}
    rows: list[Row] = [(image, 1, [0, 0, size, size]) for image, size in side.items()]
    detections = results_of(rows)
    write_coco(folder, truth_of(rows, {1: "cat"}, side), detections)
    now = [row for row in detections if row["image_id"] not in missed]
    (folder / "now.json").write_text(json.dumps(now))
    tags = {"few": [*range(1, small + 1)], "most": [*range(small + 1, 101)]}
    (folder / "tags.json").write_text(json.dumps(tags))


@pytest.fixture
def lost(cwd: Path) -> Path:
    """Write 100 objects, one of them small and missed by the new detector."""
    write(cwd, small=1, missed={1})
    return cwd


def gate(detap: Run, *arguments: str) -> tuple[Ended, dict[str, Any]]:
    report, ended = saved(detap, "eval", "--dt", "now.json", *CALL, *arguments, statuses=(0, 1))
    (check,) = report["gates"]["checks"]
    return ended, check


@pytest.mark.parametrize(
    "name", ["APs", "ARs", "AP75s", "class:cat.APs", "slice:few.AP", "slice:few.class:cat.AP"]
)
def test_one_lost_object_is_a_warning(lost: Path, detap: Run, name: str) -> None:
    words = ("--max-drop", f"{name}=0", "--slices", "tags.json", *SURE)
    ended, check = gate(detap, *words)
    assert (ended.status, check["status"]) == (0, "too-few-ground-truths")
    assert (check["interval"], check["ground_truths"]) == (None, 1)
    assert check["drop"] == pytest.approx(1)
    assert "warning only: 1 ground truths" in ended.err
    ended, check = gate(detap, *words, "--min-ground-truths", "0")
    assert (ended.status, check["status"]) == (1, "failed")
    assert check["interval"] == pytest.approx([1, 1])


@pytest.mark.parametrize(("small", "verdict"), [(19, "too-few-ground-truths"), (20, "failed")])
def test_twenty_objects_are_enough(cwd: Path, detap: Run, small: int, verdict: str) -> None:
    write(cwd, small=small, missed=range(1, small + 1))
    ended, check = gate(detap, "--max-drop", "APs=0", *SURE)
    assert (ended.status, check["status"]) == (int(verdict == "failed"), verdict)
    assert check["ground_truths"] == small


def test_the_same_rule_holds_for_a_report(lost: Path, detap: Run) -> None:
    assert detap("eval", "--gt", "instances.json", "--dt", "results.json", "-o", "b.json")
    call = ("eval", "--gt", "instances.json", "--dt", "now.json", "--baseline", "b.json")
    assert detap(*call, "--max-drop", "APs=0").status == 1
    ended = detap(*call, "--max-drop", "APs=0", "--min-ground-truths", "2").passed()
    assert "warning only: 1 ground truths" in ended.err
    assert detap(*call, "--max-drop", "APl=0", "--min-ground-truths", "2").status == 0


def test_a_comparison_gives_no_interval(lost: Path, detap: Run) -> None:
    call = ("compare", "results.json", "now.json", "--gt", "instances.json", "-o", "c.json")
    ended = detap(*call)
    rows = {row["name"]: row for row in json.loads(Path("c.json").read_text())["metrics"]}
    for name in ("APs", "ARs"):
        assert (rows[name]["low"], rows[name]["high"]) == (None, None)
        assert rows[name]["difference"] == pytest.approx(-1)
    assert rows["AP"]["low"] < rows["AP"]["high"] == 0
    assert "APs, ARs: fewer than 20 ground truths are counted" in ended.err
    detap(*call, "--min-ground-truths", "0")
    rows = {row["name"]: row for row in json.loads(Path("c.json").read_text())["metrics"]}
    assert [rows["APs"][end] for end in ("low", "high")] == pytest.approx([-1, -1])


@pytest.mark.parametrize(
    ("missed", "verdict"),
    # Were both equally good, the second would miss all four objects that one of them misses in 1
    # of 16 cases: more than the 1 of 40 that the level allows. All of twelve: 1 of 4,096.
    [(4, "inconclusive"), (12, "failed")],
)
def test_few_images_that_differ_widen_the_interval(
    cwd: Path, detap: Run, missed: int, verdict: str
) -> None:
    write(cwd, small=0, missed=range(1, missed + 1))
    ended, check = gate(detap, "--max-drop", "AP=0", *SURE)
    assert (ended.status, check["status"]) == (int(verdict == "failed"), verdict)
    assert check["drop"] == pytest.approx(missed / 101)
    # The same seed gives the same bits.
    assert gate(detap, "--max-drop", "AP=0", *SURE)[1] == check


def smallest(folder: Path, detap: Run, lost: str, *arguments: str) -> tuple[int, str]:
    """Return the status and message of a gate on the smallest class of 30 cats and 5 dogs."""
    rows: list[Row] = [(image, 1, [200, 0, 50, 50]) for image in range(30)]
    rows += [(image, 2, [400, 0, 50, 50]) for image in range(5)]
    names = {1: "cat", 2: "dog"}
    write_coco(folder, truth_of(rows, names, range(30)), results_of(rows))
    kept = results_of(row for row in rows if names[row[1]] != lost)
    (folder / "now.json").write_text(json.dumps(kept))
    ended, check = gate(detap, "--max-drop", "min-class.AP=0.1", *arguments)
    return ended.status, check["status"]


def test_the_smallest_class_may_have_few_ground_truths(cwd: Path, detap: Run) -> None:
    fewest = ("--min-ground-truths", "20")
    assert smallest(cwd, detap, "dog") == (1, "failed")
    assert smallest(cwd, detap, "dog", *fewest) == (0, "too-few-ground-truths")
    assert smallest(cwd, detap, "dog", "--min-ground-truths", "5") == (1, "failed")
    assert smallest(cwd, detap, "cat", *fewest) == (1, "failed")
    assert smallest(cwd, detap, "cat", "--min-ground-truths", "31") == (
        0,
        "too-few-ground-truths",
    )


@pytest.mark.parametrize(("lost", "verdict"), [(4, "inconclusive"), (12, "failed")])
def test_few_queries_that_differ_widen_the_interval(
    cwd: Path, detap: Run, lost: int, verdict: str
) -> None:
    (cwd / "qrels").write_text("".join(f"q{n} 0 good 1\n" for n in range(100)))
    for name, wrong in (("then", 0), ("now", lost)):
        lines = []
        for n in range(100):
            # From 60 on the relevant item is the second in both rankings: no difference.
            first, second = ("bad", "good") if n < wrong or n >= 60 else ("good", "bad")
            lines += [f"q{n} Q0 {first} 1 0.9 x\n", f"q{n} Q0 {second} 2 0.8 x\n"]
        (cwd / name).write_text("".join(lines))
    call = ("rank", "retrieval", "--qrels", "qrels", "--run", "now", "--baseline-ranking", "then")
    ended = detap(*call, "--max-drop", "0", *SURE, "-o", "out.json")
    (check,) = json.loads(Path("out.json").read_text())["gates"]["checks"]
    assert (ended.status, check["status"]) == (int(verdict == "failed"), verdict), ended.err
