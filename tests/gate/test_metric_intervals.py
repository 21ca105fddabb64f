"""Confidence intervals of the metrics of one detector."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap import Detections, GroundTruth, Result, UsageError, evaluate
from detap.analysis.bootstrap import Draws, draw_weights, leave_out
from detap.report.numbers import UNDEFINED
from detap.testing import assert_detections
from tests.cli.conftest import Ended, Run, write_coco
from tests.coco import results_of, truth_of
from tests.gate.test_resampling import scene
from tests.oracle.resampling import draw_weights as drawn_by_the_oracle
from tests.oracle.resampling import repeated
from tests.parity import reference
from tests.schemas import saved

IMAGES = 40
TAIL = 0.021635981  # beyond Student's t, by scipy: norm.cdf(-t.ppf(0.975, 40))


def halves(detected: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return 40 images of a cat, of which the first are detected, and a dog on image 1."""
    box = [0, 0, 50, 50]
    rows = [(image, 1, box) for image in range(1, IMAGES + 1)] + [(1, 2, [100, 0, 50, 50])]
    truth = truth_of(rows, {1: "cat", 2: "dog"}, range(1, IMAGES + 1))
    return truth, results_of((image, 1, box) for image in range(1, detected + 1))


@pytest.fixture
def case(cwd: Path) -> list[str]:
    """Write the case with 20 detected cats; return the command line."""
    write_coco(cwd, *halves(20))
    Path("tags.csv").write_text(
        "image,tag\n" + "".join(f"{i},{'low' if i < 31 else 'high'}\n" for i in range(1, 41))
    )
    return ["eval", "--gt", "instances.json", "--dt", "results.json"]


def share_ends(seed: int, resamples: int = 1000) -> tuple[float, float]:
    """Return the ends for the share of drawn images that are among the first 20, by hand.

    Each image has the same influence, so that there are 40 degrees of freedom.
    """
    words = iter(np.random.PCG64(seed).random_raw(IMAGES * resamples).tolist())
    shares = sorted(
        sum(weights[:20]) / IMAGES for weights in drawn_by_the_oracle(IMAGES, resamples, words)
    )
    ends = []
    for level in (TAIL, 1 - TAIL):
        at = level * (resamples - 1)
        ends.append(shares[int(at)] + (at % 1) * (shares[int(at) + 1] - shares[int(at)]))
    return ends[0], ends[1]


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.usefixtures("case")
def test_the_interval_of_a_recall_by_hand(seed: int) -> None:
    """The recall of cats in a resample is the share of its images with a detected cat."""
    ours = evaluate("instances.json", "results.json").intervals(seed=seed)
    np.testing.assert_allclose(ours.by_class["AR100"][0], share_ends(seed), rtol=0, atol=1e-6)
    assert np.isnan(ours.by_class["AR100"][1]).all()  # one dog is too few


@pytest.mark.parametrize("seed", range(3))
def test_it_is_that_of_pycocotools_on_copies_of_the_images(seed: int) -> None:
    """Resamples are evaluated as data sets with copies, also those that leave out an image."""
    instances, results, truth, detections = reference.as_coco(*scene(seed, images=6))
    del instances, results
    ours = evaluate(truth, detections, "coco").intervals(
        0.9, resamples=5, seed=seed, min_ground_truths=0
    )
    values: dict[str, list[float]] = {name: [] for name in ours.summary}
    for weights in leave_out(draw_weights(6, 5, seed)).table().tolist():
        copies = reference.as_coco(*repeated(truth, detections, weights))[:2]
        for name, value in reference.run(*copies).summary.items():
            values[name].append(value)
    assert set(values) == set(ours.summary)
    for name, (low, high) in ours.summary.items():
        drawn, left_out = np.split(np.array(values[name]), [5])
        expected = Draws(drawn, left_out).interval(0.9)
        np.testing.assert_allclose((low, high), expected, rtol=0, atol=1e-9, err_msg=name)


def test_threads_and_other_classes_change_no_bit() -> None:
    truth, detections = scene(4)
    ours = evaluate(truth, detections).intervals(min_ground_truths=0, threads=1)
    again = evaluate(truth, detections).intervals(min_ground_truths=0, threads=3)
    alone = evaluate(truth, detections, classes=["1"]).intervals(min_ground_truths=0)
    other = evaluate(truth, detections).intervals(min_ground_truths=0, seed=1)
    assert ours.summary == again.summary != other.summary
    for name, ends in ours.by_class.items():
        assert ends.tobytes() == again.by_class[name].tobytes()
        assert ends[1].tobytes() == alone.by_class[name][0].tobytes()


def test_equal_images_have_an_interval_of_no_width() -> None:
    images = np.arange(30)
    boxes = np.tile([0.0, 0.0, 50.0, 50.0], (30, 1))
    truth = GroundTruth.from_arrays(image=images, label=0 * images, boxes=boxes)
    detections = Detections.from_arrays(
        image=images, label=0 * images, boxes=boxes + 1, score=np.full(30, 0.5)
    ).reindex_like(truth)
    result = evaluate(truth, detections)
    ours = result.intervals()
    assert result.metric("AP") == pytest.approx(0.9)  # the IoU is 49² / (2 · 50² - 49²) = .924
    assert ours.summary["AP"] == pytest.approx((0.9, 0.9), abs=1e-12)
    assert np.isnan(ours.summary["APl"]).all()
    assert repr(ours) == "MetricIntervals(0.95, AP=[0.9000, 0.9000])"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"confidence": 1.0}, "confidence 1.0 is outside (0, 1)"),
        ({"confidence": 0.0}, "confidence 0.0 is outside (0, 1)"),
        ({"resamples": 0}, "resamples 0 is less than 1"),
        ({"seed": -1}, "seed -1 is less than 0"),
    ],
)
def test_arguments_out_of_range(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        evaluate(*scene(1)).intervals(**given)


# --- the command


def report(detap: Run, *arguments: str, status: int = 0) -> tuple[dict[str, Any], Ended]:
    return saved(detap, *arguments, statuses=(status,))


def test_the_report_has_an_interval_of_every_metric(detap: Run, case: list[str]) -> None:
    plain, _ = report(detap, *case, "--slices", "tags.csv")
    record, _ = report(detap, *case, "--slices", "tags.csv", "--confidence", "0.95")
    intervals = record.pop("intervals")
    record["notes"] = plain["notes"]
    assert record == plain  # nothing else changes
    assert [intervals[key] for key in ("confidence", "resamples", "seed")] == [0.95, 1000, 0]
    assert list(intervals["summary"]) == list(plain["summary"])
    cat, dog = intervals["classes"]
    assert cat["AR100"] == pytest.approx(share_ends(0), abs=1e-6)
    assert (cat["name"], cat["id"], dog["AP"], cat["AP75"][0] > 0) == ("cat", 1, [None] * 2, True)
    low, high = (intervals["slices"][tag] for tag in ("low", "high"))
    assert low["classes"][0]["AP"][0] > 0  # 30 cats, 20 detected
    assert high["classes"][0]["AP"] == [None, None]  # 10 cats


def test_the_tables_have_the_interval_of_the_primary_metric(
    detap: Run, case: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    _, ended = report(detap, *case, "--slices", "tags.csv", "--confidence", "0.9", "-o", "r.csv")
    lines = ended.out.splitlines()
    assert lines[0].split()[:5] == ["class", "AP", "CI", "low", "CI"]
    assert lines[3].split()[:4] == ["dog", "0.0000", UNDEFINED, UNDEFINED]
    assert re.search(r"^metric +value +90% CI +IoU", ended.out, re.MULTILINE)
    assert re.search(r"^AR100 +0\.2500 +\[0\.\d{4}, 0\.\d{4}\] +0\.50:0\.95", ended.out, re.M)
    assert re.search(rf"^APs +{UNDEFINED} +{UNDEFINED} ", ended.out, re.MULTILINE)
    assert re.search(r"^slice +AP +CI low +CI high ", ended.out, re.MULTILINE)
    assert "90% CI: bootstrap, 1,000 resamples of 40 images" in lines
    with Path("r.csv").open() as stream:
        cat, dog = csv.DictReader(stream)
    assert 0 < float(cat["AP50_low"]) < float(cat["AP50"]) < float(cat["AP50_high"]) < 1
    assert dog["AR100_low"] == dog["AR100_high"] == ""
    page = detap(*case, "--confidence", "0.9", "--output-format", "html").out
    assert re.search(r'<p class="lead">90% CI \[0\.\d{4}, 0\.\d{4}\], IoU', page)
    assert '"AP_low"' in page
    text = detap(*case, "--confidence", "0.9", "--output-format", "markdown").out
    assert "| metric | value | 90&#37; CI |" in text or "| metric | value | 90% CI |" in text


@pytest.mark.parametrize(
    ("limit", "status", "position"),
    [
        ("AR100=0.25", 0, "contains"),
        ("AR100=0.251", 1, "contains"),
        ("class:cat.AR100=0.1", 0, "is above"),
        ("class:cat.AR10=0.9", 1, "is below"),
        ("class:cat.AP90=0.9", 1, "is below"),
        ("slice:low.class:cat.AP=0.01", 0, "is above"),
    ],
)
def test_gates_test_the_value_and_state_where_the_limit_is(
    detap: Run, case: list[str], limit: str, status: int, position: str
) -> None:
    arguments = (*case, "--slices", "tags.csv", "--confidence", "0.95", "--fail-under", limit)
    record, ended = report(detap, *arguments, status=status)
    (gate,) = record["gates"]["checks"]
    assert re.search(rf"; 95% CI \[[\d.]+, [\d.]+\] {position} the limit$", gate["message"])
    assert gate["message"] in " ".join(ended.out.split())
    low, high = gate["interval"]
    bound = float(limit.rpartition("=")[2])
    inside = {"contains": low <= bound <= high, "is above": low > bound, "is below": high < bound}
    assert inside[position]
    assert gate["confidence"] == 0.95


@pytest.mark.parametrize("limit", ["F1=0.5", "min-class.AP=0", "class:dog.AP=0"])
def test_gates_on_metrics_without_interval_are_unchanged(
    detap: Run, case: list[str], limit: str
) -> None:
    with_it, _ = report(detap, *case, "--confidence", "0.95", "--fail-under", limit)
    without, _ = report(detap, *case, "--fail-under", limit)
    assert with_it["gates"] == without["gates"]


def test_with_a_baseline_it_is_the_interval_of_the_drop(detap: Run, case: list[str]) -> None:
    earlier = ("--baseline-detections", "results.json", "--max-drop", "AR100=0.1")
    record, _ = report(detap, *case, *earlier, "--confidence", "0.95")
    assert "intervals" not in record
    assert "95% CI of the drop" in record["gates"]["checks"][0]["message"]


def test_a_raised_baseline_has_no_intervals(detap: Run, case: list[str]) -> None:
    """They are those of the new values, of which it retains the better ones."""
    assert detap(*case, "--confidence", "0.95", "-o", "r.json").status == 0
    Path("base.json").write_text(Path("r.json").read_text())
    assert detap("baseline", "update", "base.json", "r.json").status == 0
    assert "intervals" not in json.loads(Path("base.json").read_text())


def test_options_of_the_interval(detap: Run, case: list[str]) -> None:
    arguments = ("--resamples", "200", "--seed", "3", "--min-ground-truths", "1")
    record, _ = report(detap, *case, "--confidence", "0.95", *arguments)
    intervals = record["intervals"]
    keys = ("resamples", "seed", "min_ground_truths")
    assert [intervals[key] for key in keys] == [200, 3, 1]
    assert intervals["classes"][1]["AP"] == [0, 0]  # the dog is never detected
    for name in ("--resamples", "--seed"):
        assert detap(*case, name, "200").refused() == f"Error: {name} requires --confidence\n"


def test_it_is_printed_and_asserted(case: list[str]) -> None:
    del case
    result: Result = evaluate("instances.json", "results.json")
    assert "95% CI" in str(result.intervals())
    assert "CI low" in result.intervals()._repr_html_()
    with pytest.raises(AssertionError, match=r"95% CI \[0\.\d+, 0\.\d+\] is below the limit"):
        assert_detections("instances.json", "results.json", fail_under=0.9, confidence=0.95)


def test_biased_resamples_are_noted() -> None:
    """A class on few images has a higher AP in resamples, which repeat images."""
    rare, often = scene(3, boxes=60, images=12), scene(3, boxes=900, count=3000, images=300)
    notes = [evaluate(*tables).intervals(min_ground_truths=0).notes for tables in (rare, often)]
    codes = [[note.code for note in some] for some in notes]
    assert "biased-interval" in codes[0]
    (note,) = (note for note in notes[0] if note.code == "biased-interval")
    assert re.match(r"AP, .*: mean of the resamples far from the value \(AP: \+0\.0", note.message)
    assert note.severity == "info"
