"""Hand-computed intervals of every kind of metric: only certain drops fail."""

import json
import re
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from detap import UsageError, read_detections, read_ground_truth
from detap.analysis.bootstrap import Draws, differing, expanded
from detap.testing import assert_detections
from tests.cli.conftest import Run, write_coco, write_voc
from tests.coco import results_of, truth_of
from tests.schemas import saved

# Ten images with an ant and a bee each; image 1 alone has a cow. The later detector finds no bee.
LABELS = {1: "ant", 2: "bee", 3: "cow"}


def boxes() -> list[tuple[int, int, list[int]]]:
    rows = [(image, label, [200 * label, 0, 50, 50]) for image in range(1, 11) for label in (1, 2)]
    return [*rows, (1, 3, [0, 0, 50, 50])]


@pytest.fixture
def case(cwd: Path) -> Path:
    truth = truth_of(boxes(), LABELS, range(1, 11), size=(999, 99))
    write_coco(cwd, truth, results_of(boxes(), 0.5))
    now = results_of((row for row in boxes() if row[1] != 2), 0.5)
    (cwd / "now.json").write_text(json.dumps(now))
    (cwd / "tags.csv").write_text(
        "image,tag\n"
        + "".join(f"{i},{'low' if i < 6 else 'high'}\n" for i in range(1, 11))
        + "99,empty\n"
    )
    return cwd


def gates(
    detap: Run, *arguments: str, now: str = "now.json", then: str = "results.json"
) -> tuple[int, list[dict[str, Any]]]:
    call = ("eval", "--gt", "instances.json", "--dt", now, "--baseline-detections", then)
    more = ("--confidence", "0.95", "--min-ground-truths", "0", *arguments)
    report, ended = saved(detap, *call, *more, statuses=(0, 1))
    return ended.status, report["gates"]["checks"]


@pytest.mark.parametrize(
    ("name", "ends", "status"),
    [
        # All the bees are lost in every resample; cows are in some alone, and found by both.
        ("class:bee.AP", (1, 1), 1),
        ("class:ant.AP", (0, 0), 0),
        ("class:cow.AP", (0, 0), 0),
        ("class:bee.AP50", (1, 1), 1),
        ("slice:high.class:bee.AP", (1, 1), 1),
        ("slice:high.class:ant.AP", (0, 0), 0),
        # Of two classes or three, one is lost.
        ("AP", (1 / 3, 1 / 2), 1),
        ("slice:high.AP", (1 / 2, 1 / 2), 1),
    ],
)
def test_only_a_certain_drop_fails(
    case: Path, detap: Run, name: str, ends: tuple[float, float], status: int
) -> None:
    ended, (gate,) = gates(detap, "--max-drop", f"{name}=0.1", "--slices", "tags.csv")
    assert ended == status
    assert gate["interval"] == pytest.approx(ends, abs=1e-9)
    assert gate["status"] == ("failed" if status else "passed")


@pytest.mark.parametrize("name", ["class:bee.MR-2", "MR-2"])
def test_a_certain_rise_fails_too(case: Path, detap: Run, name: str) -> None:
    status, (gate,) = gates(detap, "--max-rise", f"{name}=0.1")
    assert (status, gate["status"]) == (1, "failed")
    # The drop is negative: from 0, of all bees, to 1; at least one class of three is lost.
    assert -1 <= gate["interval"][0] <= gate["interval"][1] < -0.3
    # The other way round: bees are matched again.
    swapped = {"now": "results.json", "then": "now.json"}
    assert gates(detap, "--max-rise", f"{name}=0", **swapped)[0] == 0


@pytest.mark.parametrize("name", ["high.class:cow.AP", "empty.AP", "empty.class:bee.AP"])
def test_a_metric_defined_in_no_resample_is_undefined(case: Path, detap: Run, name: str) -> None:
    status, (gate,) = gates(detap, "--max-drop", f"slice:{name}=0.9", "--slices", "tags.csv")
    assert (status, gate["status"]) == (1, "undefined")


@pytest.mark.parametrize(
    ("option", "name", "each"),
    [
        ("--max-drop", "min-class.AP", "'class:*.AP=0.1'"),
        ("--max-drop", "min-class.AP50", "'class:*.AP50=0.1'"),
        ("--max-rise", "max-class.MR-2", "'class:*.MR-2=0.1'"),
        ("--max-drop", "slice:low.min-class.AP", "'slice:low.class:*.AP=0.1'"),
    ],
)
def test_the_smallest_class_has_no_interval(
    case: Path, detap: Run, option: str, name: str, each: str
) -> None:
    call = ["eval", "--gt", "instances.json", "--dt", "now.json", "--slices", "tags.csv"]
    call += ["--baseline-detections", "results.json", "--min-ground-truths", "0"]
    said = detap(*call, "--confidence", "0.95", option, f"{name}=0.1").refused()
    extreme = "maximum" if name.startswith("max") else "minimum"
    assert f"{name!r} has no interval: that of a {extreme}" in said
    assert f"limit each class with {option} {each}, or remove --confidence" in said
    # Both hints fail: the bees are lost.
    hinted = each.strip("'")
    assert detap(*call, "--confidence", "0.95", option, hinted).status == 1
    assert detap(*call, option, f"{name}=0.1").status == 1


def test_the_hint_in_python(case: Path) -> None:
    truth, now, then = "instances.json", "now.json", "results.json"
    table = read_ground_truth(truth)
    limits: dict[str, Any] = {"baseline": read_detections(then, table), "confidence": 0.95}
    detections = read_detections(now, table)
    message = "max_drop={'class:*.AP': '0.1'}, or remove confidence"
    with pytest.raises(UsageError, match=re.escape(message)):
        assert_detections(table, detections, max_drop={"min-class.AP": 0.1}, **limits)
    with pytest.raises(AssertionError, match=r"FAILED   class:bee\.AP dropped by"):
        assert_detections(
            table, detections, max_drop={"class:*.AP": "0.1"}, min_ground_truths=0, **limits
        )


def test_a_minimum_on_the_smallest_class_needs_no_interval(case: Path, detap: Run) -> None:
    status, (gate,) = gates(detap, "--fail-under", "min-class.AP=0.1", "--detectable-drop", "0.1")
    assert (status, gate["status"], gate["value"]) == (1, "failed", 0)


@pytest.mark.parametrize("name", ["class:bee.true_positives", "F1"])
def test_counts_and_operating_points_have_no_interval(case: Path, detap: Run, name: str) -> None:
    call = ("eval", "--gt", "instances.json", "--dt", "now.json")
    noise = ("--baseline-detections", "results.json", "--confidence", "0.9")
    said = detap(*call, *noise, "--max-drop", f"{name}=0.1").refused()
    assert f"{name}' has no interval: not an average precision or recall" in said
    assert "remove it or --confidence" in said
    assert detap(*call, *noise[:2], "--max-drop", f"{name}=0.1").status == 1


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
    assert checks["class:dog.recall"]["status"] == "failed"
    assert checks["class:cat.recall"]["interval"] == [0, 0]
    assert checks["class:cat.recall"]["status"] == "passed"


def test_the_ends_of_an_interval() -> None:
    # Of 0, 1, ..., 100, the ranks 100 * .05 from below and above, with what is undefined left out.
    values = np.array([np.nan, *np.arange(101.0), np.nan])
    assert Draws(values).interval(0.9) == pytest.approx((5, 95))
    assert Draws(np.arange(101.0) / 100).interval(0.95) == pytest.approx((0.025, 0.975))
    assert np.isnan(Draws(np.array([np.nan])).interval(0.9)).all()
    assert Draws(np.array([-5.6e-17] * 9)).interval(0.95) == (0, 0)
    assert Draws(np.array([-1e-9] * 9)).interval(0.95) == (-1e-9, -1e-9)


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    # Of Student's t at 97.5 %, from the tables.
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (30, 2.042), (120, 1.980)],
)
def test_the_expanded_tail_uses_student_s_t(freedom: int, quantile: float) -> None:
    expected = NormalDist().cdf(-quantile)
    assert expanded(0.025, freedom) == pytest.approx(expected, rel=2e-3, abs=2e-9)


def test_effective_number_of_differing_images() -> None:
    # k of 100 parts that weigh the same, and the others nothing: k, for a mean that is 0.
    left_out = np.zeros(100)
    left_out[:4] = (0.1, -0.1, 0.1, -0.1)
    assert differing(left_out) == pytest.approx(4)
    assert differing(np.array([*left_out, np.nan])) == pytest.approx(4)
    assert differing(np.full(9, 0.3)) is None
    assert differing(np.array([0, 1e-17, -1e-17])) is None
    assert differing(np.array([np.nan])) is None


def test_fewer_differing_images_widen_the_interval() -> None:
    values, left_out = np.arange(1001.0) / 1000, np.zeros(100)
    assert Draws(values, left_out).interval(0.95) == Draws(values).interval(0.95)
    assert Draws(values).interval(0.95) == pytest.approx((0.025, 0.975))
    left_out[:4] = (0.1, -0.1, 0.1, -0.1)
    # Of four, Student's t has 2.776 at 97.5 %, beyond which the normal distribution has 0.00275.
    assert Draws(values, left_out).interval(0.95) == pytest.approx((0.00275, 0.99725), abs=1e-5)
