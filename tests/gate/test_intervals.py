"""Intervals of every kind of name, worked by hand: what is sure must fail, what is not must not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap.analysis.bootstrap import interval
from tests.cli.conftest import Ended, detap, write_coco, write_voc

__all__ = ["detap"]

Run = Callable[..., Ended]

# Ten images with an ant and a bee each; image 1 alone has a cow. The later detector finds no bee.
LABELS = {1: "ant", 2: "bee", 3: "cow"}


def boxes() -> list[tuple[int, int, list[int]]]:
    rows = [(image, label, [200 * label, 0, 50, 50]) for image in range(1, 11) for label in (1, 2)]
    return [*rows, (1, 3, [0, 0, 50, 50])]


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    truth = {
        "images": [{"id": image, "width": 999, "height": 99} for image in range(1, 11)],
        "categories": [{"id": label, "name": name} for label, name in LABELS.items()],
        "annotations": [
            {"id": place, "image_id": image, "category_id": label, "bbox": box, "area": 2500}
            | {"iscrowd": 0}
            for place, (image, label, box) in enumerate(boxes(), 1)
        ],
    }
    found = [
        {"image_id": image, "category_id": label, "bbox": box, "score": 0.5}
        for image, label, box in boxes()
    ]
    write_coco(tmp_path, truth, found)
    now = [row for row in found if row["category_id"] != 2]
    (tmp_path / "now.json").write_text(json.dumps(now))
    (tmp_path / "tags.csv").write_text(
        "image,tag\n"
        + "".join(f"{i},{'low' if i < 6 else 'high'}\n" for i in range(1, 11))
        + "99,empty\n"
    )
    return tmp_path


def gates(
    detap: Run, *arguments: str, now: str = "now.json", then: str = "results.json"
) -> tuple[int, list[dict[str, Any]]]:
    ended = detap(
        *("eval", "--gt", "instances.json", "--dt", now, "--baseline-detections", then),
        *("--confidence", "0.95", "--min-ground-truths", "0", "-o", "out.json", *arguments),
    )
    assert ended.status in (0, 1), ended.err
    return ended.status, json.loads(Path("out.json").read_text())["gates"]["checks"]


@pytest.mark.parametrize(
    ("name", "ends", "status"),
    [
        # All the bees are lost in every resample; cows are in some alone, and found by both.
        ("min-class.AP", (1, 1), 1),
        ("class:bee.AP", (1, 1), 1),
        ("class:ant.AP", (0, 0), 0),
        ("class:cow.AP", (0, 0), 0),
        ("min-class.AP50", (1, 1), 1),
        ("slice:low.min-class.AP", (1, 1), 1),
        ("slice:high.class:bee.AP", (1, 1), 1),
        ("slice:high.class:ant.AP", (0, 0), 0),
        # Of two classes or three, one is lost.
        ("AP", (1 / 3, 1 / 2), 1),
        ("slice:high.AP", (1 / 2, 1 / 2), 1),
    ],
)
def test_a_sure_loss_fails_and_no_other(
    case: Path, detap: Run, name: str, ends: tuple[float, float], status: int
) -> None:
    ended, (gate,) = gates(detap, "--max-drop", f"{name}=0.1", "--slices", "tags.csv")
    assert ended == status
    assert gate["interval"] == pytest.approx(ends, abs=1e-9)
    assert gate["verdict"] == ("failed" if status else "passed")


@pytest.mark.parametrize("name", ["min-class.AP", "class:bee.AP", "AP"])
def test_a_sure_rise_is_held_too(case: Path, detap: Run, name: str) -> None:
    # The other way round: bees are found again.
    swapped = {"now": "results.json", "then": "now.json"}
    status, (gate,) = gates(detap, "--max-rise", f"{name}=0.1", **swapped)
    assert (status, gate["verdict"]) == (1, "failed")
    assert gate["interval"][0] < gate["interval"][1] <= 0 or gate["interval"][0] == pytest.approx(
        -1
    )
    assert gates(detap, "--max-drop", f"{name}=0", **swapped)[0] == 0


def test_what_is_in_no_resample_is_undefined(case: Path, detap: Run) -> None:
    status, (gate,) = gates(
        detap, "--max-drop", "slice:high.class:cow.AP=1", "--slices", "tags.csv"
    )
    assert (status, gate["verdict"]) == (1, "undefined")
    for name in ("AP", "class:bee.AP", "min-class.AP"):
        status, (gate,) = gates(
            detap, "--max-drop", f"slice:empty.{name}=1", "--slices", "tags.csv"
        )
        assert (status, gate["verdict"]) == (1, "undefined")


def test_a_count_has_no_interval(case: Path, detap: Run) -> None:
    call = ("eval", "--gt", "instances.json", "--dt", "now.json")
    noise = ("--baseline-detections", "results.json", "--confidence", "0.9")
    ended = detap(*call, *noise, "--max-drop", "class:bee.true_positives=1")
    assert ended.status == 2
    assert "class:bee.true_positives' is no average precision or recall" in ended.err


@pytest.mark.parametrize("preset", ["voc2007", "voc2012", "voc2007-py", "voc2012-py"])
def test_recall_of_a_class_under_voc(tmp_path: Path, detap: Run, preset: str) -> None:
    # Of cats one of two is found, before and now; the dog is found no more.
    files = write_voc(tmp_path)
    now = tmp_path / "now"
    now.mkdir()
    for path in files.dt.iterdir():
        kept = "" if path.stem.endswith("_dog") else path.read_text()
        (now / path.name).write_text(kept)
    call = ["eval", "--gt", files.gt, "--dt", now, "--baseline-detections", files.dt]
    noise = ["--confidence", "0.9", "--min-ground-truths", "0", "--protocol", preset]
    report = tmp_path / "out.json"
    limits = ["--max-drop", "class:dog.recall=0.1", "--max-drop", "class:cat.recall=0.1"]
    assert detap(*call, *noise, *limits, "-o", report).status == 1
    checks = {check["name"]: check for check in json.loads(report.read_text())["gates"]["checks"]}
    assert checks["class:dog.recall"]["interval"] == [1, 1]
    assert checks["class:dog.recall"]["verdict"] == "failed"
    assert checks["class:cat.recall"]["interval"] == [0, 0]
    assert checks["class:cat.recall"]["verdict"] == "passed"


def test_the_ends_of_an_interval() -> None:
    # Of 0, 1, ..., 100, the ranks 100 * .05 from below and above, with what is undefined left out.
    values = np.array([np.nan, *np.arange(101.0), np.nan])
    assert interval(values, 0.9) == pytest.approx((5, 95))
    assert interval(np.arange(101.0) / 100, 0.95) == pytest.approx((0.025, 0.975))
    assert np.isnan(interval(np.array([np.nan]), 0.9)).all()
    assert interval(np.array([-5.6e-17] * 9), 0.95) == (0, 0)
    assert interval(np.array([-1e-9] * 9), 0.95) == (-1e-9, -1e-9)
